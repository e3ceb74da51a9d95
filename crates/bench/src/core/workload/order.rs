//! The order of reads, prepared before the clock starts, with the expected digest of each chunk.

use std::ops::Range;

use super::{Arena, Dataset, Distribution, KeyBatch, Lookup, Sampler};
use crate::core::digest::{Digest, Outline};

/// Number of keys that a store gets at a time. Between chunks the runner reads the clock and
/// compares the digest, which adds about 50 ns per thousand lookups.
pub const CHUNK_KEYS: usize = 1024;

/// Prepared keys and, for every chunk of them, the digest of the correct answers.
#[derive(Debug, Clone)]
pub struct ReadOrder {
    keys: Arena,
    expected: Vec<Digest>,
    outlines: Vec<Outline>,
    first: Digest,
}

impl ReadOrder {
    /// Draws `count` keys (at least one) from the data set.
    ///
    /// `count` should be as large as the data set, or at least so large that the values read do not
    /// fit into the processor's caches; otherwise a run measures those. Costs the bytes of the keys
    /// and 8 more for each.
    pub fn new(
        dataset: &Dataset,
        distribution: Distribution,
        lookup: Lookup,
        count: usize,
        seed: u64,
    ) -> Self {
        let count = count.max(1);
        let mut sampler = Sampler::new(distribution, dataset.len() as u64, seed);
        let mean_key = dataset.key(0).len() + 4;
        let mut keys = Arena::with_capacity(count, count * mean_key);
        let mut expected = vec![Digest::default(); count.div_ceil(CHUNK_KEYS)];
        let mut outlines = vec![Outline::default(); expected.len()];
        let mut first = Digest::default();
        let absent = (lookup == Lookup::Absent).then(|| dataset.absent_keys());
        for position in 0..count {
            let index = sampler.draw() as usize;
            match &absent {
                Some(absent) => keys.push_with(|out| absent.write(index, out)),
                None => {
                    keys.push(dataset.key(index));
                    let value = dataset.value(index);
                    expected[position / CHUNK_KEYS].add(position % CHUNK_KEYS, value);
                    outlines[position / CHUNK_KEYS].add(value);
                    if position == 0 {
                        first.add(0, value);
                    }
                }
            }
        }
        ReadOrder { keys, expected, outlines, first }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there are no keys, which [`ReadOrder::new`] rules out.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the number of chunks; all but the last have [`CHUNK_KEYS`] keys.
    pub fn chunks(&self) -> usize {
        self.expected.len()
    }

    /// Returns the keys of chunk `index` and the digest of the correct answers.
    pub fn chunk(&self, index: usize) -> (KeyBatch<'_>, Digest) {
        (self.keys.batch(self.range(index)), self.expected[index])
    }

    /// Returns the digest of the correct answer to the first key alone.
    pub fn first_answer(&self) -> Digest {
        self.first
    }

    /// Returns the digest that the Java process must compute for chunk `index`.
    pub fn outline(&self, index: usize) -> Outline {
        self.outlines[index]
    }

    /// Returns all keys.
    pub fn keys(&self) -> &Arena {
        &self.keys
    }

    /// Returns the number of keys that have an answer.
    pub fn found(&self) -> u64 {
        self.expected.iter().map(|digest| digest.found).sum()
    }

    fn range(&self, chunk: usize) -> Range<usize> {
        let start = chunk * CHUNK_KEYS;
        start..(start + CHUNK_KEYS).min(self.keys.len())
    }
}
