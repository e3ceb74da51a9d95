"""Suites that pytest runs: SQLAlchemy's suite for dialects, and the tests of psycopg 3 and asyncpg."""

import re
import shutil
import sys

import fetch
from drive import compare, drive
from places import HERE, scratch
from servers import Cairn, Postgres
from session import Lost, Session

PYTEST = ("pytest==8.4.2", "pytest-timeout==2.4.0")
# Seconds for one test, and for a suite on one server.
TEST_LIMIT, SUITE_LIMIT = 60, 3600


class Pytest:
    """One suite: what it is, what it needs, and where it runs. Subclasses say how it finds the server."""

    title, packages, statements = "", (), ()
    servers = {}

    def source(self):
        """The folder that pytest runs in, which may be written to."""
        raise NotImplementedError

    def arguments(self, server):
        return ()

    def environment(self, server):
        return {}

    def test(self, name):
        """The name of a test without the version of the server."""
        return name

    def run(self, options):
        python = fetch.venv(type(self).__name__.lower(), *PYTEST, *self.packages)
        source = self.source()
        found = []
        for make in (lambda: Postgres(**self.servers), lambda: Cairn(options.cairn)):
            server, folder = make(), scratch("suite")
            try:
                shutil.copytree(source, folder / "suite", symlinks=True)
                prepare(server, self.statements, options.timeout)
                plugin = ("-p", "pytest_outcomes", "-p", "no:cacheprovider", "--timeout", str(TEST_LIMIT))
                command = [python, "-m", "pytest", "-q", *plugin, *self.arguments(server), *(options.files or "").split(",")]
                environment = {"PYTHONPATH": str(HERE), **self.environment(server)}
                outcomes = options.out / f"{server.name}.jsonl"
                command = [part for part in command if part]
                found.append(drive(command, [server], outcomes, options.limit or SUITE_LIMIT, folder / "suite", environment))
            finally:
                server.stop()
                shutil.rmtree(folder, ignore_errors=True)
        (control, _), (mine, ended) = found
        control, mine = ({self.test(name): outcome for name, outcome in tests.items()} for tests in (control, mine))
        return compare(self.title, control, mine, ended)


def prepare(server, statements, seconds):
    """What a suite's own instructions tell to do once. A statement that the server refuses is told, and passed over."""
    session = Session(server.info(), seconds)
    for statement in statements:
        try:
            errors = [answer.message for answer in session.run(statement) if answer.code]
        except Lost as lost:
            errors = [str(lost)]
            server.revive()
            session = Session(server.info(), seconds)
        for message in errors:
            print(f"suites: {server.name}: {statement}: {message}", file=sys.stderr)
    session.close()


class SqlAlchemy(Pytest):
    title = "SQLAlchemy 2.1, suite for dialects"
    packages = ("SQLAlchemy==2.1.9", "psycopg[binary]==3.3.9")
    statements = ("create schema test_schema", "create schema test_schema_2")
    servers = {"settings": ("max_prepared_transactions=10",)}

    def source(self):
        return fetch.sdist("SQLAlchemy==2.1.9")

    def arguments(self, server):
        url = f"postgresql+psycopg://postgres@/{server.database}?host={server.folder}"
        return ("--dburi", url, "--maxfail", "1000000", "test/dialect/test_suite.py")

    def environment(self, server):
        return {"PYTHONPATH": f"{HERE}:lib"}

    def test(self, name):
        return re.sub(r"_15_\d+(?=::)", "", name)


class Psycopg(Pytest):
    title = "psycopg 3"

    def source(self):
        tests = fetch.debian_source("psycopg3", "tests")
        version = tests.parent.name.rpartition("-")[2]
        self.packages = (f"psycopg[binary]=={version}",)
        return tests.parent


class AsyncPg(Pytest):
    title = "asyncpg"
    packages = ("asyncpg==0.32.0", "uvloop==0.22.1")

    def source(self):
        return fetch.sdist("asyncpg==0.32.0")

    def arguments(self, server):
        return ("tests", "--deselect", "tests/test__sourcecode.py")

    def environment(self, server):
        return {**super().environment(server), "PGHOST": str(server.folder), "PGUSER": "postgres", "PGDATABASE": server.database, "PGPORT": "5432"}


def sqlalchemy(options):
    return SqlAlchemy().run(options)


def psycopg(options):
    return Psycopg().run(options)


def asyncpg(options):
    return AsyncPg().run(options)
