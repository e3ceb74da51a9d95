//! Rules of identity columns in INSERT and UPDATE.

use cairn_table::schema::{ColumnDef, Identity};

use crate::error::{Error, Result};
use crate::sqlstate::GENERATED_ALWAYS;
use crate::syntax::Overriding;

/// Whether an INSERT ignores the given value of a column, and takes that of its sequence.
pub(crate) fn is_ignored(column: &ColumnDef, overriding: Overriding) -> bool {
    column.identity.is_some() && overriding == Overriding::User
}

/// Checks that an INSERT may give a column a value.
///
/// Errors: 428C9.
pub(crate) fn may_insert(column: &ColumnDef, overriding: Overriding) -> Result<()> {
    if column.identity != Some(Identity::Always) || overriding != Overriding::Neither {
        return Ok(());
    }
    let what = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
    Err(refused(column, what).with_hint("Use OVERRIDING SYSTEM VALUE to override."))
}

/// Checks that an UPDATE may give a column a value other than DEFAULT.
///
/// Errors: 428C9.
pub(crate) fn may_update(column: &ColumnDef) -> Result<()> {
    match column.identity {
        Some(Identity::Always) => {
            Err(refused(column, format!("column \"{}\" can only be updated to DEFAULT", column.name)))
        }
        _ => Ok(()),
    }
}

fn refused(column: &ColumnDef, what: String) -> Error {
    let detail = format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name);
    Error::new(GENERATED_ALWAYS, what).with_detail(detail)
}
