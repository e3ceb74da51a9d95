//! Examples in the table.

/// An expression, and its value in PostgreSQL as text, or the code of its error.
pub(crate) type Example = (&'static str, &'static str);
