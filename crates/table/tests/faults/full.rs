//! Disks that are full: reading needs no room, and what is there can be deleted.

use std::path::Path;
use std::sync::Arc;

use cairn_table::row::Value;
use cairn_table::{Database, Durability, Isolation, Result, Table};
use cairn_vfs::{CrashImage, FaultFs, FaultOptions, Fs};

use super::transactions::{Tables, content, def, key, open, options};
use super::{rounds, seed};

fn insert(db: &Database, table: &Arc<Table>, ids: std::ops::Range<i32>) -> Result<()> {
    let mut transaction = db.begin(Isolation::ReadCommitted)?;
    for id in ids {
        let text = "w".repeat(9 * (1 + id as usize % 7));
        transaction.insert(table, &[Value::Int(id), Value::Int(0), Value::Text(&text)])?;
    }
    transaction.commit(Durability::Sync)
}

fn table(db: &Database) -> Arc<Table> {
    let transaction = db.begin(Isolation::ReadCommitted).unwrap();
    Arc::clone(transaction.view().catalog().table("public", "t").unwrap())
}

/// A disk that was filled: rows until one transaction of many finds no room. With what is committed.
fn filled(seed: u64, room: u64, rows: i32) -> (FaultFs, Tables) {
    let disk = FaultFs::new(FaultOptions::seeded(seed));
    let db = open(&disk).unwrap();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = transaction.create_table(def("t")).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    insert(&db, &table, 0..200).unwrap();
    disk.set_quota(Some(disk.used_bytes() + room));
    let (mut from, mut expected) = (200, content(&db).unwrap());
    let error = loop {
        match insert(&db, &table, from..from + rows) {
            Ok(()) => expected = content(&db).unwrap(),
            Err(error) => break error,
        }
        from += rows;
    };
    assert!(error.is_full(), "{error}");
    (disk, expected)
}

/// Goal: after an insert that filled the disk everything that was committed can be read without a byte of room, and without a change of any file; and an opening for changes, and deletions, either find the room that they
/// need or say that the disk is full, and lose nothing. Method: transactions of few rows and of many into little room and more, the process closed or killed or the power gone; then all of that under the same quota.
#[test]
fn a_disk_that_was_filled() {
    let own = seed();
    let (mut opened, mut tried) = (0, 0);
    for round in 0..rounds(1, 200) {
        let seed = own.wrapping_add(round);
        for (room, rows) in [(64 << 10, 20), (300 << 10, 100), (1 << 20, 5_000)] {
            for image in [None, Some(CrashImage::All), Some(CrashImage::None)] {
                let context = format!("seed {seed}, room {room}, rows {rows}, {image:?}");
                let (disk, expected) = filled(seed, room, rows);
                let used = disk.used_bytes();
                let disk = match image {
                    None => disk,
                    Some(image) => disk.crash_point().image(image),
                };
                disk.set_quota(Some(used));
                let before: Vec<_> = disk.files().iter().map(|path| disk.bytes_of(path)).collect();
                let fs: Arc<dyn Fs> = Arc::new(disk.clone());
                let shadow = Database::open_shadow(&fs, Path::new("/db"), &options())
                    .unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(content(&shadow).unwrap(), expected, "{context}");
                shadow.check().unwrap();
                drop(shadow);
                let after: Vec<_> = disk.files().iter().map(|path| disk.bytes_of(path)).collect();
                assert!(before == after, "{context}: a file was changed");
                tried += 1;
                let emptied = open(&disk).and_then(|db| {
                    assert_eq!(content(&db)?, expected, "{context}");
                    empties(&db)
                });
                match emptied {
                    Ok(()) => opened += 1,
                    // Some room is needed for what gives room back, and how much is left is chance.
                    Err(error) => {
                        println!("{context}: {error}");
                        assert!(error.is_full(), "{context}: {error}");
                        let shadow = Database::open_shadow(&fs, Path::new("/db"), &options()).unwrap();
                        shadow.check().unwrap();
                    }
                }
            }
        }
    }
    println!("{opened} of {tried} full disks were emptied");
    assert!(tried >= 9, "{tried}");
}

/// Deletes all rows, a few at a time, and puts others there.
fn empties(db: &Database) -> Result<()> {
    let table = table(db);
    let ids: Vec<i32> = content(db)?["t"].keys().copied().collect();
    for (at, ids) in ids.chunks(50).enumerate() {
        println!("deletes the rows of turn {at}");
        let mut transaction = db.begin(Isolation::ReadCommitted)?;
        for &id in ids {
            assert!(transaction.delete(&table, &key(&table, id))?);
        }
        transaction.commit(Durability::Sync)?;
        db.checkpoint()?;
    }
    assert_eq!(content(db)?["t"].len(), 0);
    db.check()?;
    println!("vacuums");
    db.vacuum()?;
    println!("inserts again");
    // There is room again.
    insert(db, &table, 0..20)?;
    db.check().map(|_| ())
}
