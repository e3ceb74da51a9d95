-- Goal: a unique index refuses what a btree refuses and takes what it takes. Method: the same statements on two tables with the same rows, one with
-- each, over tails, trees, NULLs, deleted and updated rows, types with and without hashes, and statements that fail half-way.
LOAD 'cairn';
CREATE TABLE t.ub (k int, s text, n numeric, r int4range, v int);
CREATE TABLE t.uc (k int, s text, n numeric, r int4range, v int);
-- Runs a statement on both; %s is the table. Both end alike and hold the same rows then.
CREATE FUNCTION t.both(statement text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    b text := 'taken';
    c text := 'taken';
    rows_b text;
    rows_c text;
BEGIN
    BEGIN EXECUTE format(statement, 't.ub'); EXCEPTION WHEN unique_violation THEN b := SQLERRM; END;
    BEGIN EXECUTE format(statement, 't.uc'); EXCEPTION WHEN unique_violation THEN c := replace(SQLERRM, 'uc', 'ub'); END;
    IF b <> c THEN RAISE EXCEPTION '"%": % instead of %', statement, c, b; END IF;
    SELECT count(*) || coalesce(md5(string_agg(x::text, '|' ORDER BY x::text)), '') FROM t.ub x INTO rows_b;
    SELECT count(*) || coalesce(md5(string_agg(x::text, '|' ORDER BY x::text)), '') FROM t.uc x INTO rows_c;
    PERFORM t.expect(statement, rows_c, rows_b);
END $$;
CREATE FUNCTION t.uniques(key text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DROP INDEX IF EXISTS t.ubx, t.ucx;
    EXECUTE format('CREATE UNIQUE INDEX ubx ON t.ub %s', key);
    EXECUTE format('CREATE UNIQUE INDEX ucx ON t.uc USING cairn %s', key);
END $$;
CREATE PROCEDURE t.round(rows int) LANGUAGE plpgsql AS $$
DECLARE
    i int;
    a int;
    b int;
BEGIN
    FOR i IN 1..40 LOOP
        a := floor(random() * rows * 2);
        b := floor(random() * rows * 2);
        CASE floor(random() * 9)
            WHEN 0 THEN PERFORM t.both(format('INSERT INTO %%s VALUES (%s, ''s%s'', %s.0, int4range(%s, %s), %s)', a, b, a, a, a + 5, i));
            WHEN 1 THEN PERFORM t.both(format('INSERT INTO %%s SELECT g, ''s'' || g, g / 10.0, int4range(g, g + 3), %s FROM generate_series(%s, %s) g', i, a, a + 20));
            WHEN 2 THEN PERFORM t.both(format('DELETE FROM %%s WHERE k BETWEEN %s AND %s', a, a + 15));
            WHEN 3 THEN PERFORM t.both(format('UPDATE %%s SET k = %s WHERE k = %s', b, a));
            WHEN 4 THEN PERFORM t.both(format('UPDATE %%s SET v = v + 1 WHERE k > %s', a));
            WHEN 5 THEN PERFORM t.both(format('UPDATE %%s SET s = s || ''x'', n = n + 0.00 WHERE k BETWEEN %s AND %s', a, a + 9));
            WHEN 6 THEN PERFORM t.both(format('INSERT INTO %%s VALUES (NULL, NULL, %s.00, NULL, 1), (%s, NULL, NULL, ''empty'', 2)', b, a));
            WHEN 7 THEN PERFORM t.both(format('WITH d AS (DELETE FROM %%1$s WHERE k = %s RETURNING *) INSERT INTO %%1$s SELECT * FROM d', a));
            ELSE PERFORM t.both(format('INSERT INTO %%s SELECT mod(g, %s), ''s'' || g, g, NULL, 0 FROM generate_series(%s, %s) g', a + 1, b, b + 30));
        END CASE;
    END LOOP;
    PERFORM cairn_check('t.ucx');
END $$;
-- Every kind of key from an empty table on, the tail first, then the tree.
DO $$
DECLARE key text;
BEGIN
    FOREACH key IN ARRAY ARRAY['(k)', '(s)', '(n)', '(k DESC NULLS LAST) INCLUDE (v)', '(s, k) INCLUDE (v)', '(r, k)', '(k) NULLS NOT DISTINCT', '(s text_pattern_ops)',
        '((k / 2), s)', '(k) WHERE v % 2 = 0'] LOOP
        TRUNCATE t.ub, t.uc;
        PERFORM t.uniques(key);
        CALL t.round(60);
        PERFORM cairn_merge('t.ucx');
        CALL t.round(60);
        -- Built from rows, dead ones among them.
        PERFORM t.uniques(key);
        CALL t.round(100);
    END LOOP;
END $$;
VACUUM t.ub;
VACUUM t.uc;
SELECT t.uniques('(k) WHERE v % 2 = 0');
CALL t.round(100);
-- A build over equal keys fails and names them; over equal keys of which one is dead it does not.
TRUNCATE t.uc;
DROP INDEX t.ucx;
INSERT INTO t.uc (k, v) SELECT g % 500, g FROM generate_series(1, 1000) g;
DO $$ BEGIN
    CREATE UNIQUE INDEX uc_no ON t.uc USING cairn (k);
    RAISE EXCEPTION 'built over equal keys';
EXCEPTION WHEN unique_violation THEN PERFORM t.expect('message', SQLERRM, 'could not create unique index "uc_no"');
END $$;
DELETE FROM t.uc WHERE v <= 500;
CREATE UNIQUE INDEX uc_yes ON t.uc USING cairn (k);
CREATE UNIQUE INDEX CONCURRENTLY uc_concurrent ON t.uc USING cairn (k, v);
REINDEX INDEX CONCURRENTLY t.uc_yes;
DO $$ BEGIN
    INSERT INTO t.uc (k, v) VALUES (7, 1);
    RAISE EXCEPTION 'took a key twice';
EXCEPTION WHEN unique_violation THEN NULL;
END $$;
SELECT t.expect('unique', (SELECT bool_and(indisunique AND indisvalid) FROM pg_index WHERE indrelid = 't.uc'::regclass), true);
-- A row that an open transaction holds is there for itself, and one whose insert was taken back is not.
BEGIN;
INSERT INTO t.uc (k, v) VALUES (100000, 1);
SAVEPOINT a;
INSERT INTO t.uc (k, v) VALUES (100001, 1);
ROLLBACK TO a;
INSERT INTO t.uc (k, v) VALUES (100001, 1);
DO $$ BEGIN
    INSERT INTO t.uc (k, v) VALUES (100000, 1);
    RAISE EXCEPTION 'took a key twice';
EXCEPTION WHEN unique_violation THEN NULL;
END $$;
COMMIT;
-- Goal: a VACUUM that was cut off, and left its sequence odd, makes inserts no dearer: each reads of the tail what has come since the one before. Method: a VACUUM
-- that waits for a cursor's page until its time is over; pages read by an insert behind a tail of a hundred pages.
CREATE TABLE t.u (k int);
CREATE UNIQUE INDEX u1 ON t.u USING cairn (k);
CREATE FUNCTION t.sequence() RETURNS int LANGUAGE sql AS $$ SELECT get_byte(pg_read_binary_file(pg_relation_filepath('t.u1'), 64, 1), 0) % 2 $$;
INSERT INTO t.u SELECT generate_series(1, 4000);
VACUUM t.u;
INSERT INTO t.u SELECT generate_series(100001, 140000);
DELETE FROM t.u WHERE k % 2 = 0 AND k < 4000;
BEGIN;
DO $$ BEGIN PERFORM t.way('plain'); END $$;
DECLARE c CURSOR FOR SELECT k FROM t.u WHERE k > 5;
MOVE 1 IN c;
\! "$PSQL" -X -q -c "SET statement_timeout = '2s'" -c 'VACUUM (INDEX_CLEANUP ON) t.u' 2>/dev/null
COMMIT;
CHECKPOINT;
SELECT t.expect('a VACUUM that waited for the cursor', t.sequence(), 1);
SELECT t.expect('a tail', (SELECT count(DISTINCT block) > 90 FROM cairn_page_stats('t.u1') WHERE kind = 'tail'), true);
DO $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) INSERT INTO t.u SELECT generate_series(200001, 202000)' INTO plan;
    PERFORM t.expect('pages for a row', (plan #>> '{0,Plan,Shared Hit Blocks}')::int / 2000 < 30, true);
END $$;
DROP FUNCTION t.sequence;
DROP TABLE t.u;
-- One that is cut off when it has moved rows of the tail: a statement that is under way finds the key that came since. VACUUM waits for a cursor's page, the statement's third
-- row lets it go, and cuts it off while it rests behind the tail, which it does for long; then its session adds the key. (If it comes to its end instead, the key is to be found too.)
CREATE TABLE t.u (k int);
CREATE UNIQUE INDEX u1 ON t.u USING cairn (k);
INSERT INTO t.u SELECT generate_series(1, 1000);
VACUUM t.u;
INSERT INTO t.u SELECT generate_series(1001, 1060);
DELETE FROM t.u WHERE k BETWEEN 600 AND 610 OR k BETWEEN 1001 AND 1030;
CREATE FUNCTION t.step(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE c refcursor := 'c';
BEGIN
    IF n = 3 THEN
        CLOSE c;
        WHILE (SELECT sum(rows) > 40 FROM cairn_page_stats('t.u1') WHERE kind = 'tail') LOOP PERFORM pg_sleep(0.01); END LOOP;
        PERFORM pg_stat_clear_snapshot();
        PERFORM pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'cut off' AND query LIKE 'VACUUM%';
        WHILE NOT EXISTS (SELECT FROM t.u WHERE k = 5000) LOOP PERFORM pg_sleep(0.01); END LOOP;
    END IF;
    RETURN CASE n WHEN 4 THEN 5000 ELSE 2000 + n END;
END $$;
BEGIN;
SET LOCAL statement_timeout = '60s';
DO $$ BEGIN PERFORM t.way('plain'); END $$;
DECLARE c CURSOR FOR SELECT k FROM t.u WHERE k > 300;
MOVE 1 IN c;
\! "$PSQL" -X -q -c "SET application_name = 'cut off'; SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1; SET vacuum_cost_page_hit = 100" -c 'VACUUM (INDEX_CLEANUP ON) t.u' -c 'INSERT INTO t.u VALUES (5000)' -c 'INSERT INTO t.u VALUES (5000)' >/dev/null 2>&1 &
DO $$ BEGIN
    WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'cut off' AND wait_event_type = 'BufferPin') LOOP
        PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
    END LOOP;
    INSERT INTO t.u SELECT t.step(g) FROM generate_series(1, 5) g;
    RAISE EXCEPTION 'took a key twice';
EXCEPTION WHEN unique_violation THEN NULL;
END $$;
COMMIT;
DROP TABLE t.u;
DROP FUNCTION t.step;
-- What is in the way is told apart from an error since PostgreSQL 18; before, PostgreSQL does so for btrees alone.
SELECT current_setting('server_version_num')::int >= 180000 AS conflicts \gset
\if :conflicts
TRUNCATE t.ub, t.uc;
SELECT t.uniques('(k)');
SELECT t.both('INSERT INTO %s (k, v) SELECT mod(g, 30), g FROM generate_series(1, 100) g ON CONFLICT DO NOTHING');
SELECT t.both('INSERT INTO %s AS x (k, v) SELECT g, 1000 FROM generate_series(25, 60) g ON CONFLICT (k) DO UPDATE SET v = x.v + excluded.v');
VACUUM t.uc;
SELECT t.both('INSERT INTO %s AS x (k, v) SELECT g, 5 FROM generate_series(50, 80) g ON CONFLICT (k) DO UPDATE SET v = x.v + excluded.v');
\endif
DROP TABLE t.ub, t.uc;
DROP FUNCTION t.both, t.uniques;
DROP PROCEDURE t.round;
-- A statement's first inserts compare their keys with the tail's; hashes of all of them are made for the 33rd, which takes some fifty times as long.
CREATE TABLE t.g (id int) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX g1 ON t.g USING cairn (id) WITH (tail_limit = 0);
INSERT INTO t.g SELECT generate_series(1, 10000);
CREATE TABLE t.seen (n int, hashes bigint);
CREATE FUNCTION t.see(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t.seen SELECT n, count(*) FROM pg_backend_memory_contexts WHERE name = 'cairn tail keys';
    RETURN 60000 + n;
END $$;
INSERT INTO t.g SELECT t.see(g) FROM generate_series(1, 60) g;
SELECT t.expect('the first row that finds hashes', (SELECT min(n) FROM t.seen WHERE hashes > 0), 34);
SELECT t.expect('rows that find them', (SELECT count(*) FROM t.seen WHERE hashes > 0), 27::bigint);
DROP TABLE t.seen;
DROP FUNCTION t.see;
-- A statement of more rows than compare takes none twice, wherever the key stands: in the tree, in the tail, among its own rows that came before and after the change.
SELECT cairn_merge('t.g1');
INSERT INTO t.g SELECT generate_series(70001, 70100);
CREATE FUNCTION t.twice(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN true;
EXCEPTION WHEN unique_violation THEN RETURN false;
END $$;
SELECT t.expect('in the tree at ' || at, t.twice(format('INSERT INTO t.g SELECT CASE g WHEN %s THEN 5 ELSE 80000 + g END FROM generate_series(1, 60) g', at)), false)
FROM unnest(array[1, 31, 32, 33, 34, 60]) at;
SELECT t.expect('in the tail at ' || at, t.twice(format('INSERT INTO t.g SELECT CASE g WHEN %s THEN 70050 ELSE 80000 + g END FROM generate_series(1, 60) g', at)), false)
FROM unnest(array[1, 31, 32, 33, 34, 60]) at;
SELECT t.expect(format('its own %s at %s', own, at), t.twice(format('INSERT INTO t.g SELECT CASE g WHEN %s THEN 80000 + %s ELSE 80000 + g END FROM generate_series(1, 60) g', at, own)), false)
FROM unnest(array[1, 30, 32]) own, unnest(array[31, 33, 34, 60]) at;
SELECT t.expect('no key of those statements', (SELECT count(*) FROM t.g WHERE id > 80000), 0::bigint);
SELECT cairn_check('t.g1');
DROP FUNCTION t.twice;
DROP TABLE t.g;
