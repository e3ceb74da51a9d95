-- Goal: inserts, updates, deletes, VACUUM and merges leave the index answering as the heap does. Method: rounds of random writes with
-- queries in every way after each step, over tables whose indexes cover NULLs, duplicates, two columns and text.
LOAD 'cairn';
SET extra_float_digits = 0;
CREATE PROCEDURE t.queries() LANGUAGE plpgsql AS $$
DECLARE
    a int;
BEGIN
    FOR i IN 1..6 LOOP
        a := floor(random() * 1200) - 100;
        PERFORM t.same(format('SELECT k, s, v FROM t.w WHERE k >= %s AND k < %s ORDER BY k, s, v', a, a + 200));
        PERFORM t.same(format('SELECT k, v FROM t.w WHERE k = %s ORDER BY k, v', a));
        PERFORM t.same(format('SELECT s, v FROM t.w WHERE s > ''m%s'' ORDER BY s DESC, v LIMIT 40', floor(random() * 1000)));
        PERFORM t.same(format('SELECT count(*), sum(v), min(k), max(k) FROM t.w WHERE k > %s', a));
        PERFORM t.same(format('SELECT k, v FROM t.w WHERE k IN (%s, %s, %s) ORDER BY k DESC, v', a, a + 1, a + 77));
        PERFORM t.same('SELECT count(*), count(v) FROM t.w WHERE k IS NULL');
    END LOOP;
    PERFORM t.same('SELECT k, v FROM t.w ORDER BY k, v');
    PERFORM cairn_check('t.w1'), cairn_check('t.w2'), cairn_check('t.w3');
END $$;

CREATE TABLE t.w (k int, s text, v bigint);
CREATE INDEX w1 ON t.w USING cairn (k) INCLUDE (v, s);
CREATE INDEX w2 ON t.w USING cairn (s) INCLUDE (v);
CREATE INDEX w3 ON t.w USING cairn (k DESC NULLS LAST, v) WHERE v % 2 = 0;
-- An index over no rows.
CALL t.queries();
CREATE FUNCTION t.fill(rows int) RETURNS void LANGUAGE sql AS $$
    INSERT INTO t.w SELECT CASE WHEN random() < 0.03 THEN NULL ELSE (random() * 1000)::int END, 'm' || (random() * 1000)::int, (random() * 1e6)::int
    FROM generate_series(1, rows)
$$;
SELECT t.fill(500);
CALL t.queries();
SELECT cairn_merge('t.w1');
CALL t.queries();
SELECT t.fill(20000);
VACUUM t.w;
CALL t.queries();
-- Rounds. VACUUM cannot run in a procedure, so they are spelled out.
DELETE FROM t.w WHERE random() < 0.1;
UPDATE t.w SET v = v + 1 WHERE random() < 0.05;
CALL t.queries();
VACUUM t.w;
CALL t.queries();
UPDATE t.w SET k = k + 500 WHERE random() < 0.1;
SELECT t.fill(3000);
CALL t.queries();
SELECT cairn_merge('t.w1'), cairn_merge('t.w2'), cairn_merge('t.w3');
CALL t.queries();
DELETE FROM t.w WHERE k BETWEEN 100 AND 600;
VACUUM t.w;
CALL t.queries();
SELECT t.fill(5000);
CALL t.queries();
VACUUM FULL t.w;
CALL t.queries();
REINDEX INDEX t.w1;
REINDEX INDEX CONCURRENTLY t.w2;
CALL t.queries();
DELETE FROM t.w;
VACUUM t.w;
CALL t.queries();
SELECT t.fill(1000);
VACUUM t.w;
CALL t.queries();
SELECT t.fill(100);
TRUNCATE t.w;
CALL t.queries();
DROP PROCEDURE t.queries();
DROP TABLE t.w;

-- Goal: rows that compress together and not apart. Method: a leaf of one line of rows loses every third, then nearly all.
CREATE TABLE t.l AS SELECT g k, g v FROM generate_series(1, 200000) g;
CREATE INDEX l1 ON t.l USING cairn (k) INCLUDE (v);
SELECT t.expect('leaves', (SELECT count(DISTINCT block) FROM cairn_page_stats('t.l1') WHERE kind = 'leaf'), 4::bigint);
DELETE FROM t.l WHERE k % 3 = 0 OR k % 7 = 1 OR random() < 0.2;
VACUUM t.l;
SELECT t.expect('split pages', (SELECT count(*) > 0 FROM cairn_page_stats('t.l1') WHERE kind = 'split'), true);
SELECT t.same('SELECT count(*), sum(v) FROM t.l WHERE k BETWEEN 1000 AND 150000');
SELECT t.same('SELECT k, v FROM t.l WHERE k BETWEEN 65000 AND 67000 ORDER BY k DESC');
SELECT t.expect('rows', cairn_check('t.l1'), (SELECT count(*) FROM t.l));
INSERT INTO t.l SELECT g, g FROM generate_series(1, 200000, 5000) g;
SELECT cairn_merge('t.l1');
SELECT t.same('SELECT count(*), sum(v) FROM t.l WHERE k BETWEEN 1000 AND 150000');
SELECT t.expect('rows', cairn_check('t.l1'), (SELECT count(*) FROM t.l));
DELETE FROM t.l WHERE k > 10;
VACUUM t.l;
SELECT t.same('SELECT k FROM t.l ORDER BY k');
INSERT INTO t.l VALUES (5, 5);
-- Merging uses the pages again that it freed before.
SELECT cairn_merge('t.l1');
SELECT t.expect('free pages', (SELECT count(*) > 3 FROM cairn_page_stats('t.l1') WHERE kind = 'free'), true);
DROP TABLE t.l;

-- Goal: a row too large is refused when it comes, not at the next merge. Method: 4000 random bytes.
CREATE TABLE t.big (s text);
CREATE INDEX big1 ON t.big USING cairn (s);
DO $$ BEGIN
    INSERT INTO t.big SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 125);
    RAISE EXCEPTION 'the row was taken';
EXCEPTION WHEN program_limit_exceeded THEN NULL; END $$;
INSERT INTO t.big SELECT repeat('y', 2000);
INSERT INTO t.big VALUES ('short');
SELECT cairn_merge('t.big1');
SELECT t.same('SELECT length(s), s FROM t.big ORDER BY s');
DROP TABLE t.big;
