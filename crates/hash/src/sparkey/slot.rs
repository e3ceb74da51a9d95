//! One slot of an index.
//!
//! ```text
//! hash (4 or 8 bytes)  address (4 or 8 bytes)        all zero: empty
//! address = position in the log << entry_bits | number of the record within its block
//! ```

use super::bytes::{u32_at, u64_at};
use super::modulus::Modulus;

/// A decoded slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Slot {
    pub hash: u64,
    /// 0 if the slot is empty: a position is never below the size of the log's header.
    pub address: u64,
}

impl Slot {
    pub const EMPTY: Slot = Slot { hash: 0, address: 0 };

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.address == 0
    }

    /// Decodes a slot with `H` bytes of hash and `A` bytes of address.
    #[inline(always)]
    pub fn decode<const H: usize, const A: usize>(bytes: &[u8]) -> Slot {
        Slot { hash: field::<H>(bytes, 0), address: field::<A>(bytes, H) }
    }

    /// Encodes a slot into the first `H + A` bytes of `bytes`. The values must fit their widths.
    #[inline(always)]
    pub fn encode<const H: usize, const A: usize>(self, bytes: &mut [u8]) {
        const { assert!((H == 4 || H == 8) && (A == 4 || A == 8), "the widths of the format") };
        debug_assert!(H == 8 || self.hash >> 32 == 0, "hash {:#x} in 4 bytes", self.hash);
        debug_assert!(A == 8 || self.address >> 32 == 0, "address {:#x} in 4 bytes", self.address);
        bytes[..H].copy_from_slice(&self.hash.to_le_bytes()[..H]);
        bytes[H..H + A].copy_from_slice(&self.address.to_le_bytes()[..A]);
        debug_assert_eq!(Slot::decode::<H, A>(bytes), self, "decoded as it is encoded");
    }
}

#[inline(always)]
fn field<const WIDTH: usize>(bytes: &[u8], at: usize) -> u64 {
    if WIDTH == 4 { u64::from(u32_at(bytes, at)) } else { u64_at(bytes, at) }
}

/// The ring of slots: computes home slots and the distances from them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring {
    pub capacity: u64,
    modulus: Modulus,
}

impl Ring {
    pub fn new(capacity: std::num::NonZeroU64) -> Self {
        Ring { capacity: capacity.get(), modulus: Modulus::new(capacity) }
    }

    /// Returns the home slot of `hash`.
    #[inline(always)]
    pub fn home(&self, hash: u64) -> u64 {
        self.modulus.reduce(hash)
    }

    /// Returns the slot after `slot`.
    #[inline(always)]
    pub fn next_slot(&self, slot: u64) -> u64 {
        debug_assert!(slot < self.capacity, "slot {slot} of {}", self.capacity);
        if slot + 1 == self.capacity { 0 } else { slot + 1 }
    }

    /// Returns the distance of `slot` from the home slot of `hash`.
    #[inline(always)]
    pub fn displacement(&self, slot: u64, hash: u64) -> u64 {
        let home = self.home(hash);
        debug_assert!(slot < self.capacity && home < self.capacity, "{slot}, {home} of {}", self.capacity);
        if slot >= home { slot - home } else { slot + self.capacity - home }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each pair of widths preserves its values, and they do not overlap. Method: round
    /// trips.
    #[test]
    fn widths() {
        fn round_trip<const H: usize, const A: usize>(slot: Slot) {
            let mut bytes = [0xaa; 17];
            slot.encode::<H, A>(&mut bytes);
            assert_eq!(Slot::decode::<H, A>(&bytes), slot);
            assert!(bytes[H + A..].iter().all(|&byte| byte == 0xaa));
        }
        let small = Slot { hash: 0x89ab_cdef, address: 0xfedc_ba98 };
        let large = Slot { hash: 0x89ab_cdef_0123_4567, address: 0x7edc_ba98_7654_3210 };
        round_trip::<4, 4>(small);
        round_trip::<4, 8>(Slot { hash: small.hash, ..large });
        round_trip::<8, 4>(Slot { address: small.address, ..large });
        round_trip::<8, 8>(large);
    }

    /// Goal: distances wrap around the end. Method: a ring of five slots, by hand.
    #[test]
    fn distances_wrap_around_the_ring() {
        let ring = Ring::new(std::num::NonZeroU64::new(5).unwrap());
        assert_eq!(ring.home(13), 3);
        assert_eq!([3, 4, 0, 1, 2].map(|slot| ring.displacement(slot, 13)), [0, 1, 2, 3, 4]);
        assert_eq!([ring.next_slot(3), ring.next_slot(4)], [4, 0]);
    }
}
