-- Forty indexes of several shapes to be damaged one by one.
SELECT setseed(0.5);
CREATE TABLE t.d AS SELECT CASE WHEN g % 11 = 0 THEN NULL ELSE (random() * 3000)::int END k, 'text ' || (random() * 300)::int s, g v
    FROM generate_series(1, 20000) g;
DO $$ BEGIN
    FOR i IN 1..10 LOOP
        EXECUTE format('CREATE INDEX dx%sa ON t.d USING cairn (k) INCLUDE (v)', i);
        EXECUTE format('CREATE INDEX dx%sb ON t.d USING cairn (s, v)', i);
        EXECUTE format('CREATE INDEX dx%sc ON t.d USING cairn (v)', i);
        EXECUTE format('CREATE INDEX dx%sd ON t.d USING cairn (k, s) WITH (page_rows = 300)', i);
    END LOOP;
END $$;
INSERT INTO t.d SELECT g, 'later', g FROM generate_series(1, 300) g;
CREATE TABLE t.outcome (failed int, answered int);
CREATE TABLE t.other (index text, message text);
-- Uses each index alone: the others are marked as not to be planned with.
CREATE FUNCTION t.read_damaged() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    i regclass;
    query text;
    failed int := 0;
    answered int := 0;
BEGIN
    SET LOCAL enable_seqscan = off;
    SET LOCAL jit = off;
    FOR i IN SELECT oid FROM pg_class WHERE relname LIKE 'dx%' AND relkind = 'i' LOOP
        UPDATE pg_index SET indisvalid = (indexrelid = i) WHERE indrelid = 't.d'::regclass;
        FOREACH query IN ARRAY ARRAY['SELECT cairn_check(' || quote_literal(i::text) || ')', 'SELECT * FROM cairn_page_stats(' || quote_literal(i::text) || ')',
            'SELECT count(k), sum(v), count(s) FROM t.d WHERE k BETWEEN 100 AND 2500', 'SELECT count(*) FROM t.d WHERE s > ''text 1''',
            'SELECT * FROM t.d WHERE v = 777', 'SELECT k FROM t.d WHERE k IS NOT NULL ORDER BY k DESC LIMIT 5000', 'SELECT k, count(*) FROM t.d GROUP BY k',
            'SELECT sum(v), min(v), max(v) FROM t.d WHERE v > 3'] LOOP
            BEGIN
                EXECUTE query;
                answered := answered + 1;
            EXCEPTION
                WHEN index_corrupted OR data_corrupted OR feature_not_supported THEN failed := failed + 1;
                -- A number of a page that the file does not have, or a file that it would be in: PostgreSQL's own error, which names both.
                WHEN internal_error OR undefined_file THEN
                    failed := failed + 1;
                    IF SQLERRM NOT LIKE 'could not % (target block %' THEN INSERT INTO t.other VALUES (i::text, SQLERRM); END IF;
                WHEN OTHERS THEN
                    failed := failed + 1;
                    INSERT INTO t.other VALUES (i::text, SQLSTATE || ' ' || SQLERRM);
            END;
        END LOOP;
    END LOOP;
    INSERT INTO t.outcome VALUES (failed, answered);
END $$;
