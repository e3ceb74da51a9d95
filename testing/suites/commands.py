"""The commands of `suites.py`: run suites, show their results, write the page."""

import importlib
import json
import os
import sys

import fetch
import places

# Name: (module, function, title).
SUITES = {
    "regress": ("regress", "run", "PostgreSQL's regression statements"),
    "slt": ("slt", "run", "SQLite's sqllogictest corpus"),
    "sqlalchemy": ("python_suites", "sqlalchemy", "SQLAlchemy's suite for dialects"),
    "django": ("django_suite", "run", "Django's own tests"),
    "psycopg": ("python_suites", "psycopg", "the tests of psycopg 3"),
    "asyncpg": ("python_suites", "asyncpg", "the tests of asyncpg"),
}


def names(_):
    for name, (_, _, title) in SUITES.items():
        print(f"{name:12} {title}")


def run(options):
    options.cairn = places.cairn()
    if options.pass_over:
        os.environ["SUITES_PASS_OVER"] = options.pass_over
        if options.store:
            raise SystemExit("suites: results of a run with --pass-over are not stored")
    if options.store and options.files:
        raise SystemExit("suites: results of a part are not stored")
    stored = json.loads(places.RESULTS.read_text()) if places.RESULTS.exists() else {}
    results = {}
    for name in options.suites or SUITES:
        if name not in SUITES:
            raise SystemExit(f"suites: there is no suite {name!r}, only {', '.join(SUITES)}")
        out = options.out / name
        out.mkdir(parents=True, exist_ok=True)
        module, function, _ = SUITES[name]
        try:
            result = getattr(importlib.import_module(module), function)(type(options)(**{**vars(options), "out": out}))
        except fetch.Missing as missing:
            print(f"suites: {name} is passed over: {missing}", file=sys.stderr)
            continue
        (out / "result.json").write_text(dump(result) + "\n")
        # A module of several suites returns one result for each.
        results |= {name: result} if "of" in result else result
        if options.store:
            places.RESULTS.write_text(dump({**stored, **results}) + "\n")
    print(table(results))


def dump(value, indent=""):
    """JSON with a line for each value that has no lists and objects in it, so that changes can be read."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(item, (dict, list)) for item in items):
        return json.dumps(value, ensure_ascii=False)
    keys = [f"{json.dumps(key)}: " for key in value] if isinstance(value, dict) else [""] * len(value)
    lines = [f"{indent} {key}{dump(item, indent + ' ')}" for key, item in zip(keys, items)]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return begin + "\n" + ",\n".join(lines) + "\n" + indent + end


def table(results):
    rows = [("suite", "pass", "fail", "of", "PostgreSQL")]
    rows += [
        (result.get("title", name), *(f"{result[column]:,}" for column in ("pass", "fail", "of", "control")))
        for name, result in results.items()
    ]
    return "\n".join(f"{row[0]:40} " + " ".join(f"{cell:>10}" for cell in row[1:]) for row in rows)


def causes(options):
    """Prints themes and messages by the number of statements that they block, directly and in consequence."""
    path = options.out / "regress" / "causes.json"
    if not path.exists():
        raise SystemExit("suites: there was no run of `regress` yet")
    result = json.loads((path.parent / "result.json").read_text())
    print(f"{'blocked':>8} {'direct':>7}  theme")
    for theme, (blocked, direct) in result["themes"].items():
        print(f"{blocked:8} {direct:7}  {theme}")
    print(f"\n{'blocked':>8} {'direct':>7}  message")
    for cause in json.loads(path.read_text())[: options.count]:
        print(f"{cause['direct'] + cause['consequent']:8} {cause['direct']:7}  {cause['message']}")
        print(f"{'':18}{cause['theme']}; {cause['example']}")


def page(_):
    importlib.import_module("page").write(json.loads(places.RESULTS.read_text()))


COMMANDS = {"list": names, "run": run, "causes": causes, "page": page}
