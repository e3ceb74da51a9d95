//! Tests of logs from which a segment was removed.

use cairn_kv::{Background, Builder, Durability, Keyspace, KeyspaceOptions, Options};
use cairn_vfs::{ErrorKind, FaultOptions};

use super::*;

fn builder(fs: &FaultFs) -> Builder {
    let options =
        Options { background: Background::Inline, wal_segment_bytes: 64 << 10, ..Options::default() };
    Db::builder(DIR).fs(shared(fs)).seed(1).options(options)
}

/// Returns the log's segments, oldest first.
fn segments(fs: &FaultFs) -> Vec<String> {
    let mut all: Vec<String> = names(fs).into_iter().filter(|name| name.ends_with(".wal")).collect();
    all.sort_unstable();
    all
}

/// Removes each segment except the newest and the first `spare`, which are not needed, in turn.
/// Each time the store must report the damage and change nothing.
fn each_is_missed(spare: usize, make: impl Fn() -> FaultFs) {
    let count = segments(&make()).len();
    assert!(count > 2 + spare, "{count} segments");
    for index in spare..count - 1 {
        let fs = make();
        let gone = segments(&fs).swap_remove(index);
        fs.remove(&path_of(&gone)).unwrap();
        let left = segments(&fs);
        let report = cairn_kv::verify_in(&shared(&fs), DIR).unwrap();
        assert_eq!(report.damage.len(), 1, "{gone}: {report:?}");
        for attempt in 0..2 {
            let opened = builder(&fs).keyspace("other", KeyspaceOptions::default()).open();
            let error = opened.map(|_| ()).expect_err(&gone);
            let number = gone.trim_start_matches('0').trim_end_matches(".wal");
            let says = error.to_string().contains(&format!("segment {number} before it is needed"));
            assert!(error.kind() == ErrorKind::Corruption && says, "{gone}, {attempt}: {error}");
            assert_eq!(segments(&fs), left, "{gone}, {attempt}");
        }
    }
}

/// Goal: a missing segment of a store that has never flushed is detected, even the oldest.
/// Method: one segment for each of several openings.
#[test]
fn of_a_store_without_tables() {
    each_is_missed(0, || {
        let fs = FaultFs::new(FaultOptions::seeded(1));
        for key in ["a", "b", "c", "d"] {
            let db = builder(&fs).open().unwrap();
            db.put_with(key, "1", Durability::Sync).unwrap();
        }
        fs
    });
}

/// Goal: a missing segment of a store with tables is detected even if a keyspace was created after
/// a flush. That keyspace does not need the log before its creation, and the store does not need it
/// on its behalf.
#[test]
fn of_a_store_with_a_younger_keyspace() {
    // The segment in which the flush ended is kept but not needed.
    each_is_missed(1, || {
        let fs = FaultFs::new(FaultOptions::seeded(1));
        let fill = |keyspace: &Keyspace| {
            for number in 0..400_u32 {
                keyspace.put(number.to_be_bytes(), [7; 1000]).unwrap();
            }
        };
        let db = builder(&fs).open().unwrap();
        fill(&db.keyspace("default").unwrap());
        db.flush().unwrap();
        drop(db);
        let db = builder(&fs).keyspace("other", KeyspaceOptions::default()).open().unwrap();
        fill(&db.keyspace("other").unwrap());
        fs
    });
}
