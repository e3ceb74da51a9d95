create table t (id int primary key, a int, b bigint, s text);
insert into t values (1, 10, 9223372036854775807, 'x'), (2, 20, 9223372036854775807, 'y'), (3, null, 5, 'z'), (4, 10, null, null);
create table u (id int primary key, tid int, v int);
insert into u values (1, 1, 100), (2, 1, 50), (3, 2, null), (4, null, 7);
create sequence q;
create table n (x int);
insert into n values (10), (null);
create table iv (id int primary key, x interval);
insert into iv values (1, '1 day'), (2, '24:00:00'), (3, '30 days'), (4, '1 mon'), (5, null), (6, '-1 day'), (7, '2 days'), (8, null);
