"""Writes the page of the book that shows the results."""

import collections
import textwrap

import places
from regress import KINDS
from scope import CORE, OUT
from judge import IDENTICAL

# Rows of the tables of causes.
SHOWN = 40
WIDTH = 100
ORDER = ("regress", "slt", "slt-random", "sqlalchemy", "django", "psycopg", "asyncpg")

HEAD = """# Compared with PostgreSQL's and SQLite's tests

<!-- Written by `make sql-suites ARGS=page` from testing/suites/results.json. -->

`make sql-suites` runs foreign test suites against `cairn sql serve` and, with the same harness,
against PostgreSQL 15. Each suite is fetched from its package when it runs, and runs as it is:
settings may name the server and its database, but no test is changed. PostgreSQL's own count shows
how many of the cases the harness can pass at all.

```sh not-run: needs PostgreSQL and the package registries, and takes an hour
make sql-suites                                      # all suites
make sql-suites ARGS="run regress --files core"      # a part of one
make sql-suites ARGS="run --store" && make sql-suites ARGS=page
```
"""

REGRESS = """## PostgreSQL's regression statements

Each file begins with a copy of the database of `test_setup.sql`, in the session settings of
`pg_regress`. psql's own commands are interpreted by the harness. A statement is *identical* if both
servers return the same tag and rows as text, in the same order if the statement has an ORDER BY, or
an error with the same code and message. *Refused* are statements that PostgreSQL accepts and Cairn
rejects with 0A000 or 42601; *after* are statements that fail in consequence of an earlier failure.
The {plans:,} EXPLAIN statements are left out, because a plan belongs to its engine.
"""


def write(results):
    results = {name: results[name] for name in ORDER if name in results}
    parts = [HEAD, "## All suites", suites(results)]
    if regress := results.get("regress"):
        parts += [REGRESS.format(**regress).rstrip(), files(regress["files"])]
        parts += [
            "### Causes",
            wrapped(
                "A failed statement counts for the refusal that it goes back to: directly, or because an earlier"
                " statement was refused that would have made or changed a table, a function or a setting."
            ),
            themes(regress),
        ]
        parts += ["The messages that block most statements:", causes(regress)]
        parts += ["### Out of scope", out_of_scope()]
    for name, result in results.items():
        if name != "regress" and result.get("causes"):
            parts += [f"## {result.get('title', name)}", failures(result)]
    places.PAGE.write_text("\n\n".join(part.strip("\n") for part in parts) + "\n")
    print(places.PAGE)


def wrapped(text):
    return textwrap.fill(text, WIDTH)


def grid(head, rows):
    """A table of Markdown. Columns after the first are numbers if their heading ends with a colon."""
    mark = "|".join("---:" if name.endswith(":") else "---" for name in head)
    lines = ["| " + " | ".join(name.rstrip(":") for name in head) + " |", f"|{mark}|"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def share(part, whole):
    """A percentage that is rounded down: 100.0 is all of them."""
    return f"{1000 * part // whole / 10:.1f} %" if whole else ""


def suites(results):
    rows = []
    for name, result in results.items():
        title = result.get("title", name)
        if "sample" in result:
            title += f" ({result['files']} of {result['of_files']} files)"
        counts = (result["pass"], result["fail"], result["of"], result["control"])
        rows.append((title, *(f"{count:,}" for count in counts), share(result["pass"], result["control"])))
    return grid(("suite", "pass:", "fail:", "of:", "PostgreSQL:", "Cairn, of those:"), rows)


def files(of):
    total, core = collections.Counter(), collections.Counter()
    rows = []
    for name, counts in of.items():
        total.update(counts)
        core.update(counts if name in CORE else {})
        rows.append(row(f"`{name}`", counts))
    head = ("file", "of:", *(f"{kind}:" for kind in KINDS), "identical:")
    return grid(head, [row("all", total), row("those that the goals name", core), *rows])


def row(name, counts):
    return name, f"{counts['of']:,}", *(counts[kind] or "" for kind in KINDS), share(counts[IDENTICAL], counts["of"])


def themes(regress):
    rows = [(theme, f"{blocked:,}", f"{direct:,}") for theme, (blocked, direct) in regress["themes"].items()]
    return grid(("subject", "statements:", "directly:"), rows)


def code(text):
    """Inline code in a cell of a table."""
    return "`" + " ".join(text.split()).replace("`", "'").replace("|", "\\|") + "`"


def causes(regress):
    rows = [
        (code(cause["message"]), cause["direct"] + cause["consequent"], cause["direct"])
        for cause in regress["causes"][:SHOWN]
    ]
    return grid(("message", "statements:", "directly:"), rows)


def out_of_scope():
    rows = [(reason, ", ".join(f"`{name}`" for name in names.split())) for reason, names in OUT.items()]
    return grid(("reason", "files"), rows)


def failures(result):
    rows = [(code(cause["message"]), cause["count"], code(cause["example"])) for cause in result["causes"][:SHOWN]]
    return grid(("cause", "cases:", "example"), rows)
