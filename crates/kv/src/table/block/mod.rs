//! A block of sorted entries: data blocks and both levels of the index have this form.
//!
//! ```text
//! block   := entry* | prefix | heads | offsets | trailer
//! prefix     what all keys of the block begin with, stored once; "suffix" below is a key without it
//! heads      for each restart the first 4 bytes of its suffix as a number, big-endian, zeros for missing ones: u32 each
//! offsets    for each restart where its entry begins in the block: u32 each
//! trailer    base u64 | value length u32 | entries u32 | restarts u32 | length of the prefix u32
//!            base: bits 0-55 the lowest sequence number, bit 56 untagged, bits 57-58 the kind if so, bit 59 values of
//!            one length
//!
//! entry   := lengths u8 | more shared? | more unshared? | tag? | value length? | unshared bytes | value
//! lengths    bits 4-7 shared, bits 0-3 unshared; 15 says that a varint with the rest follows
//! tag        varint of (seqno - lowest) << 2 | kind; missing in an untagged block, where all are equal
//! value length  varint; missing where all are equal
//! ```
//!
//! Entries come in *runs*. The first of a run, a restart, shares nothing; each other shares bytes
//! with the suffix before it. A search finds the run by the heads, which lie in one or two cache
//! lines, and then reads one run. An entry that is not the block's first and has no unshared bytes
//! is an older version of the key before it. Restarts are always new keys, so that their suffixes
//! ascend strictly.
//!
//! [`Layout::check`] walks the whole block once, when it is loaded. After that, reading an entry of
//! it cannot fail, and costs no more checks than those of slices.

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

/// The first four bytes as a number that orders as they do; missing ones count as zeros.
#[inline(always)]
fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<4>() {
        Some(head) => u32::from_be_bytes(*head),
        None => {
            suffix.iter().enumerate().fold(0, |head, (at, &byte)| head | u32::from(byte) << (24 - 8 * at))
        }
    }
}

/// How many bytes two slices begin with in common.
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
