//! Of how many keys a trace has the operations: what is asked for, and what it says where it came
//! otherwise.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// The share of the keys that is recorded. It is by the key's hash, so that of each key there is
/// everything or nothing (SHARDS).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sample {
    /// All keys, and fewer of them once a thread's operations are so fast that recording them costs
    /// it more than 1.1 %, their hashes aside: half, a quarter, one in 256 at least. Never more
    /// again, so that what is left at the end is a uniform sample, which is all that a reader gets.
    #[default]
    Auto,
    /// The operations of one key in so many, from 1 for all, whatever that costs.
    OneIn(u32),
}

impl Sample {
    /// Of how many keys one is recorded at first.
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

/// Why a recorder lowered the share, in words by its `Display`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lowered {
    /// What an operation took where that was last decided. `None` of a trace without an end, which
    /// does not tell.
    pub operation_ns: Option<u64>,
}

impl fmt::Display for Lowered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation_ns {
            Some(operation_ns) => write!(f, "at {operation_ns} ns an operation, ")?,
            None => f.write_str("its operations were so fast that ")?,
        }
        f.write_str("all keys would have cost more than 1.1 %; --sample 1 records all")
    }
}

/// Hashes up to this are recorded.
#[inline]
pub(crate) fn threshold(sample: u32) -> u64 {
    u64::MAX / u64::from(sample.max(1))
}

/// The sample of a threshold: the way back is exact for every number of 32 bits.
pub(crate) fn of_threshold(threshold: u64) -> u32 {
    u32::try_from(u64::MAX / threshold.max(1)).unwrap_or(u32::MAX)
}

/// True for an operation that is in the sample of a threshold, by its key's hash. What is left of a
/// batch is joined to what is left of it: `joined` says whether the operation belongs to the one
/// before, and `goes_on`, which is kept from one operation to the next, whether anything of the
/// current batch is in the sample.
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

    /// Goal: words and thresholds come back as the samples they are of, and others are refused.
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
