# Private clusters for tests and benchmarks. Servers refuse root, so as root they run as the user postgres.
# shellcheck shell=bash
PG_CONFIG=${PG_CONFIG:-pg_config}
bin=$("$PG_CONFIG" --bindir)
work=${CAIRN_TEST_DIR:-$(mktemp -d)}
# For tests in which another session does something in between: psql's \! runs it.
export PSQL=$bin/psql
export PGHOST=$work/s PGUSER=postgres PGDATABASE=postgres PGPORT=5432
mkdir -p "$work/s"
chmod 755 "$work"
if [[ $(id -u) == 0 ]]; then
    chown -R postgres "$work"
    as() { su postgres -s /bin/bash -c "cd '$work' && $1"; }
else
    as() { bash -c "$1"; }
fi

cluster_end() {
    local name
    for name in primary standby old new; do
        [[ -e $work/$name/postmaster.pid ]] && as "'$bin/pg_ctl' -D '$work/$name' -m immediate stop >/dev/null" || true
    done
    [[ -n ${CAIRN_TEST_DIR:-} ]] || rm -rf "$work"
}
trap cluster_end EXIT

psql_q() { PGOPTIONS='-c client_min_messages=warning' "$bin/psql" -X -q -v ON_ERROR_STOP=1 "$@" | { grep -v '^ *$\|^---\|row)\|rows)\|expect\|same\|planned\|churn\|vacuum\|read_damaged\|cairn_merge\|setseed\|cairn_check\|^ *fill\|^ *builds\|^ *uniques\|^ *way\|^ *case' || true; }; return "${PIPESTATUS[0]}"; }

# The module has to be where the server looks for modules.
cluster_install() {
    make -s -C "$1" install PG_CONFIG="$PG_CONFIG" >/dev/null
}

cluster_port() { [[ $1 == standby ]] && echo 5433 || echo 5432; }

cluster_init() {
    rm -rf "${work:?}/$1"
    as "'$bin/initdb' -D '$work/$1' -A trust -U postgres --no-sync -E UTF8 --locale=C -k >/dev/null"
    cluster_config "$1" "listen_addresses = ''" "unix_socket_directories = '$work/s'" "port = $(cluster_port "$1")" \
        "fsync = off" "max_wal_size = 4GB" "shared_buffers = 64MB" "autovacuum = off" "max_parallel_workers_per_gather = 0"
}

cluster_config() {
    local name=$1 line
    shift
    for line in "$@"; do echo "$line" >>"$work/$name/postgresql.conf"; done
}

cluster_start() {
    : >"$work/$1.log.after"
    chmod 666 "$work/$1.log.after"
    as "'$bin/pg_ctl' -D '$work/$1' -l '$work/$1.log.after' -w -t 60 start >/dev/null"
}

cluster_stop() { as "'$bin/pg_ctl' -D '$work/$1' -m fast -w stop >/dev/null"; }

# As a power cut for the processes: postmaster and all backends at once. It is stopped first, so that it starts none between the count and the end.
cluster_kill() {
    local pid children process
    pid=$(head -1 "$work/$1/postmaster.pid")
    kill -STOP "$pid"
    children=$(pgrep -P "$pid" || true)
    # shellcheck disable=SC2086
    kill -9 "$pid" $children 2>/dev/null || true
    # The lock of the socket names the postmaster, and counts one that nobody has buried as alive.
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
    for process in $children; do
        while [[ -e /proc/$process/stat && $(cut -d' ' -f3 "/proc/$process/stat" 2>/dev/null) != Z ]]; do sleep 0.05; done
    done
    rm -f "$work/$1/postmaster.pid"
}

cluster_backup() {
    rm -rf "${work:?}/$2"
    as "'$bin/pg_basebackup' -h '$PGHOST' -U postgres -D '$work/$2' -R -X stream -c fast --no-sync"
    cluster_config "$2" "port = $(cluster_port "$2")" "hot_standby = on"
}

# Waits until the standby has replayed what the primary has written.
cluster_catch_up() {
    local lsn
    # What a merge wrote last need not have been flushed when it returns.
    lsn=$(psql_q -Atc 'SELECT pg_current_wal_insert_lsn()')
    for _ in $(seq 300); do
        [[ $(PGPORT=$(cluster_port "$2") psql_q -Atc "SELECT pg_last_wal_replay_lsn() >= '$lsn'") == t ]] && return
        sleep 0.1
    done
    echo "the standby does not catch up"
    return 1
}

cluster_promote() { as "'$bin/pg_ctl' -D '$work/$1' -w promote >/dev/null"; }
