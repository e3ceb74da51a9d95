"""Suites that pytest runs: SQLAlchemy's suite for dialects, and the tests of psycopg 3 and asyncpg."""

import os
import pathlib
import re
import shutil
import sys

import fetch
from drive import compare, drive
from places import LOADED, scratch
from servers import Cairn, Postgres
from session import Lost, Session

PYTEST = ("pytest==8.4.2", "pytest-timeout==2.4.0")
# Seconds for one test, and for a suite on one server.
TEST_LIMIT, SUITE_LIMIT = 60, 3600


class Pytest:
    """One suite: what it is, what it needs, and where it runs. Subclasses say how it finds the server."""

    title, packages, statements = "", (), ()
    servers = {}
    # Folders of the sources that the tests need, where the rest would be in the way; all unless given.
    parts = ()

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
        source = self.source()
        python = fetch.venv(type(self).__name__.lower(), *PYTEST, *self.packages)
        makes = (lambda: Postgres(**self.servers), lambda: Cairn(options.cairn))
        found = [self.trial(make(), python, source, options) for make in makes]
        control, mine = ({self.test(name): outcome for name, outcome in trial.tests.items()} for trial in found)
        return compare(self.title, control, mine, found[1].ended, lambda test: found[1].error)

    def trial(self, server, python, source, options):
        folder = scratch("suite")
        try:
            for part in self.parts or (".",):
                shutil.copytree(source / part, folder / "suite" / part, symlinks=True)
            prepare(server, self.statements, options.timeout)
            command = [python, "-m", "pytest", "-q", "--tb=native", "-p", "pytest_outcomes", "--timeout", TEST_LIMIT]
            command += [*self.arguments(server), *(options.files.split(",") if options.files else ())]
            environment = {"PYTHONPATH": str(LOADED), **self.environment(server)}
            outcomes, limit = options.out / f"{server.name}.jsonl", options.limit or SUITE_LIMIT
            return drive(command, [server], outcomes, limit, folder / "suite", environment)
        finally:
            server.stop()
            shutil.rmtree(folder, ignore_errors=True)


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
        return {"PYTHONPATH": f"{LOADED}:lib"}

    def test(self, name):
        return re.sub(r"_15_\d+(?=::)", "", name)


class Psycopg(Pytest):
    title = "psycopg 3"
    # Parts that test the pool, another database, or no database at all; and what waits on purpose.
    passed_over = (
        "pool crdb scripts test_typing.py test_dns.py test_dns_srv.py test_gevent.py test_windows.py"
        " test_concurrency.py test_concurrency_async.py"
    ).split()

    def source(self):
        """PyPI's archive has no tests: they are in Debian's source package, or in a copy that CAIRN_PSYCOPG names."""
        given = os.environ.get("CAIRN_PSYCOPG")
        folder = pathlib.Path(given).resolve() if given else fetch.debian_source("psycopg3", "tests").parent
        files = [folder / "psycopg" / name for name in ("pyproject.toml", "setup.cfg")]
        text = "\n".join(path.read_text() for path in files if path.exists())
        version = re.search(r"^version *= *\"?([0-9]+(?:\.[0-9]+)*)", text, re.M)[1]
        self.packages = (f"psycopg[binary,pool]=={version}", "anyio==4.11.0", "pproxy==2.7.9")
        return folder

    def arguments(self, server):
        ignored = [part for name in self.passed_over for part in ("--ignore", f"tests/{name}")]
        return ("--test-dsn", server.info(), "-m", "not slow and not timing", *ignored, "tests")


class AsyncPg(Pytest):
    title = "asyncpg"
    packages = ("asyncpg==0.32.0", "uvloop==0.22.1", "distro==1.9.0")
    parts = ("tests",)

    def source(self):
        return fetch.sdist("asyncpg==0.32.0")

    def arguments(self, server):
        return ("tests", "--deselect", "tests/test__sourcecode.py")

    def environment(self, server):
        return {
            **super().environment(server),
            "PGHOST": str(server.folder),
            "PGUSER": "postgres",
            "PGDATABASE": server.database,
            "PGPORT": "5432",
        }


def sqlalchemy(options):
    return SqlAlchemy().run(options)


def psycopg(options):
    return Psycopg().run(options)


def asyncpg(options):
    return AsyncPg().run(options)
