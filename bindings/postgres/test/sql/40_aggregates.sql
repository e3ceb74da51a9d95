-- Goal: aggregates from pages are PostgreSQL's own. Method: each query through the heap and through the custom scan, which the plan must
-- name, over all-visible tables, tables with dead and new rows, and rows in the tail.
LOAD 'cairn';
SET jit = off;
CREATE PROCEDURE t.agg(query text) LANGUAGE plpgsql AS $$
DECLARE want text;
BEGIN
    PERFORM t.way('heap');
    want := t.answer(query);
    SET LOCAL cairn.enable_aggregate = on;
    SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off;
    PERFORM t.planned(query, 'Cairn Aggregate');
    PERFORM t.expect(query, t.answer(query), want);
    PERFORM t.way('heap');
END $$;
CREATE TABLE t.a (k int, d date, i2 int2, i8 int8, ts timestamp, v int);
INSERT INTO t.a SELECT CASE WHEN random() < 0.02 THEN NULL ELSE (random() * 500)::int - 250 END, date '2020-01-01' + (random() * 1000)::int,
    CASE WHEN random() < 0.1 THEN NULL ELSE (random() * 100)::int END, (random() * 9e18)::int8 - 4500000000000000000,
    timestamp '2020-01-01' + random() * interval '1 year', g
    FROM generate_series(1, 60000) g;
CREATE INDEX a1 ON t.a USING cairn (k, d) INCLUDE (i2, i8, ts, v);
CREATE INDEX a2 ON t.a USING cairn (d DESC, k NULLS FIRST) INCLUDE (v);
CREATE PROCEDURE t.all() LANGUAGE plpgsql AS $$
DECLARE a int;
BEGIN
    FOR i IN 1..4 LOOP
        a := floor(random() * 600) - 300;
        CALL t.agg('SELECT count(*) FROM t.a');
        CALL t.agg('SELECT count(*), count(k), sum(k), min(k), max(k), avg(k) FROM t.a');
        CALL t.agg(format('SELECT count(*), sum(i2), avg(i2), count(i2), min(i2), max(i2) FROM t.a WHERE k > %s', a));
        CALL t.agg(format('SELECT sum(i8), avg(i8), min(i8), max(i8), min(ts), max(ts), min(d) FROM t.a WHERE k BETWEEN %s AND %s', a, a + 90));
        CALL t.agg(format('SELECT sum(v) + count(*) * 2, %s FROM t.a WHERE k = %s', i, a));
        CALL t.agg(format('SELECT sum(v), count(*) FROM t.a WHERE d >= ''2020-06-01'' AND k = %s', a));
        CALL t.agg(format('SELECT sum(v), count(*) FROM t.a WHERE k IN (%s, %s, 7, NULL) AND d > ''2021-01-01''', a, a + 3));
        CALL t.agg('SELECT count(*), sum(v) FROM t.a WHERE k IS NULL');
        CALL t.agg('SELECT count(*), sum(v) FROM t.a WHERE k IS NOT NULL AND d < ''2020-02-01''');
        CALL t.agg('SELECT k, count(*), sum(v), min(i2), avg(i8) FROM t.a GROUP BY k ORDER BY k');
        CALL t.agg('SELECT d, count(*), sum(k) FROM t.a GROUP BY d ORDER BY d');
        CALL t.agg(format('SELECT d, count(*), max(k) FROM t.a WHERE k < %s GROUP BY d ORDER BY d DESC', a));
        CALL t.agg(format('SELECT DISTINCT k FROM t.a WHERE d > ''2020-08-01'' AND k > %s ORDER BY k', a));
        CALL t.agg('SELECT k, count(*) FROM t.a GROUP BY k HAVING count(*) > 100 AND (k < 100 OR max(v) > 50000) ORDER BY k');
        CALL t.agg('SELECT sum(v) FROM t.a WHERE k > 0 HAVING count(*) > 100000000');
        CALL t.agg(format('SELECT count(*), sum(k) FROM t.a WHERE v BETWEEN 100 AND %s', 5000 + a));
        CALL t.agg(format('SELECT k, count(*), max(ts) FROM t.a WHERE i2 = %s AND ts > ''2020-06-01'' GROUP BY k ORDER BY k', abs(a) % 100));
        CALL t.agg(format('SELECT count(*), min(i8) FROM t.a WHERE i2 IN (1, 2, %s) AND i8 > 5 OR false', abs(a) % 100));
        CALL t.agg('SELECT count(*), sum(v) FROM t.a WHERE i2 IS NULL AND k > 3');
        CALL t.agg(format('SELECT count(*) FILTER (WHERE v > 30000), sum(v) FILTER (WHERE i2 < %s AND d > ''2020-05-05''), min(v) FROM t.a', abs(a) % 100));
        CALL t.agg(format('SELECT count(*) FILTER (WHERE k = %s), count(k) FILTER (WHERE i2 IN (3, 4, 5)), avg(i2) FILTER (WHERE i2 IN (3, 4, 5)), max(i8) FILTER (WHERE k IS NULL) FROM t.a WHERE k > %s', a, a - 50));
        CALL t.agg('SELECT k, count(*), count(*) FILTER (WHERE v > 10 AND k IS NOT NULL), min(ts) FILTER (WHERE i8 > 0), sum(i2) FILTER (WHERE i2 IS NOT NULL AND v < 40000) FROM t.a GROUP BY k ORDER BY k');
        CALL t.agg(format('SELECT d, sum(v) FILTER (WHERE k IS NULL AND d > ''2021-01-01''), max(v) FILTER (WHERE k < %s) FROM t.a WHERE v > 20000 GROUP BY d HAVING count(*) FILTER (WHERE k > 0) > 3 ORDER BY d', a));
        CALL t.agg('SELECT k + 1, sum(v) * 2 FROM t.a GROUP BY k ORDER BY 1');
        CALL t.agg(format('SELECT count(*), sum(v), min(v) FROM t.a WHERE k > %s AND k < %s', a, a));
        CALL t.agg(format('SELECT count(*) FROM t.a WHERE k > %s::int8 AND %s < k', a, a + 5000000000));
    END LOOP;
END $$;
-- Not yet vacuumed: nothing is all-visible.
CALL t.all();
VACUUM t.a;
CALL t.all();
DELETE FROM t.a WHERE v % 50 = 7;
CALL t.all();
INSERT INTO t.a SELECT (random() * 500)::int - 250, date '2020-01-01' + (random() * 1000)::int, 5, 6, '2020-02-03', g FROM generate_series(1, 700) g;
CALL t.all();
UPDATE t.a SET v = v + 1 WHERE k = 5;
VACUUM t.a;
CALL t.all();
-- What cannot be had from pages is not taken: the plan says so, and the answer is right anyway.
SELECT t.same('SELECT count(*) FILTER (WHERE v % 2 = 0), sum(DISTINCT i2) FROM t.a WHERE k > 0');
SELECT t.same('SELECT k, d, count(*) FROM t.a GROUP BY k, d ORDER BY k, d');
-- A part of the heap's pages is not all-visible: leaves over the others are not looked up row by row.
CREATE TABLE t.part AS SELECT g k, g % 7 v FROM generate_series(1, 200000) g;
CREATE INDEX part1 ON t.part USING cairn (k) INCLUDE (v) WITH (page_rows = 2000);
VACUUM t.part;
DELETE FROM t.part WHERE k BETWEEN 100000 AND 100100;
CALL t.agg('SELECT count(*), sum(v), count(*) FILTER (WHERE v = 3) FROM t.part');
CALL t.agg('SELECT count(*), sum(v) FROM t.part WHERE k BETWEEN 99000 AND 120000 AND v > 1');
BEGIN;
SELECT t.way('aggregate');
CREATE FUNCTION t.fetches(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
    RETURN (plan #>> '{0,Plan,Heap Fetches}')::int;
END $$;
SELECT t.expect('heap fetches', t.fetches('SELECT count(*), sum(v) FROM t.part') < 2000, true);
ROLLBACK;
DROP TABLE t.part;
-- Parameters, and runs that are repeated with other ones.
PREPARE p (int) AS SELECT count(*), sum(v) FROM t.a WHERE k = $1;
SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SET enable_indexscan = off;
SELECT t.planned('EXECUTE p(5)', 'Cairn Aggregate');
SELECT t.planned('SELECT x, (SELECT sum(v) FROM t.a WHERE k = x) FROM generate_series(-5, 5) x', 'Cairn Aggregate');
SELECT t.expect('repeated', (SELECT string_agg(x || ':' || (SELECT sum(v) FROM t.a WHERE k = x), ' ' ORDER BY x) FROM generate_series(-5, 5) x),
    (SELECT string_agg(k || ':' || s, ' ' ORDER BY k) FROM (SELECT k, sum(v + 0) s FROM t.a WHERE k BETWEEN -5 AND 5 GROUP BY k) y));
-- EXPLAIN shows the condition of each FILTER clause, once if several aggregates have it, with parameters, and where several processes do the work.
SELECT t.planned('SELECT count(*) FILTER (WHERE v > 5) FROM t.a WHERE k > 1', 'Cairn Aggregate.+Index Cond: .k > 1.\n +Aggregate Filter: .v > 5.\n');
SELECT t.planned('SELECT k, sum(v) FILTER (WHERE d > ''2021-01-01'' AND k IS NULL), avg(v) FILTER (WHERE i2 IN (3, 4)), max(v) FILTER (WHERE i2 IN (3, 4)) FROM t.a GROUP BY k',
    'Aggregate Filter: ..d > ''2021-01-01''::date. AND .k IS NULL.., .i2 = ANY [^,]+,[^,]+\n');
PREPARE f (int) AS SELECT count(*) FILTER (WHERE v < $1) FROM t.a;
SELECT t.planned('EXECUTE f(5)', 'Aggregate Filter: .v < \$1.\n');
SELECT t.planned('SELECT x, (SELECT sum(v) FILTER (WHERE i2 = x::int2) FROM t.a WHERE k > 7) FROM generate_series(-5, 5) x', 'Aggregate Filter: .i2 = ');
SELECT t.expect('no filter, no line', (SELECT count(*) FROM t.lines('SELECT count(*) FROM t.a WHERE k > 1') l WHERE l LIKE '%Filter%'), 0::bigint);
BEGIN;
SELECT t.way('parallel');
SELECT t.planned('SELECT count(*) FILTER (WHERE v > 5) FROM t.a WHERE k > 1', 'Parallel Custom Scan .Cairn Aggregate.+Aggregate Filter: .v > 5.\n');
ROLLBACK;
DROP TABLE t.a;
