//! What a store does about the log when it is opened.
//!
//! Records are replayed in order into the memtables of the keyspaces that do not have them in
//! tables yet. A memtable that gets full is flushed on the way, so that memory is bounded by the
//! memtables and not by the log. What is left at the end stays in memory and in the log: opening
//! and closing a store again costs no flush.

use cairn_vfs::Rng;
use cairn_vfs::sync::{Arc, lock};
use cairn_vfs::thread::{self, ScopedJoinHandle};
use cairn_wal::{Known, Log, Lsn, Recovery, RecoveryOptions};

use crate::batch::{Malformed, Record};
use crate::db::background::caught;
use crate::db::inner::{Inner, KeyspaceState};
use crate::db::trust::check_note;
use crate::db::write::insert;
use crate::kind::{SEQNO_MAX, Seqno};
use crate::options::Background;
use crate::version::Position;
use crate::{Error, Result};

/// A keyspace during replay.
struct Replayed {
    keyspace: Arc<KeyspaceState>,
    /// Records up to this are in its tables.
    start: Lsn,
}

/// Replays the log, then opens it for writing unless the store is open for reading only.
pub(crate) fn recover(inner: &Arc<Inner>, rng: &mut dyn Rng) -> Result<()> {
    let states = inner.versions.keyspaces();
    let mut all: Vec<Option<Replayed>> = Vec::new();
    for (id, state) in &states {
        all.resize_with(id.0 as usize + 1, || None);
        all[id.0 as usize] = Some(Replayed { keyspace: inner.keyspace(*id)?, start: state.log_start.into() });
    }
    let options = log_options(inner.versions.log());
    let mut log = Recovery::open(&inner.fs, &inner.path, inner.versions.log_start(), &options)?;
    let last = thread::scope(|scope| replay_all(inner, &mut log, &mut all, scope))?;
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
    // What is in tables by now need not be made durable a second time.
    tail.release_before(inner.versions.log_start());
    let options = cairn_wal::Options::default()
        .segment_bytes(inner.options.wal_segment_bytes as u32)
        .background(inner.options.background != Background::Inline);
    let Position { number, end } = inner.versions.position();
    tail.set_note([number, end]);
    let (log, appender) = Log::open(&inner.fs, &options, tail, rng)?;
    lock(&inner.commit).appender = Some(appender);
    // Empty until here.
    let _ = inner.log.set(log);
    Ok(())
}

/// How the log is read of which the manifest knows this. A store that needs it from its beginning
/// has never released any of it: what is not there was lost.
pub(crate) fn log_options(known: Option<Known>) -> RecoveryOptions {
    let options = RecoveryOptions::default().nothing_released(true);
    match known {
        Some(known) => options.known(known),
        None => options,
    }
}

/// Replays record after record, and flushes what gets full beside the replay of what follows; gives
/// back the last number.
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
            commit.next_seqno = last + 1;
            commit.end = lsn;
        }
        if inner.options.read_only || !is_any_full(all) {
            continue;
        }
        join(flushing.take())?;
        // ORDER: as before every flush. The log of a process that was killed may be in the page
        // cache only.
        if has_others(all) {
            log.sync()?;
        }
        let sealed = seal_full(inner, all, last)?;
        let flush =
            move || caught("a flush", || sealed.iter().try_for_each(|keyspace| inner.flush_sealed(keyspace)));
        if inner.background.is_inline() {
            flush()?;
            continue;
        }
        let spawned = thread::spawn_scoped(scope, "cairn-kv-recovery", flush);
        flushing = Some(spawned.map_err(|source| inner.no_thread(source))?);
    }
    join(flushing)?;
    Ok(last)
}

fn join(flushing: Option<ScopedJoinHandle<'_, Result<()>>>) -> Result<()> {
    let panicked = |_| Err(Error::invalid("a flush panicked while the store was opened"));
    flushing.map_or(Ok(()), |flushing| flushing.join().unwrap_or_else(panicked))
}

/// Inserts a record's operations where they are missing. Gives back the number of the last one.
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
                "it has no keyspace {}, but the log has writes to it: the manifest is an older state",
                id.0
            );
            return Err(Error::corruption(&inner.versions.path(), 0, what));
        }
        // Keyspaces that are not there were dropped later.
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

/// Whether more than one keyspace has replayed writes in memory: then the flush of one must not
/// outlive the log.
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

/// Seals memtables that have reached their limit; says whose.
fn seal_full(inner: &Inner, all: &[Option<Replayed>], last: Seqno) -> Result<Vec<Arc<KeyspaceState>>> {
    // All that is replayed is complete.
    inner.order.restart(last);
    let mut sealed = Vec::new();
    for replayed in all.iter().flatten().filter(|replayed| is_full(&replayed.keyspace)) {
        inner.seal_only(&replayed.keyspace, None)?;
        sealed.push(Arc::clone(&replayed.keyspace));
    }
    Ok(sealed)
}
