//! Writes whose log record is refused or fails.
#![allow(clippy::unwrap_used)]

use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::sync::{Arc, lock};
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions, MemFs, Operation, thread};

use crate::kind::{Kind, SEQNO_MAX, Seqno};
use crate::{Background, Db, Durability, Error, KeyspaceOptions, Options, WriteBatch};

/// Goal: a record that the log refuses fails its own write only. Method: reserve one that is too
/// long, then write.
#[test]
fn a_refused_record_poisons_nothing() {
    let builder = Db::builder("/store").fs(Arc::new(MemFs::new())).background(Background::Inline).seed(1);
    let db = builder.open().unwrap();
    let inner = &db.core.inner;
    let refused = inner.reserve(&mut lock(&inner.commit), cairn_wal::MAX_RECORD_BYTES + 1);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// Goal: a write is not acknowledged if an earlier record could not be written, even if its own
/// record was written before that failure showed, because no recovery would reach it. Method: an
/// earlier record is held back, and fails after a later writer has done its part and waits for its
/// turn.
#[test]
fn a_record_behind_one_that_fails_is_not_acknowledged() {
    let fs = FaultFs::new(FaultOptions::seeded(1));
    let builder = Db::builder("/store").fs(Arc::new(fs.clone())).background(Background::Inline).seed(1);
    let db = builder.open().unwrap();
    let inner = &db.core.inner;
    db.put_with("first", "value", Durability::Buffered).unwrap();
    let (mut slot, seqno) = {
        let mut commit = lock(&inner.commit);
        let slot = inner.reserve(&mut commit, 100).unwrap();
        commit.next_seqno += 1;
        (Some(slot), commit.next_seqno - 1)
    };
    thread::scope(|scope| {
        let behind = scope.spawn(|| db.put_with("behind", "value", Durability::Buffered));
        while inner.order.sleepers() == 0 {
            thread::yield_now();
        }
        fs.inject(Rule::nth(Operation::Write, fs.operation_count_of(Operation::Write), Fault::Io));
        let log = inner.check_writable().unwrap();
        let logged = slot.take().unwrap().commit();
        inner.publish(log, seqno..=seqno, logged, Ok(()), Durability::Buffered).unwrap_err();
        assert_eq!(behind.join().unwrap().unwrap_err().kind(), ErrorKind::Poisoned);
    });
    assert_eq!(db.put("after", "value").unwrap_err().kind(), ErrorKind::Poisoned);
    // The state after a kill: the kernel has everything that was written.
    let image = Arc::new(fs.crash_point().image(CrashImage::All));
    let left = Db::builder("/store").fs(image).background(Background::Inline).seed(2).open().unwrap();
    let found = ["first", "behind"].map(|key| left.get(key).unwrap().is_some());
    assert_eq!(found, [true, false]);
}

/// Goal: a commit also checks writes made between its first check and its turn. Method: a write
/// from within the first check, which the second check must notice, and a commit without concurrent
/// writes.
#[test]
fn a_commit_looks_twice() {
    let builder = Db::builder("/store").fs(Arc::new(MemFs::new())).background(Background::Inline).seed(1);
    let db = builder.open().unwrap();
    let inner = &db.core.inner;
    for writes in [true, false] {
        let mut batch = WriteBatch::new();
        batch.put("key", "value").unwrap();
        let check = |looked: Option<Seqno>| match looked {
            None if writes => db.put("other", "meanwhile"),
            Some(looked) if looked < inner.order.visible() => Err(Error::invalid("somebody has written")),
            _ => Ok(()),
        };
        let written = inner.write_batch_if(&batch, Durability::Buffered, Some(check));
        let refused = written.err().map(|error| error.kind());
        assert_eq!(refused, writes.then_some(ErrorKind::Invalid));
        assert_eq!(db.get("key").unwrap().is_none(), writes);
    }
}

/// Goal: readers never see a part of a batch whose insertion failed, nor any later write, and no
/// thread waits for either.
/// Method: one operation of a batch of two is inserted by hand and the other fails, while a writer
/// waits behind it; then every kind of read, a flush and a checkpoint. The copy has neither the
/// batch nor the later write.
#[test]
fn a_batch_that_is_inserted_in_part_is_not_seen() {
    let fs = Arc::new(MemFs::new());
    let open = || Db::builder("/store").fs(fs.clone()).background(Background::Inline).seed(1).open();
    let db = open().unwrap();
    let inner = &db.core.inner;
    db.put("a", "old").unwrap();
    let first = {
        let mut commit = lock(&inner.commit);
        commit.next_seqno += 2;
        commit.next_seqno - 2
    };
    thread::scope(|scope| {
        let behind = scope.spawn(|| db.put("c", "behind"));
        while inner.order.sleepers() == 0 {
            thread::yield_now();
        }
        let active = Arc::clone(&db.state.view.load().active);
        active.insert_at(None, b"a", first, Kind::Put, b"half").unwrap();
        let failed = Err(Error::invalid("no room for the second"));
        let log = inner.check_writable().unwrap();
        let numbers = first..=first + 1;
        let logged = Ok(cairn_wal::Lsn::default());
        inner.publish(log, numbers, logged, failed, Durability::Buffered).unwrap_err();
        assert_eq!(behind.join().unwrap().unwrap_err().kind(), ErrorKind::Poisoned);
    });
    let old = Some(&b"old"[..]);
    assert_eq!(db.get("a").unwrap().as_deref(), old);
    assert_eq!(db.multi_get(&["a"]).unwrap()[0].as_deref(), old);
    let all: Vec<_> = db.iter().map(|pair| pair.unwrap()).collect();
    assert_eq!(all, [(b"a".to_vec(), b"old".to_vec())]);
    assert_eq!(db.get_at("a", &db.snapshot()).unwrap().as_deref(), old);
    assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::Poisoned);
    db.checkpoint("/copy").unwrap();
    drop(db);
    let copy = Db::builder("/copy").fs(fs.clone()).background(Background::Inline).open().unwrap();
    assert_eq!((copy.get("a").unwrap().as_deref(), copy.get("c").unwrap()), (old, None));
}

/// Goal: when the sequence numbers run out, a batch is refused before any of it is written. Method:
/// with two numbers left, a batch of three is refused and one of two fits.
#[test]
fn numbers_come_to_an_end() {
    let builder = Db::builder("/store").fs(Arc::new(MemFs::new())).background(Background::Inline).seed(1);
    let db = builder.open().unwrap();
    let inner = &db.core.inner;
    lock(&inner.commit).next_seqno = SEQNO_MAX - 2;
    inner.order.restart(SEQNO_MAX - 3);
    let mut batch = WriteBatch::new();
    for key in ["a", "b", "c"] {
        batch.put(key, "value").unwrap();
    }
    assert_eq!(db.write(&batch).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(db.iter().count(), 0);
    let mut batch = WriteBatch::new();
    batch.put("a", "value").unwrap();
    batch.put("b", "value").unwrap();
    db.write(&batch).unwrap();
    assert_eq!(db.put("d", "value").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(db.iter().count(), 2);
}

/// Goal: the limit on all memtables together holds, and a write does not pay for other keyspaces.
/// Method: a hundred keyspaces and 3000 writes; the number of iterations over all keyspaces is
/// compared with the number of writes.
#[test]
fn a_write_does_not_look_at_all_keyspaces() {
    let options =
        Options { memtable_bytes_max: Some(1 << 20), background: Background::Inline, ..Options::default() };
    let db = Db::builder("/store").fs(Arc::new(MemFs::new())).options(options).seed(1).open().unwrap();
    let keyspaces: Vec<_> = (0..100)
        .map(|number| db.create_keyspace(&format!("k{number}"), KeyspaceOptions::default()).unwrap())
        .collect();
    let walks = || db.core.inner.walks.load(cairn_vfs::sync::atomic::Ordering::Relaxed);
    let before = walks();
    for number in 0..3000u32 {
        keyspaces[number as usize % 100].put(number.to_be_bytes(), [7; 1000]).unwrap();
    }
    let (walks, flushes) = (walks() - before, db.stats().flushes.0);
    assert!(flushes > 20, "{flushes}");
    assert!(walks < 3000, "{walks} walks over all keyspaces for 3000 writes and {flushes} flushes");
    let stats = db.stats();
    let held: u64 = stats.keyspaces.iter().map(|keyspace| keyspace.memtable_bytes).sum();
    assert!(held < 3 << 20, "{held} bytes in memtables");
}
