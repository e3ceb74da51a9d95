"""PostgreSQL's regression files, statement by statement, on PostgreSQL and on Cairn.

Each file begins with a fresh copy of the database that `test_setup.sql` makes. PostgreSQL answers twice, which shows
the statements whose answers differ from run to run. Plans (EXPLAIN) are not compared: they are each engine's own.
"""

import collections
import json
import re
import shutil
import sys

import fetch
from blame import Blame
from judge import ANSWER, CODE, IDENTICAL, REFUSED, SAME_CODE, judge
from places import POSTGRES_VERSION, scratch
from player import CRASH, HANG, LOST, Player
from scope import CORE, NEEDS, in_scope
from servers import Cairn, Postgres

# As pg_regress sets them, and as a server has them when nobody does.
SETTINGS = {
    "regress": {"datestyle": "Postgres, MDY", "timezone": "PST8PDT", "intervalstyle": "postgres_verbose"},
    "default": {"timezone": "UTC"},
}
AFTER = "after"
KINDS = (IDENTICAL, SAME_CODE, REFUSED, AFTER, CODE, ANSWER, "accepted", "crash", "timeout")
ENDED = {CRASH: "crash", LOST: "crash", HANG: "crash", "TIMEOUT": "timeout"}
# Messages of a result that are stored.
STORED = 150


class Regress:
    def __init__(self, options):
        self.options = options
        self.source = fetch.debian_source(f"postgresql-{POSTGRES_VERSION}", "src/test/regress")
        self.folder = scratch("regress")
        shutil.copytree(self.source / "data", self.folder / "data")
        (self.folder / "results").mkdir()
        (self.folder / "results").chmod(0o777)
        self.environment = {
            "PG_ABS_SRCDIR": str(self.folder),
            "PG_ABS_BUILDDIR": str(self.folder),
            "PG_DLSUFFIX": ".so",
            "PG_LIBDIR": str(self.folder),
        }
        self.direct, self.consequent, self.examples = collections.Counter(), collections.Counter(), {}

    def text(self, name):
        return (self.source / "sql" / f"{name}.sql").read_text(encoding="utf-8", errors="surrogateescape")

    def player(self, server):
        settings = SETTINGS[self.options.settings]
        return Player(server, settings, self.environment, self.options.timeout)

    def run(self):
        names = self.names()
        control, cairn = Postgres(), Cairn(self.options.cairn)
        try:
            pg, mine = self.player(control), self.player(cairn)
            wanted = pg.play(self.text("test_setup"))
            self.setup = wanted, mine.play(self.text("test_setup"), wanted[1])
            control.keep()
            cairn.keep()
            files = {}
            for name in names:
                files[name] = self.file(name, pg, mine)
                print(f"{name:24} {line(files[name])}", file=sys.stderr, flush=True)
        finally:
            control.stop()
            cairn.stop()
            shutil.rmtree(self.folder, ignore_errors=True)
        return self.result(files)

    def names(self):
        if self.options.files:
            chosen = [name for part in self.options.files.split(",") for name in (CORE if part == "core" else [part])]
            return list(dict.fromkeys(chosen))
        return in_scope((self.source / "parallel_schedule").read_text())

    def play(self, player, name, copied=None):
        """For each file that this one needs, and for itself: the steps, and the places where it read data of COPY."""
        player.server.fresh()
        return [
            player.play(self.text(part), copied and copied[at])
            for at, part in enumerate([*NEEDS.get(name, "").split(), name])
        ]

    def file(self, name, pg, mine):
        wanted = self.play(pg, name)
        copied = [places for _, places in wanted]
        again = {step.key: step for step in self.play(pg, name, copied)[-1][0]}
        played = self.play(mine, name, copied)
        counts = collections.Counter({kind: 0 for kind in ("of", "control", "plans", *KINDS)})
        blame, script = Blame(), self.text(name)
        before = [
            (reference, steps)
            for (reference, _), (steps, _) in zip([self.setup[0], *wanted[:-1]], [self.setup[1], *played[:-1]])
        ]
        for references, steps in before:
            got = {step.key: step for step in steps}
            for reference in references:
                self.judge(blame, reference, got.get(reference.key))
        got = {step.key: step for step in played[-1][0]}
        with open(self.options.out / f"{name}.txt", "w", encoding="utf-8", errors="backslashreplace") as log:
            for step in wanted[-1][0]:
                if re.match(r"explain\b", step.sql, re.I):
                    counts["plans"] += 1
                    continue
                counts["of"] += 1
                second = again.get(step.key)
                counts["control"] += (
                    second is not None and judge(step.sql, step.answers, second.answers)[0] == IDENTICAL
                )
                kind, root = self.judge(blame, step, got.get(step.key), name)
                counts[kind] += 1
                if kind != IDENTICAL:
                    report(log, script.count("\n", 0, step.key[0]) + 1, kind, root, step, got.get(step.key))
        return dict(counts)

    def judge(self, blame, reference, step, name=None):
        """(kind, the refusal that it goes back to) of a step; without a name, of the setup, which does not count."""
        if step is None:
            return AFTER, None
        kind, error = judge(reference.sql, reference.answers, step.answers)
        root, suffers = None, False
        if error is not None and error.code in ENDED and kind in (REFUSED, CODE):
            kind = ENDED[error.code]
            root, _ = blame.refused(reference.sql, error, step.status)
        elif kind in (REFUSED, CODE) and not any(answer.code for answer in reference.answers):
            root, suffers = blame.refused(reference.sql, error, step.status)
            kind = AFTER if suffers else kind
        elif kind not in (IDENTICAL, SAME_CODE):
            root = blame.differs(reference.sql)
            suffers = root is not None
        blame.passed(reference.sql, step.status, any(answer.code for answer in step.answers))
        if root and name:
            (self.consequent if suffers else self.direct)[root] += 1
            if not suffers:
                self.examples.setdefault(root, f"{name}: {' '.join(reference.sql.split())[:160]}")
        return kind, root

    def result(self, files):
        total = collections.Counter()
        for counts in files.values():
            total.update(counts)
        blocked = self.direct + self.consequent
        causes = [
            {
                **root._asdict(),
                "direct": self.direct[root],
                "consequent": self.consequent[root],
                "example": self.examples.get(root, ""),
            }
            for root, _ in blocked.most_common()
        ]
        (self.options.out / "causes.json").write_text(json.dumps(causes, indent=1, ensure_ascii=False))
        return {
            "title": "PostgreSQL's regression statements",
            "of": total["of"],
            "pass": total[IDENTICAL],
            "fail": total["of"] - total[IDENTICAL],
            "control": total["control"],
            "settings": self.options.settings,
            "kinds": {kind: total[kind] for kind in KINDS},
            "plans": total["plans"],
            "files": files,
            "themes": self.themes(),
            "causes": causes[:STORED],
        }

    def themes(self):
        """Statements that each theme blocks: [all, directly], most first."""
        themes = collections.defaultdict(lambda: [0, 0])
        for root, count in (self.direct + self.consequent).items():
            themes[root.theme][0] += count
            themes[root.theme][1] += self.direct[root]
        return dict(sorted(themes.items(), key=lambda item: -item[1][0]))


def line(counts):
    return " ".join(f"{kind} {counts[kind]}" for kind in ("of", *KINDS) if counts[kind])


def report(log, number, kind, root, step, other):
    """One statement with both answers, for who wants to know more."""
    print(f"==== line {number}: {kind}" + (f", for {root.message}" if root else ""), step.sql, sep="\n", file=log)
    for side, answers in (("postgres", step.answers), ("cairn", other.answers if other else ())):
        for answer in answers:
            shown = (
                f"{answer.code}: {answer.message}"
                if answer.code
                else f"{answer.tag} {[list(row) for row in answer.rows[:12]]}"
            )
            print(f"  {side:8} {shown[:1500]}", file=log)


def run(options):
    return Regress(options).run()
