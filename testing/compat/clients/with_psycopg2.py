"""psycopg2: statements put together at the client, COPY, savepoints, errors."""

import datetime
import decimal
import io

import psycopg2
import psycopg2.extras

print("psycopg2", psycopg2.__version__.split(".")[0])
connection = psycopg2.connect("")
print(connection.encoding, connection.get_parameter_status("server_version").split(".")[0], connection.get_parameter_status("DateStyle"))
cursor = connection.cursor()
cursor.execute("CREATE TABLE t (id int PRIMARY KEY, name text, amount numeric(10, 2), day date, data bytea)")
psycopg2.extras.execute_values(cursor, "INSERT INTO t VALUES %s", [
    (n, f"name {n}", decimal.Decimal(n) / 4, datetime.date(2024, 1, n), psycopg2.Binary(bytes([n, 0]))) for n in range(1, 11)])
print(cursor.rowcount)
connection.commit()
cursor.execute("SELECT id, name, amount, day, data FROM t WHERE id IN %s ORDER BY id", ((2, 3),))
print([(a, b, c, d, bytes(e)) for a, b, c, d, e in cursor.fetchall()], [column.name for column in cursor.description])
cursor.execute("SAVEPOINT s")
try:
    cursor.execute("INSERT INTO t (id) VALUES (1)")
except psycopg2.IntegrityError as error:
    print(error.pgcode, error.diag.message_primary)
    cursor.execute("ROLLBACK TO SAVEPOINT s")
cursor.execute("UPDATE t SET name = %s WHERE id = %s RETURNING name", ("O'Neil", 1))
print(cursor.fetchone())
connection.rollback()
cursor.copy_expert("COPY t (id, name) FROM STDIN WITH (FORMAT csv)", io.StringIO('20,"twenty, ""20"""\n21,\n'))
out = io.StringIO()
cursor.copy_expert("COPY (SELECT id, name FROM t WHERE id >= 20 ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER)", out)
print(repr(out.getvalue()))
cursor.execute("SELECT count(*) FROM t")
print(cursor.fetchone())
connection.commit()
with connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as named:
    named.execute("SELECT id, name FROM t ORDER BY id LIMIT 1")
    print(dict(named.fetchone()))
# Named cursors, whose rows come some at a time.
with connection.cursor("named") as named:
    named.itersize = 2
    named.execute("SELECT id, name FROM t ORDER BY id")
    print(named.fetchone(), named.fetchmany(2), [id for id, _ in named])
with connection.cursor("scrolls", scrollable=True) as named:
    named.execute("SELECT id FROM t ORDER BY id")
    named.scroll(3)
    print(named.fetchone())
    named.scroll(-2)
    print(named.fetchone())
    named.scroll(1, mode="absolute")
    print(named.fetchone())
with connection.cursor("held", withhold=True) as named:
    named.execute("SELECT id FROM t ORDER BY id")
    connection.commit()
    print(named.fetchmany(2))
connection.close()
