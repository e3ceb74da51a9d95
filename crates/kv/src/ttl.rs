//! Keyspaces whose entries expire.
//!
//! A value of such a keyspace is stored with the time of its write behind it, in seconds since the
//! Unix epoch (u64, little-endian). Readers take it off and do not see what is older than the
//! keyspace's time to live; compactions remove it. Time is the store's wall clock: one that jumps
//! makes entries expire sooner or later by that much.

use crate::iter::resolve::printable;

/// Bytes of the time behind a value.
pub(crate) const STAMP_BYTES: usize = 8;

/// A keyspace's time to live, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ttl {
    /// How long entries live, in seconds.
    pub secs: u64,
    /// Now, in seconds since the Unix epoch.
    pub now_secs: u64,
}

/// `value` with the time of its write behind it.
pub(crate) fn stamp(value: &[u8], now_secs: u64) -> Vec<u8> {
    let mut stamped = Vec::with_capacity(value.len() + STAMP_BYTES);
    stamped.extend_from_slice(value);
    stamped.extend_from_slice(&now_secs.to_le_bytes());
    stamped
}

/// When a stored value was written. Says what is wrong with one that has no time.
pub(crate) fn written_secs(key: &[u8], stored: &[u8]) -> Result<u64, String> {
    match stored.last_chunk::<STAMP_BYTES>() {
        Some(stamp) => Ok(u64::from_le_bytes(*stamp)),
        None => Err(format!("the value of key {} lacks the time of its write", printable(key))),
    }
}

impl Ttl {
    /// True when what was written at `written_secs` is gone.
    #[inline]
    pub(crate) fn is_over(self, written_secs: u64) -> bool {
        written_secs.saturating_add(self.secs) <= self.now_secs
    }
}
