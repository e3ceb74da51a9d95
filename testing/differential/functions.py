"""The table of functions, operators and casts of `crates/sql/src/expr/functions`, from functions.json.

A test of cairn-sql keeps that file: `CAIRN_BLESS=1 cargo nextest run -p cairn-sql list_of_functions`.
"""

import json
import pathlib

from trees import N

KINDS = {
    "smallint": "i2", "integer": "i4", "bigint": "i8", "numeric": "num", "real": "f4", "double precision": "f8", "text": "text", "boolean": "bool", "date": "date",
    "timestamp without time zone": "ts", "timestamp with time zone": "tz", "time without time zone": "time", "interval": "iv", "uuid": "uuid", "bytea": "bytea",
}
TABLE = json.loads((pathlib.Path(__file__).parent / "functions.json").read_text())
EXAMPLES = [expression for rows in TABLE.values() for row in rows for expression, _ in row["examples"]]

# Texts among their arguments are patterns, units or formats. Their examples are drawn instead.
OF_PATTERNS = {"date_part", "date_trunc", "encode", "extract", "format", "overlay", "to_char", "to_date", "to_number", "to_timestamp", "trim"}
# The results depend on digits that types have and values do not, or on the library of mathematics.
LEFT_OUT = {"concat", "concat_ws", "cot", "gcd", "lcm", "pg_typeof", "quote_literal", "quote_nullable"}


def is_drawn(row):
    kinds = {KINDS.get(kind) for kind in [row["result"], *row["arguments"]]}
    return row["kind"] == "scalar" and row["volatility"] == "immutable" and row["name"] not in LEFT_OUT and None not in kinds


def by_result():
    """The rows for each kind of result."""
    rows = {}
    for row in filter(is_drawn, TABLE["functions"]):
        rows.setdefault(KINDS[row["result"]], []).append(row)
    return rows


BY_RESULT = by_result()


def call(draw, kind, e):
    """A call of a function with results of a kind; None where there is none. `e` draws an argument of a kind."""
    rows = BY_RESULT.get(kind)
    if not rows:
        return None
    row = draw.choice(rows)
    if row["name"] in OF_PATTERNS or row["name"].startswith(("regexp", "make_")) or row["name"] == "substring":
        values = [expression for expression, value in row["examples"] if len(value) != 5 or not value[:2].isdigit()]
        return N(kind, draw.choice(values)) if values else None
    count = len(row["arguments"]) - draw.randint(0, row["optional"])
    # Counts and positions are small.
    given = [N("i4", str(draw.randint(-2, 6))) if of == "integer" and kind != "i4" else e(KINDS[of]) for of in row["arguments"][:count]]
    return N(kind, row["name"], "(", *[part for argument in given for part in (", ", argument)][1:], ")")
