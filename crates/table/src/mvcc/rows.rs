//! Rows that somebody is changing, has locked, or has changed so lately that others must not see
//! it.
//!
//! ```text
//!   (tree, key) -> owner       who may change it; nobody else until that transaction has ended
//!                  shares      who wants it to stay as it is
//!                  versions    what it was before each change, the oldest first:  before 1 | before 2 | ... | what the tree has
//! ```
//!
//! ORDER: a version is put here before the tree is changed. So who reads the tree first, and looks
//! here afterwards, finds the version of every change that it has read and must not have seen. What
//! it finds may be newer than what it read; the version before that is the same either way.

use std::hash::BuildHasher;

use cairn_vfs::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use cairn_vfs::sync::{Arc, Line, Mutex, lock};
use hashbrown::{DefaultHashBuilder, HashTable};
use smallvec::{SmallVec, smallvec};

use super::key::Key;
use super::state::{ABORTED, State};
use crate::hook;

const SHARDS: usize = 64;
/// Places that a shard keeps when it is empty.
const KEPT: usize = 28;
/// And the most that it keeps where it had that many rows since it was empty the last time:
/// transactions that follow each other are about as large, and a table that grows from the
/// beginning each time is made anew three times. 64 KiB, and 4 MiB of all shards.
const KEPT_MOST: usize = 896;

/// What a record was: short ones, as most entries of indexes, in place.
type Bytes = SmallVec<[u8; 16]>;

/// A change of one record, and how to undo it.
#[derive(Debug)]
pub(crate) struct Write {
    writer: Arc<State>,
    /// Counts the writer's savepoints.
    epoch: u32,
    /// The root of the tree.
    pub(crate) tree: u32,
    pub(crate) key: Key,
    /// What the record was; `None` when there was none.
    pub(crate) before: Option<Bytes>,
    /// Whether the log says so. Of a transaction's oldest change of a record only.
    is_logged: AtomicBool,
}

impl Write {
    pub(crate) fn is_logged(&self) -> bool {
        self.is_logged.load(Ordering::Relaxed)
    }

    /// The record that says what was before is in the log.
    pub(crate) fn set_logged(&self) {
        self.is_logged.store(true, Ordering::Relaxed);
    }
}

/// Of a row that is going to be changed.
#[derive(Debug)]
pub(crate) struct Kept {
    /// What it was before the first change by the same transaction.
    pub(crate) oldest: Arc<Write>,
    /// What it was before this change, unless that was kept since the same savepoint.
    pub(crate) new: Option<Arc<Write>>,
}

/// Who wants a row to stay as it is.
#[derive(Debug, Default)]
struct Shares {
    states: SmallVec<[Arc<State>; 2]>,
    /// Who waits for all of them to end. Nobody joins them meanwhile, or there would be no end.
    wanted_by: Option<Arc<State>>,
}

#[derive(Debug)]
struct Entry {
    tree: u32,
    key: Key,
    owner: Option<Arc<State>>,
    /// Seldom any, and a row of a large transaction should not cost more memory than it must.
    shares: Option<Box<Shares>>,
    versions: SmallVec<[Arc<Write>; 1]>,
}

impl Entry {
    /// Lets go of everybody who has ended. True when nothing is left.
    ///
    /// That a transaction has its place in the order of commits is not enough: it is seen by nobody
    /// yet, and whoever got its row would find what it wrote there and not see it in a snapshot.
    fn tidy(&mut self) -> bool {
        if self.owner.as_ref().is_some_and(|owner| owner.has_let_go()) {
            self.owner = None;
        }
        if let Some(shares) = &mut self.shares {
            shares.states.retain(|share| !share.has_let_go());
            shares.wanted_by.take_if(|waiter| waiter.has_let_go());
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
    /// As many as there are in `entries`, for who only wants to know that there is none.
    len: AtomicUsize,
    /// As many as there were at most of late: half of what it was, each time that there is none.
    /// Changed under the lock only.
    peak: AtomicUsize,
}

impl Shard {
    /// Says how many there are after one has come.
    fn has_more(&self, entries: &HashTable<Entry>) {
        let len = entries.len();
        if len > self.peak.load(Ordering::Relaxed) {
            self.peak.store(len, Ordering::Relaxed);
        }
        self.len.store(len, Ordering::Release);
    }

    /// Says how many there are after some have gone, and gives the memory of a large transaction
    /// back: few rows in a large table are each on a cache line that nobody has seen for long.
    fn has_fewer(&self, entries: &mut HashTable<Entry>) {
        if entries.is_empty() && entries.capacity() > KEPT {
            let peak = self.peak.load(Ordering::Relaxed);
            let is_usual = entries.capacity() <= KEPT_MOST && peak > entries.capacity() / 4;
            if !is_usual {
                *entries = HashTable::with_capacity(KEPT);
            }
            // Which rows a transaction has in which table is chance: one that has few here does not
            // mean that they have become few.
            self.peak.store(peak / 2, Ordering::Relaxed);
        }
        self.len.store(entries.len(), Ordering::Release);
    }
}

/// The rows of a database that are more than what its trees say.
#[derive(Debug)]
pub(crate) struct Rows {
    shards: Box<[Line<Shard>]>,
    hash: DefaultHashBuilder,
}

/// Where the versions by a transaction begin, which are the last ones. They lie together, as it has
/// the row to its end; there may be one for each of its savepoints, and they are not gone through.
fn first_of(versions: &[Arc<Write>], writer: &Arc<State>) -> usize {
    versions.partition_point(|version| {
        hook::at("looks at a version");
        !Arc::ptr_eq(&version.writer, writer)
    })
}

/// What came of wanting a row.
#[derive(Debug)]
pub(crate) enum Claim {
    /// It is the caller's. `is_new` when it was not before, and `key` is to be kept for
    /// [`Rows::release`].
    Mine { key: Key, is_new: bool },
    /// Somebody has it, or some do: wait for the end of one, and ask again.
    Wait(Vec<Arc<State>>),
    /// It was changed after the caller's snapshot.
    Changed,
}

/// How a row is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// To change it.
    Exclusive,
    /// So that nobody changes it.
    Shared,
}

/// What somebody sees of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// What the tree has.
    InPlace,
    /// What it was before: appended to the caller's buffer.
    Before,
    /// Nothing: it was not there.
    Absent,
}

impl Rows {
    pub(crate) fn new() -> Self {
        Rows { shards: (0..SHARDS).map(|_| Line::default()).collect(), hash: DefaultHashBuilder::default() }
    }

    /// A hash that keeps neighbours together: a table takes its places from the low bits, so keys
    /// that follow each other lie side by side, and a large load in order waits for memory once in
    /// sixteen rows. Its tags come from the high bits, and must differ among neighbours.
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

    /// Wants a row for `me`. With `snapshot`, a change that those do not see who see so many
    /// commits is told.
    pub(crate) fn claim(
        &self,
        tree: u32,
        key: &[u8],
        me: &Arc<State>,
        mode: Mode,
        snapshot: Option<u64>,
    ) -> Claim {
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
            shard.has_more(&entries);
            return Claim::Mine { key, is_new: true };
        };
        entry.tidy();
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
        Claim::Mine { key: entry.key.clone(), is_new: !has_share }
    }

    /// `me` does not wait for a row any more that it has not got: others may share it again.
    pub(crate) fn give_up(&self, tree: u32, key: &[u8], me: &Arc<State>) {
        let (shard, hash) = self.place(tree, key);
        let mut entries = lock(&shard.entries);
        let is_it = |entry: &Entry| entry.tree == tree && *entry.key == *key;
        if let Ok(mut found) = entries.find_entry(hash, is_it) {
            if let Some(shares) = &mut found.get_mut().shares {
                shares.wanted_by.take_if(|waiter| Arc::ptr_eq(waiter, me));
            }
            if found.get_mut().tidy() {
                found.remove();
            }
        }
        shard.has_fewer(&mut entries);
    }

    /// Who has a row to change it. Where there is nobody, a snapshot that is taken afterwards sees
    /// what everybody did to the row who had it before.
    pub(crate) fn owner(&self, tree: u32, key: &[u8]) -> Option<Arc<State>> {
        let (shard, hash) = self.place(tree, key);
        let entries = lock(&shard.entries);
        let entry = entries.find(hash, |entry| entry.tree == tree && *entry.key == *key)?;
        entry.owner.clone().filter(|owner| !owner.has_let_go())
    }

    /// Whether nothing is kept of a row, and nobody has it. ORDER: for who holds the record's leaf,
    /// or sees afterwards that nobody has changed that. Whoever wants to change the record claims
    /// it before it looks at the leaf: so it is seen here, or it comes behind this under the lock,
    /// and finds the leaf held.
    pub(crate) fn is_forgotten(&self, tree: u32, key: &[u8]) -> bool {
        let (shard, hash) = self.place(tree, key);
        lock(&shard.entries).find(hash, |entry| entry.tree == tree && *entry.key == *key).is_none()
    }

    /// Keeps what a row was that `me` owns and is going to change.
    pub(crate) fn keep(
        &self,
        me: &Arc<State>,
        epoch: u32,
        tree: u32,
        key: &Key,
        before: Option<&[u8]>,
    ) -> Kept {
        let (shard, hash) = self.place(tree, key);
        let write = || {
            let (writer, before) = (Arc::clone(me), before.map(Bytes::from_slice));
            let is_logged = AtomicBool::new(false);
            Arc::new(Write { writer, epoch, tree, key: key.clone(), before, is_logged })
        };
        let mut entries = lock(&shard.entries);
        let Some(entry) = entries.find_mut(hash, |entry| entry.tree == tree && entry.key == *key) else {
            // Nobody else changes a row that somebody owns, so it would have to be a row that
            // nobody has claimed.
            let write = write();
            return Kept { oldest: Arc::clone(&write), new: Some(write) };
        };
        let oldest = entry.versions.get(first_of(&entry.versions, me)).cloned();
        if let (Some(oldest), Some(last)) = (&oldest, entry.versions.last())
            && last.epoch >= epoch
        {
            return Kept { oldest: Arc::clone(oldest), new: None };
        }
        let write = write();
        entry.versions.push(Arc::clone(&write));
        Kept { oldest: oldest.unwrap_or_else(|| Arc::clone(&write)), new: Some(write) }
    }

    /// What those see of a row who see so many commits, and what `own` has done up to a savepoint.
    /// Call it after the tree was read.
    #[inline]
    pub(crate) fn see(
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
        // Those from here on are not seen.
        let mut first = entry.versions.len();
        while let Some((last, before)) = entry.versions.get(..first).and_then(<[_]>::split_last) {
            if last.writer.is_visible_at(csn) {
                break;
            }
            first = match own.filter(|(own, _)| Arc::ptr_eq(own, &last.writer)) {
                Some((_, until)) if last.epoch <= until => break,
                // Its own last ones it has not seen yet.
                Some((own, until)) => before
                    .partition_point(|version| version.epoch <= until || !Arc::ptr_eq(own, &version.writer)),
                None => first_of(before, &last.writer),
            };
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

    /// Forgets what a row was before a change by a transaction whose end everybody sees, before its
    /// other changes, and before those of who had the row earlier: their end is seen as well, and
    /// their versions without this one's would be taken for newer than what the tree has. A row
    /// that was changed again and again is gone through once.
    pub(crate) fn forget(&self, write: &Arc<Write>) {
        let (shard, hash) = self.place(write.tree, &write.key);
        let mut entries = lock(&shard.entries);
        let is_it = |entry: &Entry| entry.tree == write.tree && entry.key == write.key;
        if let Ok(mut found) = entries.find_entry(hash, is_it) {
            let entry = found.get_mut();
            let is_own = |version: &Arc<Write>| Arc::ptr_eq(&version.writer, &write.writer);
            let count = entry.versions.iter().rposition(is_own).map_or(0, |last| last + 1);
            entry.versions.drain(..count);
            if entry.tidy() {
                found.remove();
            }
        }
        shard.has_fewer(&mut entries);
    }

    /// Lets go of a row that was claimed by somebody who has ended.
    pub(crate) fn release(&self, tree: u32, key: &Key) {
        let (shard, hash) = self.place(tree, key);
        let mut entries = lock(&shard.entries);
        if let Ok(mut found) = entries.find_entry(hash, |entry| entry.tree == tree && entry.key == *key)
            && found.get_mut().tidy()
        {
            found.remove();
        }
        shard.has_fewer(&mut entries);
    }

    /// How many rows are more than what the trees say.
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
        state.let_go();
    }

    /// Goal: a row that was changed under many savepoints is changed again, and read by others,
    /// without a look at each of its versions. Method: counts; and what is seen by those of each
    /// savepoint, by the transaction and by others.
    #[test]
    fn many_versions() {
        let rows = Rows::new();
        let (before, me) = (Arc::new(State::new(1)), Arc::new(State::new(2)));
        let change = |state: &Arc<State>, epoch: u32| {
            let Claim::Mine { key, .. } = rows.claim(1, b"key", state, Mode::Exclusive, None) else {
                panic!()
            };
            rows.keep(state, epoch, 1, &key, Some(&epoch.to_le_bytes()))
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
            let seen = rows.see(1, b"key", csn, until.map(|until| (&me, until)), &mut found);
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

    /// Goal: a row that was changed under many savepoints is forgotten at once, whichever of its
    /// versions comes first, and no version of anybody else with it.
    #[test]
    fn versions_of_one_transaction() {
        for (turns, first) in [(false, 0), (true, 0), (false, 999), (true, 500)] {
            let rows = Rows::new();
            let (before, me, other) = (State::new(1), State::new(2), State::new(3));
            let (before, me, other) = (Arc::new(before), Arc::new(me), Arc::new(other));
            let change = |state: &Arc<State>, epoch| {
                let Claim::Mine { key, .. } = rows.claim(1, b"key", state, Mode::Exclusive, None) else {
                    panic!()
                };
                rows.keep(state, epoch, 1, &key, Some(b"value")).new.unwrap()
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

    /// Goal: a change that was undone is not taken for a newer one than what the tree has,
    /// whichever of it and the change behind it is forgotten first. Method: both orders; what
    /// everybody sees is what the tree has.
    #[test]
    fn a_change_that_was_undone_before_another() {
        for turns in [false, true] {
            let rows = Rows::new();
            let mut writes = Vec::new();
            for (at, commit) in [(1, ABORTED), (2, 5)] {
                let state = Arc::new(State::new(at));
                let Claim::Mine { key, .. } = rows.claim(1, b"key", &state, Mode::Exclusive, None) else {
                    panic!()
                };
                writes.push(rows.keep(&state, 0, 1, &key, Some(b"old")).new.unwrap());
                end(&state, commit);
            }
            if turns {
                writes.reverse();
            }
            for write in &writes {
                let seen = rows.see(1, b"key", 5, None, &mut Vec::new());
                assert_eq!(seen, Seen::InPlace, "turned round: {turns}");
                rows.forget(write);
            }
            assert_eq!((rows.see(1, b"key", 5, None, &mut Vec::new()), rows.len()), (Seen::InPlace, 0));
        }
    }

    /// Goal: tables of rows stay as large as transactions are that follow each other, and no
    /// larger. Method: rows of one transaction, all let go of; then transactions of a row each, in
    /// every table.
    #[test]
    fn memory_is_kept_for_what_is_usual() {
        for (count, kept, most) in [(10_000_u32, 10_000, KEPT_MOST), (200_000, 0, KEPT)] {
            let rows = Rows::new();
            let capacities = || rows.shards.iter().map(|shard| lock(&shard.0.entries).capacity());
            let transaction = |numbers: std::ops::Range<u32>| {
                let state = Arc::new(State::new(1));
                let claim = |number: u32| {
                    // Neighbours would be in one table.
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
            // Of a table by itself the places of rows that left it do not tell: they count only
            // when they are found free.
            let shards: Vec<usize> = capacities().collect();
            assert!(shards.iter().all(|&capacity| capacity <= most), "{shards:?}");
            assert!(shards.iter().sum::<usize>() >= kept, "{shards:?}");
            (0..4_000).for_each(|number| transaction(number..number + 1));
            assert!(capacities().all(|capacity| capacity <= KEPT), "{:?}", capacities().collect::<Vec<_>>());
        }
    }
}
