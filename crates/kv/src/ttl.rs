//! Keyspaces whose entries expire.
//!
//! Such a keyspace appends to each stored value the time of its write, in seconds since the Unix
//! epoch (u64, little-endian). Readers strip the stamp and skip entries older than the keyspace's
//! time to live; compactions remove them. Time is the store's wall clock: if the clock jumps,
//! entries expire earlier or later by the size of the jump.

use crate::escape::printable;

/// Bytes of the time stamp at the end of a value.
pub(crate) const STAMP_BYTES: usize = 8;

/// The time to live of a keyspace, together with the current time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ttl {
    /// Lifetime of entries in seconds.
    pub secs: u64,
    /// The current time in seconds since the Unix epoch.
    pub now_secs: u64,
}

/// Returns `value` followed by the time of its write.
pub(crate) fn stamp(value: &[u8], now_secs: u64) -> Vec<u8> {
    let mut stamped = Vec::with_capacity(value.len() + STAMP_BYTES);
    stamped.extend_from_slice(value);
    stamped.extend_from_slice(&now_secs.to_le_bytes());
    debug_assert_eq!(written_secs(&[], &stamped), Ok(now_secs), "a stamp that would not be read back");
    stamped
}

/// Returns the time at which a stored value was written, or an error message if the value has no
/// stamp.
pub(crate) fn written_secs(key: &[u8], stored: &[u8]) -> Result<u64, String> {
    match stored.last_chunk::<STAMP_BYTES>() {
        Some(stamp) => Ok(u64::from_le_bytes(*stamp)),
        None => Err(format!("the value of key {} has no timestamp", printable(key))),
    }
}

impl Ttl {
    /// Returns true if an entry written at `written_secs` has expired.
    #[inline]
    pub(crate) fn is_over(self, written_secs: u64) -> bool {
        written_secs.saturating_add(self.secs) <= self.now_secs
    }
}
