//! Building a tree from records that come in order: leaf by leaf, from the bottom up, nodes as full
//! as is asked.
//!
//! ```text
//!   records ─► a batch ─► leaves, packed: on a thread of their own ─► pages, and the levels above
//! ```
//!
//! Of many records a batch is packed while the next one is gathered and the pages of the one before
//! are written. What is written, and in which order, is the same as without the other thread.

use std::collections::BTreeMap;

use cairn_pool::Changed;
use cairn_vfs::sync::{Arc, Mutex, PoisonError};
use cairn_vfs::thread::{self, JoinHandle};

use super::Tree;
use super::leaves::{Leaf, Leaves};
use super::level::{Level, Records};
use crate::storage::change::Change;
use crate::storage::ops::image;
use crate::storage::packed::Layout;
use crate::{Error, Result};

/// Bytes of records that are worth a thread: packing them takes some milliseconds.
const BATCH: usize = 1 << 20;

/// Takes records in ascending order and makes an empty tree of them. What a failure leaves is the
/// tree's owner's to give back: the root is written last, so the pages that were written before are
/// found by a vacuum.
#[derive(Debug)]
pub(crate) struct Builder {
    tree: Tree,
    /// As many bytes a node gets.
    most: usize,
    /// The last key that was put in.
    last: Option<Vec<u8>>,
    /// Records that no leaves are being made of yet.
    batch: Records,
    leaves: Making,
    /// Threads that can run at once.
    threads: usize,
    /// Whether there are processors for another thread, and so many records that they are worth
    /// one.
    beside: bool,
    /// Nodes of the levels above the leaves, which are the level 0.
    levels: BTreeMap<usize, Level>,
}

#[derive(Debug)]
enum Making {
    Here(Box<Leaves>),
    Beside(JoinHandle<Option<Work>>),
    /// What came of them could not be written: nothing more is.
    Lost,
}

/// A batch that leaves are made of, and then what came of it.
#[derive(Debug)]
struct Work {
    leaves: Box<Leaves>,
    records: Records,
    made: std::result::Result<Vec<Leaf>, Changed>,
}

impl Work {
    fn done(mut self) -> Work {
        self.made = self.leaves.take(&self.records);
        self.records.clear();
        self
    }
}

impl Builder {
    /// Begins with a tree that has nothing but its root. `fill` is the part of an ordinary node
    /// that gets full, from 0.5 to 1. With a layout leaves are packed where that saves enough.
    pub(crate) fn new(tree: &Tree, fill: f64, layout: Option<Layout>) -> Self {
        let most = (tree.space.payload as f64 * fill.clamp(0.5, 1.0)) as usize;
        let leaves = Making::Here(Box::new(Leaves::new(tree.space.payload, most, layout)));
        let (tree, batch) = (tree.clone(), Records::default());
        let threads = thread::available_parallelism();
        Builder { tree, most, last: None, batch, leaves, threads, beside: false, levels: BTreeMap::new() }
    }

    /// As if so many threads could run at once.
    #[cfg(test)]
    pub(crate) fn with_threads(self, threads: usize) -> Self {
        Builder { threads, ..self }
    }

    /// Whether a key comes after all that were put in.
    pub(crate) fn is_next(&self, key: &[u8]) -> bool {
        self.last.as_deref().is_none_or(|last| last < key)
    }

    /// Puts a record in. Errors: [`Error::TooLong`], [`Error::Invalid`] for one that is out of
    /// order; the pool's and the log's.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (len, most) = (key.len() + value.len(), self.tree.max_record());
        if len > most {
            return Err(Error::TooLong { key: key.len(), value: value.len(), most });
        }
        if !self.is_next(key) {
            return Err(Error::Invalid { what: "a tree is built from keys in ascending order".to_owned() });
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend(key);
        self.batch.push(key, value);
        if self.batch.bytes() >= BATCH { self.hand_over() } else { Ok(()) }
    }

    /// Has leaves made of the batch, and writes those of the one before meanwhile.
    fn hand_over(&mut self) -> Result<()> {
        let (leaves, made, empty) = self.leaves()?;
        let records = std::mem::replace(&mut self.batch, empty);
        let work = Work { leaves, records, made: Ok(Vec::new()) };
        if !self.beside {
            self.beside = self.threads > 1;
            return self.make_here(work);
        }
        // A thread that is not to be had must not take the work with it.
        let place = Arc::new(Mutex::new(Some(work)));
        let take = |place: &Mutex<Option<Work>>| place.lock().unwrap_or_else(PoisonError::into_inner).take();
        let there = Arc::clone(&place);
        let started = thread::spawn("cairn-leaves", move || take(&there).map(Work::done));
        self.write_leaves(made)?;
        match started {
            Ok(thread) => {
                self.leaves = Making::Beside(thread);
                Ok(())
            }
            Err(_) => match take(&place) {
                Some(work) => self.make_here(work),
                None => Err(self.unbuildable()),
            },
        }
    }

    /// Makes leaves and writes them.
    fn make_here(&mut self, work: Work) -> Result<()> {
        let Work { leaves, records, made } = work.done();
        self.write_leaves(made.map_err(|Changed| self.unbuildable())?)?;
        (self.leaves, self.batch) = (Making::Here(leaves), records);
        Ok(())
    }

    /// The leaves, once nobody else makes any, those that are done and not written, and the batch
    /// that they were made of, emptied.
    fn leaves(&mut self) -> Result<(Box<Leaves>, Vec<Leaf>, Records)> {
        let work = match std::mem::replace(&mut self.leaves, Making::Lost) {
            Making::Here(leaves) => return Ok((leaves, Vec::new(), Records::default())),
            Making::Beside(thread) => match thread.join() {
                Ok(work) => work,
                // It would have panicked here.
                Err(panic) => std::panic::resume_unwind(panic),
            },
            Making::Lost => None,
        };
        let Work { leaves, records, made } = work.ok_or_else(|| self.unbuildable())?;
        Ok((leaves, made.map_err(|Changed| self.unbuildable())?, records))
    }

    fn unbuildable(&self) -> Error {
        self.tree.space.damaged(self.tree.root, "a node of it cannot be built")
    }

    fn write_leaves(&mut self, leaves: Vec<Leaf>) -> Result<()> {
        for Leaf { payload, upper } in leaves {
            let page = self.put(&payload, None)?;
            self.add_child(1, &upper, page)?;
        }
        Ok(())
    }

    fn level(&mut self, level: usize) -> &mut Level {
        self.levels.entry(level).or_default()
    }

    fn add_child(&mut self, level: usize, key: &[u8], child: u32) -> Result<()> {
        let (most, value) = (self.most, child.to_le_bytes());
        let node = self.level(level);
        // Before it is one of them: a key that has less in common with the node's lower fence makes
        // every record of it longer, and then it would fit no page. The last child has no record,
        // but its separator is the node's fence.
        if node.records.len() > 1
            && node.size_with(key, &value) > most
            && let Some(upper) = node.records.last_key().map(<[u8]>::to_vec)
        {
            self.finish_node(level, upper)?;
        }
        self.level(level).records.push(key, &value);
        Ok(())
    }

    /// Writes the node of a level, which ends with `upper`, and tells the level above.
    fn finish_node(&mut self, level: usize, upper: Vec<u8>) -> Result<()> {
        let size = self.tree.space.payload;
        let node = self.level(level).node(level, Some(&upper), None, size);
        let page = self.put(&node.map_err(|Changed| self.unbuildable())?, None)?;
        self.level(level).clear(upper.clone());
        self.add_child(level + 1, &upper, page)
    }

    /// Writes a page, to a new one or over `page`.
    fn put(&self, payload: &[u8], page: Option<u32>) -> Result<u32> {
        let tree = &self.tree;
        let op = image(payload).map_err(|Changed| self.unbuildable())?;
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

    /// Writes what is left, and the root. Errors: the pool's and the log's.
    pub(crate) fn finish(mut self) -> Result<()> {
        let (mut leaves, made, _) = self.leaves()?;
        self.write_leaves(made)?;
        let made = leaves.take(&std::mem::take(&mut self.batch)).map_err(|Changed| self.unbuildable())?;
        self.write_leaves(made)?;
        let (made, mut node) = leaves.finish().map_err(|Changed| self.unbuildable())?;
        self.write_leaves(made)?;
        // The last node of a level goes to a page of its own where the level has others; the only
        // node of the top level is the root.
        let (mut level, size) = (1, self.tree.space.payload);
        while self.levels.contains_key(&level) {
            let child = self.put(&node, None)?;
            while let Some((upper, rest)) = self.level(level).halve(level, size) {
                self.finish_node(level, upper)?;
                *self.level(level) = rest;
            }
            let last = self.level(level).node(level, None, Some(child), size);
            node = last.map_err(|Changed| self.unbuildable())?;
            level += 1;
        }
        self.put(&node, Some(self.tree.root)).map(drop)
    }
}
