-- Reads the same things twice in one statement, through the heap and through the index: one snapshot, so one answer.
LOAD 'cairn';
SET default_transaction_isolation = :'level';
SET jit = off;
CREATE OR REPLACE FUNCTION pg_temp.one(way text, a int) RETURNS text LANGUAGE plpgsql STABLE
    SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    RETURN (SELECT t.answer(format('SELECT k, v FROM t.c WHERE k >= %s AND k < %s ORDER BY k, v', a, a + 150))) || ' ' ||
        (SELECT t.answer(format('SELECT count(*), sum(v), max(v) FROM t.c WHERE k >= %s', a)));
END $$;
CREATE OR REPLACE PROCEDURE pg_temp.read() LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + interval '10 seconds';
    a int;
    want text;
    got text;
    way text;
    rounds int := 0;
    snapshot text;
    serialized bool := current_setting('default_transaction_isolation') <> 'read committed';
BEGIN
    WHILE clock_timestamp() < until LOOP
        a := random() * 2000;
        BEGIN
            FOREACH way IN ARRAY ARRAY['plain', 'only', 'batch', 'bitmap', 'aggregate'] LOOP
                IF serialized THEN
                    PERFORM t.way('heap');
                    want := pg_temp.one('heap', a);
                    PERFORM t.way(way);
                    got := pg_temp.one(way, a);
                ELSE
                    -- At read committed each statement has a snapshot of its own: both halves in one.
                    SELECT (SELECT count(*) || ' ' || coalesce(sum(v), 0) FROM t.c WHERE k + 0 BETWEEN a AND a + 50),
                        (SELECT count(*) || ' ' || coalesce(sum(v), 0) FROM t.c WHERE k BETWEEN a AND a + 50)
                        INTO want, got FROM (SELECT t.way(way)) w;
                END IF;
                IF got IS DISTINCT FROM want THEN
                    RAISE EXCEPTION 'way % at %: % instead of %', way, a, got, want;
                END IF;
                rounds := rounds + 1;
            END LOOP;
        EXCEPTION WHEN serialization_failure THEN NULL;
        END;
        COMMIT;
    END LOOP;
    RAISE INFO '% comparisons at %', rounds, current_setting('default_transaction_isolation');
    IF rounds < 10 THEN RAISE EXCEPTION 'only % comparisons', rounds; END IF;
END $$;
CALL pg_temp.read();
