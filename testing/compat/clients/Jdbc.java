import java.io.StringReader;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.HexFormat;
import org.postgresql.PGConnection;

/** PostgreSQL's JDBC driver: prepared statements, batches, cursors, COPY, and what DatabaseMetaData asks. */
public final class Jdbc {
  private Jdbc() {}

  interface Act {
    String run() throws Exception;
  }

  static void show(String name, Act act) {
    String shown;
    try {
      shown = act.run();
    } catch (SQLException error) {
      shown = "SQLException " + error.getSQLState() + " " + error.getMessage().lines().findFirst().orElse("");
    } catch (Exception error) {
      shown = error.toString();
    }
    System.out.println(name + ": " + shown);
  }

  /** Rows with some of their columns. */
  static String rows(ResultSet rows, String... columns) throws SQLException {
    StringBuilder shown = new StringBuilder();
    while (rows.next()) {
      shown.append("\n ");
      for (String column : columns) {
        // The driver shows bytes that came in binary by where they are in memory.
        boolean isBytes = rows.getObject(column) instanceof byte[];
        shown.append(' ').append(isBytes ? HexFormat.of().formatHex(rows.getBytes(column)) : rows.getString(column));
      }
    }
    return shown.toString();
  }

  public static void main(String[] arguments) throws Exception {
    String url = "jdbc:postgresql://127.0.0.1:" + System.getenv("TCP_PORT") + "/my?user=ann";
    try (Connection connection = DriverManager.getConnection(url)) {
      statements(connection);
      transactions(connection);
      metadata(connection);
    }
    try (Connection connection = DriverManager.getConnection(url + "&preferQueryMode=simple");
        Statement statement = connection.createStatement()) {
      show("simple mode", () -> rows(statement.executeQuery("SELECT id, name FROM t ORDER BY id LIMIT 2"), "id", "name"));
    }
  }

  static void statements(Connection connection) throws Exception {
    try (Statement statement = connection.createStatement()) {
      statement.execute("CREATE TABLE t (id int PRIMARY KEY, name varchar(20) NOT NULL, amount numeric(10, 2), at timestamp, day date,"
          + " flag boolean, bytes bytea, ratio double precision, big bigint)");
      statement.execute("CREATE TABLE u (id bigint PRIMARY KEY, t int REFERENCES t (id))");
      statement.execute("CREATE UNIQUE INDEX t_name ON t (name)");
      statement.execute("CREATE VIEW v AS SELECT id, name FROM t");
    }
    String insert = "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    try (PreparedStatement statement = connection.prepareStatement(insert)) {
      for (int id = 1; id <= 20; id++) {
        statement.setInt(1, id);
        statement.setString(2, "name " + id);
        statement.setBigDecimal(3, new BigDecimal(id).divide(new BigDecimal(4)));
        statement.setTimestamp(4, Timestamp.valueOf("2024-02-29 01:02:03.456"));
        statement.setDate(5, Date.valueOf("2024-02-29"));
        statement.setBoolean(6, id % 2 == 0);
        statement.setBytes(7, new byte[] {(byte) id, 0, -1});
        statement.setDouble(8, 1.0 / id);
        if (id == 3) {
          statement.setNull(9, Types.BIGINT);
        } else {
          statement.setLong(9, 1L << id);
        }
        statement.addBatch();
      }
      show("batch", () -> String.valueOf(statement.executeBatch().length));
    }
    // More than the driver's threshold, so that it goes from text to binary and to a prepared statement with a name.
    try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM t WHERE id = ?")) {
      for (int turn = 0; turn < 8; turn++) {
        int id = turn % 2 + 2;
        statement.setInt(1, id);
        show("select " + turn, () -> rows(statement.executeQuery(), "id", "name", "amount", "at", "day", "flag", "bytes", "ratio", "big"));
      }
      ResultSetMetaData columns = statement.getMetaData();
      StringBuilder shown = new StringBuilder();
      for (int at = 1; at <= columns.getColumnCount(); at++) {
        shown.append(' ').append(columns.getColumnName(at)).append(':').append(columns.getColumnTypeName(at));
      }
      System.out.println("columns:" + shown);
      show("base table", () -> columns.getTableName(1) + " " + columns.isNullable(1) + " " + columns.isNullable(3));
    }
    try (Statement statement = connection.createStatement()) {
      show("update count", () -> String.valueOf(statement.executeUpdate("UPDATE t SET flag = NOT flag WHERE id > 15")));
      show("keys", () -> {
        statement.executeUpdate("INSERT INTO u VALUES (1, 1)", new String[] {"id"});
        return rows(statement.getGeneratedKeys(), "id");
      });
      show("unique", () -> String.valueOf(statement.executeUpdate("INSERT INTO u VALUES (1, 1)")));
      show("foreign key", () -> String.valueOf(statement.executeUpdate("INSERT INTO u VALUES (2, 100)")));
      show("several", () -> String.valueOf(statement.execute("SELECT 1; SELECT 2")));
    }
    show("copy", () -> {
      var copy = connection.unwrap(PGConnection.class).getCopyAPI();
      return String.valueOf(copy.copyIn("COPY u FROM STDIN WITH (FORMAT csv)", new StringReader("10,1\n11,2\n")));
    });
  }

  static void transactions(Connection connection) throws Exception {
    connection.setAutoCommit(false);
    try (Statement statement = connection.createStatement()) {
      statement.setFetchSize(7);
      show("cursor", () -> {
        int count = 0;
        try (ResultSet rows = statement.executeQuery("SELECT id FROM t ORDER BY id");
            Statement other = connection.createStatement()) {
          while (rows.next()) {
            count++;
            if (count == 3) {
              other.executeUpdate("UPDATE t SET amount = 0 WHERE id = 1");
            }
          }
        }
        return String.valueOf(count);
      });
      Savepoint savepoint = connection.setSavepoint("s");
      show("failed", () -> String.valueOf(statement.executeUpdate("INSERT INTO t (id) VALUES (1)")));
      connection.rollback(savepoint);
      show("after it", () -> rows(statement.executeQuery("SELECT count(*) AS n FROM t"), "n"));
      connection.rollback();
      show("isolation", () -> {
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        int level = connection.getTransactionIsolation();
        connection.rollback();
        return String.valueOf(level);
      });
      show("timeout", () -> {
        statement.setQueryTimeout(1);
        return rows(statement.executeQuery("SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g WHERE a.id + b.id + c.id > d.id * e.id * f.id + g.id"), "count");
      });
      connection.rollback();
    }
    connection.setAutoCommit(true);
  }

  static void metadata(Connection connection) throws Exception {
    DatabaseMetaData data = connection.getMetaData();
    show("product", () -> data.getDatabaseProductName() + " " + data.getDatabaseMajorVersion() + " " + data.getUserName());
    show("catalogs", () -> rows(data.getCatalogs(), "TABLE_CAT"));
    show("schemas", () -> rows(data.getSchemas(), "TABLE_SCHEM"));
    show("table types", () -> rows(data.getTableTypes(), "TABLE_TYPE").lines().count() + "");
    show("tables", () -> rows(data.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"}), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE"));
    show("columns", () -> rows(data.getColumns(null, "public", "t", "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "IS_NULLABLE", "ORDINAL_POSITION"));
    show("primary keys", () -> rows(data.getPrimaryKeys(null, "public", "t"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"));
    show("indexes", () -> rows(data.getIndexInfo(null, "public", "t", false, true), "NON_UNIQUE", "INDEX_NAME", "ORDINAL_POSITION", "COLUMN_NAME"));
    show("imported keys", () -> rows(data.getImportedKeys(null, "public", "u"), "PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "DELETE_RULE"));
    show("exported keys", () -> rows(data.getExportedKeys(null, "public", "t"), "PKTABLE_NAME", "FKTABLE_NAME"));
    show("best row identifier", () -> rows(data.getBestRowIdentifier(null, "public", "t", 0, true), "COLUMN_NAME"));
    show("types", () -> data.getTypeInfo().next() ? "some" : "none");
    show("functions", () -> {
      data.getFunctions(null, null, "nothing");
      return "asked";
    });
    show("procedures", () -> {
      data.getProcedures(null, null, "nothing");
      return "asked";
    });
  }
}
