//! Caches that can serve as a buffer pool: pages by number, with a fixed number of them in memory.
//! The settings of each one list its restrictions.

pub mod caches;
pub mod sqlite;

#[cfg(test)]
mod tests;
