use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cairn_server::{Limits, Observer};

use crate::client::{Host, SLOW, query, untagged};

/// Goal: a running statement is cancelled with the right secret and not with another one, and the
/// session continues.
#[test]
fn statements_are_cancelled() {
    let host = Host::new();
    host.fill();
    let mut client = host.session();
    client.send(&[query(SLOW)]);
    let (process, secret) = (client.process, client.secret);
    let cancel = |secret: i32| {
        let mut other = host.connect();
        other.send_raw(&untagged(&[80_877_102, process, secret].map(i32::to_be_bytes).concat()));
        assert_eq!(other.until_end(), "end\n");
    };
    cancel(secret ^ 1);
    let done = AtomicBool::new(false);
    cairn_vfs::thread::scope(|scope| {
        // The statement may not have arrived when a request does, so requests repeat until it ends.
        let asking = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                cancel(secret);
            }
        });
        let told = client.until_ready();
        done.store(true, Ordering::Relaxed);
        asking.join().unwrap();
        // The rows are not described if the request arrives during planning.
        assert_eq!(told.trim_start_matches("T count:20\n"), "E ERROR 57014\nZ I\n");
    });
    assert_eq!(client.query("SELECT 1 AS a"), "T a:23\nD 1\nC SELECT 1\nZ I\n");
}

/// Goal: a cancel request between two statements of a message is not lost, and does not affect the
/// next message. Method: an observer, which is called after a statement and before the next one,
/// sends the request; messages that continue with another statement, end, or commit by themselves.
#[test]
fn cancel_requests_hold_for_their_message() {
    const MARK: &str = "SELECT 1 AS a";
    let target = Arc::new(Mutex::new(None::<(PathBuf, i32, i32)>));
    let known = Arc::clone(&target);
    let observer = Observer::new(move |sql, _| {
        let target = known.lock().unwrap().clone();
        if let Some((path, process, secret)) = target.filter(|_| sql.trim() == MARK) {
            let mut other = UnixStream::connect(path).unwrap();
            let request = [80_877_102, process, secret].map(i32::to_be_bytes).concat();
            other.write_all(&untagged(&request)).unwrap();
            // The request has been processed when the server closes the connection.
            assert_eq!(other.read(&mut [0]).unwrap(), 0);
        }
    });
    let host = Host::observed_by(Limits::default(), observer);
    let mut client = host.session();
    client.query("CREATE TABLE t (b int PRIMARY KEY)");
    *target.lock().unwrap() = Some((host.path(), client.process, client.secret));
    let marked = "T a:23\nD 1\nC SELECT 1\nE ERROR 57014\n";
    let insert = "INSERT INTO t VALUES (1)";
    assert_eq!(client.query(&format!("{MARK}; SELECT 2 AS b")), format!("{marked}Z I\n"));
    assert_eq!(client.query(&format!("{MARK}; {insert}")), format!("{marked}Z I\n"));
    assert_eq!(client.query(&format!("{insert}; {MARK}")), format!("C INSERT 0 1\n{marked}Z I\n"));
    assert_eq!(
        client.query(&format!("BEGIN; {insert}; {MARK}; COMMIT")),
        format!("C BEGIN\nC INSERT 0 1\n{marked}Z I\n")
    );
    assert_eq!(client.query(&format!("BEGIN; {MARK}; {insert}")), format!("C BEGIN\n{marked}Z E\n"));
    assert_eq!(client.query("ROLLBACK"), "C ROLLBACK\nZ I\n");
    assert_eq!(client.query(MARK), "T a:23\nD 1\nC SELECT 1\nZ I\n");
    assert_eq!(client.query("SELECT b FROM t"), "T b:23\nC SELECT 0\nZ I\n");
    assert_eq!(
        client.query(&format!("{insert}; SELECT b FROM t")),
        "C INSERT 0 1\nT b:23\nD 1\nC SELECT 1\nZ I\n"
    );
}

/// Goal: at shutdown, idle clients are notified, running statements are cancelled after the grace
/// period, and committed data is kept.
#[test]
fn shutdown_ends_sessions_in_order() {
    let mut limits = cairn_server::Limits::default();
    limits.shutdown_grace = std::time::Duration::from_millis(100);
    let host = Host::with(limits);
    host.fill();
    let (mut idle, mut busy, mut open) = (host.session(), host.session(), host.session());
    idle.query("CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    open.query("BEGIN; INSERT INTO t VALUES (2)");
    busy.send(&[query(SLOW)]);
    let (database, path) = (host.database.clone(), host.path());
    host.end().unwrap();
    assert_eq!(idle.until_end(), "E FATAL 57P01\nend\n");
    assert_eq!(open.until_end(), "E FATAL 57P01\nend\n");
    let told = busy.until_end();
    assert!(told.ends_with("E FATAL 57P01\nend\n"), "{told}");
    assert!(!path.exists());
    let mut connection = database.connect();
    let mut rows = connection.query("SELECT a FROM t", &[]).unwrap();
    assert_eq!(rows.next().unwrap().unwrap().get_as::<i32>(0).unwrap(), 1);
    assert!(rows.next().unwrap().is_none());
}
