"""Holds two servers' answers to one message against each other."""

import re

IDENTICAL, SAME_CODE, REFUSED, CODE, ANSWER, ACCEPTED = (
    "identical",
    "same code",
    "refused",
    "another code",
    "another answer",
    "accepted",
)
# How a refusal says that a statement, or a part of it, is not there.
REFUSALS = ("0A000", "42601")


def is_ordered(sql):
    """Whether the outermost query has an ORDER BY; without one the order of the rows is open."""
    depth, outer = 0, []
    for char in re.sub(r"'(?:''|[^'])*'", "", sql):
        depth += (char == "(") - (char == ")")
        outer.append(char if depth == 0 else " ")
    return re.search(r"\border\s+by\b", "".join(outer), re.I) is not None


def content(answer, ordered):
    key = lambda row: [(cell is None, cell or "") for cell in row]
    return answer.tag, answer.rows if ordered else sorted(answer.rows, key=key)


def judge(sql, reference, answers):
    """(kind, the error that decides) of the answers to a message."""
    wanted = next((answer for answer in reference if answer.code), None)
    got = next((answer for answer in answers if answer.code), None)
    if wanted and got:
        if wanted.code != got.code:
            return CODE, got
        return (IDENTICAL if wanted.message == got.message else SAME_CODE), got
    if wanted:
        return ACCEPTED, wanted
    if got:
        return (REFUSED if got.code in REFUSALS else CODE), got
    ordered = is_ordered(sql)
    same = [content(answer, ordered) for answer in reference] == [content(answer, ordered) for answer in answers]
    return (IDENTICAL if same else ANSWER), None
