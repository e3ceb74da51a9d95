-- Goal: conditions that are not a column, an operator and a value are met by the rows that meet them. Method: each query through the heap and by every way
-- through the index; where a plan without the condition in question would test nothing, the plan is named.
LOAD 'cairn';
SET jit = off;
CREATE TABLE t.q AS SELECT g a, g % 7 b, 'name ' || g % 900 s, (g % 100)::oid o, (g / 3.0)::numeric n FROM generate_series(1, 20000) g;
CREATE INDEX q1 ON t.q USING cairn (a) INCLUDE (b);
CREATE INDEX q2 ON t.q USING cairn (s DESC, a);
CREATE INDEX q3 ON t.q USING cairn (o, a);
CREATE INDEX q4 ON t.q USING cairn (n NULLS FIRST);
INSERT INTO t.q (b) VALUES (1), (2);
VACUUM ANALYZE t.q;
CREATE PROCEDURE t.condition(query text, way text, pattern text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM t.way(way);
    PERFORM t.planned(query, pattern);
    PERFORM t.same(query);
END $$;

-- Conditions without columns: asked once, above the scan, whose plan has another node then.
CALL t.condition('SELECT a FROM t.q WHERE a > 0 AND now() > ''2020-01-01'' ORDER BY a', 'batch', 'One-Time Filter.*Cairn Scan');
CALL t.condition('SELECT a FROM t.q WHERE a > 0 AND now() < ''2020-01-01'' ORDER BY a', 'batch', 'One-Time Filter.*Cairn Scan');
CALL t.condition('SELECT a, b FROM t.q WHERE a > 100 AND b = 3 AND EXISTS (SELECT FROM t.q x WHERE x.a = 7) ORDER BY a', 'batch', 'One-Time Filter.*Cairn Scan');
CALL t.condition('SELECT a FROM t.q WHERE a > 100 AND current_user = ''nobody'' ORDER BY a DESC', 'batch', 'One-Time Filter.*Cairn Scan');
CALL t.condition('SELECT x, (SELECT sum(a + 0) FROM (SELECT a FROM t.q WHERE a > 100 AND x > 2 OFFSET 0) y) FROM generate_series(1, 4) x ORDER BY x', 'batch', 'One-Time Filter.*Cairn Scan');
PREPARE gated (int) AS SELECT count(*), sum(a) FROM (SELECT a FROM t.q WHERE a > 19000 AND $1 = 3 OFFSET 0) x;
CREATE PROCEDURE t.gated(way text) LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    PERFORM t.way(way);
    SET LOCAL plan_cache_mode = force_generic_plan;
    PERFORM t.planned('EXECUTE gated (3)', 'One-Time Filter.*Cairn Scan');
    EXECUTE 'EXECUTE gated (3)' INTO r;
    PERFORM t.expect('a parameter alone', r.count || ' ' || r.sum, '1000 19500500');
    EXECUTE 'EXECUTE gated (4)' INTO r;
    PERFORM t.expect('another', r.count, 0::bigint);
END $$;
CALL t.gated('batch');
DO $$ BEGIN
    SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_index_scan_size = 0;
    SET LOCAL max_parallel_workers_per_gather = 2;
    CALL t.condition('SELECT count(*), sum(a) FROM t.q WHERE a > 100 AND now() > ''2020-01-01''', 'batch', 'One-Time Filter.*Parallel Custom Scan .Cairn Scan');
END $$;

-- Less or greater than some element: NULLs and no elements at all, in bounds and as filters, ascending and descending, of types by value and not.
CALL t.condition('SELECT a FROM t.q WHERE a < ANY (''{5,9,2,NULL}'') ORDER BY a', 'only', 'Index Cond: .a < ANY');
CALL t.condition('SELECT a FROM t.q WHERE a <= ANY (''{5,9,2,NULL}'') ORDER BY a', 'batch', 'Index Cond: .a <= ANY');
CALL t.condition('SELECT a FROM t.q WHERE a > ANY (''{19990,30000}'') AND a <= ANY (''{19995,1}'') ORDER BY a DESC', 'plain', 'Index Cond: ..a > ANY');
CALL t.condition('SELECT a FROM t.q WHERE a >= ANY (''{19990,30000}''::int8[]) ORDER BY a', 'bitmap', 'Index Cond: .a >= ANY');
CALL t.condition('SELECT a FROM t.q WHERE a > ANY (''{}'') ORDER BY a', 'only', 'Index Cond: .a > ANY');
CALL t.condition('SELECT a FROM t.q WHERE a > ANY (''{NULL}'') ORDER BY a', 'only', 'Index Cond: .a > ANY');
CALL t.condition('SELECT a FROM t.q WHERE a > ANY (''{2147483647}'') ORDER BY a', 'only', 'Index Cond: .a > ANY');
CALL t.condition('SELECT s, a FROM t.q WHERE s > ANY (''{name 890,name 9}'') AND a < ANY (''{500,1000}'') ORDER BY s, a', 'only', 'Index Cond: .+s > ANY');
CALL t.condition('SELECT s, a FROM t.q WHERE s = ''name 7'' AND a >= ANY (''{500,1000}'') ORDER BY s, a', 'batch', 'Index Cond: .*a >= ANY');
CALL t.condition('SELECT n FROM t.q WHERE n < ANY (''{0.5,2.25,NaN,-1}'') AND n < 4 ORDER BY n', 'only', 'Index Cond: .+n < ANY');
SELECT t.same('SELECT a FROM t.q WHERE a > 19900 OR a > 19950 ORDER BY a');
SELECT t.same('SELECT count(*), sum(a) FROM t.q WHERE a < 19900 OR a < 50');
DO $$ BEGIN
    SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_index_scan_size = 0;
    SET LOCAL max_parallel_workers_per_gather = 2;
    CALL t.condition('SELECT count(*), sum(a) FROM t.q WHERE a > ANY (''{100,200}'')', 'batch', 'Parallel Custom Scan .Cairn Scan');
END $$;

-- From PostgreSQL 18 an OR is an array, whose elements may be of a type that the column's family does not know: a domain, or one that is oid by another name.
CREATE DOMAIN t.number AS int4;
CREATE TABLE t.j AS SELECT (g * 100)::t.number d1, (g * 50 + 7)::t.number d2, (g % 100)::oid::regclass r1, 7::oid::regclass r2 FROM generate_series(1, 30) g;
ANALYZE t.j;
CREATE PROCEDURE t.joined(query text) LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_material = off; SET LOCAL enable_memoize = off;
    IF current_setting('server_version_num')::int >= 180000 THEN
        CALL t.condition(query, 'only', 'ANY .ARRAY');
    ELSE
        PERFORM t.same(query);
    END IF;
END $$;
CALL t.joined('SELECT j.d1, q.a FROM t.j JOIN t.q ON q.a = j.d1 OR q.a = j.d2 ORDER BY j.d1, q.a');
CALL t.joined('SELECT j.r1::oid, q.o, q.a FROM t.j JOIN t.q ON q.o = j.r1 OR q.o = j.r2 ORDER BY j.r1::oid, q.o, q.a');
PREPARE either (t.number, t.number) AS SELECT a FROM t.q WHERE a = $1 OR a = $2 ORDER BY a;
SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;
CREATE TEMP TABLE found AS EXECUTE either (5000, 19999);
SELECT t.expect('domains', (SELECT string_agg(a::text, ' ' ORDER BY a) FROM found), '5000 19999');
RESET plan_cache_mode; RESET enable_seqscan;
DROP TABLE found, t.j;

-- An array that a query reads from a table is unpacked once, not for each of its elements.
CREATE TABLE t.array (l int[]);
ALTER TABLE t.array ALTER l SET STORAGE EXTERNAL;
INSERT INTO t.array SELECT array_agg(g) FROM generate_series(1, 20000, 7) g;
BEGIN;
DO $$ BEGIN PERFORM t.way('aggregate'); END $$;
SET LOCAL enable_bitmapscan = off;
SELECT t.planned('SELECT count(*), sum(b) FROM t.q WHERE a = ANY ((SELECT l FROM t.array)::int[])', 'Cairn Aggregate');
DECLARE c CURSOR FOR SELECT count(*), sum(b) FROM t.q WHERE a = ANY ((SELECT l FROM t.array)::int[]);
DO $$ DECLARE r record; c refcursor := 'c'; BEGIN
    FETCH c INTO r;
    PERFORM t.expect('a long array', r.count || ' ' || r.sum, (SELECT count(*) || ' ' || sum(b + 0) FROM t.q WHERE a + 0 <= 20000 AND a % 7 = 1));
END $$;
SELECT t.expect('its memory', (SELECT sum(total_bytes) < 2000000 FROM pg_backend_memory_contexts WHERE name LIKE 'cairn%'), true);
COMMIT;
DROP TABLE t.q, t.array;
DROP PROCEDURE t.condition, t.gated, t.joined;
DEALLOCATE ALL;
