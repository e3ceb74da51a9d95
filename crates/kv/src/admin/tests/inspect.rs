//! Tests of the descriptions of tables and blocks.

use cairn_vfs::sync::Arc;
use cairn_vfs::{ErrorKind, Fs, MemFs, OpenOptions};

use super::{STORE, builder, fill, key, open};
use crate::{Db, Keyspace};

/// Returns all blocks of a table, fetched a few at a time.
fn all_blocks(keyspace: &Keyspace, table: u64) -> Vec<crate::BlockInfo> {
    let mut all = Vec::new();
    loop {
        let some = keyspace.blocks(table, all.len(), 3).unwrap().unwrap();
        if some.is_empty() {
            return all;
        }
        all.extend(some);
    }
}

fn reader(fs: &Arc<dyn Fs>) -> Db {
    builder(fs).read_only(true).open().unwrap()
}

/// Goal: tables and blocks add up to the contents of the store, for the writer and for a read-only
/// handle.
/// Method: a store of several levels with tombstones; its figures are compared with the statistics
/// and with the sums over blocks; blocks are adjacent and ascending.
#[test]
fn tables_and_blocks_add_up() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    fill(&db, 0..600, 1);
    db.compact_range(..).unwrap();
    fill(&db, 100..200, 2);
    db.delete(key(300)).unwrap();
    db.flush().unwrap();
    let tables = db.tables().unwrap();
    let stats = db.stats();
    for (level, stats) in stats.keyspaces[0].levels.iter().enumerate() {
        let here: Vec<_> = tables.iter().filter(|table| table.level == level).collect();
        assert_eq!(here.len(), stats.tables);
        assert_eq!(here.iter().map(|table| table.bytes).sum::<u64>(), stats.bytes);
        assert_eq!(here.iter().map(|table| table.entries).sum::<u64>(), stats.entries);
    }
    assert!(tables.iter().any(|table| table.level > 0) && tables[0].tombstones == 1, "{tables:?}");
    for table in &tables {
        let blocks = all_blocks(&db, table.number);
        assert_eq!(blocks.len() as u64, table.blocks);
        assert_eq!(blocks.iter().map(|block| block.entries).sum::<u64>(), table.entries);
        assert_eq!(blocks.iter().map(|block| block.tombstones).sum::<u64>(), table.tombstones);
        assert_eq!(blocks.iter().map(|block| block.bytes).sum::<u64>(), table.data_bytes);
        assert_eq!(
            (&blocks[0].first_key, &blocks[blocks.len() - 1].last_key),
            (&table.smallest, &table.largest)
        );
        for pair in blocks.windows(2) {
            assert_eq!(pair[0].offset + pair[0].bytes, pair[1].offset);
            assert!(pair[0].last_key < pair[1].first_key);
        }
    }
    assert_eq!(reader(&fs).tables().unwrap(), tables);
    assert!(db.blocks(9999, 0, 1).unwrap().is_none());
}

/// Goal: a damaged block is reported with its file and offset, and the other blocks are still
/// returned.
/// Method: flip a byte of the second block.
#[test]
fn damage_has_a_place() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    fill(&db, 0..200, 1);
    db.flush().unwrap();
    drop(db);
    let table = reader(&fs).tables().unwrap().remove(0);
    let second = reader(&fs).blocks(table.number, 1, 1).unwrap().unwrap().remove(0);
    let file = fs.open(&table.file, OpenOptions::write()).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, second.offset + 20).unwrap();
    file.write_all_at(&[byte[0] ^ 1], second.offset + 20).unwrap();
    let db = reader(&fs);
    assert_eq!(db.blocks(table.number, 0, 1).unwrap().unwrap().len(), 1);
    let error = db.blocks(table.number, 0, 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let text = error.to_string();
    assert!(text.contains(STORE) && text.contains(&format!("offset {}", second.offset)), "{text}");
}
