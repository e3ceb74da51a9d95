//! Flipped bits on the disk.

use std::path::Path;

use cairn_table::row::Value;
use cairn_table::{Database, Durability, Isolation, Result};
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions};

use super::transactions::{content, def, open};

const PAGE: usize = 4096;
/// Offset of a page's payload, and the first byte of it in a free page.
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

/// Goal: a damaged free page is reported when it is to be allocated, and repaired by a vacuum,
/// because it holds no data. Method: flips a bit of each free page; after the vacuum there is space
/// again, also if the power fails after it, with any part of the writes.
#[test]
fn damaged_free_page_is_reported() {
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
    // After opening: otherwise the double write would repair the pages written last.
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
