//! Marks the recursive terms of WITH RECURSIVE, so that their types are seen before they are cast
//! to those of the non-recursive term (`general/plan/recursion`).

use std::ops::ControlFlow;

use sqlparser::ast::{
    self, DataType, Expr, SelectItem, SetExpr, SetOperator, Statement as Tree, Value, VisitorMut,
};

use super::withs::count;
use crate::general::markers::BRANCH;
use crate::syntax::build::{call, take, with_type};
use crate::syntax::walk;
use crate::syntax::{Plain, ident, one};

/// Marks the result columns of the recursive terms of a WITH.
pub(super) fn mark(query: &mut ast::Query) {
    let Some(with) = query.with.as_mut().filter(|with| with.recursive) else { return };
    for cte in &mut with.cte_tables {
        let name = ident(&cte.alias.name);
        if count(&*cte.query, &name) == 0 {
            continue;
        }
        let SetExpr::SetOperation { op: SetOperator::Union, left, right, .. } = &mut *cte.query.body else {
            continue;
        };
        if let SetExpr::Select(select) = &mut **left {
            // PostgreSQL types an untyped NULL as text.
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
                    && matches!(expr, Expr::Value(value) if value.value == Value::Null)
                {
                    *expr = with_type(take(expr), DataType::Text);
                }
            }
        }
        let SetExpr::Select(select) = &mut **right else { continue };
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                *expr = call(BRANCH, vec![take(expr)]);
            }
        }
    }
}

/// Casts columns of the non-recursive term of a recursive query. `names`: the names of its columns.
pub(in crate::general) fn retype(tree: &mut Tree, query: &str, names: &[String], types: &[Option<String>]) {
    struct Retype<'a>(&'a str, &'a [String], &'a [Option<String>]);
    impl VisitorMut for Retype<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
            let Some(with) = query.with.as_mut().filter(|with| with.recursive) else {
                return ControlFlow::Continue(());
            };
            for cte in &mut with.cte_tables {
                if ident(&cte.alias.name) != self.0 {
                    continue;
                }
                if let SetExpr::SetOperation { op: SetOperator::Union, left, .. } = &mut *cte.query.body
                    && let Some(around) = around(left, self.1, self.2)
                {
                    **left = around;
                }
            }
            ControlFlow::Continue(())
        }
    }
    let _ = walk::visit_mut(tree, &mut Retype(query, names, types));
}

/// Returns `SELECT CAST(a AS type) AS name, ... FROM (left) AS t (a, ...)`.
fn around(left: &SetExpr, names: &[String], types: &[Option<String>]) -> Option<SetExpr> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let inner: Vec<String> = (0..names.len()).map(|at| format!("\"cairn column {at}\"")).collect();
    let items = inner.iter().zip(names).zip(types).map(|((inner, name), kind)| {
        let value = match kind {
            Some(kind) => format!("CAST({inner} AS {kind})"),
            None => inner.clone(),
        };
        format!("{value} AS {}", quoted(name))
    });
    let items: Vec<String> = items.collect();
    let sql = format!("SELECT {} FROM (SELECT 1) AS \"cairn term\" ({})", items.join(", "), inner.join(", "));
    let parsed = one(&sql).ok()?;
    let Plain::Tree(Tree::Query(parsed)) = &*parsed.statement else { return None };
    let SetExpr::Select(mut select) = (*parsed.body).clone() else { return None };
    let ast::TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else {
        return None;
    };
    *subquery.body = left.clone();
    Some(SetExpr::Select(select))
}
