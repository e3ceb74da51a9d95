//! Copies of a store while it is being written to: a checkpoint of hard links, incremental backups,
//! a restore, and a check of everything.
//!
//! Run it with `cargo run --example backups`.

use std::error::Error;

use cairn_kv::{Backups, Db, Range, verify};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?; // temporary; pass a path of your own
    let path = |name: &str| dir.path().join(name);

    let db = Db::open(path("store"))?;
    for number in 0..10_000u32 {
        db.put(number.to_be_bytes(), format!("as of monday {number}"))?;
    }
    db.flush()?; // not needed for the rest; creates a table that no longer changes

    // A directory that opens as a store of its own. It takes no space until the two diverge.
    let last = db.checkpoint(path("checkpoint"))?;
    println!("checkpoint up to write {last}");

    // Each backup is complete, and only takes space for files that no earlier one has. Keep them on
    // another disk.
    let backups = Backups::open(path("backups"))?;
    let monday = backups.create(&db)?;
    // only in memory and in the log, but also in the backup
    db.put(7u32.to_be_bytes(), "as of tuesday")?;
    let tuesday = backups.create(&db)?;
    db.delete_range(0u32.to_be_bytes(), 9_000u32.to_be_bytes())?; // a mistake
    let wednesday = backups.create(&db)?;
    for backup in [&monday, &tuesday, &wednesday] {
        let (id, bytes, copied) = (backup.id, backup.bytes >> 10, backup.copied_bytes >> 10);
        println!("backup {id}: files: {}, {bytes} KiB, of which {copied} KiB were copied", backup.files);
    }

    // Every byte is verified against its checksum, here and whenever a file is copied.
    println!("damage in the backups: {:?}", backups.verify()?);
    backups.restore(Some(tuesday.id), path("restored"))?;
    backups.purge(1)?; // all but the newest
    println!("backups left: {}", backups.list()?.len());

    let restored = Db::open(path("restored"))?;
    println!("{} entries now, {} in the restored store", count(db.iter())?, count(restored.iter())?);
    println!("entry 7 of it: {:?}", restored.get(7u32.to_be_bytes())?);
    let checkpoint = Db::open(path("checkpoint"))?;
    println!("entry 7 of the checkpoint: {:?}", checkpoint.get(7u32.to_be_bytes())?);

    // If a store does not even open, `cairn_kv::verify` reports the damage, and `cairn_kv::repair`
    // saves the rest.
    drop(restored);
    println!("the restored store: {}", verify(path("restored"))?);
    Ok(())
}

fn count(entries: Range) -> cairn_kv::Result<u64> {
    entries.map(|entry| entry.map(|_| 1)).sum()
}
