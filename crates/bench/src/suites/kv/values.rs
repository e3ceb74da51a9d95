//! Values that identify the key and the write to which they belong, so that every answer can be
//! checked. Making one costs a store of eight bytes.
//!
//! ```text
//!   0        4        8                          size
//!   +--------+--------+---------------------------+
//!   |  tag   |version |  body: one of a few, by tag |
//!   +--------+--------+---------------------------+
//!   tag = mix(key's number, version)
//! ```
//! A value of another key, or a torn one, has the wrong tag. A value of an older write has an older
//! version. A body is compared byte by byte. Bodies are random, so they cannot be compressed.

use cairn_vfs::{Rng, SeededRng};

use crate::core::error::{Error, Result};

const HEADER_BYTES: usize = 8;

/// The shortest value that can be checked.
pub const VALUE_BYTES_MIN: usize = HEADER_BYTES;

/// The longest value that every store accepts without a special setting.
pub const VALUE_BYTES_MAX: usize = 16 << 20;

/// All bodies together fit into a second-level cache.
const BODIES_BYTES: usize = 128 << 10;
const BODIES_MAX: usize = 16;

/// Makes and checks values of one size. Each thread has its own.
#[derive(Debug, Clone)]
pub struct Values {
    size: usize,
    bodies: Vec<u8>,
    count: u32,
}

impl Values {
    /// Creates a maker of values of `size` bytes. Errors: [`Error::Invalid`] outside of the limits.
    pub fn new(size: usize) -> Result<Values> {
        if !(VALUE_BYTES_MIN..=VALUE_BYTES_MAX).contains(&size) {
            return Err(Error::invalid(format!(
                "value size {size}: expected {VALUE_BYTES_MIN} to {VALUE_BYTES_MAX} bytes"
            )));
        }
        let count = (BODIES_BYTES / size).clamp(1, BODIES_MAX);
        let mut bodies = vec![0; count * size];
        // The bodies are the same for every seed of a run, because their contents have no
        // influence.
        SeededRng::new(size as u64).fill(&mut bodies);
        Ok(Values { size, bodies, count: count as u32 })
    }

    /// Returns the value of write `version` of key `number`, valid until the next call.
    #[inline]
    pub fn make(&mut self, number: u64, version: u32) -> &[u8] {
        let tag = mix(number, version);
        let start = (tag % self.count) as usize * self.size;
        let value = &mut self.bodies[start..start + self.size];
        value[..4].copy_from_slice(&tag.to_le_bytes());
        value[4..HEADER_BYTES].copy_from_slice(&version.to_le_bytes());
        value
    }

    /// Returns true if `value` is write `version` of key `number`.
    #[inline]
    pub fn is(&self, number: u64, version: u32, value: &[u8]) -> bool {
        self.version(number, value) == Some(version)
    }

    /// Returns the write of key `number` that this value belongs to, or `None` if there is none.
    #[inline]
    pub fn version(&self, number: u64, value: &[u8]) -> Option<u32> {
        let (tag, rest) = value.split_first_chunk::<4>()?;
        let (version, body) = rest.split_first_chunk::<4>()?;
        let (tag, version) = (u32::from_le_bytes(*tag), u32::from_le_bytes(*version));
        let start = (tag % self.count) as usize * self.size;
        let right = value.len() == self.size
            && tag == mix(number, version)
            && *body == self.bodies[start + HEADER_BYTES..start + self.size];
        right.then_some(version)
    }
}

/// Returns half of a product to which every bit of both arguments contributes.
#[inline]
fn mix(number: u64, version: u32) -> u32 {
    let mixed = (number ^ (u64::from(version) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a value is recognised only for its own key and write. Method: values of several sizes
    /// against their neighbours, cut, lengthened, and with each byte changed.
    #[test]
    fn values_know_their_key() {
        for size in [8, 9, 100, 4096, 70_000] {
            let mut values = Values::new(size).unwrap();
            let value = values.make(7, 2).to_vec();
            assert_eq!(value.len(), size);
            // Another value may be made in between.
            values.make(8, 2);
            assert!(values.is(7, 2, &value));
            assert!(!values.is(8, 2, &value) && !values.is(7, 1, &value) && !values.is(7, 3, &value));
            assert!(
                !values.is(7, 2, &value[..size - 1]) && !values.is(7, 2, &[value.clone(), vec![0]].concat())
            );
            for place in (0..size).step_by(size.div_ceil(50)) {
                let mut torn = value.clone();
                torn[place] ^= 0x10;
                assert!(!values.is(7, 2, &torn), "size {size}, byte {place}");
            }
        }
        assert_eq!(Values::new(8).unwrap().version(7, b""), None);
    }

    /// Goal: sizes that cannot be checked are refused.
    #[test]
    fn sizes_are_checked() {
        for size in [0, 7, VALUE_BYTES_MAX + 1] {
            assert!(Values::new(size).unwrap_err().to_string().contains("value size"));
        }
    }
}
