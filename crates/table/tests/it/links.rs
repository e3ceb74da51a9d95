//! Databases that are opened through links.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use cairn_table::row::{Type, Value};
use cairn_table::{Database, Durability, Error, Isolation, Result};
use cairn_vfs::{ErrorKind, Fs, StdFs};

use crate::{def, get, options, set};

fn open(path: &Path) -> Result<Database> {
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    Database::open(&fs, path, &options())
}

/// Goal: a symbolic link is equivalent to its target, whichever directories they are in: it finds
/// the log there, shares the lock, and creates the target if that does not exist. A hard link has
/// no log beside it, and is refused instead of being opened without. Method: rows that are written
/// through one name and read through the others.
#[test]
fn symbolic_link_is_its_target() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir(at("data")).unwrap();
    std::fs::create_dir(at("links")).unwrap();
    // Through two links, one of them relative; the target does not exist yet.
    symlink("../data/real.db", at("links/second.db")).unwrap();
    symlink(at("links/second.db"), at("first.db")).unwrap();
    symlink(at("data"), at("folder")).unwrap();
    let names = [at("first.db"), at("data/real.db"), at("links/second.db"), at("folder/real.db")];
    let db = open(&names[0]).unwrap();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = transaction.create_table(def("t", &[("id", Type::Int), ("v", Type::Int)], &[0])).unwrap();
    transaction.insert(&table, &[Value::Int(1), Value::Int(0)]).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    for name in &names {
        let busy = open(name).map(|_| ()).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::Busy, "{}: {busy}", name.display());
    }
    drop((table, db));
    for (turn, name) in names.iter().enumerate() {
        let db = open(name).unwrap_or_else(|error| panic!("{}: {error}", name.display()));
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        let table = Arc::clone(transaction.view().catalog().table("public", "t").unwrap());
        assert_eq!(get(&transaction, &table, 1), Some(turn as i32), "{}", name.display());
        assert!(set(&mut transaction, &table, 1, turn as i32 + 1).unwrap());
        transaction.commit(Durability::Sync).unwrap();
        db.check().unwrap();
    }
    std::fs::hard_link(at("data/real.db"), at("data/hard.db")).unwrap();
    let refused = open(&at("data/hard.db")).map(|_| ()).unwrap_err();
    assert!(matches!(&refused, Error::Corruption { what, .. } if what.contains("hard.db-log")), "{refused}");
    let mut found: Vec<String> = Vec::new();
    for folder in ["", "links", "data"] {
        let entries = std::fs::read_dir(at(folder)).unwrap();
        found.extend(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()));
    }
    found.sort();
    let expected = [
        "data",
        "first.db",
        "folder",
        "hard.db",
        "links",
        "real.db",
        "real.db-log",
        "real.db-pages",
        "second.db",
    ];
    assert_eq!(found, expected, "nothing is beside a link");
}
