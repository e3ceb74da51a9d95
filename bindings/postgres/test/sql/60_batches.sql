-- Goal: a scan by batches gives the rows of PostgreSQL's own node, in its order. Method: each query by both nodes, the plan named; over pages that are
-- all-visible, partly and not at all, dead and new rows, NULLs, strings, filters, either direction, rescans with other parameters, cursors, and a tail.
LOAD 'cairn';
SET jit = off;
CREATE TABLE t.b AS SELECT CASE WHEN random() < 0.03 THEN NULL ELSE (random() * 300)::int END k, 'name ' || (random() * 50)::int s,
    (random() * 1e6)::int8 - 500000 w, (random() * 100)::int::oid o, random() < 0.5 f, (g % 7)::int2 i2, pg_lsn '0/0' + g lsn
    FROM generate_series(1, 40000) g;
CREATE INDEX b1 ON t.b USING cairn (k, s) INCLUDE (w, o, f, i2, lsn);
CREATE INDEX b2 ON t.b USING cairn (s DESC NULLS LAST, w);
CREATE PROCEDURE t.batch(query text) LANGUAGE plpgsql AS $$
DECLARE want text;
BEGIN
    PERFORM t.way('heap');
    want := t.answer(query);
    PERFORM t.way('batch');
    -- Where no page is all-visible the planner may take a plain scan of the other index instead.
    IF (SELECT relallvisible > 0 FROM pg_class WHERE oid = 't.b'::regclass) THEN
        PERFORM t.planned(query, 'Cairn Scan');
    END IF;
    PERFORM t.expect(query, t.answer(query), want);
    PERFORM t.way('only');
    PERFORM t.expect(query, t.answer(query), want);
    PERFORM t.way('heap');
END $$;
CREATE PROCEDURE t.batches() LANGUAGE plpgsql AS $$
BEGIN
    CALL t.batch('SELECT count(*) FROM t.b WHERE k > 20');
    CALL t.batch('SELECT k, s, w, o, f, i2, lsn FROM t.b WHERE k BETWEEN 10 AND 200 ORDER BY k, s, w');
    CALL t.batch('SELECT lsn, k FROM t.b WHERE k IS NULL ORDER BY lsn');
    CALL t.batch('SELECT w * 2, s || k FROM t.b WHERE k > 5 AND w > 0 AND f ORDER BY 1, 2');
    CALL t.batch('SELECT count(*), sum(w), min(s), max(lsn) FROM t.b WHERE s > ''name 3'' AND k < 250 AND o <> 7::oid');
    CALL t.batch('SELECT s, w FROM t.b WHERE s < ''name 5'' ORDER BY s DESC, w');
    CALL t.batch('SELECT s, w FROM t.b WHERE s >= ''name 2'' ORDER BY s, w DESC LIMIT 1000 OFFSET 900');
    CALL t.batch('SELECT k FROM t.b WHERE k IN (5, 9, 17, 250, 251, NULL) ORDER BY k DESC');
    CALL t.batch('SELECT x, (SELECT count(*) FROM (SELECT w FROM t.b WHERE k < x OFFSET 0) y) FROM generate_series(-5, 100, 5) x ORDER BY x');
    CALL t.batch('SELECT a.k, count(*) FROM t.b a JOIN t.b b ON a.s = b.s AND a.w = b.w WHERE a.k > 7 AND b.s > ''name 4'' GROUP BY a.k ORDER BY 1');
    CALL t.batch('SELECT DISTINCT s FROM t.b WHERE k > 100 ORDER BY s');
    COMMIT;
END $$;
ANALYZE t.b;
CALL t.batches();
VACUUM t.b;
CALL t.batches();
-- One block in some is not all-visible.
DELETE FROM t.b WHERE w % 997 = 0;
UPDATE t.b SET w = w + 1 WHERE w % 499 = 1;
CALL t.batches();
SELECT t.expect('tail', cairn_merge('t.b1') > 0, true);
SELECT t.expect('tail', cairn_merge('t.b2') > 0, true);
CALL t.batches();
VACUUM t.b;
CALL t.batches();
INSERT INTO t.b SELECT (random() * 300)::int, 'name ' || g, g, g, true, 1, '0/5' FROM generate_series(1, 300) g;
CALL t.batches();
VACUUM t.b;

-- A cursor keeps its snapshot while rows go.
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
BEGIN;
SELECT t.planned('SELECT k, w FROM t.b WHERE k > 0 ORDER BY k', 'Cairn Scan');
DECLARE c CURSOR FOR SELECT count(*) FROM (SELECT k, w FROM t.b WHERE k > 0 ORDER BY k) x;
CREATE TEMP TABLE n AS SELECT count(*) n FROM t.b WHERE k > 0;
DELETE FROM t.b WHERE k > 100;
SELECT t.expect('own deletes', (SELECT count(*) FROM t.b WHERE k > 100), 0::bigint);
DO $$ DECLARE r record; c refcursor := 'c'; BEGIN FETCH c INTO r; PERFORM t.expect('cursor', r.count, (SELECT n FROM n)); END $$;
ROLLBACK;
-- Rows that are locked, or looked at again, come from PostgreSQL's own nodes.
BEGIN;
SELECT count(*) FROM (SELECT k FROM t.b WHERE k = 3 FOR UPDATE) x \gset
SELECT t.expect('locked', :count::bigint, (SELECT count(*) FROM t.b WHERE k = 3));
ROLLBACK;
-- WHERE CURRENT OF means the row that a cursor gave last: in a first batch, at the end of it, behind it and far on; forward and backward; where pages are all-visible, where
-- versions of rows have come since, with pointers to them after VACUUM, and with rows of a tail in between.
CREATE TABLE t.w WITH (fillfactor = 50) AS SELECT g k, 0 v FROM generate_series(1, 4000) g;
CREATE INDEX w1 ON t.w USING cairn (k);
VACUUM ANALYZE t.w;
CREATE PROCEDURE t.current(direction text) LANGUAGE plpgsql AS $$
DECLARE
    c refcursor := 'c';
    n int;
    want int[];
BEGIN
    PERFORM t.way('heap');
    EXECUTE format('SELECT array_agg(k ORDER BY n) FROM (SELECT k, row_number() OVER (ORDER BY k %s) n FROM t.w WHERE k > 500) x WHERE n IN (1, 32, 33, 1033, 3033, 3034)', direction) INTO want;
    PERFORM t.way('batch');
    PERFORM t.planned('SELECT k FROM t.w WHERE k > 500 ORDER BY k ' || direction, 'Cairn Scan');
    EXECUTE format('DECLARE c NO SCROLL CURSOR FOR SELECT k FROM t.w WHERE k > 500 ORDER BY k %s', direction);
    FOREACH n IN ARRAY ARRAY[1, 31, 1, 1000, 2000] LOOP
        MOVE FORWARD n FROM c;
        UPDATE t.w SET v = v + 1000 WHERE CURRENT OF c;
        PERFORM t.expect('updated', FOUND, true);
    END LOOP;
    MOVE FORWARD 1 FROM c;
    DELETE FROM t.w WHERE CURRENT OF c;
    CLOSE c;
    PERFORM t.way('heap');
    PERFORM t.expect('rows of a cursor', (SELECT array_agg(k ORDER BY array_position(want, k)) FROM t.w WHERE v >= 1000), want[:5]);
    PERFORM t.expect('and the deleted one', (SELECT count(*) FROM t.w WHERE k = want[6]), 0::bigint);
    ROLLBACK;
END $$;
CALL t.current('');
CALL t.current('DESC');
UPDATE t.w SET v = 1 WHERE k IN (501, 533, 3968, 4000);
DELETE FROM t.w WHERE k % 100 = 0 AND k < 4000;
CALL t.current('');
CALL t.current('DESC');
VACUUM t.w;
UPDATE t.w SET v = 2 WHERE k IN (502, 534, 3967, 3999);
CALL t.current('');
CALL t.current('DESC');
SELECT t.expect('no tail', cairn_merge('t.w1'), 0::bigint);
INSERT INTO t.w SELECT g, 0 FROM generate_series(600, 3900, 100) g;
CALL t.current('');
CALL t.current('DESC');
DROP PROCEDURE t.current;
DROP TABLE t.w;
-- A scroll cursor turns round over it.
BEGIN;
DECLARE d SCROLL CURSOR FOR SELECT s, w FROM t.b WHERE s > 'name 1' ORDER BY s DESC, w;
CREATE TEMP TABLE seen (n serial, w int8);
DO $$ DECLARE r record; d refcursor := 'd'; BEGIN
    MOVE FORWARD 1000 FROM d;
    FETCH BACKWARD FROM d INTO r; INSERT INTO seen (w) VALUES (r.w);
    FETCH FORWARD FROM d INTO r; INSERT INTO seen (w) VALUES (r.w);
END $$;
SELECT t.expect('scroll', (SELECT array_agg(w ORDER BY n) FROM seen),
    (SELECT array_agg(w ORDER BY n) FROM (SELECT w, row_number() OVER (ORDER BY s DESC, w) n FROM t.b WHERE s > 'name 1') x WHERE n IN (999, 1000)));
COMMIT;
DROP TABLE t.b;
