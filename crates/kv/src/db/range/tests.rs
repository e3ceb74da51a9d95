//! Cursors after errors, and handles of other stores.
#![allow(clippy::unwrap_used)]

use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{ErrorKind, FaultFs, FaultOptions, Fs, MemFs, Operation};

use super::*;
use crate::strategy::{LeveledOptions, StrategyOptions};
use crate::{Background, Db, KeyspaceOptions};

/// Returns all keys, from one end to the other.
fn walk(cursor: &mut DbCursor, backwards: bool) -> Result<Vec<Vec<u8>>> {
    let mut keys = Vec::new();
    if backwards {
        cursor.seek_last()?
    } else {
        cursor.seek_first()?
    }
    while cursor.valid() {
        keys.push(cursor.key().to_vec());
        if backwards { cursor.prev()? } else { cursor.next()? }
    }
    Ok(keys)
}

/// Goal: a cursor that met an error is invalid, stays so when moved by steps, and is usable again
/// after a seek. Method: one table and several; each read of a scan fails in turn, in both
/// directions.
#[test]
fn seeks_after_an_error() {
    for table_bytes in [1 << 20, 2 << 10] {
        let disk = FaultFs::new(FaultOptions::seeded(1));
        let leveled = LeveledOptions { table_bytes, ..LeveledOptions::default() };
        let compaction = StrategyOptions::Leveled(leveled);
        let options = KeyspaceOptions { compaction, block_bytes: 1024, ..KeyspaceOptions::default() };
        let builder = Db::builder("/store").fs(Arc::new(disk.clone()) as Arc<dyn Fs>).cache_bytes(0).seed(1);
        let db = builder.background(Background::Inline).default_keyspace(options).open().unwrap();
        let all: Vec<Vec<u8>> = (0..300u32).map(|number| number.to_be_bytes().to_vec()).collect();
        all.iter().for_each(|key| db.put(key, [7; 40]).unwrap());
        db.compact_range(..).unwrap();
        let tables: usize = db.stats().keyspaces[0].levels.iter().map(|level| level.tables).sum();
        assert_eq!(tables > 1, table_bytes < 1 << 20, "{tables} tables");
        // Opens all tables, which then stay open.
        assert_eq!(db.iter().count(), 300);
        for backwards in [false, true] {
            let mut expected = all.clone();
            if backwards {
                expected.reverse();
            }
            let mut failed = 0;
            loop {
                let mut cursor = db.cursor().unwrap();
                let (reads, injected) = (disk.operation_count_of(Operation::Read), disk.injected_count());
                disk.inject(Rule::nth(Operation::Read, reads + failed, Fault::Io));
                let result = walk(&mut cursor, backwards);
                disk.clear_rules();
                if disk.injected_count() == injected {
                    assert!(result.unwrap() == expected);
                    break;
                }
                failed += 1;
                assert!(result.is_err() && !cursor.valid());
                cursor.next().unwrap();
                cursor.prev().unwrap();
                assert!(!cursor.valid());
                assert!(walk(&mut cursor, backwards).unwrap() == expected, "read {failed}");
            }
            assert!(failed > 1, "{failed}");
        }
    }
}

/// Goal: snapshots and keyspaces of another store are refused instead of being used as this
/// store's, and so is a snapshot taken before a refresh.
/// Method: two stores; everything that takes such a handle.
#[test]
fn handles_of_another_store() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let builder = |path: &str| Db::builder(path).fs(Arc::clone(&fs)).background(Background::Inline).seed(1);
    let (here, there) = (builder("/here").open().unwrap(), builder("/there").open().unwrap());
    for db in [&here, &there] {
        db.put("key", "value").unwrap();
    }
    let snapshot = there.snapshot();
    let invalid = |error: crate::Error| assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    invalid(here.get_at("key", &snapshot).unwrap_err());
    invalid(here.multi_get_at(&["key"], &snapshot).unwrap_err());
    invalid(here.cursor_in(.., Some(&snapshot), &ReadOptions::default()).unwrap_err());
    let mut range = here.range_at(.., &snapshot);
    invalid(range.next().unwrap().unwrap_err());
    assert!(range.next().is_none());
    let mut transaction = here.transaction();
    invalid(transaction.get(&there, "key").unwrap_err());
    invalid(transaction.get_for_update(&there, "key").unwrap_err());
    invalid(transaction.put(&there, "key", "other").unwrap_err());
    invalid(transaction.delete(&there, "key").unwrap_err());
    invalid(transaction.range(&there, ..).unwrap_err());
    transaction.put(&here, "key", "other").unwrap();
    transaction.commit().unwrap();
    assert_eq!(there.get_at("key", &snapshot).unwrap().as_deref(), Some(&b"value"[..]));

    let mut reader = builder("/here").read_only(true).open().unwrap();
    let before = reader.snapshot();
    reader.refresh().unwrap();
    invalid(reader.get_at("key", &before).unwrap_err());
}
