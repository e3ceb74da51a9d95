//! Rows on their way to the client: where they come from, and the steps of a cursor over them.

mod cursor;
mod general;
mod source;

pub(crate) use cursor::{CursorRows, Walk};
pub(crate) use general::{BatchSource, StoredRows};
pub use source::RowView;
pub(crate) use source::Source;
