"""SQLite's corpus of sqllogictest files, on PostgreSQL and on Cairn, each against the answers that the files have.

Of the files below `random` and `index` a sample runs, because all of them take hours; the others run whole. Records for
other engines are passed over, as the files say.
"""

import collections
import hashlib
import random
import re
import sys
from typing import NamedTuple

import fetch
from causes import Cause
from player import Player
from servers import Cairn, Postgres

ARTIFACT = "net.hydromatic:sql-logic-test:0.3"
ENGINE = "postgresql"
# Suites of the table: those that run whole, and those of which a part runs.
WHOLE, SAMPLED = "slt", "slt-random"
TITLES = {WHOLE: "sqllogictest `select`, `evidence`", SAMPLED: "sqllogictest `random`, `index`"}
SEED = 46
STORED = 40


class Record(NamedTuple):
    line: int
    sql: str
    # "ok", "error", or the types of a query's columns.
    wanted: str
    sort: str
    lines: tuple


def records(text):
    """The records of a file that are meant for PostgreSQL."""
    number = 1
    for block in re.split(r"\n[ \t]*\n", text.replace("\r", "")):
        lines = [line for line in block.split("\n")]
        first, number = number, number + len(lines) + 1
        lines = [line for line in lines if not line.startswith("#")]
        skip = False
        while lines and re.match(r"(skipif|onlyif|halt|hash-threshold)\b", lines[0]):
            word, _, engine = lines.pop(0).partition(" ")
            engine = engine.split("#")[0].strip()
            if word == "halt" and not skip:
                return
            skip |= word == "onlyif" and engine != ENGINE or word == "skipif" and engine == ENGINE
        if skip or not lines or not re.match(r"(statement|query)\b", lines[0]):
            continue
        head = lines.pop(0).split()
        end = next((at for at, line in enumerate(lines) if line.startswith("----")), len(lines))
        wanted = head[1] if len(head) > 1 else ""
        yield Record(
            first, "\n".join(lines[:end]), wanted, head[2] if len(head) > 2 else "nosort", tuple(lines[end + 1 :])
        )


def shown(cell, kind):
    """A value as the files have it: whole numbers without a fraction, others with three digits of it."""
    if cell is None:
        return "NULL"
    if kind == "T":
        return re.sub(r"[^ -~]", "@", cell) or "(empty)"
    try:
        return f"{float(cell):.3f}" if kind == "R" else str(int(float(cell)) if re.search(r"[.e]", cell) else int(cell))
    except ValueError:
        return {"t": "1", "f": "0"}.get(cell, cell)


def is_right(record, answer):
    if record.wanted in ("ok", "error"):
        return (record.wanted == "error") == bool(answer.code)
    if answer.code or any(len(row) != len(record.wanted) for row in answer.rows):
        return False
    rows = [[shown(cell, kind) for cell, kind in zip(row, record.wanted)] for row in answer.rows]
    values = [cell for row in (sorted(rows) if record.sort == "rowsort" else rows) for cell in row]
    if record.sort == "valuesort":
        values.sort()
    if len(record.lines) == 1 and (hashed := re.fullmatch(r"(\d+) values hashing to ([0-9a-f]+)", record.lines[0])):
        digest = hashlib.md5("".join(f"{value}\n" for value in values).encode()).hexdigest()
        return (str(len(values)), digest) == hashed.groups()
    return values == [line for line in record.lines if line]


class Corpus:
    def __init__(self, options):
        self.options = options
        self.folder = fetch.maven(ARTIFACT) / "test"
        self.causes, self.examples = {WHOLE: collections.Counter(), SAMPLED: collections.Counter()}, {}

    def chosen(self):
        """(suite, file) of every file that runs."""
        names = sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*.test"))
        large = [name for name in names if name.startswith(("random/", "index/"))]
        drawn = set(random.Random(SEED).sample(large, round(self.options.sample * len(large))))
        self.large = len(large)
        for name in names:
            if name not in large or name in drawn:
                if not self.options.files or any(part in name for part in self.options.files.split(",")):
                    yield (SAMPLED if name in large else WHOLE), name

    def run(self):
        control, cairn = Postgres(), Cairn(self.options.cairn)
        results = {}
        try:
            players = [Player(server, {}, {}, self.options.timeout) for server in (control, cairn)]
            for suite, name in self.chosen():
                counts = self.file(suite, name, *players)
                result = results.setdefault(suite, collections.Counter())
                result.update({**counts, "files": 1})
                print(f"{name:40} {dict(counts)}", file=sys.stderr, flush=True)
        finally:
            control.stop()
            cairn.stop()
        return {suite: self.result(suite, counts) for suite, counts in results.items()}

    def result(self, suite, counts):
        keys = ("of", "pass", "fail", "control", "only_control", "files")
        sample = {"sample": self.options.sample, "of_files": self.large} if suite == SAMPLED else {}
        causes = [
            {"message": cause, "count": count, "example": self.examples[cause]}
            for cause, count in self.causes[suite].most_common(STORED)
        ]
        return {"title": TITLES[suite], **{key: counts[key] for key in keys}, **sample, "causes": causes}

    def file(self, suite, name, pg, mine):
        counts = collections.Counter(of=0)
        for player in (pg, mine):
            player.server.fresh()
            player.open()
        text = (self.folder / name).read_text(encoding="utf-8", errors="replace")
        with open(self.options.out / (name.replace("/", "-") + ".txt"), "w") as log:
            for record in records(text):
                counts["of"] += 1
                reference, answer = (player.send(record.sql)[0][-1] for player in (pg, mine))
                control, passed = is_right(record, reference), is_right(record, answer)
                counts["control"] += control
                counts["pass" if passed else "fail"] += 1
                if control and not passed:
                    counts["only_control"] += 1
                    self.note(suite, name, record, reference, answer, log)
        for player in (pg, mine):
            player.close()
        return counts

    def note(self, suite, name, record, reference, answer, log):
        cause = Cause.of(answer, record.sql).message if answer.code else "another answer"
        self.causes[suite][cause] += 1
        self.examples.setdefault(cause, f"{name}: {' '.join(record.sql.split())[:160]}")
        print(
            f"==== line {record.line}: {cause}",
            record.sql,
            f"  postgres {reference}"[:600],
            f"  cairn    {answer}"[:600],
            sep="\n",
            file=log,
        )


def run(options):
    return Corpus(options).run()
