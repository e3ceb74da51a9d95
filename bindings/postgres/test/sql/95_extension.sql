-- Goal: CREATE EXTENSION makes the classes of btree, all of them and in the extension's own schema, whatever else stands there. Method: functions and operators that
-- fit the calls of its script better than PostgreSQL's own, and fail, in a schema with an odd name.
LOAD 'cairn';
DROP EXTENSION cairn;
CREATE SCHEMA "an odd 100% Schema";
SET search_path = "an odd 100% Schema";
CREATE FUNCTION format(text, name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the script was hijacked'; END $$;
CREATE FUNCTION array_to_string(text[], text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the script was hijacked'; END $$;
CREATE FUNCTION join_texts(text[], text[]) RETURNS text[] LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the script was hijacked'; END $$;
CREATE FUNCTION equal_to(oid, int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the script was hijacked'; END $$;
CREATE OPERATOR || (LEFTARG = text[], RIGHTARG = text[], FUNCTION = join_texts);
CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = int, FUNCTION = equal_to);
RESET search_path;
CREATE EXTENSION cairn SCHEMA "an odd 100% Schema";
SELECT t.expect('search_path', current_setting('search_path'), '"$user", public');
CREATE FUNCTION t.classes(method name) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s %s %s', c.opcname, c.opcdefault, format_type(c.opcintype, NULL)), ', ' ORDER BY c.opcname, c.opcintype::int8)
    FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
    WHERE a.amname = method AND c.opcnamespace = CASE method WHEN 'btree' THEN 'pg_catalog'::regnamespace ELSE '"an odd 100% Schema"'::regnamespace END
$$;
CREATE FUNCTION t.members(method name) RETURNS text LANGUAGE sql AS $$
    SELECT (SELECT string_agg(format('%s %s %s %s', f.opfname, o.amopstrategy, o.amopopr, o.amoppurpose), ', ' ORDER BY f.opfname, o.amopstrategy, o.amopopr::int8)
            FROM pg_amop o JOIN pg_opfamily f ON f.oid = o.amopfamily JOIN pg_am a ON a.oid = f.opfmethod WHERE a.amname = method AND o.amopopr < 16384) ||
        (SELECT string_agg(format('%s %s %s', f.opfname, p.amproc, p.amprocnum), ', ' ORDER BY f.opfname, p.amproc::oid::int8)
            FROM pg_amproc p JOIN pg_opfamily f ON f.oid = p.amprocfamily JOIN pg_am a ON a.oid = f.opfmethod WHERE a.amname = method AND p.amprocnum = 1 AND p.amproc::oid < 16384)
$$;
SELECT t.expect('classes', t.classes('cairn'), t.classes('btree'));
SELECT t.expect('members', t.members('cairn'), t.members('btree'));
CREATE TABLE t.x AS SELECT g k, ('n' || g)::name n FROM generate_series(1, 500) g;
CREATE INDEX x1 ON t.x USING cairn (n, k);
SELECT t.same('SELECT k, n FROM t.x WHERE n > ''n3'' ORDER BY k');
SELECT t.expect('rows', "an odd 100% Schema".cairn_check('t.x1'), 500::bigint);
DROP TABLE t.x;
DROP FUNCTION t.classes, t.members;
DROP EXTENSION cairn;
DROP SCHEMA "an odd 100% Schema" CASCADE;
CREATE EXTENSION cairn;
