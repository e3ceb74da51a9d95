//! Which statements ask for the system catalogs.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Statement, Visit, Visitor};

use super::functions;
use super::relations::find;
use super::rewrite::{parts, type_name};

struct Finder;

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
                is_qualified || parts.last().is_some_and(|name| functions::names().any(|known| known == name))
            }
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

/// Whether a statement names relations of the system catalogs, or functions and types that only these have.
pub(crate) fn is_about(statement: &Statement) -> bool {
    statement.visit(&mut Finder).is_break()
}
