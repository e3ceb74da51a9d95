//! Iterates over a memtable in order, in both directions, while other threads insert into it.
//!
//! The cursor copies the records of one leaf at a time and validates the copy, so that it is
//! unaffected by changes to the tree. It returns every entry that existed when it was positioned,
//! exactly once, and possibly some later ones.
//!
//! - Forward: a leaf may be split after it was copied. The entries that moved to its new neighbour
//!   are in the copy, so the iteration continues with the neighbour that the leaf had when it was
//!   copied.
//! - Backward: the remembered left neighbour may have been split, and then the nearest leaf is one
//!   of those split off. It is the one whose `next` leads to the leaf that the cursor comes from.
#![allow(unsafe_code)]

use cairn_vfs::sync::Arc;

use super::Memtable;
use super::arena::Held;
use super::node::{CAPACITY, Node};
use super::prefetch::prefetch;
use super::probe::Probe;
use super::record::Record;
use super::versions::{self, Versions};
use crate::Result;
use crate::cursor::Cursor;
use crate::kind::{Kind, Seqno, Version};

/// Number of records to prefetch ahead of the cursor. A record that was not prefetched costs a
/// cache miss.
const AHEAD: usize = 8;
/// Number of cache lines to prefetch per record.
const RECORD_LINES: usize = 1;

/// A cursor over all versions in a memtable, which it keeps alive. Its moves never fail.
///
/// `'static` in its fields means as long as `memtable`: nothing borrowed from them is handed out
/// for longer than a borrow of the cursor.
pub(crate) struct MemCursor {
    memtable: Arc<Memtable>,
    page: Page,
    /// Index of the current record in the page.
    pos: usize,
    current: Option<Current>,
}

/// A copy of a leaf.
struct Page {
    leaf: Option<Held<'static, Node>>,
    next: Option<Held<'static, Node>>,
    prev: Option<Held<'static, Node>>,
    len: usize,
    records: [Option<Held<'static, Record>>; CAPACITY],
}

/// The position of a cursor.
#[derive(Clone, Copy)]
struct Current {
    record: Held<'static, Record>,
    version: Version<'static>,
    older: Versions<'static>,
}

impl MemCursor {
    /// Creates an unpositioned cursor.
    pub(super) fn new(memtable: Arc<Memtable>) -> Self {
        let page = Page { leaf: None, next: None, prev: None, len: 0, records: [None; CAPACITY] };
        MemCursor { memtable, page, pos: 0, current: None }
    }

    /// Copies the leaf that covers `probe`. Returns its position in the copy, and whether the key
    /// itself is there.
    fn find(&mut self, probe: &Probe<'_>) -> (usize, bool) {
        loop {
            let (leaf, seen) = self.memtable.tree.leaf(probe);
            // SAFETY: the memtable, and with it the arena, lives as long as the cursor.
            let leaf = unsafe { leaf.detached() };
            let rank = leaf.get().rank(probe).map(|rank| (rank.pos, rank.equal.is_some()));
            self.page.copy(leaf);
            if let Some(found) = rank
                && leaf.lock.unchanged(seen)
            {
                return found;
            }
        }
    }

    /// Moves to the newest version of the record at `pos`, or of the first record in the leaves to
    /// the right.
    fn settle_right(&mut self, pos: usize) {
        self.pos = pos;
        // BOUND: the number of leaves to the right. Only the first leaf of an empty memtable is
        // empty.
        while self.pos >= self.page.len {
            let Some(next) = self.page.next else {
                self.current = None;
                return;
            };
            self.page.load(next);
            debug_assert!(self.page.len > 0, "a leaf beside another has no keys");
            self.pos = 0;
        }
        self.current =
            self.page.record(self.pos).and_then(|record| Current::newest(Versions::all(record), record));
        debug_assert!(self.current.is_some(), "a record has a version");
        if let Some(ahead) = self.page.record(self.pos + AHEAD) {
            prefetch(ahead, RECORD_LINES);
        }
    }

    /// Moves to the oldest version of the record before `pos`, or of the last record in the leaves
    /// to the left.
    fn settle_left(&mut self, pos: usize) {
        self.pos = pos;
        // BOUND: the number of leaves to the left.
        while self.pos == 0 {
            if !self.page.load_left() {
                self.current = None;
                return;
            }
            self.pos = self.page.len;
        }
        self.pos -= 1;
        self.current = self.page.record(self.pos).map(Current::oldest);
        debug_assert!(self.current.is_some(), "position {} of {} records", self.pos, self.page.len);
        if let Some(ahead) = self.pos.checked_sub(AHEAD).and_then(|ahead| self.page.record(ahead)) {
            prefetch(ahead, RECORD_LINES);
        }
    }
}

impl Page {
    fn record(&self, pos: usize) -> Option<Held<'static, Record>> {
        if pos < self.len { self.records.get(pos).copied().flatten() } else { None }
    }

    /// Copies `leaf`, possibly as a mixture of its states.
    fn copy(&mut self, leaf: Held<'static, Node>) {
        let node = leaf.get();
        self.leaf = Some(leaf);
        self.len = node.copy_records(&mut self.records);
        debug_assert!(self.len <= CAPACITY && node.level() == 0, "{} records of a leaf", self.len);
        self.next = node.next.get();
        self.prev = node.prev.get();
    }

    /// Copies `leaf` as of some moment of the call.
    fn load(&mut self, leaf: Held<'static, Node>) {
        loop {
            let seen = leaf.lock.read();
            self.copy(leaf);
            if leaf.lock.unchanged(seen) {
                break;
            }
        }
        for record in self.records.iter().take(self.len.min(AHEAD)).flatten() {
            prefetch(*record, RECORD_LINES);
        }
    }

    /// Copies the left neighbour. Returns false if there is none.
    fn load_left(&mut self) -> bool {
        let (Some(from), Some(mut left)) = (self.leaf, self.prev) else { return false };
        // BOUND: the number of leaves split off the left neighbour since `prev` was read.
        loop {
            self.load(left);
            match self.next {
                Some(next) if next != from => left = next,
                _ => {
                    debug_assert!(self.len > 0, "a leaf beside another has no keys");
                    return true;
                }
            }
        }
    }
}

impl Current {
    /// Takes the first of `versions` of `record`.
    #[inline]
    fn newest(mut versions: Versions<'static>, record: Held<'static, Record>) -> Option<Self> {
        let version = versions.next()?;
        Some(Current { record, version, older: versions })
    }

    /// Takes the oldest version of `record`.
    #[inline]
    fn oldest(record: Held<'static, Record>) -> Self {
        Current::at(record, versions::oldest(record))
    }

    #[inline]
    fn at(record: Held<'static, Record>, version: Version<'static>) -> Self {
        Current { record, version, older: Versions::before(record, version.seqno) }
    }
}

impl Cursor for MemCursor {
    fn valid(&self) -> bool {
        self.current.is_some()
    }

    fn seek_first(&mut self) -> Result<()> {
        self.seek(&[], Seqno::MAX)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.current = None;
        if let Some(last) = self.memtable.tree.last_leaf() {
            // SAFETY: the memtable, and with it the arena, lives as long as the cursor.
            self.page.load(unsafe { last.detached() });
            // The leaf may have been split since it was found.
            while let Some(next) = self.page.next {
                self.page.load(next);
            }
            self.settle_left(self.page.len);
        }
        Ok(())
    }

    fn seek(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        let (pos, equal) = self.find(&Probe::new(key));
        let record = if equal { self.page.record(pos) } else { None };
        match record.and_then(|record| Current::newest(Versions::at(record, seqno), record)) {
            Some(current) => (self.pos, self.current) = (pos, Some(current)),
            None => self.settle_right(pos + usize::from(equal)),
        }
        debug_assert!(
            self.current.is_none_or(|Current { record, version, .. }| {
                record.key() > key || (record.key() == key && version.seqno <= seqno)
            }),
            "the entry comes before that of number {seqno}"
        );
        Ok(())
    }

    fn seek_back(&mut self, key: &[u8], inclusive: bool) -> Result<()> {
        let (pos, equal) = self.find(&Probe::new(key));
        self.settle_left(pos + usize::from(equal && inclusive));
        debug_assert!(
            self.current.is_none_or(|Current { record, .. }| {
                record.key() < key || (inclusive && record.key() == key)
            }),
            "the entry comes after the key"
        );
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        if let Some(current) = &mut self.current {
            match current.older.next() {
                Some(version) => {
                    debug_assert!(version.seqno < current.version.seqno, "versions descend");
                    current.version = version;
                }
                None => {
                    let before = current.record;
                    self.settle_right(self.pos + 1);
                    debug_assert!(
                        self.current.is_none_or(|current| current.record.key() > before.key()),
                        "keys ascend"
                    );
                }
            }
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(Current { record, version, .. }) = self.current {
            match versions::oldest_after(record, version.seqno) {
                Some(newer) => {
                    debug_assert!(newer.seqno > version.seqno, "backwards, versions ascend");
                    self.current = Some(Current::at(record, newer));
                }
                None => {
                    self.settle_left(self.pos);
                    debug_assert!(
                        self.current.is_none_or(|current| current.record.key() < record.key()),
                        "backwards, keys descend"
                    );
                }
            }
        }
        Ok(())
    }

    fn key(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |current| current.record.key())
    }

    fn seqno(&self) -> Seqno {
        self.current.as_ref().map_or(0, |current| current.version.seqno)
    }

    fn kind(&self) -> Kind {
        self.current.as_ref().map_or(Kind::Delete, |current| current.version.kind)
    }

    fn value(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |current| current.version.value)
    }
}

impl std::fmt::Debug for MemCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemCursor")
            .field("key", &self.key())
            .field("seqno", &self.seqno())
            .finish_non_exhaustive()
    }
}
