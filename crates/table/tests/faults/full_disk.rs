//! Full disks: reading needs no space, and rows can be deleted.

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

/// Fills a disk: inserts until a transaction of many rows finds no space. Returns the committed
/// rows too.
fn filled(seed: u64, room: u64, rows: i32) -> (FaultFs, Tables) {
    let disk = FaultFs::new(FaultOptions { quota_bytes: Some(1 << 30), ..FaultOptions::seeded(seed) });
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

/// Goal: after an insert has filled the disk, all committed rows can be read without any free space
/// and without changing a file; opening for changes, and deletions, find the space they need in the
/// reserve.
/// Method: transactions of few rows and of many, with little space and more; the process is closed
/// or killed, or the power fails; then all of that under the same quota.
#[test]
fn full_disk_is_readable() {
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
                emptied.unwrap_or_else(|error| panic!("{context}: {error}"));
                opened += 1;
            }
        }
    }
    println!("{opened} of {tried} full disks were emptied");
    assert!(tried >= 9, "{tried}");
}

/// Deletes all rows, a few at a time, and inserts others.
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
    // There is space again.
    insert(db, &table, 0..20)?;
    db.check().map(|_| ())
}

/// The reserve of each database here.
const RESERVE: u64 = 512 << 10;

/// The shapes of rows of [`Full`], by the length of their texts.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Narrow,
    Wide,
    /// Each on pages of its own.
    Long,
    /// In leaves that were packed by a bulk load, and are unpacked when the first row is deleted.
    Packed,
}

impl Shape {
    fn len(self, id: i32) -> usize {
        match self {
            Shape::Narrow | Shape::Packed => id as usize % 20,
            Shape::Wide => 400 + id as usize % 500,
            Shape::Long => 9_000 + id as usize % 2_000,
        }
    }

    /// Returns the number of rows that a transaction can always delete. The factor of two is for
    /// the entry in the index.
    fn at_once(self) -> usize {
        let record = if matches!(self, Shape::Long) { 20 } else { self.len(19) + 20 };
        (RESERVE / 8) as usize / (record + 2 * 200)
    }
}

/// A database that has filled its disk to the last row.
struct Full {
    disk: FaultFs,
    db: Option<Database>,
    shape: Shape,
    next: i32,
}

impl Full {
    /// Creates a database with `room` bytes beyond an empty one, and with one index.
    fn new(shape: Shape, room: u64) -> Full {
        let disk = FaultFs::new(FaultOptions { quota_bytes: Some(1 << 30), ..FaultOptions::seeded(room) });
        let db = open(&disk).unwrap();
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        let table = transaction.create_table(def("t")).unwrap();
        let loaded = if matches!(shape, Shape::Packed) { 2_000 } else { 0 };
        let mut load = transaction.bulk_insert(&table).unwrap();
        for id in 0..loaded {
            let text = "w".repeat(shape.len(id));
            load.push(&[Value::Int(id), Value::Int(id * 7 % 13), Value::Text(&text)]).unwrap();
        }
        load.finish().unwrap();
        transaction.commit(Durability::Sync).unwrap();
        db.checkpoint().unwrap();
        disk.set_quota(Some(disk.used_bytes() + room));
        let mut full = Full { disk, db: Some(db), shape, next: loaded };
        for rows in [100, 10, 1, 1] {
            let error = loop {
                if let Err(error) = full.insert(rows) {
                    break error;
                }
            };
            assert!(error.is_full(), "{error}");
        }
        full
    }

    fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn insert(&mut self, rows: i32) -> Result<()> {
        let table = table(self.db());
        let mut transaction = self.db().begin(Isolation::ReadCommitted)?;
        for id in self.next..self.next + rows {
            let text = "w".repeat(self.shape.len(id));
            transaction.insert(&table, &[Value::Int(id), Value::Int(id * 7 % 13), Value::Text(&text)])?;
        }
        transaction.commit(Durability::Sync)?;
        self.next += rows;
        Ok(())
    }

    fn ids(&self) -> Vec<i32> {
        content(self.db()).unwrap()["t"].keys().copied().collect()
    }

    fn delete(&self, ids: &[i32]) -> Result<()> {
        let table = table(self.db());
        let mut transaction = self.db().begin(Isolation::ReadCommitted)?;
        for &id in ids {
            assert!(transaction.delete(&table, &key(&table, id))?);
        }
        transaction.commit(Durability::Sync)
    }

    fn is(&self, ids: &[i32], context: &str) {
        assert!(self.ids() == ids, "{context}");
        let expected =
            |(id, (v, len)): (&i32, &(i32, usize))| *v == id * 7 % 13 && *len == self.shape.len(*id);
        assert!(content(self.db()).unwrap()["t"].iter().all(expected), "{context}");
        self.db().check().unwrap_or_else(|error| panic!("{context}: {error}"));
    }
}

/// Whether a row is deleted, given its position and the number of rows.
type Goes = fn(usize, usize) -> bool;

/// Which rows are deleted.
const PARTS: [(&str, Goes); 4] = [
    ("one", |at, _| at == 0),
    ("every other one", |at, _| at % 2 == 0),
    ("the second half", |at, rows| at >= rows / 2),
    ("all", |_, _| true),
];

/// Goal: rows of a full database can be deleted, and then there is space for others. Method: rows
/// of a shape until not one more fits, on disks of many sizes; by the process that filled the disk,
/// by one that reopens the database, after a kill, and after a power loss: delete some rows, in
/// transactions of the documented size, and vacuum; then insert.
fn rows_can_be_deleted(shape: Shape) {
    let own = seed();
    for (turn, room) in (0..rounds(4, 100)).map(|turn| (turn, (30 + turn * 37 + own % 23) << 10)) {
        let mut full = Full::new(shape, room);
        let (name, goes) = PARTS[turn as usize % PARTS.len()];
        let context = format!("{shape:?}, room {room}, {name}, turn {turn}");
        let ids = full.ids();
        match (turn / 4 + turn) % 4 {
            0 => {}
            1 => {
                full.db = None;
                full.db = Some(open(&full.disk).unwrap_or_else(|error| panic!("{context}: {error}")));
            }
            image => {
                let image = if image == 2 { CrashImage::All } else { CrashImage::Random(own) };
                let quota = full.disk.used_bytes();
                full.db = None;
                full.disk = full.disk.crash_point().image(image);
                full.disk.set_quota(Some(quota));
                full.db = Some(open(&full.disk).unwrap_or_else(|error| panic!("{context}: {error}")));
            }
        }
        full.is(&ids, &context);
        let (gone, left): (Vec<_>, Vec<_>) =
            ids.iter().copied().enumerate().partition(|(at, _)| goes(*at, ids.len()));
        let gone: Vec<i32> = gone.into_iter().map(|(_, id)| id).collect();
        let left: Vec<i32> = left.into_iter().map(|(_, id)| id).collect();
        let (mut at, mut many, mut halved) = (0, shape.at_once(), 0);
        while at < gone.len() {
            let some = &gone[at..(at + many).min(gone.len())];
            match full.delete(some) {
                Ok(()) => (at, many) = (at + some.len(), shape.at_once()),
                // Unpacking leaves takes much of the log, so smaller transactions may be needed.
                Err(error) if error.is_full() && many > 1 && matches!(shape, Shape::Packed) => {
                    (many, halved) = (many / 2, halved + 1);
                }
                Err(error) => panic!("{context}, {at} of {} gone: {error}", gone.len()),
            }
        }
        println!("{context}: {} rows, {halved} times in smaller parts", ids.len());
        full.is(&left, &context);
        let report = full.db().vacuum().unwrap_or_else(|error| panic!("{context}: {error}"));
        full.is(&left, &context);
        if gone.len() > 1 && report.pages_before > 30 {
            full.insert(1).unwrap_or_else(|error| panic!("{context}, {report:?}: {error}"));
            full.db().check().unwrap();
        }
    }
}

/// See [`rows_can_be_deleted`].
#[test]
fn narrow_rows_of_a_full_disk_can_be_deleted() {
    rows_can_be_deleted(Shape::Narrow);
}

/// See [`rows_can_be_deleted`].
#[test]
fn wide_rows_of_a_full_disk_can_be_deleted() {
    rows_can_be_deleted(Shape::Wide);
}

/// See [`rows_can_be_deleted`].
#[test]
fn long_rows_of_a_full_disk_can_be_deleted() {
    rows_can_be_deleted(Shape::Long);
}

/// See [`rows_can_be_deleted`].
#[test]
fn packed_rows_of_a_full_disk_can_be_deleted() {
    rows_can_be_deleted(Shape::Packed);
}

/// Goal: a deletion that is too large for the reserve is undone, the database continues, and the
/// same deletion succeeds in parts; while the reserve is given up, no other transaction takes it.
/// Method: a transaction that deletes all rows of a full disk, with more rows in each turn; if it
/// fails, in parts, some of which are undone first; after each row another transaction tries to
/// insert one.
#[test]
fn too_large_deletion_is_undone() {
    let (mut undone, mut refused) = (0, 0);
    for turn in 0..rounds(2, 60) {
        let mut full = Full::new(Shape::Narrow, (100 + turn * 60) << 10);
        let context = format!("turn {turn}");
        let ids = full.ids();
        let Err(error) = full.delete(&ids) else { continue };
        undone += 1;
        assert!(error.is_full(), "{context}: {error}");
        full.is(&ids, &context);
        let mut left = ids.clone();
        for (at, some) in ids.chunks(full.shape.at_once()).enumerate() {
            let table = table(full.db());
            let mut transaction = full.db().begin(Isolation::ReadCommitted).unwrap();
            let deleted = some.iter().try_for_each(|&id| {
                assert!(transaction.delete(&table, &key(&table, id))?);
                // Other transactions want the space meanwhile.
                match full.insert(1) {
                    Ok(()) => left.push(full.next - 1),
                    Err(error) => {
                        refused += 1;
                        assert!(error.is_full(), "{context}: {error}");
                    }
                }
                Ok(())
            });
            deleted.unwrap_or_else(|error: cairn_table::Error| panic!("{context}: {error}"));
            if at % 3 == 1 {
                transaction.rollback().unwrap();
                full.delete(some).unwrap_or_else(|error| panic!("{context}: {error}"));
            } else {
                transaction.commit(Durability::Sync).unwrap();
            }
            left.retain(|id| !some.contains(id));
        }
        full.is(&left, &context);
        full.db().vacuum().unwrap();
        full.is(&left, &context);
        full.insert(1).unwrap();
    }
    println!("{undone} deletions undone, {refused} inserts refused");
    assert!(undone > 0 && refused > 0);
}

/// Goal: power loss at any operation of a deletion on a full disk, or of its undo, loses no
/// committed rows, restores none that were deleted, and leaves a database that can be opened on the
/// same disk.
/// Method: a deletion that is rolled back, some that commit, a vacuum; at each operation the power
/// fails, and the database is opened under the same quota.
#[test]
fn power_loss_during_deletion_on_full_disk() {
    let own = seed();
    let mut images = 0;
    for turn in 0..rounds(1, 20) {
        let mut full = Full::new(Shape::Wide, (40 + turn * 30 + own % 7) << 10);
        let ids = full.ids();
        let quota = full.disk.used_bytes();
        full.disk.set_quota(Some(quota));
        full.disk.capture_crash_points();
        let mut states = vec![ids.clone()];
        let mut marks = vec![(full.disk.operation_count(), 0)];
        let table = table(full.db());
        let mut transaction = full.db().begin(Isolation::ReadCommitted).unwrap();
        for &id in ids.iter().rev().take(full.shape.at_once()) {
            assert!(transaction.delete(&table, &key(&table, id)).unwrap());
        }
        transaction.rollback().unwrap();
        drop(table);
        for some in ids.chunks(ids.len() / 3 + 1) {
            full.delete(some).unwrap();
            let left = states.last().unwrap().iter().copied().filter(|id| !some.contains(id)).collect();
            states.push(left);
            marks.push((full.disk.operation_count(), states.len() - 1));
        }
        full.db().vacuum().unwrap();
        let points = full.disk.take_crash_points();
        full.db = None;
        // The long form tests each of them; in the short form the seed selects some.
        let step = rounds(13, 1) as usize;
        for point in points.into_iter().skip(own as usize % step).step_by(step) {
            let durable = marks.partition_point(|mark| mark.0 <= point.operation()).max(1) - 1;
            for (image, crashed) in point.images(rounds(0, 4)) {
                images += 1;
                let context = format!("turn {turn}, seed {own}, {image} at {}", point.operation());
                crashed.set_quota(Some(quota));
                let db = open(&crashed).unwrap_or_else(|error| panic!("{context}: {error}"));
                let found: Vec<i32> = content(&db).unwrap()["t"].keys().copied().collect();
                let is_one = states.iter().skip(marks[durable].1).any(|state| *state == found);
                assert!(is_one, "{context}: {} rows", found.len());
                db.check().unwrap_or_else(|error| panic!("{context}: {error}"));
            }
        }
    }
    println!("{images} images");
    assert!(images > 50, "{images}");
}

/// Goal: all rows of a full disk can be deleted at once, however many there are. Method: truncates
/// or drops the table; vacuums; inserts rows again.
#[test]
fn table_of_full_disk_can_be_dropped() {
    for (shape, room) in [(Shape::Narrow, 200), (Shape::Wide, 90), (Shape::Long, 140), (Shape::Packed, 60)] {
        for drops in [false, true] {
            let context = format!("{shape:?}, dropped: {drops}");
            let mut full = Full::new(shape, room << 10);
            let old = table(full.db());
            let mut transaction = full.db().begin(Isolation::ReadCommitted).unwrap();
            let gone = match drops {
                true => transaction.drop_table(&old),
                false => transaction.truncate(&old).map(|_| ()),
            };
            gone.unwrap_or_else(|error| panic!("{context}: {error}"));
            transaction.commit(Durability::Sync).unwrap_or_else(|error| panic!("{context}: {error}"));
            drop(old);
            full.db().vacuum().unwrap_or_else(|error| panic!("{context}: {error}"));
            full.db().check().unwrap();
            if !drops {
                full.is(&[], &context);
                full.insert(3).unwrap_or_else(|error| panic!("{context}: {error}"));
            }
        }
    }
}
