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
    /// One more than there are strings; the first is 0.
    offsets: Vec<usize>,
}

impl Default for Arena {
    fn default() -> Self {
        Arena::with_capacity(0, 0)
    }
}

impl Arena {
    /// An empty list with room for `count` strings of `bytes` bytes together.
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

    /// How many strings.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of all strings together.
    pub fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// String `index`. Panics when there are not so many: indices come from the lab itself.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.offsets[index]..self.offsets[index + 1]]
    }

    /// The strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.batch(0..self.len()).iter()
    }

    /// A run of strings.
    pub fn batch(&self, range: Range<usize>) -> KeyBatch<'_> {
        KeyBatch { bytes: &self.bytes, offsets: &self.offsets[range.start..range.end + 1] }
    }
}

/// A run of prepared keys: all that a store needs to know of a workload while the clock runs.
#[derive(Debug, Clone, Copy)]
pub struct KeyBatch<'a> {
    bytes: &'a [u8],
    /// One more than there are keys.
    offsets: &'a [usize],
}

impl<'a> KeyBatch<'a> {
    /// How many keys.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first `count` of them, or all if there are fewer.
    #[must_use]
    pub fn first(self, count: usize) -> KeyBatch<'a> {
        KeyBatch { bytes: self.bytes, offsets: &self.offsets[..=count.min(self.len())] }
    }

    /// The keys in order. A step costs about a nanosecond: the bytes lie one after the other.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.offsets.windows(2).map(move |ends| &self.bytes[ends[0]..ends[1]])
    }
}
