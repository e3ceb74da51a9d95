-- Goal: what goes wrong in an index that keeps no row ids goes right in this one. Each block is a row of the list of hazards in
-- docs/src/engines/index.md. Method: as there.
LOAD 'cairn';
CREATE TABLE t.h AS SELECT g k, g % 10 v, 0 w FROM generate_series(1, 100000) g;
CREATE INDEX h1 ON t.h USING cairn (k);
VACUUM t.h;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;

-- A scrollable cursor turns round.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k FROM t.h WHERE k >= 9 ORDER BY k;
CREATE TEMP TABLE seen (n serial, k int);
DO $$ DECLARE r record; c refcursor := 'c'; BEGIN
    MOVE FORWARD 3 FROM c;
    FETCH BACKWARD FROM c INTO r; INSERT INTO seen (k) VALUES (r.k);
    FETCH BACKWARD FROM c INTO r; INSERT INTO seen (k) VALUES (r.k);
    FETCH NEXT FROM c INTO r; INSERT INTO seen (k) VALUES (r.k);
    FETCH LAST FROM c INTO r; INSERT INTO seen (k) VALUES (r.k);
    FETCH PRIOR FROM c INTO r; INSERT INTO seen (k) VALUES (r.k);
    MOVE FORWARD ALL IN c;
    FETCH PRIOR FROM c INTO r; INSERT INTO seen (k) VALUES (r.k);
    FETCH FIRST FROM c INTO r; INSERT INTO seen (k) VALUES (r.k);
END $$;
SELECT t.expect('cursor', (SELECT string_agg(k::text, ' ' ORDER BY n) FROM seen), '10 9 10 100000 99999 100000 9');
DROP TABLE seen;
COMMIT;

-- Deleted rows are not counted, wherever they are.
SELECT t.planned('SELECT count(*) FROM t.h', 'cairn|h1');
DELETE FROM t.h WHERE k > 50000;
SELECT t.expect('after delete', (SELECT count(*) FROM t.h WHERE k > 0), 50000::bigint);
DELETE FROM t.h WHERE k BETWEEN 2 AND 100;
SELECT t.expect('after delete in block 0', (SELECT count(*) FROM t.h WHERE k > 0), 49901::bigint);
DELETE FROM t.h WHERE ctid = '(0,1)';
SELECT t.expect('after delete of (0,1)', (SELECT count(*) FROM t.h WHERE k > 0), 49900::bigint);
VACUUM t.h;
SELECT t.expect('after vacuum', (SELECT count(*) FROM t.h WHERE k > 0), 49900::bigint);

-- Building an index, even one that is rolled back, changes nothing for others.
CREATE TABLE t.h2 AS SELECT g k FROM generate_series(1, 200) g;
CREATE INDEX h2b ON t.h2 (k);
VACUUM t.h2;
DELETE FROM t.h2 WHERE k <= 150;
BEGIN;
CREATE INDEX h2c ON t.h2 USING cairn (k);
ROLLBACK;
SELECT t.expect('after a rolled back build', (SELECT count(*) FROM t.h2 WHERE k > 0), 50::bigint);
CREATE INDEX h2c ON t.h2 USING cairn (k);
DROP INDEX t.h2b;
SELECT t.expect('after a build', (SELECT count(*) FROM t.h2 WHERE k > 0), 50::bigint);
DROP TABLE t.h2;

-- INSERT, COPY, UPDATE, plain scans of columns that are not indexed, DELETE and UPDATE by key.
INSERT INTO t.h VALUES (7000000, 1, 1);
COPY t.h FROM PROGRAM 'echo 7000001,2,2' (FORMAT csv);
UPDATE t.h SET k = 7000002 WHERE k = 200;
UPDATE t.h SET w = 5 WHERE k = 201;
SELECT t.expect('written', (SELECT string_agg(k::text, ' ' ORDER BY k) FROM t.h WHERE k >= 7000000), '7000000 7000001 7000002');
SELECT t.planned('SELECT v FROM t.h WHERE k = 301', 'Index Scan using h1');
SELECT t.expect('plain scan', (SELECT w FROM t.h WHERE k = 201), 5);
SELECT t.expect('moved row', (SELECT count(*) FROM t.h WHERE k = 200), 0::bigint);
DELETE FROM t.h WHERE k = 301;
SELECT t.expect('deleted by key', (SELECT count(*) FROM t.h WHERE k = 301), 0::bigint);

-- VACUUM with most rows dead.
DELETE FROM t.h WHERE k % 10 < 6;
VACUUM t.h;
SELECT t.same('SELECT count(*), sum(k) FROM t.h WHERE k > 0');
SELECT t.expect('check', cairn_check('t.h1'), (SELECT count(*) FROM t.h));

-- CREATE INDEX CONCURRENTLY, REINDEX in both forms.
CREATE INDEX CONCURRENTLY h3 ON t.h USING cairn (v, k);
REINDEX INDEX CONCURRENTLY t.h1;
REINDEX TABLE t.h;
SELECT t.expect('valid', (SELECT bool_and(indisvalid AND indisready) FROM pg_index WHERE indrelid = 't.h'::regclass), true);
SELECT t.same('SELECT v, k FROM t.h WHERE v = 7 AND k > 30000 ORDER BY v, k');

-- IN, IS NULL, bitmaps, merge joins: used, and right.
RESET enable_bitmapscan;
SELECT t.planned('SELECT k FROM t.h WHERE k IN (9, 999, 41000)', 'Index Only Scan using h1|Cairn Scan');
SET enable_indexscan = off; SET enable_indexonlyscan = off;
SELECT t.planned('SELECT v FROM t.h WHERE k < 100', 'Bitmap Index Scan on h1');
RESET enable_indexscan; RESET enable_indexonlyscan;
SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_sort = off;
CREATE TABLE t.h4 AS SELECT (random() * 30)::int k, g v FROM generate_series(1, 3000) g;
CREATE INDEX h4a ON t.h4 USING cairn (k) INCLUDE (v);
VACUUM ANALYZE t.h4;
SELECT t.planned('SELECT count(*), sum(a.v + 3 * b.v) FROM t.h4 a JOIN t.h4 b USING (k)', 'Merge Join');
SELECT t.expect('merge join', (SELECT count(*) || ' ' || sum(a.v + 3 * b.v) FROM t.h4 a JOIN t.h4 b USING (k)),
    (SELECT sum(n * n) || ' ' || sum(n * s + 3 * n * s) FROM (SELECT count(*) n, sum(v) s FROM t.h4 GROUP BY k) x));
RESET enable_hashjoin; RESET enable_nestloop; RESET enable_sort;
DROP TABLE t.h4;

-- An expression index, and a collation that is not that of bytes.
CREATE TABLE t.e AS SELECT md5(g::text) s, g FROM generate_series(1, 5000) g;
CREATE INDEX e1 ON t.e USING cairn (lower(s), g);
CREATE INDEX e2 ON t.e USING cairn (s COLLATE "POSIX" DESC);
VACUUM ANALYZE t.e;
SELECT t.planned('SELECT g FROM t.e WHERE lower(s) = md5(''77'')', 'e1');
SELECT t.same('SELECT lower(s), g FROM t.e WHERE lower(s) > ''c'' AND lower(s) < ''d'' ORDER BY lower(s), g');
SELECT t.same('SELECT s COLLATE "POSIX" FROM t.e WHERE s COLLATE "POSIX" < ''5'' ORDER BY s COLLATE "POSIX" DESC');
DROP TABLE t.e;

-- LIMIT stops early: three rows out of a hundred thousand read few pages and no more rows than a first batch.
RESET enable_seqscan;
SELECT t.same('SELECT k FROM t.h ORDER BY k LIMIT 3');

-- CLUSTER puts the table in the index's order, rows of the tail among them.
CREATE TABLE t.k AS SELECT (random() * 10000)::int k, 'v' || g v FROM generate_series(1, 5000) g;
CREATE INDEX k1 ON t.k USING cairn (k, v);
INSERT INTO t.k SELECT (random() * 10000)::int, 'w' || g FROM generate_series(1, 100) g;
DELETE FROM t.k WHERE k % 7 = 0;
CREATE TEMP TABLE was AS SELECT * FROM t.k;
CLUSTER t.k USING k1;
SELECT t.expect('clustered', (SELECT count(*) FROM (SELECT (k, v) < lag((k, v)) OVER (ORDER BY ctid) o FROM t.k) x WHERE o), 0::bigint);
SELECT t.expect('the same rows', (SELECT count(*) FROM (SELECT * FROM was EXCEPT ALL SELECT * FROM t.k) x), 0::bigint);
SELECT t.expect('and no others', (SELECT count(*) FROM t.k), (SELECT count(*) FROM was));
SELECT t.expect('check', cairn_check('t.k1'), (SELECT count(*) FROM t.k));
DROP TABLE t.k, was;

-- A merge in a session that reads the index would wait for itself: it is refused, and the cursor goes on.
INSERT INTO t.h SELECT g, 1, 1 FROM generate_series(8000000, 8000100) g;
BEGIN;
DECLARE c CURSOR FOR SELECT k FROM t.h WHERE k > 0 ORDER BY k;
MOVE FORWARD 100 FROM c;
DO $$ BEGIN
    PERFORM cairn_merge('t.h1');
    RAISE EXCEPTION 'merged under a cursor';
EXCEPTION WHEN object_in_use THEN NULL; END $$;
MOVE FORWARD 1 FROM c;
COMMIT;
SELECT t.expect('merged', cairn_merge('t.h1') > 0, true);
SELECT t.same('SELECT k FROM t.h WHERE k > 7999990 ORDER BY k');
DROP TABLE t.h;
