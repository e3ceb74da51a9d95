//! Many byte strings in two allocations, so that ten million records cost their bytes and eight
//! more each.
//!
//! ```text
//!   bytes    k e y _ 0 k e y _ 1 k e y _ 2
//!   offsets  0         5         10        15        offsets[i] .. offsets[i + 1] is string i
//! ```

use std::ops::Range;

/// An append-only list of byte strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arena {
    bytes: Vec<u8>,
    /// One more element than there are strings; the first is 0.
    offsets: Vec<usize>,
}

impl Default for Arena {
    fn default() -> Self {
        Arena::with_capacity(0, 0)
    }
}

impl Arena {
    /// Creates an empty list with capacity for `count` strings of `bytes` bytes in total.
    pub fn with_capacity(count: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(count + 1);
        offsets.push(0);
        Arena { bytes: Vec::with_capacity(bytes), offsets }
    }

    /// Appends a string.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.offsets.push(self.bytes.len());
    }

    /// Appends the string that `write` adds to the end of the bytes.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.bytes.len();
        write(&mut self.bytes);
        debug_assert!(self.bytes.len() >= before, "a string cannot take bytes from the one before it");
        self.offsets.push(self.bytes.len());
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns true if there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the total length of all strings.
    pub fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns string `index`. Panics if it is out of range, because indices come from the lab
    /// itself.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.offsets[index]..self.offsets[index + 1]]
    }

    /// Iterates over the strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.batch(0..self.len()).iter()
    }

    /// Returns the strings of a range.
    pub fn batch(&self, range: Range<usize>) -> KeyBatch<'_> {
        KeyBatch { bytes: &self.bytes, offsets: &self.offsets[range.start..range.end + 1] }
    }
}

/// A range of prepared keys: the only part of a workload that a store gets while the clock runs.
#[derive(Debug, Clone, Copy)]
pub struct KeyBatch<'a> {
    bytes: &'a [u8],
    /// One more element than there are keys.
    offsets: &'a [usize],
}

impl<'a> KeyBatch<'a> {
    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns true if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the first `count` keys, or all if there are fewer.
    #[must_use]
    pub fn first(self, count: usize) -> KeyBatch<'a> {
        KeyBatch { bytes: self.bytes, offsets: &self.offsets[..=count.min(self.len())] }
    }

    /// Iterates over the keys in order. A step costs about a nanosecond, because the bytes are
    /// contiguous.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.offsets.windows(2).map(move |ends| &self.bytes[ends[0]..ends[1]])
    }
}
