//! Bits that turn on the disk.

use std::path::Path;

use cairn_table::row::Value;
use cairn_table::{Database, Durability, Isolation, Result};
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions};

use super::transactions::{content, def, open};

const PAGE: usize = 4096;
/// Where a page's contents begin, and what they begin with when it is free.
const PAYLOAD: usize = 16;
const FREE: u8 = 3;

fn fill(db: &Database, name: &str) -> Result<()> {
    let mut transaction = db.begin(Isolation::ReadCommitted)?;
    let table = transaction.create_table(def(name))?;
    for id in 0..200 {
        transaction.insert(&table, &[Value::Int(id), Value::Int(id), Value::Text(&"w".repeat(90))])?;
    }
    transaction.commit(Durability::Sync)
}

/// Goal: a free page that is damaged is told to who needs one, and a vacuum mends it: nothing was
/// on it. Method: a bit of each free page turns; after the vacuum there is room again, also when
/// the power goes behind it, with any part of what was written.
#[test]
fn free_pages() {
    let disk = FaultFs::new(FaultOptions::seeded(1));
    let db = open(&disk).unwrap();
    fill(&db, "gone").unwrap();
    fill(&db, "kept").unwrap();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let gone = transaction.view().catalog().table("public", "gone").unwrap().clone();
    transaction.drop_table(&gone).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    db.checkpoint().unwrap();
    drop((db, gone));
    let path = Path::new("/db");
    let bytes = disk.bytes_of(path).unwrap();
    let free: Vec<usize> =
        (1..bytes.len() / PAGE).filter(|page| bytes[page * PAGE + PAYLOAD] == FREE).collect();
    assert!(free.len() > 5, "{free:?}");
    // Once it is open: before, the double write would mend those that were written last.
    let db = open(&disk).unwrap();
    for page in &free {
        assert!(disk.flip_bit(path, (page * PAGE + PAYLOAD + 6) as u64, 1));
    }
    assert_eq!(fill(&db, "more").unwrap_err().kind(), ErrorKind::Corruption);
    disk.capture_crash_points();
    db.vacuum().unwrap();
    fill(&db, "more").unwrap();
    let report = db.check().unwrap();
    assert_eq!((report.tables, report.lost_pages), (2, 0));
    for point in disk.take_crash_points().into_iter().step_by(4) {
        for image in [CrashImage::None, CrashImage::All, CrashImage::Random(point.operation())] {
            let db = open(&point.image(image)).unwrap();
            assert_eq!(content(&db).unwrap()["kept"].len(), 200);
            db.vacuum().unwrap();
            fill(&db, "again").unwrap();
            db.check().unwrap();
        }
    }
}
