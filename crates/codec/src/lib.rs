//! Varints, hashes, checksums, filters and block compression shared by Cairn's file formats.
//!
//! Everything here works on byte slices: no files, no clocks, no threads. Decoders take bytes that
//! may be garbage; each has a hard bound on what it writes and returns a typed [`Error`], never a
//! panic.
#![forbid(unsafe_code)]

pub mod checksum;
pub mod compress;
mod error;
pub mod filter;
pub mod key_hash;
pub mod lz4;
pub mod murmur3;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;
pub mod varint;

pub use error::{Error, Result};
