-- Goal: what a scan, a write or VACUUM leaves behind: pins, memory, counts, pages. Method: one block each. Other sessions are psql's `\!`, whose command ends before
-- the next line begins.
LOAD 'cairn';
SET jit = off;
-- What this session's memory contexts of a name hold.
CREATE FUNCTION t.memory(pattern text) RETURNS bigint LANGUAGE sql AS $$ SELECT sum(total_bytes)::bigint FROM pg_backend_memory_contexts WHERE name LIKE pattern $$;

-- Keys of inner pages where more columns are carried along than there are keys.
CREATE TABLE t.i AS SELECT g a, g % 10 b, g c, g d, g e, g f, -g g, g % 3 h FROM generate_series(1, 20000) g;
CREATE INDEX i1 ON t.i USING cairn (a, b) INCLUDE (c, d, e, f, g, h) WITH (page_rows = 100);
SELECT t.expect('check', cairn_check('t.i1'), 20000::bigint);
SELECT t.same('SELECT a, b, g, h FROM t.i WHERE a BETWEEN 500 AND 700 AND b > 3 ORDER BY a, b, g, h');
DELETE FROM t.i WHERE a % 3 = 0;
VACUUM t.i;
INSERT INTO t.i SELECT g, 1, 2, 3, 4, 5, 6, 7 FROM generate_series(1, 20000, 500) g;
SELECT cairn_merge('t.i1');
SELECT t.same('SELECT a, b, c, g, h FROM t.i WHERE a BETWEEN 500 AND 7000 ORDER BY a, b, c, g, h');
DROP TABLE t.i;

-- A scan that has come to its end has nothing pinned: VACUUM does not wait for the query that it belongs to. Rows that went before the query began leave the index,
-- but for those in the one page of the table that a bitmap scan may keep. A scan that turns round at the end goes on from there.
CREATE TABLE t.p AS SELECT g k, g v, g % 3 m FROM generate_series(1, 6000) g;
CREATE INDEX p1 ON t.p USING cairn (k) INCLUDE (v);
CREATE PROCEDURE t.only(way text, pattern text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM t.way(way);
    PERFORM t.planned('SELECT k, v FROM t.p WHERE k > 5', pattern);
END $$;
VACUUM ANALYZE t.p;
DELETE FROM t.p WHERE v % 40 = 0;
BEGIN;
CALL t.only('plain', 'Index Scan');
DECLARE c SCROLL CURSOR FOR SELECT k, v FROM t.p WHERE k > 5;
MOVE ALL IN c;
\! "$PSQL" -X -q -c "SET statement_timeout = '20s'" -c 'VACUUM t.p'
SELECT t.expect('vacuumed under a scan, plain', cairn_check('t.p1'), (SELECT count(*) FROM t.p));
DO $$ DECLARE r record; c refcursor := 'c'; n int := 0; BEGIN
    FETCH PRIOR FROM c INTO r;
    PERFORM t.expect('turned round', r.k, (SELECT max(k + 0) FROM t.p));
    MOVE BACKWARD ALL FROM c;
    FETCH NEXT FROM c INTO r;
    PERFORM t.expect('and back', r.k, (SELECT min(k + 0) FROM t.p WHERE k + 0 > 5));
END $$;
COMMIT;
DELETE FROM t.p WHERE v % 40 = 1;
BEGIN;
CALL t.only('only', 'Index Only Scan');
DECLARE c SCROLL CURSOR FOR SELECT k, v FROM t.p WHERE k > 5;
MOVE ALL IN c;
\! "$PSQL" -X -q -c "SET statement_timeout = '20s'" -c 'VACUUM t.p'
SELECT t.expect('vacuumed under a scan, only', cairn_check('t.p1'), (SELECT count(*) FROM t.p));
DO $$ DECLARE r record; c refcursor := 'c'; n int := 0; BEGIN
    FETCH PRIOR FROM c INTO r;
    PERFORM t.expect('turned round', r.k, (SELECT max(k + 0) FROM t.p));
    MOVE BACKWARD ALL FROM c;
    FETCH NEXT FROM c INTO r;
    PERFORM t.expect('and back', r.k, (SELECT min(k + 0) FROM t.p WHERE k + 0 > 5));
END $$;
COMMIT;
DELETE FROM t.p WHERE v % 40 = 2;
BEGIN;
CALL t.only('batch', 'Cairn Scan');
DECLARE c CURSOR FOR SELECT k, v FROM t.p WHERE k > 5;
MOVE ALL IN c;
\! "$PSQL" -X -q -c "SET statement_timeout = '20s'" -c 'VACUUM t.p'
SELECT t.expect('vacuumed under a scan, batch', cairn_check('t.p1'), (SELECT count(*) FROM t.p));
COMMIT;
DELETE FROM t.p WHERE v % 40 = 3;
BEGIN;
CALL t.only('bitmap', 'Bitmap Index Scan');
DECLARE c CURSOR FOR SELECT k, v FROM t.p WHERE k > 5;
MOVE 1 IN c;
\! "$PSQL" -X -q -c "SET statement_timeout = '20s'" -c 'VACUUM t.p'
SELECT t.expect('vacuumed under a bitmap scan', cairn_check('t.p1') < (SELECT count(*) + 100 FROM t.p), true);
COMMIT;
-- An aggregate has read all of it before its first row. Of a page of the table that it kept, VACUUM would leave the rows in the index.
DELETE FROM t.p WHERE v % 40 = 5;
BEGIN;
SELECT t.way('aggregate');
SET LOCAL enable_bitmapscan = off;
SELECT t.planned('SELECT k, sum(v) FROM t.p WHERE k > 5 GROUP BY k', 'Cairn Aggregate');
DECLARE c CURSOR FOR SELECT k, sum(v) FROM t.p WHERE k > 5 GROUP BY k;
MOVE 1 IN c;
\! "$PSQL" -X -q -c "SET statement_timeout = '20s'" -c 'VACUUM t.p'
SELECT t.expect('vacuumed under an aggregate', cairn_check('t.p1'), (SELECT count(*) FROM t.p));
COMMIT;

-- A VACUUM that is cut off has its sequence odd, and aggregates ask for each row. The next one makes it even, although it finds so few dead rows that it leaves them.
CREATE TABLE t.odd AS SELECT g k, repeat('x', 200) s FROM generate_series(1, 8000) g;
CREATE INDEX odd1 ON t.odd USING cairn (k);
VACUUM ANALYZE t.odd;
CREATE FUNCTION t.sequence() RETURNS int LANGUAGE sql AS $$ SELECT get_byte(pg_read_binary_file(pg_relation_filepath('t.odd1'), 64, 1), 0) % 2 $$;
DELETE FROM t.odd WHERE k BETWEEN 4000 AND 4005;
BEGIN;
DO $$ BEGIN PERFORM t.way('plain'); END $$;
DECLARE c CURSOR FOR SELECT k FROM t.odd WHERE k > 5;
MOVE 1 IN c;
\! "$PSQL" -X -q -c "SET statement_timeout = '2s'" -c 'VACUUM (INDEX_CLEANUP ON) t.odd' 2>/dev/null
COMMIT;
CHECKPOINT;
SELECT t.expect('a VACUUM that waited for the cursor', t.sequence(), 1);
VACUUM t.odd;
CHECKPOINT;
SELECT t.expect('the next one', t.sequence(), 0);
SELECT t.expect('left the rows in the index', cairn_check('t.odd1'), 8000::bigint);
VACUUM (INDEX_CLEANUP ON) t.odd;
SELECT t.expect('and the one after it did not', cairn_check('t.odd1'), 7994::bigint);
DROP TABLE t.odd, t.p;
DROP PROCEDURE t.only;
DROP FUNCTION t.sequence;

-- A merge join comes back to a mark behind the last leaf, which VACUUM has emptied: rows of the tail are all that is left there. Then the same backward, where the
-- first leaf is empty and the rows of the tail come before all others. (A join that asks for more than the key: one that does not needs no marks.)
CREATE TABLE t.m AS SELECT g k, 1 v FROM generate_series(1, 2000) g;
CREATE INDEX m1 ON t.m USING cairn (k) INCLUDE (v) WITH (page_rows = 64);
CREATE TABLE t.o AS SELECT k, 1 v FROM (VALUES (10), (1850), (5000), (5000), (5000)) x (k);
CREATE PROCEDURE t.join(direction text, pattern text, want text) LANGUAGE plpgsql AS $$
DECLARE
    query text := format('SELECT o.k FROM t.o WHERE EXISTS (SELECT FROM t.m WHERE m.k = o.k AND m.v <> o.v) ORDER BY o.k %s', direction);
    got text;
BEGIN
    PERFORM t.way('only');
    SET LOCAL enable_hashjoin = off; SET LOCAL enable_nestloop = off; SET LOCAL enable_material = off; SET LOCAL enable_sort = off;
    PERFORM t.planned(query, 'Merge Semi Join.*Sort.*Seq Scan on o.*' || pattern);
    EXECUTE format('SELECT string_agg(k::text, '' '') FROM (%s OFFSET 0) x', query) INTO got;
    PERFORM t.expect('joined ' || direction, got, want);
END $$;
DELETE FROM t.m WHERE k > 1900;
VACUUM ANALYZE t.m;
ANALYZE t.o;
SELECT t.expect('an empty leaf', (SELECT count(*) > 0 FROM cairn_page_stats('t.m1') WHERE kind = 'leaf' AND rows = 0), true);
INSERT INTO t.m VALUES (5000, 1), (5000, 2), (5001, 1);
CALL t.join('', 'Index Only Scan using m1', '5000 5000 5000');
VACUUM t.m;
DELETE FROM t.m WHERE k < 200;
VACUUM t.m;
INSERT INTO t.m VALUES (-5, 1), (-5, 2);
UPDATE t.o SET k = -5 WHERE k = 5000;
CALL t.join('DESC', 'Index Only Scan Backward using m1', '-5 -5 -5');
DROP TABLE t.m, t.o;
DROP PROCEDURE t.join;

-- VACUUM packs the leaf of a mark anew while the join is elsewhere. The join comes back to the mark, and once more without having left that leaf.
CREATE TABLE t.m (k int, v int, s char(200));
INSERT INTO t.m SELECT 0, g, 'x' FROM generate_series(1, 40) g;
INSERT INTO t.m SELECT 1, g, 'x' FROM generate_series(1, 200) g;
CREATE INDEX m1 ON t.m USING cairn (k) WITH (page_rows = 64);
CREATE TABLE t.o AS SELECT 1 k, w FROM (VALUES (150), (2), (3)) x (w);
CREATE INDEX o1 ON t.o (k);
VACUUM ANALYZE t.m;
ANALYZE t.o;
DELETE FROM t.m WHERE k = 0;
BEGIN;
SELECT t.way('plain');
SET LOCAL enable_hashjoin = off; SET LOCAL enable_nestloop = off; SET LOCAL enable_material = off;
SELECT t.planned('SELECT w FROM t.o WHERE EXISTS (SELECT FROM t.m WHERE m.k = o.k AND m.v - o.w = 0)', 'Merge Semi Join.*Index Scan using m1');
DECLARE c CURSOR FOR SELECT w FROM t.o WHERE EXISTS (SELECT FROM t.m WHERE m.k = o.k AND m.v - o.w = 0);
MOVE 1 IN c;
\! "$PSQL" -X -q -c "SET statement_timeout = '20s'" -c 'VACUUM (INDEX_CLEANUP ON) t.m'
SELECT t.expect('vacuumed under a join', cairn_check('t.m1'), 200::bigint);
DO $$ DECLARE r record; c refcursor := 'c'; BEGIN
    FETCH c INTO r;
    PERFORM t.expect('back at the mark', r.w, 2);
    FETCH c INTO r;
    PERFORM t.expect('and again', r.w, 3);
END $$;
COMMIT;
DROP TABLE t.m, t.o;

-- A materialized view that has not been populated has no rows to count.
CREATE MATERIALIZED VIEW t.mv AS SELECT g k FROM generate_series(1, 500) g WITH NO DATA;
CREATE INDEX mv1 ON t.mv USING cairn (k);
DO $$ BEGIN
    PERFORM t.way('aggregate');
    SET LOCAL enable_bitmapscan = off;
    PERFORM t.planned('SELECT count(*) FROM t.mv', 'Cairn Aggregate');
    PERFORM count(*) FROM t.mv;
    RAISE EXCEPTION 'it was counted';
EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL; END $$;
REFRESH MATERIALIZED VIEW t.mv;
SELECT t.same('SELECT count(*), sum(k) FROM t.mv');
DROP MATERIALIZED VIEW t.mv;

-- A leaf of a long key and many rows, half of which go: its parts' keys take more than the page that it was.
DO $$ BEGIN
    EXECUTE format('CREATE FUNCTION t.long(int) RETURNS text IMMUTABLE LANGUAGE sql AS $f$ SELECT %L || $1 %% 3 $f$',
        (SELECT string_agg(md5(g::text), '') FROM generate_series(1, 19) g));
END $$;
CREATE TABLE t.z AS SELECT g a, g b, g c, g d, g e, g f FROM generate_series(1, 100000) g;
CREATE INDEX z1 ON t.z USING cairn (t.long(a)) INCLUDE (a, b, c, d, e, f);
DELETE FROM t.z WHERE random() < 0.5;
VACUUM ANALYZE t.z;
SELECT t.expect('a page for more than its children', (SELECT count(*) > 2 FROM cairn_page_stats('t.z1') WHERE kind = 'split'), true);
SELECT t.expect('check', cairn_check('t.z1'), (SELECT count(*) FROM t.z));
SELECT t.same('SELECT a, f FROM t.z WHERE t.long(a) = t.long(2) AND b > 90000 ORDER BY a, f');
SELECT t.same('SELECT count(*), sum(f) FROM t.z WHERE t.long(a) > t.long(0)');
DELETE FROM t.z WHERE random() < 0.5;
VACUUM t.z;
SELECT t.expect('check', cairn_check('t.z1'), (SELECT count(*) FROM t.z));
INSERT INTO t.z SELECT g, g, g, g, g, g FROM generate_series(1, 100) g;
SELECT cairn_merge('t.z1');
SELECT t.expect('check', cairn_check('t.z1'), (SELECT count(*) FROM t.z));
SELECT t.same('SELECT count(*), sum(f) FROM t.z WHERE t.long(a) > t.long(0)');
DROP TABLE t.z;

-- The count of rows that VACUUM reports when it had nothing to remove is of the rows that are there.
CREATE TABLE t.n AS SELECT g k FROM generate_series(1, 2000) g;
CREATE INDEX n1 ON t.n USING cairn (k);
DELETE FROM t.n WHERE k > 500;
VACUUM t.n;
VACUUM (DISABLE_PAGE_SKIPPING) t.n;
SELECT t.expect('rows', (SELECT reltuples FROM pg_class WHERE oid = 't.n1'::regclass), 500::real);
DROP TABLE t.n;

-- Goal: a merge takes all of the tail, after one that failed half-way too, by hand and by VACUUM. Method: a merge has no room for its sort on disk when the
-- tail is frozen already, and rows come; then a second merge leaves no tail.
CREATE TABLE t.h (k int, s text);
CREATE INDEX h1 ON t.h USING cairn (s);
CREATE PROCEDURE t.fail_half_way() LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t.h SELECT g, md5(g::text) || repeat('x', 100) FROM generate_series(1, 40000) g;
    BEGIN
        SET LOCAL maintenance_work_mem = '1MB'; SET LOCAL temp_file_limit = 0;
        PERFORM cairn_merge('t.h1');
        RAISE EXCEPTION 'it was merged';
    EXCEPTION WHEN configuration_limit_exceeded THEN NULL; END;
    INSERT INTO t.h SELECT g, md5(g::text) FROM generate_series(1, 2000) g;
END $$;
CREATE FUNCTION t.tails() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM cairn_page_stats('t.h1') WHERE kind = 'tail' $$;
CALL t.fail_half_way();
SELECT t.expect('two tails', t.tails() > 10, true);
SELECT cairn_merge('t.h1');
SELECT t.expect('merged by hand', t.tails(), 0::bigint);
SELECT t.expect('check', cairn_check('t.h1'), 42000::bigint);
CALL t.fail_half_way();
VACUUM t.h;
SELECT t.expect('merged by VACUUM', t.tails(), 0::bigint);
SELECT t.expect('check', cairn_check('t.h1'), 84000::bigint);
SELECT t.same('SELECT s, k FROM t.h WHERE s < ''02'' ORDER BY s, k');
DROP TABLE t.h;
DROP PROCEDURE t.fail_half_way;
DROP FUNCTION t.tails;

-- Memory: of groups with numerics, of the marks of a merge join, of values that an INSERT reads compressed from another table, of hashes of keys, of scans that
-- are opened for each row.
CREATE TABLE t.g AS SELECT g k, g::int8 v FROM generate_series(1, 100000) g;
CREATE INDEX g1 ON t.g USING cairn (k) INCLUDE (v);
VACUUM ANALYZE t.g;
BEGIN;
DO $$ BEGIN PERFORM t.way('aggregate'); END $$;
SET LOCAL enable_bitmapscan = off;
SELECT t.planned('SELECT k, sum(v), avg(v) FROM t.g GROUP BY k', 'Cairn Aggregate');
DECLARE c CURSOR FOR SELECT k, sum(v), avg(v) FROM t.g GROUP BY k;
MOVE 10 IN c;
SELECT t.expect('memory of groups', t.memory('cairn%') < 3000000, true);
COMMIT;
CREATE TABLE t.s AS SELECT md5(g::text) s, g v FROM generate_series(1, 50000) g;
CREATE INDEX s1 ON t.s USING cairn (s);
VACUUM ANALYZE t.s;
BEGIN;
SELECT t.way('plain');
SET LOCAL enable_hashjoin = off; SET LOCAL enable_nestloop = off; SET LOCAL enable_material = off;
SELECT t.planned('SELECT a.v + b.v FROM t.s a JOIN t.s b USING (s)', 'Merge Join.*Index Scan using s1.*Index Scan using s1');
DECLARE c CURSOR FOR SELECT a.v + b.v FROM t.s a JOIN t.s b USING (s);
MOVE ALL IN c;
SELECT t.expect('memory of marks', t.memory('cairn conditions') < 1000000, true);
COMMIT;
CREATE FUNCTION t.measure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM t.expect('memory of ' || TG_RELID::regclass, t.memory('%') < 16000000, true);
    RETURN NULL;
END $$;
CREATE TABLE t.from AS SELECT repeat('long ', 500) s FROM generate_series(1, 10000) g;
CREATE TABLE t.into (s text);
CREATE INDEX into1 ON t.into USING cairn (s);
CREATE TRIGGER measure AFTER INSERT ON t.into FOR EACH STATEMENT EXECUTE FUNCTION t.measure();
INSERT INTO t.into SELECT s FROM t.from;
CREATE FUNCTION t.measure_keys() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM t.expect('memory of keys', t.memory('ExecutorState') < 1000000, true);
    RETURN NULL;
END $$;
CREATE TABLE t.keys (n numeric);
CREATE UNIQUE INDEX keys1 ON t.keys USING cairn (n);
CREATE TRIGGER measure AFTER INSERT ON t.keys FOR EACH STATEMENT EXECUTE FUNCTION t.measure_keys();
INSERT INTO t.keys SELECT generate_series(1, 100000);
CREATE TABLE t.each (k int, EXCLUDE USING cairn (k WITH =));
CREATE TRIGGER measure AFTER INSERT ON t.each FOR EACH STATEMENT EXECUTE FUNCTION t.measure();
INSERT INTO t.each SELECT g FROM generate_series(1, 1500) g;
DO $$ BEGIN
    INSERT INTO t.each VALUES (77);
    RAISE EXCEPTION 'a row that is excluded was taken';
EXCEPTION WHEN exclusion_violation THEN NULL; END $$;
DROP TABLE t.g, t.s, t.from, t.into, t.keys, t.each;
DROP FUNCTION t.measure, t.measure_keys, t.memory, t.long;

-- Goal: estimates know of a tail, whoever wrote it, and forget it when it is merged, though a session remembers that there was none. Method: what a scan costs
-- before its first row, first with no tail, then with those of this session and of another, the latter in pages that were free, and after each merge.
CREATE TABLE t.e (k int);
INSERT INTO t.e SELECT generate_series(1, 20000);
CREATE INDEX e1 ON t.e USING cairn (k);
VACUUM ANALYZE t.e;
CREATE FUNCTION t.is_dear() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    PERFORM t.way('plain');
    EXECUTE 'EXPLAIN (FORMAT JSON) SELECT k FROM t.e WHERE k = 7' INTO plan;
    RETURN (plan->0->'Plan'->>'Startup Cost')::numeric > 5;
END $$;
SELECT t.expect('no tail', t.is_dear(), false);
INSERT INTO t.e SELECT generate_series(1, 20000);
SELECT t.expect('a tail of our own', t.is_dear(), true);
SELECT cairn_merge('t.e1');
SELECT t.expect('merged', t.is_dear(), false);
SELECT t.expect('merged, as it is remembered', t.is_dear(), false);
\! "$PSQL" -X -q -c 'INSERT INTO t.e SELECT generate_series(1, 60000)'
SELECT t.expect('a longer tail of somebody else', t.is_dear(), true);
SELECT cairn_merge('t.e1');
VACUUM t.e;
SELECT t.expect('merged again', t.is_dear(), false);
\! "$PSQL" -X -q -c 'INSERT INTO t.e SELECT generate_series(1, 20000)'
-- The file is as long as before. A scan meets the tail.
DO $$ BEGIN PERFORM k FROM t.e WHERE k = -1; END $$;
SELECT t.expect('a tail of somebody else in free pages', t.is_dear(), true);
DROP TABLE t.e;

-- PostgreSQL 18 counts searches of an index, and asks one that is ordered for the ends of its first column where statistics are too old to know them: those of the tail count too.
SELECT current_setting('server_version_num')::int >= 180000 AS asks \gset
\if :asks
CREATE TABLE t.e AS SELECT generate_series(1, 20000) k;
CREATE INDEX e1 ON t.e USING cairn (k);
VACUUM ANALYZE t.e;
INSERT INTO t.e SELECT generate_series(20001, 40000);
CREATE FUNCTION t.told(query text, what text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    PERFORM t.way('plain');
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
    RETURN (plan->0->'Plan'->>what)::int;
END $$;
SELECT t.expect('searches', t.told('SELECT k FROM t.e WHERE k = 7', 'Index Searches'), 1);
SELECT t.expect('rows beyond the statistics', t.told('SELECT k FROM t.e WHERE k > 30000', 'Plan Rows') > 50, true);
DROP FUNCTION t.told;
DROP TABLE t.e;
\endif
