//! Compactions concurrent with an ingestion, and in a store that is closing.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use cairn_vfs::sync::{Arc, lock};
use cairn_vfs::{Clock, ErrorKind, Fs, ManualClock, MemFs, OpenOptions, thread};

use crate::batch::DEFAULT;
use crate::file::Ingested;
use crate::kind::Kind;
use crate::strategy::{LeveledOptions, StrategyOptions};
use crate::table::{TableOptions, TableWriter};
use crate::version::{FileName, NewTable, VersionEdit};
use crate::{Background, Db, KeyspaceOptions};

/// Goal: a compaction whose inputs have a sequence number that is not visible yet waits for it, so
/// that a snapshot taken meanwhile finds the entries below them. Method: a manual ingestion over an
/// older entry pauses between the installation of its table and the publication of the number; a
/// compaction of both tables starts in between.
#[test]
fn inputs_are_visible_before_snapshots_are_listed() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let leveled = LeveledOptions { level_zero_runs_min: 2, ..LeveledOptions::default() };
    let compaction = StrategyOptions::Leveled(leveled);
    let options = KeyspaceOptions { compaction, ..KeyspaceOptions::default() };
    let builder = Db::builder("/store").fs(Arc::clone(&fs)).background(Background::Inline).seed(1);
    let db = builder.default_keyspace(options).open().unwrap();
    db.put("key", "old").unwrap();
    db.flush().unwrap();

    let (inner, keyspace) = (Arc::clone(&db.core.inner), db.core.inner.keyspace(DEFAULT).unwrap());
    let number = inner.versions.new_file_number();
    let file = fs.open(&FileName::Table(number).path(&inner.path), OpenOptions::create_new()).unwrap();
    let mut writer = TableWriter::new(Arc::from(file), number, TableOptions::default()).unwrap();
    writer.add(b"key", 0, Kind::Put, b"new").unwrap();
    let mut meta = writer.finish().unwrap();
    let mut commit = lock(&inner.commit);
    let seqno = commit.next_seqno;
    (meta.seqnos, meta.ingested) = ((seqno, seqno), Some(Ingested { seqno, number }));
    let mut edit = VersionEdit::default();
    edit.keyspace(DEFAULT).added.push(NewTable { level: 0, run: number, meta });
    inner.install(&keyspace, edit, &[]).unwrap();
    commit.next_seqno = seqno + 1;
    // A real ingestion holds the commit lock until the end. Here it is released early, so that the
    // compaction waits for the number, which the test can observe, and not for the lock, which it
    // cannot.
    drop(commit);

    let job = {
        let (inner, keyspace) = (Arc::clone(&inner), Arc::clone(&keyspace));
        let work = move || {
            let claimed = inner.claim_compaction(&keyspace).unwrap();
            inner.compact(&keyspace, claimed).unwrap();
        };
        thread::spawn("compaction", work).unwrap()
    };
    // Until the compaction waits, or has wrongly finished.
    while inner.order.sleepers() == 0 && inner.counters.compactions.load(super::Relaxed) == 0 {
        thread::yield_now();
    }
    let snapshot = db.snapshot();
    assert!(snapshot.seqno() < seqno);
    inner.order.publish(seqno, seqno);
    job.join().unwrap();
    assert_eq!(inner.counters.compactions.load(super::Relaxed), 1);
    assert_eq!(db.get_at("key", &snapshot).unwrap().as_deref(), Some(&b"old"[..]));
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"new"[..]));
}

/// Goal: a compaction soon ends when the store is closing, whether it waits for the rate limit or
/// finds only deleted entries. Method: megabytes at 64 KiB per second, and thousands of entries
/// under a range tombstone; the store is already closing when the compaction starts. The clock
/// advances with each sleep.
#[test]
fn a_compaction_is_given_up() {
    for survives in [true, false] {
        let (fs, clock) = (Arc::new(MemFs::new()), Arc::new(ManualClock::new(Duration::ZERO)));
        let leveled =
            LeveledOptions { level_zero_runs_min: 2, level_zero_bytes: 1, ..LeveledOptions::default() };
        let compaction = StrategyOptions::Leveled(leveled);
        let options = KeyspaceOptions { compaction, ..KeyspaceOptions::default() };
        let builder = Db::builder("/store").fs(Arc::clone(&fs) as _).clock(Arc::clone(&clock) as _).seed(1);
        let builder = builder.background(Background::Inline).rate_limit_bytes(64 << 10);
        let db = builder.default_keyspace(options).open().unwrap();
        let (inner, keyspace) = (Arc::clone(&db.core.inner), db.core.inner.keyspace(DEFAULT).unwrap());
        for round in 0..2u8 {
            for number in 0..5_000u32 {
                db.put([&number.to_be_bytes()[..], &[round]].concat(), [7; 400]).unwrap();
            }
            if round == 1 && !survives {
                db.delete_range([0u8], [255u8]).unwrap();
            }
            // Flushes without the compaction that then becomes due.
            inner.seal_only(&keyspace, None).unwrap();
            inner.flush_sealed(&keyspace).unwrap();
        }
        let tables = || {
            let names = fs.read_dir(db.path()).unwrap();
            names.iter().filter(|name| name.extension().is_some_and(|it| it == "table")).count()
        };
        assert_eq!(tables(), 2);
        let claimed = inner.claim_compaction(&keyspace).unwrap();
        inner.background.stop();
        let error = inner.compact(&keyspace, claimed).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        assert!(clock.now() < Duration::from_secs(1), "{:?}", clock.now());
        assert_eq!(tables(), 2);
    }
}
