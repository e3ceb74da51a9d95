# The part "memory": builds that there is no memory for.
# shellcheck shell=bash disable=SC2154

# A program that limits the memory of a session from outside, to what it has and so many MB more; without a number there is no limit any more. It has to be somebody of the same name.
make_limit() {
    cat >"$work/limit" <<'END'
#!/bin/bash
most=unlimited
[[ -z $2 ]] || most=$((($(awk '/^VmSize/ { print $2 }' "/proc/$1/status") + $2 * 1024) * 1024))
if [[ $(id -u) == 0 ]]; then
    su postgres -s /bin/bash -c "prlimit --pid $1 --as=$most:"
else
    prlimit --pid "$1" --as="$most:"
fi
END
    chmod 755 "$work/limit"
}

# Goal: a build that there is no memory for is an error of its statement and of nobody else's: the server goes on, neither an index nor a file is left, and the session can
# build once there is memory. Method: sessions that may take 1 to 512 MB more than they have when they begin, rows of numbers and of texts, alone and with workers; then the same session
# without a limit. Files are the same before and after.
in_memory() {
    local columns mb workers said files now refused=0 built=0
    echo "builds without memory"
    make_limit
    psql_q -c 'DROP SCHEMA IF EXISTS t CASCADE' -f "$here/sql/00_setup.sql" \
        -c "CREATE TABLE t.m AS SELECT g k, (g * 7919::bigint) % 400009 w, md5(g::text) s FROM generate_series(1, 400000) g" -c 'ALTER TABLE t.m SET (parallel_workers = 2)' -c 'VACUUM ANALYZE t.m' -c CHECKPOINT
    files=$(find "$work/primary/base" -type f | sort)
    for columns in '(w, k)' '(s) INCLUDE (w)'; do
        for mb in 1 2 4 8 16 32 64 512; do
            workers=$((mb == 2 || mb == 16 ? 2 : 0))
            said=$(
                "$bin/psql" -X -q -v VERBOSITY=verbose 2>&1 <<END
LOAD 'cairn';
SET maintenance_work_mem = '256MB';
SET max_parallel_maintenance_workers = $workers;
SELECT pg_backend_pid() AS pid \gset
\setenv BACKEND :pid
\! "$work/limit" \$BACKEND $mb
CREATE INDEX m1 ON t.m USING cairn $columns;
\! "$work/limit" \$BACKEND
CREATE INDEX m2 ON t.m USING cairn $columns;
SELECT 'goes on' WHERE pg_backend_pid() = :pid AND cairn_check('t.m2') = 400000;
DROP INDEX t.m2;
END
            )
            [[ $said == *"goes on"* ]] || { echo "with $mb MB the session ended: $said"; exit 1; }
            if [[ $said == *ERROR* ]]; then
                [[ $said == *53200* ]] || { echo "with $mb MB: $said"; exit 1; }
                refused=$((refused + 1))
                psql_q -c "SELECT t.expect('no index', to_regclass('t.m1') IS NULL, true)" -c CHECKPOINT
                now=$(find "$work/primary/base" -type f | sort)
                [[ $now == "$files" ]] || { echo "files are left:"; diff <(echo "$files") <(echo "$now"); exit 1; }
            else
                built=$((built + 1))
                psql_q -c "SELECT t.expect('rows', cairn_check('t.m1'), 400000::bigint)" -c 'DROP INDEX t.m1' -c CHECKPOINT
            fi
        done
    done
    ((refused > 3 && built > 3)) || { echo "$refused builds were refused, $built were not: expected some of both"; exit 1; }
    ! grep 'terminated by signal\|PANIC' "$work"/primary.log* || { echo "a process died"; exit 1; }
    echo "$refused builds refused, $built made"
    echo ok
}
