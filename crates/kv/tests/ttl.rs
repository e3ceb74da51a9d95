//! Keyspaces whose entries expire.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use cairn_kv::{Background, Db, KeyspaceOptions, WriteBatch};
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

/// Goal: entries go when their time is over, for every way of reading, and from the disk with the next compaction; rewritten
/// ones live on; other keyspaces are not touched. Method: a clock that the test moves.
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
