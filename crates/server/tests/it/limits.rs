use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cairn_server::{Level, Limits, Log, Passwords, Verifier};

use crate::client::{Host, SLOW, message, parse, query, startup, sync};

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

/// Goal: a session beyond the limit is refused, and admitted once another has ended.
#[test]
fn connections_are_limited() {
    let host = Host::with(limits(|limits| limits.connections_max = 2));
    let (first, _second) = (host.session(), host.session());
    let mut third = host.connect();
    third.send_raw(&startup(&[("user", "ann")]));
    assert_eq!(third.until_end(), "E FATAL 53300\nend\n");
    drop(first);
    // The session ends when its thread notices that its client has gone.
    let mut found_room = false;
    for _ in 0..1000 {
        let mut client = host.connect();
        client.send_raw(&startup(&[("user", "ann")]));
        found_room = client.until_ready().starts_with("R 0\n");
        if found_room {
            break;
        }
        thread_yield();
    }
    assert!(found_room);
}

fn thread_yield() {
    cairn_vfs::Clock::sleep(&cairn_vfs::SystemClock::new(), Duration::from_millis(5));
}

/// Goal: a statement beyond its limit is an error, and a message beyond its limit ends the
/// connection; first messages have a smaller limit.
#[test]
fn sizes_are_limited() {
    let host = Host::with(limits(|limits| {
        limits.statement_bytes_max = 100;
        limits.message_bytes_max = 1000;
        limits.prepared_max = 2;
    }));
    let mut client = host.session();
    let long = format!("SELECT '{}'", "x".repeat(200));
    assert_eq!(client.query(&long), "E ERROR 54000\nZ I\n");
    assert_eq!(client.ask(&[parse("", &long, &[]), sync()]), "E ERROR 54000\nZ I\n");
    let three = ["a", "b", "c"].map(|name| parse(name, "SELECT 1", &[]));
    assert_eq!(client.ask(&[three.concat(), sync()]), "1\n1\nE ERROR 54000\nZ I\n");
    client.send(&[query(&"x".repeat(2000))]);
    assert_eq!(client.until_end(), "E FATAL 08P01\nend\n");
    for length in [-1_i32, 0, 7, 10_001, i32::MAX] {
        let mut client = host.connect();
        client.send_raw(&length.to_be_bytes());
        assert_eq!(client.until_end(), "end\n", "{length}");
    }
    for (tag, length) in [(b'Q', 3_i32), (b'Q', -5), (b'!', 4)] {
        let mut client = host.session();
        client.send_raw(&[&[tag][..], &length.to_be_bytes()].concat());
        assert_eq!(client.until_end(), "E FATAL 08P01\nend\n");
    }
}

/// Goal: a password file that becomes invalid while the server runs admits nobody; the reason goes
/// to the log and not to clients. Method: an invalid line.
#[test]
fn password_file_errors_are_logged() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let log = {
        let said = Arc::clone(&said);
        Log::new(move |level, line| said.lock().unwrap().push((level, line.to_owned())))
    };
    let mut users = PathBuf::new();
    let host = Host::made_by(|builder, folder| {
        users = folder.join("users.txt");
        let mut one = Passwords::default();
        one.set("ann", Verifier::new("secret").unwrap());
        one.write(&users).unwrap();
        builder.password_file(&users).log(log)
    });
    std::fs::write(&users, "\nann\n").unwrap();
    let mut client = host.connect();
    client.send_raw(&startup(&[("user", "ann")]));
    assert_eq!(client.until_end(), "E FATAL 28000\nend\n");
    let said = said.lock().unwrap();
    let place = format!("{}, line 2: ", users.display());
    assert!(said.iter().any(|(level, line)| *level == Level::Error && line.contains(&place)), "{said:?}");
}

/// Goal: a client that takes too long to log in, or to continue its transaction, is disconnected,
/// the latter with an error. A client that is merely idle is not.
#[test]
fn times_are_limited() {
    let host = Host::with(limits(|limits| {
        limits.authentication_timeout = Duration::from_millis(300);
        limits.idle_in_transaction_timeout = Some(Duration::from_millis(300));
    }));
    let mut idle = host.session();
    let mut silent = host.connect();
    assert_eq!(silent.until_end(), "end\n");
    let mut in_transaction = host.session();
    in_transaction.query("BEGIN");
    assert_eq!(in_transaction.until_end(), "E FATAL 25P03\nend\n");
    assert_eq!(idle.query("SELECT 1 AS a"), "T a:23\nD 1\nC SELECT 1\nZ I\n");
}

/// Goal: a statement that takes too long is cancelled, and the session continues.
#[test]
fn statements_are_timed() {
    let host = Host::with(limits(|limits| limits.statement_timeout = Some(Duration::from_millis(100))));
    host.fill();
    let mut client = host.session();
    assert_eq!(client.query(SLOW), "T count:20\nE ERROR 57014\nZ I\n");
    assert_eq!(client.query("SELECT 1 AS a"), "T a:23\nD 1\nC SELECT 1\nZ I\n");
}

/// Goal: COPY messages have the same size limit as all others.
#[test]
fn copy_is_limited() {
    let host = Host::with(limits(|limits| limits.message_bytes_max = 1000));
    let mut client = host.session();
    client.query("CREATE TABLE t (a text)");
    client.send(&[query("COPY t FROM STDIN"), message(b'd', &[b'x'; 2000])]);
    assert_eq!(client.until_end(), "G\nE FATAL 08P01\nend\n");
}
