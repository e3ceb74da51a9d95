"""Queries: subqueries, joins, groups, windows, sets, CTEs."""

import re

from expressions import Expressions
from trees import N
from values import TYPES


class Queries(Expressions):
    """Draws queries. What one gives is the same however it is run, but for the order of rows."""

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
        if d.p(35):
            return self.aggregated_condition(e, N("x", frm, where), inner, depth)
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

    def aggregated_condition(self, e, body, inner, depth):
        """A condition on a subquery that groups: without GROUP BY it has a row even where nothing matches."""
        d = self.draw
        kind = d.choice(["i4", "i8", "num", "text"])
        made = self.aggregate(kind, inner, 1) or N("i8", "count(*)")
        item = N(made.kind, "COALESCE(", made, ", ", self.literal(made.kind), ")") if d.p(25) else made
        tail = N("opt", " GROUP BY ", d.choice(inner)[0]) if d.p(25) else ""
        if d.p(30):
            tail = N("x", tail, N("opt", " HAVING ", N("bool", self.aggregate("i8", inner, 1), d.choice([" > ", " = ", " <= "]), str(d.randint(0, 2)))))
        # Of several groups it would be left open which one is kept.
        if d.p(15) and " GROUP BY " not in str(tail):
            tail = N("x", tail, N("opt", d.choice([" LIMIT 1", " LIMIT 0", " OFFSET 1"])))
        subquery = N("x", "(SELECT ", item, " FROM ", body, tail, ")")
        if d.p(45):
            return N("bool", d.choice(["", "NOT "]), "EXISTS ", subquery)
        left = e(made.kind)
        if str(tail) == "" and d.p(50):
            return N("bool", "(", left, d.choice([" = ", " <> ", " < ", " >= ", " IS DISTINCT FROM "]), subquery, ")")
        return N("bool", "(", left, d.choice([" IN ", " NOT IN ", " = ANY ", " <> ALL ", " > ANY ", " <= ALL "]), subquery, ")")

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
                    pairs = [f"({d.choice(keys)}, {d.choice(keys)})" for _ in range(d.randint(0, 2))]
                    sets = [*[f"({key})" for key in keys], *pairs, "()"]
                    group = N("opt", " GROUP BY GROUPING SETS (", N("list", ", ", *[N("item", one) for one in sets]), ")")
            elif not any(re.search(r"(count|sum|min|max|avg|stddev|var_pop|variance|stddev_pop|bool_and|bool_or|every|string_agg)\(", str(i)) for i in items):
                items[0] = N("item", "count(*)" if kinds[0] == "i8" else f"max(NULL::{TYPES[kinds[0]]})" if kinds[0] not in ("bool", "uuid", "bytea") else items[0], f" AS {names[0]}")
            text = N("query", "SELECT ", N("list", ", ", *items), " FROM ", frm, where, group, having)
            return self.limited(text, columns, False)
        if r < 42:
            over = self.window_of_positions(scope)
            items = [N("item", self.window(kind, scope, over), f" AS {name}") for name, kind in columns]
            text = N("query", "SELECT ", N("list", ", ", *items), " FROM ", frm, where)
            return self.limited(text, columns, False)
        if r < 48:
            on = [self.column(scope, kinds[0]) or self.column(scope, "i4") or N("i4", scope[0][0])]
            items = [N("item", self.expr(kind, scope, depth - 1), f" AS {name}") for name, kind in columns]
            text = N("query", "SELECT DISTINCT ON (", on[0], ") ", N("list", ", ", *items), " FROM ", frm, where, f" ORDER BY {on[0]}{d.choice(['', ' DESC', ' NULLS FIRST'])}, {self.total_order(scope)}")
            self.is_ordered = False
            return text, columns
        items = [N("item", self.expr(kind, both, depth), f" AS {name}") for name, kind in columns]
        text = N("query", "SELECT ", "DISTINCT " if d.p(20) else "", N("list", ", ", *items), " FROM ", frm, where)
        return self.limited(text, columns, False)

    def limited(self, text, columns, always):
        d = self.draw
        self.is_ordered = False
        if d.p(25) or always:
            # By all columns, so that rows which compare equal are equal; reducing leaves it whole.
            order = N("x", ", ".join(f"{at + 1}{d.choice(['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'])}" for at in d.sample(range(len(columns)), len(columns))))
            self.is_ordered = True
            limit = N("opt", f" LIMIT {d.randint(0, 6)}") if d.p(60) else ""
            text = N("query", text, " ORDER BY ", order, limit, N("opt", f" OFFSET {d.randint(0, 3)}") if d.p(25) else "")
        return text, columns

    def window_of_positions(self, scope):
        """A partition and an order of all columns. One for all windows of a query: rows that are equal may come in either order in each window."""
        d = self.draw
        part = N("opt", "PARTITION BY ", d.choice(scope)[0]) if d.p(55) else ""
        return part, f" ORDER BY {self.total_order(scope)}"

    def window(self, kind, scope, over):
        d = self.draw
        if d.p(25):
            return self.expr(kind, scope, 1)
        if d.p(20):
            return self.window_of_peers(kind, scope)
        part, order = over
        frame = N("opt", d.choice([" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", " ROWS 2 PRECEDING", " ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING"])) if d.p(60) else ""
        over = N("x", " OVER (", part, order, frame, ")")
        plain = N("x", " OVER (", part, order, ")")
        if kind == "i8":
            return N("i8", d.choice(["row_number()", "rank()", "dense_rank()", "count(*)"]), over)
        if kind == "i4" and d.p(20):
            return N("i4", f"ntile({d.randint(1, 4)})", plain)
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

    def window_of_peers(self, kind, scope):
        """A window that gives equal rows the same, so that its order may leave open which comes first."""
        d = self.draw
        part = N("opt", "PARTITION BY ", d.choice(scope)[0]) if d.p(55) else ""
        order = f" ORDER BY {d.choice(scope)[0]}{d.choice(['', ' DESC', ' NULLS FIRST'])}"
        frame = N("opt", d.choice([" RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW"]))
        over = N("x", " OVER (", part, order, frame, ")")
        if kind == "i8":
            return N("i8", d.choice(["rank()", "dense_rank()", "count(*)"]), over)
        if kind in ("uuid", "bytea", "bool"):
            return self.leaf(kind, scope)
        return N(kind, d.choice(["min", "max"]), "(", self.expr(kind, scope, 1), ")", over)

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
