LOAD 'cairn';
-- Goal: every type that btree can index is indexed with btree's order. Method: for each type a table with NULLs and duplicates over negative
-- and positive values, three indexes (ascending, descending with NULLs first, second of two columns), random predicates in every way.
CREATE PROCEDURE t.type_test(type text, value text, queries int) LANGUAGE plpgsql AS $$
DECLARE
    a text;
    b text;
    op1 text;
    op2 text;
    ops text[] := ARRAY['<', '<=', '=', '>=', '>'];
    columns text;
BEGIN
    EXECUTE format('CREATE TABLE t.x AS SELECT CASE WHEN random() < 0.05 THEN NULL ELSE (%s)::%s END k, (random() * 20)::int j, g v
                    FROM generate_series(1, 3000) g', value, type);
    FOREACH columns IN ARRAY ARRAY['k) INCLUDE (j, v', 'k DESC NULLS LAST, v', 'j, k NULLS FIRST, v', 'j DESC, k DESC, v'] LOOP
        EXECUTE format('CREATE INDEX x1 ON t.x USING cairn (%s)', columns);
        PERFORM t.expect('cairn_check', cairn_check('t.x1'), 3000::bigint);
        FOR i IN 1..queries LOOP
            EXECUTE 'SELECT quote_literal(k::text) FROM t.x WHERE k IS NOT NULL ORDER BY random() LIMIT 1' INTO a;
            EXECUTE 'SELECT quote_literal(k::text) FROM t.x WHERE k IS NOT NULL ORDER BY random() LIMIT 1' INTO b;
            op1 := ops[1 + floor(random() * 5)];
            op2 := ops[1 + floor(random() * 5)];
            CASE floor(random() * 7)
                WHEN 0 THEN PERFORM t.same(format('SELECT k, j, v FROM t.x WHERE k %s %s ORDER BY k, j, v', op1, a));
                WHEN 1 THEN PERFORM t.same(format('SELECT k, j, v FROM t.x WHERE k %s %s AND k %s %s ORDER BY k DESC, v', op1, a, op2, b));
                WHEN 2 THEN PERFORM t.same(format('SELECT k, j, v FROM t.x WHERE k IN (%s, %s, NULL) ORDER BY k, v', a, b));
                WHEN 3 THEN PERFORM t.same(format('SELECT count(*), count(k), min(k::text), max(v), sum(j) FROM t.x WHERE k %s %s AND j %s %s',
                                                  op1, a, op2, floor(random() * 20)));
                WHEN 4 THEN PERFORM t.same(format('SELECT k, j, v FROM t.x WHERE j = %s AND k %s %s ORDER BY k NULLS FIRST, v', floor(random() * 20), op1, a));
                WHEN 5 THEN PERFORM t.same(format('SELECT k, j, v FROM t.x WHERE j IN (3, 7, 5, 3, 99) AND k %s %s ORDER BY j DESC, k DESC, v', op1, a));
                ELSE PERFORM t.same(format('SELECT v FROM t.x WHERE k IS %s NULL AND j < %s ORDER BY v',
                                           CASE WHEN random() < 0.5 THEN 'NOT' ELSE '' END, floor(random() * 20)));
            END CASE;
        END LOOP;
        -- The whole index in both directions is the order of a sort.
        PERFORM t.same('SELECT k, j, v FROM t.x ORDER BY k, v');
        PERFORM t.same('SELECT k, v FROM t.x WHERE j = 7 ORDER BY k DESC NULLS LAST, v DESC LIMIT 50');
        DROP INDEX t.x1;
    END LOOP;
    DROP TABLE t.x;
END $$;

CALL t.type_test('int2', '(random() - 0.5) * 60000', 25);
CALL t.type_test('int4', '(random() - 0.5) * 4e9', 25);
CALL t.type_test('int4', '(random() - 0.5) * 50', 25);
CALL t.type_test('int8', '(random() - 0.5) * 1e19 * 0.9', 25);
CALL t.type_test('date', E'date \'2000-01-01\' + ((random() - 0.5) * 40000)::int', 25);
CALL t.type_test('timestamp', E'timestamp \'2000-01-01\' + (random() - 0.5) * interval \'100 years\'', 20);
CALL t.type_test('timestamptz', E'timestamptz \'2000-01-01\' + (random() - 0.5) * interval \'100 years\'', 20);
CALL t.type_test('time', E'time \'00:00\' + random() * interval \'1 day\'', 15);
CALL t.type_test('timetz', E'time \'00:00\' + random() * interval \'1 day\'', 15);
CALL t.type_test('interval', E'(random() - 0.5) * interval \'1 year\'', 20);
CALL t.type_test('float4', 'CASE WHEN random() < 0.02 THEN ''NaN'' WHEN random() < 0.1 THEN ''-0'' ELSE ((random() - 0.5) * 100)::text END', 20);
CALL t.type_test('float8', 'CASE WHEN random() < 0.02 THEN ''Infinity'' WHEN random() < 0.1 THEN ''-0'' ELSE ((random() - 0.5) * 1e10)::text END', 20);
CALL t.type_test('numeric', 'round(((random() - 0.5) * 1000)::numeric, (random() * 6)::int)', 20);
CALL t.type_test('bool', 'random() < 0.5', 15);
CALL t.type_test('uuid', 'md5(((random() * 900)::int)::text)', 20);
CALL t.type_test('text', 'CASE WHEN random() < 0.1 THEN '''' ELSE repeat(chr(97 + (random() * 5)::int), (random() * 9)::int) || (random() * 100)::int END', 25);
CALL t.type_test('text', 'md5(random()::text) || repeat(''x'', (random() * 300)::int)', 15);
CALL t.type_test('name', 'left(md5(random()::text), (random() * 8)::int)', 15);
CALL t.type_test('varchar', 'left(md5(random()::text), (random() * 8)::int)', 15);
CALL t.type_test('char(7)', 'left(md5(random()::text), (random() * 8)::int)', 15);
CALL t.type_test('bytea', 'decode(left(md5(random()::text), 2 * (random() * 8)::int), ''hex'')', 20);
CALL t.type_test('oid', '(random() * 4294967295)::bigint', 20);
CALL t.type_test('"char"', 'chr(33 + (random() * 90)::int)', 15);
CALL t.type_test('money', '((random() - 0.5) * 1000)::numeric', 15);
CALL t.type_test('pg_lsn', 'upper(to_hex((random() * 2147483647)::int * (CASE WHEN random() < 0.5 THEN -1 ELSE 1 END))) || ''/7''', 15);
CALL t.type_test('inet', '((random() * 250)::int) || ''.1.2.'' || ((random() * 250)::int)', 15);
CALL t.type_test('macaddr', 'left(md5(random()::text), 12)', 15);
CALL t.type_test('int4[]', 'ARRAY[(random() * 5)::int, (random() * 5)::int]', 15);
CALL t.type_test('int4range', 'int4range((random() * 5)::int, 5 + (random() * 5)::int)', 15);
CALL t.type_test('text COLLATE "C"', 'md5(random()::text)', 10);
-- A type of an extension, whose class for btree ours is not made from: a class of its own does.
SELECT count(*) > 0 AS citext FROM pg_available_extensions WHERE name = 'citext' \gset
\if :citext
CREATE EXTENSION citext;
CREATE OPERATOR CLASS citext_ops DEFAULT FOR TYPE citext USING cairn AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 citext_cmp(citext, citext);
CALL t.type_test('citext', 'CASE WHEN random() < 0.5 THEN upper(left(md5(random()::text), 2)) ELSE left(md5(random()::text), 2) END', 10);
DROP OPERATOR FAMILY citext_ops USING cairn;
DROP EXTENSION citext;
\endif
DROP PROCEDURE t.type_test(text, text, int);

-- Goal: what an index-only scan returns is the value, with its scale. Method: numerics that are equal and print differently.
CREATE TABLE t.n AS SELECT g k, (g || '.00')::numeric(10,2) n FROM generate_series(1, 100) g;
CREATE INDEX n1 ON t.n USING cairn (k) INCLUDE (n);
SELECT t.same('SELECT k, n FROM t.n WHERE k <= 15 ORDER BY k');
DROP TABLE t.n;

-- Goal: the classes for patterns are refused where their equality is not that of bytes, in the words that a btree has for it. Method: each of them under a
-- collation that is blind to case, beside a btree; then under one that is not. (Catalogues since 16 have `unicode` without ICU too.)
SELECT count(*) > 0 AS icu FROM pg_collation WHERE collprovider = 'i' AND collname <> 'unicode' \gset
\if :icu
CREATE COLLATION t.blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE t.x (s text COLLATE t.blind, c char(9) COLLATE t.blind);
INSERT INTO t.x SELECT chr(65 + g % 26 + g % 2 * 32), chr(97 + g % 26 - g % 2 * 32) FROM generate_series(1, 600) g;
CREATE FUNCTION t.told(method text, columns text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE INDEX x1 ON t.x USING %s (%s)', method, columns);
    RETURN 'made';
EXCEPTION WHEN feature_not_supported THEN RETURN SQLERRM;
END $$;
DO $$
DECLARE columns text;
BEGIN
    FOREACH columns IN ARRAY ARRAY['s text_pattern_ops', 'c, s varchar_pattern_ops', 'c bpchar_pattern_ops'] LOOP
        PERFORM t.expect(columns, t.told('cairn', columns), t.told('btree', columns)), t.expect(columns, to_regclass('t.x1') IS NULL, true);
    END LOOP;
END $$;
SELECT t.expect('under another', t.told('cairn', 's COLLATE "C" text_pattern_ops, c COLLATE "C" bpchar_pattern_ops'), 'made');
DROP INDEX t.x1;
CREATE INDEX x1 ON t.x USING cairn (s) INCLUDE (c);
SELECT t.same('SELECT count(*), count(c) FROM t.x WHERE s = ''a''');
DROP TABLE t.x;
DROP FUNCTION t.told;
DROP COLLATION t.blind;
\endif
