# The part "upgrade": pages that another version wrote.
# shellcheck shell=bash disable=SC2154

in_upgrade() {
    version_of_pages
    upgrade_of_server
}

# Goal: pages of a version that this one does not know are refused with a word about what to do, and doing that helps. Method: the version in an index's
# meta page is changed on disk.
version_of_pages() {
    echo "an index of another version of its pages"
    psql_q -c 'DROP SCHEMA IF EXISTS t CASCADE' -f "$here/sql/00_setup.sql" -c 'CREATE TABLE t.v AS SELECT g k FROM generate_series(1, 5000) g' -c 'CREATE INDEX v1 ON t.v USING cairn (k)'
    local file query="SET enable_seqscan = off; SELECT count(*) FROM t.v WHERE k > 10"
    file=$work/primary/$(psql_q -Atc "SELECT pg_relation_filepath('t.v1')")
    [[ $(psql_q -Atc "$query") == 4990 ]]
    cluster_stop primary
    # Behind the page's header of 24 bytes: magic, version.
    printf '\x02' | dd of="$file" bs=1 seek=28 conv=notrunc status=none
    cluster_config primary "ignore_checksum_failure = on"
    cluster_start primary
    psql_q -Atc "$query" >"$work/told" 2>&1 && { echo "pages of version 2 were read"; exit 1; }
    grep -q 'index "v1" has version 2 where 1 is supported' "$work/told" && grep -q 'REINDEX' "$work/told" || { cat "$work/told"; exit 1; }
    psql_q -c 'INSERT INTO t.v VALUES (1)' 2>/dev/null && { echo "pages of version 2 were written"; exit 1; }
    psql_q -c 'REINDEX INDEX t.v1'
    [[ $(psql_q -Atc "$query") == 4990 ]]
    cluster_config primary "ignore_checksum_failure = off"
    psql_q -Atc 'SELECT pg_reload_conf()' >/dev/null
    echo ok
}

# Goal: pg_upgrade takes indexes along as files, and the new server reads, checks and writes what the old one built: leaves, tails, split leaves.
# Method: the tables of the crash test, written to in the old server, compared with the heap after pg_upgrade has moved them.
upgrade_of_server() {
    local new_bin=$bin old_bin old=${CAIRN_TEST_OLD_PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config} here_version old_version
    here_version=$("$PG_CONFIG" --version | grep -o '[0-9]*' | head -1)
    if [[ ! -x $old ]]; then
        echo "pg_upgrade: skipped, no older PostgreSQL at $old (CAIRN_TEST_OLD_PG_CONFIG names one)"
        return
    fi
    old_bin=$("$old" --bindir)
    old_version=$("$old" --version | grep -o '[0-9]*' | head -1)
    if ((old_version >= here_version)); then
        echo "pg_upgrade: skipped, version $old_version is not older than $here_version (PG_CONFIG and CAIRN_TEST_OLD_PG_CONFIG name two)"
        return
    fi
    if [[ ! -x $new_bin/pg_upgrade || ! -x $old_bin/initdb || ! -e $("$old" --pkglibdir)/cairn.so ]]; then
        echo "pg_upgrade: skipped, it needs pg_upgrade in $new_bin, a server in $old_bin, and cairn installed there"
        return
    fi
    echo "pg_upgrade from $old_version to $here_version"
    cluster_stop primary
    bin=$old_bin
    cluster_init old
    cluster_start old
    psql_q -f "$here/sql/00_setup.sql" -f "$here/crash.sql" -c 'SELECT t.churn(40)' -c 'DELETE FROM t.c WHERE v % 3 = 1' -c 'VACUUM t.c' -c 'SELECT t.churn(3)' \
        -c "CREATE TABLE t.n AS SELECT CASE WHEN g % 20 > 0 THEN g / 7.0 END n, md5((g % 900)::text)::bytea b, g % 5 = 0 f, timestamptz '2024-01-01 UTC' + g * interval '1 hour' ts FROM generate_series(1, 30000) g ORDER BY hashint4(g)" \
        -c 'CREATE INDEX n1 ON t.n USING cairn (n DESC NULLS LAST, b) INCLUDE (f)' -c 'CREATE UNIQUE INDEX n2 ON t.n USING cairn (ts)' -c 'VACUUM t.n'
    same
    psql_q -Atc "SELECT DISTINCT kind FROM cairn_page_stats('t.c1') ORDER BY kind" >"$work/kinds"
    grep -q tail "$work/kinds" && grep -q leaf "$work/kinds" || { echo "the old server's index has too few kinds of pages: $(cat "$work/kinds")"; exit 1; }
    # Debian's 15.20 marks every column with an option of its own, which a PostgreSQL 18 from elsewhere refuses when the schema is restored, whatever the table has.
    psql_q -c "UPDATE pg_attribute SET attoptions = NULL WHERE attoptions::text LIKE '{pg_attver=%'"
    cluster_stop old
    bin=$new_bin
    cluster_init new
    mkdir -p "$work/upgrade"
    chmod 777 "$work/upgrade"
    (work=$work/upgrade; as "'$new_bin/pg_upgrade' -b '$old_bin' -B '$new_bin' -d '${work%/upgrade}/old' -D '${work%/upgrade}/new' -U postgres -s '$PGHOST'") >"$work/told" 2>&1 ||
        { tail -n 20 "$work/told" "$work"/new/pg_upgrade_output.d/*/log/*.log; exit 1; }
    cluster_start new
    same
    psql_q -c "LOAD 'cairn'" -c "SELECT cairn_check('t.n1') + cairn_check('t.n2')" -c "SELECT t.same('SELECT n, b, f FROM t.n WHERE n > 4000 ORDER BY n DESC NULLS LAST, b, f'), t.same('SELECT ts FROM t.n WHERE ts > ''2026-01-01'' ORDER BY ts')"
    psql_q -c 'SELECT t.churn(20)' -c 'VACUUM t.c' -c 'SELECT t.churn(2)' -c "SELECT cairn_merge('t.c1')" -c "DO \$\$ BEGIN INSERT INTO t.n (ts) VALUES ('2024-01-01 01:00 UTC'); RAISE EXCEPTION 'taken twice'; EXCEPTION WHEN unique_violation THEN NULL; END \$\$"
    same
    cluster_stop new
    cluster_start primary
    echo ok
}
