//! Readers for files written by other programs, shared by all parts of Cairn.
//!
//! ```text
//! csv       rows of CSV and TSV, one after the other, and the columns that a header names
//! mark      the byte order mark that some programs put before a text
//! parquet   Parquet files, with lengths and counts checked before the Parquet library trusts them
//! ```
//!
//! Bad input ends in an error with its position. It never ends in a panic, a guess, or an
//! allocation of a size that the input chose.
#![forbid(unsafe_code)]

pub mod csv;
pub mod mark;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;
