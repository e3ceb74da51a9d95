//! Binds the parts of direct statements: tables, column names, and expressions.

use cairn_table::schema::ColumnType;
use cairn_table::{Catalog, PUBLIC, Table};
use cairn_vfs::sync::Arc;
use sqlparser::ast::{
    Expr, Ident, ObjectName, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor,
    TableWithJoins,
};

use crate::column::Column;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::expr::{Compiler, Failure, Node, Scope};
use crate::runtime::sequence::HIDDEN;
use crate::sqlstate::UNDEFINED_TABLE;
use crate::syntax::{TableName, ident, qualified};

/// The context in which a statement is bound: the catalog, and the known types of its parameters.
#[derive(Debug)]
pub(crate) struct Binder<'a> {
    pub catalog: &'a Catalog,
    pub search_path: &'a [String],
    pub params: Vec<Option<ColumnType>>,
}

/// Returns the table of this name, in the first namespace that has it.
pub(crate) fn table_of<'c>(
    catalog: &'c Catalog,
    search_path: &[String],
    name: &TableName,
) -> Option<&'c Arc<Table>> {
    match &name.schema {
        Some(schema) => catalog.table(schema, &name.name),
        None if search_path.is_empty() => catalog.table(PUBLIC, &name.name),
        None => search_path.iter().find_map(|schema| catalog.table(schema, &name.name)),
    }
}

impl Binder<'_> {
    /// Returns the table of this name, but not a view or a system catalog.
    ///
    /// Errors: [`Failure::Unknown`] if there is no such table, because the general path may know
    /// the name.
    pub fn table(&self, name: &ObjectName) -> Result<Arc<Table>, Failure> {
        let name = qualified(name)?;
        if name.schema.is_none() && name.name.starts_with("pg_") {
            return Err(Failure::Unknown);
        }
        self.seen(&name).cloned().ok_or(Failure::Unknown)
    }

    /// Returns a table that statements may name.
    fn seen(&self, name: &TableName) -> Option<&Arc<Table>> {
        table_of(self.catalog, self.search_path, name).filter(|table| table.def().schema != HIDDEN)
    }

    /// Like [`Binder::table`], for tables that are to be changed. A missing table is an error.
    pub fn target(&self, name: &ObjectName) -> Result<Arc<Table>> {
        let name = qualified(name)?;
        self.seen(&name)
            .cloned()
            .ok_or_else(|| Error::new(UNDEFINED_TABLE, format!("relation \"{name}\" does not exist")))
    }

    /// Returns the only table of FROM, and its alias.
    pub fn only_table(&self, from: &[TableWithJoins]) -> Result<(Arc<Table>, Option<String>), Failure> {
        let [TableWithJoins { relation, joins }] = from else { return Err(Failure::Unknown) };
        let TableFactor::Table {
            name,
            alias,
            args: None,
            version: None,
            with_ordinality: false,
            sample: None,
            json_path: None,
            ..
        } = relation
        else {
            return Err(Failure::Unknown);
        };
        if !joins.is_empty() || alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
            return Err(Failure::Unknown);
        }
        Ok((self.table(name)?, alias.as_ref().map(|alias| ident(&alias.name))))
    }

    pub fn compiler<'s>(&'s mut self, scope: &'s Scope) -> Compiler<'s> {
        Compiler::new(scope, &mut self.params)
    }

    /// Compiles a select list. Returns its expressions and result columns.
    pub fn outputs(
        &mut self,
        items: &[SelectItem],
        scope: &Scope,
        table: Option<&Table>,
    ) -> Result<(Vec<Node>, Vec<Column>), Failure> {
        let (mut nodes, mut columns) = (Vec::new(), Vec::new());
        for item in items {
            let (expr, name) = match item {
                SelectItem::UnnamedExpr(expr) => (expr, None),
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(ident(alias))),
                SelectItem::Wildcard(options) if is_plain(options) => {
                    all(scope, None, table, &mut nodes, &mut columns);
                    continue;
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                    if is_plain(options) =>
                {
                    let before = nodes.len();
                    all(scope, Some(&qualified(name)?.name), table, &mut nodes, &mut columns);
                    if nodes.len() == before {
                        return Err(Failure::Unknown);
                    }
                    continue;
                }
                _ => return Err(Failure::Unknown),
            };
            let (node, kind) = self.compiler(scope).output(expr)?;
            let origin = match (&node, table) {
                (Node::Slot { slot, .. }, Some(table)) => origin(table, *slot),
                _ => None,
            };
            let name = name.unwrap_or_else(|| name_of(expr));
            columns.push(Column { table: origin, ..Column::new(name, kind) });
            nodes.push(node);
        }
        Ok((nodes, columns))
    }
}

fn is_plain(options: &sqlparser::ast::WildcardAdditionalOptions) -> bool {
    options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
        && options.opt_ilike.is_none()
}

fn all(
    scope: &Scope,
    alias: Option<&str>,
    table: Option<&Table>,
    nodes: &mut Vec<Node>,
    columns: &mut Vec<Column>,
) {
    for column in scope.all(alias) {
        let scale = column.kind.decimal.map_or(0, |(_, scale)| scale);
        nodes.push(Node::Slot { slot: column.slot, scale });
        let table = table.and_then(|table| origin(table, column.slot));
        columns.push(Column { table, ..Column::new(&column.name, column.kind.clone()) });
    }
}

pub(super) fn origin(table: &Table, slot: usize) -> Option<(u32, u16)> {
    (slot < table.def().columns.len()).then_some((table.id(), slot as u16))
}

/// Returns PostgreSQL's name for a column without an alias.
pub(crate) fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => ident(name),
        Expr::CompoundIdentifier(names) => names.last().map(ident).unwrap_or_default(),
        Expr::Nested(inner) => name_of(inner),
        Expr::Function(function) => crate::syntax::last_name(&function.name),
        Expr::Cast { expr, data_type, .. } => match name_of(expr) {
            name if name == "?column?" => type_name(data_type),
            name => name,
        },
        Expr::TypedString(typed) => type_name(&typed.data_type),
        Expr::Case { else_result, .. } => match else_result.as_deref().map(name_of) {
            Some(name) if name != "?column?" => name,
            _ => "case".to_owned(),
        },
        Expr::Extract { .. } => "extract".to_owned(),
        Expr::AtTimeZone { .. } => "timezone".to_owned(),
        Expr::Substring { .. } => "substring".to_owned(),
        Expr::Position { .. } => "position".to_owned(),
        Expr::Trim { trim_where, .. } => match trim_where {
            Some(sqlparser::ast::TrimWhereField::Leading) => "ltrim".to_owned(),
            Some(sqlparser::ast::TrimWhereField::Trailing) => "rtrim".to_owned(),
            _ => "btrim".to_owned(),
        },
        Expr::Ceil { .. } => "ceil".to_owned(),
        Expr::Floor { .. } => "floor".to_owned(),
        Expr::Interval(_) => "interval".to_owned(),
        Expr::Exists { .. } => "exists".to_owned(),
        Expr::Subquery(query) => first_name(&query.body),
        Expr::Array(_) => "array".to_owned(),
        Expr::Value(value) if matches!(value.value, sqlparser::ast::Value::Boolean(_)) => "bool".to_owned(),
        Expr::Collate { expr, .. } => name_of(expr),
        _ => "?column?".to_owned(),
    }
}

/// Returns the name of a query's first column.
fn first_name(body: &SetExpr) -> String {
    match body {
        SetExpr::Select(select) => match select.projection.first() {
            Some(SelectItem::UnnamedExpr(expr)) => name_of(expr),
            Some(SelectItem::ExprWithAlias { alias, .. }) => ident(alias),
            _ => "?column?".to_owned(),
        },
        SetExpr::Query(query) => first_name(&query.body),
        SetExpr::SetOperation { left, .. } => first_name(left),
        _ => "?column?".to_owned(),
    }
}

fn type_name(kind: &sqlparser::ast::DataType) -> String {
    use cairn_table::row::Type;
    let Ok(of) = crate::syntax::column_type(kind) else { return kind.to_string().to_lowercase() };
    let name = match of.kind {
        Type::Boolean => "bool",
        Type::SmallInt => "int2",
        Type::Int => "int4",
        Type::BigInt => "int8",
        Type::Real => "float4",
        Type::Double => "float8",
        Type::Decimal => "numeric",
        Type::Text if of.is_json => "json",
        Type::Text if of.length.is_some() => "varchar",
        Type::Text => "text",
        Type::Blob => "bytea",
        Type::Date => "date",
        Type::Time => "time",
        Type::Timestamp => "timestamp",
        Type::Interval => "interval",
        Type::Uuid => "uuid",
        _ => "?column?",
    };
    name.to_owned()
}

/// Resolves a name in a column list of a statement.
pub(super) fn column_of(table: &Table, name: &Ident) -> Result<usize> {
    let name = ident(name);
    table.def().column(&name).ok_or_else(|| {
        let what = format!("column \"{name}\" of relation \"{}\" does not exist", table.def().name);
        Error::new(crate::sqlstate::UNDEFINED_COLUMN, what)
    })
}

/// Evaluates the row count of LIMIT or OFFSET; `None` for NULL, which means no limit.
pub(crate) fn row_count(node: &Node, env: &crate::expr::Env<'_>, what: &str) -> Result<Option<u64>> {
    let value = node.eval(env)?;
    let count = match value.into_datum() {
        Datum::Null => return Ok(None),
        Datum::BigInt(count) => u64::try_from(count).ok(),
        _ => None,
    };
    let negative = || {
        Error::new(
            if what == "OFFSET" { "2201X" } else { crate::sqlstate::INVALID_ROW_COUNT_IN_LIMIT },
            format!("{what} must not be negative"),
        )
    };
    count.map(Some).ok_or_else(negative)
}
