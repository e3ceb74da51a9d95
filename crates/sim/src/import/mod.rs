//! Conversion of options from and to the engines' own formats: RocksDB's `OPTIONS` files and option
//! files of `cairn kv`.

mod kv;
mod measured;
mod rocksdb;

pub use kv::{export_kv, import_kv, kv_unrepresentable};
pub use measured::{apply_db_bench, apply_log};
pub use rocksdb::{export_rocksdb, import_rocksdb, rocksdb_changes, rocksdb_string, rocksdb_unrepresentable};

use crate::options::Options;

/// Imported options.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The options; settings that are missing in the file have their defaults.
    pub options: Options,
    /// Settings of the file that the simulator does not model.
    pub ignored: Vec<String>,
    /// Notes on settings that the file cannot hold or that were adjusted, and the values used
    /// instead.
    pub notes: Vec<String>,
}
