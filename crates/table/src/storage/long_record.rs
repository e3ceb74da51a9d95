//! Long records. A record that is too long for a node keeps the location of its value, which is
//! stored in a chain of pages (`chain.rs`).
//!
//! ```text
//!   flags u8, with LONG set | length of the value u32 | first page u32
//! ```

use cairn_pool::PAGE_HEADER_LEN;

use super::node::{GHOST, max_record};

/// The flag of a record whose value is in a chain of pages.
pub(crate) const LONG: u8 = 2;

/// Size of an encoded long record.
const LEN: usize = 1 + size_of::<u32>() + size_of::<u32>();
/// A long record is shorter than any record that is too long for a page of the least size, and its
/// flag is not that of a ghost.
const _: () = assert!(LEN < max_record((4 << 10) - PAGE_HEADER_LEN) && LONG & GHOST == 0);

/// The location of a value in a chain of pages, and the flags of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LongRecord {
    pub(crate) flags: u8,
    pub(crate) len: usize,
    pub(crate) first: u32,
}

impl LongRecord {
    /// Returns the location, or `None` for a record that contains its value itself.
    pub(crate) fn decode(record: &[u8]) -> Option<LongRecord> {
        let (&flags, rest) = record.split_first()?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let first = rest.first_chunk::<4>()?;
        (flags & LONG != 0).then_some(LongRecord {
            flags,
            len: u32::from_le_bytes(*len) as usize,
            first: u32::from_le_bytes(*first),
        })
    }

    /// Returns the record. The flag is set in any case.
    pub(crate) fn encode(&self) -> Vec<u8> {
        debug_assert!(u32::try_from(self.len).is_ok(), "a long row has {} bytes", self.len);
        debug_assert!(self.flags & GHOST == 0, "a ghost has no value");
        let mut record = Vec::with_capacity(LEN);
        record.push(self.flags | LONG);
        record.extend((self.len as u32).to_le_bytes());
        record.extend(self.first.to_le_bytes());
        debug_assert!(
            LongRecord::decode(&record) == Some(LongRecord { flags: self.flags | LONG, ..*self }),
            "{self:?} is encoded as {record:?}"
        );
        record
    }
}
