//! Parquet files, so far as they have to be checked before the Parquet library reads them.
//!
//! The library believes lengths and counts of a file's footer and of its pages' heads, allocates by
//! them, and panics on some that cannot be. A [`Source`] looks at both before the library does: no
//! list is longer than the bytes that could hold it, no page larger than its file or its column
//! says. [`guarded`] turns what is left of the panics into errors.
//!
//! ```text
//! file = "PAR1" { column chunk = { page head (Thrift) page } } footer (Thrift) footer length u32le "PAR1"
//! ```

mod guard;
mod source;
mod thrift;

pub use guard::{guarded, quiet_panics};
pub use source::{From, Source};

use parquet::data_type::Int96;

/// The Julian day on which 1970 began.
const JULIAN_1970: i128 = 2_440_588;
const DAY_NANOS: i128 = 86_400 * 1_000_000_000;

/// The nanoseconds since 1970 of a time in the old form: a Julian day, and nanoseconds within it.
/// Years from 5 million before our era on have their own.
pub fn nanos(time: &Int96) -> i128 {
    let [low, high, day] = [0, 1, 2].map(|at| time.data().get(at).copied().unwrap_or_default());
    let within = (u64::from(high) << 32 | u64::from(low)) as i64;
    (i128::from(day) - JULIAN_1970) * DAY_NANOS + i128::from(within)
}

/// The first name that two of them have.
pub fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

#[cfg(test)]
mod tests;
