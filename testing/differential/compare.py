#!/usr/bin/env python3
"""Cairn's answers against PostgreSQL's, by statements that are drawn from seeds: all types, joins of every kind, subqueries, groups, windows, changes.

    compare.py --cairn DIR --postgres DIR [--seed N] [--schemas N] [--count N] [--kinds a,b,..]

DIR is the folder of a server's socket. Both databases must be ones that may be emptied. A difference is reduced to a statement as short as it
gets and printed with what made its tables; differences that look alike are printed once. What Cairn refuses with 0A000 is counted, not compared.
"""

import argparse
import collections
import decimal
import random
import re
import sys

import psycopg
from psycopg import pq

# ---------------------------------------------------------------- trees of statements


class N:
    """A part of a statement: `kind` is its type (a part of the same type may take its place), "opt" (may go) or "list" (items may go)."""

    def __init__(self, kind, *parts):
        self.kind, self.parts = kind, list(parts)

    def __str__(self):
        if self.kind == "list":
            return self.parts[0].join(str(part) for part in self.parts[1:])
        return "".join(str(part) for part in self.parts)


def walk(node, path=()):
    yield path, node
    for at, part in enumerate(node.parts):
        if isinstance(part, N):
            yield from walk(part, (*path, at))


def put(node, path, new):
    if not path:
        return new
    copy = N(node.kind, *node.parts)
    copy.parts[path[0]] = put(node.parts[path[0]], path[1:], new)
    return copy


def simpler(tree):
    """Trees with one part less, the biggest cuts first."""
    found = []
    for path, node in walk(tree):
        size = len(str(node))
        if node.kind == "opt" and node.parts:
            found.append((size, path, N("opt")))
        elif node.kind == "list" and len(node.parts) > 2:
            for at in range(1, len(node.parts)):
                found.append((len(str(node.parts[at])), path, N("list", *node.parts[:at], *node.parts[at + 1 :])))
        elif node.kind in TYPES:
            for below, other in walk(node):
                if below and other.kind == node.kind:
                    found.append((size - len(str(other)), path, other))
            if size > 6:
                for text in SIMPLE.get(node.kind, []):
                    if len(text) < size:
                        found.append((size - len(text), path, N(node.kind, text)))
    found.sort(key=lambda item: -item[0])
    for _, path, new in found:
        yield put(tree, path, new)


# ---------------------------------------------------------------- types and values

TYPES = {
    "i2": "smallint", "i4": "integer", "i8": "bigint", "num": "numeric(12,3)", "f4": "real", "f8": "double precision", "text": "text", "vc": "varchar(20)",
    "bool": "boolean", "date": "date", "ts": "timestamp", "tz": "timestamptz", "time": "time", "iv": "interval", "uuid": "uuid", "bytea": "bytea",
}
VALUES = {
    "i2": ["0", "1", "2", "3", "-1", "7", "32767", "-32768"],
    "i4": ["0", "1", "2", "3", "-1", "7", "2147483647", "-2147483648", "100"],
    "i8": ["0", "1", "2", "3", "-1", "7", "9223372036854775807", "-9223372036854775808", "5000000000"],
    "num": ["0", "1", "2", "1.5", "-1.5", "0.001", "2.50", "999999999.999", "-0.5", "3"],
    "f4": ["0", "1", "2", "0.5", "-1.5", "0.1", "1e10", "'NaN'", "'Infinity'"],
    "f8": ["0", "1", "2", "0.5", "-1.5", "0.1", "1e300", "'NaN'", "'-Infinity'", "2.5"],
    "text": ["''", "'a'", "'A'", "'ab'", "'aB'", "'b%'", "'_x'", "'é'", "'ß'", "'日本'", "'it''s'", "E'a\\\\b'", "' lead'", "'trail '", "'100'", "'NULL'", "'abcabc'", "E'a\\nb'"],
    "vc": ["''", "'a'", "'A'", "'ab'", "'b'", "'é'", "'x y'", "'1'"],
    "bool": ["true", "false"],
    "date": ["'2024-02-29'", "'2024-03-31'", "'1999-12-31'", "'2000-01-01'", "'1969-07-20'", "'2024-12-30'"],
    "ts": ["'2024-02-29 12:34:56.789'", "'1999-12-31 23:59:59.999999'", "'2000-01-01 00:00:00'", "'1969-07-20 20:17:40'", "'2024-03-31 01:30:00'"],
    "tz": ["'2024-02-29 12:34:56.789+00'", "'1999-12-31 23:59:59+00'", "'2000-01-01 00:00:00+02'", "'1969-07-20 20:17:40-05'"],
    "time": ["'00:00:00'", "'12:34:56.789'", "'23:59:59.999999'", "'06:00'"],
    "iv": ["'1 day'", "'1 month'", "'-1 day 02:00:00'", "'00:00:00.5'", "'1 year 2 mons 3 days 04:05:06'", "'24:00:00'", "'30 days'", "'0'"],
    "uuid": ["'00000000-0000-0000-0000-000000000001'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "bytea": ["'\\x'", "'\\x00'", "'\\x61'", "'\\xdeadbeef'", "'\\x6162'"],
}
SIMPLE = {kind: [f"NULL::{name}", f"{values[1]}::{TYPES[kind].split('(')[0]}"] for kind, values in VALUES.items() for name in [TYPES[kind]]}
SIMPLE["bool"] = ["true", "false", "NULL::boolean"]
OIDS = {"i2": 21, "i4": 23, "i8": 20, "num": 1700, "f4": 700, "f8": 701, "text": 25, "vc": 1043, "bool": 16, "date": 1082, "ts": 1114, "tz": 1184, "time": 1083, "iv": 1186, "uuid": 2950, "bytea": 17}
INTS, NUMBERS, TEXTS, TIMES = ["i2", "i4", "i8"], ["i2", "i4", "i8", "num", "f8", "f4"], ["text", "vc"], ["date", "ts", "tz"]


class Draw(random.Random):
    def p(self, percent):
        return self.random() * 100 < percent


# ---------------------------------------------------------------- tables


class Table:
    def __init__(self, draw, number, others):
        self.name = f"t{number}"
        self.columns = [("id", "i4")]
        kinds = list(TYPES)
        for at in range(draw.randint(4, 8)):
            kind = draw.choice(["i4", "i4", "i8", "text", "text", "num", "bool"]) if draw.p(55) else draw.choice(kinds)
            self.columns.append((f"{'abcdefgh'[at]}{number}" if draw.p(40) else "abcdefgh"[at], kind))
        lines = []
        self.composite = draw.p(25)
        self.no_key = not self.composite and draw.p(10)
        self.unique = []
        for name, kind in self.columns:
            line = f"{name} {TYPES[kind]}"
            if name == "id" and not self.composite and not self.no_key:
                line += " primary key"
            elif name != "id" and kind != "iv" and draw.p(12):
                line += " unique"
                self.unique.append(name)
            elif name != "id" and kind == "i4" and others and draw.p(15):
                other = draw.choice(others)
                if not other.composite and not other.no_key:
                    line += f" references {other.name} (id) on delete {draw.choice(['cascade', 'set null', 'no action'])} on update cascade"
            elif draw.p(8) and name != "id":
                line += " not null"
            lines.append(line)
        self.key = ["id"]
        if self.composite and self.columns[1][1] == "iv":
            self.composite = False
        if self.composite:
            self.key = ["id", self.columns[1][0]]
            lines.append(f"primary key ({', '.join(self.key)})")
        if draw.p(20):
            two = draw.sample([name for name, kind in self.columns[1:] if kind != "iv"] + ["id"], 2)
            lines.append(f"unique ({', '.join(two)})")
        self.create = [f"create table {self.name} ({', '.join(lines)})"]
        for at in range(draw.randint(0, 2)):
            keys = draw.sample([name for name, kind in self.columns if kind != "iv"], draw.randint(1, 2))
            include = [name for name, _ in self.columns if name not in keys]
            text = f"create index ix{number}_{at} on {self.name} ({', '.join(key + draw.choice(['', ' desc', ' desc nulls last', ' nulls first']) for key in keys)})"
            if draw.p(40):
                text += f" include ({draw.choice(include)})"
            self.create.append(text)
        self.rows = []
        for row in range(draw.randint(0, 14) if draw.p(80) else draw.randint(0, 2)):
            values = []
            for name, kind in self.columns:
                if name == "id":
                    values.append(str(row + 1))
                elif draw.p(30):
                    values.append("NULL")
                else:
                    some = VALUES[kind]
                    values.append(draw.choice(some[: max(3, len(some) // 2)] if draw.p(70) else some))
            self.rows.append(values)

    def inserts(self):
        return [f"insert into {self.name} values ({', '.join(values)})" for values in self.rows]


# ---------------------------------------------------------------- expressions


class Gen:
    """Draws expressions over `scope`: (how it is written, kind)."""

    def __init__(self, draw, tables, wild=False):
        self.draw, self.tables, self.wild, self.aliases, self.ctes = draw, tables, wild, 0, []
        # Values of parameters, where literals may be ones.
        self.params = None

    def alias(self):
        self.aliases += 1
        return f"q{self.aliases}"

    def kind(self):
        return self.draw.choice(["i4", "i4", "i8", "text", "text", "num", "bool", "f8", "date", "ts"]) if self.draw.p(70) else self.draw.choice(list(TYPES))

    def literal(self, kind):
        d = self.draw
        if d.p(12):
            return N(kind, f"NULL::{TYPES[kind]}" if d.p(80) or kind == "iv" else f"CAST(NULL AS {TYPES[kind]})")
        value = d.choice(VALUES[kind][:6] if not self.wild else VALUES[kind])
        if self.params is not None and d.p(60):
            plain = value.removeprefix("E").strip("'") if value[-1] == "'" else value
            self.params.append((plain.replace("''", "'").replace("\\\\", "\\").replace("\\n", "\n") if value[0] == "E" else plain.replace("''", "'"), OIDS[kind]))
            return N(kind, f"${len(self.params)}")
        if kind in ("i4", "bool") or (kind == "num" and d.p(60)) or (kind == "text" and d.p(50)):
            return N(kind, f"({value})" if value.startswith("-") else value)
        if kind == "num":
            return N(kind, f"'{value}'::numeric(12,3)" if d.p(50) else f"{value}::numeric")
        value = value if value.startswith(("'", "E")) else f"'{value}'"
        return N(kind, f"{value}::{TYPES[kind]}")

    def column(self, scope, kind):
        there = [name for name, of in scope if of == kind]
        return N(kind, self.draw.choice(there)) if there else None

    def leaf(self, kind, scope):
        if self.draw.p(75):
            column = self.column(scope, kind)
            if column:
                return column
        return self.literal(kind)

    def expr(self, kind, scope, depth, agg=None):
        """`agg`: a scope that aggregates may look at."""
        d = self.draw
        if agg is not None and d.p(45):
            made = self.aggregate(kind, agg, 1)
            if made:
                return made
        if depth <= 0 or d.p(25):
            return self.leaf(kind, scope)
        e = lambda k, less=1: self.expr(k, scope, depth - less, agg)
        common = d.random() * 100
        if common < 8:
            cases = N("list", " ", *[N("x", "WHEN ", e("bool"), " THEN ", e(kind)) for _ in range(d.randint(1, 2))])
            return N(kind, "CASE ", cases, N("opt", " ELSE ", e(kind)) if d.p(70) else "", " END")
        if common < 14:
            return N(kind, d.choice(["COALESCE", "COALESCE", "GREATEST", "LEAST"]) if kind != "bool" else "COALESCE", "(", N("list", ", ", *[e(kind) for _ in range(d.randint(2, 3))]), ")")
        if common < 17:
            return N(kind, "NULLIF(", e(kind), ", ", e(kind), ")")
        if common < 19:
            of = self.kind()
            return N(kind, "CASE ", e(of), " WHEN ", e(of), " THEN ", e(kind), N("opt", " ELSE ", e(kind)), " END")
        if common < 22 and self.tables and depth > 1 and agg is None:
            return self.scalar_subquery(kind, scope, depth - 1)
        return getattr(self, "of_" + kind)(e, scope, depth) or self.leaf(kind, scope)

    def ints(self, kind, e):
        d = self.draw
        r = d.randint(0, 9)
        if r < 4:
            return N(kind, "(", e(kind), d.choice([" + ", " - ", " * "]), e(kind), ")")
        if r == 4:
            return N(kind, "(", e(kind), d.choice([" / ", " % "]), "NULLIF(", e(kind), f", 0::{TYPES[kind]}))")
        if r == 5:
            return N(kind, "abs(", e(kind), ")")
        if r == 6:
            return N(kind, "(- ", e(kind), ")")
        if r == 7:
            return N(kind, "CAST(", e(d.choice(NUMBERS)), f" AS {TYPES[kind]})")
        if r == 8:
            return N(kind, "mod(", e(kind), ", ", f"{d.choice([2, 3, -3])}::{TYPES[kind]})")
        return None

    def of_i2(self, e, scope, depth):
        return self.ints("i2", e)

    def of_i4(self, e, scope, depth):
        d = self.draw
        r = d.randint(0, 13)
        if r < 6:
            return self.ints("i4", e)
        return [
            lambda: N("i4", "length(", e("text"), ")"), lambda: N("i4", "octet_length(", e("text"), ")"),
            lambda: N("i4", d.choice(["strpos(", "strpos("]), e("text"), ", ", e("text"), ")"), lambda: N("i4", "position(", e("text"), " in ", e("text"), ")"),
            lambda: N("i4", "(", e("date"), " - ", e("date"), ")"), lambda: N("i4", "ascii(", e("text"), ")"),
            lambda: N("i4", "sign(", e("i4"), ")::int"), lambda: N("i4", "extract(", d.choice(["year", "month", "day", "dow", "doy", "week", "quarter", "isodow", "isoyear"]), " from ", e(d.choice(TIMES)), ")::int"),
        ][d.randint(0, 7)]()

    def of_i8(self, e, scope, depth):
        d = self.draw
        r = d.randint(0, 9)
        if r < 7:
            return self.ints("i8", e)
        return N("i8", "(", e("i8"), d.choice([" + ", " - ", " * "]), e(d.choice(["i4", "i2"])), ")")

    def of_num(self, e, scope, depth):
        d = self.draw
        r = d.randint(0, 11)
        if r < 4:
            return N("num", "(", e("num"), d.choice([" + ", " - ", " * "]), e(d.choice(["num", "num", "i4", "i8"])), ")")
        return [
            lambda: N("num", "(", e("num"), " / NULLIF(", e("num"), ", 0))"), lambda: N("num", "(", e("num"), " % NULLIF(", e("num"), ", 0))"),
            lambda: N("num", d.choice(["abs", "floor", "ceil", "sign", "trunc", "round"]), "(", e("num"), ")"), lambda: N("num", d.choice(["round", "trunc"]), "(", e("num"), f", {d.choice([0, 1, 2, -1, 5])})"),
            lambda: N("num", e(d.choice(NUMBERS[:4])), "::numeric"), lambda: N("num", "CAST(", e(d.choice(NUMBERS)), " AS numeric(12,3))"),
            lambda: N("num", "(- ", e("num"), ")"), lambda: N("num", "extract(", d.choice(["epoch", "second", "year", "microseconds"]), " from ", e(d.choice(["date", "ts", "tz", "iv"]) if False else d.choice(["ts", "tz"])), ")"),
        ][d.randint(0, 7)]()

    def of_f8(self, e, scope, depth):
        d = self.draw
        r = d.randint(0, 9)
        if r < 4:
            return N("f8", "(", e("f8"), d.choice([" + ", " - ", " * "]), e(d.choice(["f8", "f8", "i4", "f4"])), ")")
        return [
            lambda: N("f8", "(", e("f8"), " / NULLIF(", e("f8"), ", 0))"), lambda: N("f8", d.choice(["abs", "floor", "ceil", "sign", "trunc", "round"]), "(", e("f8"), ")"),
            lambda: N("f8", "CAST(", e(d.choice(NUMBERS)), " AS double precision)"), lambda: N("f8", "sqrt(abs(", e("f8"), "))"),
        ][d.randint(0, 3)]()

    def of_f4(self, e, scope, depth):
        return N("f4", "CAST(", e(self.draw.choice(["i4", "i2", "f4"])), " AS real)")

    def of_text(self, e, scope, depth):
        d = self.draw
        t = lambda: e("text")
        return [
            lambda: N("text", "(", t(), " || ", t(), ")"), lambda: N("text", "(", t(), " || ", e(self.draw.choice(["i4", "vc", "text", "date", "num"])), ")"), lambda: N("text", d.choice(["upper", "lower", "trim", "ltrim", "rtrim", "reverse", "initcap", "md5"]), "(", t(), ")"),
            lambda: N("text", "substr(", t(), f", {d.randint(-1, 3)}, {d.randint(0, 3)})"), lambda: N("text", "substring(", t(), f" from {d.randint(-2, 3)}", N("opt", f" for {d.randint(0, 3)}"), ")"),
            lambda: N("text", d.choice(["left", "right"]), "(", t(), f", {d.randint(-3, 3)})"), lambda: N("text", "replace(", t(), ", ", t(), ", ", t(), ")"),
            lambda: N("text", d.choice(["lpad", "rpad"]), "(", t(), f", {d.randint(-1, 6)}", N("opt", ", ", t()), ")"), lambda: N("text", "split_part(", t(), ", ", t(), f", {d.choice([1, 2, -1, 3])})"),
            lambda: N("text", "repeat(", t(), f", {d.randint(-1, 3)})"), lambda: N("text", "concat(", N("list", ", ", t(), e(self.kind()), t()), ")"), lambda: N("text", "concat_ws(", N("list", ", ", t(), t(), t()), ")"),
            lambda: N("text", "CAST(", e(self.draw.choice(["i4", "i8", "num", "bool", "date", "ts", "uuid", "text", "vc", "f8", "iv", "time", "tz"])), " AS text)"), lambda: N("text", "translate(", t(), ", ", t(), ", ", t(), ")"),
            lambda: N("text", "btrim(", t(), ", ", t(), ")"), lambda: N("text", e("vc"), "::varchar(1)::text"), lambda: N("text", "overlay(", t(), " placing ", t(), f" from {d.randint(1, 3)}", N("opt", f" for {d.randint(0, 2)}"), ")"),
            lambda: N("text", "chr(", f"{d.choice([65, 233, 26085])}", ")"), lambda: N("text", "to_hex(", e("i4"), ")"), lambda: N("text", "encode(", e("bytea"), f", '{d.choice(['hex', 'base64'])}')"),
            lambda: N("text", "regexp_replace(", t(), f", '{d.choice(['a', '[a-b]+', '^.', 'b$', '(a)(b)?'])}', '{d.choice(['x', '', '[&]'])}'", N("opt", f", '{d.choice(['g', 'i', 'gi'])}'"), ")"),
        ][d.randint(0, 20)]()

    def of_vc(self, e, scope, depth):
        return N("vc", "CAST(", e("text"), f" AS varchar({self.draw.choice([1, 3, 20])}))")

    def of_bool(self, e, scope, depth):
        d = self.draw
        r = d.random() * 100
        if r < 22:
            kind = self.kind()
            return N("bool", "(", e(kind), d.choice([" = ", " <> ", " < ", " <= ", " > ", " >= "]), e(kind), ")")
        if r < 27:
            a, b = d.choice(NUMBERS), d.choice(NUMBERS)
            return N("bool", "(", e(a), d.choice([" = ", " <> ", " < ", " <= ", " > ", " >= "]), e(b), ")")
        if r < 30:
            a, b = d.choice(TIMES), d.choice(TIMES)
            return N("bool", "(", e(a), d.choice([" = ", " < ", " >= "]), e(b), ")")
        if r < 40:
            return N("bool", "(", e("bool"), d.choice([" AND ", " OR "]), e("bool"), ")")
        if r < 44:
            return N("bool", "(NOT ", e("bool"), ")")
        if r < 50:
            return N("bool", "(", e(self.kind()), d.choice([" IS NULL", " IS NOT NULL"]), ")")
        if r < 53:
            return N("bool", "(", e("bool"), " IS ", d.choice(["", "NOT "]), d.choice(["TRUE", "FALSE", "UNKNOWN"]), ")")
        if r < 57:
            kind = self.kind()
            return N("bool", "(", e(kind), " IS ", d.choice(["", "NOT "]), "DISTINCT FROM ", e(kind), ")")
        if r < 62:
            kind = self.kind()
            items = [e(kind) if d.p(30) else self.literal(kind) for _ in range(d.randint(1, 3))] + ([N(kind, "NULL")] if d.p(25) else [])
            return N("bool", "(", e(kind), d.choice([" IN (", " NOT IN ("]), N("list", ", ", *items), "))")
        if r < 66:
            kind = self.kind()
            return N("bool", "(", e(kind), d.choice([" BETWEEN ", " NOT BETWEEN ", " BETWEEN SYMMETRIC "] if kind != "bool" else [" BETWEEN "]), e(kind), " AND ", e(kind), ")")
        if r < 71:
            pattern = d.choice(["'a%'", "'%b'", "'%'", "'_'", "'a_%'", "'%\\%%'", "''", "'A%'", "'%é%'", "'%a%b%'"])
            return N("bool", "(", e("text"), d.choice([" LIKE ", " NOT LIKE ", " ILIKE ", " NOT ILIKE "]), N("text", pattern) if d.p(80) else e("text"), ")")
        if r < 74:
            return N("bool", "(", e("text"), d.choice([" ~ ", " !~ ", " ~* ", " !~* "]), d.choice(["'^a'", "'b$'", "'[a-c]+'", "'.'", "'^$'", "'A|x'", "'(a)+'", "'\\d+'"]), ")")
        if r < 77:
            a, b = self.kind(), self.kind()
            return N("bool", "((", e(a), ", ", e(b), ")", d.choice([" = ", " < ", " >= ", " <> ", " IS DISTINCT FROM "]), "(", e(a), ", ", e(b), "))")
        if r < 79:
            kind = self.kind()
            return N("bool", "(", e(kind), d.choice([" = ANY ", " <> ALL ", " < ANY ", " >= ALL "]), "(ARRAY[", N("list", ", ", *[self.literal(kind) for _ in range(d.randint(1, 3))]), "]))")
        if r < 81:
            return N("bool", "starts_with(", e("text"), ", ", e("text"), ")")
        if self.tables and depth > 1:
            return self.condition_subquery(e, scope, depth - 1)
        return None

    def of_date(self, e, scope, depth):
        d = self.draw
        return [
            lambda: N("date", "(", e("date"), d.choice([" + ", " - "]), f"{d.randint(0, 40)})"), lambda: N("date", e(d.choice(["ts", "tz"])), "::date"), lambda: N("date", "(", e("date"), d.choice([" + ", " - "]), e("i2") if False else f"{d.randint(0, 40)}", ")"),
            lambda: N("date", "date_trunc(", f"'{d.choice(['month', 'year', 'week'])}', ", e("ts"), ")::date"),
        ][d.randint(0, 3)]()

    def of_ts(self, e, scope, depth):
        d = self.draw
        return [
            lambda: N("ts", "(", e("ts"), d.choice([" + ", " - "]), e("iv"), ")"), lambda: N("ts", "(", e("date"), d.choice([" + ", " - "]), e("iv"), ")"), lambda: N("ts", e("date"), "::timestamp"),
            lambda: N("ts", "date_trunc(", f"'{d.choice(['hour', 'day', 'month', 'quarter', 'year', 'week', 'minute', 'second'])}', ", e("ts"), ")"), lambda: N("ts", "(", e("date"), " + ", e("time"), ")"),
        ][d.randint(0, 4)]()

    def of_tz(self, e, scope, depth):
        d = self.draw
        return [
            lambda: N("tz", "(", e("tz"), d.choice([" + ", " - "]), e("iv"), ")"), lambda: N("tz", e(d.choice(["date", "ts"])), "::timestamptz"),
            lambda: N("tz", "date_trunc(", f"'{d.choice(['hour', 'day', 'month', 'year'])}', ", e("tz"), ")"),
        ][d.randint(0, 2)]()

    def of_time(self, e, scope, depth):
        return N("time", e("ts"), "::time")

    def of_iv(self, e, scope, depth):
        d = self.draw
        return [
            lambda: N("iv", "(", e("ts"), " - ", e("ts"), ")"), lambda: N("iv", "(", e("iv"), d.choice([" + ", " - "]), e("iv"), ")"), lambda: N("iv", "(", e("iv"), f" * {d.randint(-2, 3)})"), lambda: N("iv", "(- ", e("iv"), ")"),
        ][d.randint(0, 3)]()

    def of_uuid(self, e, scope, depth):
        return None

    def of_bytea(self, e, scope, depth):
        d = self.draw
        return [lambda: N("bytea", "(", e("bytea"), " || ", e("bytea"), ")"), lambda: N("bytea", "substr(", e("bytea"), ", 1, 1)") if d.p(20) else None][d.randint(0, 1)]()

    # -------- aggregates

    def aggregate(self, kind, scope, depth):
        d = self.draw
        e = lambda k: self.expr(k, scope, depth)
        tail = N("opt", " FILTER (WHERE ", e("bool"), ")") if d.p(20) else ""
        distinct = "DISTINCT " if d.p(20) else ""
        if kind == "i8":
            return d.choice([
                lambda: N("i8", "count(*)", tail), lambda: N("i8", "count(", distinct, e(self.kind()), ")", tail),
                lambda: N("i8", "sum(", distinct, e(d.choice(["i4", "i2"])), ")", tail), lambda: N("i8", d.choice(["min", "max"]), "(", e("i8"), ")", tail), lambda: N("i8", "count(", distinct, "CASE WHEN ", e("bool"), " THEN 1 END)", tail),
            ])()
        if kind == "num":
            return d.choice([
                lambda: N("num", "sum(", distinct, e(d.choice(["i8", "num"])), ")", tail), lambda: N("num", "avg(", distinct, e(d.choice(["i2", "i4", "i8", "num"])), ")", tail), lambda: N("num", d.choice(["min", "max"]), "(", e("num"), ")", tail),
            ])()
        if kind == "f8":
            return d.choice([lambda: N("f8", d.choice(["min", "max", "sum", "avg"]), "(", distinct, e("f8"), ")", tail), lambda: N("f8", d.choice(["stddev", "var_pop", "variance", "stddev_pop"]), "(", e("f8"), ")", tail)])()
        if kind == "bool":
            return N("bool", d.choice(["bool_and", "bool_or", "every"]), "(", e("bool"), ")", tail)
        if kind == "text" and d.p(40):
            of = e("text")
            return N("text", "string_agg(", distinct, of, ", '-' ORDER BY ", of, d.choice(["", " DESC", " NULLS FIRST"]), ")", tail)
        if kind in ("uuid", "bytea"):
            return None
        return N(kind, d.choice(["min", "max"]), "(", distinct, e(kind), ")", tail)

    # -------- subqueries

    def scalar_subquery(self, kind, scope, depth):
        d = self.draw
        frm, inner = self.from_clause(1, scope, depth)
        both = inner + (scope if d.p(60) else [])
        where = N("opt", " WHERE ", self.where(both, inner, scope, depth))
        if d.p(60):
            made = self.aggregate(kind, inner, depth)
            if made:
                return N(kind, "(SELECT ", made, " FROM ", frm, where, ")")
        order = self.total_order(inner)
        return N(kind, "(SELECT ", self.expr(kind, inner, depth - 1), " FROM ", frm, where, f" ORDER BY {order} LIMIT 1)")

    def where(self, both, inner, outer, depth):
        d = self.draw
        if d.p(55) and outer:
            pairs = [(a, b) for a, k in inner for b, l in outer if k == l]
            if pairs:
                a, b = d.choice(pairs)
                first = N("bool", f"{a} = {b}")
                return N("bool", first, " AND ", self.expr("bool", both, depth - 1)) if d.p(40) else first
        return self.expr("bool", both, depth - 1)

    def condition_subquery(self, e, scope, depth):
        d = self.draw
        frm, inner = self.from_clause(2 if d.p(25) else 1, scope, depth)
        both = inner + (scope if d.p(50) else [])
        where = N("opt", " WHERE ", self.where(both, inner, scope, depth)) if d.p(70) else ""
        r = d.randint(0, 5)
        kind = self.kind()
        if r <= 1:
            return N("bool", d.choice(["", "NOT "]), "EXISTS (SELECT ", d.choice(["1", "*"]), " FROM ", frm, where, ")")
        item = self.expr(kind, inner, depth - 1)
        if r <= 3:
            return N("bool", "(", e(kind), d.choice([" IN (", " NOT IN ("]), "SELECT ", item, " FROM ", frm, where, "))")
        if r == 4:
            return N("bool", "(", e(kind), d.choice([" = ANY (", " <> ALL (", " < ANY (", " >= ALL (", " > ANY ("]), "SELECT ", item, " FROM ", frm, where, "))")
        two = self.kind()
        return N("bool", "((", e(kind), ", ", e(two), ")", d.choice([" IN (", " NOT IN ("]), "SELECT ", item, ", ", self.expr(two, inner, depth - 1), " FROM ", frm, where, "))")

    # -------- FROM

    def source(self, outer, depth, lateral=False):
        """Text and scope of one table expression."""
        d = self.draw
        alias = self.alias()
        if self.ctes and d.p(35):
            name, columns = d.choice(self.ctes)
            return N("from", f"{name} AS {alias}"), [(f"{alias}.{c}", k) for c, k in columns], [(c, k) for c, k in columns], []
        if depth > 1 and d.p(22):
            r = d.randint(0, 3)
            lat = lateral and d.p(50)
            if r == 0:
                kinds = [self.kind() for _ in range(d.randint(1, 3))]
                rows = [N("x", "(", N("plain", ", ".join(str(self.literal(k)) for k in kinds)), ")") for _ in range(d.randint(1, 4))]
                names = [f"v{i}" for i in range(len(kinds))]
                return N("from", "(VALUES ", N("list", ", ", *rows), f") AS {alias} ({', '.join(names)})"), [(f"{alias}.{n}", k) for n, k in zip(names, kinds)], list(zip(names, kinds)), []
            if r == 1:
                return N("from", f"generate_series({d.randint(-1, 2)}, {d.randint(1, 5)}) AS {alias} (n)"), [(f"{alias}.n", "i4")], [("n", "i4")], []
            query, columns = self.query(depth - 1, outer if lat else [])
            return N("from", "LATERAL " if lat else "", "(", query, f") AS {alias}"), [(f"{alias}.{c}", k) for c, k in columns], columns, []
        table = d.choice(self.tables)
        return N("from", f"{table.name} AS {alias}"), [(f"{alias}.{c}", k) for c, k in table.columns], table.columns, table.key

    def from_clause(self, most, outer, depth):
        d = self.draw
        text, scope, plain, _ = self.source(outer, depth)
        for _ in range(d.randint(0, most - 1) if most > 1 else 0):
            right, theirs, other, _ = self.source(outer + scope, depth, lateral=True)
            join = d.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "JOIN", "LEFT JOIN"])
            if str(right).startswith("LATERAL") and join in ("RIGHT JOIN", "FULL JOIN"):
                join = "LEFT JOIN"
            shared = [c for c, k in plain if (c, k) in other and sum(1 for x, _ in plain if x == c) == 1 and sum(1 for x, _ in other if x == c) == 1] if plain else []
            if join != "CROSS JOIN" and shared and d.p(25):
                text = N("from", text, f" {join} ", right, f" USING ({', '.join(d.sample(shared, min(len(shared), d.randint(1, 2))))})")
                plain = []
                scope = scope + theirs
                continue
            if join == "CROSS JOIN":
                text = N("from", text, " CROSS JOIN ", right)
            else:
                pairs = [(a, b) for a, k in scope for b, l in theirs if k == l]
                if pairs and d.p(85):
                    a, b = d.choice(pairs)
                    on = N("bool", f"{a} = {b}")
                    if d.p(30):
                        on = N("bool", on, " AND ", self.expr("bool", scope + theirs, 1))
                elif join == "FULL JOIN":
                    join, on = "LEFT JOIN", self.expr("bool", scope + theirs, 1)
                else:
                    on = self.expr("bool", scope + theirs, 1)
                text = N("from", text, f" {join} ", right, " ON ", on)
            scope = scope + theirs
            plain = []
        return text, scope

    def total_order(self, scope):
        d = self.draw
        return ", ".join(name + d.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]) for name, _ in d.sample(scope, len(scope)))

    # -------- queries

    def query(self, depth, outer=(), kinds=None, ordered=False):
        """A query and the names and kinds of its columns. What it gives is the same however it is run, but for the order of rows."""
        d = self.draw
        outer = list(outer)
        r = d.random() * 100
        if r < 12 and depth > 1:
            kinds = kinds or [self.kind() for _ in range(d.randint(1, 3))]
            left, columns = self.query(depth - 1, outer, kinds)
            right, _ = self.query(depth - 1, outer, kinds)
            # In brackets, as what is in them may have an order and limit of its own.
            text = N("query", "(", left, ")", d.choice([" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT ", " INTERSECT ALL ", " EXCEPT ALL "]), "(", right, ")")
            return self.limited(text, columns, False)
        frm, scope = self.from_clause(3, outer, depth)
        both = scope + outer
        kinds = kinds or [self.kind() for _ in range(d.randint(1, 4))]
        where = N("opt", " WHERE ", self.expr("bool", both, depth)) if d.p(60) else ""
        names = [f"c{i}" for i in range(len(kinds))]
        columns = list(zip(names, kinds))
        r = d.random() * 100
        if r < 28:
            keys = []
            for _ in range(d.randint(0, 3)):
                kind = self.kind()
                key = self.column(scope, kind) or self.column(scope, "i4") or N("i4", scope[0][0])
                if d.p(15):
                    made = self.expr(kind, scope, 1)
                    key = made if re.search(r"q\d+\.", str(made)) else key
                keys.append(key)
            known = [(str(key), key.kind) for key in keys]
            items = [N("item", self.expr(kind, known, 2, scope), f" AS {name}") for name, kind in columns]
            having = N("opt", " HAVING ", self.expr("bool", known, 2, scope)) if d.p(30) else ""
            group = ""
            if keys:
                how = d.random()
                texts = N("list", ", ", *[N("item", str(key)) for key in keys])
                if how < 0.75:
                    group = N("opt", " GROUP BY ", texts)
                elif how < 0.85:
                    group = N("opt", " GROUP BY ROLLUP (", texts, ")")
                elif how < 0.92:
                    group = N("opt", " GROUP BY CUBE (", texts, ")")
                else:
                    group = N("opt", " GROUP BY GROUPING SETS (", N("list", ", ", *[N("item", f"({key})") for key in keys], N("item", "()")), ")")
            elif not any(re.search(r"(count|sum|min|max|avg|stddev|var_pop|variance|stddev_pop|bool_and|bool_or|every|string_agg)\(", str(i)) for i in items):
                items[0] = N("item", "count(*)" if kinds[0] == "i8" else f"max(NULL::{TYPES[kinds[0]]})" if kinds[0] not in ("bool", "uuid", "bytea") else items[0], f" AS {names[0]}")
            text = N("query", "SELECT ", N("list", ", ", *items), " FROM ", frm, where, group, having)
            return self.limited(text, columns, False)
        if r < 42:
            items = [N("item", self.window(kind, scope), f" AS {name}") for name, kind in columns]
            text = N("query", "SELECT ", N("list", ", ", *items), " FROM ", frm, where)
            return self.limited(text, columns, False)
        if r < 48:
            on = [self.column(scope, kinds[0]) or self.column(scope, "i4") or N("i4", scope[0][0])]
            items = [N("item", self.expr(kind, scope, depth - 1), f" AS {name}") for name, kind in columns]
            text = N("query", "SELECT DISTINCT ON (", on[0], ") ", N("list", ", ", *items), " FROM ", frm, where, f" ORDER BY {on[0]}{d.choice(['', ' DESC', ' NULLS FIRST'])}, {self.total_order(scope)}")
            return text, columns
        items = [N("item", self.expr(kind, both, depth), f" AS {name}") for name, kind in columns]
        text = N("query", "SELECT ", "DISTINCT " if d.p(20) else "", N("list", ", ", *items), " FROM ", frm, where)
        return self.limited(text, columns, False)

    def limited(self, text, columns, always):
        d = self.draw
        if d.p(25) or always:
            order = N("list", ", ", *[N("item", f"{at + 1}{d.choice(['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'])}") for at in d.sample(range(len(columns)), len(columns))])
            limit = N("opt", f" LIMIT {d.randint(0, 6)}") if d.p(60) else ""
            text = N("query", text, " ORDER BY ", order, limit, N("opt", f" OFFSET {d.randint(0, 3)}") if d.p(25) else "")
        return text, columns

    def window(self, kind, scope):
        d = self.draw
        if d.p(25):
            return self.expr(kind, scope, 1)
        part = ""
        if d.p(55):
            part = N("opt", "PARTITION BY ", d.choice(scope)[0])
        order = f" ORDER BY {self.total_order(scope)}"
        if d.p(20):
            order = f" ORDER BY {d.choice(scope)[0]}{d.choice(['', ' DESC', ' NULLS FIRST'])}"
            frame = N("opt", d.choice([" RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW"]))
            safe = True
        else:
            frame = N("opt", d.choice([" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", " ROWS 2 PRECEDING", " ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING"])) if d.p(60) else ""
            safe = False
        over = N("x", " OVER (", part, order, frame, ")")
        plain = N("x", " OVER (", part, order, ")")
        if safe:
            if kind == "i8":
                return N("i8", d.choice(["rank()", "dense_rank()", "count(*)"]), over)
            made = None if kind in ("uuid", "bytea", "bool") else N(kind, d.choice(["min", "max"]), "(", self.expr(kind, scope, 1), ")", over)
            return made or self.leaf(kind, scope)
        if kind == "i8":
            return N("i8", d.choice(["row_number()", "rank()", "dense_rank()", "count(*)", f"ntile({d.randint(1, 4)})::int8"]) if False else d.choice(["row_number()", "rank()", "dense_rank()", "count(*)"]), over)
        if kind == "f8" and d.p(50):
            return N("f8", d.choice(["percent_rank()", "cume_dist()"]), plain)
        if kind == "num" and d.p(50):
            return N("num", d.choice(["sum", "avg"]), "(", self.expr(d.choice(["i8", "num"]), scope, 1), ")", over)
        if d.p(40) and kind not in ("uuid", "bytea", "bool"):
            return N(kind, d.choice(["min", "max"]), "(", self.expr(kind, scope, 1), ")", over)
        return N(kind, d.choice([
            lambda: N("x", "lag(", self.expr(kind, scope, 1), N("opt", f", {d.randint(0, 2)}", N("opt", ", ", self.literal(kind))), ")"), lambda: N("x", "lead(", self.expr(kind, scope, 1), ")"),
            lambda: N("x", "first_value(", self.expr(kind, scope, 1), ")"), lambda: N("x", "last_value(", self.expr(kind, scope, 1), ")"), lambda: N("x", "nth_value(", self.expr(kind, scope, 1), ", 2)"),
        ])(), over)

    def statement(self):
        d = self.draw
        self.ctes = []
        parts = []
        recursive = False
        for at in range(d.randint(1, 2) if d.p(20) else 0):
            name = f"w{at}"
            if d.p(25):
                recursive = True
                parts.append(N("item", f"{name} (n, x) AS (SELECT 1, {d.randint(0, 2)} UNION {d.choice(['ALL ', ''])}SELECT n + 1, x * 2 FROM {name} WHERE n < {d.randint(1, 4)})"))
                self.ctes.append((name, [("n", "i4"), ("x", "i4")]))
                continue
            query, columns = self.query(2)
            parts.append(N("item", f"{name} AS {d.choice(['', '', 'MATERIALIZED ', 'NOT MATERIALIZED '])}(", query, ")"))
            self.ctes = [*self.ctes, (name, columns)]
        query, columns = self.query(3)
        self.ctes = []
        return N("statement", N("opt", "WITH ", "RECURSIVE " if recursive else "", N("list", ", ", *parts), " ") if parts else "", query)

    def bare(self):
        d = self.draw
        return N("statement", "SELECT ", N("list", ", ", *[self.expr(d.choice(list(TYPES)), [], 3) for _ in range(d.randint(1, 3))]))

    # -------- changes

    def change(self):
        d = self.draw
        t = d.choice(self.tables)
        scope = [(f"{t.name}.{c}", k) for c, k in t.columns]
        returning = N("opt", " RETURNING ", N("list", ", ", *[self.expr(self.kind(), scope, 1) for _ in range(d.randint(1, 3))])) if d.p(50) else ""
        r = d.randint(0, 9)
        others = d.sample(t.columns[1:], min(2, len(t.columns) - 1))
        if r < 3:
            sets = N("list", ", ", *[N("item", f"{c} = ", self.expr(k, scope, 2)) for c, k in others])
            if d.p(40):
                return N("statement", f"UPDATE {t.name} SET ", sets, N("opt", " WHERE ", self.expr("bool", scope, 3)), returning)
            frm, inner = self.from_clause(2, [], 2)
            # Only what a key finds, so that no row is changed by one of several.
            key = [n for n, k in inner if k == "i4"]
            if not key:
                return self.change()
            sets = N("list", ", ", *[N("item", f"{c} = ", self.expr(k, scope, 2)) for c, k in others])
            return N("statement", f"UPDATE {t.name} SET ", sets, " FROM ", frm, f" WHERE {t.name}.id = {d.choice(key)}", N("opt", " AND ", self.expr("bool", scope + inner, 2)), returning if d.p(0) else "")
        if r < 5:
            if d.p(50):
                return N("statement", f"DELETE FROM {t.name}", N("opt", " WHERE ", self.expr("bool", scope, 3)), returning)
            frm, inner = self.from_clause(2, [], 2)
            return N("statement", f"DELETE FROM {t.name} USING ", frm, " WHERE ", self.where(scope + inner, inner, scope, 2))
        names = ", ".join(c for c, _ in t.columns)
        if r < 8:
            rows = N("list", ", ", *[N("item", "(", ", ".join(str(d.randint(1, 30)) if c == "id" else "DEFAULT" if d.p(5) else str(self.expr(k, [], 1)) for c, k in t.columns), ")") for _ in range(d.randint(1, 4))])
            body = N("x", "VALUES ", rows)
        else:
            frm, inner = self.from_clause(1, [], 2)
            ids = [n for n, k in inner if k == "i4"]
            if not ids:
                return self.change()
            body = N("x", f"SELECT {d.choice(ids)} + {d.choice([0, 10, 100])}, ", ", ".join(str(self.expr(k, inner, 1)) for c, k in t.columns[1:]), " FROM ", frm)
        conflict = ""
        if d.p(60):
            target = t.key if not t.unique or d.p(70) else [d.choice(t.unique)]
            if d.p(30):
                conflict = N("opt", f" ON CONFLICT {d.choice(['', '(' + ', '.join(target) + ')'])} DO NOTHING")
            else:
                excluded = scope + [(f"excluded.{c}", k) for c, k in t.columns]
                sets = N("list", ", ", *[N("item", f"{c} = ", self.expr(k, excluded, 1)) for c, k in others])
                conflict = N("x", f" ON CONFLICT ({', '.join(target)}) DO UPDATE SET ", sets, N("opt", " WHERE ", self.expr("bool", excluded, 1)) if d.p(40) else "")
        return N("statement", f"INSERT INTO {t.name} ({names}) ", body, conflict, returning)


    def script(self):
        d = self.draw
        parts, names = [], ["s1", "s2"]
        for _ in range(d.randint(3, 9)):
            r = d.random()
            if r < 0.45:
                parts.append(self.change())
            elif r < 0.6:
                parts.append(N("statement", f"SAVEPOINT {d.choice(names)}"))
            elif r < 0.75:
                parts.append(N("statement", d.choice(["ROLLBACK TO ", "ROLLBACK TO ", "RELEASE "]) + d.choice(names)))
            elif r < 0.8:
                parts.append(N("statement", d.choice(["SELECT 1/0", "SELECT * FROM nowhere", "SELECT 'x'::int", "INSERT INTO t1 (nothing) VALUES (1)", "DROP TABLE t1", "ALTER TABLE t2 ADD COLUMN zz int DEFAULT 7", "CREATE TABLE t1 (a int)", "TRUNCATE t2", "TRUNCATE t1 CASCADE", "DROP TABLE t3", "CREATE INDEX zi ON t2 (id DESC)", "ALTER TABLE t3 RENAME COLUMN id TO id9", "CREATE UNIQUE INDEX zu ON t2 (id)"])))
            else:
                parts.append(N("statement", f"SELECT * FROM {d.choice(self.tables).name}"))
        return N("list", ";\n", *parts)


# ---------------------------------------------------------------- comparing


class Side:
    def __init__(self, folder, name):
        self.info = f"host={folder} user=postgres dbname=t"
        self.name = name
        self.open()

    def open(self):
        self.connection = psycopg.connect(self.info, autocommit=True)
        self.run("set timezone = 'UTC'")
        if self.name == "postgres":
            self.run("set jit = off")
        self.run("set statement_timeout = '20s'")

    def run(self, sql, params=None, fmt=0):
        """("rows", tag, names, kinds, rows) or ("error", code, message)."""
        connection = self.connection.pgconn
        if params is None:
            result = connection.exec_(sql.encode())
        else:
            values, kinds, formats = params
            result = connection.exec_params(sql.encode(), values, kinds, formats, fmt)
        status = result.status
        if status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            names = [(result.fname(c) or b"").decode() for c in range(result.nfields)]
            kinds = [result.ftype(c) for c in range(result.nfields)]
            rows = [tuple(None if (v := result.get_value(r, c)) is None else v.decode("utf8", "backslashreplace") for c in range(result.nfields)) for r in range(result.ntuples)]
            return ("rows", (result.command_status or b"").decode(), names, kinds, rows)
        code = result.error_field(pq.DiagnosticField.SQLSTATE)
        message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        if code is None:
            text = connection.error_message.decode(errors="replace") if isinstance(connection.error_message, bytes) else str(connection.error_message)
            self.open()
            return ("error", "LOST", text.strip())
        return ("error", code.decode(), (message or b"").decode(errors="replace"))


def near(one, other, kind):
    if one == other:
        return True
    if one is None or other is None:
        return False
    if kind in (700, 701):
        try:
            a, b = float(one), float(other)
            return a == b or (a != a and b != b) or abs(a - b) <= 1e-5 * max(abs(a), abs(b))
        except ValueError:
            return False
    if kind == 1700:
        try:
            a, b = decimal.Decimal(one), decimal.Decimal(other)
            digits = min(-min(a.as_tuple().exponent, 0), -min(b.as_tuple().exponent, 0)) if a.is_finite() and b.is_finite() else 0
            return a == b or abs(a - b) <= decimal.Decimal(1).scaleb(-digits)
        except (decimal.InvalidOperation, TypeError):
            return False
    return False


def compare(pg, mine, ordered):
    """What is different, in a few words; None for nothing."""
    if mine[0] == "error" and mine[1] == "0A000" and pg[:2] != ("error", "0A000"):
        return "unsupported"
    if pg[0] == "error" and mine[0] == "error":
        if mine[1] in ("XX000", "LOST"):
            return "crash"
        return None if pg[1] == mine[1] else f"sqlstate {pg[1]} {mine[1]}"
    if mine[0] == "error":
        return "crash" if mine[1] in ("XX000", "LOST") else f"refused {mine[1]}"
    if pg[0] == "error":
        return f"answered where {pg[1]}"
    if pg[1] != mine[1]:
        return "tag"
    if len(pg[2]) != len(mine[2]):
        return "columns"
    # A moment in UTC, with or without its zone.
    zoned = [a == 1184 and b == 1114 for a, b in zip(pg[3], mine[3])]
    if any(zoned):
        plain = [tuple(v[:-3] if z and v else v for v, z in zip(row, zoned)) for row in pg[4]]
        inner = compare((*pg[:3], [1114 if z else k for k, z in zip(pg[3], zoned)], plain), mine, ordered)
        return inner or "type"
    key = lambda row: tuple((v is None, v or "") for v in row)
    one, other = (pg[4], mine[4]) if ordered else (sorted(pg[4], key=key), sorted(mine[4], key=key))
    if one != other:
        if len(one) != len(other):
            return "rows"
        if all(near(a, b, k) for x, y in zip(one, other) for a, b, k in zip(x, y, pg[3])):
            return "format" if pg[3] == mine[3] else "type"
        if not ordered:
            # Sorting as texts may have put rows with other digits in another order.
            rest = list(other)
            for x in one:
                found = next((at for at, y in enumerate(rest) if all(near(a, b, k) for a, b, k in zip(x, y, pg[3]))), None)
                if found is None:
                    return "rows"
                rest.pop(found)
            return "format"
        return "rows"
    if pg[3] != mine[3]:
        return "type"
    if pg[2] != mine[2]:
        return "names"
    return None


class Compare:
    def __init__(self, options):
        self.options = options
        self.pg, self.mine = Side(options.postgres, "postgres"), Side(options.cairn, "cairn")
        self.seen = collections.Counter()
        self.refused = collections.Counter()
        self.counts = collections.Counter()

    def both(self, sql, ordered=False, params=None, binary=0):
        pg, mine = self.pg.run(sql, params, binary), self.mine.run(sql, params, binary)
        return compare(pg, mine, ordered), pg, mine

    def script(self, statements):
        """Statements in a transaction, each compared; the first difference counts."""
        for side in (self.pg, self.mine):
            side.run("begin")
        try:
            for sql in statements.parts[1:]:
                kind, pg, mine = self.both(str(sql))
                if kind and kind not in ("type", "names"):
                    return kind, pg, mine
            return None, pg, mine
        finally:
            for side in (self.pg, self.mine):
                side.run("rollback")

    def changed(self, sql, tables):
        """A change and what is in all tables behind it, taken back."""
        for side in (self.pg, self.mine):
            side.run("begin")
        try:
            kind, pg, mine = self.both(sql)
            if kind or pg[0] == "error":
                return kind, pg, mine
            for table in tables:
                # As a general query and as what the direct path reads, by way of any index.
                kind, pg, mine = self.both(f"select * from {table.name}")
                if kind and kind not in ("type", "names"):
                    return f"behind it {kind}", pg, mine
            return None, pg, mine
        finally:
            for side in (self.pg, self.mine):
                side.run("rollback")

    def schema(self, seed):
        draw = Draw(seed)
        for side in (self.pg, self.mine):
            side.run("rollback")
            for name in ("t3", "t2", "t1"):
                side.run(f"drop table if exists {name} cascade")
        tables = []
        script = []
        for number in (1, 2, 3):
            table = Table(draw, number, tables)
            tables.append(table)
            for sql in table.create + table.inserts():
                kind, pg, mine = self.both(sql)
                if kind:
                    self.report(kind, sql, pg, mine, script, seed)
                    if "create" in sql[:8]:
                        return draw, None, script
                elif pg[0] == "rows":
                    script.append(sql)
        if draw.p(50):
            self.both("analyze")
        return draw, tables, script

    def signature(self, kind, tree, pg, mine):
        text = str(tree)
        if mine[0] == "error":
            message = re.sub(r"[\"'`].*?[\"'`]|\d+|q\d+\.\w+", "#", mine[2])[:70]
            return f"{kind}: {message}"
        if pg[0] == "error":
            return f"{kind}: {re.sub(r'[0-9]+|:.*', '#', pg[2])[:60]}"
        words = sorted(set(re.findall(r"\b([a-z_]+)\(|\b([A-Z]{2,}(?: [A-Z]{2,})*)\b|( [-+*/%~<>=|]+ )", text)))
        return f"{kind}: {' '.join(''.join(w).strip() for w in words)[:90]}"

    def report(self, kind, tree, pg, mine, script, seed):
        signature = self.signature(kind, tree, pg, mine)
        self.seen[signature] += 1
        if self.seen[signature] > self.options.same:
            return
        print(f"\n==== {kind}  seed {seed}\n{tree}")
        used = [line for line in script if any(re.search(rf"\b{name}\b", str(tree)) and re.match(rf"(create table|insert into) {name}\b", line) for name in ("t1", "t2", "t3"))]
        for line in used[: self.options.lines]:
            print(f"   | {line}")
        show = lambda answer: f"{answer[1]}: {answer[2][:300]}" if answer[0] == "error" else f"{answer[1]} {answer[3]} {answer[4][:8]}" + (" .." if len(answer[4]) > 8 else "")
        print(f"  pg    {show(pg)}\n  cairn {show(mine)}", flush=True)

    def reduce(self, tree, test, kind):
        budget = self.options.budget
        while budget > 0:
            for smaller in simpler(tree):
                budget -= 1
                if budget <= 0:
                    return tree
                found = test(smaller)[0]
                if found and (found == kind or found.split()[0] == kind.split()[0]):
                    tree = smaller
                    break
            else:
                return tree
        return tree

    def go(self):
        o = self.options
        for seed in range(o.seed, o.seed + o.schemas):
            draw, tables, script = self.schema(seed)
            if tables is None:
                continue
            for _ in range(o.count):
                gen = Gen(draw, tables)
                what = draw.choice(o.kinds)
                gen.wild = what == "wild"
                if what in ("bare", "wild"):
                    gen.tables = []
                    tree, test = gen.bare(), lambda tree: self.both(str(tree))
                elif what == "param":
                    gen.params = []
                    tree = gen.statement() if draw.p(50) else gen.bare()
                    given = ([value.encode() for value, _ in gen.params], [oid for _, oid in gen.params], [0] * len(gen.params))
                    binary = draw.randint(0, 1)
                    test = lambda tree, given=given, binary=binary: self.both(str(tree), params=given, binary=binary)
                elif what == "script":
                    tree, test = gen.script(), self.script
                elif what == "change":
                    tree, test = gen.change(), lambda tree: self.changed(str(tree), tables)
                else:
                    tree = gen.statement()
                    test = lambda tree: self.both(str(tree))
                kind, pg, mine = test(tree)
                self.counts[kind or ("same error" if pg[0] == "error" else "same")] += 1
                if kind == "unsupported":
                    self.refused[mine[2][:90]] += 1
                    continue
                if not kind or (kind in ("type", "names", "format") and not o.all) or kind.split()[0] in o.skip or (o.only and not kind.startswith(tuple(o.only))):
                    continue
                signature = self.signature(kind, tree, pg, mine)
                if mine[0] == "error" and self.seen[signature] >= o.same:
                    self.seen[signature] += 1
                    continue
                small = self.reduce(tree, test, kind)
                kind, pg, mine = test(small)
                self.report(kind or "?", small, pg, mine, script, seed)
        print("\n", dict(self.counts))
        for signature, count in self.seen.most_common():
            print(f"{count:6} {signature}")
        print("refused:")
        for message, count in self.refused.most_common(40):
            print(f"{count:6} {message}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", required=True)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schemas", type=int, default=5)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--kinds", default="query,query,query,change,bare")
    parser.add_argument("--same", type=int, default=2, help="differences of one look that are shown")
    parser.add_argument("--lines", type=int, default=40)
    parser.add_argument("--budget", type=int, default=400, help="statements to reduce one")
    parser.add_argument("--skip", default="", help="kinds of differences that are not shown")
    parser.add_argument("--only", default="", help="beginnings of kinds of differences that are shown")
    parser.add_argument("--all", action="store_true", help="also names, types and digits")
    options = parser.parse_args()
    options.kinds, options.skip = options.kinds.split(","), options.skip.split(",")
    options.only = [kind for kind in options.only.split(",") if kind]
    Compare(options).go()


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    main()
