//! The peers of the key-value suite that are Rust crates: opened to be written to and read at once.

pub mod fjall;
pub mod lmdb;
pub mod redb;
pub mod sled;
pub mod sqlite;

#[cfg(test)]
mod tests;
