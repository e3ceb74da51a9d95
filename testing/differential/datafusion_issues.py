#!/usr/bin/env python3
"""Wrong answers that DataFusion's issues tell of, asked of Cairn and of PostgreSQL.

    datafusion_issues.py --cairn DIR --postgres DIR [--only N,N,..] [--markdown]

Each entry has the number of an issue of DataFusion (0: a shape beside them), what goes wrong there, and queries of that shape, written for these tables. Queries whose rows are
numbered by ORDER BY are compared in order. The answer is `right`, `wrong`, or the SQLSTATE with which Cairn refuses.
"""

import argparse
import sys

sys.dont_write_bytecode = True

from foreign import is_ordered
from sides import Side, compare

SETUP = """
create table a (id int primary key, k int, v int, s text, d numeric(12,4), f float8, b boolean, ts timestamp, dt date);
insert into a values (1,1,10,'a',1.2345,0.5,true,'2024-01-01 00:00:00.001234','2024-01-01'),(2,2,null,'b',1.2399,'-0',false,'2024-01-01 00:00:00.001','2024-02-29'),(3,null,30,null,1.25,0,null,null,null),
 (4,1,10,'A',null,'NaN',true,'2024-01-02','2024-03-31'),(5,5,-5,'','2.5',null,false,'1999-12-31 23:59:59.999','1999-12-31'),(6,2,20,'%x_y',100,'Infinity',true,'2024-01-01','2024-01-01');
create table b (id int primary key, k int, w int, s text);
insert into b values (1,1,100,'a'),(2,null,200,'b'),(3,5,300,null),(4,7,null,'A'),(5,1,100,'z'),(6,2,50,'q');
create table n (x int, y int);
insert into n values (1,1),(2,2),(3,3),(4,null),(4,7),(null,0);
create table u (a int, b int, p text, primary key (a, b));
insert into u values (1,1,'x'),(1,2,'y'),(2,1,'x'),(2,2,null);
create table c (a int, n int, b int, primary key (a, n));
insert into c select i % 3, i, i % 5 from generate_series(1, 60) i;
create table e (id int primary key, k int, v text);
create table h (x int, y int, v int);
insert into h values (1,1,10),(1,2,20),(1,3,30),(2,1,40),(2,2,50),(2,3,60);
create table p (q bigint, r numeric, t varchar(8));
insert into p values (9223372036854775807, 99999999999999999999.5, 'abc'), (-9223372036854775808, 0.00000001, 'ABC'), (0, -1.5, 'a%c'), (null, null, null);
"""

# (issue, what goes wrong, queries)
ISSUES = [
    (24960, "EXISTS and IN over an aggregate without GROUP BY lose rows without a match", ["select id from a where exists (select count(*) from b where b.k = a.k) order by id", "select id from a where not exists (select max(w) from b where b.k = a.k + 100) order by id", "select id from a where 0 in (select count(*) from b where b.k = a.k) order by id", "select id from a where 0 not in (select count(*) from b where b.k = a.k) order by id", "select id from a where exists (select sum(w) from b where b.k = a.k having count(*) = 0) order by id"]),
    (25519, "a correlated filter below a grouping set is pulled above it", ["select id, exists (select 1 from b where b.k = a.k group by rollup (b.k)) from a order by id", "select id, k in (select b.k from b where b.k = a.k group by rollup (b.k)) from a order by id", "select id, (select count(*) from (select b.k from b where b.k = a.k group by cube (b.k, b.w)) q) from a order by id"]),
    (15032, "the count bug of CASE over an aggregate", ["select id, (select case when max(w) > 100 then 'a' else 'b' end from b where b.k = a.k + 1) from a order by id", "select id, (select coalesce(sum(w), -1) from b where b.k = a.k) from a order by id", "select id, (select count(*) + 1 from b where b.k = a.k) from a order by id"]),
    (10553, "count(*) of no match is NULL", ["select id, (select count(*) from b where b.k = a.k) from a order by id", "select id, (select count(w) from b where b.k = a.k having count(*) < 2) from a order by id"]),
    (22317, "aggregates that are not NULL over nothing, in a correlated subquery", ["select id, (select regr_count(b.w, b.k) from b where b.k = a.k) from a order by id"]),
    (21205, "duplicate filters of an IN subquery told apart by operands only", ["select id from a where k in (select k from b where b.k > a.k) order by id", "select id from a where k not in (select k from b where b.k <> a.k) order by id"]),
    (21206, "names that meet in the count bug's CASE", ["select id, (select count(*) as k from b where b.k = a.k) as k from a order by id", "select k, (select count(*) as v from b where b.k = a.k) + coalesce(v, 0) from a order by id"]),
    (20315, "references rewritten by name only", ["select id, v, (select count(*) as v from b where b.k = a.k) from a where (select count(*) as v from b where b.k = a.k) >= 0 and v > 5 order by id"]),
    (24927, "DISTINCT with ORDER BY and LIMIT gives too few rows", ["with s as (select k from a order by k limit 3) select distinct k from (select * from s union all select * from s union all select * from s) t order by k limit 3", "select distinct k from (select k from a union all select k from a) t order by k limit 4", "select distinct k, v from a order by k desc, v limit 3"]),
    (25052, "a join's order is taken for more than it is", ["select u.a, u.b from u join c on u.a = c.a where (c.a, c.n) > (1, 0) order by u.a, u.b", "select l.k, r.w from a l join b r on l.k = r.k order by l.k, r.w", "select u.a, c.n from u join c on u.a = c.a order by u.a, c.n limit 7", "select x.a, y.n, row_number() over (order by x.a, y.n) from u x join c y on x.a = y.a order by 1, 2, 3"]),
    (20244, "a sort before an aggregate is removed", ["select x, y % 2, sum(v) from h group by x, y % 2 order by x, y % 2", "select a, n % 2, count(*) from c group by a, n % 2 order by a, n % 2"]),
    (16965, "grouping sets over sorted input", ["select id from (select 'id' as id union all select 'id' order by id) q group by grouping sets ((id), ()) order by id", "select a, count(*) from (select a from c order by a) q group by rollup (a) order by a"]),
    (19849, "grouping sets finished twice in several partitions", ["select a, b, count(*) from c group by cube (a, b) order by 1, 2, 3", "select k, v, count(*), grouping(k, v) from a group by rollup (k, v) order by 1, 2, 3, 4", "select a, a, count(*) from c group by rollup (a, a) order by 1, 2, 3"]),
    (21361, "sort keys dropped that keys of a table decide", ["select k from (select k, id from a group by grouping sets ((id, k), (k))) q order by k", "select id, k from (select id, k from a group by grouping sets ((id, k), (id))) q order by id, k", "select a.id, b.id from a left join b on a.k = b.k order by b.id, a.id", "select b.id, a.id from a full join b on a.id = b.id + 2 order by b.id, a.id"]),
    (13483, "ORDER BY a CASE over UNION ALL is dropped", ["select case when s = 'n1' then 0.0 when s = 'n2' then 0.5 end as x from (select 'n1' as s union all select 'n2') q order by x desc"]),
    (5970, "UNION ALL with ORDER BY comes unsorted", ["select 'm0' as m, s, count(*) from a group by 1, 2 union all select 'm1', s, count(*) from b group by 1, 2 order by 1, 2, 3"]),
    (9091, "an order by a joined table's column that is not selected", ["select a.* from a left join b on b.s = a.s order by b.s, a.id"]),
    (22489, "a row lost between an inner LIMIT and an outer OFFSET", ["select * from (select a.id, count(b.id) as n from a left join b on a.id = b.id group by a.id order by n, a.id limit 2) q order by n, id offset 1", "select * from (select k, count(*) as n from a group by k order by k limit 2) q order by n desc, k offset 1"]),
    (22190, "TopK of an aggregate with NULL keys", ["select k, max(v) from a group by k order by max(v) desc nulls last limit 2", "select k, min(v) from a group by k order by min(v) nulls first, k limit 3", "select k, max(v) from a group by k order by max(v) desc, k limit 3"]),
    (14335, "LIMIT pushed through FULL JOIN", ["select count(*) from (select a.id, b.id from a full join b on a.id = b.id limit 6) q", "select count(*) from (select a.id x, b.id y from a full join b on a.id = 7 - b.id limit 3) q where x is null or y is null"]),
    (14204, "a limit on one side of a cross join is removed", ["select count(*) from (select * from (select * from a limit 1) x, (select * from b limit 2) y limit 10) q"]),
    (20048, "limits removed by the pass that pushes them", ["select count(*) from (select * from (select id from a order by id limit 4 offset 1) q limit 3 offset 2) z", "select * from (select id from a order by id limit 4 offset 1) q order by id desc limit 2", "select count(*) from (select 1 from (select 1 from a offset 2) q limit 3) z"]),
    (18028, "a limit pushed past lead()", ["select id, lead(id) over (order by id) from a order by id limit 3", "select id, lead(id, 2) over (order by id desc) from a order by id desc limit 2", "select id, sum(id) over (order by id rows between 1 preceding and 2 following) from a order by id limit 2"]),
    (10583, "NOT IN does not know NULL", ["select x, y from n where x not in (select y from n) order by x, y", "select x, y from n t where x not in (select y from n t2 where t.x = t2.x) order by x, y", "select x, y from n where (x not in (select y from n)) is null order by x, y", "select x, y from n where (x not in (select y from n)) is not true order by x, y"]),
    (8241, "NOT IN of a list with NULL as a subquery", ["select 'row' where 1 not in (select * from (values (3), (null)) t)", "select 'row' where 1 not in (select * from (values (3), (null)) t where false)", "select 'row' where null::int not in (select x from n where false)", "select 'row' where null::int in (select x from n where false)"]),
    (23410, "a predicate is inferred across an anti join that knows NULL", ["select id from a where k <> 1 and k not in (select y from n) order by id", "select id from a where k <> 1 and k not in (select y from n where y is null) order by id"]),
    (25024, "NOT IN of expressions that may be NULL over columns that are not", ["select id from a where nullif(id, 2) not in (select id from b where id > 3) order by id", "select id from a where id not in (select nullif(id, 6) from b) order by id", "select id, id in (select nullif(id, 6) from b) from a order by id"]),
    (21309, "a mark join never says NULL", ["select id, k in (select k from b) from a order by id", "select id, k in (select k from b) or v = 10 from a order by id", "select id, k not in (select k from b where b.id <> a.id) from a order by id", "select id, (k = any (select k from b where w > 100)) is null from a order by id"]),
    (22810, "NOT IN by a sorting join", ["select id from a where k not in (select k from b where k is not null) order by id", "select x from (values (1)) t (x) where x not in (select null::int) order by x"]),
    (20083, "EXISTS OR EXISTS with a join", ["select a.id, b.id from a left join b on a.id = b.id where exists (select 1 from n where n.x = a.k) or exists (select 1 from n where n.y = b.k) order by 1, 2"]),
    (13134, "EXISTS under OR", ["select id from a where exists (select 1 from b where b.k = a.k) or v = 30 order by id", "select id from a where not exists (select 1 from b where b.k = a.k) or v = 10 order by id", "select id, case when exists (select 1 from b where b.k = a.k) then 1 else 0 end from a order by id"]),
    (13211, "LEFT JOIN with a filter over a function of the missing side", ["select a.id, b.w from a left join b on a.s = b.s where abs(b.w) > 100 order by 1", "select a.id, b.w from a left join b on a.s = b.s where coalesce(b.w, 0) = 0 order by 1", "select a.id, b.w from a left join b on a.s = b.s where b.w is null or b.w > 100 order by 1"]),
    (22441, "IS TRUE below NOT turns an outer join into an inner one", ["select a.id, b.w from a left join b on a.k = b.k where not ((b.w > 150) is true) order by 1, 2", "select a.id, b.w from a left join b on a.k = b.k where (b.w > 150) is not true order by 1, 2", "select a.id, b.w from a left join b on a.k = b.k where (b.w > 150) is unknown order by 1, 2", "select a.id, b.w from a left join b on a.k = b.k where (b.w > 150) is distinct from true order by 1, 2"]),
    (10881, "LEFT JOIN ON with OR", ["select a.id, b.id from a left join b on a.id = 1 or a.id = b.id order by 1, 2", "select a.id, b.id from a left join b on a.k = b.k or b.w = 300 order by 1, 2", "select a.id, b.id from a right join b on a.k > b.k or a.s = b.s order by 2, 1"]),
    (21660, "a full join's condition that is NULL", ["select a.id, b.id from a full join b on a.k = b.k and a.v < b.w + 1 order by 1, 2", "select a.id, b.id from a full join b on a.id = b.id and a.v < b.w order by 1, 2"]),
    (22791, "unmatched rows of a nested loop join come twice", ["select a.id, b.id from a left join b on a.v > b.w order by 1, 2", "select a.id, b.id from a full join b on a.id = b.id order by 1, 2", "select a.id, b.id from a left join b on a.v + 90 < b.w order by 1, 2"]),
    (23048, "a sorting semi join drops matches across batches", ["select count(*) from c where exists (select 1 from c d where d.a = c.a and d.n <> c.n)", "select count(*) from c where not exists (select 1 from c d where d.a = c.a and d.n > c.n)"]),
    (4844, "a filter of an inner join lost among cross joins", ["select count(*) from a x, b y, n z where x.k = y.k and y.k = z.x and x.v < y.w and z.y = 1", "select x.id, y.id from a x cross join b y where x.k = y.k and x.id + y.id > 3 order by 1, 2"]),
    (6744, "chained joins with a filter on the last", ["select a.id from a join b on a.k = b.k join n on n.x = b.k where n.y = 1 order by 1"]),
    (16641, "TopK pushed below an anti join", ["select id from a where not exists (select 1 from b where b.k = a.k) order by id limit 2", "select a.id from a left join b on a.k = b.k where b.k is null order by a.id limit 1"]),
    (17188, "a dynamic filter with several conditions", ["select * from a x join b y on x.k = y.k where y.w = 100 or y.w = 50 order by x.id, y.id"]),
    (25415, "a filter on a volatile group key", ["select bool_and(k) from (select random() < 0.5 as k, count(*) as c from c group by random() < 0.5) q where k", "select count(*) from (select random() as r from c) q where r < 0 or r >= 1"]),
    (8520, "volatile expressions shared", ["select count(*) from (select random() as x, random() as y from c) q where x = y", "select r1 = r2 from (select random() as r1, random() as r2) q"]),
    (8814, "a branch of CASE that is not taken is evaluated", ["select id, case when v > 0 then 100 / v else 0 end, case when v < 0 then 100 / v else 0 end from a order by id", "select id, case when id <> 1 then 10 / (id - 1) end from a order by id", "select coalesce(1, 1 / (id - 1)), coalesce(2, 1 / (id - 1)) from a order by id"]),
    (24246, "simplifications that forget NULL", ["select id, power(f, 0.0), log(1.0::numeric, 10) is null from a where id < 3 order by id", "select id, k in (1) and k in (2), k not in (1) or k not in (2), k # k from a order by id", "select id, k = k, k <> k, k - k, k * 0, k in (1, null), k not in (1, null) from a order by id", "select id, b and not b, b or not b, b = b, (b and null) is null from a order by id"]),
    (14343, "a searched CASE with boolean results", ["select id, case when v > 0 then true end, case when v > 0 then true else false end, case when v > 0 then false end from a order by id", "select id, case when v > 0 then b when k > 1 then not b else null end from a order by id"]),
    (13885, "CASE with ELSE NULL", ["select case when (null and s = 'a') then 'never' else null end, case when (null and s = 'a') then s else 'here' end from a order by id"]),
    (6333, "CASE x WHEN NULL", ["select case k when null then 1 when k then 2 else 3 end from a order by id", "select case null::int when null then 1 else 2 end"]),
    (17681, "IN lists with NULL simplified", ["select id from a where k in (1, null) or k in (2, null) order by id", "select id, not (k in (1, null)), k in (null), k not in (null) from a order by id", "select id from a where k in (1, 2) and k in (2, 3) order by id", "select id from a where k not in (1, 2) and k not in (2, 3) order by id"]),
    (12746, "boolean absorption with NULL", ["select id, b and (b or v > 10), b or (b and v > 10), not (not b), b is not distinct from b from a order by id"]),
    (23095, "a cast to fewer digits taken off a comparison", ["select id from a where d::numeric(20,2) = 1.23 order by id", "select id from a where d::numeric(20,2) = 1.24 order by id", "select id from a where d::numeric(20,0) = 1 order by id", "select id from a where d::int = 1 order by id", "select id from a where f::int = 0 order by id", "select id from a where d::numeric(20,2) in (1.23, 1.24) order by id", "select id from a where d::numeric(20,1) < 1.3 order by id"]),
    (22142, "a cast of a time to less precision taken off a comparison", ["select id from a where ts::timestamp(3) = '2024-01-01 00:00:00.001'::timestamp order by id", "select id from a where ts::date = '2024-01-01' order by id", "select id from a where ts::timestamp(0) = '2024-01-01'::timestamp order by id", "select id from a where id::text = '01' order by id", "select id from a where v::smallint < 100000 order by id", "select q from p where q < 9223372036854775807::numeric order by q", "select id from a where id::bigint < 99999999999 order by id", "select id from a where id::float8 = 1.5 order by id", "select id from a where id = 1.5 order by id", "select id from a where id > 1.5 and id < 3.5 order by id"]),
    (25095, "a time without a zone beside one with", ["select id from a where ts::timestamptz = '2024-01-01 00:00:00+00'::timestamptz order by id", "select id from a where ts = '2024-01-01 02:00:00+02'::timestamptz order by id", "select id from a where dt = '2024-01-01 00:00:00'::timestamp order by id", "select id from a where dt < '2024-01-01 00:00:01'::timestamp order by id"]),
    (16531, "constants cast otherwise than columns", ["select 1.5::numeric(10,1)::int, x::numeric(10,1)::int from (values (1.5)) t (x)", "select 2.5::float8::int, x::int from (values (2.5::float8)) t (x)", "select '1'::text::int, x::int from (values ('1'::text)) t (x)", "select (-1.5)::numeric::int, round(-2.5), x::int, round(x) from (values (-2.5)) t (x)"]),
    (22726, "anchored regular expressions made LIKE", ["select id, s ~ '^a$', s ~ '^(a|b)$', s ~ '^$', s ~ 'a', s !~ '^a', s ~* '^A$', s ~ '^a', s ~ 'y$', s ~ '%', s ~ '_' from a order by id"]),
    (0, "LIKE with its own signs", ["select id from a where s like '%x\\_y' order by id", "select id from a where s like '\\%%' order by id", "select id, s like '%', s like '', s like s, s not like '%', s like null from a order by id", "select t, t like 'a\\%c', t like 'a_c', t ilike 'ABC' from p order by t"]),
    (6099, "DISTINCT of a constant over groups", ["select distinct 94 as x from a as cor0 group by cor0.k", "select distinct 1 from a group by k having count(*) > 0"]),
    (7987, "several distinct aggregates by the grouping key", ["select sum(distinct k), max(distinct k) from a group by k order by 1", "select count(distinct k), sum(distinct k), count(distinct v) from a", "select k, count(distinct v), sum(distinct v), count(*) from a group by k order by k"]),
    (9586, "two count(distinct)", ["select count(distinct k), count(distinct v), count(distinct s) from a", "select a, count(distinct n % 4), count(distinct b), sum(distinct b) from c group by a order by a", "select count(distinct k) filter (where v > 0), count(distinct k) from a"]),
    (25288, "DISTINCT in min and max beside others", ["select k, min(distinct v), sum(distinct v), max(distinct v), count(v) from a group by k order by k", "select bool_and(distinct b), bool_or(distinct b) from a"]),
    (11748, "HAVING false over no group", ["select count(*) from e group by id having false", "select avg(k) from e having false", "select count(*) from e having count(*) > 0", "select count(*), max(k) from e", "select sum(k) from e group by ()", "select 1 from e having true", "select count(*) from a group by () having count(*) = 6"]),
    (24355, "an empty input", ["select * from e left join a on e.id = a.id", "select a.id from a left join e on a.id = e.id where e.id is null order by 1", "select count(*) from a full join e on a.id = e.id", "select a.id from a where exists (select 1 from e) order by 1", "select a.id from a where not exists (select 1 from e) order by 1", "select a.id from a where id > all (select id from e) order by 1", "select a.id from a where id > any (select id from e) order by 1", "select (select max(id) from e) is null", "select * from e union all select id, k, s from a where false", "select id from a except select id from e order by 1", "select id from e intersect all select id from a"]),
    (25071, "a union of filters on one table made one scan", ["select q.k from (select k + 100 as k from a) q where k > 0 union select q.k from (select k + 200 as k from a) q where k > 1 order by 1", "select k from a where k = 1 union select k from a where k = 2 order by 1", "select k, v from a where k = 1 union all select k, v from a where v = 10 order by 1, 2", "select k from a where k = 1 intersect select k from a where v = 10"]),
    (18140, "UNION in a recursive query", ["with recursive r (n) as (select 1 union select n % 3 + 1 from r) select * from r order by n", "with recursive r (n, m) as (select 1, 1 union all select n + 1, m * 2 from r where n < 5) select * from r order by n", "with recursive x (id) as (select 1 union all select id + 1 from x where id < 3), y (id) as (select * from x union all select * from x) select * from y order by 1", "with recursive r (a, b) as (select a, b from (values (1, 2), (1, 2)) s (a, b) union select 1, 2) select * from r"]),
    (18141, "types of a recursive query", ["with recursive r (d, s) as (select 0, 0::numeric union all select d + 1, s + 0.25 from r where d < 3) select * from r order by d", "with recursive r (n) as (select 1::numeric union all select n * 1.1 from r where n < 1.5) select * from r order by n"]),
    (21202, "LATERAL with aggregates, limits and outer joins", ["select a.id, l.c from a, lateral (select count(*) as c from b where b.k = a.k) l order by 1", "select a.id, l.id from a left join lateral (select b.id from b where b.k = a.k order by b.id limit 1) l on true order by 1", "select a.id, l.m from a left join lateral (select max(w) as m from b where b.k = a.k having max(w) > 100) l on true order by 1", "select a.id, l.x from a cross join lateral (select a.k + 1 as x) l order by 1"]),
    (14026, "filters pushed below windows", ["select * from (select id, k, count(*) over (partition by k) as n from a) q where k = 1 order by id", "select * from (select id, k, row_number() over (order by id) as r from a) q where k = 1 order by id", "select * from (select id, k, sum(id) over (partition by k order by id) as t, count(*) over () as n from a) q where k is not null and n = 6 order by id"]),
    (3546, "FILTER of an aggregate and columns that only it names", ["select sum(v) filter (where s = 'a'), sum(v), count(*) filter (where b) from a", "select k, count(*) filter (where v > 10 or b is null) from a group by k order by k"]),
    (0, "windows over -0, NaN and NULL", ["select id, rank() over (order by f), count(*) over (partition by f) from a order by id", "select count(distinct f) from a", "select f, count(*) from a group by f order by f", "select id from a where f in (0) order by id", "select id from a where f not in (0, 1) order by id", "select x.id, y.id from a x join a y on x.f = y.f order by 1, 2"]),
    (15676, "ordered aggregates", ["select string_agg(s, ',' order by id desc), array_agg(v order by id) from a", "select k, array_agg(id order by v desc nulls last, id) from a group by k order by k", "select string_agg(distinct s, ',' order by s) from a"]),
    (12454, "aggregates of joins", ["select a.k, count(b.id), sum(b.w) from a left join b on a.k = b.k group by a.k order by a.k", "select count(*), count(b.k), count(a.k) from a full join b on a.k = b.k"]),
    (16588, "filters on expressions of a scan", ["select count(*) from c where a + b = n % 7", "select count(*) from c where a = 1 and n > 10 and b <> 2", "select n from c where a = 1 and (n < 5 or n > 55) order by n"]),
    (0, "row comparisons and keys", ["select a, n from c where (a, n) > (1, 50) order by a, n", "select a, n from c where (a, n) >= (2, 5) and (a, n) < (2, 20) order by a desc, n desc", "select a, n from c where a >= 1 and (n, b) = (7, 2)", "select (1, null) = (1, null), (1, null) <> (2, null), (1, 2) < (1, null), (1, 2) is distinct from (1, null)"]),
    (0, "aggregates in a correlated subquery's ORDER BY, LIMIT and OFFSET", ["select id, (select w from b where b.k = a.k order by w desc limit 1) from a order by id", "select id, (select count(*) from b where b.k = a.k offset 1) from a order by id", "select id, exists (select count(*) from b where b.k = a.k limit 0) from a order by id", "select id, (select k from b where b.id = a.id order by k limit 1 offset 0) from a order by id"]),
    (0, "subqueries two levels down", ["select id from a where exists (select 1 from b where b.k = a.k and exists (select 1 from n where n.x = a.k and n.y = b.k)) order by id", "select id, (select count(*) from b where b.k = a.k and b.w > (select min(w) from b c2 where c2.k = a.k)) from a order by id", "select id from a where v > (select avg(v) from a z where z.k = a.k or z.k is null) order by id"]),
    (0, "a CTE that is used twice", ["with w as (select k, count(*) as n from a group by k) select x.k, y.n from w x join w y on x.k = y.k order by 1", "with w as (select random() as r) select count(*) from (select r from w union select r from w) q", "with w as materialized (select clock_timestamp() as t) select (select t from w) = (select t from w)"]),
    (0, "USING and NATURAL with NULLs in outer joins", ["select k, a.id, b.id from a full join b using (k) order by 1, 2, 3", "select k from a right join b using (k) order by 1", "select id, k from a natural left join (select id, k from b) z order by 1"]),
    (0, "sets with NULLs and several levels", ["select k from a intersect all select k from b order by 1", "select k from a except all select k from b order by 1", "(select k from a order by id limit 3) union all (select k from b order by id desc limit 2) order by 1", "select k from a union select k from b except select x from n order by 1", "(select k, v from a except select k, w from b) intersect select k, v from a order by 1, 2"]),
    (0, "arithmetic at the edges", ["select q - 1 from p where q < 0", "select -q from p where q < 0", "select abs(q) from p where q < 0", "select q / -1 from p where q < 0", "select q % -1 from p where q < 0", "select sum(q) from p", "select avg(q) from p", "select r * r from p order by 1", "select r + 0.00000001 from p order by 1", "select sum(r), avg(r) from p"]),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", required=True)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--only", default="", help="numbers of issues")
    parser.add_argument("--markdown", action="store_true", help="a table instead of the differences")
    options = parser.parse_args()
    pg, mine = Side(options.postgres, "postgres"), Side(options.cairn, "cairn")
    for side in (pg, mine):
        for name in "abnucehp":
            side.run(f"drop table if exists {name} cascade")
        for sql in SETUP.split(";\n"):
            if sql.strip():
                answer = side.run(sql)
                if answer[0] == "error":
                    sys.exit(f"{side.name}: {answer[2]}\n{sql}")
    only = {int(number) for number in options.only.split(",") if number}
    wrong = 0
    for number, what, queries in ISSUES:
        if only and number not in only:
            continue
        verdicts = []
        for sql in queries:
            one, other = pg.run(sql), mine.run(sql)
            kind = compare(one, other, is_ordered(sql))
            if kind in ("type", "names", "format"):
                kind = None
            verdict = "right" if not kind else f"refused {other[1]}" if other[0] == "error" and one[0] != "error" else "wrong"
            verdicts.append(verdict)
            if kind and not options.markdown:
                show = lambda answer: f"{answer[1]}: {answer[2][:200]}" if answer[0] == "error" else f"{answer[4][:12]}"
                print(f"\n==== {number} {kind}: {what}\n{sql}\n  pg    {show(one)}\n  cairn {show(other)}")
        wrong += sum(verdict != "right" for verdict in verdicts)
        if options.markdown:
            print(f"| {number} | {what} | {len(queries)} | {', '.join(sorted(set(verdicts)))} |")
    print(f"\n{sum(len(queries) for _, _, queries in ISSUES)} queries of {len(ISSUES)} shapes, {wrong} not right")


if __name__ == "__main__":
    main()
