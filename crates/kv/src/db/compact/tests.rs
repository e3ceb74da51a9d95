//! Compactions beside tables that are being taken in.
#![allow(clippy::unwrap_used)]

use cairn_vfs::sync::{Arc, lock};
use cairn_vfs::{Fs, MemFs, OpenOptions, thread};

use crate::batch::DEFAULT;
use crate::file::Ingested;
use crate::kind::Kind;
use crate::strategy::{LeveledOptions, StrategyOptions};
use crate::table::{TableOptions, TableWriter};
use crate::version::{FileName, NewTable, VersionEdit};
use crate::{Background, Db, KeyspaceOptions};

/// Goal: a compaction whose inputs have a number that is not visible yet waits for it: a snapshot that is taken meanwhile finds what
/// lies below them. Method: an ingest by hand, over an older entry, that stops between its table's install and the number; a
/// compaction of both begins there.
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
    // Held until the end by who ingests; but who waits for a number can be told from who works, and who waits for a lock can not.
    drop(commit);

    let job = {
        let (inner, keyspace) = (Arc::clone(&inner), Arc::clone(&keyspace));
        let work = move || {
            let claimed = inner.claim_compaction(&keyspace).unwrap();
            inner.compact(&keyspace, claimed).unwrap();
        };
        thread::spawn("compaction", work).unwrap()
    };
    // Until it waits, or has done what it must not.
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
