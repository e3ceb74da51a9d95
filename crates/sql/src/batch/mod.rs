//! Arrow: rows by column, as the general path has them.

mod blocks;
mod builder;
mod reader;
mod schema;

pub(crate) use blocks::array_of;
pub(crate) use builder::Columns;
pub(crate) use reader::{BatchReader, conform};
pub(crate) use schema::{as_json, data_type, element_of, field, kind_of, schema_of};

use arrow::error::ArrowError;

/// Arrow counts spans of time in nanoseconds.
pub(crate) fn too_long_span() -> ArrowError {
    ArrowError::ArithmeticOverflow("interval out of range: 292 years of time are the most".to_owned())
}

/// Rows of a batch.
pub(crate) const BATCH_ROWS: usize = 8192;
