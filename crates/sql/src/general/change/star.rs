//! `*` in the subqueries of a change. The query that finds the rows reads the target table with its
//! row key as an extra column, which `*` must not include.

use std::ops::ControlFlow;

use cairn_table::{Catalog, Table};
use sqlparser::ast::{
    ExcludeSelectItem, Ident, ObjectName, Select, SelectItem, TableFactor, VisitMut, VisitorMut,
};

use crate::direct::table_of;
use crate::general::scan::provider::ROW_KEY;
use crate::syntax::qualified;
use crate::syntax::walk;

/// Excludes the row key of a table from the expansion of `*`.
pub(super) fn leave_out_key(part: &mut impl VisitMut, table: &Table, catalog: &Catalog, path: &[String]) {
    let _ = walk::visit_mut(part, &mut Stars { table: table.id(), catalog, path });
}

struct Stars<'a> {
    table: u32,
    catalog: &'a Catalog,
    path: &'a [String],
}

impl VisitorMut for Stars<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let factors = select.from.iter().flat_map(|from| {
            std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
        });
        // If the table occurs twice, the two key columns have the same name and neither can be
        // excluded.
        if factors.filter(|factor| self.is_target(factor)).count() == 1 {
            for item in &mut select.projection {
                if let SelectItem::Wildcard(options) = item {
                    let key = ObjectName::from(vec![Ident::new(ROW_KEY)]);
                    options.opt_exclude.get_or_insert(ExcludeSelectItem::Single(key));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

impl Stars<'_> {
    fn is_target(&self, factor: &TableFactor) -> bool {
        let TableFactor::Table { name, args: None, .. } = factor else { return false };
        let Ok(name) = qualified(name) else { return false };
        table_of(self.catalog, self.path, &name).is_some_and(|table| table.id() == self.table)
    }
}
