//! Ordered key-value store on a log-structured merge tree.
//!
//! Writes go to a write-ahead log and a memtable, full memtables are flushed to tables, and
//! compactions merge tables down the levels. `docs/src/engines/kv.md` describes the design and the
//! reasons for it.
#![deny(unsafe_code)]

mod admin;
mod batch;
mod blob;
mod cache;
mod compaction;
mod cursor;
mod db;
pub mod error;
mod escape;
mod events;
mod file;
mod iter;
mod kind;
mod memtable;
mod merge_operator;
mod open_files;
mod options;
mod range_del;
#[cfg(all(test, cairn_shuttle))]
#[path = "../../../testing/schedules.rs"]
mod schedules;
mod swap;
mod table;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;
mod ttl;
mod txn;
mod user_code;
mod value;
mod version;

pub use admin::{BackupInfo, Backups, BuiltTable, Damage, IngestOptions, RepairOptions, RepairReport};
pub use admin::{KeyspaceInfo, list_keyspaces, list_keyspaces_in};
pub use admin::{TableBuilder, TableInfo, VerifyReport, destroy, destroy_in, repair, verify, verify_in};
pub use batch::{BATCH_BYTES_MAX, KEY_BYTES_MAX, Operation, VALUE_BYTES_MAX, WriteBatch};
pub use compaction::strategy;
pub use compaction::stream::{CompactionFilter, Dropped, FilterDecision};
pub use db::{Builder, Db, DbCursor, KeyRange, Keyspace, KeyspaceStats, LevelStats};
pub use db::{Pair, Range, Snapshot, Stalls, Stats};
pub use error::{Error, Result};
pub use events::{Event, EventListener, StallCause};
pub use kind::Seqno;
pub use merge_operator::{AddU64, Append, MergeOperator};
pub use options::{Background, Durability, KeyspaceOptions, Options, ReadOptions};
#[doc(hidden)]
pub use table::fuzz as fuzz_table;
pub use table::{BlockInfo, Compression, FilterKind, FilterPolicy, PrefixExtractor};
pub use txn::{Transaction, TransactionOptions, TransactionRange};
pub use value::Value;
pub use version::KeyspaceId;
#[doc(hidden)]
pub use version::fuzz as fuzz_version;

/// Compiles the Rust examples of the user documentation under `cargo test --doc`.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/src/engines/kv.md")]
    struct Engine;

    #[doc = include_str!("../../../docs/src/tutorials/kv.md")]
    struct Tutorial;
}
