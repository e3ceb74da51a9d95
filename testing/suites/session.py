"""A connection that sends statements by the simple protocol, as psql does, and never waits for ever."""

import select
import time
from typing import NamedTuple

from psycopg import OperationalError, pq

# Seconds after a cancel in which a server must answer.
GRACE = 5
OK = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY)


class Answer(NamedTuple):
    """The answer to one statement: rows and a tag, or an error."""

    code: str = ""
    message: str = ""
    tag: str = ""
    names: tuple = ()
    rows: tuple = ()
    detail: str = ""


class Lost(Exception):
    """The connection has ended while a statement ran."""


class Hung(Exception):
    """The server neither finished a statement in time nor cancelled it when told so."""


def text(data):
    return None if data is None else data.decode("utf-8", "backslashreplace")


class Session:
    def __init__(self, info, seconds):
        self.seconds = seconds
        self.connection = pq.PGconn.connect(info.encode())
        if self.connection.status != pq.ConnStatus.OK:
            raise Lost(text(self.connection.error_message))
        self.connection.nonblocking = 1

    def close(self):
        self.connection.finish()

    def status(self):
        """Of the transaction: I outside of one, T within, E within one that has failed."""
        states = {pq.TransactionStatus.IDLE: "I", pq.TransactionStatus.INTRANS: "T", pq.TransactionStatus.INERROR: "E"}
        return states.get(self.connection.transaction_status, "?")

    def run(self, sql, data=lambda: b""):
        """The answers to a message of one statement or several. `data` gives what COPY FROM STDIN reads."""
        try:
            return self.exchange(sql, data)
        except OperationalError as error:
            raise Lost(str(error)) from None

    def exchange(self, sql, data):
        connection, answers, copied = self.connection, [], ()
        self.deadline, self.cancelled = time.monotonic() + self.seconds, False
        connection.send_query(sql.encode("utf-8", "surrogateescape"))
        self.flush()
        while True:
            while connection.is_busy():
                self.wait(write=False)
                connection.consume_input()
            result = connection.get_result()
            if result is None:
                break
            if result.status == pq.ExecStatus.COPY_IN:
                connection.put_copy_data(data())
                connection.put_copy_end()
                self.flush()
            elif result.status == pq.ExecStatus.COPY_OUT:
                copied = self.copied()
            elif result.status in OK:
                answer = rows(result)
                answers.append(answer._replace(rows=copied) if copied else answer)
                copied = ()
            else:
                answers.append(self.failure(result))
        if connection.status != pq.ConnStatus.OK:
            raise Lost(answers[-1].message if answers else "the connection has ended")
        return answers

    def flush(self):
        while self.connection.flush() == 1:
            self.wait(write=True)
            self.connection.consume_input()

    def wait(self, write):
        """Until the socket is ready. Past the deadline the statement is cancelled, once, and gets some more time."""
        socket = self.connection.socket
        while True:
            left = self.deadline - time.monotonic()
            if left > 0 and any(select.select([socket], [socket] if write else [], [], left)):
                return
            if time.monotonic() < self.deadline:
                continue
            if self.cancelled:
                raise Hung()
            self.cancelled, self.deadline = True, time.monotonic() + GRACE
            self.connection.get_cancel().cancel()

    def copied(self):
        lines = []
        while True:
            size, data = self.connection.get_copy_data(1)
            if size > 0:
                lines.append((text(bytes(data)).rstrip("\n"),))
            elif size == 0:
                self.wait(write=False)
                self.connection.consume_input()
            else:
                return tuple(lines)

    def failure(self, result):
        code = result.error_field(pq.DiagnosticField.SQLSTATE)
        if code is None:
            raise Lost(text(self.connection.error_message))
        message = text(result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"")
        detail = text(result.error_field(pq.DiagnosticField.MESSAGE_DETAIL) or b"")
        return Answer("TIMEOUT" if self.cancelled else code.decode(), message, detail=detail)


def rows(result):
    columns = range(result.nfields)
    cells = tuple(tuple(text(result.get_value(row, column)) for column in columns) for row in range(result.ntuples))
    names = tuple(text(result.fname(column) or b"") for column in columns)
    return Answer(tag=text(result.command_status or b""), names=names, rows=cells)
