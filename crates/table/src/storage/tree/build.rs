//! Bulk building of a tree from sorted records: leaf by leaf, bottom up, with nodes as full as
//! requested.
//!
//! ```text
//!   records ─► a batch ─► leaves, packed: on a separate thread ─► pages, and the levels above
//! ```
//!
//! With many records, one batch is packed while the next one is gathered and the pages of the
//! previous one are written. The pages and their order are the same as without the second thread.

use std::collections::BTreeMap;

use cairn_pool::Changed;
use cairn_vfs::sync::{Arc, Mutex, PoisonError};
use cairn_vfs::thread::{self, JoinHandle};
use cairn_vfs::{Bug, ensure};

use super::leaves::{Leaf, Leaves};
use super::level::{Level, Records};
use super::{MAX_LEVELS, Tree};
use crate::storage::change::Change;
use crate::storage::node::Node;
use crate::storage::ops::image;
use crate::storage::packed::Layout;
use crate::{Error, Result};

/// Size of a batch that justifies a thread: packing it takes some milliseconds.
const BATCH: usize = 1 << 20;

/// Builds an empty tree from records in ascending order. After a failure the owner of the tree
/// cleans up: the root is written last, so a vacuum finds the pages written before.
#[derive(Debug)]
pub(crate) struct Builder {
    tree: Tree,
    /// Number of bytes to fill in each node.
    most: usize,
    /// The last key added.
    last: Option<Vec<u8>>,
    /// Number of records added, and of those in leaves that were written.
    pushed: u64,
    written: u64,
    /// Records that have not been handed over to become leaves.
    batch: Records,
    leaves: LeafMaker,
    /// Number of threads that can run in parallel.
    threads: usize,
    /// Whether to use another thread: there are CPUs for it, and enough records.
    in_background: bool,
    /// Unfinished nodes of the levels above the leaves, which are level 0.
    levels: BTreeMap<usize, Level>,
}

#[derive(Debug)]
enum LeafMaker {
    Ready(Box<Leaves>),
    Background(JoinHandle<Option<Work>>),
    /// Leaves could not be made or written, and no more will be.
    Lost,
}

/// A batch to make leaves of, and then its result.
#[derive(Debug)]
struct Work {
    leaves: Box<Leaves>,
    records: Records,
    made: std::result::Result<Vec<Leaf>, Changed>,
}

impl Work {
    fn done(mut self) -> Work {
        debug_assert!(self.made.as_ref().is_ok_and(Vec::is_empty), "a batch is packed twice");
        self.made = self.leaves.take(&self.records);
        self.records.clear();
        self
    }
}

impl Builder {
    /// Starts with a tree that consists of an empty root. `fill` is the fraction of an ordinary
    /// node to fill, from 0.5 to 1. With a layout, leaves are packed where that saves enough.
    pub(crate) fn new(tree: &Tree, fill: f64, layout: Option<Layout>) -> Self {
        let most = (tree.space.payload as f64 * fill.clamp(0.5, 1.0)) as usize;
        debug_assert!(
            most <= tree.space.payload && most >= tree.space.payload / 2,
            "{most} bytes of {} are filled",
            tree.space.payload
        );
        let leaves = LeafMaker::Ready(Box::new(Leaves::new(tree.space.payload, most, layout)));
        let (tree, batch) = (tree.clone(), Records::default());
        let threads = thread::available_parallelism();
        Builder {
            tree,
            most,
            last: None,
            pushed: 0,
            written: 0,
            batch,
            leaves,
            threads,
            in_background: false,
            levels: BTreeMap::new(),
        }
    }

    /// Overrides the number of threads that can run in parallel.
    #[cfg(test)]
    pub(crate) fn with_threads(self, threads: usize) -> Self {
        Builder { threads, ..self }
    }

    /// Returns whether a key comes after all keys added so far.
    pub(crate) fn is_next(&self, key: &[u8]) -> bool {
        self.last.as_deref().is_none_or(|last| last < key)
    }

    /// Adds a record. Errors: [`Error::TooLong`], [`Error::Invalid`] if it is out of order; the
    /// pool's and the log's.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (len, most) = (key.len() + value.len(), self.tree.max_record());
        if len > most {
            return Err(Error::TooLong { key: key.len(), value: value.len(), most });
        }
        ensure!(self.is_next(key), "a tree is built from {key:?} after {:?}", self.last);
        self.pushed += 1;
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend(key);
        self.batch.push(key, value);
        if self.batch.bytes() >= BATCH { self.hand_over() } else { Ok(()) }
    }

    /// Starts making leaves of the batch, and writes those of the previous batch meanwhile.
    fn hand_over(&mut self) -> Result<()> {
        let (leaves, made, empty) = self.leaves()?;
        let records = std::mem::replace(&mut self.batch, empty);
        debug_assert!(self.batch.len() == 0, "a batch begins with {} records", self.batch.len());
        let work = Work { leaves, records, made: Ok(Vec::new()) };
        if !self.in_background {
            self.in_background = self.threads > 1;
            return self.make_on_this_thread(work);
        }
        // If the thread cannot be started, the work must not be lost with it.
        let place = Arc::new(Mutex::new(Some(work)));
        let take = |place: &Mutex<Option<Work>>| place.lock().unwrap_or_else(PoisonError::into_inner).take();
        let there = Arc::clone(&place);
        let started = thread::spawn("cairn-leaves", move || take(&there).map(Work::done));
        self.write_leaves(made)?;
        match started {
            Ok(thread) => {
                self.leaves = LeafMaker::Background(thread);
                Ok(())
            }
            Err(_) => match take(&place) {
                Some(work) => self.make_on_this_thread(work),
                None => Err(self.build_error()),
            },
        }
    }

    /// Makes leaves on this thread and writes them.
    fn make_on_this_thread(&mut self, work: Work) -> Result<()> {
        let Work { leaves, records, made } = work.done();
        debug_assert!(records.len() == 0, "{} records are packed again", records.len());
        self.write_leaves(made.map_err(|Changed| self.build_error())?)?;
        (self.leaves, self.batch) = (LeafMaker::Ready(leaves), records);
        Ok(())
    }

    /// Waits for the other thread. Returns the leaf maker, the leaves that are made but not
    /// written, and the emptied batch.
    fn leaves(&mut self) -> Result<(Box<Leaves>, Vec<Leaf>, Records)> {
        let work = match std::mem::replace(&mut self.leaves, LeafMaker::Lost) {
            LeafMaker::Ready(leaves) => return Ok((leaves, Vec::new(), Records::default())),
            LeafMaker::Background(thread) => match thread.join() {
                Ok(work) => work,
                // The panic would otherwise have happened on this thread.
                Err(panic) => std::panic::resume_unwind(panic),
            },
            LeafMaker::Lost => None,
        };
        let Work { leaves, records, made } = work.ok_or_else(|| self.build_error())?;
        Ok((leaves, made.map_err(|Changed| self.build_error())?, records))
    }

    fn build_error(&self) -> Error {
        Bug::new(format!("a node of the tree with root {} cannot be built", self.tree.root)).into()
    }

    fn write_leaves(&mut self, leaves: Vec<Leaf>) -> Result<()> {
        for Leaf { payload, upper } in leaves {
            self.written += Node(&payload[..]).count().map_err(|Changed| self.build_error())? as u64;
            let page = self.put(&payload, None)?;
            self.add_child(1, &upper, page)?;
        }
        debug_assert!(
            self.written <= self.pushed,
            "of {} records, {} are in leaves",
            self.pushed,
            self.written
        );
        Ok(())
    }

    fn level(&mut self, level: usize) -> &mut Level {
        debug_assert!(level > 0, "leaves are gathered as inner nodes");
        self.levels.entry(level).or_default()
    }

    fn add_child(&mut self, level: usize, key: &[u8], child: u32) -> Result<()> {
        debug_assert!(child != 0, "page 0 becomes a node of level {}", level - 1);
        let (most, value) = (self.most, child.to_le_bytes());
        let node = self.level(level);
        debug_assert!(
            node.records.last_key().or(node.lower.as_deref()).is_none_or(|last| last < key),
            "the children of level {level} are out of order at {key:?}"
        );
        // Checked before the key is added. A key that shares less with the node's lower fence
        // shortens the common prefix, which makes every record longer, and the node might no longer
        // fit a page. The last child has no record, but its separator becomes the node's upper
        // fence.
        if node.records.len() > 1
            && node.size_with(key, &value) > most
            && let Some(upper) = node.records.last_key().map(<[u8]>::to_vec)
        {
            self.finish_node(level, upper)?;
        }
        self.level(level).records.push(key, &value);
        Ok(())
    }

    /// Writes the node of a level, with upper fence `upper`, and adds it to the level above.
    fn finish_node(&mut self, level: usize, upper: Vec<u8>) -> Result<()> {
        let size = self.tree.space.payload;
        let node = self.level(level).node(level, Some(&upper), None, size);
        let page = self.put(&node.map_err(|Changed| self.build_error())?, None)?;
        self.level(level).clear(upper.clone());
        self.add_child(level + 1, &upper, page)
    }

    /// Writes a page: a new one, or over `page`.
    fn put(&self, payload: &[u8], page: Option<u32>) -> Result<u32> {
        let tree = &self.tree;
        let op = image(payload).map_err(|Changed| self.build_error())?;
        let mut change = Change::default();
        let (page, at) = match page {
            Some(page) => (page, change.hold(tree.space.file.write(page)?)),
            None => match tree.space.allocate(&mut change, 1)?.first() {
                Some(&found) => found,
                None => return Err(Error::NoPages),
            },
        };
        change.plan(at, op);
        change.commit(&*tree.space.log, tree.space.path())?;
        Ok(page)
    }

    /// Writes the remaining nodes and the root. Errors: the pool's and the log's.
    pub(crate) fn finish(mut self) -> Result<()> {
        let (mut leaves, made, _) = self.leaves()?;
        self.write_leaves(made)?;
        let made = leaves.take(&std::mem::take(&mut self.batch)).map_err(|Changed| self.build_error())?;
        self.write_leaves(made)?;
        let (made, mut node) = leaves.finish().map_err(|Changed| self.build_error())?;
        self.write_leaves(made)?;
        // The last node of a level gets its own page if the level has other nodes. The only node of
        // the top level is the root.
        let last = Node(&node[..]).count().map_err(|Changed| self.build_error())? as u64;
        ensure!(
            self.written + last == self.pushed,
            "a tree of {} records is built from {}",
            self.written + last,
            self.pushed
        );
        let (mut level, size) = (1, self.tree.space.payload);
        while self.levels.contains_key(&level) {
            let child = self.put(&node, None)?;
            while let Some((upper, rest)) = self.level(level).halve(level, size) {
                self.finish_node(level, upper)?;
                *self.level(level) = rest;
            }
            let last = self.level(level).node(level, None, Some(child), size);
            node = last.map_err(|Changed| self.build_error())?;
            level += 1;
            ensure!(level <= usize::from(MAX_LEVELS), "a tree is built of {level} levels");
        }
        debug_assert!(self.batch.len() == 0, "{} records are in no leaf", self.batch.len());
        self.put(&node, Some(self.tree.root)).map(drop)
    }
}
