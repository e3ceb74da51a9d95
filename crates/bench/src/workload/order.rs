//! The order of reads, prepared before the clock starts, with what each part of it must return.

use std::ops::Range;

use super::{Arena, Dataset, Distribution, KeyBatch, Lookup, Sampler};
use crate::digest::{Digest, Outline};

/// Keys handed to a store at a time. Between chunks the runner looks at the clock and compares the
/// digest, which adds some 50 ns to a thousand lookups.
pub const CHUNK_KEYS: usize = 1024;

/// Prepared keys and, for every chunk of them, the digest of the right answers.
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
    /// fit into the processor's caches; otherwise a run measures those. Costs the keys' bytes and 8
    /// more for each.
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

    /// How many keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True when there are none, which [`ReadOrder::new`] does not make.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many chunks; all have [`CHUNK_KEYS`] keys but the last.
    pub fn chunks(&self) -> usize {
        self.expected.len()
    }

    /// The keys of chunk `index` and the digest of the right answers.
    pub fn chunk(&self, index: usize) -> (KeyBatch<'_>, Digest) {
        (self.keys.batch(self.range(index)), self.expected[index])
    }

    /// The digest of the right answer to the first key alone.
    pub fn first_answer(&self) -> Digest {
        self.first
    }

    /// What the Java side must find in chunk `index`.
    pub fn outline(&self, index: usize) -> Outline {
        self.outlines[index]
    }

    /// All keys at once.
    pub fn keys(&self) -> &Arena {
        &self.keys
    }

    /// The keys that have an answer.
    pub fn found(&self) -> u64 {
        self.expected.iter().map(|digest| digest.found).sum()
    }

    fn range(&self, chunk: usize) -> Range<usize> {
        let start = chunk * CHUNK_KEYS;
        start..(start + CHUNK_KEYS).min(self.keys.len())
    }
}
