"""psycopg 3: parameters in both formats, COPY, pipelines, server-side cursors, cancel."""

import datetime
import decimal
import threading
import time
import uuid

import psycopg

print("psycopg", psycopg.__version__.split(".")[0])
with psycopg.connect(autocommit=True) as c:
    print(c.info.server_version // 10000, c.info.encoding, c.info.transaction_status.name)
    c.execute("""CREATE TABLE t (id int PRIMARY KEY, b boolean, s smallint, l bigint, r real, d double precision, n numeric(20, 5),
        v varchar(10), y bytea, day date, t time, at timestamp, i interval, u uuid, j json)""")
    row = (1, True, -2, 2**40, 1.5, 0.1, decimal.Decimal("-12345.67890"), "žluť", b"\x00\xff", datetime.date(2024, 2, 29),
           datetime.time(1, 2, 3, 4), datetime.datetime(1999, 12, 31, 23, 59, 59, 999999), datetime.timedelta(days=3, seconds=4),
           uuid.UUID(int=5), psycopg.types.json.Json({"a": [1, None]}))
    for binary in (False, True):
        with c.cursor(binary=binary) as cursor:
            cursor.execute("DELETE FROM t")
            marks = ", ".join(["%b" if binary else "%s"] * len(row))
            cursor.execute(f"INSERT INTO t VALUES ({marks})", row)
            cursor.execute("INSERT INTO t (id, v) VALUES (%s, %s)", (2, None))
            print(cursor.rowcount, cursor.execute("SELECT * FROM t ORDER BY id").fetchall())
            print([(column.name, column.type_code) for column in cursor.description][:4])
    with c.cursor() as cursor:
        cursor.executemany("INSERT INTO t (id, l) VALUES (%s, %s)", [(n, n * n) for n in range(3, 53)])
        print(cursor.rowcount, cursor.execute("SELECT sum(l) FROM t WHERE id > %s", (2,)).fetchone())
        for _ in range(8):
            cursor.execute("SELECT l FROM t WHERE id = %s", (7,), prepare=True)
        print(cursor.fetchone())
        with cursor.copy("COPY t (id, v) FROM STDIN") as copy:
            for n in range(100, 110):
                copy.write_row((n, f"copy\t{n}"))
        with cursor.copy("COPY (SELECT id, v FROM t WHERE id >= 108 ORDER BY id) TO STDOUT") as copy:
            print(list(copy.rows()))
    try:
        with c.transaction():
            c.execute("INSERT INTO t (id) VALUES (1000)")
            with c.transaction():
                c.execute("INSERT INTO t (id) VALUES (1)")
    except psycopg.errors.UniqueViolation as error:
        print(type(error).__name__, error.sqlstate, error.diag.severity)
    print(c.execute("SELECT count(*) FROM t WHERE id = 1000").fetchone(), c.info.transaction_status.name)
    with c.pipeline():
        cursors = [c.execute("SELECT %s::int", (n,)) for n in range(3)]
    print([cursor.fetchone() for cursor in cursors])
    try:
        with c.pipeline():
            c.execute("INSERT INTO t (id) VALUES (2000)")
            c.execute("SELECT * FROM nowhere")
    except psycopg.Error as error:
        print(type(error).__name__, error.sqlstate)
    print(c.execute("SELECT count(*) FROM t WHERE id = 2000").fetchone())
    c.execute("CREATE TABLE slow (a int)")
    c.cursor().executemany("INSERT INTO slow VALUES (%s)", [(n,) for n in range(3000)])

    def cancel():
        time.sleep(0.5)
        c.cancel_safe()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        c.execute("SELECT count(*) FROM slow a, slow b, slow c WHERE a.a + b.a > c.a * 2")
        print("not cancelled")
    except psycopg.errors.QueryCanceled as error:
        print(type(error).__name__, error.sqlstate)
    thread.join()
    print(c.execute("SELECT 1").fetchone())
with psycopg.connect() as c:
    c.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    print(c.execute("SHOW transaction_isolation").fetchone())
    c.rollback()
    # Named cursors: DECLARE, FETCH and CLOSE, and pg_cursors for those that nobody has opened.
    c.execute("CREATE TABLE many AS SELECT i, 'row ' || i AS name FROM generate_series(1, 10000) AS s(i)")
    c.execute("UPDATE many SET name = name WHERE i < 10")
    for binary in (False, True):
        with c.cursor("named", binary=binary) as named:
            named.itersize = 300
            named.execute("SELECT i, name FROM many WHERE i > %s ORDER BY i", (5,))
            print([(column.name, column.type_code) for column in named.description], named.fetchone(), named.fetchmany(2))
            for i, name in named:
                if i == 700:
                    # What is still to come stays as it was.
                    c.execute("UPDATE many SET name = 'changed' WHERE i > %s", (700,))
                elif name == "changed":
                    print("seen", i)
            print(i, named.fetchone(), c.info.transaction_status.name)
        c.execute("UPDATE many SET name = 'row ' || i")
    with c.cursor("scrolls", scrollable=True) as named:
        named.execute("SELECT i FROM many ORDER BY i")
        named.scroll(9_998)
        print(named.fetchmany(5))
        named.scroll(-3)
        print(named.fetchone())
        named.scroll(0, mode="absolute")
        print(named.fetchone())
    with c.cursor("never opened"):
        pass
    held = c.cursor("held", withhold=True)
    held.execute("SELECT i FROM many ORDER BY i")
    print(held.fetchone())
    c.commit()
    print(held.fetchmany(2), c.execute("SELECT name, is_holdable FROM pg_cursors").fetchall())
    stolen = psycopg.ServerCursor(c, "held")
    print(stolen.fetchone())
    stolen.close()
    print(c.execute("SELECT count(*) FROM pg_cursors").fetchone())
    with c.cursor("gone") as named:
        named.execute("SELECT i FROM many")
        c.commit()
        try:
            named.fetchone()
        except psycopg.Error as error:
            print(type(error).__name__, error.sqlstate, error)
        c.rollback()
