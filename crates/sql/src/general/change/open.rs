//! Which columns of a query have no type of their own: untyped literals and parameters. Only these
//! take the type of their target column; other texts do not.

use cairn_table::Table;
use cairn_table::schema::ColumnType;
use sqlparser::ast::{Expr, SelectItem, SetExpr, Value};

/// How a column of a query is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Open {
    /// An untyped literal or NULL.
    Literal,
    /// A parameter, by its number.
    Parameter(usize),
    /// An expression with a type.
    Typed,
    /// The columns of a wildcard.
    Columns,
}

impl Open {
    /// Classifies the columns of a query. Under a set operation, DISTINCT or a subquery every
    /// column is typed.
    pub fn of(body: &SetExpr) -> Vec<Open> {
        match body {
            SetExpr::Query(query) => Open::of(&query.body),
            SetExpr::Select(select) if select.distinct.is_none() => {
                let item = |item: &SelectItem| match item {
                    SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                        Open::of_value(expr)
                    }
                    SelectItem::QualifiedWildcard(..) | SelectItem::Wildcard(_) => Open::Columns,
                    SelectItem::ExprWithAliases { .. } => Open::Typed,
                };
                select.projection.iter().map(item).collect()
            }
            SetExpr::Values(values) => {
                let width = values.rows.iter().map(|row| row.len()).max().unwrap_or_default();
                let column = |at: usize| {
                    let mut cells = values.rows.iter().filter_map(|row| row.get(at)).map(Open::of_value);
                    let first = cells.next().unwrap_or(Open::Typed);
                    let both = |one, other| match (one, other) {
                        (Open::Typed, _) | (_, Open::Typed) => Open::Typed,
                        (one, Open::Literal) => one,
                        (_, other) => other,
                    };
                    cells.fold(first, both)
                };
                (0..width).map(column).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Classifies one expression.
    pub fn of_value(expr: &Expr) -> Open {
        match expr {
            Expr::Nested(inner) => Open::of_value(inner),
            Expr::Value(value) => match &value.value {
                Value::Null | Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) => Open::Literal,
                Value::Placeholder(name) => crate::expr::parameter(name).map_or(Open::Typed, Open::Parameter),
                _ => Open::Typed,
            },
            _ => Open::Typed,
        }
    }

    /// Replaces a wildcard by typed columns, for a query with `given` columns in all. Several
    /// wildcards are replaced together with everything between them, because the width of each is
    /// unknown.
    pub fn expand(all: &mut Vec<Open>, given: usize) {
        let first = all.iter().position(|item| *item == Open::Columns);
        let last = all.iter().rposition(|item| *item == Open::Columns);
        if let (Some(first), Some(last)) = (first, last) {
            let behind = all.len() - last - 1;
            let there = given.saturating_sub(first + behind);
            all.splice(first..=last, std::iter::repeat_n(Open::Typed, there));
        }
    }

    /// Returns the parameter types. A parameter without a declared type takes that of its target
    /// column.
    pub fn parameters(
        open: &[Open],
        table: &Table,
        columns: &[usize],
        types: &[Option<ColumnType>],
    ) -> Vec<Option<ColumnType>> {
        let mut types = types.to_vec();
        for (item, &column) in open.iter().zip(columns) {
            let (Open::Parameter(at), Some(column)) = (item, table.def().columns.get(column)) else {
                continue;
            };
            if types.len() <= *at {
                types.resize(at + 1, None);
            }
            if let Some(place @ None) = types.get_mut(*at) {
                // Without the length limit: a cast to it would truncate, but a text that is too
                // long must be an error.
                let mut kind = column.kind.clone();
                kind.length = None;
                *place = Some(kind);
            }
        }
        types
    }
}
