select sum(b) from t;
-- 18446744073709551619

select sum(b) from t where id > 9;
-- NULL

select sum(a), sum(b), sum(id) from t;
-- 40|18446744073709551619|10

select a, sum(b) from t group by a order by a nulls last;
-- 10|9223372036854775807
-- 20|9223372036854775807
-- NULL|5

select id, sum(b) over (order by id) from t order by id;
-- 1|9223372036854775807
-- 2|18446744073709551614
-- 3|18446744073709551619
-- 4|18446744073709551619

select sum(distinct b) from t;
-- 9223372036854775812

select x.id, y.id from t x join t y on x.id = y.id union select 9, 8 order by 1, 2;
-- 1|1
-- 2|2
-- 3|3
-- 4|4
-- 9|8

select x.id, y.id from t x join t y on x.id = y.id where x.id = 1 union all select x.id, y.id from t x join t y on x.id = y.id where x.id = 2 order by 1;
-- 1|1
-- 2|2

select id, id from t where id = 1 union select id, id from t where id = 2 order by 1;
-- 1|1
-- 2|2

select *, id from t where id = 1;
-- 1|10|9223372036854775807|x|1

select id, * from t where id = 1;
-- 1|1|10|9223372036854775807|x

select *, * from u where id = 1;
-- 1|1|100|1|1|100

select t.*, u.* from t join u on u.tid = t.id where u.id = 1;
-- 1|10|9223372036854775807|x|1|1|100

select * from t join u on u.tid = t.id where u.id = 1 union select 0, 0, 0, '', 0, 0, 0 order by 1;
-- 0|0|0||0|0|0
-- 1|10|9223372036854775807|x|1|1|100

select id from t union select id from u intersect select 4 order by 1;
-- 1
-- 2
-- 3
-- 4

select id from t intersect select id from u except select 2 order by 1;
-- 1
-- 3
-- 4

(select id from t union select 9) intersect select 9;
-- 9

select id, (select v from u where u.id = t.id) from t order by id;
-- 1|100
-- 2|50
-- 3|NULL
-- 4|7

select id, (select u.v from u where u.tid = t.id and u.v > 60) from t order by id;
-- 1|100
-- 2|NULL
-- 3|NULL
-- 4|NULL

select id, (select v from u where u.tid = t.id) from t where id = 2;
-- 2|NULL

select id, (select v from u where u.tid = t.id) from t where id = 1;
-- fails 21000

select id, (select v from u where u.tid = t.id order by v desc limit 1) from t order by id;
-- 1|100
-- 2|NULL
-- 3|NULL
-- 4|NULL

select id, (select max(v) from u where u.tid <= t.id) from t order by id;
-- refused 0A000
-- 1|100
-- 2|100
-- 3|100
-- 4|100

select id, (select count(*) from u where u.tid = t.id) from t order by id;
-- 1|2
-- 2|1
-- 3|0
-- 4|0

select id, (select count(*) from u where u.tid = t.id) + 1 as c from t order by id;
-- 1|3
-- 2|2
-- 3|1
-- 4|1

select id from t where (select max(v) from u where u.tid = t.id) > 60 order by id;
-- 1

select id from t where (select v from u where u.id = t.id) = 100;
-- 1

select id from t where a not in (select x from n) or id = 3 order by id;
-- 3

select id from t where a not in (select x from n where x is not null) or id = 3 order by id;
-- 2
-- 3

select id from t where not (a in (select x from n)) order by id;

select id, a in (select x from n) from t order by id;
-- 1|t
-- 2|NULL
-- 3|NULL
-- 4|t

select id, a not in (select x from n) from t order by id;
-- 1|f
-- 2|NULL
-- 3|NULL
-- 4|f

select id, a not in (select v from u where u.tid = t.id) from t order by id;
-- 1|t
-- 2|NULL
-- 3|t
-- 4|t

select id, a in (select v from u where u.tid = t.id) from t order by id;
-- 1|f
-- 2|NULL
-- 3|f
-- 4|f

select id from t where a not in (select v from u where u.tid = t.id) order by id;
-- 1
-- 3
-- 4

select id from t where a not in (select v from u where u.tid = t.id) or id = 9 order by id;
-- 1
-- 3
-- 4

select id from t where not (a in (select v from u where u.tid = t.id) and id > 0) order by id;
-- 1
-- 3
-- 4

select id from t where case when a not in (select v from u where u.tid = t.id) then true else false end order by id;
-- 1
-- 3
-- 4

select id from t where (a in (select x from n)) is null order by id;
-- 2
-- 3

select id, exists (select 1 from u where u.tid = t.id) from t order by id;
-- 1|t
-- 2|t
-- 3|f
-- 4|f

select id, not exists (select 1 from u where u.tid = t.id) from t order by id;
-- 1|f
-- 2|f
-- 3|t
-- 4|t

select id from t where exists (select 1 from u where u.tid = t.id) or id = 4 order by id;
-- 1
-- 2
-- 4

select id from t where not exists (select 1 from u where u.tid = t.id) or id = 1 order by id;
-- 1
-- 3
-- 4

select id from t where exists (select 1 from u where u.tid > t.id) order by id;
-- 1

select s.count from (select count(*) from t) s;
-- 4

select s.sum, s."?column?" from (select sum(id), 1 + 1 from t) s;
-- 10|2

with c as (select max(id) from t) select max + 1 from c;
-- 5

select g from generate_series(1, 3) g;
-- 1
-- 2
-- 3

select * from generate_series(1, 3);
-- 1
-- 2
-- 3

select b + 1 from t where id = 1;
-- fails 22003

select b + 1 from t where id = 1 group by b;
-- fails 22003

select count(*), count(*) from t;
-- 4|4

select 1 as x, 2 as x;
-- 1|2

select 'a' like 'a', 'a%' like 'a/%' escape '/', 'ab' like 'a/%' escape '/';
-- t|t|f

select '2024-01-01 12:00:00+02'::timestamp, timestamp '2024-01-01 12:00:00-05';
-- 2024-01-01 12:00:00|2024-01-01 12:00:00

select cast(s as timestamp) from (values ('2024-01-01 12:00:00+02')) v(s);
-- 2024-01-01 12:00:00

select cast(s as boolean) from (values ('yes'), ('f')) v(s);
-- t
-- f

select cast(s as int) from (values (' 12 ')) v(s);
-- 12

select nextval('q') + id from t order by id;
-- 2
-- 4
-- 6
-- 8

select setval('q', 100) from u where id = 1 group by id;
-- 100

select nextval('q') from (select 1) x;
-- 101

select 1::numeric, 1.5::numeric, '1.50'::numeric;
-- 1|1.5|1.50

select cast(a as numeric) from t where id = 1;
-- 10

select current_user = session_user, user = current_user;
-- t|t

select a, b from (select 1 as a, 2 as b) x union select b, a from (select 3 as a, 4 as b) y order by 1;
-- 1|2
-- 4|3

select t.id from t where t.id in (select u.tid from u where u.v > t.a) order by 1;
-- 1

select array_agg(id) from t where id < 3;
-- {1,2}

select (select id from t where id = 1), (select id from t where id = 99);
-- 1|NULL

select (select id from t);
-- fails 21000

select id from t order by (select max(v) from u where u.tid = t.id) nulls last, id;
-- refused 0A000
-- 1
-- 2
-- 3
-- 4

with t as (select 1 as x) select * from t union select 2 order by 1;
-- 1
-- 2

select * from (select 1, 2) u union all select 3, 4 order by 1;
-- 1|2
-- 3|4

with u as (select 10 as k) select id from t where a not in (select k from u) or id = 3 order by id;
-- 2
-- 3

select sum(case when id > 1 then 1 else 0 end) from t;
-- 3

select id from t where id in (select id from u where v > 60) or a is null order by id;
-- 1
-- 3

