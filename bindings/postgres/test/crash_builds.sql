-- Waits until some build is in this phase. False if none is within a second.
CREATE FUNCTION t.in_phase(wanted text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE until timestamptz := clock_timestamp() + interval '1 second';
BEGIN
    WHILE clock_timestamp() < until LOOP
        -- What other sessions do is looked up once a transaction otherwise.
        PERFORM pg_stat_clear_snapshot();
        IF EXISTS (SELECT FROM pg_stat_progress_create_index WHERE phase LIKE wanted) THEN RETURN true; END IF;
        PERFORM pg_sleep(0.001);
    END LOOP;
    RETURN false;
END $$;
