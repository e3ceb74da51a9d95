"""Names the cause of a refusal: its message without particulars, the part of the statement it means, and a theme."""

import re
from typing import NamedTuple

# Messages that do not say which part of the statement they mean.
VAGUE = re.compile(r"this form of|unsupported construct|this expression|unsupported (?:statement|expression)")
# The parts that they may mean: the first that the statement has.
PARTS = [
    ("PARTITION BY", r"\bpartition\s+by\s+(?:range|list|hash)\b"),
    ("PARTITION OF", r"\bpartition\s+of\b"),
    ("INHERITS", r"\binherits?\b"),
    ("LIKE", r"^create\s+table\b[^;]*\(\s*like\b"),
    ("data-changing WITH", r"^with\b.*\b(?:insert\s+into|update\s+\w+\s+set|delete\s+from|merge\s+into)\b"),
    ("json ->> #>>", r"->|#>|#-"),
    ("json @? @@", r"@\?|\bjsonb?\b.*@@"),
    ("json @> <@", r"\bjsonb?\b.*(?:@>|<@)|@>"),
    ("json ? ?| ?&", r"\?"),
    ("text search @@ && <->", r"\btsquery\b|\btsvector\b|@@"),
    ("bit strings", r"\bB'|::\s*bit\b|\bbit\("),
    ("arguments by name", r"\w+\s*(?::=|=>)\s*"),
    ("generate_series of another type", r"\bgenerate_series\b"),
    ("SELECT INTO", r"^select\b.*\binto\b"),
    ("NORMALIZED", r"\bnormalized\b"),
    ("lateral", r"\blateral\b"),
    ("window functions", r"\bover\s*\("),
    ("USING an access method", r"\)\s*using\s+\w+"),
    ("storage parameters", r"\)\s*with\s*\("),
    ("TABLESPACE", r"\btablespace\b"),
    ("array types", r"\[\s*\]|\barray\b"),
    ("empty column list", r"\(\s*\)|\bselect\s+(?:from|union)"),
]
# What one would build as one thing: the first whose pattern the message has.
THEMES = [
    ("partitions", r"\[PARTITION|\battach\b|\bdetach\b|pg_partition|partitioned"),
    ("inheritance", r"\[inherits|: no inherit|\binherit\b|\"only\""),
    ("temporary objects", r"a temporary (?:table|view|sequence)|pg_temp|: on commit"),
    ("text search", r"tsvector|tsquery|function ts_|text search|numnode|querytree|setweight|\bstrip\("),
    ("JSON", r"json"),
    ("ranges and multiranges", r"range\b|multirange|range_|isempty|(?:lower|upper)_(?:inc|inf)"),
    (
        "geometric types",
        r"(?:type \"?|function )(?:point|lseg|line|box|path|polygon|circle|center)\b",
    ),
    (
        "network types",
        r"type \"?(?:inet|cidr|macaddr8?)\b|function (?:netmask|set_masklen|hostmask|macaddr8\w*|inet_\w*)\b",
    ),
    ("bit strings", r"type \"?(?:bit|varbit)\b|\[bit strings|function (?:set_bit|get_bit|bit_count)\b"),
    ("rules", r"\bRULE\b"),
    ("triggers", r"trigger"),
    (
        "roles, privileges, session authorization",
        r"\b(?:role|user|authorization|grant|revoke|policy|privileges?)\b|ROW LEVEL",
    ),
    ("materialized views", r"materialized view|in (?:REFRESH|CREATE) MATERIALIZED"),
    ("domains", r"\bdomain\b"),
    ("aggregates, operators and casts by users", r"(?:CREATE|DROP|ALTER) (?:AGGREGATE|OPERATOR|CAST|TEXT)"),
    (
        "functions, procedures and DO",
        r"(?:CREATE|DROP|ALTER) (?:FUNCTION|PROCEDURE|ROUTINE)|CREATE OR|in (?:DO|CALL)\b|statement (?:DO|CALL)\b",
    ),
    ("composite types and whole rows", r"whole row|composite|\brecord\b"),
    ("enums and other CREATE TYPE", r"(?:CREATE|ALTER|DROP) TYPE|\benum"),
    ("generated columns", r"generated column|generated always"),
    ("identity and sequences", r"sequence|identity"),
    ("MERGE", r"\bMERGE\b"),
    (
        "deferrable constraints, MATCH FULL, EXCLUDE",
        r"deferrable|deferred|match full|: exclude|: using|set constraints",
    ),
    (
        "partial indexes, indexes on expressions, INCLUDE",
        r"partial index|index on an expression|: INCLUDE\b|REINDEX|in (?:CREATE|ALTER|DROP) (?:UNIQUE|INDEX)",
    ),
    ("LIKE INCLUDING, OF a type, UNLOGGED, WITHOUT OIDS", r": INCLUDING|\[LIKE\]|: OF\b|UNLOGGED|: WITHOUT"),
    ("time zones", r"the time zone"),
    (
        "forms of dates, times and intervals",
        r"^2200[78]|style|time with time zone|\boverlaps\b|interval|timestamp|to_char|to_date|\btime\b",
    ),
    ("numeric beyond 38 digits, NaN, infinity", r"numeric|^22003|scale\(|factorial|type integer: #"),
    ("settings", r"configuration parameter"),
    (
        "prepared transactions, LOCK, cursors",
        r"PREPARE TRANSACTION|LOCK TABLE|\bcursor|FOR UPDATE|TRANSACTION|\bABORT\b|COMMIT PREPARED|ROLLBACK PREPARED",
    ),
    ("arrays", r"\[\]|array|: \[ "),
    ("regular expressions", r"regexp|regular expression|similar"),
    ("data-changing WITH, RETURNING, ON CONFLICT", r"data-changing|returning|form of INSERT|on conflict"),
    ("views: CHECK OPTION, options, changes", r"\bview\b"),
    ("window frames and functions", r"window|: EXCLUDE|\bover\b"),
    ("COPY", r"\bCOPY\b"),
    ("schemas", r"\bSCHEMA\b"),
    ("ALTER TABLE, other forms", r"ALTER TABLE|ALTER COLUMN"),
    ("money, xid, pg_lsn and other types", r"^42704 type|the type|txid|pg_lsn|\bxid|money"),
    ("the catalogue", r"pg_|information_schema"),
    ("missing functions", r"^42883 function"),
    ("missing operators", r"^42883"),
    ("bugs of Cairn", r"^XX|^CRASH|^HANG|^LOST"),
    ("other syntax", r"^42601"),
]


class Cause(NamedTuple):
    message: str
    theme: str

    @classmethod
    def of(cls, answer, sql):
        sql = re.sub(r"^(?:/\*.*?\*/\s*)+", "", sql, flags=re.S)
        message = described(answer, sql)
        return cls(message, next((name for name, pattern in THEMES if re.search(pattern, message, re.I)), "other"))


def described(answer, sql):
    message = answer.message
    if answer.code == "42601":
        return syntax(answer, sql)
    if answer.code == "42P01":
        # Which table of a test is of no interest, but which part of the catalogue is.
        message = re.sub(r'"(?!pg_|information_schema|only")[^"]*"', "#", message)
    elif answer.code not in ("42704", "42883", "0A000"):
        message = re.sub(r"'[^']*'|\"[^\"]*\"", "#", message)
    if answer.code == "0A000" and "time zone" not in message:
        message = re.sub(r"'[^']*'|\"[^\"]*\"", "#", message)
    if answer.code != "42883":
        message = re.sub(r"[-+]?\b[0-9]+(?:[.][0-9]+)?", "N", message)
    if VAGUE.search(message):
        found = next((part for part, pattern in PARTS if re.search(pattern, sql, re.I | re.S)), None)
        message += f" [{found}]" if found else ""
    return f"{answer.code} {shortened(message)}"


def syntax(answer, sql):
    """Of a syntax error: the statement's first words, and where the parser stopped."""
    verb = " ".join(re.findall(r"[A-Za-z]+", sql)[:2]).upper()
    if verb.split()[:1] in (["SELECT"], ["INSERT"], ["UPDATE"], ["DELETE"], ["WITH"], ["COPY"], ["VALUES"]):
        verb = verb.split()[0]
    found = re.search(r"found: (\S+)", answer.detail)
    near = re.search(r'at or near "(.*?)"', answer.message, re.S)
    token = found.group(1) if found else near.group(1) if near else ""
    if not token:
        return f"42601 in {verb}: {shortened(answer.message)}"
    expected = re.search(r"Expected: (.*?), found", answer.detail, re.S)
    token = "#" if re.match(r"['\"$0-9]", token) and len(token) > 2 else token.upper()
    return f"42601 in {verb}: {shortened(token, 30)}" + (
        f" (expected {shortened(expected.group(1), 60)})" if expected else ""
    )


def shortened(text, length=120):
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 2] + ".."
