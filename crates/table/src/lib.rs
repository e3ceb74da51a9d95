//! Relational engine: clustered B+trees over a buffer pool and a write-ahead log.
//!
//! `docs/src/design/sql.md` tells how and why.
#![forbid(unsafe_code)]

mod error;
pub mod row;
pub mod schema;
pub mod storage;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;

pub use error::{Error, Result};
