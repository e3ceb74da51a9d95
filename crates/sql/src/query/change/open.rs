//! Which of a query's columns have no type of their own: what is only in quotes, and parameters.
//! They become what they go into, and nothing else does that is a text.

use cairn_table::Table;
use cairn_table::schema::ColumnType;
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr, Value};

/// A column of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Open {
    /// In quotes, or NULL.
    Literal,
    /// A parameter, by its place.
    Parameter(usize),
    /// Something that has a type.
    Typed,
    /// As many columns as a wildcard stands for.
    Columns,
}

impl Open {
    /// Those of a query. In a set operation, behind DISTINCT, and below another query everything
    /// has a type.
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

    /// That of an expression.
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

    /// Puts columns in the place of a wildcard, for a query that gives so many in all. Where there
    /// are several nobody knows how many each stands for.
    pub fn expand(all: &mut Vec<Open>, given: usize) {
        let first = all.iter().position(|item| *item == Open::Columns);
        let last = all.iter().rposition(|item| *item == Open::Columns);
        if let (Some(first), Some(last)) = (first, last) {
            let behind = all.len() - last - 1;
            let there = given.saturating_sub(first + behind);
            all.splice(first..=last, std::iter::repeat_n(Open::Typed, there));
        }
    }

    /// The types of parameters: those that nobody has said, and that go into columns of a table,
    /// are the columns'.
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
                // Texts of any length: what is too long is an error, and a cast would cut it.
                let mut kind = column.kind.clone();
                kind.length = None;
                *place = Some(kind);
            }
        }
        types
    }
}
