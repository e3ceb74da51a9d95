//! The write path: admission, order, log, memtables, visibility, sync.
//!
//! Only the middle of it is under a lock: a number, a slot in the log and the memtables to write
//! to. Copying into the log and inserting into the memtables happen in parallel, and
//! [`Order`](crate::db::order::Order) makes the results visible in order.

use std::ops::RangeInclusive;

use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{Arc, lock};
use cairn_wal::{Log, Lsn, Reservation};

use crate::batch::{HEADER_BYTES, Operation, WriteBatch, write_header};
use crate::db::budget::Budget;
use crate::db::inner::{Commit, Inner, KeyspaceState};
use crate::db::view::Sealed;
use crate::kind::{Kind, SEQNO_MAX, Seqno};
use crate::memtable::{Memtable, Place};
use crate::options::Durability;
use crate::ttl;
use crate::version::KeyspaceId;
use crate::{Error, Result};

#[cfg(test)]
mod tests;

/// A record of at least this many bytes does not stay in the process's memory until the next sync.
const LARGE_RECORD_BYTES: usize = 4 << 20;

impl Inner {
    /// Writes one operation.
    #[inline]
    pub(crate) fn write_one(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        operation: Operation<'_>,
        durability: Durability,
    ) -> Result<()> {
        operation.check()?;
        if operation.is_nothing() {
            // Nothing of it would come into a memtable, so no flush would ever take it out of the
            // log again.
            self.check_writable()?;
            return keyspace.check_open();
        }
        if let (Some(ttl), Operation::Put { key, value }) = (self.ttl(keyspace), operation) {
            let stamped = ttl::stamp(value, ttl.now_secs);
            return self.write_stored(keyspace, Operation::Put { key, value: &stamped }, durability);
        }
        if operation.is_removal() {
            // Refused by a full disk, it has done nothing.
            return self.with_reserve(|| self.write_stored(keyspace, operation, durability));
        }
        self.write_stored(keyspace, operation, durability)
    }

    /// Writes one operation as it is stored.
    #[inline]
    fn write_stored(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        operation: Operation<'_>,
        durability: Durability,
    ) -> Result<()> {
        let log = self.check_writable()?;
        self.check_reserve(|| operation.is_removal())?;
        let bytes = HEADER_BYTES + operation.encoded_bytes(keyspace.id);
        self.admit(keyspace, bytes)?;
        let view = keyspace.view.load();
        // Before there is a number: from then on all later writers wait for this one.
        let mut place = operation.key().and_then(|key| view.active.locate(key));

        let mut commit = lock(&self.commit);
        let active = self.active(&commit, keyspace.id)?;
        let other;
        let memtable = if Arc::ptr_eq(active, &view.active) {
            // The view keeps it alive: a count that all writers change would cost them more than
            // the insert.
            &view.active
        } else {
            other = Arc::clone(active);
            place = None;
            &other
        };
        self.check_numbers(&commit, 1)?;
        let slot = match durability {
            Durability::Memory => None,
            _ => Some(self.reserve(&mut commit, bytes)?),
        };
        let seqno = commit.next_seqno;
        commit.next_seqno = seqno + 1;
        drop(commit);

        let mut logged = Ok(Lsn::default());
        if let Some(mut slot) = slot {
            let record = slot.payload_mut();
            write_header(record, seqno, 1);
            operation.encode(keyspace.id, &mut record[HEADER_BYTES..]);
            logged = slot.commit();
            let_go_of(log, bytes);
        }
        let inserted = if logged.is_ok() { insert(memtable, seqno, operation, place) } else { Ok(()) };
        let end = self.publish(log, seqno..=seqno, logged, inserted, durability)?;
        if is_full(memtable, keyspace) || self.budget.is_some() {
            let memtable = Arc::clone(memtable);
            // What a flush or a compaction makes superfluous can only be deleted when no view has
            // it.
            drop(view);
            self.seal_full(keyspace, &memtable)?;
        } else {
            drop(view);
        }
        self.hold_log_down(keyspace, end)?;
        if durability == Durability::Sync {
            self.sync_log(log, end)?;
            self.record_segment(end)?;
        }
        Ok(())
    }

    /// Writes a batch, all or nothing.
    pub(crate) fn write_batch(self: &Arc<Self>, batch: &WriteBatch, durability: Durability) -> Result<()> {
        match self.write_batch_once(batch, durability) {
            // Refused by a full disk, it has done nothing.
            Err(error) if error.is_full() && batch.is_removal() => {
                self.with_reserve(|| self.write_batch_once(batch, durability))
            }
            result => result,
        }
    }

    fn write_batch_once(self: &Arc<Self>, batch: &WriteBatch, durability: Durability) -> Result<()> {
        self.write_batch_if(batch, durability, None::<fn(Option<Seqno>) -> Result<()>>)
    }

    /// Writes a batch if `check` allows it, with nothing written between the check and the batch.
    ///
    /// `check` is called twice: first beside other writers, with `None`, to look at everything that
    /// was written since its reads; then with other writers held up, with the number up to which it
    /// has looked.
    pub(crate) fn write_batch_if(
        self: &Arc<Self>,
        batch: &WriteBatch,
        durability: Durability,
        check: Option<impl Fn(Option<Seqno>) -> Result<()>>,
    ) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let log = self.check_writable()?;
        self.check_reserve(|| batch.is_removal())?;
        let touched = self.touched(batch)?;
        let stamped = self.stamped(batch, &touched)?;
        let batch = stamped.as_ref().unwrap_or(batch);
        let record = batch.record();
        if let Some(keyspace) = touched.first() {
            self.admit(keyspace, record.len())?;
        }

        let mut looked = 0;
        if let Some(check) = &check {
            looked = self.order.visible();
            check(None)?;
        }
        let mut commit = lock(&self.commit);
        if let Some(check) = &check {
            self.order.wait_for(commit.next_seqno - 1);
            self.check_alive()?;
            check(Some(looked))?;
        }
        let mut memtables = Memtables::default();
        for keyspace in &touched {
            memtables.all.push((keyspace.id, Arc::clone(self.active(&commit, keyspace.id)?)));
        }
        self.check_numbers(&commit, batch.len() as u64)?;
        let slot = match durability {
            Durability::Memory => None,
            _ => Some(self.reserve(&mut commit, record.len())?),
        };
        let first = commit.next_seqno;
        let last = first + batch.len() as u64 - 1;
        commit.next_seqno = last + 1;
        drop(commit);

        let mut logged = Ok(Lsn::default());
        if let Some(mut slot) = slot {
            let payload = slot.payload_mut();
            payload.copy_from_slice(record);
            write_header(payload, first, batch.len() as u32);
            logged = slot.commit();
            let_go_of(log, record.len());
        }
        let mut inserted = Ok(());
        if logged.is_ok() {
            let mut seqno = first;
            inserted = batch.try_for_each(|id, operation| {
                let inserted =
                    memtables.get(id).map_or(Ok(()), |memtable| insert(memtable, seqno, operation, None));
                seqno += 1;
                inserted
            });
        }
        let end = self.publish(log, first..=last, logged, inserted, durability)?;
        for keyspace in &touched {
            if let Some(memtable) = memtables.get(keyspace.id) {
                self.seal_full(keyspace, memtable)?;
            }
        }
        if let Some(keyspace) = touched.first() {
            self.hold_log_down(keyspace, end)?;
        }
        if durability == Durability::Sync {
            self.sync_log(log, end)?;
            self.record_segment(end)?;
        }
        Ok(())
    }

    /// Makes writes visible that are logged and inserted, or were to be. Where their record ends.
    ///
    /// Errors: that of either, which poisons; and that of a record before this one, without which
    /// no recovery reaches it. What has failed is never seen, not even in part, nor is what was
    /// written after it.
    #[inline]
    fn publish(
        &self,
        log: &Log,
        seqnos: RangeInclusive<Seqno>,
        logged: cairn_wal::Result<Lsn>,
        inserted: Result<()>,
        durability: Durability,
    ) -> Result<Lsn> {
        let end = match logged.map_err(Error::from).and_then(|end| inserted.map(|()| end)) {
            Ok(end) => end,
            Err(error) => {
                let error = self.poison(error);
                // ORDER: after that. Later writes and flushes wait for these numbers, and look at
                // the failure when they are let go.
                self.order.fail(*seqnos.start());
                return Err(error);
            }
        };
        if !self.order.publish(*seqnos.start(), *seqnos.end()) {
            return Err(self.refuse_write());
        }
        if durability != Durability::Memory {
            // ORDER: behind all writes before this one. A record of theirs that could not be
            // written has poisoned the log before it was their turn.
            log.check().map_err(|error| self.poison(error.into()))?;
        }
        Ok(end)
    }

    /// The batch as it is stored, where a keyspace's entries expire.
    fn stamped(&self, batch: &WriteBatch, touched: &[Arc<KeyspaceState>]) -> Result<Option<WriteBatch>> {
        let ttls: Vec<_> = touched.iter().filter_map(|it| Some((it.id, self.ttl(it)?))).collect();
        if ttls.is_empty() {
            return Ok(None);
        }
        let mut stamped = WriteBatch::with_capacity(batch.encoded_bytes() + batch.len() * ttl::STAMP_BYTES);
        for (id, operation) in batch.operations() {
            match (ttls.iter().find(|(other, _)| *other == id), operation) {
                (Some((_, ttl)), Operation::Put { key, value }) => {
                    let value = ttl::stamp(value, ttl.now_secs);
                    stamped.add(id, Operation::Put { key, value: &value })?;
                }
                (_, operation) => stamped.add(id, operation)?,
            }
        }
        Ok(Some(stamped))
    }

    /// The keyspaces that a batch writes to, each once.
    fn touched(&self, batch: &WriteBatch) -> Result<Vec<Arc<KeyspaceState>>> {
        if batch.is_plain {
            return Ok(vec![self.keyspace(KeyspaceId(0))?]);
        }
        let mut touched: Vec<Arc<KeyspaceState>> = Vec::new();
        for (id, _) in batch.operations() {
            if touched.last().is_some_and(|last| last.id == id) {
                continue;
            }
            if touched.iter().all(|keyspace| keyspace.id != id) {
                touched.push(self.keyspace(id)?);
            }
        }
        Ok(touched)
    }

    /// Errors: [`Error::Unsupported`] when there are no more numbers for `count` operations.
    /// Nothing is logged of them then.
    #[inline]
    fn check_numbers(&self, commit: &Commit, count: u64) -> Result<()> {
        if commit.next_seqno <= SEQNO_MAX - count {
            return Ok(());
        }
        Err(Error::unsupported(&self.path, format!("it has had {SEQNO_MAX} writes, which is the maximum")))
    }

    #[inline]
    fn active<'c>(&self, commit: &'c Commit, id: KeyspaceId) -> Result<&'c Arc<Memtable>> {
        match commit.active.get(id.0 as usize) {
            Some(Some(memtable)) => Ok(memtable),
            _ => Err(Error::NotFound { what: format!("keyspace {} was dropped", id.0) }),
        }
    }

    /// A slot in the log. A log that cannot go on poisons the store; one that has no room, or
    /// refuses the record, does not. (A slot that was had and could not be filled always does: what
    /// is logged later would stand behind a hole.)
    #[inline]
    fn reserve(&self, commit: &mut Commit, bytes: usize) -> Result<Reservation> {
        match &mut commit.appender {
            Some(appender) => appender.reserve(bytes).map_err(|error| self.log_failed(error)),
            None => Err(self.refuse_write()),
        }
    }

    #[cold]
    fn log_failed(&self, error: cairn_wal::Error) -> Error {
        // Refused, and nothing of it was written: the log takes the next one.
        let is_refused = matches!(error, cairn_wal::Error::Invalid { .. })
            && self.log.get().is_some_and(|log| log.check().is_ok());
        let goes_on = error.can_be_tried_again() || is_refused;
        let error = Error::from(error);
        if goes_on { error } else { self.poison(error) }
    }

    pub(crate) fn sync_log(&self, log: &Log, end: Lsn) -> Result<()> {
        log.sync_to(end).map_err(|error| self.poison(error.into()))
    }

    /// Makes all that was written so far durable.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let log = self.check_writable()?;
        let end = {
            let commit = lock(&self.commit);
            commit.position()
        };
        self.sync_log(log, end)?;
        self.record_segment(end)
    }

    /// Replaces the keyspace's active memtable by an empty one and has it flushed. With `full`,
    /// only when that is still the active one. Nothing happens to an empty memtable.
    pub(crate) fn seal(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        full: Option<&Arc<Memtable>>,
    ) -> Result<()> {
        self.check_writable()?;
        if !self.seal_only(keyspace, full)? {
            return Ok(());
        }
        self.seal_holders_of_the_log()?;
        self.work_is_due(keyspace)
    }

    /// Looks at the length of the log when a write has begun a segment of it: `end` is where its
    /// record ends.
    #[inline]
    fn hold_log_down(self: &Arc<Self>, keyspace: &KeyspaceState, end: Lsn) -> Result<()> {
        if end.segment() <= self.segment.load(Relaxed) { Ok(()) } else { self.segment_begun(keyspace, end) }
    }

    #[cold]
    fn segment_begun(self: &Arc<Self>, keyspace: &KeyspaceState, end: Lsn) -> Result<()> {
        if self.segment.fetch_max(end.segment(), Relaxed) >= end.segment() {
            return Ok(()); // another writer looks
        }
        self.seal_holders_of_the_log()?;
        self.work_is_due(keyspace)
    }

    /// Seals memtables whose old writes keep the log from shrinking below its limit.
    fn seal_holders_of_the_log(&self) -> Result<()> {
        let end = lock(&self.commit).position();
        let segments_max = (self.options.wal_bytes_max / self.options.wal_segment_bytes).max(1);
        let segments_max = segments_max.min(u64::from(u32::MAX)) as u32;
        if end.segment().saturating_sub(self.versions.log_start().segment()) <= segments_max {
            return Ok(());
        }
        for (id, state) in &self.versions.keyspaces() {
            let start = Lsn::from(state.log_start);
            if end.segment().saturating_sub(start.segment()) > segments_max
                && let Ok(holder) = self.keyspace(*id)
                && holder.view.load().sealed.is_empty()
            {
                self.seal_only(&holder, None)?;
            }
        }
        Ok(())
    }

    /// Seals the largest memtable.
    #[cold]
    fn seal_largest(self: &Arc<Self>, budget: &Budget) -> Result<()> {
        // One that was dropped in between takes its memory with it.
        match budget.largest().map(|largest| self.keyspace(largest)) {
            Some(Ok(largest)) => self.seal(&largest, None),
            _ => Ok(()),
        }
    }

    /// Seals what has become too large by a write to `memtable` of `keyspace`: that, or the largest
    /// of all.
    #[inline]
    fn seal_full(self: &Arc<Self>, keyspace: &Arc<KeyspaceState>, memtable: &Arc<Memtable>) -> Result<()> {
        if is_full(memtable, keyspace) {
            self.seal(keyspace, Some(memtable))?;
        }
        match &self.budget {
            Some(budget) if budget.written(keyspace.id, memtable) => self.seal_largest(budget),
            _ => Ok(()),
        }
    }

    /// [`Inner::seal`] without the work that it makes due. Says whether there was something to
    /// seal.
    pub(crate) fn seal_only(&self, keyspace: &KeyspaceState, full: Option<&Arc<Memtable>>) -> Result<bool> {
        self.check_alive()?;
        let mut commit = lock(&self.commit);
        let last_seqno = commit.next_seqno - 1;
        let end = commit.position();
        let Some(Some(active)) = commit.active.get_mut(keyspace.id.0 as usize) else { return Ok(false) };
        if full.is_some_and(|full| !Arc::ptr_eq(full, active)) || active.is_empty() {
            return Ok(false);
        }
        let fresh = Arc::new(Memtable::new());
        let memtable = std::mem::replace(active, Arc::clone(&fresh));
        if let Some(budget) = &self.budget {
            budget.sealed(keyspace.id, &memtable);
        }
        let sealed = Arc::new(Sealed { memtable, last_seqno, end });
        // ORDER: readers know the fresh memtable before anybody, who must take the commit lock
        // first, writes to it.
        keyspace.view.rcu(|view| view.with_sealed(Arc::clone(&fresh), Arc::clone(&sealed)));
        Ok(true)
    }
}

/// Takes a large record out of the process's memory before the memtable takes as much.
#[inline]
fn let_go_of(log: &Log, record_bytes: usize) {
    if record_bytes >= LARGE_RECORD_BYTES {
        log.let_go();
    }
}

#[inline]
fn is_full(memtable: &Memtable, keyspace: &KeyspaceState) -> bool {
    memtable.allocated_bytes() as u64 > keyspace.options.memtable_bytes
}

/// The memtables that a batch is inserted into.
#[derive(Default)]
struct Memtables {
    all: Vec<(KeyspaceId, Arc<Memtable>)>,
}

impl Memtables {
    #[inline]
    fn get(&self, id: KeyspaceId) -> Option<&Arc<Memtable>> {
        match self.all.as_slice() {
            [(only, memtable)] if *only == id => Some(memtable),
            all => all.iter().find(|(other, _)| *other == id).map(|(_, memtable)| memtable),
        }
    }
}

/// Inserts an operation that was logged under `seqno`; `place` is where its key was located, if it
/// was.
#[inline]
pub(crate) fn insert(
    memtable: &Memtable,
    seqno: Seqno,
    operation: Operation<'_>,
    place: Option<Place<'_, '_>>,
) -> Result<()> {
    debug_assert!(seqno <= SEQNO_MAX);
    match operation {
        Operation::Put { key, value } => memtable.insert_at(place, key, seqno, Kind::Put, value),
        Operation::Delete { key } => memtable.insert_at(place, key, seqno, Kind::Delete, &[]),
        Operation::Merge { key, operand } => memtable.insert_at(place, key, seqno, Kind::Merge, operand),
        Operation::DeleteRange { start, end } => memtable.delete_range(start, end, seqno),
    }
}
