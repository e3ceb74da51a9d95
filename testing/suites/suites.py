#!/usr/bin/env python3
"""Foreign test suites against Cairn, and against PostgreSQL as the control.

    suites.py list                             the suites
    suites.py run                              every suite, in turn; prints a table
    suites.py run regress --files numeric,join some files of PostgreSQL's regression suite
    suites.py run regress --files core         the files that the goals name
    suites.py run slt --sample 0.05            a twentieth of the files of SQLite's corpus
    suites.py run --store                      also writes results.json, which is committed
    suites.py causes                           which refusals block most statements of the last regression run
    suites.py page                             writes the page of the book from results.json

The command under test is the newest build, or what CAIRN names. Suites are fetched from their packages into
$CAIRN_CACHE/suites when they first run; --out has every difference in full.
"""

import argparse
import os
import pathlib
import signal
import sys

sys.dont_write_bytecode = True

import fetch
import places


def in_environment():
    """Runs this program again with the harness's own driver, unless it is there."""
    python = fetch.venv("harness", places.DRIVER)
    if pathlib.Path(sys.prefix) != python.parent.parent:
        os.execv(python, [python, __file__, *sys.argv[1:]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="name the suites")
    commands.add_parser("page", help="write the page of the book from results.json")
    causes = commands.add_parser(
        "causes", help="print the refusals that block most statements of the last regression run"
    )
    causes.add_argument("--count", type=int, default=100)
    run = commands.add_parser("run", help="run suites")
    run.add_argument("suites", nargs="*", help="names of suites; all of them unless given")
    run.add_argument(
        "--files",
        help="a part of a suite: names of files, separated by commas; in regress, `core` for those that the goals name",
    )
    run.add_argument(
        "--settings",
        choices=("regress", "default"),
        default="regress",
        help="regress: styles of dates and the zone, as pg_regress sets them or as a server has them",
    )
    run.add_argument(
        "--sample",
        type=float,
        default=0.1,
        help="slt: the part of the files of `random` and `index` that runs (default: 0.1)",
    )
    run.add_argument("--timeout", type=float, default=20, help="seconds for one statement (default: 20)")
    run.add_argument("--limit", type=float, help="seconds for a suite of Python on one server")
    run.add_argument(
        "--pass-over",
        metavar="REGEX",
        help="suites of Python: do not send statements that match, to see what comes behind them",
    )
    run.add_argument("--store", action="store_true", help="write results.json")
    for command in (run, causes):
        command.add_argument("--out", type=pathlib.Path, default=places.CACHE / "out", help="folder of all differences")
    options = parser.parse_args()
    # Servers and programs are ended on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        in_environment()
        from commands import COMMANDS

        COMMANDS[options.command](options)
    except fetch.Missing as missing:
        raise SystemExit(f"suites: {missing}") from None


if __name__ == "__main__":
    main()
