use crate::client::{Host, bind, execute, parse, sync};

/// Goal: a statement that is nested too deeply fails in its own session, and does not affect
/// others. Method: statements of 100,000 levels of several kinds, views over views and recursive
/// views, in simple and extended queries, with a query in another session after each.
#[test]
fn deep_nesting_fails_only_its_statement() {
    let host = Host::new();
    let (mut client, mut other) = (host.session(), host.session());
    client.query("CREATE TABLE t (a int PRIMARY KEY)");
    client.query("CREATE VIEW v0 AS SELECT 1 AS a");
    for at in 1..=50 {
        let told = client.query(&format!("CREATE VIEW v{at} AS SELECT a FROM v{}", at - 1));
        assert_eq!(told, "C CREATE VIEW\nZ I\n", "{at}");
    }
    assert_eq!(client.query("SELECT a FROM v50"), "T a:23\nD 1\nC SELECT 1\nZ I\n");
    client.query("CREATE VIEW v AS SELECT 1 AS a");
    let told = client.query("CREATE OR REPLACE VIEW v AS SELECT * FROM v; SELECT * FROM v");
    assert_eq!(told, "C CREATE VIEW\nE ERROR 42P17\nZ I\n");
    client.query("CREATE OR REPLACE VIEW v AS SELECT * FROM v");
    assert_eq!(client.query("SELECT * FROM v"), "E ERROR 42P17\nZ I\n");
    let n = 100_000;
    for deep in [
        format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT {}a{} FROM t", "abs(".repeat(n), ")".repeat(n)),
        format!("SELECT 1{}", " + 1".repeat(n)),
        format!("SELECT {}true", "NOT ".repeat(n)),
        format!("SELECT a FROM t WHERE a = 1{}", " OR a = 2".repeat(n)),
        format!("SELECT 1 AS a{}", " UNION ALL SELECT 1".repeat(n)),
        format!("SELECT * FROM t{}", " NATURAL JOIN t".repeat(n)),
        format!("{}SELECT 1 AS x{}", "SELECT * FROM (".repeat(n), ") q".repeat(n)),
    ] {
        assert_eq!(client.query(&deep), "E ERROR 54001\nZ I\n");
        let told = client.ask(&[parse("", &deep, &[]), bind("", "", false, &[]), execute("", 0), sync()]);
        assert_eq!(told, "E ERROR 54001\nZ I\n");
        assert!(other.query("SELECT 1 AS one").contains("D 1\n"));
    }
    assert_eq!(client.query("SELECT count(*) AS n FROM t"), "T n:20\nD 0\nC SELECT 1\nZ I\n");
}
