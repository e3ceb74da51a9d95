//! Tests of keyspaces that drop their oldest tables.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use cairn_kv::strategy::{FifoOptions, StrategyOptions};
use cairn_kv::{Background, Db, KeyspaceOptions, RepairOptions, repair};
use cairn_vfs::{Fs, ManualClock, MemFs};

const DAY: u64 = 24 * 60 * 60;

/// A disk, and a clock that the test moves.
struct Machine {
    fs: Arc<dyn Fs>,
    clock: Arc<ManualClock>,
}

impl Machine {
    fn new() -> Machine {
        let clock = ManualClock::new(Duration::from_secs(1_700_000_000));
        Machine { fs: Arc::new(MemFs::new()), clock: Arc::new(clock) }
    }

    fn open(&self, compaction: StrategyOptions) -> Db {
        let options = KeyspaceOptions { compaction, ..KeyspaceOptions::default() };
        let clock: Arc<ManualClock> = Arc::clone(&self.clock);
        let builder = Db::builder("/store").fs(Arc::clone(&self.fs)).clock(clock);
        builder.background(Background::Inline).seed(1).default_keyspace(options).open().unwrap()
    }

    fn open_fifo(&self, bytes_max: u64, ttl_secs: Option<u64>) -> Db {
        self.open(StrategyOptions::Fifo(FifoOptions { bytes_max, ttl_secs }))
    }
}

/// Returns the number of tables in all levels, and their bytes.
fn tables(db: &Db) -> (usize, u64) {
    let levels = &db.stats().keyspaces[0].levels;
    (levels.iter().map(|level| level.tables).sum(), levels.iter().map(|level| level.bytes).sum())
}

/// Goal: the latest writes are dropped last, whatever the clock says, so overwritten values do not
/// come back.
/// Method: a key is overwritten after the clock was set back; then one of the two tables must be
/// dropped, because of size and because of age.
#[test]
fn the_order_of_writes_decides() {
    for by_size in [true, false] {
        let machine = Machine::new();
        let db = machine.open_fifo(u64::MAX, None);
        db.put("key", "old").unwrap();
        db.flush().unwrap();
        machine.clock.jump_back(Duration::from_secs(DAY));
        db.put("key", "new").unwrap();
        db.flush().unwrap();
        let (count, bytes) = tables(&db);
        assert_eq!(count, 2);
        drop(db);
        // According to the clock, the newer table is two hours too old, and the older one not even
        // written yet.
        machine.clock.advance(Duration::from_secs(DAY / 2));
        let db = match by_size {
            true => machine.open_fifo(bytes - 1, None),
            false => machine.open_fifo(u64::MAX, Some(DAY / 2 - 7200)),
        };
        db.wait_idle().unwrap();
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"new"[..]), "by size: {by_size}");
        assert_eq!(tables(&db).0, if by_size { 1 } else { 2 });
        if !by_size {
            machine.clock.advance(Duration::from_secs(DAY));
            db.wait_idle().unwrap();
            assert_eq!(tables(&db).0, 0, "the time of both is over");
        }
    }
}

/// Goal: a table merged from old and new entries is kept as long as the new ones must be kept, even
/// after reopening and repair.
/// Method: two flushes ten days apart, merged; the store is opened with a retention of one day,
/// with and without its manifest.
#[test]
fn merged_tables_are_as_new_as_their_newest_entry() {
    for is_repaired in [false, true] {
        let machine = Machine::new();
        let db = machine.open(StrategyOptions::default());
        for (keys, days) in [(["a", "c"], 10), (["b", "d"], 0)] {
            keys.iter().for_each(|key| db.put(key, "value").unwrap());
            db.flush().unwrap();
            machine.clock.advance(Duration::from_secs(days * DAY));
        }
        db.compact_range(..).unwrap();
        assert_eq!(tables(&db).0, 1);
        drop(db);
        if is_repaired {
            for path in machine.fs.read_dir("/store".as_ref()).unwrap() {
                let name = path.file_name().unwrap().to_string_lossy();
                if name == "CURRENT" || name.starts_with("MANIFEST") {
                    machine.fs.remove(&path).unwrap();
                }
            }
            let options = RepairOptions { fs: Arc::clone(&machine.fs), keyspaces: Vec::new() };
            repair("/store", &options).unwrap();
        }
        let db = machine.open_fifo(u64::MAX, Some(DAY));
        db.wait_idle().unwrap();
        assert_eq!(db.iter().count(), 4, "repaired: {is_repaired}");
        machine.clock.advance(Duration::from_secs(DAY - 1));
        db.wait_idle().unwrap();
        assert_eq!(db.iter().count(), 4);
        machine.clock.advance(Duration::from_secs(1));
        db.wait_idle().unwrap();
        assert_eq!((db.iter().count(), tables(&db).0), (0, 0));
    }
}
