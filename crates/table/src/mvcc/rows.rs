//! Rows that are being changed, are locked, or were changed so recently that some snapshots must
//! not see the change.
//!
//! ```text
//!   (tree, key) -> owner       the transaction that may change it, exclusively until it has ended
//!                  shares      transactions that keep it from being changed
//!                  versions    its contents before each change, the oldest first:
//!                              before 1 | before 2 | ... | the contents in the tree
//! ```
//!
//! ORDER: a version is added here before the tree is changed. A reader that reads the tree first,
//! and looks here afterwards, therefore finds the version of every change that it has read and must
//! not see. It may find versions of changes newer than the one it read. The version before those is
//! the same either way.

use std::hash::BuildHasher;

use cairn_vfs::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use cairn_vfs::sync::{Arc, CacheAligned, Mutex, lock};
use hashbrown::{DefaultHashBuilder, HashTable};
use smallvec::{SmallVec, smallvec};

use super::key::Key;
use super::state::{ABORTED, ACTIVE, State};
use crate::hook;

const SHARDS: usize = 64;
/// A shard is chosen by bits of a hash between those of the bucket and those of the tag.
const _: () = assert!(SHARDS.is_power_of_two() && SHARDS <= 1 << 24);
/// Capacity of an empty shard.
const MIN_CAPACITY: usize = 28;
/// Maximum capacity that an empty shard keeps if it held that many rows since it was last empty.
/// Consecutive transactions are of similar size, and a table that grows from the start each time is
/// rebuilt three times. 64 KiB, or 4 MiB for all shards.
const MAX_KEPT_CAPACITY: usize = 896;
const _: () = assert!(MIN_CAPACITY <= MAX_KEPT_CAPACITY);

/// The previous contents of a record. Short ones, such as most index entries, are stored inline.
type Bytes = SmallVec<[u8; 16]>;

/// A change of one record, and the means to undo it.
#[derive(Debug)]
pub(crate) struct Write {
    writer: Arc<State>,
    /// Number of the writer's savepoints so far.
    epoch: u32,
    /// The root of the tree.
    pub(crate) tree: u32,
    pub(crate) key: Key,
    /// The previous contents; `None` if the record did not exist.
    pub(crate) before: Option<Bytes>,
    /// Whether `before` is in the log. Only used for a transaction's oldest change of a record.
    is_logged: AtomicBool,
}

impl Write {
    pub(crate) fn is_logged(&self) -> bool {
        self.is_logged.load(Ordering::Relaxed)
    }

    /// Notes that the log contains a record with `before`.
    pub(crate) fn set_logged(&self) {
        self.is_logged.store(true, Ordering::Relaxed);
    }
}

/// The versions that [`Rows::add_version`] holds for a row about to be changed.
#[derive(Debug)]
pub(crate) struct KeptVersions {
    /// The contents before the first change by the same transaction.
    pub(crate) oldest: Arc<Write>,
    /// The contents before this change, unless they were already kept since the same savepoint.
    pub(crate) new: Option<Arc<Write>>,
}

/// Transactions that keep a row from being changed.
#[derive(Debug, Default)]
struct Shares {
    states: SmallVec<[Arc<State>; 2]>,
    /// The transaction that waits for all of them to end. No transaction joins them meanwhile;
    /// otherwise the wait might never end.
    wanted_by: Option<Arc<State>>,
}

#[derive(Debug)]
struct Entry {
    tree: u32,
    key: Key,
    owner: Option<Arc<State>>,
    /// Boxed because it is rarely present, and each row of a large transaction has an entry.
    shares: Option<Box<Shares>>,
    versions: SmallVec<[Arc<Write>; 1]>,
}

impl Entry {
    /// Checks who holds the row, and that its versions are in order.
    fn assert_invariants(&self) {
        let has_ended = |state: &Arc<State>| state.has_released_locks();
        if let Some(shares) = &self.shares {
            let is_alone = |owner: &Arc<State>| {
                shares.states.iter().all(|share| Arc::ptr_eq(share, owner) || has_ended(share))
            };
            debug_assert!(
                self.owner.as_ref().is_none_or(|owner| has_ended(owner) || is_alone(owner)),
                "a row is held exclusively that another transaction holds too: {self:?}"
            );
            debug_assert!(
                shares.states.iter().enumerate().all(|(at, share)| {
                    !shares.states.iter().skip(at + 1).any(|other| Arc::ptr_eq(share, other))
                }),
                "a transaction shares a row twice: {self:?}"
            );
        }
        if let [.., before, last] = &self.versions[..] {
            let is_same = Arc::ptr_eq(&before.writer, &last.writer);
            debug_assert!(
                !is_same || before.epoch < last.epoch,
                "the versions of a transaction at savepoints {} and {} are out of order",
                before.epoch,
                last.epoch
            );
            debug_assert!(
                is_same || before.writer.commit() != ACTIVE,
                "transaction {} changes a row that {} has not finished changing",
                last.writer.id,
                before.writer.id
            );
        }
    }

    /// Drops all transactions that have released their locks. Returns true if the entry is now
    /// empty.
    ///
    /// A place in the commit order is not enough to count as ended. Until the commit is visible, a
    /// transaction that got the row would find its contents in the tree but not see them in a
    /// snapshot.
    fn remove_ended(&mut self) -> bool {
        if self.owner.as_ref().is_some_and(|owner| owner.has_released_locks()) {
            self.owner = None;
        }
        if let Some(shares) = &mut self.shares {
            shares.states.retain(|share| !share.has_released_locks());
            shares.wanted_by.take_if(|waiter| waiter.has_released_locks());
            if shares.states.is_empty() && shares.wanted_by.is_none() {
                self.shares = None;
            }
        }
        self.owner.is_none() && self.shares.is_none() && self.versions.is_empty()
    }
}

#[derive(Debug, Default)]
struct Shard {
    entries: Mutex<HashTable<Entry>>,
    /// The length of `entries`, readable without the lock to see whether there are any.
    len: AtomicUsize,
    /// Recent maximum length, halved each time the shard becomes empty. Changed only under the
    /// lock.
    peak: AtomicUsize,
}

impl Shard {
    /// Updates the counters after an insertion.
    fn after_insert(&self, entries: &HashTable<Entry>) {
        let len = entries.len();
        debug_assert!(len > 0, "a table of rows is empty after an insertion");
        if len > self.peak.load(Ordering::Relaxed) {
            self.peak.store(len, Ordering::Relaxed);
        }
        self.len.store(len, Ordering::Release);
    }

    /// Updates the length after removals, and frees the memory of a large transaction. In a large
    /// sparse table, nearly every access would be a cache miss.
    fn after_remove(&self, entries: &mut HashTable<Entry>) {
        let peak = self.peak.load(Ordering::Relaxed);
        debug_assert!(entries.len() <= peak, "{} rows are held, but {peak} at most", entries.len());
        if entries.is_empty() && entries.capacity() > MIN_CAPACITY {
            let is_usual = entries.capacity() <= MAX_KEPT_CAPACITY && peak > entries.capacity() / 4;
            if !is_usual {
                *entries = HashTable::with_capacity(MIN_CAPACITY);
            }
            // Which tables and shards a transaction's rows fall into is chance. One transaction
            // with few rows here does not mean that transactions have become small.
            self.peak.store(peak / 2, Ordering::Relaxed);
        }
        self.len.store(entries.len(), Ordering::Release);
    }
}

/// The rows of a database that have locks or versions besides their contents in the trees.
#[derive(Debug)]
pub(crate) struct Rows {
    shards: Box<[CacheAligned<Shard>]>,
    hash: DefaultHashBuilder,
}

/// Returns the position of the first version by a transaction whose versions are the last ones.
/// They are contiguous, because the transaction holds the row until its end. There may be one per
/// savepoint, so this is a binary search.
fn first_version_by(versions: &[Arc<Write>], writer: &Arc<State>) -> usize {
    let first = versions.partition_point(|version| {
        hook::at("looks at a version");
        !Arc::ptr_eq(&version.writer, writer)
    });
    debug_assert!(
        first == versions.len() || versions.last().is_some_and(|last| Arc::ptr_eq(&last.writer, writer)),
        "the versions of transaction {} are not the last ones",
        writer.id
    );
    first
}

/// The outcome of claiming a row.
#[derive(Debug)]
pub(crate) enum Claim {
    /// The caller holds the row. `is_new` if it did not before; then it must keep `key` for
    /// [`Rows::release`].
    Mine { key: Key, is_new: bool },
    /// Other transactions hold it: wait for one of them to end, and try again.
    Wait(Vec<Arc<State>>),
    /// The row was changed after the caller's snapshot.
    Changed,
}

/// The mode of a row lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// To change the row.
    Exclusive,
    /// To keep the row from being changed.
    Shared,
}

/// The version of a row that a snapshot sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The contents in the tree.
    InPlace,
    /// A previous version, appended to the caller's buffer.
    Before,
    /// None: the row did not exist.
    Absent,
}

impl Rows {
    pub(crate) fn new() -> Self {
        Rows {
            shards: (0..SHARDS).map(|_| CacheAligned::default()).collect(),
            hash: DefaultHashBuilder::default(),
        }
    }

    /// Computes a hash that keeps neighbouring keys together. The table takes the bucket from the
    /// low bits, so consecutive keys share cache lines, and a large load in key order has one cache
    /// miss per sixteen rows. The table's tags come from the high bits, which must differ among
    /// neighbours.
    #[inline]
    fn hash(&self, tree: u32, key: &[u8]) -> u64 {
        let (last, start) = key.split_last().unwrap_or((&0, &[]));
        let hash = self.hash.hash_one((tree, start, last >> 4));
        let (last, tag) = (u64::from(*last), (hash >> 56) ^ u64::from(last.wrapping_mul(37)));
        (hash & 0x00ff_ffff_ffff_fff0) | (last & 15) | tag << 56
    }

    #[inline]
    fn place(&self, tree: u32, key: &[u8]) -> (&Shard, u64) {
        let hash = self.hash(tree, key);
        (&self.shards[(hash >> 32) as usize % SHARDS], hash)
    }

    fn rehash(&self, entry: &Entry) -> u64 {
        self.hash(entry.tree, &entry.key)
    }

    /// Tries to lock a row for `me`. With `snapshot`, returns [`Claim::Changed`] if the row has a
    /// change that is not among that many commits.
    pub(crate) fn claim(
        &self,
        tree: u32,
        key: &[u8],
        me: &Arc<State>,
        mode: Mode,
        snapshot: Option<u64>,
    ) -> Claim {
        debug_assert!(!me.has_released_locks(), "transaction {} locks a row after its end", me.id);
        let (shard, hash) = self.place(tree, key);
        let mut entries = lock(&shard.entries);
        let is_it = |entry: &Entry| entry.tree == tree && *entry.key == *key;
        let Some(entry) = entries.find_mut(hash, is_it) else {
            let key = Key::new(key);
            let (owner, shares) = match mode {
                Mode::Exclusive => (Some(Arc::clone(me)), None),
                Mode::Shared => {
                    (None, Some(Box::new(Shares { states: smallvec![Arc::clone(me)], wanted_by: None })))
                }
            };
            let entry = Entry { tree, key: key.clone(), owner, shares, versions: SmallVec::new() };
            entries.insert_unique(hash, entry, |entry| self.rehash(entry));
            shard.after_insert(&entries);
            return Claim::Mine { key, is_new: true };
        };
        entry.remove_ended();
        entry.assert_invariants();
        let is_mine = |state: &Arc<State>| Arc::ptr_eq(state, me);
        match &entry.owner {
            Some(owner) if is_mine(owner) => {
                return Claim::Mine { key: entry.key.clone(), is_new: false };
            }
            Some(owner) => return Claim::Wait(vec![Arc::clone(owner)]),
            None => {}
        }
        let has_share = entry.shares.as_ref().is_some_and(|shares| shares.states.iter().any(is_mine));
        if let Some(shares) = &mut entry.shares {
            let others: Vec<_> = match (mode, &shares.wanted_by) {
                (Mode::Exclusive, _) => {
                    shares.states.iter().filter(|share| !is_mine(share)).cloned().collect()
                }
                (Mode::Shared, Some(waiter)) if !has_share && !is_mine(waiter) => vec![Arc::clone(waiter)],
                (Mode::Shared, _) => Vec::new(),
            };
            debug_assert!(!others.iter().any(is_mine), "transaction {} waits for itself", me.id);
            if !others.is_empty() {
                if mode == Mode::Exclusive {
                    shares.wanted_by.get_or_insert_with(|| Arc::clone(me));
                }
                return Claim::Wait(others);
            }
        }
        if let (Some(csn), Some(last)) =
            (snapshot, entry.versions.iter().rfind(|version| version.writer.commit() != ABORTED))
            && !is_mine(&last.writer)
            && !last.writer.is_visible_at(csn)
        {
            return Claim::Changed;
        }
        match mode {
            Mode::Exclusive => entry.owner = Some(Arc::clone(me)),
            Mode::Shared if has_share => {}
            Mode::Shared => entry.shares.get_or_insert_default().states.push(Arc::clone(me)),
        }
        entry.assert_invariants();
        Claim::Mine { key: entry.key.clone(), is_new: !has_share }
    }

    /// Ends the wait of `me` for a row that it did not get, so that others may share the row again.
    pub(crate) fn stop_waiting(&self, tree: u32, key: &[u8], me: &Arc<State>) {
        let (shard, hash) = self.place(tree, key);
        let mut entries = lock(&shard.entries);
        let is_it = |entry: &Entry| entry.tree == tree && *entry.key == *key;
        if let Ok(mut found) = entries.find_entry(hash, is_it) {
            if let Some(shares) = &mut found.get_mut().shares {
                shares.wanted_by.take_if(|waiter| Arc::ptr_eq(waiter, me));
            }
            if found.get_mut().remove_ended() {
                found.remove();
            }
        }
        shard.after_remove(&mut entries);
    }

    /// Returns the transaction that holds a row exclusively. If there is none, a snapshot taken
    /// afterwards sees every change that earlier owners made to the row.
    pub(crate) fn owner(&self, tree: u32, key: &[u8]) -> Option<Arc<State>> {
        let (shard, hash) = self.place(tree, key);
        let entries = lock(&shard.entries);
        let entry = entries.find(hash, |entry| entry.tree == tree && *entry.key == *key)?;
        entry.owner.clone().filter(|owner| !owner.has_released_locks())
    }

    /// Returns whether a row has neither versions nor locks. ORDER: the caller must hold the latch
    /// of the record's leaf, or verify afterwards that the leaf has not changed. A transaction
    /// claims a record before it looks at the leaf to change it. So either its claim is seen here,
    /// or it takes the lock after this call and then finds the leaf latched.
    pub(crate) fn has_no_entry(&self, tree: u32, key: &[u8]) -> bool {
        let (shard, hash) = self.place(tree, key);
        lock(&shard.entries).find(hash, |entry| entry.tree == tree && *entry.key == *key).is_none()
    }

    /// Keeps the contents of a row that `me` holds exclusively and is about to change.
    pub(crate) fn add_version(
        &self,
        me: &Arc<State>,
        epoch: u32,
        tree: u32,
        key: &Key,
        before: Option<&[u8]>,
    ) -> KeptVersions {
        let (shard, hash) = self.place(tree, key);
        let write = || {
            let (writer, before) = (Arc::clone(me), before.map(Bytes::from_slice));
            let is_logged = AtomicBool::new(false);
            Arc::new(Write { writer, epoch, tree, key: key.clone(), before, is_logged })
        };
        let mut entries = lock(&shard.entries);
        let Some(entry) = entries.find_mut(hash, |entry| entry.tree == tree && entry.key == *key) else {
            // The owner's claim keeps the entry alive, so this would have to be a row that was
            // never claimed.
            let write = write();
            return KeptVersions { oldest: Arc::clone(&write), new: Some(write) };
        };
        debug_assert!(
            entry.owner.as_ref().is_some_and(|owner| Arc::ptr_eq(owner, me)),
            "transaction {} changes a row that it does not hold",
            me.id
        );
        let oldest = entry.versions.get(first_version_by(&entry.versions, me)).cloned();
        debug_assert!(
            oldest.as_ref().is_none_or(|oldest| Arc::ptr_eq(&oldest.writer, me)),
            "the versions of transaction {} are not the last ones of its row",
            me.id
        );
        if let (Some(oldest), Some(last)) = (&oldest, entry.versions.last())
            && last.epoch >= epoch
        {
            return KeptVersions { oldest: Arc::clone(oldest), new: None };
        }
        let write = write();
        entry.versions.push(Arc::clone(&write));
        entry.assert_invariants();
        KeptVersions { oldest: oldest.unwrap_or_else(|| Arc::clone(&write)), new: Some(write) }
    }

    /// Determines the version of a row that is visible to a snapshot of `csn` commits, which also
    /// sees the changes of `own` up to a savepoint. Call it after reading the tree.
    #[inline]
    pub(crate) fn visible_version(
        &self,
        tree: u32,
        key: &[u8],
        csn: u64,
        own: Option<(&Arc<State>, u32)>,
        to: &mut Vec<u8>,
    ) -> Seen {
        let (shard, hash) = self.place(tree, key);
        if shard.len.load(Ordering::Acquire) == 0 {
            return Seen::InPlace;
        }
        let entries = lock(&shard.entries);
        let Some(entry) = entries.find(hash, |entry| entry.tree == tree && *entry.key == *key) else {
            return Seen::InPlace;
        };
        // Versions from `first` on belong to changes that are not visible.
        let mut first = entry.versions.len();
        while let Some((last, before)) = entry.versions.get(..first).and_then(<[_]>::split_last) {
            if last.writer.is_visible_at(csn) {
                break;
            }
            let invisible = first;
            first = match own.filter(|(own, _)| Arc::ptr_eq(own, &last.writer)) {
                Some((_, until)) if last.epoch <= until => break,
                // Skips the transaction's own changes after the savepoint.
                Some((own, until)) => before
                    .partition_point(|version| version.epoch <= until || !Arc::ptr_eq(own, &version.writer)),
                None => first_version_by(before, &last.writer),
            };
            debug_assert!(first < invisible, "the search for a visible version stays at {first}");
        }
        match entry.versions.get(first) {
            None => Seen::InPlace,
            Some(write) => match &write.before {
                None => Seen::Absent,
                Some(before) => {
                    to.extend_from_slice(before);
                    Seen::Before
                }
            },
        }
    }

    /// Drops the versions of a row that belong to a transaction whose end every snapshot sees, and
    /// all older ones. The earlier transactions have visibly ended too, and without the later
    /// versions theirs would be taken for newer than the contents of the tree. A row that was
    /// changed many times is processed only once.
    pub(crate) fn forget(&self, write: &Arc<Write>) {
        let (shard, hash) = self.place(write.tree, &write.key);
        let mut entries = lock(&shard.entries);
        let is_it = |entry: &Entry| entry.tree == write.tree && entry.key == write.key;
        if let Ok(mut found) = entries.find_entry(hash, is_it) {
            let entry = found.get_mut();
            let is_own = |version: &Arc<Write>| Arc::ptr_eq(&version.writer, &write.writer);
            let count = entry.versions.iter().rposition(is_own).map_or(0, |last| last + 1);
            debug_assert!(
                entry.versions.iter().take(count).all(|version| version.writer.commit() != ACTIVE),
                "versions of a running transaction are forgotten: {entry:?}"
            );
            entry.versions.drain(..count);
            debug_assert!(!entry.versions.iter().any(is_own), "versions of an ended transaction are left");
            if entry.remove_ended() {
                found.remove();
            }
        }
        shard.after_remove(&mut entries);
    }

    /// Releases a row that was claimed by a transaction that has ended.
    pub(crate) fn release(&self, tree: u32, key: &Key) {
        let (shard, hash) = self.place(tree, key);
        let mut entries = lock(&shard.entries);
        if let Ok(mut found) = entries.find_entry(hash, |entry| entry.tree == tree && entry.key == *key)
            && found.get_mut().remove_ended()
        {
            found.remove();
        }
        shard.after_remove(&mut entries);
    }

    /// Returns the number of rows with locks or versions.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    fn end(state: &State, commit: u64) {
        state.set(commit);
        state.release_locks();
    }

    /// Goal: changing or reading a row that was changed under many savepoints does not visit every
    /// version.
    /// Method: counts visits, and checks the contents seen at each savepoint by the transaction,
    /// and by others.
    #[test]
    fn many_versions_are_searched() {
        let rows = Rows::new();
        let (before, me) = (Arc::new(State::new(1)), Arc::new(State::new(2)));
        let change = |state: &Arc<State>, epoch: u32| {
            let Claim::Mine { key, .. } = rows.claim(1, b"key", state, Mode::Exclusive, None) else {
                panic!()
            };
            rows.add_version(state, epoch, 1, &key, Some(&epoch.to_le_bytes()))
        };
        change(&before, 7);
        end(&before, 5);
        let count = Rc::new(Cell::new(0u64));
        let own = Rc::clone(&count);
        hook::set(move |_| own.set(own.get() + 1));
        let oldest = change(&me, 0).oldest;
        for epoch in 1..2_000 {
            assert!(Arc::ptr_eq(&change(&me, epoch).oldest, &oldest));
        }
        let seen = |csn, until: Option<u32>| {
            let mut found = Vec::new();
            let seen = rows.visible_version(1, b"key", csn, until.map(|until| (&me, until)), &mut found);
            (seen, found.try_into().ok().map(u32::from_le_bytes))
        };
        for until in 0..1_999 {
            assert_eq!(seen(5, Some(until)), (Seen::Before, Some(until + 1)));
            assert_eq!(seen(5, None), (Seen::Before, Some(0)));
        }
        assert_eq!(seen(5, Some(1_999)), (Seen::InPlace, None));
        assert_eq!(seen(4, None), (Seen::Before, Some(7)));
        hook::clear();
        assert!((1..100_000).contains(&count.get()), "{} looks", count.get());
    }

    /// Goal: a row changed under many savepoints is forgotten at once, whichever of its versions
    /// comes first, and no version of another transaction goes with it.
    #[test]
    fn versions_of_transaction_are_forgotten_together() {
        for (turns, first) in [(false, 0), (true, 0), (false, 999), (true, 500)] {
            let rows = Rows::new();
            let (before, me, other) = (State::new(1), State::new(2), State::new(3));
            let (before, me, other) = (Arc::new(before), Arc::new(me), Arc::new(other));
            let change = |state: &Arc<State>, epoch| {
                let Claim::Mine { key, .. } = rows.claim(1, b"key", state, Mode::Exclusive, None) else {
                    panic!()
                };
                rows.add_version(state, epoch, 1, &key, Some(b"value")).new.unwrap()
            };
            let oldest = change(&before, 0);
            end(&before, 5);
            let mut writes: Vec<_> = (0..1_000).map(|epoch| change(&me, epoch)).collect();
            end(&me, 6);
            let newer = change(&other, 0);
            if turns {
                writes.reverse();
            }
            let kept = || {
                rows.place(1, b"key")
                    .0
                    .entries
                    .lock()
                    .unwrap()
                    .iter()
                    .map(|entry| entry.versions.len())
                    .sum::<usize>()
            };
            assert_eq!(kept(), 1_002);
            rows.forget(&oldest);
            assert_eq!(kept(), 1_001);
            rows.forget(&writes[first]);
            assert_eq!(kept(), 1, "of the other one");
            writes.iter().for_each(|write| rows.forget(write));
            assert_eq!(kept(), 1);
            end(&other, 7);
            rows.forget(&newer);
            assert_eq!(rows.len(), 0);
        }
    }

    /// Goal: an undone change is not taken for newer than the contents of the tree, whether it or
    /// the following change is forgotten first. Method: both orders; every snapshot must see the
    /// contents of the tree.
    #[test]
    fn undone_change_is_not_newer_than_tree() {
        for turns in [false, true] {
            let rows = Rows::new();
            let mut writes = Vec::new();
            for (at, commit) in [(1, ABORTED), (2, 5)] {
                let state = Arc::new(State::new(at));
                let Claim::Mine { key, .. } = rows.claim(1, b"key", &state, Mode::Exclusive, None) else {
                    panic!()
                };
                writes.push(rows.add_version(&state, 0, 1, &key, Some(b"old")).new.unwrap());
                end(&state, commit);
            }
            if turns {
                writes.reverse();
            }
            for write in &writes {
                let seen = rows.visible_version(1, b"key", 5, None, &mut Vec::new());
                assert_eq!(seen, Seen::InPlace, "turned round: {turns}");
                rows.forget(write);
            }
            assert_eq!(
                (rows.visible_version(1, b"key", 5, None, &mut Vec::new()), rows.len()),
                (Seen::InPlace, 0)
            );
        }
    }

    /// Goal: the tables keep the size that consecutive transactions need, and no more. Method: one
    /// transaction claims and releases many rows; then transactions of one row each reach every
    /// table.
    #[test]
    fn shard_capacity_follows_usual_size() {
        for (count, kept, most) in [(10_000_u32, 10_000, MAX_KEPT_CAPACITY), (200_000, 0, MIN_CAPACITY)] {
            let rows = Rows::new();
            let capacities = || rows.shards.iter().map(|shard| lock(&shard.0.entries).capacity());
            let transaction = |numbers: std::ops::Range<u32>| {
                let state = Arc::new(State::new(1));
                let claim = |number: u32| {
                    // Consecutive keys would all fall into one table.
                    match rows.claim(1, &(16 * number).to_be_bytes(), &state, Mode::Exclusive, None) {
                        Claim::Mine { key, .. } => key,
                        other => panic!("{other:?}"),
                    }
                };
                let keys: Vec<_> = numbers.map(claim).collect();
                end(&state, 5);
                keys.iter().for_each(|key| rows.release(1, key));
            };
            transaction(0..count);
            assert_eq!(rows.len(), 0);
            // A single table's capacity does not tell: the slots of removed entries count only once
            // they are found free.
            let shards: Vec<usize> = capacities().collect();
            assert!(shards.iter().all(|&capacity| capacity <= most), "{shards:?}");
            assert!(shards.iter().sum::<usize>() >= kept, "{shards:?}");
            (0..4_000).for_each(|number| transaction(number..number + 1));
            assert!(
                capacities().all(|capacity| capacity <= MIN_CAPACITY),
                "{:?}",
                capacities().collect::<Vec<_>>()
            );
        }
    }
}
