//! Checks Parquet files before the Parquet library reads them.
//!
//! The library trusts lengths and counts in a file's footer and page headers, allocates memory
//! based on them, and panics on some impossible ones. A [`Source`] checks both before the library
//! reads them: no list may be longer than the bytes that could hold it, and no page larger than its
//! file or its column states. [`guarded`] turns the remaining panics into errors.
//!
//! ```text
//! file = "PAR1" { column chunk = { page header (Thrift) page } }
//!        footer (Thrift) footer length u32le "PAR1"
//! ```

mod guard;
mod source;
mod thrift;

pub use guard::{guarded, quiet_panics};
pub use source::{From, Source};

use parquet::data_type::Int96;

/// The Julian day number of 1970-01-01.
const JULIAN_1970: i128 = 2_440_588;
const DAY_NANOS: i128 = 86_400 * 1_000_000_000;

/// Converts a time in the old format, a Julian day and nanoseconds within it, to nanoseconds
/// since 1970. All years from about 5 million BCE on have distinct values.
pub fn nanos(time: &Int96) -> i128 {
    let [low, high, day] = [0, 1, 2].map(|at| time.data().get(at).copied().unwrap_or_default());
    let within = (u64::from(high) << 32 | u64::from(low)) as i64;
    (i128::from(day) - JULIAN_1970) * DAY_NANOS + i128::from(within)
}

/// Returns the first name that occurs a second time.
pub fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

#[cfg(test)]
mod tests;
