//! Ordered key-value store on a log-structured merge tree.
//!
//! Writes go to a write-ahead log and a memtable, full memtables are flushed to tables, and compactions merge tables
//! down the levels. `docs/src/engines/kv.md` tells how and why.
#![deny(unsafe_code)]
#![allow(dead_code)] // while the parts are built; goes when they meet

mod compaction;
mod cursor;
pub mod error;
mod file;
mod iter;
mod kind;
mod merge_operator;

pub use error::{Error, Result};
