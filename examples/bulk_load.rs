//! Loading a lot of data: with puts in any order, and sorted, with tables that are built outside
//! the store and ingested. The second way writes each byte once.
//!
//! Run it with `cargo run --example bulk_load`.

use std::error::Error;
use std::path::{Path, PathBuf};

use cairn_kv::{Background, Db, IngestOptions, KeyspaceOptions, Range};

const ROWS: u64 = 60_000;

fn row(number: u64) -> String {
    format!("{{\"id\":{number},\"name\":\"row {number}\",\"square\":{}}}", number * number)
}

fn open(path: &Path) -> cairn_kv::Result<Db> {
    let options = KeyspaceOptions { memtable_bytes: 1 << 20, ..KeyspaceOptions::default() };
    Db::builder(path).default_keyspace(options).background(Background::Inline).open()
}

fn report(how: &str, db: &Db) -> Result<(), Box<dyn Error>> {
    db.wait_idle()?;
    let stats = db.stats();
    let keyspace = stats.keyspaces.first().ok_or("no keyspace")?;
    println!("{how}: {} entries", count(db.iter())?);
    println!("  {} KiB flushed, {} KiB compacted", stats.flushes.1 >> 10, stats.compaction_bytes.1 >> 10);
    for (number, level) in keyspace.levels.iter().enumerate().filter(|(_, level)| level.tables > 0) {
        println!("  level {number}: {} tables, {} KiB", level.tables, level.bytes >> 10);
    }
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own

    let db = open(&dir.path().join("by puts"))?;
    for n in 0..ROWS {
        let number = n * 7_919 % ROWS; // in no order
        db.put(number.to_be_bytes(), row(number))?;
    }
    report("by puts", &db)?;

    // A table takes keys in ascending order, in one pass, without log or memtable. Several threads
    // can build tables at once, and so can another program with the keyspace's options.
    let db = open(&dir.path().join("by tables"))?;
    let mut tables: Vec<PathBuf> = Vec::new();
    for part in 0..3 {
        let path = dir.path().join(format!("part {part}.table"));
        let mut table = db.table_builder(&path)?;
        for number in part * ROWS / 3..(part + 1) * ROWS / 3 {
            table.put(number.to_be_bytes(), row(number))?;
        }
        let built = table.finish()?;
        println!("built a table of {} entries, {} KiB", built.entries, built.bytes >> 10);
        tables.push(path);
    }
    // Ingests all tables at one moment, durably, or none. Moving instead of copying avoids writing
    // everything once more.
    db.ingest(&tables, &IngestOptions { move_files: true })?;
    report("by tables", &db)?;

    // Later tables are newer than the existing entries, and older snapshots do not see them.
    let snapshot = db.snapshot();
    let correction = dir.path().join("correction.table");
    let mut table = db.table_builder(&correction)?;
    table.put(7u64.to_be_bytes(), "corrected")?;
    table.delete(8u64.to_be_bytes())?;
    table.finish()?;
    db.ingest(&[&correction], &IngestOptions { move_files: true })?;
    for number in [7u64, 8] {
        println!(
            "row {number}: {:?}, before: {:?}",
            db.get(number.to_be_bytes())?,
            db.get_at(number.to_be_bytes(), &snapshot)?
        );
    }
    Ok(())
}

fn count(entries: Range) -> cairn_kv::Result<u64> {
    entries.map(|entry| entry.map(|_| 1)).sum()
}
