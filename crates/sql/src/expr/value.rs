//! Values of expressions, and their access to the session.

use std::borrow::Cow;

use crate::datum::{Datum, DatumRef};
use crate::error::Result;

/// A computed value. It borrows from a row, parameter or constant, or is owned.
#[derive(Debug, Clone)]
pub(crate) enum Val<'a> {
    Ref(DatumRef<'a>),
    Own(Datum),
}

impl<'a> Val<'a> {
    pub const NULL: Val<'static> = Val::Ref(DatumRef::Null);

    pub fn get(&self) -> DatumRef<'_> {
        match self {
            Val::Ref(datum) => *datum,
            Val::Own(datum) => datum.borrow(),
        }
    }

    pub fn into_datum(self) -> Datum {
        match self {
            Val::Ref(datum) => datum.to_owned(),
            Val::Own(datum) => datum,
        }
    }

    pub fn is_null(&self) -> bool {
        self.get().is_null()
    }

    pub fn boolean(value: Option<bool>) -> Self {
        Val::Ref(value.map_or(DatumRef::Null, DatumRef::Boolean))
    }

    /// The value as a condition; `None` for NULL.
    pub fn truth(&self) -> Option<bool> {
        match self.get() {
            DatumRef::Boolean(value) => Some(value),
            _ => None,
        }
    }

    /// The value as text.
    pub fn text(&self) -> Cow<'_, str> {
        match self.get() {
            DatumRef::Text(text) => Cow::Borrowed(text),
            other => Cow::Owned(other.to_string()),
        }
    }
}

impl From<Datum> for Val<'_> {
    fn from(datum: Datum) -> Self {
        Val::Own(datum)
    }
}

impl<'a> From<DatumRef<'a>> for Val<'a> {
    fn from(datum: DatumRef<'a>) -> Self {
        Val::Ref(datum)
    }
}

/// Access of expressions to the session: times, sequences, settings.
pub(crate) trait Context: std::fmt::Debug {
    /// The start of the transaction, in microseconds since 1970, UTC.
    fn transaction_time(&self) -> i64;
    /// The start of the statement, in microseconds since 1970, UTC.
    fn statement_time(&self) -> i64;
    /// The current time, in microseconds since 1970, UTC.
    fn clock_time(&self) -> i64;
    /// 64 random bits.
    fn random(&self) -> u64;
    fn next_value(&self, sequence: &str) -> Result<i64>;
    fn current_value(&self, sequence: Option<&str>) -> Result<i64>;
    fn set_value(&self, sequence: &str, value: i64, is_called: bool) -> Result<i64>;
    /// Returns the value of a setting.
    fn setting(&self, name: &str) -> Option<String>;
}
