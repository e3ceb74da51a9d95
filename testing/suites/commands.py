"""The commands of `suites.py`: run suites, show their results, write the page."""

import collections
import importlib
import json
import sys

import fetch
import places

# Name: (module, what it is).
SUITES = {
    "regress": ("regress", "PostgreSQL's regression statements"),
    "slt": ("slt", "SQLite's sqllogictest corpus"),
}


def list(_):
    for name, (_, title) in SUITES.items():
        print(f"{name:12} {title}")


def run(options):
    options.cairn = places.cairn()
    stored = json.loads(places.RESULTS.read_text()) if places.RESULTS.exists() else {}
    results = {}
    for name in options.suites or SUITES:
        if name not in SUITES:
            raise SystemExit(f"suites: there is no suite {name!r}, only {', '.join(SUITES)}")
        out = options.out / name
        out.mkdir(parents=True, exist_ok=True)
        module = importlib.import_module(SUITES[name][0])
        try:
            result = module.run(type(options)(**{**vars(options), "out": out}))
        except fetch.Missing as missing:
            print(f"suites: {name} is passed over: {missing}", file=sys.stderr)
            continue
        (out / "result.json").write_text(dump(result))
        results |= result if "of" not in result else {name: result}
    print(table(results))
    if options.store:
        places.RESULTS.write_text(dump({**stored, **results}))


def dump(value):
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def table(results):
    rows = [("suite", "pass", "fail", "of", "PostgreSQL")]
    rows += [(name, *(f"{result[column]:,}" for column in ("pass", "fail", "of", "control"))) for name, result in results.items()]
    return "\n".join(f"{row[0]:32} " + " ".join(f"{cell:>10}" for cell in row[1:]) for row in rows)


def causes(options):
    """Prints themes and messages by the number of statements that they block, directly and in consequence."""
    path = options.out / "regress" / "causes.json"
    if not path.exists():
        raise SystemExit("suites: there was no run of `regress` yet")
    found = json.loads(path.read_text())
    themes = collections.defaultdict(lambda: [0, 0])
    for cause in found:
        for at, count in enumerate((cause["direct"] + cause["consequent"], cause["direct"])):
            themes[cause["theme"]][at] += count
    print(f"{'blocked':>8} {'direct':>7}  theme")
    for theme, (blocked, direct) in sorted(themes.items(), key=lambda item: -item[1][0]):
        print(f"{blocked:8} {direct:7}  {theme}")
    print(f"\n{'blocked':>8} {'direct':>7}  message")
    for cause in found[: options.count]:
        print(f"{cause['direct'] + cause['consequent']:8} {cause['direct']:7}  {cause['message']}")
        print(f"{'':18}{cause['theme']}; {cause['example']}")


def page(_):
    importlib.import_module("page").write(json.loads(places.RESULTS.read_text()))
