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

-- Reads the same things twice in one snapshot, through the heap and through the index: one answer.
CREATE FUNCTION t.one(a int) RETURNS text LANGUAGE plpgsql STABLE SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    RETURN (SELECT t.answer(format('SELECT k, v FROM t.c WHERE k >= %s AND k < %s ORDER BY k, v', a, a + 150))) || ' ' ||
        (SELECT t.answer(format('SELECT count(*), sum(v), max(v), count(*) FILTER (WHERE v > 500) FROM t.c WHERE k >= %s', a)));
END $$;
CREATE PROCEDURE t.read_for(seconds int) LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + seconds * interval '1 second';
    a int;
    want text;
    got text;
    way text;
    rounds int := 0;
    serialized bool := current_setting('default_transaction_isolation') <> 'read committed';
BEGIN
    WHILE clock_timestamp() < until LOOP
        a := random() * 2000;
        BEGIN
            FOREACH way IN ARRAY ARRAY['plain', 'only', 'batch', 'bitmap', 'aggregate'] ||
                -- Workers take their time to start.
                CASE WHEN random() < 0.05 THEN ARRAY['parallel'] ELSE '{}' END LOOP
                IF serialized THEN
                    PERFORM t.way('heap');
                    want := t.one(a);
                    PERFORM t.way(way);
                    got := t.one(a);
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
    IF rounds < 5 THEN RAISE EXCEPTION 'only % comparisons', rounds; END IF;
END $$;

-- Keys that several sessions want at once. What each was told is written down.
CREATE TABLE t.q (k int, s text, who int);
CREATE UNIQUE INDEX q1 ON t.q USING cairn (k);
CREATE UNIQUE INDEX q2 ON t.q USING cairn (s) INCLUDE (who);
CREATE TABLE t.told (k int, taken bool);
CREATE PROCEDURE t.want_for(seconds int, me int) LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + seconds * interval '1 second';
    a int;
BEGIN
    WHILE clock_timestamp() < until LOOP
        a := random() * 3000;
        BEGIN
            INSERT INTO t.q SELECT g, 's' || g, me FROM generate_series(a, a + (random() * 3)::int) g;
            IF random() < 0.2 THEN
                UPDATE t.q SET who = -me WHERE k = a;
            ELSIF random() < 0.2 THEN
                DELETE FROM t.q WHERE k BETWEEN a - 10 AND a;
            ELSIF random() < 0.05 THEN
                RAISE unique_violation;
            END IF;
            INSERT INTO t.told VALUES (a, true);
        EXCEPTION WHEN unique_violation OR deadlock_detected THEN
            INSERT INTO t.told VALUES (a, false);
        END;
        COMMIT;
    END LOOP;
END $$;
