//! Ways to read a keyspace: prefixes, ranges, both directions, cursors that seek, and snapshots
//! that never change.
//!
//! Run it with `cargo run --example scans_and_snapshots`.

use std::error::Error;

use cairn_kv::{Db, Range, ReadOptions};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    let db = Db::open(dir.path().join("library"))?;
    for (book, copies) in [
        ("fiction/Emma", 3),
        ("fiction/Middlemarch", 1),
        ("fiction/Persuasion", 2),
        ("science/Elements", 4),
        ("science/Opticks", 1),
        ("travel/Voyages", 2),
    ] {
        db.put(book, [copies])?;
    }

    // An iterator shows the moment at which it was created. It streams, and never holds more than a
    // few blocks.
    println!("science:");
    for entry in db.prefix("science/") {
        let (book, copies) = entry?;
        println!("  {} {copies:?}", text(&book));
    }

    // Any range, from either end: the last two novels, last first.
    let novels: Vec<_> = db.range("fiction/".."fiction0").rev().take(2).collect::<cairn_kv::Result<_>>()?;
    println!("the last novels: {}, {}", text(&novels[0].0), text(&novels[1].0));

    // A cursor can seek and move in both directions, and returns keys and values without copying
    // them.
    let mut cursor = db.cursor()?;
    cursor.seek("fiction/N")?;
    println!("at or after fiction/N: {}", text(cursor.key()));
    cursor.prev()?;
    println!("before that:           {}", text(cursor.key()));
    cursor.seek_for_prev("travel")?;
    println!("at or before travel:   {}", text(cursor.key()));

    // A snapshot keeps one moment of all keyspaces readable for as long as it is held.
    let snapshot = db.snapshot();
    db.put("fiction/Emma", [0])?;
    db.delete_range("science/", "science0")?;
    println!("copies of Emma: now {:?}", db.get("fiction/Emma")?.as_deref());
    println!("copies of Emma: then {:?}", db.get_at("fiction/Emma", &snapshot)?.as_deref());
    println!("books: now {}, then {}", count(db.iter())?, count(db.range_at(.., &snapshot))?);

    // A scan over more data than fits into memory should not evict everything else from the cache.
    let passing_by = ReadOptions { fill_cache: false, ..ReadOptions::default() };
    let mut cursor = db.cursor_in(.., Some(&snapshot), &passing_by)?;
    let mut copies = 0;
    cursor.seek_first()?;
    while cursor.valid() {
        copies += cursor.value().iter().map(|count| u32::from(*count)).sum::<u32>();
        cursor.next()?;
    }
    println!("copies of all books then: {copies}");
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn count(entries: Range) -> cairn_kv::Result<u64> {
    entries.map(|entry| entry.map(|_| 1)).sum()
}
