//! A B+tree from byte-string keys, in order, to byte-string values.
//!
//! Reads take no latch. Writes take a single one unless they must split a node. This is optimistic
//! lock coupling over the pool's views; `docs/src/design/sql.md` explains how and why.

mod build;
mod count;
mod cursor;
mod leaves;
mod level;
mod position;
mod relocate;
mod restructure;
mod unpack;

use std::cmp::Ordering;
use std::iter::once;
use std::sync::Arc;

use cairn_pool::{Changed, Lsn, Optimistic};
use cairn_vfs::{Bug, ErrorKind, ensure};

pub(crate) use self::build::Builder;
pub use self::cursor::{Cursor, Direction};
pub use self::restructure::TreeStats;
use super::chain::free_chain;
use super::change::{Change, change_page};
use super::long_record::LongRecord;
use super::node::{Bounds, INNER, LEAF, Node, NodeMut, SLOT, max_record};
use super::ops::{Op, image};
use super::packed::{ColumnSet, PACKED};
use super::space::Space;
use crate::{Error, Result, hook};

/// More levels than a tree of 2^32 pages can have.
const MAX_LEVELS: u8 = 32;
/// Each node has at least two children, and a page number has 32 bits.
const _: () = assert!(MAX_LEVELS as u32 >= u32::BITS && MERGE_CHECK_INTERVAL > 0);

/// A sparse leaf is considered for a merge with a neighbour only when its record count passes a
/// multiple of this.
const MERGE_CHECK_INTERVAL: usize = 8;

/// Number of keys of a run whose order is checked in tests.
const SAMPLE: usize = 64;

/// Number of attempts before a thread whose pages keep changing yields to others.
const ATTEMPTS: u32 = 16;

/// A tree, identified by its root page, which never changes.
#[derive(Debug, Clone)]
pub struct Tree {
    space: Arc<Space>,
    root: u32,
}

/// A change of a record by a caller that inspects the record first.
pub(crate) trait Edit {
    /// Inspects the current record. Returning false leaves the record unchanged. An error aborts
    /// the change.
    fn decide(&mut self, current: Option<&[u8]>) -> Result<bool>;

    /// Returns the new value, and the buffer that holds the header of the log record, in which the
    /// log record is built.
    fn parts(&mut self) -> (&[u8], &mut Vec<u8>);
}

/// The outcome of [`Tree::remove_run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Run {
    /// Number of keys processed.
    pub(crate) keys: usize,
    /// Number of records removed.
    pub(crate) removed: usize,
}

/// Reusable buffers of [`Tree::remove_run`], for repeated calls.
#[derive(Debug, Default)]
pub(crate) struct RunMemory {
    value: Vec<u8>,
    found: Vec<Found>,
    record: Vec<u8>,
    /// From the last run: the indexes of the keys whose records exist and were not free.
    pub(crate) held: Vec<usize>,
}

/// A key of a run that the leaf contains.
#[derive(Debug)]
struct Found {
    /// Index of the key in the run.
    number: usize,
    /// Position in the leaf.
    at: u16,
    /// Whether the value passes the test.
    goes: bool,
}

/// The reason why an attempt failed.
#[derive(Debug)]
enum Stop {
    /// A page that was read has changed: retry.
    Changed,
    Error(Error),
}

type Attempt<T> = std::result::Result<T, Stop>;

impl From<Changed> for Stop {
    fn from(Changed: Changed) -> Self {
        Stop::Changed
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Error(error)
    }
}

impl From<Bug> for Stop {
    fn from(bug: Bug) -> Self {
        Stop::Error(bug.into())
    }
}

impl From<cairn_pool::Error> for Stop {
    fn from(error: cairn_pool::Error) -> Self {
        Stop::Error(error.into())
    }
}

/// How [`Tree::insert`] and similar functions treat an existing key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existing {
    Keep,
    Replace,
}

impl Tree {
    /// Creates an empty tree. Errors: the pool's and the log's; [`Error::NoPages`].
    pub fn create(space: &Arc<Space>) -> Result<Tree> {
        let mut change = Change::default();
        let pages = space.allocate(&mut change, 1)?;
        let Some(&(root, at)) = pages.first() else { return Err(Error::NoPages) };
        let mut payload = vec![0; space.payload];
        let made = NodeMut(&mut payload).clear(0, Bounds { lower: None, upper: None });
        let op = made
            .and_then(|()| image(&payload))
            .map_err(|Changed| Bug::new(format!("a page of {} bytes has no node", space.payload)))?;
        ensure!(root != 0, "a tree would have its root on page 0");
        change.plan(at, op);
        change.commit(&*space.log, space.path())?;
        Ok(Tree { space: Arc::clone(space), root })
    }

    /// Opens an existing tree.
    pub fn open(space: &Arc<Space>, root: u32) -> Tree {
        Tree { space: Arc::clone(space), root }
    }

    /// Returns the root page, by which [`Tree::open`] finds the tree.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Returns the maximum size of key and value together, in bytes.
    pub fn max_record(&self) -> usize {
        max_record(self.space.payload)
    }

    /// Appends the value of a key to a buffer. Returns false if the key does not exist. Errors: the
    /// pool's, [`Error::Corruption`].
    pub fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        Ok(self.get_with_lsn(key, ColumnSet::ALL, value)?.is_some())
    }

    /// Like [`Tree::get`], but returns the LSN of the last change of the page with the record. For
    /// a record in a packed leaf, unwanted columns are NULL.
    #[inline]
    pub(crate) fn get_with_lsn(
        &self,
        key: &[u8],
        wanted: ColumnSet,
        value: &mut Vec<u8>,
    ) -> Result<Option<Lsn>> {
        let start = value.len();
        self.attempt(|| {
            value.truncate(start);
            let leaf = self.descend(key)?;
            let node = Node(&leaf);
            let (at, is_there) = self.sound(&leaf, node.search(key))?;
            if is_there {
                self.sound(&leaf, node.value_of(at, wanted, value))?;
            }
            let lsn = leaf.lsn();
            leaf.validate()?;
            Ok(is_there.then_some(lsn))
        })
    }

    /// Returns whether a key exists. Errors: as [`Tree::get`].
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        self.attempt(|| {
            let leaf = self.descend(key)?;
            let (_, is_there) = self.sound(&leaf, Node(&leaf).search(key))?;
            leaf.validate()?;
            Ok(is_there)
        })
    }

    /// Inserts a record. Returns false, and changes nothing, if the key exists. Errors:
    /// [`Error::TooLong`]; the pool's and the log's.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.write(key, value, Existing::Keep, &mut Vec::new())
    }

    /// Inserts a record, or replaces the value of an existing one. Returns true if it was inserted.
    /// Errors: as [`Tree::insert`].
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.write(key, value, Existing::Replace, &mut Vec::new())
    }

    /// Like [`Tree::put`], with a header for the log record, which is built in the header's buffer.
    pub(crate) fn put_for(&self, key: &[u8], value: &[u8], header: &mut Vec<u8>) -> Result<bool> {
        self.write(key, value, Existing::Replace, header)
    }

    /// Inserts or replaces a record as [`Tree::put`] does. `edit` inspects the current record first
    /// and decides whether to proceed. It may be called more than once, and the caller must ensure
    /// that the record does not change meanwhile. Returns true if the change was made. `found` is a
    /// buffer for the current record.
    pub(crate) fn edit(&self, key: &[u8], found: &mut Vec<u8>, edit: &mut dyn Edit) -> Result<bool> {
        self.attempt(|| {
            let leaf = self.descend(key)?;
            let node = Node(&leaf);
            let (at, is_there) = self.sound(&leaf, node.search(key))?;
            found.clear();
            if is_there {
                self.sound(&leaf, node.value(at, found))?;
            }
            let prefix = self.sound(&leaf, node.prefix_len())?;
            let free = self.sound(&leaf, node.free())?;
            leaf.validate()?;
            if !edit.decide(is_there.then_some(&found[..]))? {
                return Ok(false);
            }
            let rest = self.sound(&leaf, key.get(prefix..).ok_or(Changed))?;
            let (value, header) = edit.parts();
            let (len, most) = (key.len() + value.len(), self.max_record());
            if len > most {
                let (key, value) = (key.len(), value.len());
                return Err(Error::TooLong { key, value, most }.into());
            }
            self.unpacked(&leaf, key)?;
            let freed = if is_there { SLOT + rest.len() + found.len() } else { 0 };
            if free + freed < SLOT + rest.len() + value.len() {
                self.split(key)?;
                return Err(Stop::Changed);
            }
            debug_assert!(u16::try_from(at).is_ok(), "a leaf has more than {at} records");
            let at = at as u16;
            let op = if is_there { Op::Replace { at, value } } else { Op::Insert { at, key: rest, value } };
            let guard = leaf.upgrade_exclusive()?;
            change_page(guard, once(op), header, &*self.space.log, self.space.path())?;
            Ok(true)
        })
    }

    fn write(&self, key: &[u8], value: &[u8], existing: Existing, header: &mut Vec<u8>) -> Result<bool> {
        let (len, most) = (key.len() + value.len(), self.max_record());
        if len > most {
            return Err(Error::TooLong { key: key.len(), value: value.len(), most });
        }
        self.attempt(|| {
            let leaf = self.descend(key)?;
            let node = Node(&leaf);
            let (at, is_there) = self.sound(&leaf, node.search(key))?;
            if is_there && existing == Existing::Keep {
                leaf.validate()?;
                return Ok(false);
            }
            self.unpacked(&leaf, key)?;
            let prefix = self.sound(&leaf, node.prefix_len())?;
            let rest = self.sound(&leaf, key.get(prefix..).ok_or(Changed))?;
            // Replacing a value by a longer one frees the old space only if the key is removed too,
            // so both are counted.
            let freed =
                if is_there { SLOT + rest.len() + self.sound(&leaf, node.value_len(at))? } else { 0 };
            if self.sound(&leaf, node.free())? + freed < SLOT + rest.len() + value.len() {
                leaf.validate()?;
                self.split(key)?;
                return Err(Stop::Changed);
            }
            debug_assert!(u16::try_from(at).is_ok(), "a leaf has more than {at} records");
            let at = at as u16;
            let op = if is_there { Op::Replace { at, value } } else { Op::Insert { at, key: rest, value } };
            change_page(leaf.upgrade_exclusive()?, once(op), header, &*self.space.log, self.space.path())?;
            Ok(!is_there)
        })
    }

    /// Removes a record. Returns false if it does not exist. Errors: the pool's and the log's.
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        Ok(self.remove_run(&[key], |_| true, |_| true, &mut RunMemory::default())?.removed > 0)
    }

    /// Removes the records whose values pass a test: that of the first of `keys`, which are in
    /// order, and those of the following keys that lie on the same leaf. While the leaf cannot
    /// change, `is_free` is called for each record found. A record that is not free stays and is
    /// listed in `memory.held`. Cost: one descent and one log record for all keys. Errors: as
    /// [`Tree::remove`].
    pub(crate) fn remove_run<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        test: impl Fn(&[u8]) -> bool,
        is_free: impl Fn(&K) -> bool,
        memory: &mut RunMemory,
    ) -> Result<Run> {
        let RunMemory { value, found, record, held } = memory;
        let Some(first) = keys.first().map(AsRef::as_ref) else { return Ok(Run::default()) };
        debug_assert!(
            keys.iter().take(SAMPLE).is_sorted_by(|a, b| a.as_ref() <= b.as_ref()),
            "a run of keys is out of order"
        );
        let is_held = |number: &usize| !keys.get(*number).is_some_and(&is_free);
        let (run, is_sparse) = self.attempt(|| {
            let leaf = self.descend(first)?;
            let (looked_at, freed) = self.find_run(&leaf, keys, &test, value, found)?;
            let going = found.iter().filter(|found| found.goes).count();
            held.clear();
            if going == 0 {
                held.extend(found.iter().map(|found| found.number).filter(is_held));
                // The answers of `is_free` hold only if the leaf has not changed meanwhile.
                leaf.validate()?;
                return Ok((Run { keys: looked_at, removed: 0 }, false));
            }
            self.unpacked(&leaf, first)?;
            // Not at every removal: while the neighbours are full, a merge attempt fails, and costs
            // more than the removal.
            let node = Node(&leaf);
            let count = self.sound(&leaf, node.count())?;
            let left = count.saturating_sub(going);
            let is_turn = count.saturating_sub(1) / MERGE_CHECK_INTERVAL * MERGE_CHECK_INTERVAL >= left;
            let is_sparse = is_turn && self.sound(&leaf, node.free())? + freed > self.space.payload / 4 * 3;
            let guard = leaf.upgrade_exclusive()?;
            held.extend(found.iter().map(|found| found.number).filter(is_held));
            // Both lists are sorted.
            found.retain(|found| found.goes && held.binary_search(&found.number).is_err());
            let run = Run { keys: looked_at, removed: found.len() };
            if found.is_empty() {
                return Ok((run, false));
            }
            // From the last to the first, so that no removal moves a record still to be removed.
            let ops = found.iter().rev().map(|found| Op::Remove { at: found.at });
            record.clear();
            change_page(guard, ops, record, &*self.space.log, self.space.path())?;
            Ok((run, is_sparse))
        })?;
        // The records are removed and logged, so a failure to merge neighbours is not a failure of
        // this call. Damage is reported once the page is needed.
        debug_assert!(
            run.keys > 0 && run.removed <= run.keys,
            "a run of {} keys ends as {run:?}",
            keys.len()
        );
        debug_assert!(held.is_sorted_by(|a, b| a < b), "records are held twice: {held:?}");
        if is_sparse
            && let Err(error) = self.merge(first)
            && error.kind() == ErrorKind::Poisoned
        {
            return Err(error);
        }
        Ok(run)
    }

    /// Finds the keys that a leaf contains, among those that fall into its range. Returns the
    /// number of keys in its range, and the bytes of the records that pass the test.
    fn find_run(
        &self,
        leaf: &Optimistic<'_>,
        keys: &[impl AsRef<[u8]>],
        test: impl Fn(&[u8]) -> bool,
        value: &mut Vec<u8>,
        found: &mut Vec<Found>,
    ) -> Attempt<(usize, usize)> {
        let node = Node(leaf);
        let prefix = self.sound(leaf, node.prefix_len())?;
        let (mut looked_at, mut freed) = (0, 0);
        found.clear();
        for (number, key) in keys.iter().map(AsRef::as_ref).enumerate() {
            if number > 0 && self.sound(leaf, node.compare_upper(key))?.is_some_and(Ordering::is_lt) {
                break;
            }
            looked_at += 1;
            let (at, is_there) = self.sound(leaf, node.search(key))?;
            debug_assert!(u16::try_from(at).is_ok(), "a leaf has more than {at} records");
            let at = at as u16;
            // The same key may be given twice.
            if !is_there || found.last().is_some_and(|last| last.at == at) {
                continue;
            }
            value.clear();
            self.sound(leaf, node.value(at.into(), value))?;
            let goes = test(value);
            if goes {
                freed += SLOT + key.len().saturating_sub(prefix) + value.len();
            }
            found.push(Found { number, at, goes });
        }
        debug_assert!(looked_at <= keys.len(), "{looked_at} of {} keys were looked up", keys.len());
        Ok((looked_at, freed))
    }

    /// Returns keys, in order, that divide the tree into parts of similar size: at least `least` of
    /// them if the tree has enough nodes. Cost: reads the upper nodes. Errors: the pool's,
    /// [`Error::Corruption`].
    pub(crate) fn separators(&self, least: usize) -> Result<Vec<Vec<u8>>> {
        let mut nodes = vec![self.root];
        let mut keys = Vec::new();
        let mut expected = None;
        loop {
            let (mut below, mut level_below) = (Vec::new(), 0);
            keys.clear();
            for (at, &number) in nodes.iter().enumerate() {
                hook::at("looks for separators");
                let page = self.space.file.read(number)?;
                let node = Node(&*page);
                // Once its parent is released, the page may be freed and reused at any time.
                if expected.is_some_and(|level| node.kind() != Ok(INNER) || node.level() != Ok(level)) {
                    hook::at("passes over a page");
                    continue;
                }
                let read = || -> std::result::Result<u8, Changed> {
                    let mut key = Vec::new();
                    if at > 0 && node.lower(&mut key)? {
                        keys.push(key.clone());
                    }
                    if node.kind()? == INNER {
                        for record in 0..node.count()? {
                            node.key(record, &mut key)?;
                            keys.push(key.clone());
                        }
                        for child in 0..=node.count()? {
                            below.push(node.child(child)?);
                        }
                    }
                    node.level()
                };
                let mut read = read;
                level_below = read()
                    .map_err(|Changed| self.space.damaged(number, "its records extend beyond the page"))?;
            }
            // Other threads may split nodes meanwhile. A key more or less does not matter, but the
            // order does.
            if keys.len() >= least || level_below <= 1 {
                keys.sort_unstable();
                keys.dedup();
                debug_assert!(keys.is_sorted_by(|a, b| a < b), "separators are equal");
                return Ok(keys);
            }
            nodes = below;
            expected = Some(level_below - 1);
        }
    }

    /// Frees all pages including the root, and with `with_chains` those of long rows. The tree must
    /// no longer be in use. Errors: the pool's and the log's; a vacuum finds pages that were not
    /// freed then.
    pub(crate) fn free(&self, with_chains: bool) -> Result<()> {
        let level = {
            let root = self.space.file.read(self.root)?;
            Node(&*root).level().ok().filter(|level| *level < MAX_LEVELS)
        };
        let level = level.ok_or_else(|| self.space.damaged(self.root, "it is not a node of a tree"))?;
        self.free_below(self.root, level, with_chains)
    }

    /// Frees a node of a level and everything below it. BOUND: each node is one level below its
    /// parent.
    fn free_below(&self, number: u32, level: u8, with_chains: bool) -> Result<()> {
        debug_assert!(level < MAX_LEVELS, "page {number} is freed as a node of level {level}");
        let page = self.space.file.read(number)?;
        let below = {
            let node = Node(&*page);
            let read = || -> std::result::Result<Vec<u32>, Changed> {
                match (node.kind()?, node.level()?) {
                    // Packed leaves contain no long rows.
                    (PACKED, 0) if level == 0 => Ok(Vec::new()),
                    (LEAF, 0) if level == 0 && !with_chains => Ok(Vec::new()),
                    (LEAF, 0) if level == 0 => {
                        let mut chains = Vec::new();
                        for at in 0..node.count()? {
                            let value = page.get(node.record(at)?.1).ok_or(Changed)?;
                            chains.extend(LongRecord::decode(value).map(|long| long.first));
                        }
                        Ok(chains)
                    }
                    (INNER, found) if found > 0 && found == level => {
                        (0..=node.count()?).map(|at| node.child(at)).collect()
                    }
                    _ => Err(Changed),
                }
            };
            let what = || format!("it is not a node of level {level} of a tree");
            read().map_err(|Changed| self.space.damaged(number, what()))?
        };
        // Only few pages may be held at once, so the path from the root is released first.
        drop(page);
        for mut page in below {
            match level.checked_sub(1) {
                Some(level) => self.free_below(page, level, with_chains)?,
                None => free_chain(&self.space, &mut page)?,
            }
        }
        let mut change = Change::default();
        let at = change.hold(self.space.file.write(number)?);
        self.space.release(&mut change, number, at)?;
        change.commit(&*self.space.log, self.space.path())
    }

    /// Ensures that the leaf of a key about to change is not packed. A packed one is converted or
    /// split, which counts as a change.
    #[inline]
    fn unpacked(&self, leaf: &Optimistic<'_>, key: &[u8]) -> Attempt<()> {
        if !self.sound(leaf, Node(leaf).is_packed())? {
            return Ok(());
        }
        leaf.validate()?;
        self.split(key)?;
        Err(Stop::Changed)
    }

    /// Retries until an attempt succeeds or fails for good.
    fn attempt<T>(&self, mut attempt: impl FnMut() -> Attempt<T>) -> Result<T> {
        for count in 0u32.. {
            match attempt() {
                Ok(value) => return Ok(value),
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::Changed) if count < ATTEMPTS => cairn_vfs::thread::spin_loop(),
                Err(Stop::Changed) => cairn_vfs::thread::yield_now(),
            }
        }
        Err(self.space.damaged(self.root, "reads of this tree never became consistent"))
    }

    fn view(&self, page: u32) -> Attempt<Optimistic<'_>> {
        Ok(self.space.file.optimistic(page)?)
    }

    /// Distinguishes bytes that changed during a read from bytes that are invalid.
    fn sound<T>(&self, view: &Optimistic<'_>, read: std::result::Result<T, Changed>) -> Attempt<T> {
        read.map_err(|Changed| match view.validate() {
            Ok(()) => Stop::Error(self.space.damaged(view.id().page(), "its records extend beyond the page")),
            Err(Changed) => Stop::Changed,
        })
    }

    /// Returns the level of a node. Fails if the page is not a node.
    fn level(&self, view: &Optimistic<'_>) -> Attempt<u8> {
        let node = Node(view);
        let (kind, level) = (self.sound(view, node.kind())?, self.sound(view, node.level())?);
        let is_node = if level == 0 { matches!(kind, LEAF | PACKED) } else { kind == INNER };
        if is_node && level < MAX_LEVELS {
            return Ok(level);
        }
        view.validate()?;
        let what = format!("it is of kind {kind} and level {level}, expected a node of a tree");
        Err(Stop::Error(self.space.damaged(view.id().page(), what)))
    }

    /// Returns a view of a child, taken while it was the child of its parent.
    fn below(&self, parent: &Optimistic<'_>, level: u8, child: u32) -> Attempt<Optimistic<'_>> {
        parent.validate()?;
        let view = self.view(child)?;
        // The page may have been reused between the two steps.
        parent.validate()?;
        self.check_level(&view, level, parent.id().page())?;
        Ok(view)
    }

    /// Checks that a child is one level below its parent.
    fn check_level(&self, child: &Optimistic<'_>, level: u8, parent: u32) -> Attempt<()> {
        debug_assert!(level > 0, "page {parent} is a leaf, and has a child");
        let found = self.level(child)?;
        if found + 1 == level {
            return Ok(());
        }
        child.validate()?;
        let what = format!("it is of level {found}, but the child of page {parent} of level {level}");
        Err(Stop::Error(self.space.damaged(child.id().page(), what)))
    }

    /// Returns the leaf whose range includes a key.
    #[inline]
    fn descend(&self, key: &[u8]) -> Attempt<Optimistic<'_>> {
        let mut view = self.view(self.root)?;
        let mut level = self.level(&view)?;
        while level > 0 {
            let (child, _) = self.sound(&view, Node(&view).child_of(key))?;
            view = self.below(&view, level, child)?;
            level -= 1;
        }
        debug_assert!(level == 0, "a descent ends at level {level}");
        Ok(view)
    }
}

#[cfg(test)]
mod tests;
