"""Shapes that planners get wrong: each is a kind of statement for which an engine was once seen to give a wrong answer."""

from changes import Gen
from trees import N
from values import TYPES

# Numbers of one type and of other scales each.
SCALES = ["0", "1", "0.25", "1.50", "-0.125", "2.0000", "10", "0.001", "3.3"]
DIRECTIONS = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]


class Shapes(Gen):
    """Draws one of the shapes; `is_ordered` says whether the order of its rows is part of the answer."""

    def shape(self):
        d = self.draw
        self.is_ordered = False
        return getattr(self, d.choice([name for name in dir(Shapes) if name.startswith("shape_")]))()

    # -------- parts

    def columns_of(self, table, alias=None):
        return [(f"{alias or table.name}.{c}", k) for c, k in table.columns]

    def numbers_of(self, scope):
        return [name for name, kind in scope if kind in ("i2", "i4", "i8", "num")] or ["0"]

    def all_of(self, count, names=None):
        """ORDER BY all columns of a result."""
        d = self.draw
        self.is_ordered = True
        return " ORDER BY " + ", ".join(f"{names[at] if names else at + 1}{d.choice(DIRECTIONS)}" for at in d.sample(range(count), count))

    def limit(self):
        d = self.draw
        return N("opt", f" LIMIT {d.randint(1, 6)}") if d.p(50) else ""

    def correlation(self, inner, outer):
        d = self.draw
        pairs = [(a, b) for a, k in inner for b, l in outer if k == l and k != "iv"]
        if not pairs:
            return N("bool", "true")
        a, b = d.choice(pairs)
        if d.p(25) and any(k == "i4" for _, k in inner) and any(k == "i4" for _, k in outer):
            a, b = d.choice([n for n, k in inner if k == "i4"]), d.choice([n for n, k in outer if k == "i4"])
            return N("bool", f"{a} = {b} + {d.choice([0, 1, 100])}")
        return N("bool", f"{a} {d.choice(['=', '=', '=', '<', '>', '<>', 'IS NOT DISTINCT FROM'])} {b}")

    def aggregated(self, outer):
        """A scalar subquery with an aggregate and no GROUP BY, and its type."""
        d = self.draw
        table, alias = d.choice(self.tables), self.alias()
        inner = self.columns_of(table, alias)
        kind = d.choice(["i4", "i8", "i8", "num", "text", "date", "f8", "bool"])
        made = self.aggregate(kind, inner, 1) or N("i8", "count(*)")
        where = N("opt", " WHERE ", N("bool", self.correlation(inner, outer), N("opt", " AND ", self.expr("bool", inner, 1)) if d.p(30) else ""))
        having = N("opt", " HAVING ", N("bool", d.choice(["count(*)", f"count({d.choice(inner)[0]})"]), d.choice([" > 0", " = 0", " > 1", " IS NOT NULL"]))) if d.p(20) else ""
        tail = N("opt", d.choice([" LIMIT 1", " OFFSET 0", " OFFSET 1", " LIMIT 0"])) if d.p(10) else ""
        return N("x", "(SELECT ", made, f" FROM {table.name} AS {alias}", where, having, tail, ")"), made.kind

    def condition(self, outer):
        """A condition on such a subquery."""
        d = self.draw
        subquery, kind = self.aggregated(outer)
        r = d.randint(0, 7)
        left = self.leaf(kind, outer)
        if r < 3:
            made = N("bool", d.choice(["", "NOT "]), "EXISTS ", subquery)
        elif r < 5:
            made = N("bool", "(", left, d.choice([" IN ", " NOT IN ", " = ANY ", " <> ALL ", " < ANY ", " >= ALL "]), subquery, ")")
        elif r < 7:
            made = N("bool", "(", left, d.choice([" = ", " <> ", " < ", " >= ", " IS DISTINCT FROM ", " IS NOT DISTINCT FROM "]), subquery, ")")
        else:
            made = N("bool", "(", subquery, d.choice([" IS NULL", " IS NOT NULL"]), ")")
        if d.p(30):
            return N("bool", "(", made, d.choice([" OR ", " AND "]), self.expr("bool", outer, 1), ")")
        return made

    # -------- shapes

    def shape_aggregate_in_subquery(self):
        d = self.draw
        table, alias = d.choice(self.tables), self.alias()
        outer = self.columns_of(table, alias)
        places = d.randint(0, 3)
        item = f"{alias}.id"
        if places == 0:
            subquery, _ = self.aggregated(outer)
            return N("statement", f"SELECT {item}, ", subquery, f" FROM {table.name} AS {alias}", N("opt", " WHERE ", self.condition(outer)))
        if places == 1:
            return N("statement", f"SELECT {item}, ", self.condition(outer), f" FROM {table.name} AS {alias}")
        if places == 2:
            other, name = d.choice(self.tables), self.alias()
            both = outer + self.columns_of(other, name)
            return N("statement", f"SELECT {item}, {name}.id FROM {table.name} AS {alias} {d.choice(['', 'LEFT ', 'RIGHT '])}JOIN {other.name} AS {name} ON {alias}.id = {name}.id", N("opt", " WHERE ", self.condition(both)))
        subquery, _ = self.aggregated(outer)
        return N("statement", f"SELECT {item}, CASE WHEN ", self.condition(outer), " THEN ", N("x", "COALESCE(", subquery, "::text, 'none')"), f" END FROM {table.name} AS {alias}")

    def shape_change_by_subquery(self):
        d = self.draw
        table = d.choice(self.tables)
        outer = self.columns_of(table)
        if d.p(50):
            return N("change", f"DELETE FROM {table.name} WHERE ", self.condition(outer))
        names = [(c, k) for c, k in table.columns[1:]]
        name, kind = d.choice(names)
        subquery, of = self.aggregated(outer)
        value = N(kind, subquery, f"::{TYPES[kind]}") if of == kind else N(kind, "CASE WHEN ", self.condition(outer), " THEN ", self.literal(kind), f" ELSE {table.name}.{name} END")
        return N("change", f"UPDATE {table.name} SET {name} = ", value, N("opt", " WHERE ", self.condition(outer)) if d.p(50) else "")

    def shape_grouping_sets(self):
        d = self.draw
        table, alias = d.choice(self.tables), self.alias()
        scope = [(n, k) for n, k in self.columns_of(table, alias) if k not in ("f4", "f8", "iv")]
        keys = d.sample(scope, min(len(scope), d.randint(1, 3)))
        names = [f"k{at}" for at in range(len(keys))]
        group = d.choice(["ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ({}))", "GROUPING SETS (({}), (), ({}))"])
        texts = [name for name, _ in keys]
        lists = [", ".join(texts)] + [", ".join(d.sample(texts, d.randint(1, len(texts))))]
        group = group.format(*lists[: group.count("{}")])
        extra = N("list", ", ", N("item", "count(*) AS n"), N("item", "grouping(", texts[0], ") AS g"))
        inner = N("x", "SELECT ", ", ".join(f"{t} AS {n}" for t, n in zip(texts, names)), ", ", extra, f" FROM {table.name} AS {alias} GROUP BY {group}", N("opt", " HAVING ", d.choice([f"{texts[0]} IS NOT NULL", "count(*) > 1", f"grouping({texts[0]}) = 0"])) if d.p(25) else "")
        kept = names if d.p(70) else names[:1]
        return N("statement", "SELECT ", d.choice(["", "", "DISTINCT "]), ", ".join(kept), " FROM (", inner, ") AS q", N("opt", f" WHERE {names[0]} {d.choice(['IS NULL', 'IS NOT NULL', '= ' + names[0]])}") if d.p(25) else "", self.all_of(len(kept)), self.limit())

    def shape_ordered_parts(self):
        """Sets and CTEs whose parts have orders and limits of their own."""
        d = self.draw
        table = d.choice(self.tables)
        name, kind = d.choice([c for c in table.columns if c[1] != "iv"])
        part = lambda: N("x", f"SELECT {name} AS x FROM {table.name}", N("opt", " WHERE ", self.expr("bool", table.columns, 1)) if d.p(30) else "", f" ORDER BY 1{d.choice(DIRECTIONS)}", N("opt", f" LIMIT {d.randint(1, 4)}") if d.p(70) else "", N("opt", f" OFFSET {d.randint(0, 2)}") if d.p(25) else "")
        head = N("x", "WITH s AS ", d.choice(["", "", "MATERIALIZED ", "NOT MATERIALIZED "]), "(", part(), ") ")
        sources = ["SELECT x FROM s", "SELECT * FROM s", f"SELECT {name} AS x FROM {table.name}"]
        joined = N("list", d.choice([" UNION ALL ", " UNION ALL ", " UNION ", " EXCEPT ", " INTERSECT "]), *[N("item", d.choice(sources)) if d.p(70) else N("item", "(", part(), ")") for _ in range(d.randint(2, 3))])
        return N("statement", head, "SELECT ", d.choice(["", "DISTINCT ", "DISTINCT "]), "x FROM (", joined, ") AS t", N("opt", " WHERE x IS NOT NULL") if d.p(20) else "", self.all_of(1, ["x"]), self.limit())

    def shape_joins_in_order(self):
        d = self.draw
        one, two = d.choice(self.tables), d.choice(self.tables)
        a, b = self.columns_of(one, "u"), self.columns_of(two, "c")
        pairs = [(x, y) for x, k in a for y, l in b if k == l and k != "iv"]
        on = " AND ".join(f"{x} = {y}" for x, y in d.sample(pairs, min(len(pairs), d.randint(1, 2))))
        keys = [f"u.{k}" for k in one.key] + [f"c.{k}" for k in two.key]
        more = ["u.id", "c.id"]
        items = keys + [key for key in more if key not in keys]
        where = ""
        ints = [n for n, k in b if k == "i4"]
        if d.p(60):
            left = d.sample(ints, min(2, len(ints)))
            where = N("opt", " WHERE ", d.choice([f"({', '.join(left)}) {d.choice(['>', '<', '>=', '='])} ({', '.join(str(d.randint(0, 3)) for _ in left)})", f"u.id = {d.randint(1, 5)}", f"c.id IS NULL", f"u.id {d.choice(['<', '>'])} c.id"]))
        body = N("x", "SELECT ", ", ".join(items), f" FROM {one.name} AS u {d.choice(['', 'LEFT ', 'RIGHT ', 'FULL '])}JOIN {two.name} AS c ON {on}", where)
        if " FULL " in str(body):
            body = N("x", "SELECT ", ", ".join(items), f" FROM {one.name} AS u FULL JOIN {two.name} AS c ON {on.split(' AND ')[0]}", where)
        return N("statement", body, self.all_of(len(items), items), self.limit())

    def shape_limit_over_order(self):
        """A limit over a subquery in order: which rows there are is settled, and so is their order."""
        d = self.draw
        table = d.choice(self.tables)
        names = [c for c, k in table.columns]
        order = ", ".join(f"{name}{d.choice(DIRECTIONS)}" for name in d.sample(names, len(names)))
        kept = ", ".join(d.sample(names, d.randint(1, min(3, len(names)))))
        self.is_ordered = True
        inner = N("x", f"SELECT {kept} FROM {table.name}", N("opt", " WHERE ", self.expr("bool", table.columns, 2)) if d.p(40) else "", f" ORDER BY {order}", N("opt", f" LIMIT {d.randint(2, 9)}") if d.p(30) else "")
        return N("statement", "SELECT * FROM (", inner, ") AS q", self.limit())

    def shape_with_used_often(self):
        d = self.draw
        query, columns = self.query(2)
        first, kind = columns[0]
        uses = [f"SELECT count(*) AS n FROM w", f"SELECT count(*) FROM w AS a, w AS b WHERE a.{first} = b.{first}", f"SELECT count(*) FROM w AS a WHERE a.{first} IN (SELECT {first} FROM w)", f"SELECT count(*) FROM w AS a LEFT JOIN w AS b ON a.{first} < b.{first}", f"SELECT count(DISTINCT {first}) FROM w"]
        body = N("list", " UNION ALL ", *[N("item", use) for use in d.sample(uses, d.randint(2, 4))])
        self.is_ordered = False
        return N("statement", "WITH w AS ", d.choice(["", "MATERIALIZED ", "NOT MATERIALIZED "]), "(", query, ") ", body)

    def shape_recursive(self):
        d = self.draw
        start = d.choice(["0::numeric", "1.5::numeric", "0.25::numeric", "1::numeric", f"{d.choice(SCALES)}::numeric"])
        step = d.choice(["s + 0.25", "s * 1.1", "s - 0.001", "s / 2", "s + d", "s * 1.5", "round(s, 2) + 0.125", "s + 1.0000"])
        union = d.choice(["UNION ALL", "UNION ALL", "UNION"])
        self.is_ordered = True
        return N("statement", f"WITH RECURSIVE r (d, s, t) AS (SELECT 0, {start}, {d.choice(['''''::text''', '''a'::text''', 'NULL::text'])} {union} SELECT d + 1, {step}, t || d FROM r WHERE d < {d.randint(1, 5)}) SELECT ", N("list", ", ", N("item", "d"), N("item", "s"), N("item", "t")), " FROM r ORDER BY d", self.limit())

    def shape_scales(self):
        """Numbers of several scales in one column."""
        d = self.draw
        some = [d.choice(SCALES) for _ in range(4)]
        rows = ", ".join(f"({at}, {value}::numeric)" for at, value in enumerate(some))
        made = d.choice([
            f"SELECT x FROM (VALUES {rows}) AS v (n, x)", f"SELECT {some[0]}::numeric AS x UNION ALL SELECT {some[1]} UNION ALL SELECT {some[2]}::numeric",
            f"SELECT CASE n WHEN 0 THEN {some[0]} WHEN 1 THEN {some[1]}::numeric ELSE x END FROM (VALUES {rows}) AS v (n, x)", f"SELECT COALESCE(NULLIF(x, {some[0]}), {some[1]}) FROM (VALUES {rows}) AS v (n, x)",
            f"SELECT sum(x) OVER (ORDER BY n) FROM (VALUES {rows}) AS v (n, x)", f"SELECT min(x) FROM (VALUES {rows}) AS v (n, x) GROUP BY n % 2", f"SELECT greatest(x, {some[2]}, {some[3]}) FROM (VALUES {rows}) AS v (n, x)",
            f"SELECT sum(x), avg(x), count(DISTINCT x) FROM (VALUES {rows}) AS v (n, x)", f"SELECT x, count(*) FROM (VALUES {rows}) AS v (n, x) GROUP BY x",
            f"SELECT a.x, b.x FROM (VALUES {rows}) AS a (n, x) JOIN (VALUES {rows}) AS b (n, x) ON a.x = b.x", f"SELECT unnest(ARRAY[{', '.join(some)}])", f"SELECT lag(x, 1, {some[3]}) OVER (ORDER BY n) FROM (VALUES {rows}) AS v (n, x)",
        ])
        return N("statement", made)

    def shape_signed_zeros(self):
        d = self.draw
        kind = d.choice(["float8", "float4"])
        rows = ", ".join(f"({at}, {value}::{kind})" for at, value in enumerate(d.choice(["0", "'-0'", "'NaN'", "1", "NULL", "'Infinity'"]) for _ in range(5)))
        v = f"(VALUES {rows}) AS v (n, x)"
        made = d.choice([
            f"SELECT n, rank() OVER (ORDER BY x), dense_rank() OVER (ORDER BY x DESC) FROM {v}", f"SELECT n, count(*) OVER (PARTITION BY x) FROM {v}", f"SELECT n FROM {v} WHERE x IN (0, 1)", f"SELECT n FROM {v} WHERE x NOT IN (0, 1)",
            f"SELECT n FROM {v} WHERE x NOT IN ('-0', 'NaN')", f"SELECT count(DISTINCT x), count(DISTINCT n % 2) FROM {v}", f"SELECT count(*) FROM {v} GROUP BY x", f"SELECT count(*) FROM (SELECT DISTINCT x FROM {v}) AS q",
            f"SELECT a.n, b.n FROM {v} JOIN (VALUES {rows}) AS b (n, x) ON v.x = b.x".replace("SELECT a.n", "SELECT v.n"), f"SELECT n, first_value(n) OVER (PARTITION BY x ORDER BY n) FROM {v}",
            f"SELECT n, sum(n) OVER (ORDER BY x RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM {v}", f"SELECT count(*) FROM (SELECT x FROM {v} INTERSECT SELECT x FROM (VALUES (0::{kind}), ('NaN')) AS w (x)) AS q",
            f"SELECT count(*) FROM (SELECT x FROM {v} EXCEPT SELECT x FROM (VALUES (0::{kind}), ('NaN')) AS w (x)) AS q", f"SELECT n FROM {v} WHERE x = ANY (ARRAY[0, 'NaN']::{kind}[])", f"SELECT n, lag(n) OVER (PARTITION BY x ORDER BY n) FROM {v}",
            f"SELECT count(DISTINCT x), sum(DISTINCT n), count(DISTINCT n) FROM {v} GROUP BY n > 2",
        ])
        return N("statement", made)

    def shape_outer_joins(self):
        """Conditions on the side that may be missing, in ON and in WHERE."""
        d = self.draw
        one, two, three = (d.choice(self.tables) for _ in range(3))
        a, b, c = self.columns_of(one, "a"), self.columns_of(two, "b"), self.columns_of(three, "c")
        join = lambda: d.choice(["LEFT", "LEFT", "RIGHT", "FULL", "INNER"])
        first, second = join(), join()
        on = N("bool", "a.id = b.id", N("opt", " AND ", self.expr("bool", a + b, 1)) if d.p(50) and first != "FULL" else "")
        other = N("bool", f"{d.choice(['a.id', 'b.id'])} = c.id", N("opt", " AND ", self.expr("bool", a + b + c, 1)) if d.p(40) and second != "FULL" else "")
        where = N("opt", " WHERE ", d.choice([f"b.id IS NULL", f"a.id IS NULL", "c.id IS NULL", "b.id IS NOT NULL OR c.id IS NULL", "COALESCE(b.id, 0) = 0", "NOT (b.id = c.id)"])) if d.p(60) else ""
        items = N("list", ", ", N("item", "a.id"), N("item", "b.id"), N("item", "c.id"), N("item", self.expr(self.kind(), a + b + c, 1)))
        return N("statement", "SELECT ", items, f" FROM {one.name} AS a {first} JOIN {two.name} AS b ON ", on, f" {second} JOIN {three.name} AS c ON ", other, where)

    def shape_lateral(self):
        d = self.draw
        one, two = d.choice(self.tables), d.choice(self.tables)
        a, b = self.columns_of(one, "a"), self.columns_of(two, "b")
        where = N("opt", " WHERE ", self.correlation(b, a))
        how = d.randint(0, 2)
        if how == 0:
            inner = N("x", "SELECT ", self.aggregate("i8", b, 1), f" AS x FROM {two.name} AS b", where)
        elif how == 1:
            inner = N("x", f"SELECT b.id AS x FROM {two.name} AS b", where, f" ORDER BY {self.total_order(b)} LIMIT {d.randint(0, 2)}")
        else:
            inner = N("x", f"SELECT b.id AS x, a.id AS y FROM {two.name} AS b", where)
        join = d.choice([("CROSS JOIN", ""), ("LEFT JOIN", " ON true"), ("JOIN", " ON true"), ("LEFT JOIN", " ON l.x > 1")])
        return N("statement", f"SELECT a.id, l.x FROM {one.name} AS a {join[0]} LATERAL (", inner, f") AS l{join[1]}")

    def shape_membership(self):
        """IN and EXISTS under NOT, OR, CASE, in the list and in ON, with NULLs on both sides."""
        d = self.draw
        one, two = d.choice(self.tables), d.choice(self.tables)
        a, b = self.columns_of(one, "a"), self.columns_of(two, "b")
        pairs = [(x, y, k) for x, k in a for y, l in b if k == l and k != "iv"]

        def member():
            x, y, _ = d.choice(pairs)
            where = N("opt", " WHERE ", d.choice([self.correlation(b, a), self.expr("bool", b, 1)])) if d.p(60) else ""
            if d.p(35):
                return N("bool", d.choice(["", "NOT "]), f"EXISTS (SELECT 1 FROM {two.name} AS b WHERE ", self.correlation(b, a), N("opt", " AND ", self.expr("bool", b, 1)) if d.p(30) else "", ")")
            if d.p(20):
                x2, y2, _ = d.choice(pairs)
                return N("bool", f"(({x}, {x2}) {d.choice(['IN', 'NOT IN'])} (SELECT {y}, {y2} FROM {two.name} AS b", where, "))")
            return N("bool", f"({x} {d.choice(['IN', 'NOT IN', 'NOT IN', '= ANY', '<> ALL'])} (SELECT {y} FROM {two.name} AS b", where, "))")

        made = member()
        r = d.randint(0, 4)
        if r == 0:
            made = N("bool", "(", made, d.choice([" OR ", " AND "]), member(), ")")
        elif r == 1:
            made = N("bool", "(NOT ", made, ")")
        elif r == 2:
            made = N("bool", "CASE WHEN ", made, " THEN ", self.expr("bool", a, 1), " ELSE ", member(), " END")
        if d.p(50):
            return N("statement", f"SELECT a.id, ", made, f" FROM {one.name} AS a")
        return N("statement", f"SELECT a.id FROM {one.name} AS a WHERE ", made)

    def shape_windows_over_groups(self):
        d = self.draw
        table = d.choice(self.tables)
        scope = self.columns_of(table)
        key = d.choice([n for n, k in scope if k not in ("f4", "f8", "iv")])
        over = f"OVER (ORDER BY {d.choice(['count(*)', key])}{d.choice(DIRECTIONS)}, {key})"
        items = N("list", ", ", N("item", f"{key} AS k"), N("item", "count(*) AS n"), N("item", f"{d.choice(['sum(count(*))', 'row_number()', 'max(count(*))', 'lag(count(*))'])} {over} AS w"))
        inner = N("x", "SELECT ", items, f" FROM {table.name} GROUP BY {key}", N("opt", " HAVING count(*) > 1") if d.p(30) else "")
        return N("statement", "SELECT * FROM (", inner, ") AS q", N("opt", f" WHERE {d.choice(['w > 1', 'n = 1', 'k IS NOT NULL'])}") if d.p(50) else "")

    def shape_distinct_aggregates(self):
        d = self.draw
        table = d.choice(self.tables)
        scope = self.columns_of(table)
        make = lambda: d.choice([f"count(DISTINCT {d.choice(scope)[0]})", f"sum(DISTINCT {d.choice(self.numbers_of(scope))})", f"count({d.choice(scope)[0]})", "count(*)", f"avg({d.choice(self.numbers_of(scope))})", f"string_agg(DISTINCT {d.choice([n for n, k in scope if k == 'text'] or [chr(39) + 'a' + chr(39)])}, ',')", f"count(DISTINCT {d.choice(scope)[0]}) FILTER (WHERE {d.choice(scope)[0]} IS NOT NULL)"])
        items = N("list", ", ", *[N("item", make()) for _ in range(d.randint(2, 4))])
        group = N("opt", f" GROUP BY {d.choice([n for n, k in scope if k != 'iv'])}") if d.p(60) else ""
        return N("statement", "SELECT ", items, f" FROM {table.name}", N("opt", " WHERE ", self.expr("bool", scope, 1)) if d.p(40) else "", group)

    def shape_rows_of_tables(self):
        """Whole rows as values, over joins that may have none."""
        d = self.draw
        one, two = d.choice(self.tables), d.choice(self.tables)
        join = d.choice(["LEFT", "RIGHT", "FULL", "INNER"])
        item = d.choice(["count(b.*)", "count(a.*)", "count(*)", "count(b)", "sum(CASE WHEN b.* IS NULL THEN 1 ELSE 0 END)", "sum(CASE WHEN b IS NOT NULL THEN 1 ELSE 0 END)"])
        return N("statement", f"SELECT {item} FROM {one.name} AS a {join} JOIN {two.name} AS b ON a.id = b.id", N("opt", f" WHERE {d.choice(['b.* IS NULL', 'a.* IS NULL', 'b.* IS NOT NULL', 'b IS NULL', 'NOT (b IS NULL)'])}") if d.p(50) else "")

    def shape_sets(self):
        """Set operations in brackets, each with an order and a limit."""
        d = self.draw
        kinds = [self.draw.choice(["i4", "text", "num", "date"]) for _ in range(d.randint(1, 2))]

        def part(depth):
            if depth == 0 or d.p(30):
                table = d.choice(self.tables)
                body = N("x", "SELECT ", N("x", ", ".join(str(self.leaf(k, table.columns)) + f" AS c{at}" for at, k in enumerate(kinds))), f" FROM {table.name}")
            else:
                body = N("x", part(depth - 1), d.choice([" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT ", " INTERSECT ALL ", " EXCEPT ALL "]), part(depth - 1))
            tail = N("x", self.all_of(len(kinds)), N("opt", f" LIMIT {d.randint(0, 5)}") if d.p(60) else "", N("opt", f" OFFSET {d.randint(0, 2)}") if d.p(25) else "") if d.p(50) else ""
            return N("x", "(", body, tail, ")")

        # PostgreSQL takes no second ORDER BY for brackets that have one.
        return N("statement", "SELECT * FROM (", part(3), ") AS q", self.all_of(len(kinds)), self.limit())
