//! Rewrites the queries of PostgreSQL's clients to forms that DataFusion can plan.
//!
//! | PostgreSQL                                 | here                                           |
//! |--------------------------------------------|------------------------------------------------|
//! | `pg_class`                                 | `pg_catalog.pg_class`                          |
//! | `pg_catalog.f(x)`                          | `f(x)`                                         |
//! | `x::regclass`, `x::regclass::oid`          | its name in a result, its OID elsewhere        |
//! | `x::pg_catalog.text`, `::name`, `::"char"` | `x::varchar`                                   |
//! | `indkey[n]`, counted from 0                | `array_element(indkey, n + 1)`                 |
//! | `(_pg_expandarray(a)).n`, `.x`             | `unnest(cairn_positions(a))`, `unnest(a)`      |
//! | `generate_subscripts(a, 1)`                | `unnest(cairn_positions(a))`                   |
//! | `ARRAY(SELECT x ...)`                      | `(SELECT array_agg(x) ...)`                    |
//! | `(SELECT x ...)` of one row                | `(SELECT max(x) ...)`, which may be correlated |
//! | `(SELECT x FROM pg_sequence WHERE ...)`    | functions that look the sequence up, in `x`    |
//! | `json_build_object(...)` in a result       | `cairn_json(json_build_object(...))`           |
//!
//! Subqueries are rewritten only if they use nothing but system relations, because only for these
//! the number of rows is known.

use std::ops::ControlFlow;

use sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, OrderByKind, Query, Select, SelectItem, SetExpr,
    Statement, Subscript, TableFactor, TableWithJoins, Value, VisitorMut,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use super::about::is_of_moment;
use super::functions::JSON;
use super::relations::find;
use super::{World, subquery};
use crate::syntax::build::{call, null, number, string, take, text};
use crate::syntax::walk;
use crate::syntax::{COLUMN_WORDS, RESERVED_WORDS, TYPE_WORDS, ident};

/// Names of columns whose arrays are counted from 0 in PostgreSQL.
const FROM_ZERO: &[&str] = &["indkey", "indoption", "indclass", "indcollation", "i_indoption"];

/// Rewrites a statement.
struct Rewriter<'a> {
    world: &'a World,
}

/// Returns the parts of a name, in lower case and without quotes.
pub(super) fn parts(name: &ObjectName) -> Vec<String> {
    name.0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(part) => ident(part),
            ObjectNamePart::Function(function) => ident(&function.name),
        })
        .collect()
}

fn args_mut(function: &mut Function) -> Vec<&mut Expr> {
    let FunctionArguments::List(list) = &mut function.args else { return Vec::new() };
    list.args
        .iter_mut()
        .filter_map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect()
}

/// Returns the expression inside parentheses.
fn inner(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(expr) => inner(expr),
        other => other,
    }
}

/// Returns the name of the column that an expression is; `None` for other expressions.
fn column(expr: &Expr) -> Option<String> {
    match inner(expr) {
        Expr::Identifier(name) => Some(ident(name)),
        Expr::CompoundIdentifier(names) => names.last().map(ident),
        _ => None,
    }
}

/// Returns a type's name without its catalog.
pub(super) fn type_name(kind: &DataType) -> String {
    let name = kind.to_string().to_ascii_lowercase();
    name.strip_prefix("pg_catalog.").unwrap_or(&name).to_owned()
}

/// Returns the prefix of our functions for `regclass` and the like.
fn reg(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "regclass" => "cairn_regclass",
        "regtype" => "cairn_regtype",
        "regnamespace" => "cairn_regnamespace",
        "regrole" => "cairn_regrole",
        _ => return None,
    })
}

impl VisitorMut for Rewriter<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if select.from.iter().any(|from| self.is_system_table(&from.relation)) {
            subquery::inline_laterals(select);
        }
        for item in &mut select.projection {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
                continue;
            };
            if let Expr::Cast { expr: of, data_type, .. } = expr
                && let Some(function) = reg(&type_name(data_type))
            {
                *expr = call(&format!("{function}_name"), vec![take(of)]);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        if parts(relation).len() == 1 && self.is_system(relation) {
            relation.0.insert(0, ObjectNamePart::Identifier(Ident::new("pg_catalog")));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, args: Some(_), .. } = factor
            && parts(name).last().is_some_and(|name| name == "pg_get_keywords")
            && let Some(subquery) = keywords()
        {
            *factor = TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None };
        }
        if let TableFactor::Table { name, args: Some(args), .. } = factor {
            if let Some(last) = name.0.pop() {
                name.0 = vec![last];
            }
            for arg in &mut args.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
                    self.known_upper(expr);
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Subquery(query) if self.is_of_system(query) => {
                if let Some(better) = subquery::scalar(query) {
                    *expr = better;
                }
            }
            // ARRAY(SELECT ...)
            Expr::Function(function) if parts(&function.name).last().is_some_and(|name| name == "array") => {
                if let FunctionArguments::Subquery(query) = &mut function.args
                    && self.is_of_system(query)
                {
                    *expr = subquery::array(query);
                }
            }
            Expr::Cast { expr: of, data_type, .. } => {
                if let Some(better) = chain(of, &type_name(data_type)) {
                    *expr = better;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(_) => function(expr),
            Expr::Cast { .. } => cast(expr),
            // A comparison of an array with its text form.
            Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right }
                if string(right).is_some_and(|text| text.starts_with('{')) =>
            {
                **left = call("cairn_array_text", vec![take(left)]);
            }
            Expr::CompoundFieldAccess { .. } => access(expr),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Rewriter<'_> {
    /// Whether this is a system relation.
    fn is_system(&self, relation: &ObjectName) -> bool {
        let World { catalog, facts } = self.world;
        match parts(relation).as_slice() {
            [name] => {
                let theirs = |schema: &String| {
                    catalog.table(schema, name).is_some() || catalog.view(schema, name).is_some()
                };
                find("pg_catalog", name).is_some() && !facts.search_path.iter().any(theirs)
            }
            [schema, _] | [_, schema, _] => matches!(schema.as_str(), "pg_catalog" | "information_schema"),
            _ => false,
        }
    }

    fn is_system_table(&self, factor: &TableFactor) -> bool {
        match factor {
            TableFactor::Table { name, args: None, .. } => self.is_system(name),
            TableFactor::Derived { subquery, .. } => self.is_of_system(subquery),
            // Functions and lists.
            _ => true,
        }
    }

    /// Whether a query uses nothing but system relations.
    fn is_of_system(&self, query: &Query) -> bool {
        let SetExpr::Select(select) = &*query.body else { return false };
        let joined =
            |from: &TableWithJoins| from.joins.iter().all(|join| self.is_system_table(&join.relation));
        query.with.is_none()
            && select.from.iter().all(|from| self.is_system_table(&from.relation) && joined(from))
    }

    /// Evaluates `array_upper(current_schemas(..), 1)`, which table functions cannot compute.
    fn known_upper(&self, expr: &mut Expr) {
        let text = expr.to_string().to_ascii_lowercase();
        if text.contains("current_schemas(") {
            let World { catalog, facts } = self.world;
            let count = facts.search_path.iter().filter(|schema| catalog.has_schema(schema)).count();
            *expr = number(count as i64 + i64::from(text.contains("true")));
        } else if text.contains("array_upper(") {
            *expr = number(0);
        }
    }
}

/// Rewrites two nested casts, the inner one to a `reg` type.
fn chain(of: &mut Expr, outer: &str) -> Option<Expr> {
    let Expr::Cast { expr: of, data_type, .. } = of else { return None };
    let function = reg(&type_name(data_type))?;
    let what =
        if matches!(outer, "text" | "varchar" | "name" | "character varying") { "name" } else { "oid" };
    Some(call(&format!("{function}_{what}"), vec![take(of)]))
}

fn cast(expr: &mut Expr) {
    let Expr::Cast { expr: of, data_type, kind, .. } = expr else { return };
    let name = type_name(data_type);
    if let Some(function) = reg(&name) {
        *expr = call(&format!("{function}_oid"), vec![take(of)]);
        return;
    }
    // The name after the last dot, as the catalog of functions has it.
    if matches!(
        name.as_str(),
        "regproc" | "regprocedure" | "regoper" | "regoperator" | "regcollation" | "regconfig"
    ) {
        let last = string(of).and_then(|text| text.rsplit('.').next()).map(str::to_owned);
        *expr = match last {
            Some(last) => Expr::Value(Value::SingleQuotedString(last).into()),
            None => take(of),
        };
        return;
    }
    if name.ends_with("[]") {
        let items = string(of).and_then(|text| text.strip_prefix('{')?.strip_suffix('}')).map(|items| {
            let items = items.split(',').filter(|item| !item.is_empty());
            items
                .map(|item| Expr::Value(Value::SingleQuotedString(item.trim_matches('"').to_owned()).into()))
                .collect()
        });
        *expr = match items {
            Some(elem) => Expr::Array(Array { elem, named: true }),
            None => take(of),
        };
        return;
    }
    *kind = CastKind::Cast;
    *data_type = match name.as_str() {
        "text"
        | "name"
        | "\"char\""
        | "bpchar"
        | "cstring"
        | "citext"
        | "unknown"
        | "information_schema.sql_identifier" => DataType::Varchar(None),
        "oid" | "xid" | "cid" | "int8" => DataType::BigInt(None),
        "int4" => DataType::Integer(None),
        "int2" => DataType::SmallInt(None),
        "bool" => DataType::Boolean,
        "float4" => DataType::Real,
        "float8" => DataType::DoublePrecision,
        _ => return,
    };
}

/// `pg_get_keywords()`: the words that must be quoted.
fn keywords() -> Option<Box<Query>> {
    let kinds: [(&'static [&'static str], &'static str, &'static str); 3] = [
        (&RESERVED_WORDS, "R", "reserved"),
        (&TYPE_WORDS, "T", "reserved (can be function or type name)"),
        (&COLUMN_WORDS, "C", "unreserved (cannot be function or type name)"),
    ];
    let of = |(words, code, about): (&'static [&'static str], &'static str, &'static str)| {
        words.iter().map(move |word| format!("('{word}', '{code}', '{about}')"))
    };
    let words: Vec<String> = kinds.into_iter().flat_map(of).collect();
    let sql = format!(
        "SELECT column1 AS word, column2 AS catcode, true AS barelabel, column3 AS catdesc, '' AS baredesc FROM (VALUES {}) AS words",
        words.join(", ")
    );
    match Parser::parse_sql(&PostgreSqlDialect {}, &sql).ok()?.pop()? {
        Statement::Query(query) => Some(query),
        _ => None,
    }
}

fn function(expr: &mut Expr) {
    let Expr::Function(called) = expr else { return };
    let names = parts(&called.name);
    let Some(name) = names.last() else { return };
    if matches!(names.first().map(String::as_str), Some("pg_catalog" | "information_schema")) {
        called.name = ObjectName::from(vec![Ident::new(name.clone())]);
    }
    let mut args = args_mut(called);
    match (name.as_str(), args.as_mut_slice()) {
        ("_pg_expandarray", [array]) => *expr = call("unnest", vec![take(array)]),
        ("generate_subscripts", [array, ..]) => {
            let positions = if column(array).is_some_and(|name| FROM_ZERO.contains(&name.as_str())) {
                "cairn_positions0"
            } else {
                "cairn_positions"
            };
            *expr = call("unnest", vec![call(positions, vec![take(array)])]);
        }
        // There is no table partitioning.
        ("pg_partition_ancestors", _) => *expr = null(),
        _ => {}
    }
}

/// Rewrites `a[n]`, and `(a).x` on the result of `_pg_expandarray`.
fn access(expr: &mut Expr) {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return };
    // In `t.a[n]`, the column is `t.a`.
    while let (
        Some(AccessExpr::Dot(Expr::Identifier(field))),
        Expr::Identifier(_) | Expr::CompoundIdentifier(_),
        true,
    ) = (access_chain.first(), &**root, access_chain.len() > 1)
    {
        let mut names = match &**root {
            Expr::Identifier(name) => vec![name.clone()],
            Expr::CompoundIdentifier(names) => names.clone(),
            _ => Vec::new(),
        };
        names.push(field.clone());
        **root = Expr::CompoundIdentifier(names);
        access_chain.remove(0);
    }
    match access_chain.as_mut_slice() {
        [AccessExpr::Subscript(Subscript::Index { index })] => {
            let index = match column(root).is_some_and(|name| FROM_ZERO.contains(&name.as_str())) {
                true => Expr::BinaryOp {
                    left: Box::new(Expr::Nested(Box::new(take(index)))),
                    op: BinaryOperator::Plus,
                    right: Box::new(number(1)),
                },
                false => take(index),
            };
            *expr = call("array_element", vec![take(root), index]);
        }
        [AccessExpr::Dot(Expr::Identifier(field))] => {
            let field = ident(field);
            let root = inner(root).clone();
            match (field.as_str(), root) {
                ("n", Expr::Function(mut function)) => {
                    let array = args_mut(&mut function).into_iter().next().map(take).unwrap_or_else(null);
                    *expr = call("unnest", vec![call("cairn_positions", vec![array])]);
                }
                ("x", root) => *expr = root,
                _ => {}
            }
        }
        _ => {}
    }
}

/// Returns the select of a query that is a single select.
pub(super) fn select_mut(query: &mut Query) -> Option<&mut Select> {
    match &mut *query.body {
        SetExpr::Select(select) => Some(select),
        _ => None,
    }
}

/// Returns the first expression of a query's ORDER BY.
pub(super) fn orders_by(query: &Query) -> Option<Expr> {
    match query.order_by.as_ref().map(|order| &order.kind) {
        Some(OrderByKind::Expressions(by)) => by.first().map(|by| by.expr.clone()),
        _ => None,
    }
}

/// Columns that PostgreSQL counts from 0 are printed as numbers separated by blanks, not as arrays.
fn vector(item: &mut SelectItem) {
    let (expr, alias) = match item {
        SelectItem::UnnamedExpr(expr) => (expr, None),
        SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.clone())),
        _ => return,
    };
    let Some(name) = column(expr).filter(|name| FROM_ZERO.contains(&name.as_str())) else { return };
    let alias = alias.unwrap_or_else(|| Ident::with_quote('"', name));
    let expr = call("array_to_string", vec![take(expr), text(" ")]);
    *item = SelectItem::ExprWithAlias { expr, alias };
}

/// Whether an expression returns JSON: a call of `json_build_object`, also in a subquery or under a
/// condition.
fn is_json(expr: &Expr) -> bool {
    match inner(expr) {
        Expr::Function(function) => {
            parts(&function.name).last().is_some_and(|name| name == "json_build_object")
        }
        Expr::Subquery(query) => match &*query.body {
            SetExpr::Select(select) => match select.projection.as_slice() {
                [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] => is_json(expr),
                _ => false,
            },
            _ => false,
        },
        Expr::Case { conditions, .. } => conditions.iter().any(|when| is_json(&when.result)),
        _ => false,
    }
}

/// Marks a JSON result as such, because clients parse JSON only if its type says so, and functions
/// return text. A column without an alias keeps the name that it has from its function.
fn json(item: &mut SelectItem) {
    if let SelectItem::ExprWithAlias { expr, .. } = item
        && is_json(expr)
    {
        *expr = call(JSON, vec![take(expr)]);
    }
}

/// Rewrites the query of a PostgreSQL client to an equivalent that the general path can plan.
pub(crate) fn rewrite(statement: &mut Statement, world: &World) {
    if is_of_moment(statement) {
        world.facts.snapshots.note();
    }
    if let Statement::Query(query) = statement
        && let Some(select) = select_mut(query)
    {
        select.projection.iter_mut().for_each(vector);
        select.projection.iter_mut().for_each(json);
    }
    let _ = walk::visit_mut(statement, &mut Rewriter { world });
}
