"""Finds for each statement that failed the refusal that it goes back to.

A refused CREATE TABLE makes every later statement about that table fail. Such a statement counts for the message of the
refusal, so that the list of messages says how many statements each of them blocks: directly, and in consequence.
"""

import re

from causes import Cause

NAME = r'(?:"(?:[^"]|"")+"|[\w$]+)'
QUALIFIED = rf"(?:{NAME}\s*\.\s*)*({NAME})"
KINDS = (
    "materialized view|foreign table|table|view|type|domain|function|procedure|aggregate|sequence|index|trigger|rule"
    "|schema|operator class|operator|cast|collation|statistics|role|user|extension|policy|server"
)
WORDS = (
    r"or|replace|global|local|temp|temporary|unlogged|recursive|unique|concurrently|if|not|exists|constraint|only"
    r"|default|foreign|public|materialized|event"
)
# What a statement makes or changes.
TOUCHES = [
    re.compile(rf"\s*(?:create|alter)\s+(?:(?:{WORDS})\s+)*(?:{KINDS})\s+(?:(?:{WORDS})\s+)*{QUALIFIED}", re.I),
    re.compile(
        rf"\s*(?:insert\s+into|update|delete\s+from|merge\s+into|copy|truncate(?:\s+table)?)\s+(?:only\s+)?{QUALIFIED}",
        re.I,
    ),
    re.compile(rf"\s*(?:prepare|declare|savepoint)\s+{QUALIFIED}", re.I),
    re.compile(rf"\s*set\s+(?:session\s+|local\s+)?{QUALIFIED}", re.I),
    re.compile(rf"\s*with\b.*\b(?:insert\s+into|update|delete\s+from)\s+(?:only\s+)?{QUALIFIED}", re.I | re.S),
    re.compile(rf"\s*select\b.*\binto\s+(?:(?:{WORDS}|table)\s+)*{QUALIFIED}", re.I | re.S),
]
# An index or a trigger changes its table, too.
ON = re.compile(
    rf"\s*create\s+(?:(?:{WORDS})\s+)*(?:index|trigger|rule)\b.*?\bon\s+(?:only\s+)?{QUALIFIED}", re.I | re.S
)
CREATES = re.compile(r"\s*create\b|\s*select\b.*\binto\b", re.I | re.S)
DROPS = re.compile(rf"\s*drop\s+(?:{KINDS})\s+(?:(?:{WORDS})\s+)*(.*)", re.I | re.S)
WORD = re.compile(rf"{NAME}")
ABORTED = "25P02"
# Errors that name the function, table or type that is not there.
MISSING = ("42883", "42P01", "42704")


def plain(name):
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def touched(sql):
    names = {plain(found.group(1)) for pattern in TOUCHES if (found := pattern.match(sql))}
    if on := ON.match(sql):
        names.add(plain(on.group(1)))
    return names


def words(sql):
    return {plain(word) for word in WORD.findall(sql)}


class Blame:
    """Follows one file, and knows which names are not there, or not as they should be, for which cause."""

    def __init__(self):
        self.roots = {}
        # Of those: the ones whose creation was refused. A DROP that succeeds has then dropped something else.
        self.missing = set()
        self.aborted, self.within = None, set()

    def refused(self, sql, answer, status):
        """(cause, whether the statement only suffers from an earlier one) for a statement that PostgreSQL accepts."""
        root = self.cause(sql, answer)
        suffers = root is not None
        root = root or Cause.of(answer, sql)
        for name in touched(sql):
            self.roots.setdefault(name, root)
            if CREATES.match(sql):
                self.missing.add(name)
        if status == "E" and self.aborted is None:
            self.aborted = root
            # A rollback takes with it all that the transaction has made.
            for name in self.within:
                self.roots.setdefault(name, root)
        return root, suffers

    def cause(self, sql, answer):
        if answer.code == ABORTED and self.aborted:
            return self.aborted
        if answer.code in ("0A000", "42601", "XX000"):
            return None
        named = self.earlier(words(answer.message.replace(".", '"."')) - {"a", "on", "is", "to"})
        return named or (None if answer.code in MISSING else self.earlier(words(sql)))

    def earlier(self, names):
        """The refusal of a statement that would have made or changed one of these."""
        return next((self.roots[name] for name in sorted(names) if name in self.roots), None)

    def differs(self, sql):
        """The refusal that explains another answer, if one does."""
        root = self.aborted or self.earlier(words(sql))
        for name in touched(sql) if root else ():
            self.roots.setdefault(name, root)
        return root

    def passed(self, sql, status, failed):
        """To be called for every statement: follows transactions, and forgets what is dropped."""
        if status == "I":
            self.within = set()
        elif status == "T":
            self.within |= touched(sql)
        if status != "E":
            self.aborted = None
        if dropped := DROPS.match(sql):
            for name in words(dropped.group(1)):
                if failed or name not in self.missing:
                    self.roots.pop(name, None)
                    self.missing.discard(name)
