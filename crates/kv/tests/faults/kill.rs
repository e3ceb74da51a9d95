//! Tests of processes that are killed under load, on the real disk.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use cairn_kv::{Background, Durability, KeyspaceOptions, Operation, Options, WriteBatch};
use cairn_vfs::thread;

use super::*;

/// Set in the child process to the directory of its store.
const CHILD: &str = "CAIRN_KV_CHILD";

/// Number of writer threads of the child. Each has its own keys.
const WRITERS: u64 = 3;

/// Number of keys per writer. The newest value among them gives the writer's progress.
const KEYS: u64 = 50;

fn open_real(dir: &Path) -> Db {
    let keyspace = KeyspaceOptions { memtable_bytes: 64 << 10, ..KeyspaceOptions::default() };
    let options = Options {
        background: Background::Threads(2),
        wal_segment_bytes: 256 << 10,
        cache_bytes: 1 << 20,
        ..Options::default()
    };
    Db::builder(dir)
        .options(options)
        .default_keyspace(keyspace.clone())
        .keyspace("other", keyspace)
        .open()
        .unwrap()
}

/// Returns the `number`-th write of a writer: the same key in both keyspaces, sometimes with a
/// range deletion of a key that is written again later.
fn batch(db: &Db, writer: u64, number: u64) -> WriteBatch {
    let other = db.keyspace("other").unwrap();
    let key = format!("writer {writer} key {:03}", number % KEYS);
    let value = format!("{number}:{}", "v".repeat((number * 37 % 300) as usize));
    let mut batch = WriteBatch::new();
    batch.put(&key, &value).unwrap();
    batch.put(format!("writer {writer} newest"), number.to_be_bytes()).unwrap();
    batch.add(other.id(), Operation::Put { key: key.as_bytes(), value: value.as_bytes() }).unwrap();
    batch
}

fn durability(number: u64) -> Durability {
    if number.is_multiple_of(64) { Durability::Sync } else { Durability::Buffered }
}

/// Returns the number of a writer's last write in the store, after checking that all of that
/// writer's data is there.
fn newest(db: &Db, writer: u64, context: &str) -> u64 {
    let other = db.keyspace("other").unwrap();
    let Some(bytes) = db.get(format!("writer {writer} newest")).unwrap() else { return 0 };
    let newest = u64::from_be_bytes(bytes.as_ref().try_into().unwrap());
    // The last write to each key is among this many last writes.
    for number in newest.saturating_sub(KEYS - 1).max(1)..=newest {
        let key = format!("writer {writer} key {:03}", number % KEYS);
        let value = format!("{number}:{}", "v".repeat((number * 37 % 300) as usize));
        for keyspace in [&*db.clone(), &other] {
            let found = keyspace.get(&key).unwrap();
            assert_eq!(found.as_deref(), Some(value.as_bytes()), "{context}: {} {key}", keyspace.name());
        }
    }
    newest
}

/// Runs in the child: writes, flushes and compacts until it is killed, and prints acknowledged
/// writes.
fn child(dir: &Path) {
    let db = open_real(dir);
    let lines = std::sync::Mutex::new(std::io::stdout());
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, lines) = (&db, &lines);
            let work = move || {
                for number in newest(db, writer, "child") + 1.. {
                    db.write_with(&batch(db, writer, number), durability(number)).unwrap();
                    writeln!(lines.lock().unwrap(), "{CHILD}={writer},{number}").unwrap();
                }
            };
            thread::spawn_scoped(scope, "writer", work).unwrap();
        }
        for round in 0u64.. {
            let keyspace = if round % 2 == 0 { (*db).clone() } else { db.keyspace("other").unwrap() };
            if round % 8 == 7 {
                keyspace.compact_range(..).unwrap()
            } else {
                keyspace.flush().unwrap()
            }
            // Additional writes that may be lost.
            db.put_with("noise", round.to_be_bytes(), Durability::Memory).unwrap();
        }
    });
}

/// Goal: writes acknowledged as `Buffered` or `Sync` survive `SIGKILL`, batches are complete in
/// both keyspaces, each writer's last writes are there without gaps, and the files of killed
/// processes do not accumulate.
/// Method: this test runs itself as a child that writes from three threads with concurrent flushes
/// and compactions, kills it at a random number of lines, and opens the store that it left; the
/// next child continues there.
#[test]
fn acknowledged_writes_survive_sigkill() {
    if let Some(dir) = std::env::var_os(CHILD) {
        return child(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut rng, kills) = (cairn_vfs::SeededRng::new(seed(16)), rounds(20, 200));
    let mut found = [0; WRITERS as usize];
    for round in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::acknowledged_writes_survive_sigkill", "--nocapture"])
            .env(CHILD, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let parse = |line: String| -> Option<(usize, u64)> {
            let (writer, number) = line.strip_prefix(CHILD)?.strip_prefix('=')?.split_once(',')?;
            Some((writer.parse().ok()?, number.parse().ok()?))
        };
        let mut said = found;
        let until = 1 + cairn_vfs::Rng::below(&mut rng, 1500);
        let mut heard = 0;
        while heard < until {
            let line = lines.next().expect("the child writes until it is killed").unwrap();
            if let Some((writer, number)) = parse(line) {
                said[writer] = said[writer].max(number);
                heard += 1;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Writes that it printed before it died were acknowledged too; the last line may be cut
        // off.
        let rest: Vec<_> = lines.map_while(std::result::Result::ok).collect();
        let whole = rest.len().saturating_sub(1);
        for (writer, number) in rest.into_iter().take(whole).filter_map(parse) {
            said[writer] = said[writer].max(number);
        }
        let context = format!("kill {round}");
        let db = open_real(dir.path());
        for writer in 0..WRITERS {
            let at = writer as usize;
            found[at] = newest(&db, writer, &context);
            // One more write may have been in progress, and one may have been printed in the line
            // that was cut off.
            let range = said[at]..=said[at] + 2;
            assert!(
                range.contains(&found[at]),
                "{context}: writer {writer} has {} of {:?}",
                found[at],
                said[at]
            );
        }
        drop(db);
    }
    println!("killed processes: {kills} kills, {} writes", found.iter().sum::<u64>());
    let files = cairn_vfs::StdFs::new().read_dir(dir.path()).unwrap();
    assert!(files.len() < 60, "{files:?}");
    let _ = Duration::ZERO;
}
