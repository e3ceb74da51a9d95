//! Files that other programs have written, read in one way by every part of Cairn.
//!
//! ```text
//! csv       rows of CSV and TSV, one after the other, and the columns that a header names
//! mark      the byte order mark that some programs put before a text
//! parquet   Parquet files whose lengths and counts are checked before the Parquet library allocates by them
//! ```
//!
//! Bad input ends in an error that says where; never in a panic, a guess, or memory that the input
//! has chosen.
#![forbid(unsafe_code)]

pub mod csv;
pub mod mark;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;
