//! How often pages were asked for, about: a count-min sketch of four-bit counters that age.
//!
//! ```text
//!   table    | 64 bytes: eight words of sixteen counters | ...      a page's four counters are in one block, so that
//!                 ^ two words a row, rows 0..4                       counting costs one cache line
//! ```
//!
//! After Cormode and Muthukrishnan, 2005; with the aging of TinyLFU (Einziger, Friedman, Manes,
//! 2017): after ten times as many counts as there are frames all counters are halved, so that what
//! was popular once does not stay so. The block layout is Caffeine's.

use super::directory::hash;
use crate::page::PageId;

/// Counters stop here: four bits.
const COUNT_MAX: u64 = 15;
/// Rows of the sketch.
const ROWS: usize = 4;
/// Words of eight bytes in a block, which is a cache line.
const BLOCK: usize = 8;
/// Counts between two halvings, for each frame.
const SAMPLE: usize = 10;
/// The lowest bit of each counter in a word.
const ONES: u64 = 0x1111_1111_1111_1111;
/// All but the highest bit of each counter in a word.
const HALVES: u64 = 0x7777_7777_7777_7777;

/// Counts for a pool of some frames; eight bytes a frame.
#[derive(Debug, Clone)]
pub(super) struct Sketch {
    table: Vec<u64>,
    counted: usize,
    sample: usize,
}

impl Sketch {
    /// All counts 0.
    pub(super) fn new(capacity: usize) -> Self {
        let words = capacity.next_power_of_two().max(BLOCK);
        Sketch { table: vec![0; words], counted: 0, sample: SAMPLE * capacity.max(1) }
    }

    /// Counts a request.
    #[inline]
    pub(super) fn count(&mut self, page: PageId) {
        let mut counted = false;
        for (word, shift) in self.counters(page) {
            if let Some(word) = self.table.get_mut(word)
                && (*word >> shift) & COUNT_MAX < COUNT_MAX
            {
                *word += 1 << shift;
                counted = true;
            }
        }
        self.counted += usize::from(counted);
        if self.counted >= self.sample {
            self.age();
        }
    }

    /// How often a page was asked for: at least as often as it was lately, and seldom more.
    #[inline]
    pub(super) fn estimate(&self, page: PageId) -> u64 {
        let of =
            |(word, shift): (usize, u32)| self.table.get(word).map_or(0, |word| (word >> shift) & COUNT_MAX);
        self.counters(page).into_iter().map(of).min().unwrap_or(0)
    }

    /// The four counters of a page: word, and bit within it.
    #[inline]
    fn counters(&self, page: PageId) -> [(usize, u32); ROWS] {
        let hash = hash(page);
        let block = (hash >> 32) as usize & (self.table.len() / BLOCK - 1);
        std::array::from_fn(|row| {
            // Five bits for each row: one of its two words, one of sixteen counters.
            let bits = (hash >> (8 * row)) as u32;
            let word = block * BLOCK + 2 * row + (bits & 1) as usize;
            (word, 4 * ((bits >> 1) & 15))
        })
    }

    #[cold]
    fn age(&mut self) {
        let mut lost = 0;
        for word in &mut self.table {
            lost += (*word & ONES).count_ones() as usize;
            *word = (*word >> 1) & HALVES;
        }
        self.counted = (self.counted - (lost / ROWS).min(self.counted)) / 2;
    }
}
