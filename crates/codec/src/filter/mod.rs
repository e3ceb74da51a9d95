//! Filters: a few bits a key that say "not here" for sure, or "maybe".
//!
//! Both kinds take the 64-bit hash of a key, never the key, so that a lookup hashes once however
//! many filters it asks. The hash has to be a good one ([`xxh3_64`](crate::checksum::xxh3_64)):
//! every bit of it is used.
//!
//! ```text
//! filter := data | trailer
//! trailer, 16 bytes: units u32 | first wide unit u32 | zero u32 | kind u8 | bits u8 | zero u16
//!
//!           kind  units                      bits             data
//! bloom     1     lines of 64 bytes          probes a key     the lines
//! ribbon    2     blocks of 128 rows         columns a row    the blocks; from the first wide unit on one column more
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

/// Bytes at the end of a filter that say what it is.
const TRAILER_BYTES: usize = 16;

/// Collects hashes of keys, then makes a filter of them. Reusable: `finish` leaves it empty with
/// its memory kept.
#[derive(Debug)]
pub struct FilterBuilder {
    policy: FilterPolicy,
    /// What a key is looked up with; the same for every filter of the policy.
    probes: u32,
    hashes: Vec<u64>,
    ribbon: ribbon::Scratch,
}

impl FilterBuilder {
    /// A builder of filters of this kind and size. The policy must be sound
    /// ([`FilterPolicy::check`]); one that is not is brought into range.
    pub fn new(policy: FilterPolicy) -> Self {
        let policy = policy.clamped();
        let probes = bloom::best_probes(policy.bits_per_key);
        FilterBuilder { policy, probes, hashes: Vec::new(), ribbon: ribbon::Scratch::default() }
    }

    /// Adds a key's hash. The same hash twice in a row counts once.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// How many hashes it holds.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// True when it holds no hash.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// About how many bytes a filter of what it holds would take.
    pub fn estimated_bytes(&self) -> usize {
        (self.hashes.len() as f64 * self.policy.bits_per_key / 8.0) as usize + 64 + TRAILER_BYTES
    }

    /// Appends the filter of the hashes to `out`, and forgets them. Cost: about 10 ns a key for
    /// bloom, 150 for ribbon.
    ///
    /// Errors: [`Error::Filter`] when it would be 4 GiB or more.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let bits = self.hashes.len() as f64 * self.policy.bits_per_key;
        if bits > f64::from(u32::MAX) * 8.0 {
            return Err(Error::Filter {
                what: format!("{} keys need a filter over 4 GiB", self.hashes.len()),
            });
        }
        match self.policy.kind {
            FilterKind::Bloom => bloom::build(&self.hashes, bits, self.probes, out),
            FilterKind::Ribbon => ribbon::build(&self.hashes, bits, &mut self.ribbon, out),
        }
        self.hashes.clear();
        Ok(())
    }
}

/// A filter's parameters, read from its trailer and checked. Asking takes the same bytes again, so
/// that whoever owns them need not be borrowed in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Bloom(Bloom),
    Ribbon(Ribbon),
}

/// What a trailer holds.
#[derive(Debug, Clone, Copy)]
struct Trailer {
    units: u32,
    first_wide: u32,
    kind: u8,
    bits: u8,
}

impl Filter {
    /// Reads the trailer of `bytes` and checks that the rest is as long as it says.
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

    /// False when no key of this hash was added. `bytes` are those that were parsed; of others the
    /// answer is true.
    ///
    /// Cost: for bloom one cache line, provided that `bytes` begins at a multiple of 64.
    #[inline]
    pub fn may_contain(&self, bytes: &[u8], hash: u64) -> bool {
        match &self.form {
            Form::Bloom(bloom) => bloom.may_contain(bytes, hash),
            Form::Ribbon(ribbon) => ribbon.may_contain(bytes, hash),
        }
    }

    /// Which kind it is.
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
        out.extend_from_slice(&self.units.to_le_bytes());
        out.extend_from_slice(&self.first_wide.to_le_bytes());
        out.extend_from_slice(&[0, 0, 0, 0, self.kind, self.bits, 0, 0]);
    }
}

/// Spreads a hash over 64 bits once more (the finisher of MurmurHash3), so that what is drawn from
/// the result does not depend on what was drawn from the hash itself.
#[inline(always)]
fn remix(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}
