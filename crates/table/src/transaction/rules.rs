//! Rules about rows that tables do not know.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::Error;
use crate::catalog::{OwnedValue, Table};
use crate::row::Value;

/// Rules about rows that the layer above knows, besides types and keys: this crate cannot evaluate
/// the expressions of defaults and checks. They are used when a foreign key changes referencing
/// rows ([`Transaction::end_changes_by`](super::Transaction::end_changes_by)); the layer above
/// checks all other rows itself.
pub trait Rules: fmt::Debug {
    /// Returns the default value of a column.
    ///
    /// Errors: those of evaluating it.
    fn default_of(&self, table: &Table, column: usize)
    -> Result<OwnedValue, Arc<dyn StdError + Send + Sync>>;

    /// Checks that a row is allowed in a table.
    ///
    /// Errors: the reason why it is not.
    fn check(&self, table: &Table, values: &[Value<'_>]) -> Result<(), Arc<dyn StdError + Send + Sync>>;
}

/// Allows every row. Columns without a default expression are NULL by default.
#[derive(Debug)]
pub(super) struct NoRules;

impl Rules for NoRules {
    fn default_of(
        &self,
        table: &Table,
        column: usize,
    ) -> Result<OwnedValue, Arc<dyn StdError + Send + Sync>> {
        match table.def().columns.get(column) {
            Some(column) if column.default.is_some() => {
                let what = format!("column \"{}\" has a default, but no rule gives its value", column.name);
                Err(Arc::new(Error::Invalid { what }))
            }
            _ => Ok(OwnedValue::Plain(Value::Null)),
        }
    }

    fn check(&self, _: &Table, _: &[Value<'_>]) -> Result<(), Arc<dyn StdError + Send + Sync>> {
        Ok(())
    }
}
