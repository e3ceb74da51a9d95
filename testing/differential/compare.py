#!/usr/bin/env python3
"""Cairn's answers against PostgreSQL's, by statements that are drawn from seeds: all types, joins of every kind, subqueries, groups, windows, changes.

    compare.py --cairn DIR --postgres DIR [--seed N] [--schemas N] [--count N] [--kinds a,b,..]
    compare.py --cairn DIR --oracle optimizer|direct|partitions ..

DIR is the folder of a server's socket. Both databases must be ones that may be emptied. A difference is reduced to a statement as short as it
gets and printed with what made its tables; differences that look alike are printed once. What Cairn refuses with 0A000 is counted, not compared.

Three oracles need no PostgreSQL: `optimizer` holds optimized plans against plans as they were written, `direct` the direct path against the general
one, and `partitions` a query against the same rows put together from the parts where a condition is true, false and unknown.
"""

import argparse
import collections
import re
import sys

# What is compiled of the files beside this one would lie there as well.
sys.dont_write_bytecode = True

from documented import documented
from partitions import Partitions as Gen
from sides import Side, compare, only_floats_differ
from tables import Table
from trees import simpler
from values import Draw


# Settings that make another engine of Cairn itself.
REFERENCE = {"optimizer": ("cairn.optimizer = off", "cairn.direct_path = off"), "direct": ("cairn.direct_path = off",)}


class Compare:
    def __init__(self, options):
        self.options = options
        limit = f"statement_timeout = '{options.timeout}s'"
        self.mine = Side(options.cairn, "cairn", (limit,))
        if options.oracle == "postgres":
            self.pg = Side(options.postgres, "postgres", (limit,), options.database)
        else:
            self.pg = Side(options.cairn, "reference", (limit, *REFERENCE.get(options.oracle, ())))
        # Whoever changes tables changes them once.
        self.sides = (self.pg, self.mine) if options.oracle == "postgres" else (self.mine,)
        self.seen = collections.Counter()
        self.refused = collections.Counter()
        self.counts = collections.Counter()

    def both(self, sql, ordered=False, params=None, binary=0):
        pg, mine = self.pg.run(sql, params, binary), self.mine.run(sql, params, binary)
        kind = compare(pg, mine, ordered)
        # An engine of our own that refuses says nothing, and which of two errors comes first is nobody's business.
        if kind and self.options.oracle != "postgres" and "error" in (pg[0], mine[0]) and kind != "crash":
            kind = "unsupported" if mine[0] == "error" else "undecided"
        # A side that ran out of time has said nothing; Cairn alone is slow where PostgreSQL is not.
        if "57014" in (pg[1], mine[1]):
            kind = "slow" if pg[1] != "57014" and self.options.oracle == "postgres" else "undecided"
        return kind, pg, mine

    def halves(self, pair):
        """A query against the same put together from parts."""
        one, other = (self.mine.run(half) for half in pair.both())
        if "error" in (one[0], other[0]):
            crash = [half for half in (one, other) if half[0] == "error" and half[1] in ("XX000", "LOST")]
            return ("crash", one, crash[0]) if crash else (None, one, other)
        kind = compare((one[0], other[1], other[2], *one[3:]), other, False)
        return kind if kind not in ("type", "names", "format") else None, one, other

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
                # A stored floating-point number may have other last digits; a stored numeric may not.
                if kind == "format" and only_floats_differ(pg, mine):
                    continue
                if kind and kind not in ("type", "names"):
                    return f"behind it {kind}", pg, mine
            return None, pg, mine
        finally:
            for side in (self.pg, self.mine):
                side.run("rollback")

    def schema(self, seed):
        draw = Draw(seed)
        for side in self.sides:
            side.run("rollback")
            for name in ("t3", "t2", "t1"):
                side.run(f"drop table if exists {name} cascade")
        tables = []
        script = []
        for number in (1, 2, 3):
            table = Table(draw, number, tables)
            tables.append(table)
            for sql in table.create + table.inserts():
                kind, pg, mine = self.both(sql) if len(self.sides) == 2 else (None, *[self.mine.run(sql)] * 2)
                if kind:
                    self.report(kind, sql, pg, mine, script, seed)
                    if "create" in sql[:8]:
                        return draw, None, script
                elif pg[0] == "rows":
                    script.append(sql)
        if draw.p(50):
            for side in self.sides:
                side.run("analyze")
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
                elif what == "shape":
                    tree = gen.shape()
                    if tree.kind == "change":
                        test = lambda tree: self.changed(str(tree), tables)
                    else:
                        test = lambda tree, ordered=gen.is_ordered: self.both(str(tree), ordered)
                elif what == "pair":
                    tree, test = gen.pair(), self.halves
                elif what == "change":
                    tree, test = gen.change(), lambda tree: self.changed(str(tree), tables)
                else:
                    gen.is_ordered = False
                    tree = gen.statement()
                    test = lambda tree, ordered=gen.is_ordered: self.both(str(tree), ordered)
                kind, pg, mine = test(tree)
                self.counts[kind or ("same error" if pg[0] == "error" else "same")] += 1
                if kind == "unsupported":
                    self.refused[mine[2][:90]] += 1
                    continue
                if kind == "undecided":
                    continue
                if not kind or (kind in ("type", "names", "format") and not o.all) or kind.split()[0] in o.skip or (o.only and not kind.startswith(tuple(o.only))):
                    continue
                signature = self.signature(kind, tree, pg, mine)
                if mine[0] == "error" and self.seen[signature] >= o.same:
                    self.seen[signature] += 1
                    continue
                small = self.reduce(tree, test, kind)
                kind, pg, mine = test(small)
                if name := documented(kind or "?", str(small)):
                    self.counts[f"documented: {name}"] += 1
                    continue
                self.report(kind or "?", small, pg, mine, script, seed)
        print(f"\nseeds {o.seed} to {o.seed + o.schemas - 1}: {sum(self.counts.values())} statements", dict(self.counts))
        for signature, count in self.seen.most_common():
            print(f"{count:6} {signature}")
        print("refused:")
        for message, count in self.refused.most_common(40):
            print(f"{count:6} {message}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cairn", required=True)
    parser.add_argument("--postgres", help="the other server, where the oracle is PostgreSQL")
    parser.add_argument("--database", default="t", help="of PostgreSQL; a Cairn server has one only")
    parser.add_argument("--oracle", default="postgres", choices=["postgres", *REFERENCE, "partitions"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schemas", type=int, default=5)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--kinds", help="of query, shape, change, bare, wild, param, script, pair")
    parser.add_argument("--timeout", type=int, default=20, help="seconds a statement may take; one that takes longer is not compared")
    parser.add_argument("--same", type=int, default=2, help="differences of one look that are shown")
    parser.add_argument("--lines", type=int, default=40)
    parser.add_argument("--budget", type=int, default=400, help="statements to reduce one")
    parser.add_argument("--skip", default="", help="kinds of differences that are not shown")
    parser.add_argument("--only", default="", help="beginnings of kinds of differences that are shown")
    parser.add_argument("--all", action="store_true", help="also names, types and digits")
    options = parser.parse_args()
    if options.oracle == "postgres" and not options.postgres:
        parser.error("--postgres says where the other server is")
    usual = {"postgres": "query,query,shape,shape,change,bare,param", "partitions": "pair"}.get(options.oracle, "query,query,shape,bare")
    options.kinds, options.skip = (options.kinds or usual).split(","), options.skip.split(",")
    options.only = [kind for kind in options.only.split(",") if kind]
    Compare(options).go()


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    main()
