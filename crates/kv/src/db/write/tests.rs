//! What the log refuses, and records that it could not take.
#![allow(clippy::unwrap_used)]

use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::sync::{Arc, lock};
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions, MemFs, Operation, thread};

use crate::{Background, Db, Durability};

/// Goal: a record that the log refuses is the error of its write and of no other. Method: ask for one that is too long, then write.
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

/// Goal: a write is not acknowledged when the record of one before it could not be written, also where its own was before that showed: no recovery would reach it. Method: a record that is held
/// back and fails, after the writer behind it has done its part and waits for its turn.
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
    // As a kill leaves it: the kernel has all that was written.
    let image = Arc::new(fs.crash_point().image(CrashImage::All));
    let left = Db::builder("/store").fs(image).background(Background::Inline).seed(2).open().unwrap();
    let found = ["first", "behind"].map(|key| left.get(key).unwrap().is_some());
    assert_eq!(found, [true, false]);
}
