//! The cost of a durable write, and ways to avoid paying it each time: the three guarantees, one
//! sync for many writes, and group commit, in which threads that wait for the disk share its
//! flushes.
//!
//! Run it with `cargo run --release --example durability`. The figures are your disk's.
#![allow(clippy::disallowed_methods)] // plain threads and time, as in your own program

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use cairn_kv::{Db, Durability, Range, WriteBatch};

const CHEAP: u64 = 20_000;
const SYNCED: u64 = 100;
const THREADS: u64 = 16;

fn report(what: &str, writes: u64, took: Duration) {
    let micros = took.as_secs_f64() * 1e6 / writes as f64;
    println!("{what:<44} {micros:>9.1} µs a write");
}

/// Makes this many writes, one after another, each with this guarantee.
fn write(db: &Db, writes: u64, durability: Durability, seed: u64) -> cairn_kv::Result<()> {
    (0..writes).try_for_each(|number| {
        db.put_with((seed << 32 | number).to_be_bytes(), "some hundred bytes, or so", durability)
    })
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    // `.durability(..)` sets the guarantee of writes that do not specify one. `.sync_interval(..)`
    // limits how many `Buffered` writes a power loss can take.
    let db = Db::builder(dir.path().join("store")).durability(Durability::Buffered).open()?;

    for (durability, writes, what) in [
        (Durability::Memory, CHEAP, "Memory: lost with the process"),
        (Durability::Buffered, CHEAP, "Buffered: survives the process"),
        (Durability::Sync, SYNCED, "Sync: survives a power loss"),
    ] {
        let start = Instant::now();
        write(&db, writes, durability, durability as u64)?;
        report(what, writes, start.elapsed());
    }

    // When losing a few milliseconds is acceptable, or a batch can be repeated: write, then sync
    // once.
    let start = Instant::now();
    write(&db, CHEAP, Durability::Buffered, 4)?;
    db.sync()?;
    report("Buffered, and one sync at the end", CHEAP, start.elapsed());

    let start = Instant::now();
    let mut batch = WriteBatch::new();
    (0..SYNCED).try_for_each(|number| batch.put((5 << 32 | number).to_be_bytes(), "in one batch"))?;
    db.write_with(&batch, Durability::Sync)?;
    report("Sync, as one batch", SYNCED, start.elapsed());

    // Writers that need the disk at the same time share one flush, without any configuration.
    let start = Instant::now();
    thread::scope(|scope| {
        let db = &db;
        let spawn = |seed| scope.spawn(move || write(db, SYNCED, Durability::Sync, seed));
        let writers: Vec<_> = (6..6 + THREADS).map(spawn).collect();
        for writer in writers {
            writer.join().map_err(|_| "a thread panicked")??;
        }
        Ok::<_, Box<dyn Error>>(())
    })?;
    report("Sync, by 16 threads (group commit)", THREADS * SYNCED, start.elapsed());

    println!("{} entries", count(db.iter())?);
    Ok(())
}

fn count(entries: Range) -> cairn_kv::Result<u64> {
    entries.map(|entry| entry.map(|_| 1)).sum()
}
