-- The tables of crash.sql, by every way.
LOAD 'cairn';
SELECT t.same('SELECT k, v FROM t.c ORDER BY k, v');
SELECT t.same('SELECT count(*), sum(k), sum(v), min(k), max(v) FROM t.c WHERE k BETWEEN 300 AND 900');
SELECT t.same(format('SELECT k, v FROM t.c WHERE k = %s ORDER BY k, v', (random() * 2000)::int));
SELECT t.same('SELECT s, k FROM t.c WHERE s > ''text 2'' ORDER BY s, k DESC');
SELECT t.same('SELECT s, k FROM t.c WHERE s = ''text 7'' AND k IN (5, 99, 100, 101, 1500) ORDER BY s DESC, k');
SELECT t.same('SELECT v FROM t.c WHERE k % 3 = 0 AND v > 500000 ORDER BY v');
SELECT t.same('SELECT k, count(*) FROM t.c GROUP BY k ORDER BY k');
SELECT CASE WHEN NOT pg_is_in_recovery() THEN cairn_check('t.c1') + cairn_check('t.c2') + cairn_check('t.c3') END;
