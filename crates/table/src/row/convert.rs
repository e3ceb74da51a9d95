//! Conversion of values at the place where they are read.

use super::value::Value;

/// A conversion that readers apply to a value at the place where they read it.
///
/// A [`Value`] takes four words, of which a number sets only a few bytes. Returning it from reader
/// to reader copies it each time, in pieces wider than the preceding writes. A processor that loads
/// such a piece cannot forward the stores and stalls until they have reached its cache: a dozen
/// cycles per copy, which was half the cost of reading a column. Readers therefore take the
/// conversion as an argument, and each of their match arms creates the final result directly.
pub trait Make<'a> {
    /// The result of the conversion.
    type Made;

    /// Converts a value, which may be NULL.
    fn make(self, value: Value<'a>) -> Self::Made;

    /// Returns the substitute for a missing value: no such column, or bytes that are not a row.
    fn absent(self) -> Self::Made;
}

/// Returns the value itself, or NULL if it is missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrNull;

impl<'a> Make<'a> for OrNull {
    type Made = Value<'a>;

    #[inline(always)]
    fn make(self, value: Value<'a>) -> Value<'a> {
        value
    }

    #[inline(always)]
    fn absent(self) -> Value<'a> {
        Value::Null
    }
}

/// Returns the value itself, or `None` if it is missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IfThere;

impl<'a> Make<'a> for IfThere {
    type Made = Option<Value<'a>>;

    #[inline(always)]
    fn make(self, value: Value<'a>) -> Option<Value<'a>> {
        Some(value)
    }

    #[inline(always)]
    fn absent(self) -> Option<Value<'a>> {
        None
    }
}
