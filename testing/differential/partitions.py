"""Queries and the same ones put together from parts: what they give must be equal, and no other engine is asked.

After "Finding Bugs in Database Systems via Query Partitioning" (Rigger, Su, OOPSLA 2020) and "Detecting Optimization Bugs in Database Engines via
Non-Optimizing Reference Engine Construction" (the same, ESEC/FSE 2020).
"""

from shapes import Shapes
from trees import N, Pair


class Partitions(Shapes):
    """Draws pairs of statements that must give the same rows."""

    def pair(self):
        d = self.draw
        frm, scope = self.from_clause(3, [], 2)
        condition = self.expr("bool", scope, 3) if d.p(60) else self.condition(scope)
        if d.p(25):
            return Pair(counted, frm, condition)
        kinds = [self.kind() for _ in range(d.randint(1, 3))]
        # Not a list whose items may go: the other half names its columns.
        items = N("x", *[N("x", ", " if at else "", self.leaf(kind, scope), f" AS c{at}") for at, kind in enumerate(kinds)])
        names = ", ".join(f"c{at}" for at in range(len(kinds)))
        extremes = ", min(c0), max(c0)" if kinds[0] not in ("bool", "uuid", "bytea") else ""
        totals = f"SELECT count(*), count(DISTINCT c0){extremes} FROM "
        around = d.choice([None, None, ("SELECT DISTINCT * FROM ", ""), (totals, ""), (f"SELECT {names}, count(*) FROM ", f" GROUP BY {names}")])
        return Pair(lambda *parts: partitioned(around, *parts), frm, condition, items)


def counted(frm, condition):
    """How many rows a condition keeps, and how many it is true for."""
    return f"SELECT count(*) FROM {frm} WHERE {condition}", f"SELECT COALESCE(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0) FROM {frm}"


def partitioned(around, frm, condition, items):
    """All rows, and those for which a condition is true, false and unknown; within `around` where there is one."""
    whole = f"SELECT {items} FROM {frm}"
    parts = " UNION ALL ".join(f"{whole} WHERE {part}" for part in (condition, f"NOT {condition}", f"({condition}) IS NULL"))
    if around is None:
        return whole, parts
    return tuple(f"{around[0]}({half}) AS q{around[1]}" for half in (whole, parts))
