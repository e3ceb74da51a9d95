-- A table with three indexes that is written to, and one that is not logged.
CREATE TABLE t.c AS SELECT (random() * 2000)::int k, 'text ' || (random() * 300)::int s, g v FROM generate_series(1, 20000) g;
CREATE INDEX c1 ON t.c USING cairn (k) INCLUDE (v);
CREATE INDEX c2 ON t.c USING cairn (s, k DESC);
CREATE INDEX c3 ON t.c USING cairn (v) WHERE k % 3 = 0;
CREATE UNLOGGED TABLE t.u AS SELECT g k FROM generate_series(1, 1000) g;
CREATE INDEX u1 ON t.u USING cairn (k);
VACUUM ANALYZE t.c;

CREATE FUNCTION t.step() RETURNS void LANGUAGE plpgsql AS $$
DECLARE a int := random() * 2000;
BEGIN
    INSERT INTO t.c SELECT (random() * 2000)::int, 'text ' || (random() * 300)::int, (random() * 1e6)::int FROM generate_series(1, 40);
    DELETE FROM t.c WHERE k BETWEEN a AND a + 3;
    UPDATE t.c SET k = k + 1 WHERE k = a + 9;
    UPDATE t.c SET v = v + 1 WHERE k = a + 20;
END $$;
CREATE FUNCTION t.churn(steps int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..steps LOOP PERFORM t.step(); END LOOP;
END $$;
-- Each step is a transaction. Two of these meet on rows: whoever loses tries again.
CREATE PROCEDURE t.churn_for(seconds int) LANGUAGE plpgsql AS $$
DECLARE until timestamptz := clock_timestamp() + seconds * interval '1 second';
BEGIN
    WHILE clock_timestamp() < until LOOP
        BEGIN
            PERFORM t.step();
        EXCEPTION WHEN deadlock_detected OR serialization_failure THEN NULL;
        END;
        COMMIT;
    END LOOP;
END $$;
