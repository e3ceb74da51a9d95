//! Windows that extend others: `WINDOW w AS (v ORDER BY x)` has the partitions of `v`, which
//! DataFusion drops.

use std::ops::ControlFlow;

use sqlparser::ast::{
    self, Expr, Ident, NamedWindowDefinition, NamedWindowExpr, VisitorMut, WindowSpec, WindowType,
};

use crate::error::{Error, Result};
use crate::sqlstate::{STATEMENT_TOO_COMPLEX, UNDEFINED_OBJECT, WINDOWING_ERROR};
use crate::syntax::ident;
use crate::syntax::walk;

/// BOUND: windows of one SELECT. Each is looked up among those before it.
const MOST_WINDOWS: usize = 1_000;

/// Expands the windows of a SELECT and of its ORDER BY.
///
/// Errors: 42704 for undefined windows, 42P20 for windows that cannot be extended, 54001 for too
/// many windows.
pub(super) fn spell_out(select: &mut ast::Select, order: Option<&mut ast::OrderBy>) -> Result<()> {
    if select.named_window.len() > MOST_WINDOWS {
        let what = format!("a query can have at most {MOST_WINDOWS} windows in its WINDOW clause");
        return Err(Error::new(STATEMENT_TOO_COMPLEX, what));
    }
    let mut named: Vec<(String, WindowSpec)> = Vec::with_capacity(select.named_window.len());
    for NamedWindowDefinition(name, window) in &mut select.named_window {
        let spec = match window {
            NamedWindowExpr::NamedWindow(other) => find(&named, other)?.clone(),
            NamedWindowExpr::WindowSpec(spec) => inherited(spec.clone(), &named)?,
        };
        *window = NamedWindowExpr::WindowSpec(spec.clone());
        named.push((ident(name), spec));
    }
    let mut windows = Windows { named: &named, depth: 0, failed: None };
    let _ = walk::visit_mut(select, &mut windows);
    if let Some(order) = order {
        let _ = walk::visit_mut(order, &mut windows);
    }
    windows.failed.map_or(Ok(()), Err)
}

fn find<'w>(named: &'w [(String, WindowSpec)], name: &Ident) -> Result<&'w WindowSpec> {
    let name = ident(name);
    let found = named.iter().find(|(known, _)| *known == name).map(|(_, spec)| spec);
    found.ok_or_else(|| Error::new(UNDEFINED_OBJECT, format!("window \"{name}\" does not exist")))
}

/// Returns a window with the clauses that it inherits.
fn inherited(mut spec: WindowSpec, named: &[(String, WindowSpec)]) -> Result<WindowSpec> {
    let Some(name) = spec.window_name.take() else { return Ok(spec) };
    let base = find(named, &name)?;
    let wrong = |what: &str| {
        Err(Error::new(WINDOWING_ERROR, format!("cannot {what} of window \"{}\"", ident(&name))))
    };
    if !spec.partition_by.is_empty() {
        return wrong("override PARTITION BY clause");
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return wrong("override ORDER BY clause");
    }
    if base.window_frame.is_some() {
        let what = format!("cannot copy window \"{}\" because it has a frame clause", ident(&name));
        return Err(Error::new(WINDOWING_ERROR, what));
    }
    spec.partition_by.clone_from(&base.partition_by);
    if spec.order_by.is_empty() {
        spec.order_by.clone_from(&base.order_by);
    }
    Ok(spec)
}

/// Visits the functions of one SELECT, without those of nested queries.
struct Windows<'w> {
    named: &'w [(String, WindowSpec)],
    depth: usize,
    failed: Option<Error>,
}

impl VisitorMut for Windows<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        if let Expr::Function(function) = expr
            && let Some(over) = &mut function.over
        {
            let spec = match over {
                WindowType::NamedWindow(name) => find(self.named, name).cloned(),
                WindowType::WindowSpec(spec) => inherited(spec.clone(), self.named),
            };
            match spec {
                Ok(spec) => *over = WindowType::WindowSpec(spec),
                Err(error) => self.failed = Some(error),
            }
        }
        ControlFlow::Continue(())
    }
}
