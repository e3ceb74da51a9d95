//! Long records. A record that is too long for a node keeps the location of its value, which is
//! stored in a chain of pages (`chain.rs`).
//!
//! ```text
//!   flags u8, with LONG set | length of the value u32 | first page u32
//! ```

/// The flag of a record whose value is in a chain of pages.
pub(crate) const LONG: u8 = 2;

/// Size of an encoded long record.
const LEN: usize = 9;

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
        let mut record = Vec::with_capacity(LEN);
        record.push(self.flags | LONG);
        record.extend((self.len as u32).to_le_bytes());
        record.extend(self.first.to_le_bytes());
        record
    }
}
