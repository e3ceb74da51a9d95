# The part "crash", second half: builds by several processes that end by kill -9.
# shellcheck shell=bash disable=SC2154

# Goal: whoever dies in a parallel build, and whenever, leaves a table that is as it was, no index that answers, no temporary file, and nothing that a
# second build trips over. Method: in each round a build is killed in another phase: a worker, the process that began it, or all of PostgreSQL at once.
crash_of_builds() {
    local round phase victim how pid want state seen=0 total=$((rounds + rounds % 2))
    echo "kill -9 in builds by several processes, $total rounds"
    psql_q -c 'DROP SCHEMA IF EXISTS t CASCADE' -f "$here/sql/00_setup.sql" -f "$here/crash_builds.sql" \
        -c "CREATE TABLE t.p AS SELECT g k, (g * 7919::bigint) % 400009 w, md5((g % 5000)::text) s FROM generate_series(1, 400000) g" -c 'ALTER TABLE t.p SET (parallel_workers = 2)' \
        -c 'CREATE INDEX p1 ON t.p USING cairn (k)' -c 'VACUUM ANALYZE t.p' -c CHECKPOINT
    want=$(psql_q -Atc 'SELECT count(*), sum(w), sum(hashtext(s)) FROM t.p')
    for round in $(seq "$total"); do
        # By turns rows of numbers, which this sorts itself, and rows of texts, which PostgreSQL does; with and without others writing meanwhile.
        local columns='(w, k)' way=''
        ((round % 2)) || columns='(s) INCLUDE (w)'
        ((round % 3)) || way=CONCURRENTLY
        case $((round % 3)) in 0) phase='%scanning table' ;; 1) phase='%sorting rows' ;; 2) phase='%packing pages' ;; esac
        psql_q -c "SET maintenance_work_mem = '$((round % 2 ? 200 : 4))MB'" -c "CREATE INDEX $way p2 ON t.p USING cairn $columns" 2>/dev/null &
        pid=$!
        # Sorting takes so short that it can be over between two looks.
        [[ $(psql_q -Atc "SELECT t.in_phase('$phase')") != t ]] || seen=$((seen + 1))
        sleep "0.0$((RANDOM % 6))"
        how=$((RANDOM % 3))
        if ((how == 0)); then
            cluster_kill primary
            wait "$pid" || true
            cluster_start primary
        else
            victim=$(psql_q -Atc "SELECT a.pid FROM pg_stat_activity a, pg_stat_progress_create_index p WHERE $( ((how == 1)) && echo a.leader_pid || echo a.pid) = p.pid LIMIT 1" || true)
            [[ -z $victim ]] || kill -9 "$victim" 2>/dev/null || true
            wait "$pid" || true
            cluster_answers
        fi
        [[ $(psql_q -Atc 'SELECT count(*), sum(w), sum(hashtext(s)) FROM t.p') == "$want" ]] || { echo "the table has changed"; exit 1; }
        [[ -z $(find "$work/primary/base/pgsql_tmp" -mindepth 1 2>/dev/null) ]] || { echo "temporary files are left"; exit 1; }
        # A build that was over in time has an index, and one with others writing meanwhile leaves one that is not valid.
        state=$(psql_q -Atc "SELECT cairn_check(indexrelid) = 400000 FROM pg_index WHERE indexrelid = to_regclass('t.p2') AND indisvalid")
        [[ $state != f ]] || { echo "a build that was killed left half an index"; exit 1; }
        psql_q -c 'INSERT INTO t.p VALUES (0, 0, 0)' -c 'DELETE FROM t.p WHERE k = 0' -c 'VACUUM (INDEX_CLEANUP on) t.p' -c 'DROP INDEX IF EXISTS t.p2' -c "CREATE INDEX p2 ON t.p USING cairn $columns"
        psql_q -c "SELECT t.expect('rows', cairn_check('t.p2') + cairn_check('t.p1'), 800000::bigint)" -c "LOAD 'cairn'" \
            -c "SELECT t.same('SELECT w, k FROM t.p WHERE w BETWEEN 1000 AND 3000 ORDER BY w, k'), t.same('SELECT s, sum(w) FROM t.p WHERE s > ''fe'' GROUP BY s ORDER BY s')" -c 'DROP INDEX t.p2'
    done
    ((seen > 0)) || { echo "no build was killed in the phase it was to be killed in"; exit 1; }
    echo ok
}

# A backend that dies takes all others with it; the postmaster starts anew by itself.
cluster_answers() {
    for _ in $(seq 300); do
        "$bin/psql" -X -q -c 'SELECT 1' >/dev/null 2>&1 && return
        sleep 0.1
    done
    echo "the server does not come back"
    return 1
}
