#!/usr/bin/env python3
"""A long comparison: starts PostgreSQL and a Cairn server per worker, and runs `compare.py` under all four oracles.

    campaign.py CAIRN --statements 1000000 --seed 1 --workers 2 --out FOLDER

CAIRN is the command, built with debug assertions if they are to take part. FOLDER gets a log per piece of work, and is
where one resumes: pieces whose log is complete are not run again. PostgreSQL runs as the user `postgres` where this is
root, as it refuses to run as root. Ends with 1 if there was a difference.
"""

import argparse
import ast
import collections
import concurrent.futures
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
# Statements of a piece: schemas times statements of one.
SCHEMAS, COUNT = 10, 200
# Of ten pieces. PostgreSQL is the strictest of them; the others find what it agrees on by accident.
ORACLES = ["postgres"] * 5 + ["partitions"] * 3 + ["direct", "optimizer"]
SHOWN = "rows,order,crash,tag,behind,columns,slow"
# What a comparison prints behind everything else.
END = re.compile(r"^seeds \d+ to \d+: \d+ statements (\{.*\})$", re.M)


def as_postgres(command):
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *command] if os.getuid() == 0 else command


class Postgres:
    """A cluster of its own for a campaign; it need not survive anything."""

    def __init__(self, binaries, workers):
        self.folder = tempfile.mkdtemp(prefix="cairn-campaign-pg-")
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        run = lambda *command: subprocess.run(as_postgres(command), cwd="/", check=True, stdout=subprocess.DEVNULL)
        run(f"{binaries}/initdb", "-D", f"{self.folder}/data", "-U", "postgres", "--auth=trust", "-E", "UTF8", "--lc-collate=C", "--lc-ctype=C.UTF-8")
        self.run, self.binaries = run, binaries
        run(f"{binaries}/pg_ctl", "-D", f"{self.folder}/data", "-w", "-l", f"{self.folder}/log", "-o", f"-k {self.folder} -c listen_addresses= -c fsync=off", "start")
        for worker in range(workers):
            run(f"{binaries}/psql", "-qh", self.folder, "-U", "postgres", "-c", f"create database t{worker}")

    def stop(self):
        self.run(f"{self.binaries}/pg_ctl", "-D", f"{self.folder}/data", "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


class Cairn:
    """A server of one worker. One that ended is a finding, and is started again for the next piece."""

    def __init__(self, command, worker):
        self.command, self.folder = command, pathlib.Path(tempfile.mkdtemp(prefix=f"cairn-campaign-{worker}-"))
        self.server = None
        subprocess.run([command, "sql", "passwd", "pw", "postgres"], cwd=self.folder, input=b"x\nx\n", check=True, stdout=subprocess.DEVNULL)

    def ready(self):
        if self.server is None or self.server.poll() is not None:
            with open(self.folder / "log", "ab") as log:
                serve = [self.command, "sql", "serve", "t.db", "--socket", ".", "--trust-socket", "--password-file", "pw"]
                self.server = subprocess.Popen(serve, cwd=self.folder, stdout=log, stderr=log)
            while not list(self.folder.glob(".s.PGSQL.*[0-9]")):
                if self.server.poll() is not None:
                    raise SystemExit(f"campaign: the server did not start, see {self.folder}/log")
                time.sleep(0.05)
        return self.folder

    def stop(self):
        if self.server is not None:
            self.server.kill()
            self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cairn", type=pathlib.Path)
    parser.add_argument("--statements", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    # Each waits for its servers, and those for the disk, for more than half of the time.
    parser.add_argument("--workers", type=int, default=2 * os.cpu_count() + 1)
    parser.add_argument("--oracles", help="a list, instead of the usual mixture")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--postgres-bin", default="/usr/lib/postgresql/15/bin")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    # A build that is replaced meanwhile would change what is tested.
    folder = tempfile.mkdtemp(prefix="cairn-campaign-")
    command = shutil.copy2(options.cairn, f"{folder}/cairn")
    postgres = Postgres(options.postgres_bin, options.workers)
    cairns = [Cairn(command, worker) for worker in range(options.workers)]
    servers = queue.SimpleQueue()
    for server in enumerate(cairns):
        servers.put(server)
    oracles = options.oracles.split(",") if options.oracles else ORACLES

    def piece(at):
        oracle, seed = oracles[at % len(oracles)], options.seed + at * SCHEMAS
        log = options.out / f"{oracle}-{seed}.log"
        if not log.exists() or not END.search(log.read_text()):
            worker, server = servers.get()
            try:
                run = [sys.executable, HERE / "compare.py", "--cairn", server.ready(), "--postgres", postgres.folder, "--database", f"t{worker}", "--oracle", oracle, "--seed", str(seed)]
                run += ["--schemas", str(SCHEMAS), "--count", str(COUNT), "--only", SHOWN, "--timeout", "3"]
                with open(log, "w") as out:
                    subprocess.run([str(part) for part in run], stdout=out, stderr=out)
            finally:
                servers.put((worker, server))
        return oracle, log

    counts = collections.defaultdict(collections.Counter)
    differences, total, began = 0, 0, time.monotonic()
    pieces = range(-(-options.statements // (SCHEMAS * COUNT)))
    try:
        with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
            for oracle, log in pool.map(piece, pieces):
                text = log.read_text()
                end = END.search(text)
                found = text.count("\n==== ") + (end is None)
                differences += found
                counts[oracle].update(ast.literal_eval(end[1]) if end else {})
                total += sum(ast.literal_eval(end[1]).values()) if end else 0
                if found:
                    print(f"{log}: {found} differences" if end else f"{log}: ended early", flush=True)
                print(f"{total} statements, {differences} differences, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    finally:
        for server in cairns:
            server.stop()
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{total} statements from seed {options.seed}, {differences} differences shown")
    for oracle, of in counts.items():
        print(f"  {oracle}: {dict(of.most_common())}")
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
