"""Lets a look ahead be had: statements that `SUITES_PASS_OVER` describes are not sent to the server.

`suites.py run --pass-over REGEX` sets it. Results of such a run are never stored, because the suite was not what it is.
"""

import os
import re

import psycopg

PATTERN = os.environ.get("SUITES_PASS_OVER")


def install():
    if not PATTERN:
        return
    pattern, execute = re.compile(PATTERN, re.I), psycopg.Cursor.execute

    def filtered(self, query, *arguments, **more):
        if pattern.match(str(query).strip()):
            return execute(self, "select 1")
        return execute(self, query, *arguments, **more)

    psycopg.Cursor.execute = filtered
