//! A server process that is killed while clients use it, on the real disk.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use cairn_server::{Limits, Server};
use cairn_sql::Database;
use cairn_vfs::{Rng, SeededRng, thread};

use crate::client::{Client, startup};

/// Set in the child process: the directory of its database.
const CHILD: &str = "CAIRN_SERVER_CHILD";
const READY: &str = "ready for clients";

/// Concurrent clients.
const CLIENTS: u64 = 200;

/// Accounts between which the clients move money.
const ACCOUNTS: u64 = 1000;

const SCHEMA: &str = "CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
    CREATE TABLE transfer (client int, number int, source int, target int, amount int, PRIMARY KEY (client, number));
    CREATE INDEX transfer_target ON transfer (target)";

/// The child process: serves until it is killed.
fn child(dir: &Path) {
    let database = Database::open(dir.join("bank.db")).unwrap();
    let mut limits = Limits::default();
    limits.connections_max = 2 * CLIENTS as usize;
    let server = Server::builder(database).socket(dir, 1).limits(limits).bind().unwrap();
    println!("{READY}");
    server.run().unwrap();
}

/// The statements of a client's `number`-th transfer. The account with the lower number comes
/// first, which avoids deadlocks.
fn transfer(rng: &mut dyn Rng, client: u64, number: u64) -> String {
    let source = rng.below(ACCOUNTS - 1);
    let (target, amount) = (source + 1 + rng.below(ACCOUNTS - 1 - source), rng.below(100));
    format!(
        "BEGIN; UPDATE account SET balance = balance - {amount} WHERE id = {source};
         UPDATE account SET balance = balance + {amount} WHERE id = {target};
         INSERT INTO transfer VALUES ({client}, {number}, {source}, {target}, {amount}); COMMIT"
    )
}

/// Moves money until the server is gone. Returns the number of the last transfer whose commit was
/// acknowledged.
fn move_money(socket: &Path, client: u64, first: u64, seed: u64, acknowledged: &Sender<()>) -> u64 {
    let mut rng = SeededRng::new(seed);
    let mut last = first - 1;
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut session = Client { stream, process: 0, secret: 0, settings: Vec::new() };
    if !session.try_ask(&startup(&[("user", "ann"), ("database", "bank")])).contains("Z I") {
        return last;
    }
    loop {
        let told = session.try_ask(&crate::client::query(&transfer(&mut rng, client, last + 1)));
        if !told.contains("C COMMIT") {
            // Only the end of the server may stop a client.
            assert!(!told.lines().any(|line| line.starts_with('E')), "client {client}: {told}");
            return last;
        }
        last += 1;
        // The receiver is gone once the server is killed.
        let _ = acknowledged.send(());
    }
}

/// Checks that no money was created or lost, and that no client's transfers have gaps. Returns the
/// last transfer of each client.
fn audit(dir: &Path) -> Vec<u64> {
    let database = Database::open(dir.join("bank.db")).unwrap();
    let mut connection = database.connect();
    let mut last = vec![0; CLIENTS as usize];
    let mut expected = vec![0_i64; ACCOUNTS as usize];
    let mut rows = connection
        .query("SELECT client, number, source, target, amount FROM transfer ORDER BY client, number", &[])
        .unwrap();
    while let Some(row) = rows.next().unwrap() {
        let cell = |column| i64::from(row.get_as::<i32>(column).unwrap());
        let client = cell(0) as usize;
        assert_eq!(cell(1) as u64, last[client] + 1, "client {client} has a hole");
        last[client] += 1;
        expected[cell(2) as usize] -= cell(4);
        expected[cell(3) as usize] += cell(4);
    }
    drop(rows);
    let mut rows = connection.query("SELECT id, balance FROM account ORDER BY id", &[]).unwrap();
    let mut count = 0;
    while let Some(row) = rows.next().unwrap() {
        let id = row.get_as::<i32>(0).unwrap() as usize;
        assert_eq!(i64::from(row.get_as::<i32>(1).unwrap()), expected[id], "account {id}");
        count += 1;
    }
    assert_eq!(count, ACCOUNTS);
    drop(rows);
    let report = database.check().unwrap();
    assert_eq!(report.tables, 2, "{report:?}");
    last
}

/// Goal: no acknowledged commit is lost, and none is half done, when a server with 200 connections
/// is killed. Method: this test runs itself as a server on the real disk, 200 clients move money
/// between accounts and record it, the server is killed after a random number of acknowledged
/// commits, and the database is audited; the next server continues with it.
#[test]
fn acknowledged_commits_survive_sigkill() {
    if let Some(dir) = std::env::var_os(CHILD) {
        return child(Path::new(&dir));
    }
    let moved = std::env::var("CAIRN_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()).unwrap_or(0);
    println!("CAIRN_SEED={moved}");
    let kills = if std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0") { 50 } else { 3 };
    let mut rng = SeededRng::new(21 ^ moved.rotate_left(17));
    let dir = tempfile::tempdir().unwrap();
    {
        let database = Database::open(dir.path().join("bank.db")).unwrap();
        let mut connection = database.connect();
        connection.batch(SCHEMA).unwrap();
        let fill =
            format!("INSERT INTO account SELECT x, 0 FROM generate_series(0, {}) AS g(x)", ACCOUNTS - 1);
        connection.batch(&fill).unwrap();
    }
    let mut found = vec![0; CLIENTS as usize];
    for round in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sigkill::acknowledged_commits_survive_sigkill", "--nocapture"])
            .env(CHILD, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(READY)), "the server never said that it is ready");
        let socket = dir.path().join(".s.PGSQL.1");
        let (acknowledged, commits) = mpsc::channel();
        let until = 1 + rng.below(4000);
        let said: Vec<u64> = thread::scope(|scope| {
            let work = |client: u64| {
                let (socket, acknowledged, seed) = (&socket, acknowledged.clone(), rng.next_u64());
                let first = found[client as usize] + 1;
                move || move_money(socket, client, first, seed, &acknowledged)
            };
            let works: Vec<_> = (0..CLIENTS).map(work).collect();
            let running: Vec<_> =
                works.into_iter().map(|work| thread::spawn_scoped(scope, "client", work).unwrap()).collect();
            for _ in 0..until {
                commits.recv().unwrap();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            running.into_iter().map(|client| client.join().unwrap()).collect()
        });
        let context = format!("kill {round} after {until} commits");
        found = audit(dir.path());
        for (client, (&said, &found)) in said.iter().zip(&found).enumerate() {
            // One more commit may have been in progress.
            assert!((said..=said + 1).contains(&found), "{context}: client {client} has {found} of {said}");
        }
    }
    println!(
        "killed servers: {kills} kills under {CLIENTS} clients, {} transfers",
        found.iter().sum::<u64>()
    );
}
