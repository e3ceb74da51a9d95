use crate::client::{Host, bind, execute, message, parse, query, sync, text};

fn data(bytes: &str) -> Vec<u8> {
    message(b'd', bytes.as_bytes())
}

/// Goal: COPY works in both directions and in both protocols, and rows may be split anywhere.
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

/// Goal: the binary format is announced, and split into messages as in PostgreSQL: the signature
/// comes with the first row, the trailer alone. Method: the bytes of a table.
#[test]
fn binary_rows() {
    const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
    const ONE: &[u8] = b"\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x03one";
    const TWO: &[u8] = b"\0\x02\0\0\0\x04\0\0\0\x02\xff\xff\xff\xff";
    const END: &[u8] = b"\xff\xff";
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY, b text)");
    client.send(&[query("COPY t FROM STDIN (FORMAT binary)")]);
    assert_eq!(client.receive().unwrap(), (b'G', b"\x01\0\x02\0\x01\0\x01".to_vec()));
    let bytes = [SIGNATURE, ONE, TWO, END].concat();
    let (first, rest) = bytes.split_at(30);
    client.send(&[message(b'd', first), message(b'd', rest), message(b'c', &[])]);
    assert_eq!(client.until_ready(), "C COPY 2\nZ I\n");
    client.send(&[query("COPY (SELECT * FROM t ORDER BY a) TO STDOUT (FORMAT binary)")]);
    assert_eq!(client.receive().unwrap(), (b'H', b"\x01\0\x02\0\x01\0\x01".to_vec()));
    assert_eq!(client.receive().unwrap(), (b'd', [SIGNATURE, ONE].concat()));
    assert_eq!(client.receive().unwrap(), (b'd', TWO.to_vec()));
    assert_eq!(client.receive().unwrap(), (b'd', END.to_vec()));
    assert_eq!(client.until_ready(), "c\nC COPY 2\nZ I\n");
}

/// Goal: line breaks within quoted CSV values do not end a row, whatever the quote character is.
/// Method: a row with a line break.
#[test]
fn rows_of_several_lines() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY, b text)");
    client.query("INSERT INTO t VALUES (1, E'x\\ny'), (2, 'it''s')");
    let told = client.query("COPY t TO STDOUT (FORMAT csv, QUOTE '''')");
    assert_eq!(told, "H\nd 1,'x\ny'\nd 2,'it''s'\nc\nC COPY 2\nZ I\n");
}

/// Goal: a COPY that fails, in the client or because of its data, has no effect, and the rest of
/// its messages is skipped.
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
