//! Commits in order: the order of their records in the log is the order in which others see them,
//! and none is seen before it is as durable as it was promised to be.
//!
//! ```text
//!   validate, append the record, queue       one at a time
//!   make durable                             many share one sync
//!   number, make visible                     from the front of the queue, by whoever finds the front durable: often for others who have not woken up yet
//! ```

use std::collections::VecDeque;

use cairn_pool::Lsn;
use cairn_vfs::sync::{Arc, Mutex, lock};

use super::key::Key;
use super::reads::ReadSet;
use super::rows::Write;
use super::slots::{Slots, WriterSlot};
use super::state::{ABORTED, State};
use crate::storage::Gone;
use crate::{Result, hook};

/// A record that is a ghost: the root of its tree, and its key.
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

/// A transaction that has ended, until nobody needs to know.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Everybody sees how it ended who sees so many commits.
    pub(crate) csn: u64,
    pub(crate) state: Arc<State>,
    pub(crate) writes: Vec<Arc<Write>>,
    /// Rows that it claimed: trees and keys.
    pub(crate) claims: Vec<(u32, Key)>,
    /// Records that it turned into ghosts.
    pub(crate) ghosts: Vec<Ghost>,
    /// Trees that nobody needs any more when everybody sees it.
    pub(crate) trees: Vec<Gone>,
    /// First pages of chains that nobody needs then.
    pub(crate) chains: Vec<u32>,
}

/// Whom [`CommitQueue::take_seen`] takes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    All,
    /// Those only before the first that leaves trees.
    WithoutTrees,
}

#[derive(Debug)]
struct Pending {
    ended: Ended,
    lsn: Lsn,
    is_ready: bool,
    /// Given back when its changes are visible.
    writer: Option<WriterSlot>,
}

#[derive(Debug, Default)]
struct Queues {
    pending: VecDeque<Pending>,
    /// In the order of their numbers.
    ended: VecDeque<Ended>,
}

/// Commits under way, and ended transactions that somebody may still have to know of.
#[derive(Debug, Default)]
pub(crate) struct CommitQueue {
    queues: Mutex<Queues>,
}

impl CommitQueue {
    /// Puts a transaction in line. `append` puts its record into the log, which nobody else does
    /// meanwhile, and then takes the transaction apart. `None` when it has read what others have
    /// changed: then nothing was done. Errors: those of `append`.
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
        let (lsn, ended, writer) = append()?;
        queues.pending.push_back(Pending { ended, lsn, is_ready: false, writer });
        Ok(Some(lsn))
    }

    /// Makes visible what is durable: everything up to `lsn`, and what stands in line before it.
    /// The one at `lsn` may be seen later, if somebody is before it who still waits for the disk.
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
            // ORDER: first the transaction, then the number that lets others see it; and only then
            // may its records count as those of nobody who writes.
            ended.state.set(ended.csn);
            hook::at("between a commit's end and its being seen");
            slots.publish(ended.csn);
            // ORDER: and its rows after that. Whoever locks one of them has to see the commit in
            // its next snapshot, or it changes what it has not seen.
            ended.state.let_go();
            drop(writer);
            woken.push(Arc::clone(&ended.state));
            queues.ended.push_back(ended);
        }
        drop(queues);
        woken.iter().for_each(|state| state.end());
    }

    /// Puts a transaction away whose changes were undone.
    pub(crate) fn abort(&self, slots: &Slots, mut ended: Ended, writer: Option<WriterSlot>) {
        let state = Arc::clone(&ended.state);
        let mut queues = lock(&self.queues);
        // It takes a number as well: those who have read its changes, and look for their versions
        // afterwards, have a smaller one.
        ended.csn = slots.last() + 1;
        ended.state.set(ABORTED);
        slots.publish(ended.csn);
        ended.state.let_go();
        drop(writer);
        queues.ended.push_back(ended);
        drop(queues);
        state.end();
    }

    /// Takes out some of those whose end everybody sees, the oldest first. `None` when the oldest
    /// one is none of those that are wanted. Nothing when somebody else is at it.
    pub(crate) fn take_seen(&self, horizon: u64, most: usize, wanted: Taken) -> Option<Vec<Ended>> {
        let Ok(mut queues) = self.queues.try_lock() else { return Some(Vec::new()) };
        let seen = queues.ended.iter().take(most).take_while(|ended| ended.csn <= horizon);
        let count = seen.clone().take_while(|ended| wanted == Taken::All || ended.trees.is_empty()).count();
        if count == 0 && seen.count() > 0 {
            return None;
        }
        Some(queues.ended.drain(..count).collect())
    }

    /// A tree goes: nobody has to remove what is left of its rows.
    pub(crate) fn forget_ghosts_of(&self, root: u32) {
        let mut queues = lock(&self.queues);
        queues.ended.iter_mut().for_each(|ended| ended.ghosts.retain(|ghost| ghost.tree != root));
    }

    /// Puts some back that were taken out and are still needed.
    pub(crate) fn put_back(&self, ended: impl DoubleEndedIterator<Item = Ended>) {
        let mut queues = lock(&self.queues);
        ended.rev().for_each(|ended| queues.ended.push_front(ended));
    }

    /// How many ended transactions are kept.
    pub(crate) fn len(&self) -> usize {
        lock(&self.queues).ended.len()
    }
}
