-- Goal: a parallel scan gives each row once. Method: the same queries with and without workers, over trees of two levels, leaves that VACUUM divided,
-- a tail, and an index of one leaf; ordered output through Gather Merge, forward and backward.
LOAD 'cairn';
SET jit = off;
CREATE TABLE t.p AS SELECT CASE WHEN g % 500 = 3 THEN NULL ELSE (random() * 100000)::int END k, g v, 'text ' || g % 1000 s FROM generate_series(1, 200000) g;
CREATE INDEX p1 ON t.p USING cairn (k) INCLUDE (v) WITH (page_rows = 200);
CREATE INDEX p2 ON t.p USING cairn (s, v);
ALTER TABLE t.p SET (parallel_workers = 3);
CREATE TABLE t.one AS SELECT g k FROM generate_series(1, 1000) g;
CREATE INDEX one1 ON t.one USING cairn (k);
ALTER TABLE t.one SET (parallel_workers = 2);
VACUUM ANALYZE t.p;
VACUUM ANALYZE t.one;
CREATE PROCEDURE t.par(query text) LANGUAGE plpgsql AS $$
DECLARE
    want text;
    got text;
    way text;
BEGIN
    PERFORM t.way('heap');
    SET LOCAL max_parallel_workers_per_gather = 0;
    want := t.answer(query);
    SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_index_scan_size = 0; SET LOCAL min_parallel_table_scan_size = 0;
    SET LOCAL max_parallel_workers_per_gather = 3;
    FOREACH way IN ARRAY ARRAY['plain', 'only', 'batch'] LOOP
        PERFORM t.way(way);
        SET LOCAL enable_sort = on;
        PERFORM t.planned(query, CASE way WHEN 'batch' THEN 'Parallel Custom Scan .Cairn Scan' ELSE 'Parallel Index' END);
        got := t.answer(query);
        PERFORM t.expect(way || ' ' || query, got, want);
        SET LOCAL parallel_leader_participation = off;
        PERFORM t.expect(way || ' ' || query, t.answer(query), want);
        SET LOCAL parallel_leader_participation = on;
    END LOOP;
    COMMIT;
END $$;
-- Aggregates by several processes, and by one where they count for nothing.
CREATE PROCEDURE t.par_agg(query text) LANGUAGE plpgsql AS $$
DECLARE want text;
BEGIN
    PERFORM t.way('heap');
    SET LOCAL max_parallel_workers_per_gather = 0;
    want := t.answer(query);
    SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_index_scan_size = 0; SET LOCAL min_parallel_table_scan_size = 0;
    SET LOCAL max_parallel_workers_per_gather = 3;
    -- Pages so dear that it pays to share them; and little memory, so that groups are sorted on disk.
    SET LOCAL seq_page_cost = 10000;
    SET LOCAL work_mem = '64kB';
    PERFORM t.way('aggregate');
    SET LOCAL enable_sort = on; SET LOCAL enable_material = off;
    PERFORM t.planned(query, 'Gather.*Parallel Custom Scan .Cairn Aggregate');
    PERFORM t.expect(query, t.answer(query), want);
    SET LOCAL parallel_leader_participation = off;
    PERFORM t.expect(query, t.answer(query), want);
    SET LOCAL parallel_leader_participation = on;
    SET LOCAL max_parallel_workers = 0;
    PERFORM t.expect(query, t.answer(query), want);
    COMMIT;
END $$;
CREATE PROCEDURE t.par_aggs() LANGUAGE plpgsql AS $$
DECLARE many int[] := ARRAY(SELECT generate_series(1, 99000, 2));
BEGIN
    CALL t.par_agg('SELECT count(*), sum(v), min(v), max(k), avg(k), count(*) FILTER (WHERE v IS NOT NULL) FROM t.p');
    CALL t.par_agg('SELECT count(*), sum(v) FILTER (WHERE v > 5000), avg(v) FROM t.p WHERE k BETWEEN 20000 AND 90000');
    CALL t.par_agg('SELECT count(*), sum(v) FROM t.p WHERE k BETWEEN 50000 AND 40000');
    -- Several processes read all for a list, one goes from element to element. So it is a long list, or on a column that bounds nothing.
    CALL t.par_agg(format('SELECT count(*), sum(v) FROM t.p WHERE k = ANY (%L::int[])', many));
    CALL t.par_agg('SELECT count(*), sum(k) FROM t.p WHERE v IN (5, 7, 1000, 2000, 99000)');
    -- Again and again within one query.
    CALL t.par_agg('SELECT x, n, s FROM generate_series(1, 3) x LEFT JOIN (SELECT count(*) n, sum(v) s FROM t.p OFFSET 0) a ON true ORDER BY x');
    CALL t.par_agg('SELECT x, k, n FROM generate_series(1, 3) x LEFT JOIN (SELECT k, count(*) n FROM t.p WHERE k < 2000 GROUP BY k OFFSET 0) a ON true ORDER BY x, k');
    CALL t.par_agg('SELECT k, count(*), sum(v), max(v) FROM t.p WHERE k > 3 GROUP BY k ORDER BY k');
    CALL t.par_agg('SELECT k, count(*), min(v) FILTER (WHERE v < 100000) FROM t.p WHERE k > 60000 GROUP BY k HAVING count(*) > 2 ORDER BY k DESC');
    CALL t.par_agg('SELECT DISTINCT k FROM t.p WHERE k < 50000 ORDER BY k');
END $$;
CREATE PROCEDURE t.pars() LANGUAGE plpgsql AS $$
DECLARE many int[] := ARRAY(SELECT generate_series(1, 99000, 9));
BEGIN
    CALL t.par('SELECT count(*), sum(v), sum(k) FROM t.p WHERE k > 0');
    CALL t.par('SELECT count(*), sum(v), sum(k) FROM t.p WHERE k BETWEEN 20000 AND 90000');
    CALL t.par('SELECT count(*), sum(v) FROM t.p WHERE s > ''text 5'' AND v % 7 = 1');
    CALL t.par('SELECT k, v FROM t.p WHERE k > 10000 AND v % 3 = 0 ORDER BY k, v');
    CALL t.par('SELECT k, v FROM t.p WHERE k > 10000 AND v % 3 = 0 ORDER BY k DESC, v');
    CALL t.par(format('SELECT count(*), sum(v) FROM t.p WHERE k = ANY (%L::int[])', many));
    CALL t.par('SELECT count(*), sum(k) FROM t.one WHERE k > 10');
END $$;
CALL t.pars();
CALL t.par_aggs();
DELETE FROM t.p WHERE v % 11 < 4;
VACUUM t.p;
CALL t.pars();
CALL t.par_aggs();
INSERT INTO t.p SELECT (random() * 100000)::int, g, 'text ' || g % 1000 FROM generate_series(1, 3000) g;
CALL t.pars();
CALL t.par_aggs();
SELECT cairn_merge('t.p1');
CALL t.pars();
CALL t.par_aggs();
-- Goal: the groups of several processes are added up within work_mem. Method: what is held when the first of them is shown, of so many that they do not fit.
CREATE FUNCTION t.memory() RETURNS bigint LANGUAGE sql PARALLEL RESTRICTED AS $$
    SELECT sum(total_bytes)::bigint FROM pg_backend_memory_contexts WHERE name LIKE 'cairn%'
$$;
DO $$
DECLARE
    query text := 'SELECT k, count(*), sum(v), min(v), max(v), t.memory() m FROM t.p GROUP BY k ORDER BY k LIMIT 1';
    r record;
BEGIN
    PERFORM t.way('parallel');
    SET LOCAL work_mem = '64kB';
    PERFORM t.planned(query, 'Limit.*Gather.*Parallel Custom Scan .Cairn Aggregate');
    EXECUTE query INTO r;
    PERFORM t.expect('memory of groups', r.m < 3000000, true);
END $$;
DROP TABLE t.p, t.one;
