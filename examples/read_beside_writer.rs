//! A reader next to a writer: a second handle, which could be in another process. It never writes,
//! locks or delays the writer, and catches up when it wants to.
//!
//! Run it with `cargo run --example read_beside_writer`.
#![allow(clippy::disallowed_methods)] // plain threads, as in your own program

use std::error::Error;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use cairn_kv::{Db, KeyspaceOptions, Range};

const ROUNDS: u64 = 5;
const ENTRIES: u64 = 2_000;

type Failure = Box<dyn Error + Send + Sync>;

/// The writing process, which knows nothing of its readers.
fn write(db: &Db, rounds: mpsc::SyncSender<u64>) -> Result<(), Failure> {
    for round in 1..=ROUNDS {
        for number in 0..ENTRIES {
            db.put((round * ENTRIES + number).to_be_bytes(), round.to_be_bytes())?;
        }
        db.put("round", round.to_be_bytes())?;
        rounds.send(round)?; // waits until the reader has received it
    }
    Ok(())
}

/// The reading process.
fn read(path: &Path, rounds: mpsc::Receiver<u64>) -> Result<(), Failure> {
    let mut reader = Db::builder(path).read_only(true).open()?;
    let then = reader.snapshot();
    for written in rounds {
        reader.refresh()?; // reads the log since the last flush, and new tables
        let seen = reader.get("round")?.ok_or("a round was written")?;
        let seen = u64::from_be_bytes(seen.as_ref().try_into()?);
        // The reader sees whole writes in order: everything of each completed round.
        let entries = count(reader.range(..((seen + 1) * ENTRIES).to_be_bytes()))?;
        println!("round {written} was written; the reader is at {seen} and sees {entries} entries");
    }
    println!(
        "write number {} was the last when it was opened, {} is now",
        then.seqno(),
        reader.snapshot().seqno()
    );
    match reader.put("a", "b") {
        Err(error) => println!("writing is refused: {error}"),
        Ok(()) => println!("written, which it should not have been"),
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Failure> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    let path = dir.path().join("store");
    // Small memtables, so that tables are created and removed while the reader runs.
    let options = KeyspaceOptions { memtable_bytes: 128 << 10, ..KeyspaceOptions::default() };
    let db = Db::builder(&path).default_keyspace(options).open()?;

    // Only one process may write.
    match Db::open(&path) {
        Err(error) => println!("a second writer is refused: {error}"),
        Ok(_) => println!("a second writer was let in, which it should not have been"),
    }
    let (sender, receiver) = mpsc::sync_channel(0);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(&db, sender));
        let reader = scope.spawn(|| read(&path, receiver));
        writer.join().map_err(|_| "the writer panicked")??;
        reader.join().map_err(|_| "the reader panicked")?
    })
}

fn count(entries: Range) -> cairn_kv::Result<u64> {
    entries.map(|entry| entry.map(|_| 1)).sum()
}
