//! Tests of operands that cannot be merged. They affect their key, not the store.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use cairn_kv::{AddU64, Background, Builder, Db, Error, KeyspaceOptions, RepairOptions, repair};
use cairn_vfs::{ErrorKind, Fs, MemFs};

fn builder(fs: &Arc<dyn Fs>, background: Background) -> Builder {
    Db::builder("/store").fs(Arc::clone(fs)).background(background).seed(1)
}

fn counting() -> KeyspaceOptions {
    KeyspaceOptions { merge_operator: Some(Arc::new(AddU64)), ..KeyspaceOptions::default() }
}

fn sum(db: &Db, key: &str) -> Option<u64> {
    db.get(key).unwrap().map(|value| u64::from_le_bytes(value[..].try_into().unwrap()))
}

fn add(db: &Db, key: &str, number: u64) {
    db.merge(key, number.to_le_bytes()).unwrap();
}

/// Goal: operands that the operator refuses fail the reads of their key, but neither flushes nor
/// compactions nor other keys; overwriting the key repairs it.
/// Method: a base and an operand of the wrong length, flushed, compacted and reopened.
#[test]
fn refused_operands() {
    for background in [Background::Inline, Background::Threads(2)] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let open = || builder(&fs, background).default_keyspace(counting()).open().unwrap();
        let check = |db: &Db| {
            for key in ["bad base", "bad operand"] {
                assert_eq!(db.get(key).unwrap_err().kind(), ErrorKind::Invalid, "{key}");
            }
            assert_eq!(sum(db, "good"), Some(3));
            db.put("other", "value").unwrap();
        };
        let db = open();
        db.put("bad base", [1, 2]).unwrap();
        add(&db, "bad base", 1);
        db.delete("bad operand").unwrap();
        db.merge("bad operand", [1]).unwrap();
        db.put("good", 1u64.to_le_bytes()).unwrap();
        add(&db, "good", 2);
        db.flush().unwrap();
        check(&db);
        add(&db, "bad base", 2);
        add(&db, "bad operand", 2);
        db.flush().unwrap();
        db.compact_range(..).unwrap();
        check(&db);
        drop(db);
        let db = open();
        check(&db);
        db.compact_range(..).unwrap();
        check(&db);
        assert!(db.range("bad base"..).next().unwrap().is_err());
        for key in ["bad base", "bad operand"] {
            db.put(key, 5u64.to_le_bytes()).unwrap();
            add(&db, key, 1);
        }
        db.compact_range(..).unwrap();
        assert_eq!((sum(&db, "bad base"), sum(&db, "bad operand")), (Some(6), Some(6)));
    }
}

/// Writes chains of operands of all kinds, none of them flushed: on a value, on nothing, on deleted
/// keys.
fn write_chains(fs: &Arc<dyn Fs>) {
    let db = builder(fs, Background::Inline).default_keyspace(counting()).open().unwrap();
    db.put("on a value", 1u64.to_le_bytes()).unwrap();
    db.put("on a tombstone", 50u64.to_le_bytes()).unwrap();
    db.put("under a range", 50u64.to_le_bytes()).unwrap();
    db.delete("on a tombstone").unwrap();
    db.delete_range("under", "undes").unwrap();
    for key in ["on a value", "on nothing", "on a tombstone", "under a range"] {
        add(&db, key, 2);
        add(&db, key, 3);
    }
}

fn check_chains(fs: &Arc<dyn Fs>) {
    let db = builder(fs, Background::Inline).default_keyspace(counting()).open().unwrap();
    for _ in 0..2 {
        assert_eq!(sum(&db, "on a value"), Some(6));
        for key in ["on nothing", "on a tombstone", "under a range"] {
            assert_eq!(sum(&db, key), Some(5), "{key}");
        }
        db.compact_range(..).unwrap();
    }
}

/// Goal: a store opened without its operator can be written to, flushed and compacted, and loses no
/// operand.
/// Method: chains of all kinds in the log; then one opening without the operator and one with it.
#[test]
fn without_the_operator() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    write_chains(&fs);
    let db = builder(&fs, Background::Inline).open().unwrap();
    db.flush().unwrap();
    assert!(matches!(db.get("on a value"), Err(Error::NoMergeOperator { .. })));
    db.put("other", "value").unwrap();
    db.compact_range(..).unwrap();
    db.compact_range(..).unwrap();
    assert!(matches!(db.get("on a value"), Err(Error::NoMergeOperator { .. })));
    assert_eq!(db.get("other").unwrap().as_deref(), Some(&b"value"[..]));
    db.wait_idle().unwrap();
    drop(db);
    check_chains(&fs);
}

/// Goal: a repair without the operator keeps the operands, too.
/// Method: as above, with a repair that has the manifest, and one that does not.
#[test]
fn repaired_without_the_operator() {
    for lose_manifest in [false, true] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        write_chains(&fs);
        let is_manifest = |path: &Path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("MANIFEST") || name == "CURRENT"
        };
        for path in fs.read_dir(Path::new("/store")).unwrap() {
            if lose_manifest && is_manifest(&path) {
                fs.remove(&path).unwrap();
            }
        }
        let report = repair("/store", &RepairOptions { fs: Arc::clone(&fs), ..RepairOptions::default() });
        assert_eq!(report.unwrap().is_rebuilt, lose_manifest);
        check_chains(&fs);
    }
}
