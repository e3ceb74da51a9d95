//! SQL over transactional tables.
//!
//! The statements that applications run most (reading and changing single rows and short ranges of
//! one table) are compiled once to operations on the table's trees; everything else goes through
//! DataFusion. `docs/src/design/sql.md` describes the design and its reasons. Where SQL engines
//! differ, PostgreSQL is the reference.
//!
//! A [`Connection`] blocks. Within an asynchronous runtime, use it on a thread that may block.
#![forbid(unsafe_code)]

mod batch;
mod column;
mod command_tag;
mod connection;
mod copy;
mod database;
mod datum;
mod ddl;
mod direct;
mod error;
mod executor;
mod expr;
mod general;
mod outcome;
mod pg_catalog;
mod rows;
mod runtime;
mod session;
pub mod sqlstate;
mod syntax;
mod types;

pub use arrow::array::RecordBatch;
pub use cairn_table::row::Type;
pub use cairn_table::schema::ColumnType;
pub use column::Column;
pub use command_tag::CommandTag;
pub use connection::{Canceller, Connection};
pub use database::{Builder, Database, Durability};
pub use datum::{Datum, DatumRef, FromDatum};
pub use error::{Error, Result, Subject};
pub use executor::{Statement, StatementKind};
pub use outcome::{CopyIn, CopyOut, Outcome, Rows};
pub use rows::RowView;
pub use runtime::sequence::{Sequence, identity_sequence};
pub use session::{Notice, TransactionStatus};
pub use syntax::{RESERVED_WORDS, quote_ident, split};
