//! Identity columns in statements that change rows: which values they take.

use cairn_table::schema::{ColumnDef, Identity};

use crate::error::{Error, Result};
use crate::sqlstate::GENERATED_ALWAYS;
use crate::syntax::Overriding;

/// Whether an INSERT takes no value for a column but that of its sequence, whatever it is given.
pub(crate) fn is_ignored(column: &ColumnDef, overriding: Overriding) -> bool {
    column.identity.is_some() && overriding == Overriding::User
}

/// Sees that an INSERT may give a column a value.
///
/// Errors: 428C9.
pub(crate) fn may_insert(column: &ColumnDef, overriding: Overriding) -> Result<()> {
    if column.identity != Some(Identity::Always) || overriding != Overriding::Neither {
        return Ok(());
    }
    let what = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
    Err(refused(column, what).with_hint("Use OVERRIDING SYSTEM VALUE to override."))
}

/// Sees that an UPDATE may give a column another value than DEFAULT.
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
