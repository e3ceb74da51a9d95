//! Values of any length that identify the write of the key to which they belong, at the cost of a
//! copy.
//!
//! All values are parts of one block of random bytes. A value's key and write determine where it
//! begins. With a probability of one in a million another value begins at the same place, and a
//! changed byte is always detected.

use cairn_vfs::{Rng, SeededRng};

/// Number of places where a value can begin.
const PLACES: usize = 1 << 20;

/// Makes and checks values.
#[derive(Debug)]
pub(super) struct Bodies {
    bytes: Vec<u8>,
}

impl Bodies {
    /// Creates a maker of values of at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Bodies {
        let mut bytes = vec![0; PLACES + bytes_max];
        SeededRng::new(1).fill(&mut bytes);
        Bodies { bytes }
    }

    /// Returns the value of write `version` of key `number`, of `length` bytes.
    #[inline]
    pub(super) fn value(&self, number: u32, version: u32, length: u32) -> &[u8] {
        let mixed = (u64::from(number) << 32 | u64::from(version)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = (mixed ^ (mixed >> 32)) as usize % PLACES;
        self.bytes.get(place..place + length as usize).unwrap_or_default()
    }
}
