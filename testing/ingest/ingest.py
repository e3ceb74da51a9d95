#!/usr/bin/env python3
"""Files drawn from a seed, read by Cairn and by others. See README.md."""

import argparse
import concurrent.futures
import csv
import io
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

MARK = b"\xef\xbb\xbf"


class Wrong(Exception):
    """The other reader refuses the file, or it is one that Cairn refuses on purpose."""


def run(cairn, arguments, folder, text=None):
    return subprocess.run([cairn, *arguments], cwd=folder, input=text, capture_output=True, timeout=300, check=False)


def entries(cairn, folder, name, options):
    """What a store has that is built of a file; the words of an error."""
    built = run(cairn, ["hash", "build", name, "-o", "s.cairn", *options], folder)
    if built.returncode == 1 and built.stderr.startswith(b"error: "):
        return built.stderr.decode(errors="replace")
    if built.returncode != 0:
        return {b"": b"CRASH %d " % built.returncode + built.stderr}
    found = {}
    for line in run(cairn, ["hash", "scan", "s.cairn", "--json"], folder).stdout.splitlines():
        entry = json.loads(line)
        side = lambda part: bytes.fromhex(entry[part + "_hex"]) if part + "_hex" in entry else entry[part].encode("utf8", "surrogatepass")
        found[side("key")] = side("value")
    return found


def tell(kind, number, data, expected, found):
    kept = Path(tempfile.gettempdir()) / f"ingest-{kind}-{number}"
    kept.write_bytes(data)
    print(f"{kind} {number}: kept as {kept}\n  expected {expected!r:.600}\n  found    {found!r:.600}", flush=True)


# CSV and TSV


def draw_field(draw):
    pieces = [b"a", b"b", b'"', b'""', b",", b"\t", b"\n", b"\r\n", b"\r", b" ", b"\0", b"\xff", b"\xef\xbb\xbf", "é".encode(), b"'", b"\\", b"x" * draw.choice([1, 30, 70000])]
    weights = [9, 9, 3, 2, 2, 2, 1, 1, 0.3, 2, 0.3, 0.5, 0.2, 1, 1, 1, 0.1]
    return b"".join(draw.choices(pieces, weights, k=draw.choice([0, 0, 1, 1, 2, 3, 5])))


def draw_csv(draw, separator):
    columns = draw.randint(1, 5)
    quote = lambda field: b'"' + field.replace(b'"', b'""') + b'"'
    plain = lambda field: field if draw.random() < 0.3 else bytes(c for c in field if c not in b'\r\n"' + separator)
    names = [draw.choice([b"k", b"v", b"key", b"w", b"1", b"2", b'a"b', b"x y"]) for _ in range(columns)]
    if draw.random() < 0.85:
        names = draw.sample([b"k", b"v", b"key", b"w", b"1"], max(columns, 2))
        names = list(dict.fromkeys([*names, b"k", b"v"]))
        columns = len(names)
    lines = [separator.join(quote(name) if draw.random() < 0.2 else name for name in names)]
    for _ in range(draw.randint(0, 6)):
        count = columns if draw.random() < 0.98 else draw.randint(1, 6)
        fields = [draw_field(draw) for _ in range(count)]
        lines.append(separator.join(quote(field) if draw.random() < 0.4 else plain(field) for field in fields))
    ends = draw.choice([[b"\n"], [b"\r\n"], [b"\r"], [b"\n", b"\r\n"], [b"\n", b"\r\n", b"\r", b"\n\n"]])
    data = b"".join(line + draw.choice(ends) for line in lines)
    if draw.random() < 0.3:
        data = data.rstrip(b"\r\n")
    if draw.random() < 0.1:
        data = data[: draw.randint(0, len(data))]
    return (MARK if draw.random() < 0.15 else b"") + data


def rows_of_csv(data, separator):
    text = data.decode("latin-1")
    if separator == b"\t":
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return [line.split("\t") for line in lines if line]
    rows = lambda text: [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    read = rows(text)
    # Whether a quote is open at the end shows where another row would go.
    if rows(text + "\nEND")[-1:] != [["END"]]:
        raise Wrong("an open quote")
    return read


def column(names, name):
    there = [at for at, other in enumerate(names) if other == name]
    if len(there) > 1:
        raise Wrong("two columns of a name")
    if there:
        return there[0]
    if name.isdigit() and 1 <= int(name) <= len(names):
        return int(name) - 1
    raise Wrong("no column")


def expected_of_csv(data, separator, key, value):
    rows = rows_of_csv(data.removeprefix(MARK), separator)
    if not rows:
        raise Wrong("no header")
    names = rows[0]
    for name in names:
        if "\0" in name:
            raise Wrong("a header that is no text")
        try:
            name.encode("latin-1").decode("utf8")
        except UnicodeDecodeError:
            raise Wrong("a header that is no text") from None
    at, value_at = column(names, key), column(names, value)
    if any(len(row) != len(names) for row in rows[1:]):
        raise Wrong("a row of another length")
    return {row[at].encode("latin-1"): row[value_at].encode("latin-1") for row in rows[1:]}


def one_csv(cairn, seed, number):
    draw = random.Random(f"csv {seed} {number}")
    separator, name = draw.choice([(b",", "f.csv"), (b",", "f.csv"), (b"\t", "f.tsv")])
    data = draw_csv(draw, separator)
    key, value = draw.choice([("k", "v"), ("k", "v"), ("1", "2"), ("key", "1"), ("w", "k")])
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(data)
        found = entries(cairn, folder, name, ["--key", key, "--value", value])
    try:
        csv.field_size_limit(1 << 30)
        expected = expected_of_csv(data, separator, key, value)
    except Wrong as wrong:
        expected = str(wrong)
    return data, expected, found


# JSON Lines


def draw_json(draw, depth=0):
    kind = draw.random()
    if kind < 0.35 or depth > 3:
        return draw.choice(['"a"', '""', '"é\\u00e9"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\u0000"', '"a\\nb"', '"\t"', '"' + "x" * 5000 + '"'])
    if kind < 0.65:
        return draw.choice(["0", "-0", "1.0", "1e400", "18446744073709551616", "-9223372036854775809", "0.1e-7", "1E5", "01", "+1", ".5", "NaN", "Infinity", "-", "123456789012345678901234567890.5"])
    if kind < 0.8:
        return draw.choice(["true", "false", "null", "nul", "[]", "{}"])
    if kind < 0.9:
        return "[" + ",".join(draw_json(draw, depth + 1) for _ in range(draw.randint(0, 3))) + "]"
    return "[" * 200 + "]" * 200 if draw.random() < 0.1 else '{"k": ' + draw_json(draw, depth + 1) + "}"


def draw_jsonl(draw):
    lines = []
    for number in range(draw.randint(0, 5)):
        names = [draw.choice(["k", "k", "v", "v", "w", "\\u006b", "k_hex"]) for _ in range(draw.randint(1, 4))]
        names = names if draw.random() < 0.2 else list(dict.fromkeys(["k", "v", *names]))
        members = [f'"{name}": ' + (f'"{number}"' if name == "k" else draw_json(draw)) for name in names]
        line = "{" + draw.choice([",", " , "]).join(members) + "}"
        if draw.random() < 0.08:
            line = draw.choice([line[:-1], line + "x", "[]", '"k"', line.replace(":", "", 1), "  ", "\ufeff" + line])
        lines.append(line)
    data = draw.choice(["\n", "\r\n"]).join(lines).encode()
    if draw.random() < 0.1:
        data = data.replace(b'"a"', b'"\xff"')
    return (MARK if draw.random() < 0.2 else b"") + data + draw.choice([b"", b"\n"])


class Number(str):
    """A number, with its digits."""


def plain_text(value, raw):
    if isinstance(value, Number):
        return str(value).encode()
    if isinstance(value, str):
        try:
            return value.encode("utf8")
        except UnicodeEncodeError:
            raise Wrong("half of a pair of surrogates") from None
    if value is None:
        raise Wrong("null")
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return ("JSON", json.dumps(value))


def expected_of_jsonl(data):
    expected = {}
    for line in data.removeprefix(MARK).split(b"\n"):
        if not line.strip():
            continue
        def refuse(word):
            raise Wrong(word)
        def once(pairs):
            for name in ("k", "v", "k_hex", "v_hex"):
                if sum(name == other for other, _ in pairs) > 1:
                    return {"": "twice"}
            return dict(pairs)
        try:
            text = line.removesuffix(b"\r").decode("utf8")
            value = json.loads(text, parse_float=Number, parse_int=Number, parse_constant=refuse, object_pairs_hook=once)
        except (ValueError, RecursionError) as error:
            raise Wrong(str(error)) from None
        if not isinstance(value, dict):
            raise Wrong("no object")
        if value == {"": "twice"}:
            raise Wrong("a field twice")
        fields = []
        for name in ("k", "v"):
            if name in value:
                fields.append(plain_text(value[name], text))
            elif isinstance(value.get(name + "_hex"), str):
                try:
                    hexadecimal = str(value[name + "_hex"])
                    if any(c.isspace() for c in hexadecimal):
                        raise Wrong("no hexadecimal")
                    fields.append(bytes.fromhex(hexadecimal))
                except ValueError:
                    raise Wrong("no hexadecimal") from None
            else:
                raise Wrong("no field")
        key = fields[0] if isinstance(fields[0], bytes) else repr(fields[0]).encode()
        expected[key] = fields[1]
    return expected


def one_jsonl(cairn, seed, number):
    draw = random.Random(f"jsonl {seed} {number}")
    data = draw_jsonl(draw)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "f.jsonl").write_bytes(data)
        found = entries(cairn, folder, "f.jsonl", ["--key", "k", "--value", "v"])
    try:
        expected = expected_of_jsonl(data)
    except Wrong as wrong:
        expected = str(wrong)
    if isinstance(expected, dict) and isinstance(found, dict):
        # Arrays and objects are given as they stand: compared by what they mean.
        plain = lambda key: repr(("JSON", json.dumps(json.loads(key, parse_float=Number, parse_int=Number)))).encode() if key[:1] in (b"[", b"{") else key
        found = {plain(key): value for key, value in found.items()}
        for key, value in expected.items():
            if isinstance(value, tuple) and key in found:
                again = json.loads(found[key], parse_float=Number, parse_int=Number)
                found[key] = ("JSON", json.dumps(again))
    return data, expected, found


# Parquet


def draw_table(draw):
    import decimal

    import pyarrow as pa

    rows = draw.choice([0, 1, 3, 40, 700])
    ends = lambda bits, signed=True: [0, 1, -1 if signed else 2, (1 << bits - signed) - 1, -(1 << bits - 1) if signed else 5]
    def some(values):
        return [None if draw.random() < nulls else draw.choice(values) for _ in range(rows)]
    columns = {"key": pa.array([f"key {n}" for n in range(rows)])}
    kinds = {
        "i8": lambda: pa.array(some(ends(8)), pa.int8()), "i16": lambda: pa.array(some(ends(16)), pa.int16()),
        "i32": lambda: pa.array(some(ends(32)), pa.int32()), "i64": lambda: pa.array(some(ends(64)), pa.int64()),
        "u8": lambda: pa.array(some(ends(8, False)), pa.uint8()), "u16": lambda: pa.array(some(ends(16, False)), pa.uint16()),
        "u32": lambda: pa.array(some(ends(32, False)), pa.uint32()), "u64": lambda: pa.array(some(ends(64, False)), pa.uint64()),
        "f32": lambda: pa.array(some([0.5, -0.0, float("inf"), float("-inf"), float("nan"), 3.0]), pa.float32()),
        "f64": lambda: pa.array(some([0.1, -0.0, float("inf"), float("-inf"), float("nan"), 1e300, 5e-324]), pa.float64()),
        "bool": lambda: pa.array(some([True, False]), pa.bool_()),
        "text": lambda: pa.array(some(["", "a", "é\n\"\\", "x" * 3000, "\0"]), pa.string()),
        "blob": lambda: pa.array(some([b"", b"\xff\0", b"text"]), pa.binary()),
        "fixed": lambda: pa.array(some([b"abcd", b"\xff\xfe\0\0"]), pa.binary(4)),
        "dec": lambda: pa.array(some([decimal.Decimal("1.25"), decimal.Decimal("-99999.99"), decimal.Decimal("0.01")]), pa.decimal128(7, 2)),
        "wide": lambda: pa.array(some([decimal.Decimal(10) ** 37, decimal.Decimal("-1")]), pa.decimal128(38, 0)),
        "date": lambda: pa.array(some([0, -719162, 2932896]), pa.date32()),
        "time": lambda: pa.array(some([0, 86399999999]), pa.time64("us")),
        "ts_ms": lambda: pa.array(some([0, -1, 1700000000123]), pa.timestamp("ms")),
        "ts_us": lambda: pa.array(some([0, -1, 1700000000123456]), pa.timestamp("us")),
        "ts_ns": lambda: pa.array(some([0, -1, 1700000000123456789]), pa.timestamp("ns")),
    }
    nulls = draw.choice([0, 0.2, 1])
    for name in draw.sample(sorted(kinds), draw.randint(0, 6)):
        columns[name] = kinds[name]()
    if draw.random() < 0.05:
        columns["list"] = pa.array([[1, 2]] * rows, pa.list_(pa.int32()))
    names = list(columns)
    if draw.random() < 0.05 and len(names) > 1:
        names[-1] = names[0]
    return pa.table(list(columns.values()), names=names)


ENCODINGS = {
    "i32": ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"], "i64": ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "text": ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"], "blob": ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"],
    "f32": ["PLAIN", "BYTE_STREAM_SPLIT"], "f64": ["PLAIN", "BYTE_STREAM_SPLIT"], "bool": ["PLAIN", "RLE"],
}


def write_parquet(draw, table, path):
    import pyarrow.parquet as pq

    dictionary = draw.random() < 0.5
    chosen = {name: draw.choice(ENCODINGS[name]) for name in table.column_names if name in ENCODINGS}
    old_times = draw.random() < 0.3
    pq.write_table(
        table, path,
        compression=draw.choice(["NONE", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD"]),
        use_dictionary=dictionary,
        column_encoding=None if dictionary or not chosen else chosen,
        row_group_size=draw.choice([7, 100, 1 << 20]),
        data_page_version=draw.choice(["1.0", "2.0"]),
        data_page_size=draw.choice([100, 1 << 20]),
        use_deprecated_int96_timestamps=old_times,
        write_page_checksum=draw.random() < 0.3,
        write_page_index=draw.random() < 0.3,
        store_schema=False,
    )
    return old_times


def json_of(table, old_times):
    """Key to a record as Cairn writes it."""
    import math

    import pyarrow as pa

    names = table.column_names
    if len(set(names)) < len(names):
        raise Wrong("two columns of a name")
    if any(pa.types.is_list(kind) for kind in table.schema.types):
        raise Wrong("nested")
    units = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    records = {}
    plain = []
    for name, kind, values in zip(names, table.schema.types, table.columns):
        if pa.types.is_temporal(kind):
            whole = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
            factor = 10**9 // units[kind.unit] if pa.types.is_timestamp(kind) and old_times else 1
            plain.append([None if value is None else value * factor for value in whole])
        else:
            plain.append(values.to_pylist())
    for row in zip(*plain):
        record = {}
        for name, kind, value in zip(names, table.schema.types, row):
            if isinstance(value, float) and not math.isfinite(value):
                value = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            elif isinstance(value, bytes):
                try:
                    value = value.decode()
                except UnicodeDecodeError:
                    name, value = name + "_hex", value.hex()
            elif pa.types.is_decimal(kind) and value is not None:
                value = Number(f"{value:f}")
            elif isinstance(value, int) and not isinstance(value, bool):
                value = Number(value)
            record[name] = value
        records[row[0].encode()] = record
    return records


def one_parquet(cairn, seed, number):
    draw = random.Random(f"parquet {seed} {number}")
    table = draw_table(draw)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.parquet"
        old_times = write_parquet(draw, table, path)
        data = path.read_bytes()
        found = entries(cairn, folder, "f.parquet", ["--key", "key"] if draw.random() < 0.9 else [])
        copied = copied_of(cairn, folder, table)
    try:
        expected = json_of(table, old_times)
    except Wrong as wrong:
        return data, str(wrong), found
    if isinstance(found, dict):
        keep = lambda text: Number(text)
        def read(value):
            try:
                return json.loads(value, parse_int=keep, parse_float=lambda text: Number(text) if "." in text and len(text.split(".")[1]) in (2,) else float(text))
            except ValueError:
                return value
        found = {key: read(value) for key, value in found.items()}
        same = lambda a, b: a == b or (isinstance(a, (float, Number)) and isinstance(b, (float, Number)) and float(a) == float(b))
        for key, record in expected.items():
            other = found.get(key)
            if isinstance(other, dict) and other.keys() == record.keys() and all(same(record[name], other[name]) for name in record):
                found[key] = record
    if copied is not None:
        return data, "the same rows by COPY", copied
    return data, expected, found


SQL = {"i8": "int", "i16": "int", "i32": "int", "i64": "bigint", "u8": "int", "u16": "int", "u32": "bigint", "u64": "numeric(38,0)", "bool": "boolean", "text": "text", "dec": "numeric(7,2)", "wide": "numeric(38,0)"}


def copied_of(cairn, folder, table):
    """What COPY makes of the columns whose texts are alike; None where it is what pyarrow has."""
    names = [name for name in table.column_names if name in SQL]
    if len(set(table.column_names)) < len(table.column_names) or not names:
        return None
    values = [[None if value is None else str(value).lower() if isinstance(value, bool) else format(value, "f") if hasattr(value, "as_tuple") else str(value) for value in table[name].to_pylist()] for name in names]
    rows = list(zip(*values))
    has_nul = any(field and "\0" in field for row in rows for field in row)
    columns = ", ".join(f"{name} {SQL[name]}" for name in names)
    script = f"create table t ({columns});\n\\copy t from f.parquet (format parquet)\n\\copy t to out.csv (format csv, force_quote *)\n"
    ran = run(cairn, ["sql"], folder, script.encode())
    if ran.returncode != 0:
        return None if has_nul and ran.returncode == 1 else ran.stderr.decode(errors="replace")
    found = read_quoted((Path(folder) / "out.csv").read_bytes())
    found = [tuple({"t": "true", "f": "false"}.get(field, field) if SQL[name] == "boolean" else field for name, field in zip(names, row)) for row in found]
    return None if found == rows else f"{found!r:.300} instead of {rows!r:.300}"


def read_quoted(data):
    """Rows of CSV with quotes around everything but NULL."""
    rows, row, at = [], [], 0
    while at < len(data):
        if data[at:at + 1] == b'"':
            field = bytearray()
            at += 1
            while True:
                end = data.index(b'"', at)
                field += data[at:end]
                at = end + 1
                if data[at:at + 1] != b'"':
                    break
                field += b'"'
                at += 1
            row.append(field.decode())
        else:
            row.append(None)
        if data[at:at + 1] == b"\n":
            rows.append(tuple(row))
            row = []
        at += 1
    return rows


# COPY


def draw_copy(draw):
    kind = draw.choice(["csv", "csv", "text"])
    # What only texts can be, among texts: a value of another type would only be refused.
    weird = draw.random() < 0.6
    kinds = ["text"] if weird and draw.random() < 0.9 else ["int", "text", "numeric(20,5)", "bool", "date", "float8", "bytea"]
    types = [draw.choice(kinds) for _ in range(draw.randint(1, 4))]
    options = [f"format {kind}"]
    delimiter = "," if kind == "csv" else "\t"
    if draw.random() < 0.2:
        delimiter = draw.choice([";", "|", "\t"])
        options.append(f"delimiter E'{delimiter if delimiter != chr(9) else chr(92) + 't'}'")
    null = "" if kind == "csv" else "\\N"
    if draw.random() < 0.2:
        null = draw.choice(["NULL", "-", "x"])
        options.append(f"null '{null}'")
    if kind == "csv":
        for option in ["header", "quote ''''", "escape E'\\\\'", "force_null *", "force_not_null (c0)"]:
            if draw.random() < 0.12 and not option.startswith("force_null *"):
                options.append(option)
            elif draw.random() < 0.08 and option.startswith("force_null"):
                options.append("force_null (c0)")
    quote = "'" if "quote ''''" in options else '"'
    good = {
        "int": ["0", "-1", "2147483647", " 7 ", "+5"], "text": ["a", "", "é", "x y", "\\t", "a\\", "\\N", "\\.", "NULL"],
        "numeric(20,5)": ["1.5", "-0.00001", "1e3", ".5"], "bool": ["t", "false", "on", "1"], "date": ["2024-02-29", "2000-1-2"],
        "float8": ["1.5", "-0", "1e-300", "NaN", "Infinity"], "bytea": ["\\\\x00ff" if kind == "text" else "\\x00ff", "abc"],
    }
    bad = {"int": ["", "x", "2147483648", "1.0"], "text": ["\0", "\udcff", "\udcc3"], "numeric(20,5)": ["", "1e40", "x"], "bool": ["", "maybe"], "date": ["", "2024-02-30"], "float8": ["", "1e999"], "bytea": ["\\xzz"]}
    special = ['"', '""', "'", "\\", "\n", "\r\n", "\r", delimiter, "\\" + delimiter, "\\\\", "\\n", "\\x41", "\\101", "\\r", null, "\\.", '"a"b', 'a"b"', "\\\n", ","]
    lines = []
    for _ in range(draw.randint(0, 5)):
        fields = []
        for kind_of in types:
            value = null if draw.random() < 0.1 else draw.choice(good[kind_of])
            if draw.random() < 0.01:
                value = draw.choice(bad[kind_of])
            # What dates and numbers read beyond their digits is no matter of COPY.
            if weird and kind_of == "text" and draw.random() < 0.25:
                value += draw.choice(special)
            if kind == "csv" and draw.random() < 0.3:
                value = quote + value.replace(quote, quote + quote) + quote
            fields.append(value)
        if draw.random() < 0.04:
            fields = fields[:-1] if draw.random() < 0.5 else [*fields, "more"]
        lines.append(delimiter.join(fields))
    end = draw.choice(["\n", "\n", "\r\n"])
    data = end.join(lines) + (end if draw.random() < 0.7 and lines else "")
    if draw.random() < 0.05:
        data += "\\." + end + "behind"
    if draw.random() < 0.03:
        data = "\ufeff" + data
    return types, ", ".join(options), data.encode("utf8", "surrogateescape")


def all_copies(cairn, seed, count, postgres, first):
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o777)
    drawn = [draw_copy(random.Random(f"copy {seed} {number}")) for number in range(first, first + count)]
    script = ["\\pset format unaligned\n\\set ON_ERROR_STOP off\n", ""]
    for number, (types, options, data) in enumerate(drawn):
        name = f"{folder}/{number}"
        Path(name).write_bytes(data)
        columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(types))
        for side in (0, 1):
            script[side] += f"create temp table t{number} ({columns});\n" if side == 0 else f"create table t{number} ({columns});\n"
            script[side] += f"copy t{number} from '{name}' ({options});\ncopy t{number} to '{name}.{side}' (format csv, force_quote *);\ndrop table t{number};\n"
    psql = ["psql", "-X", "-q", "-h", postgres, "-U", "postgres", "-d", "postgres", "-f", "-"]
    theirs = subprocess.run(psql, input=script[0].encode(), capture_output=True, check=False)
    mine = run(cairn, ["sql", "c.db", "--durability", "memory", "--keep-going"], folder, script[1].encode())
    if b"panicked" in mine.stderr or mine.returncode not in (0, 1):
        print(mine.stderr.decode(errors="replace")[-2000:])
        return 1
    differences = 0
    for number, (types, options, data) in enumerate(drawn):
        sides = [Path(f"{folder}/{number}.{side}").read_bytes() if Path(f"{folder}/{number}.{side}").exists() else None for side in (0, 1)]
        if sides[0] is None:
            print(theirs.stderr.decode()[-500:])
            sys.exit("PostgreSQL has written nothing")
        if sides[0] != sides[1]:
            differences += 1
            tell("copy", first + number, data, (types, options, sides[0]), sides[1])
    return differences


# Flipped bits


def flips(cairn, seed, count):
    differences = 0
    for number in range(count):
        draw = random.Random(f"flips {seed} {number}")
        import pyarrow as pa
        import pyarrow.parquet as pq
        table = pa.table({"k": [f"key {n % 7}" for n in range(20)], "n": list(range(20)), "f": [n / 3 for n in range(20)], "b": [n % 2 == 0 for n in range(20)]})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "f.parquet"
            codec = ["NONE", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD"][number % 6]
            pq.write_table(table, path, compression=codec, use_dictionary=draw.random() < 0.5, data_page_version=draw.choice(["1.0", "2.0"]), store_schema=draw.random() < 0.2)
            sound = path.read_bytes()
            print(f"flips {number}: {codec}, {len(sound) * 8} bits", flush=True)
            (Path(folder) / "load.sql").write_text("create table t (k text, n bigint, f double precision, b boolean);\n\\copy t from g.parquet (format parquet)\n")
            for bit in range(len(sound) * 8):
                flipped = bytearray(sound)
                flipped[bit // 8] ^= 1 << bit % 8
                (Path(folder) / "g.parquet").write_bytes(flipped)
                for line in ("hash build g.parquet -o s.cairn --key k", "sql -f load.sql"):
                    ran = subprocess.run(["bash", "-c", f"ulimit -v 4000000; exec timeout 60 {cairn} {line}"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
                    if ran.returncode not in (0, 1) or b"panicked" in ran.stderr:
                        differences += 1
                        tell("flips", f"{number}-{bit}", bytes(flipped), "rows or an error", (line, ran.returncode, ran.stderr))
    return differences


def options(cairn, files):
    differences = 0
    for file in files:
        ran = run(cairn, ["sim", "run", "--options", os.path.abspath(file), "--show-config"], ".")
        warned = [line for line in ran.stderr.decode(errors="replace").splitlines() if "no model of" in line]
        if ran.returncode != 0 or len(warned) > 1:
            differences += 1
            print(f"{file}: {ran.returncode} {ran.stderr.decode(errors='replace'):.400}")
    return differences


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("kind", choices=["csv", "jsonl", "parquet", "copy", "flips", "options"])
    arguments.add_argument("files", nargs="*")
    arguments.add_argument("--cairn", required=True)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--count", type=int, default=1000)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--postgres")
    args = arguments.parse_args()
    cairn = os.path.abspath(args.cairn)
    if args.kind == "options":
        differences = options(cairn, args.files)
    elif args.kind == "flips":
        differences = flips(cairn, args.seed, args.count)
    elif args.kind == "copy":
        differences = sum(all_copies(cairn, args.seed, min(500, args.count - at), args.postgres, args.first + at) for at in range(0, args.count, 500))
    else:
        one = {"csv": one_csv, "jsonl": one_jsonl, "parquet": one_parquet}[args.kind]
        differences = read = 0
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            numbers = range(args.first, args.first + args.count)
            for number, (data, expected, found) in zip(numbers, pool.map(lambda number: one(cairn, args.seed, number), numbers)):
                # Two errors are alike, whatever their words.
                is_same = isinstance(found, str) if isinstance(expected, str) else expected == found
                read += isinstance(expected, dict)
                if not is_same:
                    differences += 1
                    tell(args.kind, number, data, expected, found)
        print(f"{read} of {args.count} files have entries")
    print(f"{args.kind}: seed {args.seed}, {len(args.files) or args.count} files, {differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
