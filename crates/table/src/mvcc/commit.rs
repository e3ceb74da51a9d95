//! The commit queue. Commits become visible in the order of their records in the log, and no commit
//! is visible before it has the promised durability.
//!
//! ```text
//!   validate, append the record, queue       one transaction at a time
//!   make durable                             many share one sync
//!   number, make visible                     from the front of the queue, by any thread that finds
//!                                            the front durable: often for threads not yet awake
//! ```

use std::collections::VecDeque;

use cairn_pool::Lsn;
use cairn_vfs::sync::{Arc, Mutex, lock};

use super::key::Key;
use super::reads::ReadSet;
use super::rows::Write;
use super::slots::{Slots, WriterSlot};
use super::state::{ABORTED, State};
use crate::storage::DroppedTree;
use crate::{Result, hook};

/// A ghost record: the root of its tree, and its key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ghost {
    pub(crate) tree: u32,
    pub(crate) key: Key,
}

impl AsRef<[u8]> for Ghost {
    fn as_ref(&self) -> &[u8] {
        &self.key
    }
}

/// An ended transaction, kept until no other transaction needs it.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its commit sequence number. Snapshots that see this many commits see how it ended.
    pub(crate) csn: u64,
    pub(crate) state: Arc<State>,
    pub(crate) writes: Vec<Arc<Write>>,
    /// Rows that it claimed, as tree and key.
    pub(crate) claims: Vec<(u32, Key)>,
    /// Records that it turned into ghosts.
    pub(crate) ghosts: Vec<Ghost>,
    /// Trees that are no longer needed once every snapshot sees the end.
    pub(crate) trees: Vec<DroppedTree>,
    /// First pages of chains that are no longer needed then.
    pub(crate) chains: Vec<u32>,
}

/// Which transactions [`CommitQueue::take_visible`] takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    All,
    /// Only those before the first that dropped trees.
    WithoutTrees,
}

#[derive(Debug)]
struct Pending {
    ended: Ended,
    lsn: Lsn,
    is_ready: bool,
    /// Released when the changes are visible.
    writer: Option<WriterSlot>,
}

#[derive(Debug, Default)]
struct Queues {
    pending: VecDeque<Pending>,
    /// In the order of their commit sequence numbers.
    ended: VecDeque<Ended>,
}

impl Queues {
    /// Checks that an ended transaction comes after all others.
    fn assert_is_last(&self, ended: &Ended) {
        debug_assert!(
            self.ended.back().is_none_or(|last| last.csn < ended.csn),
            "commit {} is queued behind a later one",
            ended.csn
        );
        debug_assert!(
            self.pending.iter().all(|pending| pending.ended.csn == 0),
            "a commit that waits for its turn has a number"
        );
    }
}

/// Commits in progress, and ended transactions that other transactions may still need.
#[derive(Debug, Default)]
pub(crate) struct CommitQueue {
    queues: Mutex<Queues>,
}

impl CommitQueue {
    /// Queues a transaction for its commit. `append` writes its record to the log, which no other
    /// commit does at the same time, and then dismantles the transaction. Returns `None`, with
    /// nothing done, if another transaction has changed data that this one read. Errors: those of
    /// `append`.
    pub(crate) fn begin(
        &self,
        read: Option<(&ReadSet, u64)>,
        append: impl FnOnce() -> Result<(Lsn, Ended, Option<WriterSlot>)>,
    ) -> Result<Option<Lsn>> {
        let mut queues = lock(&self.queues);
        if let Some((reads, csn)) = read {
            let before = queues.pending.iter().map(|pending| &pending.ended);
            let others = before.chain(queues.ended.iter().rev().take_while(|other| other.csn > csn));
            let mut others = others.filter(|other| other.state.commit() != ABORTED);
            if others.any(|other| other.writes.iter().any(|write| reads.has(write))) {
                return Ok(None);
            }
        }
        let last = queues.pending.back().map(|last| last.lsn);
        let (lsn, ended, writer) = append()?;
        debug_assert!(
            last.is_none_or(|last| last < lsn),
            "a commit at {lsn} is queued after one at {last:?}, expected the order of the log"
        );
        debug_assert!(ended.csn == 0, "a commit that is not visible has number {}", ended.csn);
        queues.pending.push_back(Pending { ended, lsn, is_ready: false, writer });
        Ok(Some(lsn))
    }

    /// Makes durable commits visible: everything up to `lsn`, and everything queued before it. The
    /// commit at `lsn` itself may become visible later, if a commit before it still waits for the
    /// disk.
    pub(crate) fn publish(&self, slots: &Slots, lsn: Lsn, durable: Option<Lsn>) {
        let mut woken = Vec::new();
        let mut queues = lock(&self.queues);
        for pending in &mut queues.pending {
            if pending.lsn == lsn || durable.is_some_and(|durable| pending.lsn <= durable) {
                pending.is_ready = true;
            }
        }
        while queues.pending.front().is_some_and(|front| front.is_ready)
            && let Some(Pending { mut ended, writer, .. }) = queues.pending.pop_front()
        {
            ended.csn = slots.last() + 1;
            // ORDER: set the transaction's state first, then publish the number that makes it
            // visible. Only then may its records stop counting as those of an active writer.
            ended.state.set(ended.csn);
            hook::at("between a commit's end and its being seen");
            slots.publish(ended.csn);
            assert!(slots.last() >= ended.csn, "commit {} is not visible", ended.csn);
            // ORDER: release its rows after that. A transaction that locks one of them must see the
            // commit in its next snapshot; otherwise it would change a version it has not seen.
            ended.state.release_locks();
            drop(writer);
            woken.push(Arc::clone(&ended.state));
            queues.assert_is_last(&ended);
            queues.ended.push_back(ended);
        }
        debug_assert!(
            queues.pending.front().is_none_or(|front| !front.is_ready),
            "a durable commit at the front of the queue is not visible"
        );
        drop(queues);
        woken.iter().for_each(|state| state.wake_all());
    }

    /// Queues an aborted transaction whose changes have been undone.
    pub(crate) fn abort(&self, slots: &Slots, mut ended: Ended, writer: Option<WriterSlot>) {
        let state = Arc::clone(&ended.state);
        let mut queues = lock(&self.queues);
        // An abort takes a commit sequence number too. Transactions that read its changes in place,
        // and look up their versions afterwards, hold a smaller one.
        debug_assert!(ended.csn == 0, "an abort that is not visible has number {}", ended.csn);
        ended.csn = slots.last() + 1;
        ended.state.set(ABORTED);
        slots.publish(ended.csn);
        ended.state.release_locks();
        drop(writer);
        queues.assert_is_last(&ended);
        queues.ended.push_back(ended);
        drop(queues);
        state.wake_all();
    }

    /// Takes up to `most` transactions whose end every snapshot sees, the oldest first. Returns
    /// `None` if the oldest one is not of the kind wanted. Returns an empty list if another thread
    /// holds the lock.
    pub(crate) fn take_visible(&self, horizon: u64, most: usize, wanted: Taken) -> Option<Vec<Ended>> {
        let Ok(mut queues) = self.queues.try_lock() else { return Some(Vec::new()) };
        let seen = queues.ended.iter().take(most).take_while(|ended| ended.csn <= horizon);
        let count = seen.clone().take_while(|ended| wanted == Taken::All || ended.trees.is_empty()).count();
        if count == 0 && seen.count() > 0 {
            return None;
        }
        let taken: Vec<Ended> = queues.ended.drain(..count).collect();
        debug_assert!(
            taken.iter().all(|ended| ended.csn <= horizon && ended.state.has_released_locks()),
            "transactions up to commit {horizon} are cleaned up, and one that is still needed"
        );
        Some(taken)
    }

    /// Forgets the ghosts of a tree that is dropped, because they need no separate removal.
    pub(crate) fn forget_ghosts_of(&self, root: u32) {
        let mut queues = lock(&self.queues);
        queues.ended.iter_mut().for_each(|ended| ended.ghosts.retain(|ghost| ghost.tree != root));
    }

    /// Puts back transactions that were taken but are still needed.
    pub(crate) fn requeue(&self, ended: impl DoubleEndedIterator<Item = Ended>) {
        let mut queues = lock(&self.queues);
        for ended in ended.rev() {
            debug_assert!(ended.csn != 0, "a transaction returns to the queue that never was in it");
            queues.ended.push_front(ended);
        }
    }

    /// Returns the number of ended transactions kept.
    pub(crate) fn len(&self) -> usize {
        lock(&self.queues).ended.len()
    }
}
