use crate::client::{Host, bind, execute, message, parse, query, sync, text};

fn data(bytes: &str) -> Vec<u8> {
    message(b'd', bytes.as_bytes())
}

/// Goal: rows go in and come out, in both protocols; rows may be cut anywhere.
#[test]
fn rows_go_in_and_out() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY, b text)");
    client.send(&[query("COPY t FROM STDIN")]);
    assert_eq!(client.until(b'G'), "G\n");
    client.send(&[data("1\tone\n2"), data("\t\\N\n"), message(b'c', &[])]);
    assert_eq!(client.until_ready(), "C COPY 2\nZ I\n");
    let told = client.query("COPY t TO STDOUT");
    assert!(told.starts_with("H\nd 1\tone") && told.ends_with("c\nC COPY 2\nZ I\n"), "{told}");
    let copy = parse("", "COPY t FROM STDIN WITH (FORMAT csv)", &[]);
    client.send(&[copy, bind("", "", false, &[]), execute("", 0), sync()]);
    assert_eq!(client.until(b'G'), "1\n2\nG\n");
    client.send(&[data("3,\"th\"\"ree\"\n"), message(b'c', &[]), sync()]);
    assert_eq!(client.until_ready(), "C COPY 1\nZ I\n");
    assert_eq!(client.query("SELECT b FROM t WHERE a = 3"), "T b:25\nD th\"ree\nC SELECT 1\nZ I\n");
}

/// Goal: a COPY that fails, at the client or for its data, has done nothing, and what is still under way is passed over.
#[test]
fn failed_copies_do_nothing() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY)");
    client.send(&[query("COPY t FROM STDIN"), data("1\n"), message(b'f', &text("no more"))]);
    assert_eq!(client.until_ready(), "G\nE ERROR 57014\nZ I\n");
    client.send(&[query("COPY t FROM STDIN"), data("1\nx\n"), data("2\n"), message(b'c', &[])]);
    let told = client.until_ready();
    assert!(told.starts_with("G\nE ERROR 22P02\n"), "{told}");
    client.send(&[query("COPY t FROM STDIN"), query("SELECT 1")]);
    assert_eq!(client.until_ready(), "G\nE ERROR 08P01\nZ I\n");
    assert_eq!(client.query("SELECT a FROM t"), "T a:23\nC SELECT 0\nZ I\n");
}
