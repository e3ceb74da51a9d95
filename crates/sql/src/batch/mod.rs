//! Arrow record batches: the columnar form of rows on the general path.

mod blocks;
mod builder;
mod errors;
mod messages;
mod reader;
mod schema;

pub(crate) use blocks::array_of;
pub(crate) use builder::Columns;
pub(crate) use errors::{Cause, arrow_error, arrow_error_with, error_of_cause, io_error};
pub(crate) use messages::{Origin, sql_types, translate_message};
pub(crate) use reader::{BatchReader, conform};
pub(crate) use schema::{as_json, data_type, element_of, field, kind_of, schema_of};

use arrow::error::ArrowError;

/// Returns the error for an interval beyond the range of Arrow, which counts time in nanoseconds.
pub(crate) fn too_long_span() -> ArrowError {
    ArrowError::ArithmeticOverflow("interval out of range: the time part exceeds 292 years".to_owned())
}

/// Rows per batch.
pub(crate) const BATCH_ROWS: usize = 8192;
