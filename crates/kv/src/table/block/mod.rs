//! A block of sorted entries. Data blocks and both levels of the index have this form.
//!
//! ```text
//! block   := entry* | prefix | heads | offsets | trailer
//! prefix     the common prefix of all keys of the block, stored once; "suffix" below is a key
//!            without it
//! heads      for each restart the first 4 bytes of its suffix as a number, big-endian, padded
//!            with zeros: u32 each
//! offsets    for each restart the offset of its entry in the block: u32 each
//! trailer    base u64 | value length u32 | entries u32 | restarts u32 | length of the prefix u32
//!            base: bits 0-55 the lowest sequence number, bit 56 untagged, bits 57-58 the kind if
//!            untagged, bit 59 values of one length
//!
//! entry   := lengths u8 | more shared? | more unshared? | tag? | value length?
//!            | unshared bytes | value
//! lengths    bits 4-7 shared, bits 0-3 unshared; 15 means that a varint with the rest follows
//! tag        varint of (seqno - lowest) << 2 | kind; missing in an untagged block, where all are
//!            equal
//! value length  varint; missing where all are equal
//! ```
//!
//! Entries form *runs*. The first entry of a run, a restart, shares nothing; each other entry
//! shares bytes with the previous suffix. A search finds the run by the heads, which fit in one or
//! two cache lines, and then reads one run. An entry without unshared bytes, unless it is the first
//! of the block, is an older version of the previous key. Restarts are always new keys, so their
//! suffixes ascend strictly.
//!
//! [`Layout::check`] validates the whole block once, when it is loaded. After that, reading an
//! entry cannot fail, and costs only the bounds checks of slices.

mod builder;
mod cursor;
mod layout;
mod search;
#[cfg(test)]
mod tests;

pub(crate) use builder::BlockBuilder;
pub(crate) use cursor::BlockCursor;
pub(crate) use layout::{Layout, MAX_BLOCK_BYTES};
pub(crate) use search::{Entries, Lookup};

/// Returns the first four bytes as a number with the same order; missing bytes count as zeros.
#[inline(always)]
fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<4>() {
        Some(head) => u32::from_be_bytes(*head),
        None => {
            suffix.iter().enumerate().fold(0, |head, (at, &byte)| head | u32::from(byte) << (24 - 8 * at))
        }
    }
}

/// Returns the length of the common prefix of two slices.
#[inline(always)]
pub(crate) fn common_len(a: &[u8], b: &[u8]) -> usize {
    let (mut x, mut y, mut common) = (a, b, 0);
    while let (Some((p, rest_x)), Some((q, rest_y))) =
        (x.split_first_chunk::<8>(), y.split_first_chunk::<8>())
    {
        let difference = u64::from_le_bytes(*p) ^ u64::from_le_bytes(*q);
        if difference != 0 {
            return common + (difference.trailing_zeros() / 8) as usize;
        }
        (x, y, common) = (rest_x, rest_y, common + 8);
    }
    common + x.iter().zip(y).take_while(|(p, q)| p == q).count()
}
