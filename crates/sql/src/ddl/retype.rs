//! ALTER COLUMN TYPE.

use std::collections::BTreeSet;
use std::ops::Bound::Unbounded;

use cairn_table::row::Type;
use cairn_table::schema::{ColumnDef, ColumnType, TableDef};
use cairn_table::{Direction, Table};
use cairn_vfs::sync::Arc;
use sqlparser::ast::Expr;

use super::constraints::check_may_refer;
use crate::datum::{Datum, DatumRef, zoned_text};
use crate::direct::{Checks, default_of, unsupported};
use crate::error::{Error, Result};
use crate::expr::{Cells, Compiler, Env, Scope, assign, is_assignable};
use crate::session::Session;
use crate::sqlstate::DATATYPE_MISMATCH;
use crate::types::name_of;

impl Session {
    /// Changes the type of a column. If its values change, the rows are read from the old trees and
    /// built into new ones, one after the other.
    ///
    /// Errors: 42804 without USING if there is no implicit conversion between the types, and for a
    /// default, a check or a foreign key that is incompatible with the new type; those of
    /// converting values; 23514 and 23503 for converted values that violate a constraint.
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
        let is_zoned = old.is_zoned;
        let name = column.name.clone();
        // The column's default, checks and foreign keys must be valid for its new type.
        default_of(column)?;
        Checks::new(&def)?;
        let keys = self.keys_with(table, at)?;
        self.check_key_types(table, &def, &keys)?;
        let same_bytes = old.kind == kind.kind
            && old.decimal == kind.decimal
            && (old.is_json || !kind.is_json)
            && kind.length.is_none_or(|most| old.length.is_some_and(|length| length <= most));
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
        // All rows, read from the old trees, which remain until the commit.
        let view = transaction.current_rows()?;
        let mut scan = view.scan(table, None, (Unbounded, Unbounded), Direction::Forward)?;
        let mut rows = transaction.bulk_replace(table, def)?;
        while let Some(row) = scan.next()? {
            let old = DatumRef::from_value(row.get(at), table.def().columns.get(at).map_or(0, scale));
            let value = match &node {
                // A text has the time zone as well, which the value does not know.
                None if is_zoned && kind.kind == Type::Text && !old.is_null() => {
                    assign(Datum::Text(zoned_text(old)).borrow(), &kind)?.into_datum()
                }
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
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        let new = catalog.table_by_id(table.id()).map_or_else(|| Arc::clone(table), Arc::clone);
        if !new.def().checks.is_empty() {
            self.check_rows(&new)?;
        }
        for (child, key) in keys {
            if let Some(child) = catalog.table_by_id(child) {
                self.check_references(child, key)?;
            }
        }
        Ok(new)
    }

    /// Returns the foreign keys that have a column at either end, as pairs of table number and
    /// position.
    fn keys_with(&mut self, table: &Table, at: usize) -> Result<BTreeSet<(u32, usize)>> {
        let catalog = self.transaction()?.view().catalog();
        let own = table.def().foreign_keys.iter().enumerate();
        let own = own.filter(|(_, key)| key.columns.contains(&at)).map(|(place, _)| (table.id(), place));
        let others = catalog.references_to(table.id()).filter(|(child, place)| {
            child.def().foreign_keys.get(*place).is_some_and(|key| key.references.contains(&at))
        });
        Ok(own.chain(others.map(|(child, place)| (child.id(), place))).collect())
    }

    /// Checks that the types of foreign keys stay compatible once a table has the definition `def`.
    ///
    /// Errors: 42804.
    fn check_key_types(
        &mut self,
        table: &Table,
        def: &TableDef,
        keys: &BTreeSet<(u32, usize)>,
    ) -> Result<()> {
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        let of = |id: u32| match id == table.id() {
            true => Some(def),
            false => catalog.table_by_id(id).map(|table| table.def()),
        };
        for &(child, place) in keys {
            let Some((child, key)) =
                of(child).and_then(|child| Some((child, child.foreign_keys.get(place)?)))
            else {
                continue;
            };
            let Some(parent) = of(key.table) else { continue };
            for (&own, &other) in key.columns.iter().zip(&key.references) {
                if let (Some(own), Some(other)) = (child.columns.get(own), parent.columns.get(other)) {
                    check_may_refer(&key.name, own, other)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the scale of a column's values.
fn scale(column: &ColumnDef) -> u8 {
    column.kind.decimal.map_or(0, |(_, scale)| scale)
}
