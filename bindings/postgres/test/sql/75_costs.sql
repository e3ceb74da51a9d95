-- Goal: estimates of aggregates say what they read, look up and hold back. Method: costs of plans that differ in one thing, over a table whose column k is in
-- random order in the heap, o in the heap's own order.
LOAD 'cairn';
SET jit = off;
CREATE TABLE t.k AS SELECT k, (row_number() OVER (ORDER BY r))::int o, k % 10 a, k % 1000 v FROM (SELECT g k, random() r FROM generate_series(1, 50000) g OFFSET 0) x ORDER BY r;
CREATE INDEX k1 ON t.k USING cairn (k) INCLUDE (v);
CREATE INDEX k2 ON t.k USING cairn (o) INCLUDE (v);
CREATE INDEX k3 ON t.k USING cairn (a, v);
VACUUM ANALYZE t.k;
-- PostgreSQL 16 makes room for several pages at once, and nobody has seen those that stayed empty.
UPDATE pg_class SET relallvisible = relpages WHERE oid = 't.k'::regclass;
CREATE FUNCTION t.cost(query text, what text DEFAULT 'Total Cost', way text DEFAULT 'aggregate', pattern text DEFAULT 'Cairn Aggregate') RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    PERFORM t.way(way);
    SET LOCAL enable_bitmapscan = off;
    PERFORM t.planned(query, pattern);
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN (plan->0->'Plan'->>what)::numeric;
END $$;

-- Everything is added up before the first group is handed out.
SELECT t.expect('held back', t.cost('SELECT sum(v) FROM t.k', 'Startup Cost') > 0.9 * t.cost('SELECT sum(v) FROM t.k'), true);
SELECT t.expect('groups are handed out', t.cost('SELECT k, sum(v) FROM t.k GROUP BY k') - t.cost('SELECT k, sum(v) FROM t.k GROUP BY k', 'Startup Cost') > 100, true);

-- A condition that bounds nothing is asked of every row; one on the first column, or on the first two, spares reading.
SELECT t.expect('asked of all', t.cost('SELECT count(*) FROM t.k WHERE k > 0 AND v = 5') > 0.9 * t.cost('SELECT count(*) FROM t.k WHERE k > 0'), true);
SELECT t.expect('asked of a few', t.cost('SELECT count(*) FROM t.k WHERE k < 500 AND v = 5') < 0.2 * t.cost('SELECT count(*) FROM t.k WHERE k > 0 AND v = 5'), true);
SELECT t.expect('second column', t.cost('SELECT count(*) FROM t.k WHERE a = 5 AND v < 100') < 0.2 * t.cost('SELECT count(*) FROM t.k WHERE a > 0 AND v < 100'), true);
SELECT t.expect('a list', t.cost('SELECT count(*) FROM t.k WHERE a IN (5, 6) AND v = 7') < 0.2 * t.cost('SELECT count(*) FROM t.k WHERE a > 0 AND v = 7'), true);
-- Scans do not skip from value to value of the first column either, as a btree of PostgreSQL 18 does.
SELECT t.expect('a scan by the second column', t.cost('SELECT a, v FROM t.k WHERE v = 7', 'Total Cost', 'only', 'Index Only Scan using k3') >
    0.2 * t.cost('SELECT a, v FROM t.k WHERE v >= 0', 'Total Cost', 'only', 'Index Only Scan using k3'), true);

-- Rows on pages that are not all-visible are looked up: one by one where the index has another order than the heap.
CREATE FUNCTION t.visits(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE seen numeric := t.cost(query);
BEGIN
    SET LOCAL random_page_cost = 1000;
    PERFORM t.expect('nothing to look up', t.cost(query), seen);
    UPDATE pg_class SET relallvisible = 0 WHERE oid = 't.k'::regclass;
    RETURN t.cost(query) - seen;
END $$;
BEGIN;
SELECT t.expect('any order', t.visits('SELECT sum(v) FROM t.k WHERE k > 0') > 100000, true);
ROLLBACK;
BEGIN;
SELECT t.expect('its own order', t.visits('SELECT sum(v) FROM t.k WHERE o > 0') BETWEEN 1000 AND 10000, true);
ROLLBACK;

-- The tail is read by every aggregate.
SELECT t.expect('no tail', t.cost('SELECT sum(v) FROM t.k WHERE k = 7') < 5, true);
INSERT INTO t.k SELECT g, g, g % 10, g % 1000 FROM generate_series(50001, 70000) g;
SELECT t.expect('a tail', t.cost('SELECT sum(v) FROM t.k WHERE k = 7') > 5, true);
DROP TABLE t.k;
DROP FUNCTION t.cost, t.visits;
