"""Statements that change tables, and scripts of them."""

from queries import Queries
from trees import N
from values import VALUES


class Gen(Queries):
    """Draws statements of every kind."""

    def change(self):
        d = self.draw
        t = d.choice(self.tables)
        scope = [(f"{t.name}.{c}", k) for c, k in t.columns]
        returning = N("opt", " RETURNING ", N("list", ", ", *[self.expr(self.kind(), scope, 1) for _ in range(d.randint(1, 3))])) if d.p(50) else ""
        r = d.randint(0, 9)
        others = d.sample(t.columns[1:], min(2, len(t.columns) - 1))
        if r < 3:
            sets = N("list", ", ", *[N("item", f"{c} = ", self.assigned(k, scope, 2)) for c, k in others])
            if d.p(20):
                sets = N("x", f"({', '.join(c for c, _ in others)}) = (", N("plain", ", ".join(str(self.assigned(k, scope, 2)) for _, k in others)), ")")
            if d.p(20):
                # Keys that others refer to.
                sets = N("x", f"id = id + {d.choice([0, 1, 10])}")
            if d.p(40):
                return N("statement", f"UPDATE {t.name} SET ", sets, N("opt", " WHERE ", self.expr("bool", scope, 3)), returning)
            frm, inner = self.from_clause(2, [], 2)
            # Only what a key finds, so that no row is changed by one of several.
            key = [n for n, k in inner if k == "i4"]
            if not key:
                return self.change()
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
            # In an order, as the first of two rows with one key is the one that another changes.
            body = N("x", f"SELECT {d.choice(ids)} + {d.choice([0, 10, 100])}, ", ", ".join(str(self.assigned(k, inner, 1)) for c, k in t.columns[1:]), " FROM ", frm, f" ORDER BY {self.total_order(inner)}")
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

    def assigned(self, kind, scope, depth):
        """What a column of a type gets: now and then of another type, or only in quotes."""
        d = self.draw
        if d.p(4):
            return self.shown(lambda of: self.expr(of, scope, depth), self.kind())
        if d.p(6):
            value = d.choice(VALUES[kind])
            return N(kind, value if value.startswith(("'", "E")) else f"'{value}'")
        return self.expr(kind, scope, depth)

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
