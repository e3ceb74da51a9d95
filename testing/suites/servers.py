"""The server under test and its control: each starts in a folder of its own and can be given a fresh database.

Both have `info()`, a connection string; `fresh()`, which leaves an empty database or a copy of the one that `keep()`
stored; and `revive()`, which starts a server that has ended and returns whether it had.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

from places import POSTGRES_BIN, scratch

# Seconds that a server may take to start or to end.
PATIENCE = 60


def as_postgres(command):
    """PostgreSQL refuses to run as root."""
    drop = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.getuid() == 0 else []
    return [*drop, *(str(part) for part in command)]


class Postgres:
    """A cluster that need not survive anything."""

    name = "postgres"

    def __init__(self, database="regression", settings=()):
        self.folder, self.database, self.kept = scratch("postgres"), database, False
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        locale = ("--lc-collate=C", "--lc-ctype=C.UTF-8", "--lc-messages=C")
        self.call("initdb", "-D", self.folder / "data", "-U", "postgres", "--auth=trust", "-E", "UTF8", *locale)
        quick = (
            "fsync=off",
            "listen_addresses=",
            "max_prepared_transactions=2",
            f"unix_socket_directories={self.folder}",
        )
        options = " ".join(f"-c {setting}" for setting in (*quick, *settings))
        self.start = ("pg_ctl", "-D", self.folder / "data", "-w", "-l", self.folder / "log", "-o", options, "start")
        self.call(*self.start)
        self.fresh()

    def call(self, program, *arguments):
        command = as_postgres([POSTGRES_BIN / program, *arguments])
        subprocess.run(command, cwd="/", check=True, stdout=subprocess.DEVNULL)

    def sql(self, *statements):
        commands = [
            part for statement in ("set client_min_messages = error", *statements) for part in ("-c", statement)
        ]
        self.call("psql", "-qXh", self.folder, "-U", "postgres", "-d", "template1", *commands)

    def info(self):
        return f"host={self.folder} user=postgres dbname={self.database}"

    def fresh(self):
        template = "kept" if self.kept else "template0"
        self.sql(
            f"drop database if exists {self.database} with (force)",
            f"create database {self.database} template {template}",
        )

    def keep(self):
        """Makes the database, which nobody may have open, the one that `fresh` copies."""
        self.sql("drop database if exists kept", f"create database kept template {self.database}")
        self.kept = True

    def revive(self):
        if subprocess.run(
            as_postgres([POSTGRES_BIN / "pg_ctl", "-D", self.folder / "data", "status"]), stdout=subprocess.DEVNULL
        ).returncode:
            self.call(*self.start)
            return True
        return False

    def kill(self):
        self.call("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")

    def stop(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Cairn:
    """A server of the copy of a `cairn` command: a build that is replaced meanwhile would change what is tested."""

    name = "cairn"

    def __init__(self, command, database="regression", options=()):
        self.folder, self.database, self.options = scratch("cairn"), database, options
        self.kept, self.server = None, None
        self.command = shutil.copy2(command, self.folder / "cairn")
        passwd = [self.command, "sql", "passwd", "users", "postgres"]
        subprocess.run(passwd, cwd=self.folder, input=b"x\nx\n", check=True, stdout=subprocess.DEVNULL)
        self.fresh()

    def info(self):
        return f"host={self.folder} user=postgres dbname={self.database}"

    def start(self):
        for socket in self.folder.glob(".s.PGSQL.*"):
            socket.unlink()
        serve = [
            self.command,
            "sql",
            "serve",
            f"{self.database}.db",
            "--socket",
            ".",
            "--trust-socket",
            "--password-file",
            "users",
        ]
        with open(self.folder / "log", "ab") as log:
            command = [*serve, "--durability", "buffered", *self.options]
            self.server = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        began = time.monotonic()
        while not list(self.folder.glob(".s.PGSQL.*[0-9]")):
            if self.server.poll() is not None or time.monotonic() > began + PATIENCE:
                raise SystemExit(f"suites: the server does not start:\n{self.log()[-2000:]}")
            time.sleep(0.02)

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def fresh(self):
        self.kill()
        self.copy(self.kept, self.folder)
        self.start()

    def keep(self):
        """Makes the database the one that `fresh` copies."""
        self.end()
        self.kept = self.folder / "kept"
        self.kept.mkdir(exist_ok=True)
        self.copy(self.folder, self.kept)
        self.start()

    def copy(self, source, target):
        """Replaces the files of the database in one folder by those of another, or by none."""
        for path in target.glob(f"{self.database}.db*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in source.glob(f"{self.database}.db*") if source else ():
            copy = shutil.copytree if path.is_dir() else shutil.copy2
            copy(path, pathlib.Path(target) / path.name)

    def revive(self):
        # A process that is about to end has closed its connections a little earlier.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.server.wait(0.5)
        if self.server.poll() is None:
            return False
        self.start()
        return True

    def end(self):
        self.server.send_signal(signal.SIGTERM)
        self.server.wait(PATIENCE)

    def kill(self):
        if self.server is not None:
            self.server.kill()
            self.server.wait()

    def stop(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
