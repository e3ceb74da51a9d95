//! Tests of keyspaces whose entries expire.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use cairn_kv::strategy::{FifoOptions, StrategyOptions};
use cairn_kv::{Background, CompactionFilter, Db, FilterDecision, KeyspaceOptions, WriteBatch};
use cairn_vfs::{Fs, ManualClock, MemFs};

fn open(fs: &Arc<dyn Fs>, clock: &Arc<ManualClock>, ttl: Option<u64>) -> cairn_kv::Result<Db> {
    let options = KeyspaceOptions {
        memtable_bytes: 16 << 10,
        ttl: ttl.map(Duration::from_secs),
        ..KeyspaceOptions::default()
    };
    let clock: Arc<ManualClock> = Arc::clone(clock);
    let builder =
        Db::builder("/store").fs(Arc::clone(fs)).clock(clock).background(Background::Inline).seed(1);
    builder.keyspace("sessions", options).open()
}

/// Goal: expired entries disappear from all kinds of reads, and from the disk with the next
/// compaction; rewritten ones live on; other keyspaces are not affected.
/// Method: a clock that the test moves.
#[test]
fn entries_expire() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_000_000)));
    let db = open(&fs, &clock, Some(60)).unwrap();
    let sessions = db.keyspace("sessions").unwrap();
    db.put("other", "stays").unwrap();
    let mut batch = WriteBatch::new();
    for number in 0..100u32 {
        let (key, value) = (format!("s{number:03}"), vec![b'v'; 20]);
        if number % 2 == 0 {
            sessions.put(&key, &value).unwrap();
        } else {
            batch
                .add(sessions.id(), cairn_kv::Operation::Put { key: key.as_bytes(), value: &value })
                .unwrap();
        }
    }
    db.write(&batch).unwrap();
    for flushed in [false, true] {
        if flushed {
            sessions.flush().unwrap();
        }
        assert_eq!(sessions.get("s001").unwrap().unwrap().len(), 20);
        assert_eq!(sessions.iter().filter(|pair| pair.as_ref().unwrap().1.len() == 20).count(), 100);
        assert_eq!(sessions.iter().rev().filter(|pair| pair.as_ref().unwrap().1.len() == 20).count(), 100);
    }
    clock.advance(Duration::from_secs(59));
    sessions.put("s007", "again").unwrap();
    assert_eq!(sessions.iter().count(), 100);
    clock.advance(Duration::from_secs(1));
    assert_eq!(sessions.get("s001").unwrap(), None);
    assert_eq!(sessions.get("s007").unwrap().as_deref(), Some(&b"again"[..]));
    assert_eq!((sessions.iter().count(), sessions.iter().rev().count()), (1, 1));
    assert_eq!(sessions.multi_get(&["s001", "s007"]).unwrap().iter().flatten().count(), 1);
    sessions.compact_range(..).unwrap();
    let entries = |db: &Db| db.stats().keyspaces[1].levels.iter().map(|level| level.entries).sum::<u64>();
    assert_eq!(entries(&db), 1);
    drop((sessions, db));
    let refused = open(&fs, &clock, None).unwrap_err();
    assert!(refused.to_string().contains("60 seconds"), "{refused}");
    let db = open(&fs, &clock, Some(60)).unwrap();
    clock.advance(Duration::from_secs(60));
    assert_eq!(db.keyspace("sessions").unwrap().iter().count(), 0);
    assert_eq!(db.get("other").unwrap().as_deref(), Some(&b"stays"[..]));
}

/// Goal: a keyspace with a time to live that an opening does not name keeps it, whatever the
/// default keyspace does with long values: these are read back as written, and expire.
/// Method: a default keyspace with blob files, a long value, a flush, a clock that the test moves.
#[test]
fn long_values_of_a_keyspace_that_is_not_named() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_000_000)));
    let open = || {
        let default = KeyspaceOptions { blob_bytes_min: Some(1024), ..KeyspaceOptions::default() };
        let clock: Arc<ManualClock> = Arc::clone(&clock);
        let builder = Db::builder("/store").fs(Arc::clone(&fs)).clock(clock).background(Background::Inline);
        builder.seed(1).default_keyspace(default).open().unwrap()
    };
    let ttl = Some(Duration::from_secs(3600));
    open().create_keyspace("sessions", KeyspaceOptions { ttl, ..KeyspaceOptions::default() }).unwrap();
    let db = open();
    let sessions = db.keyspace("sessions").unwrap();
    db.put("long", vec![b'v'; 2000]).unwrap();
    sessions.put("long", vec![b'v'; 2000]).unwrap();
    db.flush().unwrap();
    sessions.flush().unwrap();
    for keyspace in [&*db, &sessions] {
        let expected = vec![(b"long".to_vec(), vec![b'v'; 2000])];
        assert_eq!(keyspace.get("long").unwrap().unwrap().len(), 2000);
        assert_eq!(keyspace.iter().map(Result::unwrap).collect::<Vec<_>>(), expected);
        assert_eq!(keyspace.iter().rev().map(Result::unwrap).collect::<Vec<_>>(), expected);
    }
    let blobs: Vec<u64> = db.stats().keyspaces.iter().map(|keyspace| keyspace.blob_bytes).collect();
    assert!(blobs[0] > 0 && blobs[1] == 0, "{blobs:?}");
    clock.advance(Duration::from_secs(3600));
    assert_eq!(sessions.get("long").unwrap(), None);
    assert_eq!((sessions.iter().count(), sessions.iter().rev().count(), db.iter().count()), (0, 0, 1));
}

/// A filter that removes everything.
#[derive(Debug)]
struct RemoveAll;

impl CompactionFilter for RemoveAll {
    fn name(&self) -> &str {
        "remove all"
    }

    fn filter(&self, _: usize, _: &[u8], _: &[u8]) -> FilterDecision {
        FilterDecision::Remove
    }
}

/// Goal: options of the default keyspace that drop entries do not apply to a keyspace that the
/// opening does not name.
/// Method: a FIFO default with room for nothing, and a filter that removes everything.
#[test]
fn nothing_is_dropped_from_a_keyspace_that_is_not_named() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let open = |default: KeyspaceOptions| {
        let builder = Db::builder("/store").fs(Arc::clone(&fs)).background(Background::Inline).seed(1);
        builder.default_keyspace(default).open().unwrap()
    };
    let made = open(KeyspaceOptions::default());
    made.create_keyspace("kept", KeyspaceOptions::default()).unwrap();
    drop(made);
    let fifo = StrategyOptions::Fifo(FifoOptions { bytes_max: 1, ttl_secs: None });
    let filter: Option<Arc<dyn CompactionFilter>> = Some(Arc::new(RemoveAll));
    for default in [
        KeyspaceOptions { compaction: fifo, ..KeyspaceOptions::default() },
        KeyspaceOptions { compaction_filter: filter, ..KeyspaceOptions::default() },
    ] {
        let db = open(default);
        let kept = db.keyspace("kept").unwrap();
        for keyspace in [&*db, &kept] {
            keyspace.put("key", "value").unwrap();
            keyspace.compact_range(..).unwrap();
        }
        assert_eq!((db.iter().count(), kept.iter().count()), (0, 1));
    }
}
