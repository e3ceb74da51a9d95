//! What becomes of a value that is read.

use super::value::Value;

/// Takes a value at the place where it is read.
///
/// A [`Value`] is four words, of which a number writes a few bytes. Handed up from reader to reader
/// it is copied each time, in pieces that are wider than what was just written, and a processor
/// that reads such a piece waits until the writes have reached its cache: a dozen cycles for each
/// copy, half of what reading a column took. So readers are told who wants the value, and each arm
/// of theirs makes what is wanted in its last place.
pub trait Make<'a> {
    /// What is made of it.
    type Made;

    /// Makes it of a value, which may be NULL.
    fn make(self, value: Value<'a>) -> Self::Made;

    /// What stands for a value that is not there: no such column, or bytes that are no row.
    fn absent(self) -> Self::Made;
}

/// The value itself; NULL where there is none.
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

/// The value itself, if there is one.
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
