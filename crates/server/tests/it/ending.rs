use crate::client::{Host, SLOW, query, untagged};

/// Goal: a running statement is cancelled by who knows the secret, and by nobody else; the session goes on.
#[test]
fn statements_are_cancelled() {
    let host = Host::new();
    host.fill();
    let mut client = host.session();
    client.send(&[query(SLOW)]);
    let cancel = |secret: i32| {
        let body = [80_877_102, client.process, secret].map(i32::to_be_bytes).concat();
        let mut other = host.connect();
        other.send_raw(&untagged(&body));
        assert_eq!(other.until_end(), "end\n");
    };
    cancel(client.secret ^ 1);
    // The statement may not have begun yet when the first request comes, so it is asked again.
    let done = std::sync::atomic::AtomicBool::new(false);
    let told = cairn_vfs::thread::scope(|scope| {
        let done = &done;
        let (cancel, secret) = (&cancel, client.secret);
        let mut stream = client.stream.try_clone().unwrap();
        let asking = scope.spawn(move || {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                cancel(secret);
            }
        });
        let mut first = [0];
        std::io::Read::read_exact(&mut stream, &mut first).unwrap();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        asking.join().unwrap();
        first[0]
    });
    assert_eq!(told, b'E');
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
    assert!(busy.until_end().ends_with("E FATAL 57P01\nend\n"));
    assert!(!path.exists());
    let mut connection = database.connect();
    let mut rows = connection.query("SELECT a FROM t", &[]).unwrap();
    assert_eq!(rows.next().unwrap().unwrap().get_as::<i32>(0).unwrap(), 1);
    assert!(rows.next().unwrap().is_none());
}
