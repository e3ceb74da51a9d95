//! The values in both levels of the index.
//!
//! ```text
//! index partition   separator -> offset u64 | length u32 | ordinal u32     of a data block
//! top index         separator -> offset u64 | length u32 | ordinal u32     of an index partition
//!                                | offset u64 | length u32                 of its filter, length 0
//!                                                                          for none
//! ```
//!
//! A separator is not less than any key of its block or partition, and less than every key after
//! it. The exception is a key whose versions continue in the next block: it is the separator
//! itself. Ordinals number data blocks, and partitions, from 0 on.

use super::frame::{HEADER_BYTES, Handle};

/// Length of a value in an index partition.
pub(crate) const DATA_VALUE_BYTES: usize = 16;
/// Length of a value in the top index.
pub(crate) const PARTITION_VALUE_BYTES: usize = 28;

const _: () = assert!(DATA_VALUE_BYTES == 8 + 4 + 4, "offset, length, ordinal");
const _: () = assert!(PARTITION_VALUE_BYTES == DATA_VALUE_BYTES + 8 + 4, "and the place of the filter");

/// The place and ordinal of a data block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataValue {
    pub handle: Handle,
    pub ordinal: u32,
}

/// The places of an index partition and its filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partition {
    pub index: Handle,
    pub filter: Option<Handle>,
}

impl DataValue {
    pub(crate) fn encode(self) -> [u8; DATA_VALUE_BYTES] {
        let mut bytes = [0; DATA_VALUE_BYTES];
        bytes[..8].copy_from_slice(&self.handle.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.handle.len.to_le_bytes());
        bytes[12..].copy_from_slice(&self.ordinal.to_le_bytes());
        debug_assert_eq!(DataValue::decode(&bytes), Some(self), "a value that would not be read back");
        bytes
    }

    #[inline(always)]
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let [o0, o1, o2, o3, o4, o5, o6, o7, l0, l1, l2, l3, n0, n1, n2, n3] =
            *<&[u8; DATA_VALUE_BYTES]>::try_from(bytes).ok()?;
        let offset = u64::from_le_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
        let handle = Handle { offset, len: u32::from_le_bytes([l0, l1, l2, l3]) };
        Some(DataValue { handle, ordinal: u32::from_le_bytes([n0, n1, n2, n3]) })
    }
}

impl Partition {
    pub(crate) fn encode(self, ordinal: u32) -> [u8; PARTITION_VALUE_BYTES] {
        let mut bytes = [0; PARTITION_VALUE_BYTES];
        bytes[..16].copy_from_slice(&DataValue { handle: self.index, ordinal }.encode());
        if let Some(filter) = self.filter {
            debug_assert!(filter.len > 0, "length 0 stands for no filter");
            bytes[16..24].copy_from_slice(&filter.offset.to_le_bytes());
            bytes[24..].copy_from_slice(&filter.len.to_le_bytes());
        }
        debug_assert_eq!(partition_ordinal(&bytes), Some(ordinal), "the ordinal is read from another place");
        debug_assert_eq!(
            Partition::decode(&bytes, u64::MAX),
            Some((self, ordinal)),
            "a partition that would not be read back"
        );
        bytes
    }

    /// Decodes a partition and its ordinal. Its handles must lie within the first `end` bytes of
    /// the file.
    pub(crate) fn decode(bytes: &[u8], end: u64) -> Option<(Self, u32)> {
        let (index, filter) = bytes.split_at_checked(DATA_VALUE_BYTES)?;
        let DataValue { handle, ordinal } = DataValue::decode(index)?;
        let (offset, len) = filter.split_first_chunk::<8>()?;
        let filter =
            Handle { offset: u64::from_le_bytes(*offset), len: u32::from_le_bytes(len.try_into().ok()?) };
        let filter = if filter.len == 0 { None } else { Some(filter) };
        let sound = |handle: Handle| handle.end() <= end && handle.len as usize >= HEADER_BYTES;
        let partition = Partition { index: handle, filter };
        (sound(handle) && filter.is_none_or(sound)).then_some((partition, ordinal))
    }
}

/// Returns the ordinal in a value of the top index.
#[inline(always)]
pub(crate) fn partition_ordinal(bytes: &[u8]) -> Option<u32> {
    bytes.get(12..)?.first_chunk::<4>().map(|ordinal| u32::from_le_bytes(*ordinal))
}

/// Sets `out` to a short key that is not less than `last` and less than `next`, if there is one,
/// otherwise to `last`.
pub(crate) fn separator(last: &[u8], next: &[u8], out: &mut Vec<u8>) {
    debug_assert!(last <= next, "a block ends with a key after the first one of the next");
    shortest_between(last, next, out);
    debug_assert!(out.as_slice() >= last, "a key of the block is above its separator");
    debug_assert!(last == next || out.as_slice() < next, "the separator covers the next key");
    debug_assert!(out.len() <= last.len(), "a separator longer than the key before it");
}

/// Sets `out` as [`separator`] does, without checks.
fn shortest_between(last: &[u8], next: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let common = super::block::common_len(last, next);
    let (Some(&low), Some(&high)) = (last.get(common), next.get(common)) else {
        out.extend_from_slice(last); // equal, or a prefix of `next`
        return;
    };
    if low.saturating_add(1) < high {
        out.extend_from_slice(&last[..common]);
        out.push(low + 1);
    } else if next.len() > common + 1 {
        out.extend_from_slice(&next[..=common]);
    } else {
        // The bytes differ by one and `next` ends there: cut `last` at the next byte that can be
        // incremented.
        let tail = &last[common + 1..];
        let cut = tail.iter().position(|byte| *byte != 0xff).map(|at| common + 1 + at);
        match cut {
            Some(cut) if cut + 1 < last.len() => {
                out.extend_from_slice(&last[..cut]);
                out.push(last[cut] + 1);
            }
            _ => out.extend_from_slice(last),
        }
    }
}
