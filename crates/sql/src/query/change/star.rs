//! `*` in the subqueries of a change: the key of the rows that are changed is a column of their
//! table for the query that finds them, and none that `*` stands for.

use std::ops::ControlFlow;

use cairn_table::{Catalog, Table};
use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Ident, ObjectName, Select, SelectItem, TableFactor, VisitMut, VisitorMut,
};

use crate::direct::table_of;
use crate::query::provider::ROW_KEY;
use crate::syntax::qualified;
use crate::syntax::walk;

/// Leaves the key of a table's rows out of what `*` stands for.
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
        // Of two keys with one name neither can be left out.
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
