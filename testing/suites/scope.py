"""Which of PostgreSQL's regression files are in scope, and what each of them needs.

A file is out of scope if it tests something that an embedded database of one owner has no use for, or how PostgreSQL is
made rather than what a statement means. Every other file is in, whatever Cairn makes of it.
"""

# Reason: files.
OUT = {
    "roles, privileges and policies: the database has one owner": (
        "create_role init_privs maintain_every password privileges roleattributes rowsecurity security_label"
    ),
    "kinds of indexes that only PostgreSQL has": (
        "amutils brin brin_bloom brin_multi create_am create_index_spgist gin gist index_including_gist spgist"
    ),
    "definitions of operators, casts and access in C": (
        "alter_generic alter_operator create_cast create_function_c create_operator drop_operator"
    ),
    "checks of PostgreSQL's own catalogue": "misc_sanity oidjoins opr_sanity sanity_check type_sanity",
    "replication and foreign servers": "foreign_data publication replica_identity subscription",
    "storage, statistics and processes of a server": (
        "async cluster compression compression_pglz database dbsize indirect_toast largeobject reindex_catalog"
        " reloptions select_parallel stats stats_ext tablespace vacuum vacuum_parallel write_parallel"
    ),
    "collations of ICU, and encodings other than UTF-8": (
        "collate.icu.utf8 collate.linux.utf8 conversion encoding euc_kr jsonpath_encoding json_encoding"
    ),
    "the display of psql": "psql psql_crosstab",
    "the optimizer's plans": "explain incremental_sort memoize partition_join partition_prune join_hash tuplesort",
    "event triggers, rules and hooks of the server": "event_trigger infinite_recurse object_address rules",
    "XML": "xml xmlmap",
}

# File: the files that must have run before, as the schedule says.
NEEDS = {
    "aggregates": "create_aggregate",
    "geometry": "point lseg line box path polygon circle",
    "horology": "date time timetz timestamp timestamptz interval",
    "join": "create_misc",
    "multirangetypes": "rangetypes",
    "select_views": "create_view",
    "with": "create_misc",
}

# The goal of issue 46 names these.
CORE = (
    "boolean int2 int4 int8 numeric strings case join union subselect aggregates groupingsets window with insert"
    " insert_conflict update delete returning limit sequence identity generated constraints foreign_key transactions"
    " copy copy2 copydml copyselect prepare portals portals_p2 truncate merge arrays json jsonb domain enum temp"
    " matview triggers date time timetz timestamp timestamptz interval"
).split()


def excluded():
    """File: the reason why it is out of scope."""
    return {name: reason for reason, names in OUT.items() for name in names.split()}


def in_scope(schedule):
    """The files of a schedule that are in scope, in its order."""
    names = [name for line in schedule.splitlines() if line.startswith("test:") for name in line[5:].split()]
    out = excluded()
    return [name for name in names if name != "test_setup" and name not in out]
