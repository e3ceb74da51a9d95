//! SQL over transactional tables.
//!
//! What applications do all day (reading and changing single rows and short ranges of one table) is
//! compiled once to operations on the table's trees; everything else goes through DataFusion.
//! `docs/src/design/sql.md` tells how and why. Where engines differ, PostgreSQL is right.
//!
//! A [`Connection`] waits for what it does. It may be used within an asynchronous runtime, on a
//! thread that may wait.
#![forbid(unsafe_code)]

mod batch;
mod connection;
mod copy;
mod database;
mod datum;
mod ddl;
mod direct;
mod error;
mod expr;
mod outcome;
mod pg_catalog;
mod query;
mod sequence;
mod session;
pub mod sqlstate;
mod statement;
mod syntax;
mod types;

pub use arrow::array::RecordBatch;
pub use cairn_table::row::Type;
pub use cairn_table::schema::ColumnType;
pub use connection::{Canceller, Connection};
pub use database::{Builder, Database, Durability};
pub use datum::{Datum, DatumRef, FromDatum};
pub use error::{Error, Result, Subject};
pub use outcome::{Column, CommandTag, CopyIn, CopyOut, Outcome, RowView, Rows};
pub use sequence::{Sequence, identity_sequence};
pub use session::{Notice, TransactionStatus};
pub use statement::{Statement, StatementKind};
pub use syntax::{RESERVED_WORDS, quote_ident, split};
