use cairn_vfs::thread;

use crate::client::{Client, Host, bind, execute, message, parse, query, startup, sync};

/// Waits until another session can update the row, because the vanished client's transaction has
/// ended.
fn is_free(host: &Host) {
    let mut other = host.session();
    assert_eq!(other.query("UPDATE t SET b = b + 1 WHERE a = 1"), "C UPDATE 1\nZ I\n");
}

/// Goal: a client that vanishes in any state does not affect others, and its transaction is rolled
/// back.
/// Method: one client for each state of the protocol, with a locked row if possible; after each,
/// another session updates the row, and in the end only those updates are there.
#[test]
fn clients_disconnect_in_every_state() {
    let host = Host::new();
    host.fill();
    let mut first = host.session();
    first.query(
        "CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 0); CREATE TABLE c (a int)",
    );
    type Act = fn(&mut Client);
    let states: &[(&str, Act)] = &[
        ("before the first byte", |_| {}),
        ("within the first message", |client| client.send_raw(&startup(&[("user", "ann")])[..9])),
        ("before log-in is answered", |client| client.send_raw(&startup(&[("user", "ann")]))),
        ("idle", |client| _ = log_in(client)),
        ("within a message", |client| log_in(client).send_raw(&query("SELECT 1")[..7])),
        ("within a transaction", |client| _ = lock(client)),
        ("within a message and a transaction", |client| lock(client).send_raw(&query("SELECT 1")[..3])),
        ("with a failed transaction", |client| _ = lock(client).query("SELECT nonsense")),
        ("before Sync", |client| {
            let update = parse("", "UPDATE t SET b = 100 WHERE a = 1", &[]);
            log_in(client).send(&[
                update,
                bind("", "", false, &[]),
                execute("", 0),
                parse("x", "SELECT 1", &[]),
            ]);
        }),
        ("with a suspended portal", |client| {
            let select = parse("", "SELECT x.a FROM big x, t", &[]);
            lock(client).send(&[select, bind("", "", false, &[]), execute("", 2)]);
        }),
        ("before rows are taken", |client| {
            lock(client).send(&[query("SELECT x.a FROM big x, big y LIMIT 100000")])
        }),
        ("within COPY", |client| {
            lock(client).send(&[query("COPY c FROM STDIN"), message(b'd', b"1\n2")]);
        }),
        ("after Terminate", |client| lock(client).send(&[message(b'X', &[]), query("SELECT 1")])),
        ("with garbage", |client| lock(client).send_raw(&[0xff; 100])),
        ("with a length that lies", |client| lock(client).send_raw(&[b'Q', 0x7f, 0xff, 0xff, 0xff, 1])),
        ("within skipping", |client| {
            lock(client).send(&[parse("", "nonsense", &[]), parse("", "SELECT 1", &[])])
        }),
        ("after Sync", |client| lock(client).send(&[parse("", "SELECT 1", &[]), sync()])),
    ];
    for (name, act) in states {
        let mut client = host.connect();
        act(&mut client);
        drop(client);
        println!("{name}");
        is_free(&host);
    }
    assert_eq!(first.query("SELECT b FROM t"), format!("T b:23\nD {}\nC SELECT 1\nZ I\n", states.len()));
    assert_eq!(first.query("SELECT a FROM c"), "T a:23\nC SELECT 0\nZ I\n");
}

fn log_in(client: &mut Client) -> &mut Client {
    client.send_raw(&startup(&[("user", "ann")]));
    client.until_ready();
    client
}

fn lock(client: &mut Client) -> &mut Client {
    log_in(client);
    client.query("BEGIN");
    assert_eq!(client.query("UPDATE t SET b = 1000 WHERE a = 1"), "C UPDATE 1\nZ T\n");
    client
}

/// Goal: 200 concurrent clients are served, and 200 that vanish leave nothing behind. Method: each
/// adds rows in a transaction; half of them vanish before they commit.
#[test]
fn two_hundred_clients() {
    const CLIENTS: usize = 200;
    let mut limits = cairn_server::Limits::default();
    limits.connections_max = CLIENTS + 1;
    let host = Host::with(limits);
    let mut first = host.session();
    first.query("CREATE TABLE t (a int PRIMARY KEY, b int)");
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let host = &host;
            scope.spawn(move || {
                let mut client = host.session();
                client.query("BEGIN");
                for part in 0..3 {
                    let row = number * 10 + part;
                    assert_eq!(
                        client.query(&format!("INSERT INTO t VALUES ({row}, {number})")),
                        "C INSERT 0 1\nZ T\n"
                    );
                }
                if number % 2 == 0 {
                    assert_eq!(client.query("COMMIT"), "C COMMIT\nZ I\n");
                }
            });
        }
    });
    assert_eq!(
        first.query("SELECT count(*) AS n FROM t"),
        format!("T n:20\nD {}\nC SELECT 1\nZ I\n", CLIENTS / 2 * 3)
    );
    host.end().unwrap();
}
