//! Detects statements that use the system catalogs.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, ObjectName, Statement, Visitor};

use super::functions;
use super::relations::find;
use super::rewrite::{parts, type_name};
use crate::syntax::walk;

/// Functions of the catalogs that depend on nothing but their arguments. A statement that uses no
/// others has the same plan at any time.
const TIMELESS: &[&str] = &[
    "array_lower",
    "array_to_string",
    "array_upper",
    "json_build_object",
    "pg_size_pretty",
    "quote_ident",
    "quote_literal",
    "quote_nullable",
    "version",
];

/// Searches for names that belong to the catalogs.
struct Finder {
    /// Only those whose result may differ each time.
    of_moment: bool,
}

impl Visitor for Finder {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let is_system = match parts(relation).as_slice() {
            [name] => find("pg_catalog", name).is_some(),
            [schema, _] | [_, schema, _] => matches!(schema.as_str(), "pg_catalog" | "information_schema"),
            _ => false,
        };
        if is_system { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let is_system = match expr {
            Expr::Function(function) => {
                let parts = parts(&function.name);
                let is_qualified = parts.len() > 1
                    && parts.iter().any(|part| part == "pg_catalog" || part == "information_schema");
                let is_known = |name: &String| functions::all().any(|known| known.name == *name);
                let is_timeless = |name: &String| TIMELESS.contains(&name.as_str());
                (is_qualified || parts.last().is_some_and(is_known))
                    && !(self.of_moment && parts.last().is_some_and(is_timeless))
            }
            Expr::Cast { data_type, .. } if self.of_moment => type_name(data_type).starts_with("reg"),
            Expr::Cast { data_type, .. } => {
                let (plain, name) = (data_type.to_string(), type_name(data_type));
                plain.starts_with("pg_catalog.")
                    || name.starts_with("reg")
                    || matches!(
                        name.as_str(),
                        "oid" | "xid" | "cid" | "name" | "\"char\"" | "aclitem" | "pg_node_tree"
                    )
            }
            _ => false,
        };
        if is_system { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Whether a statement refers to relations of the system catalogs, or to their functions or types.
pub(crate) fn is_about(statement: &Statement) -> bool {
    walk::visit(statement, &mut Finder { of_moment: false }).is_break()
}

/// Whether a statement refers to anything of the system catalogs that may differ each time.
pub(super) fn is_of_moment(statement: &Statement) -> bool {
    walk::visit(statement, &mut Finder { of_moment: true }).is_break()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{Plain, one};

    /// Goal: statements that call catalog functions, but whose result is the same at any time, are
    /// kept in the plan cache; others are not. Method: an example of each kind.
    #[test]
    fn what_is_of_the_moment() {
        for (sql, expected) in [
            ("select last_value from pg_sequences", true),
            ("select 1 from information_schema.tables", true),
            ("select pg_relation_size('t')", true),
            ("select current_setting('work_mem') from t", true),
            ("select 't'::regclass", true),
            ("select array_to_string(array[txid_current()::text], ',')", true),
            ("select json_build_object('a', a) from t", false),
            ("select pg_catalog.quote_ident(a) from t", false),
            ("select a::name, b::oid from t", false),
        ] {
            let parsed = one(sql).unwrap();
            let Plain::Tree(tree) = &*parsed.statement else { panic!("{sql}") };
            assert!(is_about(tree), "{sql}");
            assert_eq!(is_of_moment(tree), expected, "{sql}");
        }
    }
}
