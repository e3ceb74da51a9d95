//! ALTER COLUMN TYPE.

use std::ops::Bound::Unbounded;

use cairn_table::schema::{ColumnDef, ColumnType};
use cairn_table::{Direction, Table};
use cairn_vfs::sync::Arc;
use datafusion::sql::sqlparser::ast::Expr;

use crate::datum::DatumRef;
use crate::direct::unsupported;
use crate::error::{Error, Result};
use crate::expr::{Cells, Compiler, Env, Scope, assign, is_assignable};
use crate::session::Session;
use crate::sqlstate::DATATYPE_MISMATCH;
use crate::types::name_of;

impl Session {
    /// Gives a column another type. Where its values change, rows are read from the old trees and built into new ones, one after the other.
    ///
    /// Errors: 42804 without USING where one type does not become the other by itself; those of converting values.
    pub(super) fn retype(
        &mut self,
        table: &Arc<Table>,
        at: usize,
        kind: ColumnType,
        using: Option<&Expr>,
    ) -> Result<Arc<Table>> {
        let mut def = table.def().clone();
        let Some(column) = def.columns.get_mut(at) else { return Ok(Arc::clone(table)) };
        let old = std::mem::replace(&mut column.kind, kind.clone());
        let name = column.name.clone();
        let same_bytes =
            old.kind == kind.kind && old.decimal == kind.decimal && (old.is_json || !kind.is_json);
        if using.is_none() && same_bytes {
            return self.redefine(table, def);
        }
        let node = match using {
            Some(expr) => {
                let scope = Scope::of_table(table, None);
                let node = Compiler::new(&scope, &mut Vec::new()).assignment(expr, &name, &kind);
                Some(node.map_err(|failure| unsupported(failure, "this expression in USING"))?)
            }
            None if is_assignable(&old, &kind) => None,
            None => {
                let what =
                    format!("column \"{name}\" cannot be cast automatically to type {}", name_of(&kind));
                let hint = format!("You might need to specify \"USING {name}::{kind}\".");
                return Err(Error::new(DATATYPE_MISMATCH, what).with_hint(hint));
            }
        };
        let (transaction, context) = self.parts()?;
        // All there is, in the trees that stay until it commits.
        let view = transaction.rows_of_now()?;
        let mut scan = view.scan(table, None, (Unbounded, Unbounded), Direction::Forward)?;
        let empty = transaction.truncate(table)?;
        let columns: Vec<Option<usize>> = (0..def.columns.len()).map(Some).collect();
        let new = transaction.alter_table(&empty, def, &columns, &[])?;
        let mut rows = transaction.bulk_insert(&new)?;
        while let Some(row) = scan.next()? {
            let old = DatumRef::from_value(row.get(at), table.def().columns.get(at).map_or(0, scale));
            let value = match &node {
                None => assign(old, &kind)?.into_datum(),
                Some(node) => {
                    let env = Env::new(Cells::Row(row), &[], context);
                    assign(node.eval(&env)?.get(), &kind)?.into_datum()
                }
            };
            let mut values: Vec<_> = (0..table.def().columns.len()).map(|column| row.get(column)).collect();
            if let Some(place) = values.get_mut(at) {
                *place = value.borrow().to_value();
            }
            rows.push(&values)?;
        }
        rows.finish()?;
        Ok(transaction.view().catalog().table_by_id(new.id()).cloned().unwrap_or(new))
    }
}

/// Digits after the point of a column's values.
fn scale(column: &ColumnDef) -> u8 {
    column.kind.decimal.map_or(0, |(_, scale)| scale)
}
