-- tokio-postgres: a type by its number
SELECT t.typname, t.typtype, t.typelem, r.rngsubtype, t.typbasetype, n.nspname, t.typrelid FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_range r ON r.rngtypid = t.oid INNER JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid WHERE t.oid = 2950
-- gives
-- uuid|b|0||0|pg_catalog|0;

-- tokio-postgres: labels of an enumeration
SELECT enumlabel FROM pg_catalog.pg_enum WHERE enumtypid = 2950 ORDER BY enumsortorder
-- gives
;

-- tokio-postgres: fields of a composite type
SELECT attname, atttypid FROM pg_catalog.pg_attribute WHERE attrelid = 1 AND NOT attisdropped AND attnum > 0 ORDER BY attnum
-- gives
;

-- sqlx: a type by its number
SELECT oid::regtype::text, typtype, typcategory, typrelid, typelem, typbasetype FROM pg_catalog.pg_type WHERE oid = 1082
-- gives
-- date|b|D|0|0|0;

-- sqlx: a type by its name
SELECT oid FROM pg_catalog.pg_type WHERE typname ILIKE 'UUID'
-- gives
-- 2950;

-- sqlx: whether columns may be NULL
SELECT NOT attnotnull FROM pg_catalog.pg_attribute WHERE attrelid = {public.customers} AND attnum = 2
-- gives
-- f;

-- psycopg: what a type is
SELECT typname AS name, oid, typarray AS array_oid, oid::regtype::text AS regtype, typdelim AS delimiter FROM pg_type t WHERE t.oid = to_regtype('uuid') ORDER BY t.oid
-- gives
-- uuid|2950|2951|uuid|,;

-- pgbench: a partitioned pgbench_accounts
select o.n, p.partstrat, pg_catalog.count(i.inhparent) from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on (n.oid = c.relnamespace) cross join lateral (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) as o(n) left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid) left join pg_catalog.pg_inherits as i on (c.oid = i.inhparent) where c.relname = 'pgbench_accounts' and o.n is not null group by 1, 2 order by 1 asc limit 1
-- gives
;

-- anyone: where and who
select version(), current_database(), current_schema(), current_user, session_user, pg_is_in_recovery(), current_setting('server_version_num');

-- anyone: tables of the standard
select table_schema, table_name, table_type from information_schema.tables where table_schema not in ('pg_catalog', 'information_schema') order by 1, 2
-- gives
-- app|log|BASE TABLE
-- public|active_customers|VIEW
-- public|customers|BASE TABLE
-- public|orders|BASE TABLE;

-- anyone: columns of the standard
select column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length, numeric_precision, numeric_scale, udt_name from information_schema.columns where table_schema = 'public' and table_name = 'orders' order by ordinal_position
-- gives
-- id|1||NO|bigint||64|0|int8
-- line|2||NO|smallint||16|0|int2
-- customer|3||YES|integer||32|0|int4
-- placed|4||YES|timestamp without time zone||||timestamp
-- note|5||YES|text||||text
-- total|6||YES|double precision||53||float8
-- uid|7||YES|uuid||||uuid
-- data|8||YES|json||||json
-- raw|9||YES|bytea||||bytea
-- span|10||YES|interval||||interval;

-- anyone: keys of the standard
select tc.constraint_name, tc.constraint_type, kcu.column_name, kcu.ordinal_position from information_schema.table_constraints tc join information_schema.key_column_usage kcu on tc.constraint_name = kcu.constraint_name and tc.table_schema = kcu.table_schema where tc.table_name = 'orders' order by 1, 4
-- gives
-- orders_customer_fkey|FOREIGN KEY|customer|1
-- orders_pkey|PRIMARY KEY|id|1
-- orders_pkey|PRIMARY KEY|line|2;

-- anyone: references of the standard
select rc.constraint_name, rc.unique_constraint_name, rc.update_rule, rc.delete_rule, ccu.table_name, ccu.column_name from information_schema.referential_constraints rc join information_schema.constraint_column_usage ccu on ccu.constraint_name = rc.constraint_name order by 1
-- gives
-- orders_customer_fkey|customers_pkey|NO ACTION|CASCADE|customers|id;

-- anyone: indexes
select schemaname, tablename, indexname, indexdef from pg_indexes where schemaname = 'public' order by 3
-- gives
-- public|customers|customers_email_key|CREATE UNIQUE INDEX customers_email_key ON public.customers USING btree (email)
-- public|customers|customers_pkey|CREATE UNIQUE INDEX customers_pkey ON public.customers USING btree (id)
-- public|orders|orders_customer|CREATE INDEX orders_customer ON public.orders USING btree (customer, placed DESC)
-- public|orders|orders_pkey|CREATE UNIQUE INDEX orders_pkey ON public.orders USING btree (id, line)
-- public|orders|orders_uid|CREATE UNIQUE INDEX orders_uid ON public.orders USING btree (uid);

-- anyone: names of relations
select 'orders'::regclass, 'app.log'::regclass, 'orders'::regclass::text, to_regclass('nothing'), 16::regtype, 'integer'::regtype
-- gives
-- orders|app.log|orders||boolean|integer;

-- anyone: columns by name of the table
select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'public.customers'::regclass and attnum > 0 order by attnum
-- gives
-- id|integer
-- name|character varying(40)
-- email|text
-- born|date
-- balance|numeric(12,2)
-- active|boolean;

-- anyone: quoting
select quote_ident('Two words'), quote_ident('plain'), quote_literal('it''s'), pg_size_pretty(123456789::bigint)
-- gives
-- "Two words"|plain|'it''s'|118 MB;

