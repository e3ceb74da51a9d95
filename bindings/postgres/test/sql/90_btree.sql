-- Goal: what PostgreSQL's own tests ask of btree, and more, has btree's answers here. Method: every operator of every operator class, between all types
-- that it takes, over values at the ends of their ranges; then queries of the shapes that those tests have. Each is answered by the heap, by a btree
-- and by each kind of scan of ours.
LOAD 'cairn';
SET jit = off;
SET extra_float_digits = 0;
CREATE TYPE t.mood AS ENUM ('sad', 'ok', 'happy', 'better');
CREATE TYPE t.pair AS (a int, b text);
CREATE TABLE t.samples (type text PRIMARY KEY, sample_values text[]);
INSERT INTO t.samples VALUES
    ('boolean', '{t,f}'), ('"char"', '{a,b,z,~,"\\377"}'), ('name', '{"",a,ab,b,zzz,A,é}'), ('text', '{"",a,ab,"ab ",b,zzz,A,é}'),
    ('character', '{"",a,"a ",b,z,A}'), ('bytea', '{"","\\x00","\\x0001","\\x01","\\xff","\\xff00"}'),
    ('smallint', '{-32768,-1,0,1,77,32767}'), ('integer', '{-2147483648,-32769,-1,0,1,77,32768,2147483647}'),
    ('bigint', '{-9223372036854775808,-2147483649,-1,0,1,77,2147483648,9223372036854775807}'), ('oid', '{0,1,2147483648,4294967295}'),
    ('real', '{-Infinity,-1e30,-0,0,1e-30,77,Infinity,NaN}'), ('double precision', '{-Infinity,-1e300,-0,0,0.1,1e-300,77,Infinity,NaN}'),
    ('numeric', '{-Infinity,-1e40,-0.10,0,0.1,0.10,77,1e40,Infinity,NaN}'), ('money', '{-92233720368547758.08,-1,0,0.01,92233720368547758.07}'),
    ('date', '{-infinity,"4713-01-01 BC",1999-12-31,2000-01-01,2000-01-02,5874897-12-31,infinity}'),
    ('time without time zone', '{00:00,00:00:00.000001,12:00,23:59:59.999999,24:00}'),
    ('time with time zone', '{00:00+14,00:00-14,12:00+00,13:00+01,24:00-15:59}'),
    ('timestamp without time zone', '{-infinity,"4713-01-01 00:00:00 BC","1999-12-31 23:59:59.999999",2000-01-01,2000-01-02,"294276-12-31 23:59:59",infinity}'),
    ('timestamp with time zone', '{-infinity,"4713-01-02 00:00:00+00 BC","1999-12-31 23:59:59.999999+00",2000-01-01,2000-01-02,"294276-12-30 23:59:59+00",infinity}'),
    ('interval', '{"-178000000 years",-1 mon,-30 days,0,1 day,24:00:00,30 days,1 mon,"178000000 years"}'),
    ('uuid', '{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001,7fffffff-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff}'),
    ('inet', '{0.0.0.0/0,10.0.0.0/8,10.0.0.1,10.0.0.1/8,255.255.255.255,::,::1,ffff::/16}'),
    ('macaddr', '{00:00:00:00:00:00,00:00:00:00:00:01,ff:ff:ff:ff:ff:ff}'), ('macaddr8', '{00:00:00:00:00:00:00:00,00:00:00:00:00:00:00:01,ff:ff:ff:ff:ff:ff:ff:ff}'),
    ('bit', '{0,1}'), ('bit varying', '{"",0,00,01,1,10}'), ('oidvector', '{"","1","1 2","2","4294967295"}'), ('pg_lsn', '{0/0,0/1,7FFFFFFF/FFFFFFFF,80000000/0,FFFFFFFF/FFFFFFFF}'),
    ('xid8', '{0,1,9223372036854775807,9223372036854775808,18446744073709551615}'), ('tid', '{"(0,1)","(0,2)","(1,1)","(4294967294,65535)"}'),
    ('tsvector', '{"","a","a:1","a b","zz"}'), ('tsquery', '{"a","a & b","b","!a"}'),
    ('jsonb', '{"null","1","1.0","\"a\"","[]","[1]","{}","{\"a\":1}","true"}'), ('anyarray', '{"{}","{NULL}","{1}","{1,2}","{2}"}'),
    ('anyenum', '{sad,ok,better}'), ('anyrange', '{empty,"(,)","[1,5)","[1,6)","[2,3)","(,3)"}'),
    ('anymultirange', '{"{}","{(,)}","{[1,5)}","{[1,2),[4,5)}"}'), ('record', '{"(1,a)","(1,b)","(1,)","(,a)","(2,)"}');

-- The type that stands for a polymorphic one.
CREATE FUNCTION t.real_type(type text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE type WHEN 'anyarray' THEN 'int[]' WHEN 'anyenum' THEN 't.mood' WHEN 'anyrange' THEN 'int4range' WHEN 'anymultirange' THEN 'int4multirange'
        WHEN 'record' THEN 't.pair' WHEN 'character' THEN 'char(3)' WHEN 'bit' THEN 'bit(1)' ELSE type END
$$;
-- The answers of t.same, and that of a btree over the same column.
CREATE PROCEDURE t.as_btree(query text) LANGUAGE plpgsql AS $$
DECLARE want text;
BEGIN
    PERFORM t.way('plain');
    want := t.answer(replace(query, 't.oc', 't.ob'));
    PERFORM t.way('heap');
    PERFORM t.expect(query, t.answer(query), want);
    PERFORM t.same(query);
END $$;
CREATE PROCEDURE t.operators() LANGUAGE plpgsql AS $$
DECLARE
    class record;
    op record;
    type text;
    sample text;
    other text;
    tried int := 0;
    missing text;
BEGIN
    SELECT string_agg(DISTINCT format_type(c.opcintype, NULL), ', ') INTO missing FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
        WHERE a.amname = 'cairn' AND format_type(c.opcintype, NULL) NOT IN (SELECT s.type FROM t.samples s);
    IF missing IS NOT NULL THEN RAISE EXCEPTION 'no samples of %', missing; END IF;
    FOR class IN SELECT c.opcname, c.opcfamily, c.opcintype, format_type(c.opcintype, NULL) AS name FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
        WHERE a.amname = 'cairn' ORDER BY 1 LOOP
        type := t.real_type(class.name);
        EXECUTE format('CREATE TABLE t.oc AS SELECT s.x::%s AS k, g v FROM t.samples, unnest(sample_values || NULL::text) s(x), generate_series(1, 4) g WHERE type = %L',
                       type, class.name);
        CREATE TABLE t.ob AS SELECT * FROM t.oc;
        EXECUTE format('CREATE INDEX oc1 ON t.oc USING cairn (k %s)', class.opcname);
        EXECUTE format('CREATE INDEX ob1 ON t.ob USING btree (k %s)', class.opcname);
        PERFORM cairn_check('t.oc1');
        FOR op IN SELECT o.amopopr::regoper AS name, t.real_type(format_type(o.amoprighttype, NULL)) AS right_type, s.sample_values, p.oprname, n.nspname
            FROM pg_amop o JOIN pg_operator p ON p.oid = o.amopopr JOIN pg_namespace n ON n.oid = p.oprnamespace
            LEFT JOIN t.samples s ON s.type = format_type(o.amoprighttype, NULL)
            WHERE o.amopfamily = class.opcfamily AND o.amoplefttype = class.opcintype ORDER BY o.amoprighttype, o.amopstrategy LOOP
            FOREACH sample IN ARRAY op.sample_values LOOP
                CALL t.as_btree(format('SELECT k::text, v FROM t.oc WHERE k OPERATOR(%I.%s) %L::%s ORDER BY v, k::text', op.nspname, op.oprname, sample, op.right_type));
                tried := tried + 1;
            END LOOP;
            -- An array of arrays is another thing.
            IF op.oprname = '=' AND class.name <> 'anyarray' THEN
                other := op.sample_values[1 + floor(random() * cardinality(op.sample_values))];
                CALL t.as_btree(format('SELECT k::text, v FROM t.oc WHERE k = ANY (ARRAY[%L, %L, NULL]::%s[]) ORDER BY v, k::text', op.sample_values[1], other, op.right_type));
            END IF;
        END LOOP;
        CALL t.as_btree('SELECT k::text, v FROM t.oc WHERE k IS NULL ORDER BY v');
        CALL t.as_btree('SELECT count(*), count(k) FROM t.oc WHERE k IS NOT NULL');
        DROP TABLE t.oc, t.ob;
        COMMIT;
    END LOOP;
    PERFORM t.expect('operators were tried', tried > 1500, true);
END $$;
CALL t.operators();

-- Queries of several columns. Equal keys, NULLs in each column, values that are sparse.
CREATE TABLE t.oc AS SELECT CASE WHEN random() < 0.05 THEN NULL ELSE (random() * 40)::int END a, CASE WHEN random() < 0.05 THEN NULL ELSE (random() * 60)::int2 END b,
    CASE WHEN random() < 0.05 THEN NULL ELSE 'item ' || (random() * 90)::int END c, random() < 0.3 f, g v FROM generate_series(1, 12000) g;
CREATE TABLE t.ob AS SELECT * FROM t.oc;
CREATE PROCEDURE t.index_both(columns text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'CREATE INDEX oc1 ON t.oc USING cairn ' || columns;
    EXECUTE 'CREATE INDEX ob1 ON t.ob USING btree ' || columns;
END $$;
CREATE PROCEDURE t.shapes() LANGUAGE plpgsql AS $$
DECLARE
    i int;
    x int;
    y int;
    z text;
BEGIN
    FOR i IN 1..5 LOOP
        x := (random() * 44)::int - 2;
        y := (random() * 64)::int - 2;
        z := quote_literal('item ' || (random() * 90)::int);
        -- Conditions that contradict each other, that say one thing twice, and that no value of the type can meet.
        CALL t.as_btree(format('SELECT a, b, v FROM t.oc WHERE a = %s AND a = %s ORDER BY v', x, x + 1));
        CALL t.as_btree(format('SELECT a, b, v FROM t.oc WHERE a > %s AND a >= %s AND a < %s AND a <= 1000000000000 ORDER BY v', x, x + 1, x + 20));
        CALL t.as_btree(format('SELECT a, v FROM t.oc WHERE a > %s AND a < %s ORDER BY v', x + 5, x));
        CALL t.as_btree(format('SELECT a, b, v FROM t.oc WHERE a = %s AND b < 100000 AND b > -5000000000::int8 ORDER BY v', x));
        CALL t.as_btree(format('SELECT a, v FROM t.oc WHERE a IN (%s, %s, NULL, %s) AND a > %s ORDER BY v', x, x + 7, x, x));
        CALL t.as_btree(format('SELECT a, v FROM t.oc WHERE a = ANY (ARRAY[%s, %s, 9999999999]::int8[]) AND b IN (1, %s, 2) ORDER BY v', x, x + 1, y));
        CALL t.as_btree('SELECT a, v FROM t.oc WHERE a = ANY (''{}''::int[]) ORDER BY v');
        CALL t.as_btree('SELECT a, v FROM t.oc WHERE a = ANY (NULL::int[]) OR a = NULL ORDER BY v');
        -- Rows.
        CALL t.as_btree(format('SELECT a, b, v FROM t.oc WHERE (a, b) > (%s, %s) ORDER BY v', x, y));
        CALL t.as_btree(format('SELECT a, b, v FROM t.oc WHERE (a, b) <= (%s, %s) AND (a, b) > (%s, NULL) ORDER BY v', x + 9, y, x));
        CALL t.as_btree(format('SELECT a, b, c, v FROM t.oc WHERE (a, b, c) >= (%s, %s, %s) AND a < %s ORDER BY v', x, y, z, x + 5));
        CALL t.as_btree(format('SELECT a, b, v FROM t.oc WHERE (b, c) < (%s, %s) AND a = %s ORDER BY v', y, z, x));
        -- NULLs.
        CALL t.as_btree(format('SELECT a, b, v FROM t.oc WHERE a IS NULL AND b > %s ORDER BY v', y));
        CALL t.as_btree(format('SELECT a, b, v FROM t.oc WHERE a = %s AND b IS NULL AND c IS NOT NULL ORDER BY v', x));
        CALL t.as_btree(format('SELECT a, b, v FROM t.oc WHERE a IS NOT NULL AND b IS NULL AND a < %s ORDER BY v', x));
        -- Only a later column; a gap between columns.
        CALL t.as_btree(format('SELECT a, b, v FROM t.oc WHERE b = %s ORDER BY v', y));
        CALL t.as_btree(format('SELECT a, c, v FROM t.oc WHERE a BETWEEN %s AND %s AND c = %s ORDER BY v', x, x + 4, z));
        CALL t.as_btree(format('SELECT c, v FROM t.oc WHERE c LIKE ''item 1%%'' AND a = %s ORDER BY v', x));
        -- Order, in both directions, from the middle, with an end.
        CALL t.as_btree(format('SELECT a, b, c, v FROM t.oc WHERE a >= %s ORDER BY a, b, c, v LIMIT 40', x));
        CALL t.as_btree(format('SELECT a, b, c, v FROM t.oc WHERE a <= %s ORDER BY a DESC, b DESC, c DESC, v DESC LIMIT 40', x));
        CALL t.as_btree(format('SELECT a, b, c, v FROM t.oc WHERE a IN (%s, %s, %s) ORDER BY a DESC NULLS LAST, b DESC NULLS LAST, c DESC NULLS LAST, v DESC OFFSET 20 LIMIT 40', x, x + 1, x + 11));
        CALL t.as_btree(format('SELECT a, b, c, v FROM t.oc ORDER BY a NULLS FIRST, b, c, v OFFSET %s LIMIT 30', abs(x) * 100));
        CALL t.as_btree('SELECT min(a), max(a), (SELECT max(b) FROM t.oc WHERE a = 7), (SELECT min(b) FROM t.oc WHERE a = 8) FROM t.oc');
        CALL t.as_btree(format('SELECT DISTINCT ON (a) a, b, v FROM t.oc WHERE a > %s ORDER BY a, b, c, v', x));
        -- Joins: by merging equal keys, which goes back to the first of them, and by looking each up.
        SET LOCAL enable_hashjoin = off;
        SET LOCAL enable_nestloop = off;
        CALL t.as_btree(format('SELECT x.a, count(*), sum(x.v - y.v) FROM t.oc x JOIN t.oc y USING (a, b) WHERE x.a > %s GROUP BY x.a ORDER BY x.a', x));
        SET LOCAL enable_mergejoin = off;
        SET LOCAL enable_nestloop = on;
        CALL t.as_btree(format('SELECT g, count(y.v), min(y.c) FROM generate_series(%s, %s) g LEFT JOIN t.oc y ON y.a = g AND y.b > g GROUP BY g ORDER BY g', x, x + 12));
        CALL t.as_btree(format('SELECT g, y.v FROM generate_series(%s, %s) g, LATERAL (SELECT v FROM t.oc WHERE a = g AND b < %s ORDER BY a, b, c, v LIMIT 2) y ORDER BY 1, 2', x, x + 12, y));
        SET LOCAL enable_mergejoin = on;
        SET LOCAL enable_hashjoin = on;
        COMMIT;
    END LOOP;
END $$;
CALL t.index_both('(a, b, c) INCLUDE (v)');
VACUUM ANALYZE t.oc;
CALL t.shapes();
DROP INDEX t.oc1, t.ob1;
CALL t.index_both('(a DESC, b NULLS FIRST, c DESC NULLS LAST, v)');
CALL t.shapes();
DELETE FROM t.oc WHERE v % 9 = 4;
DELETE FROM t.ob WHERE v % 9 = 4;
INSERT INTO t.oc SELECT 7, v % 50, 'item ' || v % 80, true, v + 20000 FROM t.oc WHERE v < 300;
INSERT INTO t.ob SELECT * FROM t.oc WHERE v > 20000;
CALL t.shapes();
VACUUM t.oc;
CALL t.shapes();
DROP INDEX t.oc1, t.ob1;
CALL t.index_both('(f, c text_pattern_ops, a, b) INCLUDE (v) WHERE a IS NOT NULL');
CALL t.as_btree('SELECT c, v FROM t.oc WHERE f AND a IS NOT NULL AND c LIKE ''item 4%'' ORDER BY v');
CALL t.as_btree('SELECT c, a, v FROM t.oc WHERE NOT f AND c = ''item 40'' AND a > 3 ORDER BY v');
CALL t.as_btree('SELECT count(*) FROM t.oc WHERE f IS TRUE AND a IS NOT NULL');
DROP INDEX t.oc1, t.ob1;
CALL t.index_both('(lower(c), abs(a)) INCLUDE (v)');
CALL t.as_btree('SELECT v FROM t.oc WHERE lower(c) = ''item 40'' AND abs(a) > 3 ORDER BY v');
CALL t.as_btree('SELECT lower(c), v FROM t.oc WHERE lower(c) > ''item 8'' ORDER BY lower(c), abs(a), v LIMIT 99');
DROP TABLE t.oc, t.ob;

-- A tall tree: keys so long that an inner page has few of them, most of which go, and come again.
CREATE TABLE t.oc AS SELECT g id, g || '_' || (SELECT string_agg(md5((i * g)::text), '_') FROM generate_series(1, 50) i) s FROM generate_series(1, 400) g;
CREATE TABLE t.ob AS SELECT * FROM t.oc;
CALL t.index_both('(s, id)');
SELECT t.expect('levels', (SELECT count(*) > 20 FROM cairn_page_stats('t.oc1') WHERE kind = 'inner'), true);
CALL t.as_btree('SELECT id, left(s, 5) FROM t.oc WHERE s > ''3'' AND s < ''34'' ORDER BY s DESC, id');
DELETE FROM t.oc WHERE id < 390;
DELETE FROM t.ob WHERE id < 390;
VACUUM t.oc;
CALL t.as_btree('SELECT id, left(s, 5) FROM t.oc ORDER BY s, id');
INSERT INTO t.oc SELECT g, repeat('x', 100) FROM generate_series(1, 500) g;
INSERT INTO t.ob SELECT * FROM t.oc WHERE s LIKE 'x%';
SELECT cairn_merge('t.oc1');
SELECT t.expect('rows', cairn_check('t.oc1'), 511::bigint);
CALL t.as_btree('SELECT id, left(s, 5) FROM t.oc WHERE s >= ''39'' ORDER BY s, id');
DROP TABLE t.oc, t.ob, t.samples;
DROP PROCEDURE t.as_btree, t.operators, t.shapes, t.index_both;
DROP FUNCTION t.real_type;
DROP TYPE t.mood, t.pair;
