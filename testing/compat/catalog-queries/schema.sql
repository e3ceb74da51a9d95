create schema app;
create table customers (id int primary key, name varchar(40) not null, email text unique, born date, balance numeric(12,2) default 0, active boolean not null default true, constraint positive check (balance >= 0));
create table orders (id bigint not null, line smallint not null, customer int references customers(id) on delete cascade, placed timestamp, note text, total double precision, uid uuid, data json, raw bytea, span interval, primary key (id, line));
create index orders_customer on orders (customer, placed desc);
create unique index orders_uid on orders (uid);
create table app.log (at timestamp, line text, level real, clock time);
create view active_customers as select id, name from customers where active;
