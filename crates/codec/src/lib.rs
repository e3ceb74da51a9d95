//! Varints, dates, hashes, checksums, filters and block compression shared by Cairn's file formats.
//!
//! Everything here works on byte slices, without files, clocks or threads. Decoders accept garbage:
//! each has a hard bound on its output and returns a typed [`Error`], but never panics.
#![forbid(unsafe_code)]

pub mod calendar;
pub mod checksum;
pub mod compress;
mod error;
pub mod filter;
pub mod key_hash;
pub mod lz4;
pub mod murmur3;
pub mod short_word;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;
pub mod varint;

pub use error::{Error, Result};
