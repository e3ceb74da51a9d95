//! What tables do not know about their rows.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::Error;
use crate::catalog::{OwnedValue, Table};
use crate::row::Value;

/// What whoever defines tables knows about their rows beside types and keys: expressions for
/// defaults and checks are texts here. Asked when rows follow others because of a foreign key
/// ([`Transaction::end_changes_by`](super::Transaction::end_changes_by)); other rows come from
/// whoever knows it.
pub trait Rules: fmt::Debug {
    /// What a column has by default.
    ///
    /// Errors: those of computing it.
    fn default_of(&self, table: &Table, column: usize)
    -> Result<OwnedValue, Arc<dyn StdError + Send + Sync>>;

    /// Sees that a row may be in a table.
    ///
    /// Errors: why it may not.
    fn check(&self, table: &Table, values: &[Value<'_>]) -> Result<(), Arc<dyn StdError + Send + Sync>>;
}

/// Every row may be. Columns are NULL by default, where they do not say otherwise.
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
