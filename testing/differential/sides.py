"""The two servers, and what is different between two answers."""

import decimal
import re
import struct

import psycopg
from psycopg import pq


# More digits than any number here has.
decimal.getcontext().prec = 200


def numeric(data):
    """A numeric's binary form: digits in groups of four, how many come before the point, and the scale."""
    count, weight, sign, scale = struct.unpack("!hhHh", data[:8])
    if sign >= 0xC000:
        return {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}[sign]
    groups = struct.unpack(f"!{count}h", data[8:])
    value = sum(decimal.Decimal(group).scaleb(4 * (weight - at)) for at, group in enumerate(groups))
    # A scale is no part of a value.
    return f"{-value if sign else value:.{scale}f}"


# Numbers are held against each other as numbers, in either form.
BINARY = {
    16: lambda data: "tf"[data == b"\0"], 17: lambda data: "\\x" + data.hex(), 20: lambda data: str(struct.unpack("!q", data)[0]), 21: lambda data: str(struct.unpack("!h", data)[0]),
    23: lambda data: str(struct.unpack("!i", data)[0]), 700: lambda data: str(struct.unpack("!f", data)[0]), 701: lambda data: str(struct.unpack("!d", data)[0]), 1700: numeric,
    2950: lambda data: "-".join((data.hex()[:8], data.hex()[8:12], data.hex()[12:16], data.hex()[16:20], data.hex()[20:])),
}


# A number's zeros behind all other digits of its fraction.
DIGITS = re.compile(r"(?<=\d)(?:(\.\d*?[1-9])0+|\.0+)(?!\d)")


INTERVAL = re.compile(r"(?:(-?\d+) years? ?)?(?:([-+]?\d+) mons? ?)?(?:([-+]?\d+) days? ?)?(?:([-+]?)(\d+):(\d+):(\d+)(?:\.(\d+))?)?")


def microseconds(interval):
    """The length by which intervals are compared: a month has 30 days, a day 24 hours."""
    found = INTERVAL.fullmatch(interval)
    if not found:
        return None
    years, months, days, sign, *time = found.groups()
    hours, minutes, seconds = (int(part or 0) for part in time[:3])
    of_day = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int((time[3] or "0").ljust(6, "0"))
    return ((int(years or 0) * 12 + int(months or 0)) * 30 + int(days or 0)) * 86_400_000_000 + (-of_day if sign == "-" else of_day)


class Side:
    """A session, with the settings that make it another engine than its peer."""

    def __init__(self, folder, name, settings=(), database="t"):
        self.info = f"host={folder} user=postgres dbname={database}"
        self.name = name
        self.settings = settings
        self.open()

    def open(self):
        self.connection = psycopg.connect(self.info, autocommit=True)
        self.run("set timezone = 'UTC'")
        if self.name == "postgres":
            self.run("set jit = off")
        for setting in self.settings:
            self.run(f"set {setting}")

    def run(self, sql, params=None, fmt=0):
        """("rows", tag, names, kinds, rows) or ("error", code, message)."""
        connection = self.connection.pgconn
        if params is None:
            result = connection.exec_(sql.encode())
        else:
            values, kinds, formats = params
            result = connection.exec_params(sql.encode(), values, kinds, formats, fmt)
        status = result.status
        if status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            names = [(result.fname(c) or b"").decode() for c in range(result.nfields)]
            kinds = [result.ftype(c) for c in range(result.nfields)]
            text = lambda data, kind: BINARY[kind](data) if fmt and kind in BINARY else data.decode("utf8", "backslashreplace")
            rows = [tuple(None if (v := result.get_value(r, c)) is None else text(v, kinds[c]) for c in range(result.nfields)) for r in range(result.ntuples)]
            return ("rows", (result.command_status or b"").decode(), names, kinds, rows)
        code = result.error_field(pq.DiagnosticField.SQLSTATE)
        message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY)
        if code is None:
            text = connection.error_message.decode(errors="replace") if isinstance(connection.error_message, bytes) else str(connection.error_message)
            self.open()
            return ("error", "LOST", text.strip())
        return ("error", code.decode(), (message or b"").decode(errors="replace"))


def near(one, other, kind):
    if one == other:
        return True
    if one is None or other is None:
        return False
    # Numerics have the scale of their type here, that of their value there, and a text that is made of one shows it.
    if kind in (25, 1043) and DIGITS.sub(r"\1", one) == DIGITS.sub(r"\1", other):
        return True
    if kind in (700, 701):
        try:
            a, b = float(one), float(other)
            # PostgreSQL's variance of equal numbers is not quite 0, ours is.
            return a == b or (a != a and b != b) or abs(a - b) <= max(1e-5 * max(abs(a), abs(b)), 1e-13)
        except ValueError:
            return False
    # Of equal intervals, which min, max and groups show is left open.
    if kind == 1186:
        return microseconds(one) is not None and microseconds(one) == microseconds(other)
    if kind == 1700:
        try:
            a, b = decimal.Decimal(one), decimal.Decimal(other)
            digits = min(-min(a.as_tuple().exponent, 0), -min(b.as_tuple().exponent, 0)) if a.is_finite() and b.is_finite() else 0
            # Its quotients have 16 digits that count, and ours more.
            return a == b or abs(a - b) <= max(decimal.Decimal(1).scaleb(-digits), max(abs(a), abs(b)).scaleb(-14))
        except (decimal.InvalidOperation, TypeError):
            return False
    return False


def compare(pg, mine, ordered):
    """What is different, in a few words; None for nothing."""
    if mine[0] == "error" and mine[1] == "0A000" and pg[:2] != ("error", "0A000"):
        return "unsupported"
    if pg[0] == "error" and mine[0] == "error":
        if mine[1] in ("XX000", "LOST"):
            return "crash"
        return None if pg[1] == mine[1] else f"sqlstate {pg[1]} {mine[1]}"
    if mine[0] == "error":
        return "crash" if mine[1] in ("XX000", "LOST") else f"refused {mine[1]}"
    if pg[0] == "error":
        return f"answered where {pg[1]}"
    if pg[1] != mine[1]:
        return "tag"
    if len(pg[2]) != len(mine[2]):
        return "columns"
    # A moment in UTC, with or without its zone.
    zoned = [a == 1184 and b == 1114 for a, b in zip(pg[3], mine[3])]
    if any(zoned):
        plain = [tuple(v[:-3] if z and v else v for v, z in zip(row, zoned)) for row in pg[4]]
        inner = compare((*pg[:3], [1114 if z else k for k, z in zip(pg[3], zoned)], plain), mine, ordered)
        return inner or "type"
    key = lambda row: tuple((v is None, v or "") for v in row)
    one, other = (pg[4], mine[4]) if ordered else (sorted(pg[4], key=key), sorted(mine[4], key=key))
    if one != other:
        if len(one) != len(other):
            return "rows"
        if ordered and compare(pg, mine, False) in (None, "names", "type", "format"):
            # The same rows in another order, where digits that differ do not explain it.
            if not all(near(a, b, k) for x, y in zip(one, other) for a, b, k in zip(x, y, pg[3])):
                return "order"
        if all(near(a, b, k) for x, y in zip(one, other) for a, b, k in zip(x, y, pg[3])):
            return "format" if pg[3] == mine[3] else "type"
        if not ordered:
            # Sorting as texts may have put rows with other digits in another order.
            rest = list(other)
            for x in one:
                found = next((at for at, y in enumerate(rest) if all(near(a, b, k) for a, b, k in zip(x, y, pg[3]))), None)
                if found is None:
                    return "rows"
                rest.pop(found)
            return "format"
        return "rows"
    if pg[3] != mine[3]:
        return "type"
    if pg[2] != mine[2]:
        return "names"
    return None


def only_floats_differ(pg, mine):
    """Whether two answers, sorted, differ in nothing but cells of floating-point columns."""
    plain = lambda answer: sorted(str([v for v, k in zip(row, pg[3]) if k not in (700, 701)]) for row in answer[4])
    return plain(pg) == plain(mine)
