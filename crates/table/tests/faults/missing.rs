//! Databases whose log was taken away, or is not all that it was.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_table::row::Value;
use cairn_table::{Database, Durability, Isolation, Result};
use cairn_vfs::{ErrorKind, FaultFs, FaultOptions, Fs, SeededRng};

use super::transactions::{def, key, options};

const LOG: &str = "/db-log";
const COPIES: &str = "/db-pages";

fn open(disk: &FaultFs) -> Result<Database> {
    let mut options = options();
    // What has happened is in one segment, and no page is written before it has to be.
    options.store.frames = 200;
    options.store.log = cairn_wal::Options::default().segment_bytes(1 << 20).background(false);
    options.checkpoint_bytes = u64::MAX;
    let fs: Arc<dyn Fs> = Arc::new(disk.clone());
    Database::open_seeded(&fs, Path::new("/db"), &options, &mut SeededRng::new(7).fork("salt"))
}

/// A database with rows of which some were changed and some removed, closed: all of it is in its pages, and since it was opened in its log.
fn closed() -> FaultFs {
    let disk = FaultFs::new(FaultOptions::seeded(1));
    let db = open(&disk).unwrap();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = transaction.create_table(def("t")).unwrap();
    for id in 0..100 {
        transaction.insert(&table, &[Value::Int(id), Value::Int(0), Value::Text("w")]).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
    db.checkpoint().unwrap();
    for id in 0..100 {
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        let row = [Value::Int(id), Value::Int(1), Value::Text("ww")];
        match id % 3 {
            0 => assert!(transaction.delete(&table, &key(&table, id)).unwrap()),
            _ => assert!(transaction.update(&table, &key(&table, id), &row).unwrap()),
        }
        transaction.commit(Durability::Sync).unwrap();
    }
    drop((table, db));
    disk
}

/// All files and their bytes.
fn files(disk: &FaultFs) -> Vec<(PathBuf, Vec<u8>)> {
    disk.files().into_iter().map(|path| (path.clone(), disk.bytes_of(&path).unwrap())).collect()
}

/// Opens it again and again: each time it is told that the log is not all of it, and nothing is made or changed.
fn is_refused(disk: &FaultFs, context: &str) {
    let before = files(disk);
    for attempt in 0..3 {
        let error = open(disk).map(|_| ()).expect_err(context);
        let told = error.kind() == ErrorKind::Corruption && error.to_string().contains("the log ends at");
        assert!(told, "{context}, {attempt}: {error}");
        assert_eq!(files(disk), before, "{context}, {attempt}");
    }
}

/// Goal: a database without its log is refused, however often it is opened, and nothing is left behind that would pass for a log. Method: take away the log; the
/// log and the double write.
#[test]
fn a_log_that_is_gone() {
    for with_copies in [true, false] {
        let disk = closed();
        for path in disk.read_dir(Path::new(LOG)).unwrap() {
            disk.remove(&path).unwrap();
        }
        if !with_copies {
            disk.remove(Path::new(COPIES)).unwrap();
        }
        is_refused(&disk, &format!("with copies: {with_copies}"));
    }
}
