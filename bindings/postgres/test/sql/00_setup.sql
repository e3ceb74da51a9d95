-- What the tests share. A query is answered once through the heap alone and then through each kind of index scan; all must agree.
CREATE EXTENSION IF NOT EXISTS cairn;
LOAD 'cairn';
CREATE SCHEMA IF NOT EXISTS t;

-- Switches for one way to run a query.
CREATE FUNCTION t.way(way text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- A plan that was switched off costs so much that it would be compiled.
    PERFORM set_config('jit', 'off', true);
    PERFORM set_config('enable_seqscan', CASE WHEN way = 'heap' THEN 'on' ELSE 'off' END, true);
    PERFORM set_config('enable_indexscan', CASE WHEN way IN ('plain', 'only', 'batch') THEN 'on' ELSE 'off' END, true);
    PERFORM set_config('enable_indexonlyscan', CASE WHEN way IN ('only', 'batch') THEN 'on' ELSE 'off' END, true);
    PERFORM set_config('enable_bitmapscan', CASE WHEN way = 'bitmap' THEN 'on' ELSE 'off' END, true);
    PERFORM set_config('enable_sort', CASE WHEN way = 'heap' THEN 'on' ELSE 'off' END, true);
    PERFORM set_config('cairn.enable_scan', CASE WHEN way = 'batch' THEN 'on' ELSE 'off' END, true);
    PERFORM set_config('cairn.enable_aggregate', CASE WHEN way IN ('aggregate', 'parallel') THEN 'on' ELSE 'off' END, true);
    -- Workers for whatever can have them, from here to the end of the transaction: pages so dear that it pays to share them.
    IF way = 'parallel' THEN
        PERFORM set_config(name, value, true) FROM (VALUES ('max_parallel_workers_per_gather', '2'), ('parallel_setup_cost', '0'), ('parallel_tuple_cost', '0'),
            ('min_parallel_index_scan_size', '0'), ('min_parallel_table_scan_size', '0'), ('seq_page_cost', '10000')) s(name, value);
    END IF;
END $$;

CREATE FUNCTION t.answer(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
    EXECUTE format('SELECT count(*) || '' '' || coalesce(md5(string_agg(r::text, ''|'')), '''') FROM (%s) r', query) INTO result;
    RETURN result;
END $$;

-- Fails unless every way gives the same rows; with ORDER BY over all columns in the query, in the same order.
CREATE FUNCTION t.same(query text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    want text;
    got text;
    way text;
BEGIN
    PERFORM t.way('heap');
    want := t.answer(query);
    FOREACH way IN ARRAY ARRAY['plain', 'only', 'batch', 'bitmap', 'aggregate'] LOOP
        PERFORM t.way(way);
        got := t.answer(query);
        IF got IS DISTINCT FROM want THEN
            RAISE EXCEPTION 'way % of "%": % instead of %', way, query, got, want;
        END IF;
    END LOOP;
    PERFORM t.way('heap');
END $$;

CREATE FUNCTION t.expect(what text, got anyelement, want anyelement) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF got IS DISTINCT FROM want THEN
        RAISE EXCEPTION '%: % instead of %', what, got, want;
    END IF;
END $$;

CREATE FUNCTION t.lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query;
END $$;

-- The plan must name what is expected of it, or the test tests nothing.
CREATE FUNCTION t.planned(query text, pattern text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE plan text := (SELECT string_agg(line || E'\n', '') FROM t.lines(query) line);
BEGIN
    IF plan !~ pattern THEN
        RAISE EXCEPTION 'the plan of "%" has no "%": %', query, pattern, plan;
    END IF;
END $$;

-- Random numbers that a seed repeats.
SELECT setseed(coalesce(nullif(current_setting('t.seed', true), '')::float8, 0.5));
