"""Sizes, build times, query times and buffers of btree and cairn over the same rows, in one run, interleaved.

Each data set has one table for each contender, with the same rows in the same order, so that no planner has to be persuaded. Indexes are built three times,
those of more than ten million rows once. A query runs in ROUNDS rounds, in a session for each contender that has run it before. In a round the contenders take turns in random order, with
a few queries each, many times over if they are short: a machine that slows down slows all of them down. A round's time is the median of its queries', the median of the rounds is shown, and
the ratio is the median of the rounds' ratios. Answers must be equal.
"""

import os
import random
import re
import statistics
import subprocess
import sys

SQL = "SET jit = off; SET enable_seqscan = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0; LOAD 'cairn';"

# name, rows, columns as SQL over g, forms of btree, cairn, queries
QUICK = [
    ("Q1", 1_000_000, "g::int AS k", ["(k)"], "(k)", [
        ("range 50 %", "SELECT count(*) FROM {t} WHERE k >= 500000"),
        ("range 1 %", "SELECT count(*) FROM {t} WHERE k >= 990000"),
        ("point", "SELECT k FROM {t} WHERE k = 123456"),
        ("IN 5", "SELECT k FROM {t} WHERE k IN (5, 77777, 123456, 500000, 999999)"),
        ("backward limit", "SELECT k FROM {t} WHERE k < 700000 ORDER BY k DESC LIMIT 100"),
    ]),
    ("Q2", 1_000_000, "CASE WHEN random() < 0.1 THEN 42 ELSE floor(10000 ^ random())::int END AS k, (random() * 9999)::int AS a, "
     "(random() * 9999)::int AS b", ["(k) INCLUDE (a, b)", "(k, a, b)"], "(k) INCLUDE (a, b)", [
         ("hot key", "SELECT sum(a), sum(b) FROM {t} WHERE k = 42"),
         ("cold key", "SELECT sum(a), sum(b) FROM {t} WHERE k = 7777"),
         ("group by key", "SELECT k, count(*), sum(a) FROM {t} GROUP BY k ORDER BY k"),
     ]),
    ("Q3", 1_000_000, "date '2020-01-01' + (g % 3650) AS d, (g % 1000)::int AS k", ["(d, k)", "(d) INCLUDE (k)"], "(d, k)", [
        ("range and filter", "SELECT count(*) FROM {t} WHERE d >= '2024-06-01' AND k = 17"),
    ]),
]
THRASH = [
    ("thrash", 5_000_000, "(g % 50000)::int AS k, (g % 10000)::int AS a, (g % 10000)::int AS b",
     ["(k) INCLUDE (a, b)", "(k, a, b)"], "(k) INCLUDE (a, b)", [
         ("range 10 %", "SELECT sum(a), sum(b), count(*) FROM {t} WHERE k >= 45000"),
         ("one key", "SELECT sum(a), sum(b), count(*) FROM {t} WHERE k = 777"),
     ]),
]
PRESSURE = [("pressure", 20_000_000, *THRASH[0][2:])]


def psql(script):
    run = subprocess.run([os.environ["PGBIN"] + "/psql", "-XqAt", "-v", "ON_ERROR_STOP=1"], input=script, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return run.stdout


def timed(script, times=1):
    """Milliseconds of the last `times` statements, their median, and what they printed."""
    lines = psql(SQL + "\n\\timing on\n" + script).splitlines()
    found = [float(re.match(r"Time: ([\d.]+)", line)[1]) for line in lines if line.startswith("Time:")]
    return statistics.median(found[-times:]), [line for line in lines if not line.startswith("Time:")]


class Session:
    """A connection that is kept, with these settings."""

    def __init__(self, settings):
        self.psql = subprocess.Popen([os.environ["PGBIN"] + "/psql", "-XqAt", "-v", "ON_ERROR_STOP=1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        backend = self.run(SQL + settings + "\nSELECT pg_backend_pid();\n\\timing on", 1)[1][-1]
        # How long a client and its backend take to wake each other on two processors depends on which two; on one it does not. Where we may not say so, it is left.
        processor = {max(os.sched_getaffinity(0))}
        for process in (self.psql.pid, int(backend)):
            try:
                os.sched_setaffinity(process, processor)
            except PermissionError:
                pass

    def run(self, text, times):
        """Milliseconds of each run, and what one printed."""
        self.psql.stdin.write(f"{text}\n" * times + "\\echo the end\n")
        self.psql.stdin.flush()
        found, answer = [], []
        for line in iter(self.psql.stdout.readline, "the end\n"):
            if not line:
                sys.exit("psql ended")
            if line.startswith("Time:"):
                found.append(float(line.split()[1]))
            elif len(found) == 0:
                answer.append(line)
        return found, tuple(answer)

    def end(self):
        self.psql.stdin.close()
        self.psql.wait()


def turns(time):
    """Turns of each contender in a round, and queries in a turn, for queries that take so many milliseconds."""
    return (15, 20) if time < 1 else (8, 4) if time < 20 else (5, 1) if time < 100 else (1, 2)


def buffers(query, aggregate):
    plan = psql(f"{SQL} SET cairn.enable_aggregate = {aggregate}; EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) {query}")
    hit = re.search(r"Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?", plan)
    return (int(hit[1] or 0), int(hit[2] or 0)) if hit else (0, 0)


def measure(name, rows, columns, btrees, cairn, queries, rounds, shuffled):
    order = "ORDER BY random()" if shuffled else ""
    title = name + (" shuffled" if shuffled else "")
    psql(f"DROP TABLE IF EXISTS source; SELECT setseed(0.5); CREATE UNLOGGED TABLE source AS SELECT {columns} FROM generate_series(1, {rows}) g;"
         f"DROP TABLE IF EXISTS base; CREATE UNLOGGED TABLE base AS SELECT * FROM source {order};")
    contenders = [("btree " + form, "btree", form, "off") for form in btrees]
    # Without deduplication where that is another index.
    contenders += [("btree " + btrees[0] + " no dedup", "btree", btrees[0] + " WITH (deduplicate_items = off)", "off")] if "INCLUDE" not in btrees[0] else []
    contenders += [("cairn " + cairn, "cairn", cairn, "off"), ("cairn aggregate", "cairn", cairn, "on")]
    print(f"\n## {title}: {rows:,} rows\n\n| index | MB | bytes a row | build ms |\n|---|---|---|---|")
    tables, sizes, builds = {}, {}, {}
    for number, (label, method, form, _) in enumerate(contenders):
        if label == "cairn aggregate":
            tables[label] = tables["cairn " + cairn]
            continue
        table = f"t{number}"
        tables[label] = table
        psql(f"DROP TABLE IF EXISTS {table}; CREATE UNLOGGED TABLE {table} AS SELECT * FROM base; VACUUM (FREEZE, ANALYZE) {table};")
        builds[label] = statistics.median(timed(f"DROP INDEX IF EXISTS {table}_i;\nCREATE INDEX {table}_i ON {table} USING {method} {form};")[0]
                                          for _ in range(1 if rows > 10_000_000 else 3))
        sizes[label] = int(psql(f"SELECT pg_relation_size('{table}_i')"))
        print(f"| {label} | {sizes[label] / 1e6:.2f} | {sizes[label] / rows:.3f} | {builds[label]:.0f} |")
    best = min(size for label, size in sizes.items() if label.startswith("btree"))
    print(f"\nSize against the smallest btree: 1/{best / sizes['cairn ' + cairn]:.1f}. "
          f"Build against its fastest: {builds['cairn ' + cairn] / min(b for l, b in builds.items() if l.startswith('btree')):.2f} times the time.")
    print("\n| query | " + " | ".join(label for label, *_ in contenders) + " | ratio plain | ratio aggregate |\n|---|" + "---|" * (len(contenders) + 2))
    for query_name, query in queries:
        times = {label: [] for label, *_ in contenders}
        sessions = {label: Session(f"SET cairn.enable_aggregate = {aggregate};") for label, _, _, aggregate in contenders}
        texts = {label: query.format(t=tables[label]) + ";" for label in sessions}
        # The second run of a session is as fast as the others will be. The slowest says how many turns there are.
        warm = {label: session.run(texts[label], 2) for label, session in sessions.items()}
        answers = {answer for _, answer in warm.values()}
        known = {label: turns(found[1]) for label, (found, _) in warm.items()}
        for _ in range(rounds):
            found = {label: [] for label in sessions}
            for _ in range(min(count for count, _ in known.values())):
                for label in random.sample(list(sessions), len(sessions)):
                    found[label] += sessions[label].run(texts[label], known[label][1])[0]
            for label, values in found.items():
                times[label].append(statistics.median(values))
        for session in sessions.values():
            session.end()
        if len(answers) != 1:
            sys.exit(f"{title}, {query_name}: answers differ: {[a[:3] for a in answers]}")
        medians = {label: statistics.median(values) for label, values in times.items()}
        fastest = min((label for label in medians if label.startswith("btree")), key=medians.get)
        ratio = [statistics.median(ours / theirs for ours, theirs in zip(times[label], times[fastest])) for label in ("cairn " + cairn, "cairn aggregate")]
        cells = [f"{medians[label]:.3f} ms, {'+'.join(map(str, buffers(query.format(t=tables[label]), aggregate)))}" for label, _, _, aggregate in contenders]
        print(f"| {query_name} | " + " | ".join(cells) + f" | {ratio[0]:.2f} | {ratio[1]:.3f} |", flush=True)


def insert(rounds):
    """100,000 rows into a table with one index; a scan before that, with the rows unmerged, and when they are merged. The methods take turns."""
    print("\n## 100,000 inserts into an indexed table of 1,000,000 rows\n\n"
          "| index | scan at first, ms | insert ms | scan then, ms | VACUUM ms | scan after, ms |\n|---|---|---|---|---|---|")
    found = {"btree": [], "cairn": []}
    scan = "SET cairn.enable_aggregate = off;\n" + "SELECT count(*) FROM w WHERE k > 500000;\n" * 4
    for _ in range(rounds):
        for method, columns in found.items():
            psql("DROP TABLE IF EXISTS w; CREATE UNLOGGED TABLE w AS SELECT g::int k, 0 v FROM generate_series(1, 1000000) g;"
                 f"CREATE INDEX w_i ON w USING {method} (k); VACUUM (FREEZE, ANALYZE) w;")
            first = timed(scan, 3)[0]
            write = timed("INSERT INTO w SELECT (random() * 1000000)::int, 0 FROM generate_series(1, 100000);")[0]
            then = timed(scan, 3)[0]
            vacuum = timed("VACUUM w;")[0]
            columns.append((first, write, then, vacuum, timed(scan, 3)[0]))
    for method, columns in found.items():
        print(f"| {method} | " + " | ".join(f"{statistics.median(column):.1f}" for column in zip(*columns)) + " |", flush=True)
    write = statistics.median(ours[1] / theirs[1] for ours, theirs in zip(found["cairn"], found["btree"]))
    # A tenth more rows.
    after = statistics.median(row[4] / row[0] / 1.1 for row in found["cairn"])
    print(f"\nInserts against btree's: {write:.2f} times the time. A row in a scan, merged, against one before: {after:.2f} times the time.", flush=True)


def main():
    which, rounds = sys.argv[1], int(sys.argv[2])
    psql("CREATE EXTENSION cairn")
    print(psql("SELECT version()").strip())
    print("Milliseconds: medians of", rounds, "rounds, interleaved, warm; then buffers hit+read. shared_buffers 64 MB, no parallel queries.")
    for data in {"quick": QUICK, "thrash": THRASH, "pressure": PRESSURE}[which]:
        for shuffled in (False, True):
            # Q2's heap is in random order by its nature.
            title = data[0] + (" shuffled" if shuffled else "")
            if not (shuffled and data[0] == "Q2") and title in os.environ.get("ONLY", title).split(","):
                measure(*data, rounds, shuffled)
    if which == "quick" and "insert" in os.environ.get("ONLY", "insert").split(","):
        insert(rounds)


main()
