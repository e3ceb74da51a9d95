"""Types, and what values are drawn of each."""

import random

TYPES = {
    "i2": "smallint", "i4": "integer", "i8": "bigint", "num": "numeric(12,3)", "f4": "real", "f8": "double precision", "text": "text", "vc": "varchar(20)",
    "bool": "boolean", "date": "date", "ts": "timestamp", "tz": "timestamptz", "time": "time", "iv": "interval", "uuid": "uuid", "bytea": "bytea",
}
VALUES = {
    "i2": ["0", "1", "2", "3", "-1", "7", "32767", "-32768"],
    "i4": ["0", "1", "2", "3", "-1", "7", "2147483647", "-2147483648", "100"],
    "i8": ["0", "1", "2", "3", "-1", "7", "9223372036854775807", "-9223372036854775808", "5000000000"],
    "num": ["0", "1", "2", "1.5", "-1.5", "0.001", "2.50", "999999999.999", "-0.5", "3"],
    "f4": ["0", "1", "2", "0.5", "-1.5", "0.1", "1e10", "'NaN'", "'Infinity'", "'-0'"],
    "f8": ["0", "1", "2", "0.5", "-1.5", "'-0'", "0.1", "1e300", "'NaN'", "'-Infinity'", "2.5"],
    "text": ["''", "'a'", "'A'", "'ab'", "'aB'", "'b%'", "'_x'", "'é'", "'ß'", "'日本'", "'it''s'", "E'a\\\\b'", "' lead'", "'trail '", "'100'", "'NULL'", "'abcabc'", "E'a\\nb'"],
    "vc": ["''", "'a'", "'A'", "'ab'", "'b'", "'é'", "'x y'", "'1'"],
    "bool": ["true", "false"],
    "date": ["'2024-02-29'", "'2024-03-31'", "'1999-12-31'", "'2000-01-01'", "'1969-07-20'", "'2024-12-30'"],
    "ts": ["'2024-02-29 12:34:56.789'", "'1999-12-31 23:59:59.999999'", "'2000-01-01 00:00:00'", "'1969-07-20 20:17:40'", "'2024-03-31 01:30:00'"],
    "tz": ["'2024-02-29 12:34:56.789+00'", "'1999-12-31 23:59:59+00'", "'2000-01-01 00:00:00+02'", "'1969-07-20 20:17:40-05'"],
    "time": ["'00:00:00'", "'12:34:56.789'", "'23:59:59.999999'", "'06:00'"],
    "iv": ["'1 day'", "'1 month'", "'-1 day 02:00:00'", "'00:00:00.5'", "'1 year 2 mons 3 days 04:05:06'", "'24:00:00'", "'30 days'", "'0'"],
    "uuid": ["'00000000-0000-0000-0000-000000000001'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "bytea": ["'\\x'", "'\\x00'", "'\\x61'", "'\\xdeadbeef'", "'\\x6162'"],
}
SIMPLE = {kind: [f"NULL::{name}", f"{values[1]}::{TYPES[kind].split('(')[0]}"] for kind, values in VALUES.items() for name in [TYPES[kind]]}
SIMPLE["bool"] = ["true", "false", "NULL::boolean"]
OIDS = {"i2": 21, "i4": 23, "i8": 20, "num": 1700, "f4": 700, "f8": 701, "text": 25, "vc": 1043, "bool": 16, "date": 1082, "ts": 1114, "tz": 1184, "time": 1083, "iv": 1186, "uuid": 2950, "bytea": 17}
INTS, NUMBERS, TEXTS, TIMES = ["i2", "i4", "i8"], ["i2", "i4", "i8", "num", "f8", "f4"], ["text", "vc"], ["date", "ts", "tz"]


class Draw(random.Random):
    def p(self, percent):
        return self.random() * 100 < percent
