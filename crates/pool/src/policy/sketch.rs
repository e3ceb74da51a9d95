//! Approximate request counts: a count-min sketch of four-bit counters with aging.
//!
//! ```text
//!   table    | 64 bytes: eight words of sixteen counters | ...
//!                 ^ two words a row, rows 0..4
//!
//!   a page's four counters are in one block, so that counting costs one cache line
//! ```
//!
//! After Cormode and Muthukrishnan, 2005, with the aging of TinyLFU (Einziger, Friedman, Manes,
//! 2017): after ten counts per frame, all counters are halved, so that past popularity fades. The
//! block layout is Caffeine's.

use super::directory::hash;
use crate::page::PageId;

/// The maximum value of a counter: four bits.
const COUNT_MAX: u64 = 15;
/// Rows of the sketch.
const ROWS: usize = 4;
/// Number of eight-byte words in a block, which is a cache line.
const BLOCK: usize = 8;
/// Number of counts per frame between two halvings.
const SAMPLE: usize = 10;
/// The lowest bit of each counter in a word.
const ONES: u64 = 0x1111_1111_1111_1111;
/// All but the highest bit of each counter in a word.
const HALVES: u64 = 0x7777_7777_7777_7777;

const _: () = assert!(ROWS * 2 == BLOCK && BLOCK.is_power_of_two());
const _: () = assert!(ONES * COUNT_MAX == u64::MAX && HALVES == (u64::MAX ^ (ONES << 3)));

/// Request counts for a pool; eight bytes per frame.
#[derive(Debug, Clone)]
pub(super) struct Sketch {
    table: Vec<u64>,
    counted: usize,
    sample: usize,
}

impl Sketch {
    /// Creates a sketch with all counters at 0.
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
                debug_assert!(shift + 4 <= u64::BITS);
                *word += 1 << shift;
                counted = true;
            }
        }
        self.counted += usize::from(counted);
        if self.counted >= self.sample {
            self.age();
        }
    }

    /// Estimates how often a page was requested: never less than its recent requests, and rarely
    /// more.
    #[inline]
    pub(super) fn estimate(&self, page: PageId) -> u64 {
        let of =
            |(word, shift): (usize, u32)| self.table.get(word).map_or(0, |word| (word >> shift) & COUNT_MAX);
        self.counters(page).into_iter().map(of).min().unwrap_or(0)
    }

    /// Returns the word and bit offset of a page's four counters.
    #[inline]
    fn counters(&self, page: PageId) -> [(usize, u32); ROWS] {
        debug_assert!(self.table.len().is_power_of_two() && self.table.len() >= BLOCK);
        let hash = hash(page);
        let block = (hash >> 32) as usize & (self.table.len() / BLOCK - 1);
        std::array::from_fn(|row| {
            // Five bits per row: one selects one of its two words, four select one of sixteen
            // counters.
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
        debug_assert!(self.counted < self.sample, "the counts are halved without end");
    }
}
