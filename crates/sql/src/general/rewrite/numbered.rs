//! `f(...) WITH ORDINALITY`: the rows of a function, with a row number as the last column.
//! DataFusion ignores the clause.

use sqlparser::ast::{self, Expr, Ident, SelectItem, TableAliasColumnDef, TableFactor};

use crate::syntax::build::take_factor;
use crate::syntax::{ident, last_name};

/// The default name of the row number.
const ORDINALITY: &str = "ordinality";

/// Replaces a function WITH ORDINALITY by a query: `(SELECT f.c, row_number() OVER () FROM f(...)
/// AS f(c))`.
pub(super) fn spell_out(factor: &mut TableFactor) {
    let TableFactor::Table { name, alias, with_ordinality, .. } = factor else { return };
    *with_ordinality = false;
    let own = alias.take();
    let called = own.as_ref().map_or_else(|| last_name(name), |alias| ident(&alias.name));
    let quoted = |name: &str| Ident::with_quote('"', name);
    let names: Vec<String> =
        own.iter().flat_map(|alias| &alias.columns).map(|column| ident(&column.name)).collect();
    let value = names.first().cloned().unwrap_or_else(|| called.clone());
    let number = names.get(1).cloned().unwrap_or_else(|| ORDINALITY.to_owned());
    let column = |name: &str| TableAliasColumnDef { name: quoted(name), data_type: None };
    let within = |columns| ast::TableAlias { explicit: true, name: quoted(&called), columns, at: None };
    *alias = Some(within(vec![column(&value)]));
    number_rows(factor, &called, &value, &number);
}

/// Replaces a table by a query that numbers its rows.
fn number_rows(factor: &mut TableFactor, called: &str, value: &str, number: &str) {
    let quoted = |name: &str| Ident::with_quote('"', name);
    let Some(mut query) = numbering() else { return };
    if let ast::SetExpr::Select(select) = &mut *query.body {
        let of = Expr::CompoundIdentifier(vec![quoted(called), quoted(value)]);
        if let Some(first) = select.projection.first_mut() {
            *first = SelectItem::ExprWithAlias { expr: of, alias: quoted(value) };
        }
        if let Some(SelectItem::ExprWithAlias { alias, .. }) = select.projection.get_mut(1) {
            *alias = quoted(number);
        }
        if let Some(from) = select.from.first_mut() {
            from.relation = take_factor(factor);
        }
    }
    *factor = TableFactor::Derived {
        lateral: false,
        subquery: query,
        alias: Some(ast::TableAlias { explicit: true, name: quoted(called), columns: Vec::new(), at: None }),
        sample: None,
    };
}

/// Like [`spell_out`], for `UNNEST(array) WITH ORDINALITY`.
pub(super) fn unnested(factor: &mut TableFactor) {
    let TableFactor::UNNEST { alias, with_ordinality, .. } = factor else { return };
    *with_ordinality = false;
    let own = alias.take();
    let called = own.as_ref().map_or_else(|| "unnest".to_owned(), |alias| ident(&alias.name));
    let names: Vec<String> =
        own.iter().flat_map(|alias| &alias.columns).map(|column| ident(&column.name)).collect();
    let value = names.first().cloned().unwrap_or_else(|| called.clone());
    let number = names.get(1).cloned().unwrap_or_else(|| ORDINALITY.to_owned());
    let quoted = |name: &str| Ident::with_quote('"', name);
    *alias = Some(ast::TableAlias {
        explicit: true,
        name: quoted(&called),
        columns: vec![TableAliasColumnDef { name: quoted(&value), data_type: None }],
        at: None,
    });
    number_rows(factor, &called, &value, &number);
}

/// Returns the template of the query.
fn numbering() -> Option<Box<ast::Query>> {
    let parsed = crate::syntax::one("SELECT x AS x, row_number() OVER () AS n FROM t").ok()?;
    match &*parsed.statement {
        crate::syntax::Plain::Tree(ast::Statement::Query(query)) => Some(query.clone()),
        _ => None,
    }
}
