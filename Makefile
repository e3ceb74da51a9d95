# Thin on purpose: a target is a line or two, the work is in scripts/ and in the `cairn` command.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: demo install test lint soak bench-quick bench-full bench-hash bench-kv bench-pool bench-index bench-sql report clients sql-suites compat fuzz docs clean help

# CAIRN_CACHE, CARGO_TARGET_DIR and PATH, unless they are set already.
ENV := . scripts/env.sh;
CAIRN = $(ENV) scripts/setup build && cargo build --release -p cairn && "$$CARGO_TARGET_DIR/release/cairn"
# Published figures: optimized across crates, which takes several times as long to build.
FIGURES = $(ENV) scripts/setup build && cargo build --profile figures -p cairn && "$$CARGO_TARGET_DIR/figures/cairn"
# Peers that need more than Rust; what cannot be had here is skipped with a line that says so.
PEERS := scripts/setup --optional java peers
# And our own index within PostgreSQL, for the suites that have it.
PEERS_AND_INDEX := $(PEERS) index
# Tests that need these fail without them instead of saying so and passing.
REQUIRE := CAIRN_REQUIRE_JAVA=1 CAIRN_REQUIRE_LEVELDB=1 CAIRN_REQUIRE_ROCKSDB=1 CAIRN_REQUIRE_SQL_PEERS=1

demo: ## every engine beside its peers on this machine, with a public data set: a quarter of an hour at most once it is built
	@scripts/setup build data && $(PEERS_AND_INDEX)
	@$(CAIRN) bench all --quick --data "$$CAIRN_CACHE/data/geonames.csv" --key geonameid \
		--source "GeoNames, geonames.org, CC BY 4.0" $(ARGS)

install: ## put the `cairn` command, its man pages and completions below PREFIX; PREFIX is ~/.local unless set
	@scripts/setup build && scripts/install "$(or $(PREFIX),$(HOME)/.local)"

test: ## run every test, Java compatibility included
	@scripts/setup build java peers tools
	@$(ENV) $(REQUIRE) cargo nextest run --workspace $(ARGS) && scripts/slowest target/nextest/default/junit.xml
	@$(ENV) cargo test --quiet --workspace --doc

lint: ## formatting, clippy, documentation, dependencies, scripts; ARGS=features adds each choice of features, ARGS=sources leaves out Clippy and rustdoc
	@scripts/setup build lint && scripts/lint $(ARGS)

soak: ## the tests with their counts raised to hours
	@scripts/setup build java peers tools
	@$(ENV) CAIRN_SOAK=1 $(REQUIRE) cargo nextest run --profile soak --workspace --cargo-profile release --no-fail-fast $(ARGS)

bench-quick: ## every suite with small sizes, a quarter of an hour at most
	@$(PEERS_AND_INDEX) && $(CAIRN) bench all --quick $(ARGS)

bench-full: ## every suite with all that it has, hours
	@$(PEERS_AND_INDEX) && $(FIGURES) bench all --full $(ARGS)

bench-hash: ## the constant store; ARGS="..." goes to `cairn bench hash`
	@$(PEERS) && $(FIGURES) bench hash $(ARGS)

bench-kv: ## the key-value store; ARGS="..." goes to `cairn bench kv`
	@$(PEERS) && $(FIGURES) bench kv $(ARGS)

bench-pool: ## the buffer pool; ARGS="..." goes to `cairn bench pool`
	@$(PEERS) && $(FIGURES) bench pool $(ARGS)

bench-index: ## the compressed index in PostgreSQL; ARGS="..." goes to `cairn bench index`
	@$(PEERS_AND_INDEX) && $(FIGURES) bench index $(ARGS)

bench-sql: ## SQL engines; ARGS="..." goes to `cairn bench sql`
	@$(PEERS) && $(FIGURES) bench sql $(ARGS)

report: ## the HTML report of the newest run in benchmark-results/, or of ARGS="RUN.json"
	@$(CAIRN) bench report $(ARGS)

clients: ## clients of PostgreSQL against the server: psql, pgbench, psycopg, JDBC, sqlx, SQLAlchemy
	@scripts/setup build
	@$(ENV) cargo build -p cairn && testing/compat/clients/run $(ARGS)

sql-suites: ## tests of PostgreSQL, SQLite, SQLAlchemy, Django and drivers against the server; ARGS="run regress", ARGS=causes, ARGS=--help
	@scripts/setup build postgres
	@$(ENV) cargo build --release -p cairn && CAIRN="$$CARGO_TARGET_DIR/release/cairn" testing/suites/suites.py $(or $(ARGS),run)

compat: ## exchange files with Sparkey's own Java library
	@scripts/setup build java tools
	@$(ENV) CAIRN_REQUIRE_JAVA=1 cargo nextest run -p cairn-hash --test sparkey_java $(ARGS)

fuzz: ## fuzz every decoder for SECONDS=30 each (needs a nightly Rust)
	@scripts/fuzz $(or $(SECONDS),30)

docs: ## the book, and a check of its links
	@scripts/setup tools && scripts/check-docs
	@$(ENV) mdbook build docs --dest-dir "$$CAIRN_CACHE/book" && echo "$$CAIRN_CACHE/book/index.html"

clean: ## remove build output; fetched things in the cache stay
	@$(ENV) cargo clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' Makefile
