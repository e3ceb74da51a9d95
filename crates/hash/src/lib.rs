//! Constant hash store: built once in bulk, then read by many threads at memory speed.
//!
//! The crate has two formats. [`sparkey`] reads and writes the `.spl`/`.spi` pairs of Sparkey.
//! [`table`] is Cairn's own single-file format, with a checksum for every page and an index of a
//! few bytes per entry.
#![deny(unsafe_code)]

pub mod error;
pub mod generations;
#[cfg(test)]
#[path = "../../../testing/hook_fs.rs"]
mod hook_fs;
mod names;
mod prefetch;
mod simd;
pub mod sparkey;
pub mod table;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;

pub use error::{Error, Result};

/// Compiles the Rust examples of the user documentation under `cargo test --doc`.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/src/engines/hash.md")]
    struct Engine;

    #[doc = include_str!("../../../docs/src/tutorials/hash.md")]
    struct Tutorial;
}
