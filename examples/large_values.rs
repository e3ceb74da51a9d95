//! Large values in blob files: the same pictures are stored twice, inside the tables and
//! separately, and overwritten a few times. The bytes that compactions write show the difference.
//!
//! Run it with `cargo run --example large_values`.

use std::error::Error;
use std::path::Path;

use cairn_kv::strategy::{LeveledOptions, StrategyOptions};
use cairn_kv::{Background, Compression, Db, KeyspaceOptions, Range};
use cairn_vfs::{Rng, SeededRng};

const PICTURES: u64 = 200;
const PICTURE_BYTES: usize = 8 << 10;
const ROUNDS: u64 = 6;

/// Overwrites random pictures and prints the costs.
fn overwrite(path: &Path, blob_bytes_min: Option<u32>) -> Result<(), Box<dyn Error>> {
    let options = KeyspaceOptions {
        blob_bytes_min,
        // A blob file is rewritten once this share of it is overwritten. Lower values save space,
        // higher ones writes.
        blob_garbage_max: 0.5,
        // The pictures are compressed already.
        compression: vec![Compression::None],
        // A hundredth of the usual sizes, for a hundredth of the usual data.
        memtable_bytes: 512 << 10,
        compaction: StrategyOptions::Leveled(LeveledOptions {
            table_bytes: 512 << 10,
            level_zero_runs_max: 4,
            level_zero_bytes: 1 << 20,
            base_bytes: 1 << 20,
            ..LeveledOptions::default()
        }),
        ..KeyspaceOptions::default()
    };
    // The writer does the background work itself, so that equal runs give equal figures.
    let builder = Db::builder(path).default_keyspace(options).background(Background::Inline);
    let db = builder.open()?;

    let (mut rng, mut picture) = (SeededRng::new(1), vec![0; PICTURE_BYTES]);
    for round in 0..ROUNDS {
        for number in 0..PICTURES {
            let number = if round == 0 { number } else { rng.below(PICTURES) };
            rng.fill(&mut picture);
            db.put(format!("picture {number:04}"), &picture)?;
        }
    }
    db.wait_idle()?;

    let stats = db.stats();
    let keyspace = stats.keyspaces.first().ok_or("no keyspace")?;
    let tables: u64 = keyspace.levels.iter().map(|level| level.bytes).sum();
    println!("  {:>6} KiB put by the program", (ROUNDS * PICTURES * PICTURE_BYTES as u64) >> 10);
    println!("  {:>6} KiB written by flushes", stats.flushes.1 >> 10);
    println!("  {:>6} KiB written by compactions", stats.compaction_bytes.1 >> 10);
    println!("  {:>6} KiB in tables", tables >> 10);
    println!(
        "  {:>6} KiB in blob files, {} KiB of it garbage",
        keyspace.blob_bytes >> 10,
        keyspace.blob_garbage_bytes >> 10
    );

    // Reading works the same way in both cases.
    let first = db.get("picture 0000")?.ok_or("no picture")?;
    println!("  a picture of {} bytes, {} pictures", first.len(), count(db.iter())?);
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    println!("values within the tables:");
    overwrite(&dir.path().join("within"), None)?;
    println!("values of 4 KiB and more in blob files:");
    overwrite(&dir.path().join("apart"), Some(4 << 10))
}

fn count(entries: Range) -> cairn_kv::Result<u64> {
    entries.map(|entry| entry.map(|_| 1)).sum()
}
