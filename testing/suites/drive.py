"""Runs the test program of a foreign suite against a server, and compares what became of its tests with the control.

The program writes a line of JSON per outcome, {"test", "outcome", "message"}, into the file `SUITES_OUTCOMES`.
"""

import collections
import json
import os
import re
import signal
import subprocess
import time
from typing import NamedTuple

PASS, FAIL, SKIP = "pass", "fail", "skip"
# Messages of a result that are stored.
STORED = 60
# Seconds between two looks at the program and its servers.
PAUSE = 0.5


# How a program's last words name an exception, and one of a driver, which is the cause of others.
LAST = re.compile(r"^(?:INTERNALERROR> )?([\w.]*(?:Error|Exception|Warning): .*)", re.M)
DRIVERS = re.compile(r"^(?:INTERNALERROR> )?((?:psycopg2?\.errors|asyncpg\.exceptions[\w.]*)\.\w+: .*)", re.M)


class Trial(NamedTuple):
    """What became of a program: {test: (outcome, message)}, how often a server ended, and its last error."""

    tests: dict
    ended: int
    error: str


def drive(command, servers, outcomes, limit, folder, environment):
    """The trial of a program, which is killed after `limit` seconds."""
    outcomes.unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "SUITES_OUTCOMES": str(outcomes), **environment}
    began, ended = time.monotonic(), 0
    with open(outcomes.with_suffix(".log"), "wb") as log:
        program = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            while program.poll() is None and time.monotonic() < began + limit:
                time.sleep(PAUSE)
                ended += sum(server.revive() for server in servers)
        finally:
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
                program.wait()
                print(f"suites: {outcomes.stem} did not end within {limit} seconds", flush=True)
    return Trial(read(outcomes), ended, last_error(outcomes.with_suffix(".log").read_text(errors="replace")))


def last_error(log):
    errors = DRIVERS.findall(log) or LAST.findall(log)
    return errors[-1] if errors else ""


def read(path):
    found = {}
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        record = json.loads(line)
        # A test has several reports, of its setup and of its end; any failure counts.
        before = found.get(record["test"], (SKIP, ""))[0]
        if before == SKIP or record["outcome"] == FAIL and before == PASS:
            found[record["test"]] = record["outcome"], record["message"]
    return found


def cause(message):
    """The part of a failure's message that others have, too. Of a syntax error that is the statement's beginning."""
    message = message.strip()
    error = re.search(r"(?:psycopg2?\.errors|asyncpg\.exceptions(?:\._base)?)\.(\w+)\W+([^\n]*)", message)
    text = f"{error[1]}: {error[2]}" if error else next(iter(message.splitlines()), "no message")
    text = re.sub(r"0x[0-9a-f]+|\b[0-9]+(?:\.[0-9]+)?\b", "N", text)
    if "yntax error at" in text:
        sql = re.search(r"(?:\[SQL: |LINE 1: )\W*((?:\w+\s*){1,3})", message)
        return f"{text[:100]} in {sql[1].strip()}" if sql else text[:140]
    return re.sub(r"'[^']*'|\"[^\"]*\"", "#", text)[:140]


def compare(title, control, mine, ended, why):
    """The result of a suite: cases are the tests that PostgreSQL did not skip. `why` tells why a test did not run."""
    cases = [test for test, (outcome, _) in control.items() if outcome != SKIP]
    wanted = [test for test in cases if control[test][0] == PASS]
    missed = [test for test in wanted if mine.get(test, (None,))[0] != PASS]
    passed = sum(mine.get(test, (None,))[0] == PASS for test in cases)
    counts, examples = collections.Counter(), {}
    for test in missed:
        outcome, message = mine.get(test, (None, ""))
        key = {FAIL: "", SKIP: "skipped: ", None: "did not run: "}[outcome] + cause(message if outcome else why(test))
        counts[key] += 1
        examples.setdefault(key, test)
    causes = [{"message": key, "count": count, "example": examples[key]} for key, count in counts.most_common(STORED)]
    return {
        "title": title,
        "of": len(cases),
        "pass": passed,
        "fail": len(cases) - passed,
        "control": len(wanted),
        "only_control": len(missed),
        "ended": ended,
        "causes": causes,
    }
