//! Filters: a few bits per key that answer "certainly absent" or "maybe present".
//!
//! Both kinds take the 64-bit hash of a key instead of the key, so that a lookup hashes once
//! however many filters it checks. It must be a good hash ([`xxh3_64`](crate::checksum::xxh3_64)),
//! since every bit of it is used.
//!
//! ```text
//! filter := data | trailer
//! trailer, 16 bytes: units u32 | first wide unit u32 | zero u32 | kind u8 | bits u8 | zero u16
//!
//!           kind  units                      bits             data
//! bloom     1     lines of 64 bytes          probes a key     the lines
//! ribbon    2     blocks of 128 rows         columns a row    the blocks; one column more from the
//!                                                             first wide unit on
//! ```

mod bloom;
mod policy;
mod ribbon;
#[cfg(test)]
mod tests;

pub use policy::{FilterKind, FilterPolicy};

use crate::{Error, Result};
use bloom::Bloom;
use ribbon::Ribbon;

/// The size of the trailer, which describes the filter.
const TRAILER_BYTES: usize = 16;
const _: () = assert!(TRAILER_BYTES == 3 * size_of::<u32>() + 4);

/// Collects hashes of keys, then builds a filter from them. Reusable: `finish` empties it but keeps
/// its memory.
#[derive(Debug)]
pub struct FilterBuilder {
    policy: FilterPolicy,
    /// Number of probes per key; the same for every filter of the policy.
    probes: u32,
    hashes: Vec<u64>,
    ribbon: ribbon::Scratch,
}

impl FilterBuilder {
    /// Creates a builder for filters of this kind and size. The policy should be valid
    /// ([`FilterPolicy::check`]); an invalid one is clamped to the allowed range.
    pub fn new(policy: FilterPolicy) -> Self {
        let policy = policy.clamped();
        debug_assert!(policy.check().is_ok(), "{policy:?} is out of range");
        let probes = bloom::best_probes(policy.bits_per_key);
        FilterBuilder { policy, probes, hashes: Vec::new(), ribbon: ribbon::Scratch::default() }
    }

    /// Adds the hash of a key. Consecutive equal hashes count once.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// Returns the number of hashes.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns true when there are no hashes.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Returns the approximate size in bytes of a filter of the current hashes.
    pub fn estimated_bytes(&self) -> usize {
        (self.hashes.len() as f64 * self.policy.bits_per_key / 8.0) as usize + 64 + TRAILER_BYTES
    }

    /// Appends the filter of the hashes to `out` and clears them. Costs about 10 ns per key for
    /// bloom, 150 ns for ribbon.
    ///
    /// Errors: [`Error::Filter`] when it would take 4 GiB or more.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let bits = self.hashes.len() as f64 * self.policy.bits_per_key;
        if bits > f64::from(u32::MAX) * 8.0 {
            return Err(Error::Filter {
                what: format!("{} keys need a filter over 4 GiB", self.hashes.len()),
            });
        }
        let start = out.len();
        match self.policy.kind {
            FilterKind::Bloom => bloom::build(&self.hashes, bits, self.probes, out),
            FilterKind::Ribbon => ribbon::build(&self.hashes, bits, &mut self.ribbon, out),
        }
        // What is written can be read, and every key passes.
        debug_assert!(self.assert_readable(&out[start..]));
        self.hashes.clear();
        Ok(())
    }

    /// Checks the first and the last key against the filter in `bytes`. Always true, for
    /// `debug_assert!`.
    fn assert_readable(&self, bytes: &[u8]) -> bool {
        let filter = Filter::parse(bytes);
        assert!(filter.is_ok(), "{filter:?}");
        let passes = |hash: &u64| filter.as_ref().is_ok_and(|filter| filter.may_contain(bytes, *hash));
        assert!(self.hashes.first().into_iter().chain(self.hashes.last()).all(passes), "a key does not pass");
        true
    }
}

/// The parameters of a filter, read from its trailer and validated. Lookups take the bytes again,
/// so that these need not stay borrowed in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Bloom(Bloom),
    Ribbon(Ribbon),
}

/// The content of a trailer.
#[derive(Debug, Clone, Copy)]
struct Trailer {
    units: u32,
    first_wide: u32,
    kind: u8,
    bits: u8,
}

impl Filter {
    /// Parses the trailer of `bytes` and checks that the rest has the stated length.
    ///
    /// Errors: [`Error::Filter`].
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let (data, trailer) = split(bytes)?;
        let form = match trailer.kind {
            1 => Form::Bloom(Bloom::parse(trailer, data.len())?),
            2 => Form::Ribbon(Ribbon::parse(trailer, data.len())?),
            kind => return Err(Error::Filter { what: format!("kind {kind} is not one of 1, 2") }),
        };
        Ok(Filter { form })
    }

    /// Returns false only when no key with this hash was added. `bytes` must be those that were
    /// parsed; for others the answer may be true.
    ///
    /// For bloom, costs one cache line if `bytes` begins at a multiple of 64.
    #[inline]
    pub fn may_contain(&self, bytes: &[u8], hash: u64) -> bool {
        match &self.form {
            Form::Bloom(bloom) => bloom.may_contain(bytes, hash),
            Form::Ribbon(ribbon) => ribbon.may_contain(bytes, hash),
        }
    }

    /// Returns the kind of the filter.
    pub fn kind(&self) -> FilterKind {
        match self.form {
            Form::Bloom(_) => FilterKind::Bloom,
            Form::Ribbon(_) => FilterKind::Ribbon,
        }
    }
}

fn split(bytes: &[u8]) -> Result<(&[u8], Trailer)> {
    let Some((data, [a, b, c, d, e, f, g, h, 0, 0, 0, 0, kind, bits, 0, 0])) =
        bytes.split_last_chunk::<TRAILER_BYTES>()
    else {
        return Err(Error::Filter { what: format!("{} bytes do not end in a trailer", bytes.len()) });
    };
    let units = u32::from_le_bytes([*a, *b, *c, *d]);
    let first_wide = u32::from_le_bytes([*e, *f, *g, *h]);
    Ok((data, Trailer { units, first_wide, kind: *kind, bits: *bits }))
}

impl Trailer {
    fn push(self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.units.to_le_bytes());
        out.extend_from_slice(&self.first_wide.to_le_bytes());
        out.extend_from_slice(&[0, 0, 0, 0, self.kind, self.bits, 0, 0]);
        debug_assert!(out.len() - start == TRAILER_BYTES, "a trailer of {} bytes", out.len() - start);
    }
}

/// Mixes a hash once more (the finalizer of MurmurHash3), so that values drawn from the result are
/// independent of values drawn from the hash itself.
#[inline(always)]
fn remix(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}
