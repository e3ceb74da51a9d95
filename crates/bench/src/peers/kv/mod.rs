//! Peers of the key-value suite that are Rust crates, for concurrent reads and writes.

pub mod fjall;
pub mod lmdb;
pub mod redb;
pub mod sled;
pub mod sqlite;

#[cfg(test)]
mod tests;
