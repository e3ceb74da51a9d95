"""Differences from PostgreSQL 15 that the book documents, recognized in the reduced statement.

A rule is as narrow as possible: whatever else a statement shows remains a difference.
"""

import re

# Statistics of floating-point numbers, of which a variance of equal numbers is exactly zero, as in PostgreSQL 19.
STATISTIC = r"(?:stddev|stddev_pop|stddev_samp|variance|var_pop|var_samp|covar_pop|covar_samp|corr|regr_\w+)"

RULES = [
    # A quotient has other digits in plans that are not optimized, and a remainder by it has none in common.
    ("rows", re.compile(r"% NULLIF\(\((?:[^()]|\([^()]*\))*? / "), "digits of a remainder by a quotient"),
    ("rows", re.compile(rf"NULLIF\({STATISTIC}\((?:[^()]|\([^()]*\))*\), 0\)", re.I), "zero or almost zero"),
]


def documented(kind, statement):
    """Returns the name of the documented difference that a reduced statement shows; None if there is none."""
    for of, pattern, name in RULES:
        if kind.split()[0] == of and pattern.search(statement):
            return name
    return None
