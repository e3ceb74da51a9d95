"""Plays a psql script to a server, and writes down the answers. A server that ends or hangs is started again."""

import re
from typing import NamedTuple

from psql import VARIABLE, Connect, Script
from session import Answer, Hung, Lost, Session

# The file of a `\copy`.
FILE = re.compile(r"\b(from|to)\s+(stdin|stdout|'[^']*')", re.I)
CRASH, HANG, LOST = "CRASH", "HANG", "LOST"


class Step(NamedTuple):
    """What happened to one message: where it stands in the script, and how the transaction was afterwards."""

    key: tuple
    sql: str
    answers: tuple
    status: str


class Player:
    def __init__(self, server, settings, environment, seconds):
        self.server, self.settings, self.environment, self.seconds = server, settings, environment, seconds
        self.session, self.user = None, ""

    def open(self):
        """A session with the settings of the suite; those that the server refuses stay as they are."""
        self.close()
        info = self.server.info() + (f" user={self.user}" if self.user else "")
        escaped = " ".join(
            "-c " + f"{name}={value}".replace("\\", "\\\\").replace(" ", "\\ ") for name, value in self.settings.items()
        )
        quoted = escaped.replace("\\", "\\\\").replace("'", "\\'")
        try:
            self.session = Session(f"{info} options='{quoted}'", self.seconds)
        except Lost:
            self.session = Session(info, self.seconds)
            for name, value in self.settings.items():
                self.session.run(f"set {name} = '{value}'")

    def close(self):
        if self.session is not None:
            self.session.close()
            self.session = None

    def play(self, source, copied=None):
        """Steps of a script, and the places where the server read data of COPY.

        `copied` has the places where PostgreSQL did: another server goes on behind the data there, read or not.
        """
        script, steps, read = Script(source, self.environment), [], set()
        self.open()

        def data():
            if copied is not None and event.at not in copied:
                return b""
            read.add(event.at)
            return script.data()

        for event in script.events():
            if isinstance(event, Connect):
                self.connect(event.user)
                continue
            sql, read_here = self.client_copy(event, script) if event.ending == "copy" else (event.sql, data)
            answers, status = self.send(sql, read_here)
            steps.append(Step((event.at, 0), sql, answers, status))
            if copied is not None and event.at in copied and event.at not in read:
                script.data()
            if event.ending == "gset":
                self.set_variables(script, event.argument, answers)
            elif event.ending == "gexec":
                cells = [cell for answer in answers for row in answer.rows for cell in row if cell]
                for number, cell in enumerate(cells, 1):
                    steps.append(Step((event.at, number), cell, *self.send(cell)))
        self.close()
        self.user = ""
        return steps, read

    def send(self, sql, data=lambda: b""):
        try:
            if self.session is None:
                self.open()
            answers = self.session.run(sql, data)
            return tuple(answers), self.session.status()
        except Lost as lost:
            ended = self.server.revive()
            answer = Answer(CRASH if ended else LOST, str(lost))
        except Hung:
            self.server.kill()
            self.server.revive()
            answer = Answer(HANG, "the server does not answer a cancel")
        self.close()
        return (answer,), "I"

    def connect(self, user):
        """As another user where the server has one; else as before."""
        before, self.user = self.user, user or self.user
        try:
            self.open()
        except Lost:
            self.user = before
            self.open()

    def client_copy(self, event, script):
        """`\\copy` as a COPY that reads from the client, and where it reads."""
        sql = VARIABLE.sub(script.substitute, event.sql)
        found = FILE.search(sql)
        if found is None or found[2].lower() in ("stdin", "stdout"):
            return sql, script.data
        stream = "stdin" if found[1].lower() == "from" else "stdout"
        return f"{sql[: found.start(2)]}{stream}{sql[found.end(2) :]}", lambda: read_file(found[2].strip("'"))

    def set_variables(self, script, prefix, answers):
        for answer in answers:
            if len(answer.rows) == 1:
                for name, value in zip(answer.names, answer.rows[0]):
                    if value is not None:
                        script.variables[prefix + name] = value


def read_file(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
