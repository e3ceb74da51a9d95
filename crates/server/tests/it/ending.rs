use std::sync::atomic::{AtomicBool, Ordering};

use crate::client::{Host, SLOW, query, untagged};

/// Goal: a running statement is cancelled by who knows the secret, and by nobody else; the session goes on.
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
        // The statement may not have begun yet when a request comes, so it is asked until it ends.
        let asking = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                cancel(secret);
            }
        });
        assert_eq!(client.until_ready(), "T count:20\nE ERROR 57014\nZ I\n");
        done.store(true, Ordering::Relaxed);
        asking.join().unwrap();
    });
    assert_eq!(client.query("SELECT 1 AS a"), "T a:23\nD 1\nC SELECT 1\nZ I\n");
}

/// Goal: at the end idle clients are told, running statements are cancelled after the grace, what was committed is there.
#[test]
fn the_server_ends_in_order() {
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
