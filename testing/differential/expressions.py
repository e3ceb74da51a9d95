"""Expressions of every type: operators and syntax, and calls of the functions in the table of functions."""

import functions
from trees import N
from values import NUMBERS, OIDS, TIMES, TYPES, VALUES


class Expressions:
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

    def shown(self, e, kind):
        """An operand that becomes a text. A numeric has as many digits there as its type has, and types have other digits here."""
        return N(kind, "CAST(", e(kind), " AS numeric(12,3))") if kind == "num" else e(kind)

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
            return functions.call(d, kind, e)
        if r == 6:
            return N(kind, "(- ", e(kind), ")")
        if r == 7:
            return N(kind, "CAST(", e(d.choice(NUMBERS)), f" AS {TYPES[kind]})")
        return functions.call(d, kind, e)

    def of_i2(self, e, scope, depth):
        return self.ints("i2", e)

    def of_i4(self, e, scope, depth):
        d = self.draw
        r = d.randint(0, 13)
        if r < 6:
            return self.ints("i4", e)
        return [
            lambda: functions.call(d, "i4", e), lambda: functions.call(d, "i4", e), lambda: N("i4", "position(", e("text"), " in ", e("text"), ")"),
            lambda: N("i4", "(", e("date"), " - ", e("date"), ")"), lambda: N("i4", "sign(", e("i4"), ")::int"),
            lambda: N("i4", "extract(", d.choice(["year", "month", "day", "dow", "doy", "week", "quarter", "isodow", "isoyear"]), " from ", e(d.choice(TIMES)), ")::int"),
        ][d.randint(0, 5)]()

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
            lambda: functions.call(d, "num", e), lambda: functions.call(d, "num", e),
            lambda: N("num", e(d.choice(NUMBERS[:4])), "::numeric"), lambda: N("num", "CAST(", e(d.choice(NUMBERS)), " AS numeric(12,3))"),
            lambda: N("num", "(- ", e("num"), ")"), lambda: N("num", "extract(", d.choice(["epoch", "second", "year", "microseconds"]), " from ", e(d.choice(["date", "ts", "tz", "iv"]) if False else d.choice(["ts", "tz"])), ")"),
        ][d.randint(0, 7)]()

    def of_f8(self, e, scope, depth):
        d = self.draw
        r = d.randint(0, 9)
        if r < 4:
            return N("f8", "(", e("f8"), d.choice([" + ", " - ", " * "]), e(d.choice(["f8", "f8", "i4", "f4"])), ")")
        return [
            lambda: N("f8", "(", e("f8"), " / NULLIF(", e("f8"), ", 0))"), lambda: functions.call(d, "f8", e),
            lambda: N("f8", "CAST(", e(d.choice(NUMBERS)), " AS double precision)"), lambda: N("f8", "sqrt(abs(", e("f8"), "))"),
        ][d.randint(0, 3)]()

    def of_f4(self, e, scope, depth):
        return N("f4", "CAST(", e(self.draw.choice(["i4", "i2", "f4"])), " AS real)")

    def of_text(self, e, scope, depth):
        d = self.draw
        t = lambda: e("text")
        if d.p(45):
            return functions.call(d, "text", e)
        return [
            lambda: N("text", "(", t(), " || ", t(), ")"), lambda: N("text", "(", t(), " || ", self.shown(e, self.draw.choice(["i4", "vc", "text", "date", "num"])), ")"),
            lambda: N("text", "trim(", t(), ")"), lambda: N("text", "substring(", t(), f" from {d.randint(-2, 3)}", N("opt", f" for {d.randint(0, 3)}"), ")"),
            lambda: N("text", "concat(", N("list", ", ", t(), self.shown(e, self.kind()), t()), ")"), lambda: N("text", "concat_ws(", N("list", ", ", t(), t(), t()), ")"),
            lambda: N("text", "CAST(", self.shown(e, self.draw.choice(["i4", "i8", "num", "bool", "date", "ts", "uuid", "text", "vc", "f8", "iv", "time", "tz"])), " AS text)"),
            lambda: N("text", e("vc"), "::varchar(1)::text"), lambda: N("text", "overlay(", t(), " placing ", t(), f" from {d.randint(1, 3)}", N("opt", f" for {d.randint(0, 2)}"), ")"),
            lambda: N("text", "encode(", e("bytea"), f", '{d.choice(['hex', 'base64'])}')"),
            lambda: N("text", "regexp_replace(", t(), f", '{d.choice(['a', '[a-b]+', '^.', 'b$', '(a)(b)?'])}', '{d.choice(['x', '', '[&]'])}'", N("opt", f", '{d.choice(['g', 'i', 'gi'])}'"), ")"),
        ][d.randint(0, 10)]()

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
            return functions.call(d, "bool", e)
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
        return [lambda: N("bytea", "(", e("bytea"), " || ", e("bytea"), ")"), lambda: functions.call(d, "bytea", e)][d.randint(0, 1)]()

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
