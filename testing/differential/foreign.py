#!/usr/bin/env python3
"""Statements of other engines' test files, on Cairn and on PostgreSQL.

    foreign.py --cairn DIR --postgres DIR [--limit N] FILE...

FILE is a file of sqllogictest records, such as those of SQLite, DataFusion and DuckDB: fetch them, none are kept here. What a file expects is not
looked at. A statement that PostgreSQL refuses is passed over, so that dialects do not matter; what it accepts Cairn must answer alike. Files whose
records need a loop or an extension are passed over.
"""

import argparse
import collections
import re
import sys

sys.dont_write_bytecode = True

from sides import Side, compare

UNSUITABLE = re.compile(r"^(loop|foreach|concurrentloop|require|load|mode skip)\b", re.M)
# What differs from run to run, or tells of the engine itself.
VOLATILE = re.compile(r"\b(random|now|current_\w+|clock_timestamp|version|uuid\w*|gen_random\w*|explain|copy|pg_\w+|information_schema|show|set|pragma|analyze|vacuum)\b", re.I)


def records(text):
    """The statements of a file: (line, text)."""
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.split("\n") if not line.startswith("#")]
        at = next((n for n, line in enumerate(lines) if re.match(r"(statement|query)\b", line)), None)
        if at is None:
            continue
        # In blocks that the file's author did not part, the next record begins where a line says so.
        body = []
        for line in lines[at + 1 :]:
            if line.startswith("----") or re.match(r"(statement|query) ", line):
                break
            body.append(line)
        sql = "\n".join(body).strip().rstrip(";")
        if sql:
            yield sql


def is_ordered(sql):
    """Whether the outermost query has an ORDER BY."""
    depth, plain = 0, []
    for char in sql:
        depth += (char == "(") - (char == ")")
        plain.append(char if depth == 0 else " ")
    return re.search(r"\border\s+by\b", "".join(plain), re.I) is not None


def fresh(sides):
    """Leaves no table and no view in either database."""
    for side in sides:
        side.run("rollback")
        for kind, name in side.run("select table_type, table_name from information_schema.tables where table_schema = 'public'")[4]:
            side.run(f'drop {"view" if kind == "VIEW" else "table"} if exists "{name}" cascade')


class Foreign:
    def __init__(self, options):
        self.options = options
        self.pg, self.mine = Side(options.postgres, "postgres"), Side(options.cairn, "cairn")
        self.counts, self.shown = collections.Counter(), collections.Counter()

    def file(self, path):
        text = open(path, encoding="utf8", errors="replace").read()
        if UNSUITABLE.search(text):
            self.counts["files passed over"] += 1
            return
        self.counts["files"] += 1
        fresh((self.pg, self.mine))
        script = []
        for sql in records(text):
            if VOLATILE.search(sql) and not re.match(r"\s*update\b", sql, re.I):
                continue
            pg = self.pg.run(sql)
            if pg[0] == "error":
                self.counts["passed over"] += 1
                self.pg.run("rollback")
                continue
            mine = self.mine.run(sql)
            kind = compare(pg, mine, False)
            if kind in ("type", "names", "format"):
                kind = None
            if not kind and pg[0] == "rows" and is_ordered(sql) and compare(pg, mine, True) == "order":
                kind = "order"
            self.counts[(kind or "same").split()[0]] += 1
            if kind:
                self.report(path, kind, sql, pg, mine)
                self.mine.run("rollback")
            script.append(sql)

    def report(self, path, kind, sql, pg, mine):
        word = kind.split()[0]
        signature = re.sub(r"[\"'`].*?[\"'`]|\d+", "#", mine[2])[:60] if mine[0] == "error" else path
        self.shown[(word, signature)] += 1
        if self.shown[(word, signature)] > self.options.same or word in self.options.skip.split(","):
            return
        show = lambda answer: f"{answer[1]}: {answer[2][:200]}" if answer[0] == "error" else f"{answer[1]} {answer[4][:8]}" + (" .." if len(answer[4]) > 8 else "")
        print(f"\n==== {kind}  {path}\n{sql[:1500]}\n  pg    {show(pg)}\n  cairn {show(mine)}", flush=True)

    def go(self):
        for path in self.options.files:
            self.file(path)
        print("\n", dict(self.counts))
        for (word, signature), count in self.shown.most_common(60):
            print(f"{count:6} {word}: {signature}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", required=True)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--same", type=int, default=2, help="differences of one look that are shown")
    parser.add_argument("--skip", default="", help="kinds of differences that are only counted")
    parser.add_argument("files", nargs="+")
    Foreign(parser.parse_args()).go()


if __name__ == "__main__":
    main()
