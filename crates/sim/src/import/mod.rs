//! Options from and to the engines' own forms: RocksDB's `OPTIONS` files and `cairn kv` option
//! files.

mod kv;
mod measured;
mod rocksdb;

pub use kv::{export_kv, import_kv, kv_beside};
pub use measured::{apply_db_bench, apply_log};
pub use rocksdb::{export_rocksdb, import_rocksdb, rocksdb_beside, rocksdb_changes, rocksdb_string};

use crate::options::Options;

/// What was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The options; what the file does not say has its default.
    pub options: Options,
    /// Settings of the file that the simulator has no model of.
    pub ignored: Vec<String>,
    /// What the file cannot say, and what is taken instead.
    pub notes: Vec<String>,
}
