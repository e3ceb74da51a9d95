//! ALTER COLUMN TYPE.

use cairn_table::Table;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::sql::sqlparser::ast::Expr;

use crate::datum::{Datum, DatumRef};
use crate::direct::unsupported;
use crate::error::{Error, Result};
use crate::expr::{Cells, Compiler, Env, Scope, assign, is_assignable};
use crate::session::Session;
use crate::sqlstate::DATATYPE_MISMATCH;
use crate::types::name_of;

impl Session {
    /// Gives a column another type. Where its values change they are all in memory for a while.
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
        let rows = self.converted(table, at, &kind, node.as_ref())?;
        let transaction = self.transaction()?;
        let empty = transaction.truncate(table)?;
        let columns: Vec<Option<usize>> = (0..def.columns.len()).map(Some).collect();
        let new = transaction.alter_table(&empty, def, &columns, &[])?;
        for row in rows {
            let values: Vec<_> = row.iter().map(|datum| datum.borrow().to_value()).collect();
            transaction.insert(&new, &values)?;
        }
        Ok(transaction.view().catalog().table_by_id(new.id()).cloned().unwrap_or(new))
    }

    fn converted(
        &mut self,
        table: &Arc<Table>,
        at: usize,
        kind: &ColumnType,
        node: Option<&crate::expr::Node>,
    ) -> Result<Vec<Vec<Datum>>> {
        use std::ops::Bound::Unbounded;
        let (transaction, context) = self.parts()?;
        let mut scan =
            transaction.view().scan(table, None, (Unbounded, Unbounded), cairn_table::Direction::Forward)?;
        let mut rows = Vec::new();
        while let Some(row) = scan.next()? {
            let mut datums = Vec::with_capacity(table.def().columns.len());
            for (column, def) in table.def().columns.iter().enumerate() {
                let scale = def.kind.decimal.map_or(0, |(_, scale)| scale);
                let value = DatumRef::from_value(row.get(column), scale);
                datums.push(match node {
                    _ if column != at => value.to_owned(),
                    None => assign(value, kind)?.into_datum(),
                    Some(node) => {
                        let env = Env::new(Cells::Row(row), &[], context);
                        assign(node.eval(&env)?.get(), kind)?.into_datum()
                    }
                });
            }
            rows.push(datums);
        }
        Ok(rows)
    }
}
