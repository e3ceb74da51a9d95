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

select distinct on (a) a, id from t order by a nulls last, id, a desc, b, id desc;
-- 10|1
-- 20|2
-- NULL|3

select row_number() over (order by a, id, a desc, s, id) from t order by 1, 1 desc;
-- 1
-- 2
-- 3
-- 4

select s::varchar(1) || 'x' from (select 'abc' as s union all select null) y order by 1;
-- ax
-- NULL

select cast(id + 100 as varchar(2)), char_length(cast(s || 'yz' as varchar(2))) from t order by t.id;
-- 10|2
-- 10|2
-- 10|2
-- 10|NULL

select concat(1.5::float8, null, true, 2::float8), concat(id::float8 / 2) from t where id = 1;
-- 1.5t2|0.5

select lpad(s, -1, 'y'), lpad(s, 3), rpad(s, 4, 'ab'), repeat(s, -2), replace(s, '', 'q') from t where id = 1;
-- |  x|xaba||x

select substr(s || 'abc', -1, 4), substring(s || 'abc' from 2 for 2), left(s || 'abc', -1), right(s || 'abc', -1), split_part(s || ',b', ',', -1) from t where id = 1;
-- xa|ab|xab|abc|b

select timestamp '2024-01-02 03:04:05' - timestamp '2023-12-30 04:00:00', date '2024-03-31' - interval '1 month', date '2024-01-01' + time '12:30' from t where id = 1;
-- 2 days 23:04:05|2024-02-29 00:00:00|2024-01-01 12:30:00

select (timestamp '2024-01-02' + make_interval.i)::text from (select '1 year 2 mons 3 days 04:05:06'::interval as i) make_interval, t where t.id = 1;
-- 2025-03-05 04:05:06

select '24:00:00'::interval * 2, interval '1 day' - interval '1 hour', '2024-01-01'::date + (id || ' days')::interval from t order by t.id;
-- 48:00:00|1 day -01:00:00|2024-01-02 00:00:00
-- 48:00:00|1 day -01:00:00|2024-01-03 00:00:00
-- 48:00:00|1 day -01:00:00|2024-01-04 00:00:00
-- 48:00:00|1 day -01:00:00|2024-01-05 00:00:00

select x.i = y.i, x.i < y.i from (select interval '1 month' as i union all select null) x cross join (select interval '30 days' as i) y order by 1;
-- t|f
-- NULL|NULL

select i from (values (interval '1 month'), ('29 days'), ('31 days'), ('720:00:01')) y (i) order by i;
-- 29 days
-- 1 mon
-- 720:00:01
-- 31 days

select count(*) over (order by x), x from (values (time '10:00'), ('09:00'), ('10:00')) y (x) order by x, 1;
-- 1|09:00:00
-- 3|10:00:00
-- 3|10:00:00

select max(x) over (order by b), b from (values ('\x01'::bytea, 1), ('\x02', 2), ('\x01', 3)) y (b, x) order by b, 1;
-- 3|\x01
-- 3|\x01
-- 3|\x02

select (a, b) = (10, null), (a, b) <> (20, null), (a, id) < (10, 2), (a, id) >= (10, null) from t order by id;
-- NULL|t|t|NULL
-- f|NULL|f|t
-- NULL|NULL|NULL|NULL
-- NULL|t|f|NULL

select (a, s) is distinct from (null, 'z'), (a, id) in ((10, 1), (null, 3)), (id, a) not in ((1, 20), (2, null)) from t order by id;
-- t|t|t
-- t|f|NULL
-- f|NULL|t
-- t|f|t

select id from t where (a, id) > (10, 1) order by id;
-- 2
-- 4

select (1, 2) = (1, 2, 3) from t;
-- fails 42601

select mod(id, -2), mod(-7, 4), mod(b, 3) from t order by id;
-- 1|-3|1
-- 0|-3|1
-- 1|-3|2
-- 0|-3|NULL

select encode('\x616263ff'::bytea, 'base64'), encode('\x00ff5c'::bytea, 'escape'), encode('\x00ff'::bytea, 'hex'), to_hex(-id) from t where id = 1;
-- YWJj/w==|\000\377\\|00ff|ffffffff

select ('2024-02-29 12:34:56.789'::timestamp)::text || '|' || (1.0::float8)::text || '|' || '\x00ff'::bytea::text || (time '12:00')::text from t where id = 1;
-- 2024-02-29 12:34:56.789|1|\x00ff12:00:00

select x.id from t x join u y on true where null::int in (select id from t);

select to_char(id, '999') from t;
--    1
--    2
--    3
--    4

select max(i) from (select interval '1 month' as i union all select interval '40 days') y;
-- 40 days

select id from t where null::int not in (select a from t) order by id;

select id from t where 7 not in (select id from u) and 1 + null not in (select id from u) order by id;

select id from t where null::int not in (select id from u where id > 99) order by id;
-- 1
-- 2
-- 3
-- 4

select 'x'::uuid from t;
-- fails 22P02

select v from (values ('abc'::varchar(2)), ('abc'::varchar(1)), ('abc'::text), (null)) y (v) order by v;
-- a
-- ab
-- abc
-- NULL

select count(*) from (select interval '1 mon' iv) s where iv between '29 days' and '31 days';
-- 1

select iv = '30 days', iv in ('720 hours', '1 day'), iv is distinct from interval '30 days', case iv when interval '30 days' then 'same' else 'other' end from (select interval '1 mon' iv, count(*) over ()) s;
-- t|t|f|same

select iv from (values (interval '1 mon'), (interval '30 days')) s (iv) group by iv;
-- 1 mon

select (a.iv = b.iv)::text from (values (interval '1 mon')) a (iv) join (values (interval '30 days')) b (iv) using (iv);
-- true

select count(*) from t where (id, 1) in ((1, 1), (2, 2), (3, 1));
-- 2

select id from t where (a, id) in (select v / 10, tid from u) order by id;
-- 1

select id from t where (a, id) in (select 10, tid from u) order by id;
-- 1

select id from t where (a, id) not in (select 10, tid from u where tid is not null) order by id;
-- 2
-- 3
-- 4

select id from t where (a, id) not in (select 10, tid from u) order by id;
-- 2

select id from t where (a, id) not in (select v, tid from u where v < 0) order by id;
-- 1
-- 2
-- 3
-- 4

select id from t where (id, a) in (select tid, 10 from u where u.v > t.id) order by id;
-- 1

select id from t where not (a, id) in (select 10, 1) order by id;
-- 2
-- 3
-- 4

select id from t where (a, id) in (select 10, 1) or s = 'z' order by id;
-- 1
-- 3

select id from t where (a, id) = any (select 10, tid from u) order by id;
-- 1

select id from t where (a, id) <> all (select 10, 1) order by id;
-- 2
-- 3
-- 4

select id from t where (a, id, b) in (select 10, 1) order by id;
-- fails 42601

select id from t where id = any (select tid from u) order by id;
-- 1
-- 2

select id from t where id = some (select tid from u) order by id;
-- 1
-- 2

select id from t where id <> all (select tid from u where tid is not null) order by id;
-- 3
-- 4

select id from t where id <> all (select tid from u) order by id;

select id from t where id <> all (select tid from u where tid > 9) order by id;
-- 1
-- 2
-- 3
-- 4

select id, id = any (select tid from u), id <> all (select tid from u) from t order by id;
-- 1|t|f
-- 2|t|f
-- 3|NULL|NULL
-- 4|NULL|NULL

select id from t where a < any (select v from u) order by id;
-- 1
-- 2
-- 4

select id from t where a > all (select v from u where v < 10) order by id;
-- 1
-- 2
-- 4

select id from t where a > all (select v from u) order by id;

select id from t where a > all (select v from u where v > 1000) order by id;
-- 1
-- 2
-- 3
-- 4

select id from t where a >= any (select a from t) order by id;
-- 1
-- 2
-- 4

select id from t where a <> any (select a from t) order by id;
-- 1
-- 2
-- 4

select id from t where a = all (select 10) order by id;
-- 1
-- 4

select id from t where a = all (select a from t where a is not null) order by id;

select id from t where not a <= all (select a from t where a is not null) order by id;
-- 2

select id, a < any (select v from u), a < all (select v from u), a < any (select v from u where v > 1000), a < all (select v from u where v > 1000) from t order by id;
-- 1|t|f|f|t
-- 2|t|f|f|t
-- 3|NULL|NULL|f|t
-- 4|t|f|f|t

select id, a <> any (select v from u where v is not null), a = all (select 10), a <= all (select v from u where v is not null) from t order by id;
-- 1|t|t|f
-- 2|t|f|f
-- 3|NULL|NULL|NULL
-- 4|t|t|f

select id from t where a < any (select v from u where u.tid = t.id) order by id;
-- 1

select id from t where a < all (select v from u where u.tid = t.id) order by id;
-- 1
-- 3
-- 4

select id, s > any (select s from t), s >= all (select s from t where s is not null) from t order by id;
-- 1|NULL|f
-- 2|t|f
-- 3|t|t
-- 4|NULL|NULL

select id from t where id between symmetric 3 and 2 order by id;
-- 2
-- 3

select id from t where id not between symmetric 3 and 2 order by id;
-- 1
-- 4

select id from t where id between asymmetric 3 and 2 order by id;

select id from t x where x.id + 1 between symmetric x.a / 4 + 1 and 2 - 1 order by id;
-- 1
-- 2

select 2 between symmetric 3 and 1, 2 not between symmetric 3 and 1, null between symmetric 1 and 2, 5 between symmetric 3 and null, 'b' between symmetric 'c' || '' and 'a';
-- t|f|NULL|NULL|t

select count(*) from t x join u y on x.id between symmetric y.tid and 2;
-- 5

select a, s, count(*) from t group by rollup (a, a, s) order by 1, 2, 3;
-- 10|x|1
-- 10|NULL|1
-- 10|NULL|2
-- 10|NULL|2
-- 20|y|1
-- 20|NULL|1
-- 20|NULL|1
-- NULL|z|1
-- NULL|NULL|1
-- NULL|NULL|1
-- NULL|NULL|4

select a, count(*) from t group by cube (a, a) order by 1, 2;
-- 10|2
-- 10|2
-- 10|2
-- 20|1
-- 20|1
-- 20|1
-- NULL|1
-- NULL|1
-- NULL|1
-- NULL|4

select a, s, count(*) from t group by grouping sets ((a, s), (a, a), (a), ()) order by 1, 2, 3;
-- 10|x|1
-- 10|NULL|1
-- 10|NULL|2
-- 10|NULL|2
-- 20|y|1
-- 20|NULL|1
-- 20|NULL|1
-- NULL|z|1
-- NULL|NULL|1
-- NULL|NULL|1
-- NULL|NULL|4

select a, count(*) from t group by grouping sets ((a), (a), ()) order by 1, 2;
-- 10|2
-- 10|2
-- 20|1
-- 20|1
-- NULL|1
-- NULL|1
-- NULL|4

select a, s, count(*) from t group by a, rollup (a, s) order by 1, 2, 3;
-- 10|x|1
-- 10|NULL|1
-- 10|NULL|2
-- 10|NULL|2
-- 20|y|1
-- 20|NULL|1
-- 20|NULL|1
-- NULL|z|1
-- NULL|NULL|1
-- NULL|NULL|1

select a, s, count(*) from t group by a, grouping sets ((s), ()) order by 1, 2, 3;
-- 10|x|1
-- 10|NULL|1
-- 10|NULL|2
-- 20|y|1
-- 20|NULL|1
-- NULL|z|1
-- NULL|NULL|1

select a, a, count(*) from t group by a, a order by 1, 2, 3;
-- 10|10|2
-- 20|20|1
-- NULL|NULL|1

select a, grouping(a), grouping(s), count(*) from t group by rollup (a, s) order by 1, 2, 3, 4;
-- 10|0|0|1
-- 10|0|0|1
-- 10|0|1|2
-- 20|0|0|1
-- 20|0|1|1
-- NULL|0|0|1
-- NULL|0|1|1
-- NULL|1|1|4

select min(x), max(x), count(distinct x) from iv where id > 2;
-- -1 days|1 mon|3

select min(x)::text, max(x)::text from iv where id in (6, 7, 8);
-- -1 days|2 days

select min(x), max(x) from iv where x is null;
-- NULL|NULL

select extract(epoch from x)::int as e, count(*), min(id), max(id) from iv group by x order by e;
-- -86400|1|6|6
-- 86400|2|1|2
-- 172800|1|7|7
-- 2592000|2|3|4
-- NULL|2|5|8

select count(*) from iv group by x order by 1;
-- 1
-- 1
-- 2
-- 2
-- 2

select count(*) from (select distinct x from iv) d;
-- 5

select extract(epoch from x)::int from (select distinct x from iv) d order by 1;
-- -86400
-- 86400
-- 172800
-- 2592000
-- NULL

select distinct on (x) id from iv order by x, id;
-- 6
-- 1
-- 7
-- 3
-- 5

select id from iv order by x desc, id;
-- 5
-- 8
-- 3
-- 4
-- 7
-- 1
-- 2
-- 6

select count(*) from (select x from iv union select x from iv) q;
-- 5

select count(*) from (select x from iv where id < 3 intersect select x from iv where id = 2) q;
-- 1

select count(*) from (select x from iv except select '24 hours'::interval) q;
-- 4

select id, rank() over (order by x, id), count(*) over (partition by x) from iv order by id;
-- 1|2|2
-- 2|3|2
-- 3|5|2
-- 4|6|2
-- 5|7|2
-- 6|1|1
-- 7|4|1
-- 8|8|2

select id, extract(epoch from min(x) over (order by id))::int, extract(epoch from max(x) over (order by id))::int from iv order by id;
-- 1|86400|86400
-- 2|86400|86400
-- 3|86400|2592000
-- 4|86400|2592000
-- 5|86400|2592000
-- 6|-86400|2592000
-- 7|-86400|2592000
-- 8|-86400|2592000

select id from iv where x in (select y.x from iv y where y.id = 2) order by id;
-- 1
-- 2

select id from iv where x not in (select y.x from iv y where y.id in (2, 4)) order by id;
-- 6
-- 7

select id from iv where x = any (select y.x from iv y where y.id in (2, 4)) order by id;
-- 1
-- 2
-- 3
-- 4

select id from iv where x < all (select y.x from iv y where y.id in (2, 4)) order by id;
-- 6

select id, nullif(x, '24:00:00'), greatest(x, interval '2 days'), least(x, interval '24:00:00', null) from (select * from iv) q where id <> 1 order by id;
-- 2|NULL|2 days|24:00:00
-- 3|30 days|30 days|24:00:00
-- 4|1 mon|1 mon|24:00:00
-- 5|NULL|2 days|24:00:00
-- 6|-1 days|2 days|-1 days
-- 7|2 days|2 days|24:00:00
-- 8|NULL|2 days|24:00:00

select greatest(interval '1 day', interval '24:00:00'), least(interval '1 day', interval '24:00:00');
-- 1 day|1 day

select a.id, b.id from iv a join iv b on a.x = b.x and a.id < b.id order by 1, 2;
-- 1|2
-- 3|4

select extract(epoch from x)::int, sum(id) from iv group by x having max(x) > '1 hour' and count(*) > 1 order by 1;
-- 86400|3
-- 2592000|7

select sum(n) from (select x, count(*) as n from iv group by x) q where x > '0';
-- 5

select x, count(*) from iv group by rollup (x);
-- refused 0A000
-- NULL|8
-- NULL|2
-- 1 day|2
-- -1 days|1
-- 2 days|1
-- 30 days|2

select encode('abc', 'hex'), encode('\x6162', 'base64'), encode('a\\b', 'escape'), encode(null, 'hex');
-- 616263|YWI=|a\\b|NULL

select encode('abc' || '', 'hex');
-- fails 42883

select encode(s::bytea, 'hex') from t where id = 1;
-- 78

select extract(year from date '2024-01-01' + id), sum(id) from t group by id order by 1, 2;
-- 2024|1
-- 2024|2
-- 2024|3
-- 2024|4

select length(s), count(*) from t group by s order by 1 desc nulls last, 2;
-- 1|1
-- 1|1
-- 1|1
-- NULL|1

select s || 'x', a + 1, max(id) from t group by s, a having max(id) > 1 order by 2, 1;
-- NULL|11|4
-- yx|21|2
-- zx|NULL|3

select nullif(date '2024-01-01' + id, '2024-01-02') from (select id from t) q order by 1;
-- 2024-01-03
-- 2024-01-04
-- 2024-01-05
-- NULL

select nullif(s, 'x'), nullif(id, '2') from (select s, id from t) q order by 2;
-- NULL|1
-- z|3
-- NULL|4
-- y|NULL

select count(*)::float / 3, count(*)::float(53) / 3, cast(1 as float) / 3 from t;
-- 1.3333333333333333|1.3333333333333333|0.3333333333333333

select pg_typeof(x::float), pg_typeof(x::float(24)) from (select count(*) as x from t) q;
-- double precision|real

select id from t order by id limit 1::smallint offset 1::smallint;
-- 2

select id from (values (1)) a(id) full join (values (2)) b(id) using (id) order by 1;
-- 1
-- 2

select * from t full join u using (id) order by id;
-- 1|10|9223372036854775807|x|1|100
-- 2|20|9223372036854775807|y|1|50
-- 3|NULL|5|z|2|NULL
-- 4|10|NULL|NULL|NULL|7

select * from t natural right join (select id, v from u where id > 2) w order by id;
-- 3|NULL|5|z|NULL
-- 4|10|NULL|NULL|7

select id, count(*), max(v) from t right join (select id + 2 as id, v from u) w using (id) group by id having id > 3 order by id;
-- 4|1|50
-- 5|1|NULL
-- 6|1|7

select t.id, w.id, id from t full join (select id + 2 as id from u) w using (id) order by 3;
-- 1|NULL|1
-- 2|NULL|2
-- 3|3|3
-- 4|4|4
-- NULL|5|5
-- NULL|6|6

select id + 1 as next from t full join (select id + 2 as id from u) w using (id) where id > 2 order by id desc;
-- 7
-- 6
-- 5
-- 4

select id, sum(a) over (order by id) from t full join (select id + 2 as id from u) w using (id) order by id;
-- 1|10
-- 2|30
-- 3|30
-- 4|40
-- 5|40
-- 6|40

with p as (select id, a from t), q(id, z) as (select id, v from u) select * from p full join q using (id) where id < 3 order by id;
-- 1|10|100
-- 2|20|50

select t.s from t join u using (id) where id < 3 and exists (select 1 from u w where w.id = id) order by id;
-- x
-- y

select t.id from t left join u using (id) where id in (select tid from u) order by id;
-- 1
-- 2

select * from t full join u using (id) full join (values (4, 8), (5, 9)) as w(id, z) using (id) where id > 3 order by id;
-- 4|10|NULL|NULL|NULL|7|8
-- 5|NULL|NULL|NULL|NULL|NULL|9

select distinct id from (t full join (select id + 2 as id from u) w using (id)) order by 1;
-- 1
-- 2
-- 3
-- 4
-- 5
-- 6

select id from t join u using (missing);
-- fails 42703

select * from (select * from t where id < 3) p full join (select * from u where id > 1) q using (id) order by 1;
-- 1|10|9223372036854775807|x|NULL|NULL
-- 2|20|9223372036854775807|y|1|50
-- 3|NULL|NULL|NULL|2|NULL
-- 4|NULL|NULL|NULL|NULL|7

select round(count(*)::numeric / 7 * 100, 2), round(sum(id) / 7.0, 10), round(1.0 / 3 * 3, 12) from u;
-- 57.14|1.4285714286|1.000000000000

select pg_typeof(avg(id)), round(avg(id), 4), round(avg(id) / 7, 12), avg(v::float8) from t full join u using (id);
-- numeric|2.5000|0.357142857143|52.333333333333336

select a, round(avg(id), 10), pg_typeof(avg(id)) from t group by a having avg(id) > 1.5 order by a;
-- 10|2.5000000000|numeric
-- 20|2.0000000000|numeric
-- NULL|3.0000000000|numeric

select id, round(avg(v) over (order by id), 6), round(avg(v) over (order by id rows between 1 preceding and current row), 6) from u order by id;
-- 1|100.000000|100.000000
-- 2|75.000000|75.000000
-- 3|75.000000|50.000000
-- 4|52.333333|7.000000

select round(avg(distinct tid), 3), round(avg(id) filter (where id > 2), 3), avg(id) filter (where id > 9) from u;
-- 1.500|3.500|NULL

select tid, grouping(tid), round(avg(v), 3) from u group by rollup(tid) order by 1, 2;
-- 1|0|75.000
-- 2|0|NULL
-- NULL|0|7.000
-- NULL|1|52.333

select id, (select round(avg(v), 2) from u where tid = t.id) from t order by id;
-- 1|75.00
-- 2|NULL
-- 3|NULL
-- 4|NULL

select round(avg(q.x) / 3, 8) from (select avg(id) as x from t union all select avg(v) from u) q;
-- 9.13888889

select sum(id) / 0.0 from t;
-- fails 22012

select id, f = 0.3, f > 0.0, f < 1e17, f in (0.1, 0.5), f between 0.1 and 0.5, r = 0.1, r = 0.5 from ty order by id;
-- 1|f|t|t|t|t|f|f
-- 2|f|t|f|f|f|f|t
-- 3|f|t|f|f|f|NULL|NULL
-- 4|f|t|t|f|t|f|f

select 1e-16 > 0.0::float8, 0.1::float8 + 0.2 = 0.3, 'nan'::float8 > 1.5, 'infinity'::float8 > 1e30 from (select count(*) from t) q;
-- t|f|t|t

select id, case f when 0.1 then 'a' when 0.5 then 'b' end, f * 1.5, pg_typeof(r * 2), pg_typeof(f + 1.5) from ty order by id;
-- 1|a|0.15000000000000002|double precision|double precision
-- 2|NULL|1.5e+17|double precision|double precision
-- 3|NULL|NaN|double precision|double precision
-- 4|NULL|0.45000000000000007|double precision|double precision

select p.id from ty p join ty q using (id) where p.by = '\x4142';
-- 1

select count(*) filter (where by > '\x01'), max(case when by = '\x4142' then 1 else 0 end) from ty having max(length(by)) > 0 or '\x00' = '\x00';
-- 2|1

select id from ty where '\x00' in (select by from ty) order by id;
-- 1
-- 2
-- 3
-- 4

select by from ty where id = 1 union all select '\x00';
-- \x4142
-- \x00

select case when id = 1 then by else '\xff' end, nullif(by, '\x00') from ty where id in (select id from ty) order by id;
-- \x4142|\x4142
-- \xff|NULL
-- \xff|NULL
-- \xff|\xff01

select d from ty union select '2025-01-01' order by 1;
-- 2023-12-31
-- 2024-01-01
-- 2024-02-01
-- 2025-01-01
-- NULL

select timestamptz '2024-07-01 12:00+00' at time zone 'Europe/Berlin', pg_typeof(timestamptz '2024-07-01 12:00+00' at time zone 'Europe/Berlin');
-- 2024-07-01 14:00:00|timestamp without time zone

select (timestamp '2024-07-01 12:00' at time zone 'Europe/Berlin')::text, pg_typeof(timestamp '2024-07-01 12:00' at time zone 'Europe/Berlin');
-- 2024-07-01 10:00:00+00|timestamp with time zone

select (timestamp '2024-03-31 02:30' at time zone 'Europe/Berlin')::text, (timestamp '2024-10-27 02:30' at time zone 'Europe/Berlin')::text;
-- 2024-03-31 01:30:00+00|2024-10-27 01:30:00+00

select (timestamp '2024-03-10 02:30' at time zone 'America/New_York')::text, (timestamp '2024-11-03 01:30' at time zone 'America/New_York')::text;
-- 2024-03-10 07:30:00+00|2024-11-03 06:30:00+00

select tz at time zone '+02', tz at time zone interval '2 hours', tz at time zone 'america/new_york', tz at time zone 'EST', timezone('CET', tz) from ty where id = 1;
-- 2024-06-01 08:00:00|2024-06-01 12:00:00|2024-06-01 06:00:00|2024-06-01 05:00:00|2024-06-01 11:00:00

select tz at time zone 'UTC+3', tz at time zone '<+03>-3', (ts at time zone 'UTC')::text, (ts at time zone '-05:30')::text from ty where id = 1;
-- 2024-06-01 07:00:00|2024-06-01 13:00:00|2024-06-01 10:00:00+00|2024-06-01 04:30:00+00

select tz at time zone 'Nowhere/City' from ty;
-- fails 22023

select '2024-07-01 12:00+02' at time zone 'UTC', date '2024-01-01' at time zone 'Asia/Tokyo';
-- 2024-07-01 10:00:00|2024-01-01 09:00:00

select x similar to 'a%', x similar to 'a_', x similar to '%(b|d)%', x not similar to 'b%', x similar to 'a.c', x similar to '[a-c]{3}' from (select 'abc' as x from t where id = 1) q;
-- t|f|t|t|f|t

select x similar to 'a\%', x similar to 'a' || '%', x similar to null from (select 'a%' as x from t where id = 1) q;
-- t|t|NULL

select id, sum(id) over w2 from u window w1 as (partition by tid), w2 as (w1 order by id) order by id;
-- 1|1
-- 2|3
-- 3|3
-- 4|4

select id, sum(id) over (w1 order by id), count(*) over w1 from u window w1 as (partition by tid) order by id;
-- 1|1|2
-- 2|3|2
-- 3|3|1
-- 4|4|1

select sum(id) over (w1 partition by v) from u window w1 as (partition by tid);
-- fails 42P20

select x similar to 'a#%' escape '#' from (select 'a%' as x from t where id = 1) q;
-- t

select x similar to '[[:alpha:]]+', x similar to '[^a-b]+', x similar to '(a|z)bc?', x similar to 'ab' from (select 'abc' as x from t where id = 1) q;
-- t|f|t|f

select pg_typeof(max(tz)), max(tz)::text, count(distinct id) from ty;
-- timestamp with time zone|2024-07-01 12:00:00+00|4

select id, max(tz)::text, (min(tz) over ())::text, (lag(tz) over (order by id))::text, (select max(tz) from ty)::text from ty group by id, tz order by id;
-- 1|2024-06-01 10:00:00+00|2023-01-01 00:00:00+00|NULL|2024-07-01 12:00:00+00
-- 2|2024-07-01 12:00:00+00|2023-01-01 00:00:00+00|2024-06-01 10:00:00+00|2024-07-01 12:00:00+00
-- 3|NULL|2023-01-01 00:00:00+00|2024-07-01 12:00:00+00|2024-07-01 12:00:00+00
-- 4|2023-01-01 00:00:00+00|2023-01-01 00:00:00+00|NULL|2024-07-01 12:00:00+00

select id from ty group by id having max(tz) >= '2024-06-01 12:00+02' order by id;
-- 1
-- 2

select id from ty group by id having max(tz) > '2024-06-01 12:00+02' order by id;
-- 2

select id, (select tz from ty y where y.id = x.id)::text, (select tz from ty limit 1) < '2024-06-01 11:00+01' from ty x order by id;
-- 1|2024-06-01 10:00:00+00|f
-- 2|2024-07-01 12:00:00+00|f
-- 3|NULL|f
-- 4|2023-01-01 00:00:00+00|f
