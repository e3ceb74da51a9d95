//! Relational engine: clustered B+trees over a buffer pool and a write-ahead log.
//!
//! `docs/src/design/sql.md` explains how and why.
#![forbid(unsafe_code)]

mod backup;
mod blocks;
mod catalog;
mod check;
mod cleanup;
mod database;
mod error;
mod hook;
mod inner;
mod mvcc;
mod options;
pub mod row;
pub mod schema;
mod shadow;
mod sorter;
pub mod storage;
mod survey;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;
#[cfg(test)]
mod tests;
mod transaction;
mod vacuum;
mod view;

/// An error of the buffer pool, as in [`Error::Pool`].
pub use cairn_pool::Error as PoolError;

pub use blocks::{Block, BlockScan, ByteValues, ColumnBuf, ColumnValues, Validity};
pub use catalog::{Catalog, ColumnStatistics, OwnedValue, PUBLIC, RowRef, Table, TableStatistics};
pub use check::CheckReport;
pub use database::{Database, Stats};
pub use error::{Error, Relation, Result};
pub use mvcc::Canceller;
pub use options::{Durability, Isolation, Options};
pub use storage::{Direction, StreamForm, log_dir, pages_path, real_path};
pub use survey::{LevelSurvey, Survey, TableSurvey, TreeSurvey};
pub use transaction::{BulkInsert, BulkLoad, ReusableTransaction, Rules, Savepoint, Transaction};
pub use vacuum::VacuumReport;
pub use view::{KeyRange, RowBuf, Scan, View};
