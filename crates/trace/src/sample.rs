//! Sampling by key: which share of the keys a trace contains, and why the recorder lowered it.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// The share of keys that is recorded. The key's hash decides, so that a trace contains either all
/// operations of a key or none (SHARDS).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sample {
    /// All keys at first, then fewer: if a thread's operations are so fast that recording them
    /// takes more than 1.1 % of its time (hashing excluded), the share falls to a half, to a
    /// quarter, and down to one key in 256. It never rises again. A reader returns only operations
    /// of the final share, which is therefore a uniform sample.
    #[default]
    Auto,
    /// The operations of one key in this many, whatever the cost; 1 for all keys.
    OneIn(u32),
}

impl Sample {
    /// Returns the initial sample: one key in this many is recorded.
    pub(crate) fn first(self) -> u32 {
        match self {
            Sample::Auto => 1,
            Sample::OneIn(sample) => sample,
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sample::Auto => f.write_str("auto"),
            Sample::OneIn(sample) => sample.fmt(f),
        }
    }
}

impl FromStr for Sample {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Sample, &'static str> {
        match text {
            "auto" => Ok(Sample::Auto),
            number => match number.parse() {
                Ok(sample) if sample > 0 => Ok(Sample::OneIn(sample)),
                _ => Err("expected auto, or a whole number from 1 to 4294967295"),
            },
        }
    }
}

/// The reason why a recorder lowered the share of keys. `Display` gives it in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lowered {
    /// The time of an operation when the share was last lowered. `None` for a trace without an end
    /// block, which is where this time is stored.
    pub operation_ns: Option<u64>,
}

impl fmt::Display for Lowered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation_ns) = self.operation_ns {
            write!(f, "at {operation_ns} ns an operation, ")?;
        }
        f.write_str("recording all keys would have taken more than 1.1 % of the time; --sample 1 records all")
    }
}

/// Returns the largest hash that is recorded for this sample.
#[inline]
pub(crate) fn threshold(sample: u32) -> u64 {
    u64::MAX / u64::from(sample.max(1))
}

/// Returns the sample for a threshold: the exact inverse of [`threshold`] for all 32-bit samples.
pub(crate) fn of_threshold(threshold: u64) -> u32 {
    u32::try_from(u64::MAX / threshold.max(1)).unwrap_or(u32::MAX)
}

/// Decides by its key's hash whether an operation is in the sample. The operations of a batch that
/// remain stay one batch: the first one that remains is joined to nothing, the others to it.
/// `joined` tells whether the operation belongs to the one before, and is corrected here. `goes_on`
/// is kept between calls and tells whether an operation of the current batch is in the sample.
#[inline]
pub(crate) fn takes(hash: u64, threshold: u64, joined: &mut bool, goes_on: &mut bool) -> bool {
    *goes_on &= *joined;
    if hash > threshold {
        return false;
    }
    *joined = *goes_on;
    *goes_on = true;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: samples survive the round trip through thresholds and through text, and invalid text
    /// is refused.
    #[test]
    fn samples_come_back() {
        for sample in [1, 2, 3, 10, 64, 1_000, 65_537, u32::MAX - 1, u32::MAX] {
            assert_eq!(of_threshold(threshold(sample)), sample);
            assert_eq!(sample.to_string().parse(), Ok(Sample::OneIn(sample)));
        }
        assert_eq!("auto".parse(), Ok(Sample::Auto));
        for word in ["", "0", "-1", "Auto", "4294967296", "1.5"] {
            assert!(word.parse::<Sample>().is_err(), "{word}");
        }
    }
}
