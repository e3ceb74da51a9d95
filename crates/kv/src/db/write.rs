//! The write path: admission, order, log, memtables, visibility, sync.
//!
//! Only the middle of a write runs under the commit lock: it takes a sequence number, reserves a
//! slot in the log and picks the memtables. Writers copy into the log and insert into the memtables
//! in parallel, and [`VisibilityOrder`](crate::db::visibility_order::VisibilityOrder)
//! makes the results visible in order.

use std::ops::RangeInclusive;

use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{Arc, lock};
use cairn_wal::{Log, Lsn, Reservation};

use crate::batch::{DEFAULT, HEADER_BYTES, Operation, WriteBatch, write_header};
use crate::db::budget::Budget;
use crate::db::inner::{Commit, Inner};
use crate::db::keyspace_state::KeyspaceState;
use crate::db::view::Sealed;
use crate::kind::{Kind, SEQNO_MAX, Seqno};
use crate::memtable::{Memtable, Place};
use crate::options::Durability;
use crate::ttl;
use crate::version::KeyspaceId;
use crate::{Error, Result};

#[cfg(test)]
mod tests;

/// A log record of at least this many bytes is released from the process's memory before the next
/// sync.
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
            // The operation would put nothing into a memtable, so no flush would ever release its
            // log record.
            self.check_writable()?;
            return keyspace.check_open();
        }
        if let (Some(ttl), Operation::Put { key, value }) = (self.ttl(keyspace), operation) {
            let stamped = ttl::stamp(value, ttl.now_secs);
            return self.write_stored(keyspace, Operation::Put { key, value: &stamped }, durability);
        }
        if operation.is_removal() {
            // Can be retried: a write that a full disk refuses has had no effect.
            return self.with_reserve(|| self.write_stored(keyspace, operation, durability));
        }
        self.write_stored(keyspace, operation, durability)
    }

    /// Writes one operation in its stored form.
    #[inline]
    fn write_stored(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        operation: Operation<'_>,
        durability: Durability,
    ) -> Result<()> {
        debug_assert!(!operation.is_nothing(), "no flush would ever release the record of an empty range");
        debug_assert!(is_stamped(keyspace, operation), "a value of keyspace {:?} has no time", keyspace.name);
        let log = self.check_writable()?;
        self.check_reserve(|| operation.is_removal())?;
        let bytes = HEADER_BYTES + operation.encoded_bytes(keyspace.id);
        self.admit(keyspace, bytes)?;
        let view = keyspace.view.load();
        // Before the sequence number is taken, because from then on all later writers wait for this
        // one.
        let mut place = operation.key().and_then(|key| view.active.locate(key));

        let mut commit = lock(&self.commit);
        let active = self.active(&commit, keyspace.id)?;
        let other;
        let memtable = if Arc::ptr_eq(active, &view.active) {
            // The view keeps the memtable alive. Cloning the `Arc` would cost more than the insert,
            // because all writers would change one reference count.
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
        debug_assert!(seqno > self.order.visible(), "number {seqno} is visible before its write");
        commit.next_seqno = seqno + 1;
        drop(commit);

        let mut logged = Ok(Lsn::default());
        if let Some(mut slot) = slot {
            let record = slot.payload_mut();
            debug_assert_eq!(record.len(), bytes, "the log reserved another length");
            write_header(record, seqno, 1);
            operation.encode(keyspace.id, &mut record[HEADER_BYTES..]);
            logged = slot.commit();
            release_record(log, bytes);
        }
        let inserted = if logged.is_ok() { insert(memtable, seqno, operation, place) } else { Ok(()) };
        let end = self.publish(log, seqno..=seqno, logged, inserted, durability)?;
        if is_full(memtable, keyspace) || self.budget.is_some() {
            let memtable = Arc::clone(memtable);
            // Files that a flush or a compaction makes obsolete can only be deleted when no view
            // refers to them.
            drop(view);
            self.seal_full(keyspace, &memtable)?;
        } else {
            drop(view);
        }
        self.limit_log(keyspace, end)?;
        if durability == Durability::Sync {
            self.sync_log(log, end)?;
            self.record_segment(end)?;
        }
        Ok(())
    }

    /// Writes a batch atomically.
    pub(crate) fn write_batch(self: &Arc<Self>, batch: &WriteBatch, durability: Durability) -> Result<()> {
        match self.write_batch_once(batch, durability) {
            // Can be retried: a batch that a full disk refuses has had no effect.
            Err(error) if error.is_full() && batch.is_removal() => {
                self.with_reserve(|| self.write_batch_once(batch, durability))
            }
            result => result,
        }
    }

    fn write_batch_once(self: &Arc<Self>, batch: &WriteBatch, durability: Durability) -> Result<()> {
        self.write_batch_if(batch, durability, None::<fn(Option<Seqno>) -> Result<()>>)
    }

    /// Writes a batch if `check` succeeds, with no other write between the check and the batch.
    ///
    /// `check` is called twice. The first call, with `None`, runs concurrently with other writers
    /// and covers all writes since the transaction's reads. The second call runs while other
    /// writers are blocked, and receives the sequence number up to which the first call has
    /// checked.
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
            debug_assert_eq!(self.order.visible(), commit.next_seqno - 1, "another write is under way");
            check(Some(looked))?;
        }
        debug_assert!(!touched.is_empty(), "a batch with operations touches a keyspace");
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
        debug_assert!(first > self.order.visible() && last <= SEQNO_MAX, "numbers {first} to {last}");
        commit.next_seqno = last + 1;
        drop(commit);

        let mut logged = Ok(Lsn::default());
        if let Some(mut slot) = slot {
            let payload = slot.payload_mut();
            debug_assert_eq!(payload.len(), record.len(), "the log reserved another length");
            payload.copy_from_slice(record);
            write_header(payload, first, batch.len() as u32);
            logged = slot.commit();
            release_record(log, record.len());
        }
        let mut inserted = Ok(());
        if logged.is_ok() {
            let mut seqno = first;
            inserted = batch.try_for_each(|id, operation| {
                debug_assert!(memtables.get(id).is_some(), "keyspace {} is not among those touched", id.0);
                let inserted =
                    memtables.get(id).map_or(Ok(()), |memtable| insert(memtable, seqno, operation, None));
                seqno += 1;
                inserted
            });
            debug_assert!(inserted.is_err() || seqno == last + 1, "{seqno} after numbers up to {last}");
        }
        let end = self.publish(log, first..=last, logged, inserted, durability)?;
        for keyspace in &touched {
            if let Some(memtable) = memtables.get(keyspace.id) {
                self.seal_full(keyspace, memtable)?;
            }
        }
        if let Some(keyspace) = touched.first() {
            self.limit_log(keyspace, end)?;
        }
        if durability == Durability::Sync {
            self.sync_log(log, end)?;
            self.record_segment(end)?;
        }
        Ok(())
    }

    /// Makes writes visible whose logging and insertion have ended with the given results. Returns
    /// the end of their log record.
    ///
    /// Errors: the error of either step, which poisons the store, and that of an earlier record,
    /// without which no recovery can reach this one. A failed write never becomes visible, not even
    /// in part, nor does any later write.
    #[inline]
    fn publish(
        &self,
        log: &Log,
        seqnos: RangeInclusive<Seqno>,
        logged: cairn_wal::Result<Lsn>,
        inserted: Result<()>,
        durability: Durability,
    ) -> Result<Lsn> {
        debug_assert!(!seqnos.is_empty(), "numbers {seqnos:?}");
        let end = match logged.map_err(Error::from).and_then(|end| inserted.map(|()| end)) {
            Ok(end) => end,
            Err(error) => {
                let error = self.poison(error);
                // ORDER: after poisoning the store. Later writes and flushes wait for these
                // sequence numbers, and check for a failure once they are released.
                self.order.fail(*seqnos.start());
                return Err(error);
            }
        };
        if !self.order.publish(*seqnos.start(), *seqnos.end()) {
            return Err(self.refuse_write());
        }
        if durability != Durability::Memory {
            debug_assert!(end > Lsn::ZERO, "the writes {seqnos:?} are in no log record");
            // ORDER: after all earlier writes have been published. An earlier record that could not
            // be written has poisoned the log before its turn.
            log.check().map_err(|error| self.poison(error.into()))?;
        }
        Ok(end)
    }

    /// Returns the batch with time stamps added, or `None` if none of its keyspaces has a TTL.
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
        debug_assert_eq!(
            (stamped.len(), stamped.is_plain),
            (batch.len(), batch.is_plain),
            "a batch has the same operations with and without times"
        );
        Ok(Some(stamped))
    }

    /// Returns the keyspaces that a batch writes to, each once.
    fn touched(&self, batch: &WriteBatch) -> Result<Vec<Arc<KeyspaceState>>> {
        if batch.is_plain {
            debug_assert!(batch.operations().all(|(id, _)| id == DEFAULT), "a plain batch has one keyspace");
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

    /// Checks that the sequence numbers suffice for `count` more operations. Errors:
    /// [`Error::Unsupported`] if they do not, in which case nothing has been logged.
    #[inline]
    pub(crate) fn check_numbers(&self, commit: &Commit, count: u64) -> Result<()> {
        debug_assert!(count > 0 && commit.next_seqno > 0, "{count} numbers from {}", commit.next_seqno);
        if commit.next_seqno <= SEQNO_MAX - count {
            return Ok(());
        }
        Err(Error::unsupported(
            &self.path,
            format!("its sequence numbers are exhausted after {SEQNO_MAX} writes"),
        ))
    }

    #[inline]
    fn active<'c>(&self, commit: &'c Commit, id: KeyspaceId) -> Result<&'c Arc<Memtable>> {
        match commit.active.get(id.0 as usize) {
            Some(Some(memtable)) => Ok(memtable),
            _ => Err(Error::NotFound { what: format!("keyspace {} was dropped", id.0) }),
        }
    }

    /// Reserves a slot in the log.
    ///
    /// An error poisons the store if the log has failed, but not if the log has no space or refuses
    /// the record. (A reserved slot that cannot be filled always poisons the store, because later
    /// records would follow a hole.)
    #[inline]
    fn reserve(&self, commit: &mut Commit, bytes: usize) -> Result<Reservation> {
        debug_assert!(bytes > HEADER_BYTES, "a record of {bytes} bytes has no operation");
        match &mut commit.appender {
            Some(appender) => appender.reserve(bytes).map_err(|error| self.log_failed(error)),
            None => Err(self.refuse_write()),
        }
    }

    #[cold]
    fn log_failed(&self, error: cairn_wal::Error) -> Error {
        // The log refused the record without writing anything, and it accepts other records.
        let is_refused = matches!(error, cairn_wal::Error::Invalid { .. })
            && self.log.get().is_some_and(|log| log.check().is_ok());
        let goes_on = error.is_transient() || is_refused;
        let error = Error::from(error);
        if goes_on { error } else { self.poison(error) }
    }

    pub(crate) fn sync_log(&self, log: &Log, end: Lsn) -> Result<()> {
        log.sync_to(end).map_err(|error| self.poison(error.into()))
    }

    /// Makes all earlier writes durable.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let log = self.check_writable()?;
        let end = {
            let commit = lock(&self.commit);
            commit.position()
        };
        self.sync_log(log, end)?;
        self.record_segment(end)
    }

    /// Replaces the active memtable of the keyspace by an empty one and schedules its flush. With
    /// `full`, only if that is still the active memtable. An empty memtable is left alone.
    pub(crate) fn seal(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        full: Option<&Arc<Memtable>>,
    ) -> Result<()> {
        self.check_writable()?;
        if !self.seal_only(keyspace, full)? {
            return Ok(());
        }
        self.seal_log_holders()?;
        self.work_is_due(keyspace)
    }

    /// Checks the length of the log if a write has begun a new segment. `end` is the end of its
    /// record.
    #[inline]
    fn limit_log(self: &Arc<Self>, keyspace: &KeyspaceState, end: Lsn) -> Result<()> {
        if end.segment() <= self.segment.load(Relaxed) { Ok(()) } else { self.segment_begun(keyspace, end) }
    }

    #[cold]
    fn segment_begun(self: &Arc<Self>, keyspace: &KeyspaceState, end: Lsn) -> Result<()> {
        if self.segment.fetch_max(end.segment(), Relaxed) >= end.segment() {
            return Ok(()); // another writer checks
        }
        self.seal_log_holders()?;
        self.work_is_due(keyspace)
    }

    /// Seals memtables whose old writes keep the log above its maximum length.
    fn seal_log_holders(&self) -> Result<()> {
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
        // If the keyspace was dropped in the meantime, its memory is freed anyway.
        match budget.largest().map(|largest| self.keyspace(largest)) {
            Some(Ok(largest)) => self.seal(&largest, None),
            _ => Ok(()),
        }
    }

    /// Seals memtables that have become too large through a write to `memtable` of `keyspace`: that
    /// one, or the largest if all together exceed the budget.
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

    /// Like [`Inner::seal`], but does not schedule the flush. Returns true if a memtable was
    /// sealed.
    pub(crate) fn seal_only(&self, keyspace: &KeyspaceState, full: Option<&Arc<Memtable>>) -> Result<bool> {
        self.check_alive()?;
        let mut commit = lock(&self.commit);
        let last_seqno = commit.next_seqno - 1;
        let end = commit.position();
        let Some(Some(active)) = commit.active.get_mut(keyspace.id.0 as usize) else { return Ok(false) };
        if full.is_some_and(|full| !Arc::ptr_eq(full, active)) || active.is_empty() {
            return Ok(false);
        }
        debug_assert!(
            active.seqnos().is_none_or(|(_, newest)| newest <= last_seqno),
            "the memtable has writes after {last_seqno}"
        );
        let fresh = Arc::new(Memtable::new());
        let memtable = std::mem::replace(active, Arc::clone(&fresh));
        if let Some(budget) = &self.budget {
            budget.sealed(keyspace.id, &memtable);
        }
        let sealed = Arc::new(Sealed { memtable, last_seqno, end });
        // ORDER: readers see the fresh memtable before anyone writes to it, because writers take
        // the commit lock first.
        keyspace.view.rcu(|view| view.with_sealed(Arc::clone(&fresh), Arc::clone(&sealed)));
        Ok(true)
    }
}

/// Releases a large log record from the process's memory before the memtable allocates as much.
#[inline]
fn release_record(log: &Log, record_bytes: usize) {
    if record_bytes >= LARGE_RECORD_BYTES {
        log.release_memory();
    }
}

#[inline]
fn is_full(memtable: &Memtable, keyspace: &KeyspaceState) -> bool {
    memtable.allocated_bytes() as u64 > keyspace.options.memtable_bytes
}

/// Returns false for a value that lacks the time that values of the keyspace end with. For debug
/// builds.
fn is_stamped(keyspace: &KeyspaceState, operation: Operation<'_>) -> bool {
    match operation {
        Operation::Put { value, .. } => keyspace.options.ttl.is_none() || value.len() >= ttl::STAMP_BYTES,
        _ => true,
    }
}

/// The memtables into which a batch is inserted.
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

/// Inserts an operation that was logged with `seqno`. `place` is the located position of its key,
/// if known.
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
