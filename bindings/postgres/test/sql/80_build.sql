-- Goal: an index is the same however it was built. Method: tables of every kind of column, with NULLs, extremes and equal keys in every order, built in
-- memory, through runs on disk, and by several processes; each index checked and compared with the heap, and its pages with each other.
LOAD 'cairn';
SET jit = off;
CREATE TABLE t.bu AS SELECT CASE WHEN random() < 0.05 THEN NULL ELSE (random() * 1000)::int - 500 END k,
    CASE WHEN random() < 0.02 THEN NULL WHEN random() < 0.05 THEN 9223372036854775807 WHEN random() < 0.05 THEN -9223372036854775808
        ELSE ((random() - 0.5) * 1e18)::int8 END w,
    CASE WHEN random() < 0.02 THEN 'infinity' WHEN random() < 0.02 THEN '-infinity' WHEN random() < 0.02 THEN NULL
        ELSE timestamp '2020-01-01' + (random() * 1e7)::int * interval '1 second' END ts,
    CASE WHEN random() < 0.03 THEN NULL ELSE 'text ' || (random() * 5000)::int END s, (random() * 100)::int2 i2, g v
    FROM generate_series(1, 150000) g ORDER BY random();
-- Equal keys whose rows do not come in the order of their places: pages are filled again.
DELETE FROM t.bu WHERE v % 10 = 1;
VACUUM t.bu;
INSERT INTO t.bu SELECT k, w, ts, s, i2, v + 1000000 FROM t.bu WHERE v % 10 = 2;
DELETE FROM t.bu WHERE v % 100 = 3;
ALTER TABLE t.bu SET (parallel_workers = 3);
ANALYZE t.bu;
CREATE FUNCTION t.pages(index regclass) RETURNS text LANGUAGE sql AS $$
    SELECT md5(string_agg(p::text, '|' ORDER BY p.block, p."column")) FROM cairn_page_stats(index) p
$$;
CREATE FUNCTION t.builds(columns text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    want text;
    memory text;
    workers int;
BEGIN
    FOREACH memory IN ARRAY ARRAY['200MB', '1MB'] LOOP
        FOREACH workers IN ARRAY ARRAY[0, 3] LOOP
            PERFORM set_config('maintenance_work_mem', memory, true), set_config('max_parallel_maintenance_workers', workers::text, true);
            EXECUTE 'CREATE INDEX bu1 ON t.bu USING cairn ' || columns;
            PERFORM cairn_check('t.bu1');
            want := coalesce(want, t.pages('t.bu1'));
            PERFORM t.expect(format('pages of %s, %s, %s workers', columns, memory, workers), t.pages('t.bu1'), want);
            IF columns NOT LIKE '%WHERE%' THEN
                PERFORM t.same('SELECT k, w, v FROM t.bu WHERE k < -400 ORDER BY k, w, v');
                PERFORM t.same('SELECT ts, s FROM t.bu WHERE ts > ''2020-04-20'' AND s < ''text 3'' ORDER BY ts, s');
            END IF;
            DROP INDEX t.bu1;
        END LOOP;
    END LOOP;
END $$;
SELECT t.builds('(k, w) INCLUDE (v)');
SELECT t.builds('(w DESC NULLS LAST, k)');
SELECT t.builds('(w NULLS FIRST) INCLUDE (i2)');
SELECT t.builds('(ts DESC) INCLUDE (s, k)');
SELECT t.builds('(ts) INCLUDE (k, i2)');
SELECT t.builds('(s, ts)');
SELECT t.builds('(i2, k DESC, v)');
SELECT t.builds('((k + i2), abs(w / 3)) WHERE v % 3 = 0');
-- Of one value, of none, and of NULLs alone.
CREATE TABLE t.one (a int, b int8);
ALTER TABLE t.one SET (parallel_workers = 2);
CREATE INDEX one1 ON t.one USING cairn (a, b);
INSERT INTO t.one SELECT NULL, NULL FROM generate_series(1, 3000);
REINDEX INDEX t.one1;
SELECT t.expect('NULLs', cairn_check('t.one1'), 3000::bigint);
UPDATE t.one SET a = 5;
REINDEX INDEX CONCURRENTLY t.one1;
SELECT t.same('SELECT a, count(*) FROM t.one GROUP BY a ORDER BY a');
-- Several processes find equal keys as one does.
CREATE UNIQUE INDEX bu_unique ON t.bu USING cairn (v);
DO $$ BEGIN
    SET LOCAL maintenance_work_mem = '200MB';
    CREATE UNIQUE INDEX bu_no ON t.bu USING cairn (k);
    RAISE EXCEPTION 'built over equal keys';
EXCEPTION WHEN unique_violation THEN NULL;
END $$;
DROP TABLE t.bu, t.one;
DROP FUNCTION t.builds, t.pages;
