-- The access method, the operator classes of btree under its name, and functions for people.
\echo Use "CREATE EXTENSION cairn" to load this file. \quit

CREATE FUNCTION cairn_handler(internal) RETURNS index_am_handler AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
CREATE ACCESS METHOD cairn TYPE INDEX HANDLER cairn_handler;
COMMENT ON ACCESS METHOD cairn IS 'compressed sorted index for read-mostly tables';

CREATE FUNCTION cairn_merge(index regclass) RETURNS bigint AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION cairn_merge(regclass) IS 'moves rows inserted since the last merge into compressed pages; returns how many pages of them there were';

CREATE FUNCTION cairn_check(index regclass) RETURNS bigint AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION cairn_check(regclass) IS 'reads the whole index and fails where it is damaged; returns how many rows it has';

CREATE FUNCTION cairn_page_stats(index regclass, OUT block bigint, OUT kind text, OUT rows bigint, OUT "column" integer,
    OUT encoding text, OUT bytes bigint, OUT runs bigint, OUT strings bigint)
    RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION cairn_page_stats(regclass) IS 'what each page holds and how its columns are encoded; column 0 is the row ids';

-- Each family of btree once more: the same operators under the same numbers, and the comparison functions. Whoever may create functions in the extension's
-- schema could offer some that fit these calls better than PostgreSQL's own, so names are looked up in pg_catalog alone.
DO $make$
DECLARE
    home name := pg_catalog.current_schema();
    family record;
    class record;
    items text[];
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR family IN
        SELECT f.oid, f.opfname FROM pg_opfamily f
        WHERE f.opfmethod = (SELECT oid FROM pg_am WHERE amname = 'btree') AND f.opfnamespace = 'pg_catalog'::regnamespace
        ORDER BY f.opfname
    LOOP
        EXECUTE format('CREATE OPERATOR FAMILY %I.%I USING cairn', home, family.opfname);
        SELECT array_agg(format('OPERATOR %s %s (%s, %s)', o.amopstrategy, o.amopopr::regoper, format_type(o.amoplefttype, NULL),
                                format_type(o.amoprighttype, NULL)) ORDER BY o.oid)
            INTO items FROM pg_amop o WHERE o.amopfamily = family.oid AND o.amoppurpose = 's';
        items := items || ARRAY(
            SELECT format('FUNCTION 1 (%s, %s) %s', format_type(p.amproclefttype, NULL), format_type(p.amprocrighttype, NULL),
                          p.amproc::oid::regprocedure)
            FROM pg_amproc p WHERE p.amprocfamily = family.oid AND p.amprocnum = 1 ORDER BY p.oid);
        EXECUTE format('ALTER OPERATOR FAMILY %I.%I USING cairn ADD %s', home, family.opfname, array_to_string(items, ', '));
        -- Values are stored as they are, names too, which a btree keeps as cstring.
        FOR class IN
            SELECT c.opcname, c.opcintype, c.opcdefault FROM pg_opclass c WHERE c.opcfamily = family.oid ORDER BY c.opcname
        LOOP
            EXECUTE format('CREATE OPERATOR CLASS %I.%I %s FOR TYPE %s USING cairn FAMILY %I.%I AS STORAGE %s', home, class.opcname,
                           CASE WHEN class.opcdefault THEN 'DEFAULT' ELSE '' END, format_type(class.opcintype, NULL), home, family.opfname,
                           format_type(class.opcintype, NULL));
        END LOOP;
    END LOOP;
END
$make$;
