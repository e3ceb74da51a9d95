//! Merges many cursors into one: over memtables, tables and levels.
//!
//! The children form a binary heap ordered by (key, sequence number descending). Each child stores
//! the first eight bytes of its key as a number, so that most comparisons do not read the key. The
//! child on top stays there while its next entry is still the first one, which costs one or two
//! comparisons per entry.

use std::cmp::Ordering;

use crate::Result;
use crate::cursor::Cursor;
use crate::kind::{Kind, Seqno};

/// Merges cursors of type `C`. Among equal (key, sequence number) the entry of the earlier child
/// comes first, so newer children must be given first.
pub(crate) struct MergeCursor<C> {
    children: Vec<Child<C>>,
    /// Indices of the valid children, as a binary heap.
    heap: Vec<u32>,
    direction: Direction,
}

struct Child<C> {
    cursor: C,
    /// The key's first eight bytes, big-endian, padded with zeros.
    head: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    Forward,
    Backward,
}

/// Returns the first eight bytes of `key` as a number with the same order; shorter keys are padded
/// with zeros.
#[inline]
pub(crate) fn key_head(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            head[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(head)
        }
    }
}

impl<C: Cursor> Child<C> {
    #[inline]
    fn refresh(&mut self) {
        self.head = key_head(self.cursor.key());
    }

    /// Orders by key ascending, then by sequence number descending.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.head
            .cmp(&other.head)
            .then_with(|| self.cursor.key().cmp(other.cursor.key()))
            .then_with(|| other.cursor.seqno().cmp(&self.cursor.seqno()))
    }
}

impl<C: Cursor> MergeCursor<C> {
    /// Creates a cursor over all of `cursors`, the newest first.
    pub(crate) fn new(cursors: Vec<C>) -> Self {
        debug_assert!(u32::try_from(cursors.len()).is_ok(), "{} cursors", cursors.len());
        let heap = Vec::with_capacity(cursors.len());
        let children = cursors.into_iter().map(|cursor| Child { cursor, head: 0 }).collect();
        MergeCursor { children, heap, direction: Direction::Forward }
    }

    /// Returns true when the child at heap position `a` comes before the one at `b` in the
    /// direction of iteration.
    #[inline]
    fn before(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.heap[a], self.heap[b]);
        let order = self.children[a as usize].cmp(&self.children[b as usize]).then(a.cmp(&b));
        match self.direction {
            Direction::Forward => order.is_lt(),
            Direction::Backward => order.is_gt(),
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            if left >= self.heap.len() {
                return;
            }
            let right = left + 1;
            let child = if right < self.heap.len() && self.before(right, left) { right } else { left };
            if !self.before(child, place) {
                return;
            }
            self.heap.swap(place, child);
            place = child;
        }
    }

    /// Builds the heap from all children that are positioned on an entry.
    fn rebuild(&mut self, direction: Direction) {
        self.direction = direction;
        self.heap.clear();
        for (index, child) in self.children.iter_mut().enumerate() {
            if child.cursor.valid() {
                child.refresh();
                self.heap.push(index as u32);
            }
        }
        for place in (0..self.heap.len() / 2).rev() {
            self.sift_down(place);
        }
        self.assert_heap();
    }

    #[inline]
    fn top(&self) -> &C {
        debug_assert!(!self.heap.is_empty(), "the cursor has no position");
        &self.children[self.heap[0] as usize].cursor
    }

    /// Restores the heap after the child on top has moved, or removes the child if it has ended.
    #[inline]
    fn settle_top(&mut self) {
        let child = &mut self.children[self.heap[0] as usize];
        if child.cursor.valid() {
            child.refresh();
        } else {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        debug_assert!(self.heap.len() < 2 || !self.before(1, 0), "the left child comes before the top");
        debug_assert!(self.heap.len() < 3 || !self.before(2, 0), "the right child comes before the top");
    }

    /// Asserts that each valid child is in the heap once, below one that comes before it. For debug
    /// builds.
    fn assert_heap(&self) {
        debug_assert!(self.heap.len() <= self.children.len(), "a child is in the heap twice");
        debug_assert!(
            (1..self.heap.len()).all(|at| !self.before(at, (at - 1) / 2)),
            "the heap is not ordered"
        );
    }

    /// Makes an error final: after a failed operation the cursor is no longer valid.
    fn guard(&mut self, result: Result<()>) -> Result<()> {
        if result.is_err() {
            self.heap.clear();
        }
        result
    }

    fn each(&mut self, mut f: impl FnMut(&mut C) -> Result<()>) -> Result<()> {
        self.children.iter_mut().try_for_each(|child| f(&mut child.cursor))
    }

    /// Changes direction: all children except the one on top are positioned on the wrong side of
    /// the current entry.
    fn turn(&mut self, direction: Direction) -> Result<()> {
        debug_assert!(direction != self.direction, "the cursor moves {direction:?} already");
        let top = self.heap[0] as usize;
        let (key, seqno) = (self.top().key().to_vec(), self.top().seqno());
        for (index, child) in self.children.iter_mut().enumerate() {
            if index == top {
                continue;
            }
            let cursor = &mut child.cursor;
            // Seeks the first entry at or after the current one. The current entry itself is only
            // in the top child.
            cursor.seek(&key, seqno)?;
            if direction == Direction::Backward {
                if cursor.valid() {
                    cursor.prev()?;
                } else {
                    cursor.seek_last()?;
                }
            }
        }
        self.rebuild(direction);
        Ok(())
    }
}

impl<C: Cursor> Cursor for MergeCursor<C> {
    #[inline]
    fn valid(&self) -> bool {
        !self.heap.is_empty()
    }

    fn seek_first(&mut self) -> Result<()> {
        let result = self.each(Cursor::seek_first);
        self.guard(result)?;
        self.rebuild(Direction::Forward);
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        let result = self.each(Cursor::seek_last);
        self.guard(result)?;
        self.rebuild(Direction::Backward);
        Ok(())
    }

    fn seek(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        let result = self.each(|cursor| cursor.seek(key, seqno));
        self.guard(result)?;
        self.rebuild(Direction::Forward);
        Ok(())
    }

    fn seek_back(&mut self, key: &[u8], inclusive: bool) -> Result<()> {
        let result = self.each(|cursor| cursor.seek_back(key, inclusive));
        self.guard(result)?;
        self.rebuild(Direction::Backward);
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if self.direction == Direction::Backward {
            let result = self.turn(Direction::Forward);
            self.guard(result)?;
        }
        let result = self.children[self.heap[0] as usize].cursor.next();
        self.guard(result)?;
        self.settle_top();
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if self.direction == Direction::Forward {
            let result = self.turn(Direction::Backward);
            self.guard(result)?;
        }
        let result = self.children[self.heap[0] as usize].cursor.prev();
        self.guard(result)?;
        self.settle_top();
        Ok(())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.top().key()
    }

    #[inline]
    fn seqno(&self) -> Seqno {
        self.top().seqno()
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.top().kind()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.top().value()
    }
}
