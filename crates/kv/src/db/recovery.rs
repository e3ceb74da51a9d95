//! What a store does about the log when it is opened.
//!
//! Records are replayed in order into the memtables of the keyspaces that do not have them in tables yet. A memtable that
//! gets full is flushed on the way, so that memory is bounded by the memtables and not by the log. What is left at the
//! end stays in memory and in the log: opening and closing a store again costs no flush.

use cairn_vfs::Rng;
use cairn_vfs::sync::{Arc, lock};
use cairn_wal::{Log, Lsn, Recovery, RecoveryOptions};

use crate::batch::{Malformed, Record};
use crate::db::inner::{Inner, KeyspaceState};
use crate::db::write::insert;
use crate::kind::{SEQNO_MAX, Seqno};
use crate::options::Background;
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
    let from = states.iter().map(|(_, state)| state.log_start).min().unwrap_or(0);
    let mut log = Recovery::open(&inner.fs, &inner.path, from.into(), &RecoveryOptions::default())?;
    let mut last = inner.versions.last_seqno();
    while let Some(record) = log.next()? {
        let lsn = record.lsn;
        last = last.max(replay(inner, &mut all, lsn, record.payload)?);
        {
            let mut commit = lock(&inner.commit);
            commit.next_seqno = last + 1;
            commit.end = lsn;
        }
        if !inner.options.read_only && is_any_full(&all) {
            // ORDER: as before every flush. The log of a process that was killed may be in the page cache only.
            log.sync()?;
            flush_full(inner, &all, last)?;
        }
    }
    let tail = log.finish()?;
    {
        let mut commit = lock(&inner.commit);
        commit.next_seqno = last + 1;
        commit.end = commit.end.max(tail.end());
    }
    inner.order.restart(last);
    if inner.options.read_only {
        return Ok(());
    }
    let options = cairn_wal::Options::default()
        .segment_bytes(inner.options.wal_segment_bytes as u32)
        .background(inner.options.background != Background::Inline);
    let (log, appender) = Log::open(&inner.fs, &options, tail, rng)?;
    lock(&inner.commit).appender = Some(appender);
    // Empty until here.
    let _ = inner.log.set(log);
    Ok(())
}

/// Inserts a record's operations where they are missing. Gives back the number of the last one.
fn replay(inner: &Inner, all: &mut [Option<Replayed>], lsn: Lsn, payload: &[u8]) -> Result<Seqno> {
    let damaged = |what: &str| {
        let what = format!("the record that ends at {lsn} of the log has {what}");
        Error::corruption(&inner.path, lsn.get(), what)
    };
    let record = Record::parse(payload, &inner.path, lsn.get())?;
    let count = u64::from(record.count);
    if record.seqno == 0 || count == 0 || record.seqno > SEQNO_MAX - count {
        return Err(damaged("sequence numbers that no batch has"));
    }
    let last = record.seqno + count - 1;
    let mut seqno = record.seqno;
    for operation in record.operations {
        let (id, operation) = operation.map_err(|Malformed(what)| damaged(what))?;
        if seqno > last {
            return Err(damaged("more operations than it says"));
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
        return Err(damaged("fewer operations than it says"));
    }
    Ok(last)
}

fn is_full(keyspace: &KeyspaceState) -> bool {
    keyspace.view.load().active.allocated_bytes() as u64 > keyspace.options.memtable_bytes
}

fn is_any_full(all: &[Option<Replayed>]) -> bool {
    all.iter().flatten().any(|replayed| is_full(&replayed.keyspace))
}

/// Flushes memtables that have reached their limit.
fn flush_full(inner: &Arc<Inner>, all: &[Option<Replayed>], last: Seqno) -> Result<()> {
    for replayed in all.iter().flatten() {
        let keyspace = &replayed.keyspace;
        if is_full(keyspace) {
            // All that is replayed is complete.
            inner.order.restart(last);
            inner.seal_only(keyspace, None)?;
            inner.flush_sealed(keyspace)?;
        }
    }
    Ok(())
}
