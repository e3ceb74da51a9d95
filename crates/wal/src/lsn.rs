//! Positions in a log.

use std::fmt;

/// A position in the log: a segment number and an offset in that segment. Later records have higher
/// positions.
///
/// The position *of a record* is its end, so that a position stands for everything before it.
/// [`Log::sync_to`](crate::Log::sync_to) with a record's position syncs that record, and a recovery
/// from a record's position begins with the next record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(u64);

impl Lsn {
    /// The position before every record. A recovery from here begins with the oldest record that
    /// was not released.
    pub const ZERO: Lsn = Lsn(0);

    pub(crate) fn new(segment: u32, offset: u32) -> Lsn {
        Lsn(u64::from(segment) << 32 | u64::from(offset))
    }

    /// Returns the segment number.
    pub fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the offset in the segment's file.
    pub fn offset(self) -> u32 {
        self.0 as u32
    }

    /// Returns the position as one number, for storage: the segment in the upper half, the offset
    /// in the lower.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for Lsn {
    /// Converts a number from [`Lsn::get`] back to a position.
    fn from(number: u64) -> Lsn {
        Lsn(number)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.segment(), self.offset())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: positions sort like records, and survive the conversion to a number.
    #[test]
    fn order_and_number() {
        let lsn = Lsn::new(7, u32::MAX);
        assert_eq!((lsn.segment(), lsn.offset(), Lsn::from(lsn.get())), (7, u32::MAX, lsn));
        assert!(Lsn::ZERO < Lsn::new(1, 0) && lsn < Lsn::new(8, 0) && Lsn::new(7, 8) < lsn);
        assert_eq!(Lsn::new(7, 4096).to_string(), "7:4096");
    }
}
