//! The bodies of the fuzz targets, as plain functions: cargo-fuzz calls them on nightly, tests on
//! any Rust.

pub mod bodies;
pub mod wal;
