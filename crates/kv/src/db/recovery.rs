//! Replay of the log when a store is opened.
//!
//! Records are replayed in order into the memtables of those keyspaces whose tables do not contain
//! them yet. A memtable that becomes full is flushed during the replay, so memory is bounded by the
//! memtables and not by the log. At the end, the remaining entries stay in memory and in the log:
//! opening and closing a store repeatedly costs no flush.

use cairn_vfs::sync::{Arc, lock};
use cairn_vfs::thread::{self, ScopedJoinHandle};
use cairn_vfs::{Bug, Rng, ensure};
use cairn_wal::{Log, Lsn, Recovery};

use crate::batch::{Malformed, Record};
use crate::db::background::catch_panic;
use crate::db::cross_check::{check_note, log_options};
use crate::db::inner::Inner;
use crate::db::keyspace_state::KeyspaceState;
use crate::db::write::insert;
use crate::kind::{SEQNO_MAX, Seqno};
use crate::options::Background;
use crate::version::Position;
use crate::{Error, Result};

/// A keyspace during replay.
struct Replayed {
    keyspace: Arc<KeyspaceState>,
    /// Records up to this position are in the keyspace's tables.
    start: Lsn,
}

/// Replays the log, then opens it for writing unless the store is read-only.
pub(crate) fn recover(inner: &Arc<Inner>, rng: &mut dyn Rng) -> Result<()> {
    debug_assert!(inner.log.get().is_none(), "the log is replayed while writers append to it");
    let states = inner.versions.keyspaces();
    let mut all: Vec<Option<Replayed>> = Vec::new();
    for (id, state) in &states {
        assert!(all.len() <= id.0 as usize, "keyspaces are listed by id, each once");
        all.resize_with(id.0 as usize + 1, || None);
        all[id.0 as usize] = Some(Replayed { keyspace: inner.keyspace(*id)?, start: state.log_start.into() });
    }
    let options = log_options(inner.versions.log());
    let mut log = Recovery::open(&inner.fs, &inner.path, inner.versions.log_start(), &options)?;
    let last = thread::scope(|scope| replay_all(inner, &mut log, &mut all, scope))?;
    let stored = inner.versions.last_seqno();
    ensure!(last >= stored, "writes go on after number {last}, but tables have numbers up to {stored}");
    let mut tail = log.finish()?;
    {
        let mut commit = lock(&inner.commit);
        commit.next_seqno = last + 1;
        commit.end = commit.end.max(tail.end());
    }
    inner.order.restart(last);
    if let Some(budget) = &inner.budget {
        for keyspace in inner.all_keyspaces() {
            let view = keyspace.view.load();
            if !view.active.is_empty() {
                budget.written(keyspace.id, &view.active);
            }
        }
    }
    if inner.options.read_only {
        return check_note(&inner.versions, tail.note());
    }
    // Entries that are now in tables need not be made durable a second time.
    tail.release_before(inner.versions.log_start());
    let options = cairn_wal::Options::default()
        .segment_bytes(inner.options.wal_segment_bytes as u32)
        .background(inner.options.background != Background::Inline);
    let Position { number, end } = inner.versions.position();
    tail.set_note([number, end]);
    let (log, appender) = Log::open(&inner.fs, &options, tail, rng)?;
    {
        let mut commit = lock(&inner.commit);
        ensure!(commit.appender.is_none(), "the log has an appender before it is opened");
        ensure!(commit.next_seqno == last + 1, "write {} follows {last}", commit.next_seqno);
        commit.appender = Some(appender);
    }
    ensure!(inner.log.set(log).is_ok(), "the log was opened twice");
    Ok(())
}

/// Replays all records and returns the last sequence number. Flushes full memtables in parallel
/// with the replay of the following records.
fn replay_all<'scope, 'env>(
    inner: &'env Arc<Inner>,
    log: &mut Recovery,
    all: &mut [Option<Replayed>],
    scope: &'scope thread::Scope<'scope, 'env>,
) -> Result<Seqno> {
    let mut last = inner.versions.last_seqno();
    let mut flushing: Option<ScopedJoinHandle<'scope, Result<()>>> = None;
    while let Some(record) = log.next()? {
        let lsn = record.lsn;
        last = last.max(replay(inner, all, lsn, record.payload)?);
        {
            let mut commit = lock(&inner.commit);
            debug_assert!(commit.end < lsn, "a record that ends at {lsn} follows position {}", commit.end);
            debug_assert!(commit.next_seqno <= last + 1, "numbers go back to {last}");
            commit.next_seqno = last + 1;
            commit.end = lsn;
        }
        if inner.options.read_only || !is_any_full(all) {
            continue;
        }
        join(flushing.take())?;
        // ORDER: before the flush, as for every flush. After the process was killed, the end of the
        // log may be in the page cache only.
        if has_others(all) {
            log.sync()?;
        }
        let sealed = seal_full(inner, all, last)?;
        debug_assert!(!sealed.is_empty(), "a memtable was full, but is not sealed");
        let flush = move || {
            catch_panic("a flush", || sealed.iter().try_for_each(|keyspace| inner.flush_sealed(keyspace)))
        };
        if inner.background.is_inline() {
            flush()?;
            continue;
        }
        let spawned = thread::spawn_scoped(scope, "cairn-kv-recovery", flush);
        flushing = Some(spawned.map_err(|source| inner.thread_error(source))?);
    }
    join(flushing)?;
    Ok(last)
}

fn join(flushing: Option<ScopedJoinHandle<'_, Result<()>>>) -> Result<()> {
    let panicked = |_| Err(Bug::new("a flush panicked while the store was opened").into());
    flushing.map_or(Ok(()), |flushing| flushing.join().unwrap_or_else(panicked))
}

/// Inserts the operations of a record into the keyspaces that lack them. Returns the sequence
/// number of the last operation.
fn replay(inner: &Inner, all: &mut [Option<Replayed>], lsn: Lsn, payload: &[u8]) -> Result<Seqno> {
    let damaged = |what: &str| {
        let what = format!("the log record that ends at {lsn} has {what}");
        Error::corruption(&inner.path, lsn.get(), what)
    };
    let record = Record::parse(payload, &inner.path, lsn.get())?;
    let count = u64::from(record.count);
    if record.seqno == 0 || count == 0 || record.seqno > SEQNO_MAX - count {
        return Err(damaged("invalid sequence numbers"));
    }
    let last = record.seqno + count - 1;
    let mut seqno = record.seqno;
    let keyspaces_ever = inner.versions.keyspaces_ever();
    for operation in record.operations {
        let (id, operation) = operation.map_err(|Malformed(what)| damaged(what))?;
        if seqno > last {
            return Err(damaged("more operations than its header says"));
        }
        if id.0 >= keyspaces_ever {
            let what = format!(
                "it has no keyspace {}, but the log has writes to it: the manifest is older than the log",
                id.0
            );
            return Err(Error::corruption(&inner.versions.path(), 0, what));
        }
        // A keyspace that is missing here was dropped later.
        if let Some(Some(replayed)) = all.get(id.0 as usize)
            && lsn > replayed.start
        {
            insert(&replayed.keyspace.view.load().active, seqno, operation, None)?;
        }
        seqno += 1;
    }
    if seqno != last + 1 {
        return Err(damaged("fewer operations than its header says"));
    }
    Ok(last)
}

fn is_full(keyspace: &KeyspaceState) -> bool {
    keyspace.view.load().active.allocated_bytes() as u64 > keyspace.options.memtable_bytes
}

/// Returns true if more than one keyspace has replayed writes in memory. The log must then be
/// durable before one of them is flushed.
fn has_others(all: &[Option<Replayed>]) -> bool {
    let has_writes = |replayed: &&Replayed| {
        let view = replayed.keyspace.view.load();
        !view.active.is_empty() || !view.sealed.is_empty()
    };
    all.iter().flatten().filter(has_writes).count() > 1
}

fn is_any_full(all: &[Option<Replayed>]) -> bool {
    all.iter().flatten().any(|replayed| is_full(&replayed.keyspace))
}

/// Seals the memtables that have reached their limit, and returns their keyspaces.
fn seal_full(inner: &Inner, all: &[Option<Replayed>], last: Seqno) -> Result<Vec<Arc<KeyspaceState>>> {
    // All replayed writes are complete.
    inner.order.restart(last);
    let mut sealed = Vec::new();
    for replayed in all.iter().flatten().filter(|replayed| is_full(&replayed.keyspace)) {
        let is_sealed = inner.seal_only(&replayed.keyspace, None)?;
        ensure!(is_sealed, "keyspace {:?} has no full memtable to seal", replayed.keyspace.name);
        sealed.push(Arc::clone(&replayed.keyspace));
    }
    Ok(sealed)
}
