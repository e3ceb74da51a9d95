"""Trees of statements, and cutting them down."""

from values import SIMPLE, TYPES


class N:
    """A part of a statement: `kind` is its type (a part of the same type may take its place), "opt" (may go) or "list" (items may go)."""

    def __init__(self, kind, *parts):
        self.kind, self.parts = kind, list(parts)

    def __str__(self):
        if self.kind == "list":
            return self.parts[0].join(str(part) for part in self.parts[1:])
        return "".join(str(part) for part in self.parts)

    def with_parts(self, parts):
        return N(self.kind, *parts)


class Pair(N):
    """Two statements made from the same parts, so that cutting a part cuts it from both."""

    def __init__(self, halves, *parts):
        super().__init__("pair", *parts)
        self.halves = halves

    def __str__(self):
        return "\nagainst\n".join(map(str, self.both()))

    def both(self):
        return [str(half) for half in self.halves(*self.parts)]

    def with_parts(self, parts):
        return Pair(self.halves, *parts)


def walk(node, path=()):
    yield path, node
    for at, part in enumerate(node.parts):
        if isinstance(part, N):
            yield from walk(part, (*path, at))


def put(node, path, new):
    if not path:
        return new
    parts = list(node.parts)
    parts[path[0]] = put(parts[path[0]], path[1:], new)
    return node.with_parts(parts)


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
