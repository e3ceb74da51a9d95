//! Arrow: rows by column, as the general path has them.

mod blocks;
mod builder;
mod reader;
mod schema;

pub(crate) use blocks::array_of;
pub(crate) use builder::Columns;
pub(crate) use reader::{BatchReader, conform};
pub(crate) use schema::{data_type, element_of, field, kind_of, schema_of};

/// Rows of a batch.
pub(crate) const BATCH_ROWS: usize = 8192;
