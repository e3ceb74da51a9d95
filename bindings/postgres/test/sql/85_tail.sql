-- The tail is bounded: the insert that makes it longer than its limit merges it, unless VACUUM or another merge is at work.
CREATE FUNCTION t.tail(index regclass) RETURNS bigint LANGUAGE sql AS
    $$SELECT count(DISTINCT block) FROM cairn_page_stats(index) WHERE kind = 'tail'$$;
CREATE TABLE t.b (k int, s text) WITH (autovacuum_enabled = off);
CREATE INDEX b1 ON t.b USING cairn (k);
CREATE INDEX b2 ON t.b USING cairn (s) WITH (tail_limit = 128);
CREATE UNIQUE INDEX b3 ON t.b USING cairn (k) INCLUDE (s) WITH (tail_limit = 0);
SET cairn.tail_limit = '256kB';
INSERT INTO t.b SELECT g, md5(g::text) FROM generate_series(1, 20000) g;
SELECT t.expect('the setting', t.tail('t.b1') <= 33, true), t.expect('the option', t.tail('t.b2') <= 17, true), t.expect('no limit', t.tail('t.b3') > 100, true);
SELECT t.expect('rows', cairn_check('t.b1') + cairn_check('t.b2') + cairn_check('t.b3'), 60000::bigint);
ALTER INDEX t.b3 SET (tail_limit = 64);
INSERT INTO t.b SELECT g, md5(g::text) FROM generate_series(20001, 21000) g;
SELECT t.expect('a tail that was long', t.tail('t.b3') <= 64, true);
-- Single inserts, and a statement that reads the index while it merges it.
DO $$ BEGIN FOR i IN 21001..24000 LOOP INSERT INTO t.b VALUES (i, md5(i::text)); END LOOP; END $$;
SELECT t.expect('single inserts', t.tail('t.b1') <= 33, true);
SET enable_seqscan = off; SET enable_bitmapscan = off;
INSERT INTO t.b SELECT k + 100000, s FROM t.b WHERE k > 0 ORDER BY k;
SELECT t.expect('a statement that reads what it writes', (SELECT count(*) FROM t.b), 48000::bigint);
SELECT cairn_check('t.b1'), cairn_check('t.b2'), cairn_check('t.b3');
-- What is taken back does no harm; what a cursor sees stays.
BEGIN;
DECLARE c CURSOR FOR SELECT k FROM t.b WHERE k > 0 ORDER BY k;
FETCH 1 FROM c;
INSERT INTO t.b SELECT g, 'x' FROM generate_series(300001, 310000) g;
MOVE ALL IN c;
ROLLBACK;
SELECT t.expect('taken back', (SELECT count(*) FROM t.b WHERE k > 300000), 0::bigint);
-- Nobody waits: with the lock of VACUUM taken by another session the tail grows.
\! "$PSQL" -X -q -c "BEGIN; LOCK TABLE t.b IN SHARE UPDATE EXCLUSIVE MODE; SET LOCAL application_name = 'holds'; SELECT pg_sleep(30)" >/dev/null 2>&1 &
DO $$ BEGIN
    WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'holds' AND wait_event = 'PgSleep') LOOP
        PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
    END LOOP;
END $$;
SET statement_timeout = '20s';
INSERT INTO t.b SELECT g, md5(g::text) FROM generate_series(400001, 420000) g;
RESET statement_timeout;
SELECT t.expect('not merged meanwhile', t.tail('t.b1') > 40, true);
SELECT t.expect('ended', (SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE application_name = 'holds'), 1::bigint);
INSERT INTO t.b SELECT g, md5(g::text) FROM generate_series(420001, 421000) g;
SELECT t.expect('merged afterwards', t.tail('t.b1') <= 33, true);
SELECT cairn_check('t.b1'), cairn_check('t.b2'), cairn_check('t.b3');
RESET cairn.tail_limit; RESET enable_seqscan; RESET enable_bitmapscan;
DROP TABLE t.b;
-- Long values are compressed as a btree compresses them, and stay what they are: in the tail, in pages, as keys of inner pages, through VACUUM and builds.
CREATE TABLE t.l (s text, b bytea, n int);
CREATE INDEX l1 ON t.l USING cairn (s);
CREATE UNIQUE INDEX l2 ON t.l USING cairn (b) INCLUDE (n);
CREATE INDEX l3 ON t.l USING cairn (s, b);
INSERT INTO t.l SELECT repeat(chr(97 + g % 26), 2000 + 3000 * (g % 40)), decode(repeat(lpad(to_hex(g % 256), 2, '0'), 3000 + g), 'hex'), g FROM generate_series(1, 150) g;
-- What begins as a compressed one does in a page.
INSERT INTO t.l SELECT 'm' || n, decode(h, 'hex'), -n FROM unnest(array['ffc417', 'ffc4173d', 'ffc41770', 'ffc4173d61', 'ffc4177001000000', 'ffc41770ffffffffffffff', 'ff', 'ffc4']) WITH ORDINALITY AS x(h, n);
CREATE FUNCTION t.long_ones() RETURNS void LANGUAGE plpgsql AS $$
DECLARE way text;
BEGIN
    FOREACH way IN ARRAY array['plain', 'only', 'batch', 'bitmap', 'aggregate'] LOOP
        PERFORM t.way(way);
        PERFORM t.same('SELECT md5(s) FROM t.l WHERE s >= ''a'' ORDER BY s'), t.same('SELECT md5(b), n FROM t.l WHERE b >= ''\x00'' ORDER BY b');
        PERFORM t.same('SELECT n FROM t.l WHERE s = repeat(''x'', 5000) ORDER BY n'), t.same('SELECT n FROM t.l WHERE b > ''\xffc416'' ORDER BY b, n');
        PERFORM t.same('SELECT md5(s), count(*), min(md5(b)) FROM t.l WHERE s >= ''a'' GROUP BY s ORDER BY s');
    END LOOP;
    PERFORM cairn_check('t.l1'), cairn_check('t.l2'), cairn_check('t.l3');
END $$;
SELECT t.long_ones();
SELECT cairn_merge('t.l1'), cairn_merge('t.l2'), cairn_merge('t.l3');
SELECT t.long_ones();
DELETE FROM t.l WHERE n % 3 = 0;
VACUUM ANALYZE t.l;
SELECT t.long_ones();
REINDEX TABLE t.l;
SELECT t.long_ones();
DO $$ BEGIN
    INSERT INTO t.l SELECT 'again', b, n FROM t.l WHERE n = 7;
    RAISE EXCEPTION 'a long key was taken twice';
EXCEPTION WHEN unique_violation THEN NULL;
END $$;
DO $$ BEGIN
    INSERT INTO t.l SELECT string_agg(md5(g::text), ''), 'x', 0 FROM generate_series(1, 200) g;
    RAISE EXCEPTION 'a row was taken that does not fit a page';
EXCEPTION WHEN program_limit_exceeded THEN NULL;
END $$;
DROP FUNCTION t.long_ones, t.tail;
DROP TABLE t.l;
