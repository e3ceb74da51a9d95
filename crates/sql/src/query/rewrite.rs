//! What PostgreSQL says and DataFusion does not understand, said otherwise.

use std::ops::ControlFlow;

use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, ObjectNamePart, Statement as Tree,
    TimezoneInfo, Value, VisitMut, VisitorMut,
};

use crate::error::{Error, Result};
use crate::pg_catalog::System;
use crate::sqlstate::UNDEFINED_TABLE;
use crate::syntax::{ident, last_name};

/// What is known beside the statement.
pub(super) struct Given<'a> {
    /// Types of parameters.
    pub types: &'a [Option<ColumnType>],
    pub system: &'a Arc<System>,
}

impl<'a> Given<'a> {
    pub fn none(system: &'a Arc<System>) -> Self {
        Given { types: &[], system }
    }
}

/// Rewrites a statement.
///
/// Errors: names in `'...'::regclass` that do not exist.
pub(super) fn rewrite(tree: &mut Tree, given: &Given<'_>) -> Result<()> {
    match tree.visit(&mut Rewriter { given }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Rewriter<'a> {
    given: &'a Given<'a>,
}

impl VisitorMut for Rewriter<'_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Self::Break> {
        if !query.locks.is_empty() {
            return ControlFlow::Break(Box::new(Error::unsupported("FOR UPDATE in this query")));
        }
        if let Some(fetch) = query.fetch.take() {
            let limit = fetch.quantity.or_else(|| Some(number(1)));
            match &mut query.limit_clause {
                Some(ast::LimitClause::LimitOffset { limit: place, .. }) => *place = limit,
                clause => {
                    *clause =
                        Some(ast::LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() })
                }
            }
        }
        unique_names(&mut query.body);
        if let ast::SetExpr::Select(select) = &mut *query.body
            && let Some(selection) = &mut select.selection
        {
            not_in(selection);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match self.expr(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

fn number(value: i64) -> Expr {
    Expr::Value(Value::Number(value.to_string(), false).into())
}

fn text(value: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(value.to_owned()).into())
}

/// A call of a function.
fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let args = arguments.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}

fn string(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

impl Rewriter<'_> {
    fn expr(&self, expr: &mut Expr) -> Result<()> {
        match expr {
            Expr::Function(function) => self.function(function).map(|new| {
                if let Some(new) = new {
                    *expr = new;
                }
            }),
            Expr::Cast { .. } => self.cast(expr),
            Expr::TypedString(typed) => {
                plain_type(&mut typed.data_type);
                if matches!(typed.data_type, DataType::Uuid | DataType::JSON | DataType::JSONB)
                    && let Value::SingleQuotedString(value) = &typed.value.value
                {
                    let value = text(value);
                    *expr = if typed.data_type == DataType::Uuid {
                        call("cairn_uuid", vec![value])
                    } else {
                        value
                    };
                }
                Ok(())
            }
            Expr::Collate { expr: inner, .. } => {
                *expr = take(inner);
                Ok(())
            }
            Expr::BinaryOp { op, .. } => {
                if let BinaryOperator::PGCustomBinaryOperator(names) = op {
                    let symbol = names.last().cloned().unwrap_or_default();
                    *op = operator(&symbol)?;
                }
                Ok(())
            }
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. }
                if !matches!(**right, Expr::Subquery(_)) =>
            {
                *expr = member(take(left), take(right));
                Ok(())
            }
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right }
                if !matches!(**right, Expr::Subquery(_)) =>
            {
                let member = member(take(left), take(right));
                *expr = Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(member) };
                Ok(())
            }
            Expr::Subquery(query) => {
                if let Some(new) = of_one_row(query) {
                    *expr = new;
                }
                Ok(())
            }
            Expr::Value(value) => {
                if let Value::Placeholder(placeholder) = &value.value {
                    let at = crate::expr::parameter(placeholder)?;
                    if let Some(Some(kind)) = self.given.types.get(at)
                        && let Some(data_type) = sql_type(kind)
                    {
                        let expr_of = Box::new(take(expr));
                        *expr = Expr::Cast {
                            kind: CastKind::Cast,
                            expr: expr_of,
                            data_type,
                            array: false,
                            format: None,
                        };
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn cast(&self, place: &mut Expr) -> Result<()> {
        let Expr::Cast { expr, data_type, .. } = place else { return Ok(()) };
        if let DataType::Array(_) = data_type {
            return Ok(());
        }
        plain_type(data_type);
        let name = match data_type {
            DataType::Regclass => "regclass".to_owned(),
            DataType::Custom(name, _) => last_name(name),
            DataType::Uuid => "uuid".to_owned(),
            DataType::JSON | DataType::JSONB => "json".to_owned(),
            DataType::Bytea => "bytea".to_owned(),
            _ => return Ok(()),
        };
        let inner = take(expr);
        *place = match (name.as_str(), string(&inner)) {
            ("regclass", Some(relation)) => match self.given.system.relation(relation) {
                Some(oid) => number(oid.into()),
                None if relation.bytes().all(|byte| byte.is_ascii_digit()) && !relation.is_empty() => {
                    number(relation.parse().unwrap_or(0))
                }
                None => {
                    return Err(Error::new(
                        UNDEFINED_TABLE,
                        format!("relation \"{relation}\" does not exist"),
                    ));
                }
            },
            ("regclass", None) => call("cairn_regclass", vec![inner]),
            ("regtype", Some(kind)) => number(crate::pg_catalog::type_oid(kind).into()),
            ("regtype", None) => call("format_type", vec![inner, Expr::Value(Value::Null.into())]),
            ("regproc" | "regnamespace" | "regrole" | "regoper" | "regprocedure", _) => inner,
            ("oid" | "xid" | "cid", _) => with_type(inner, DataType::BigInt(None)),
            ("name" | "char" | "bpchar" | "citext" | "aclitem" | "pg_node_tree", _) => {
                with_type(inner, DataType::Text)
            }
            ("timestamptz", _) => with_type(inner, DataType::Timestamp(Some(6), TimezoneInfo::None)),
            ("uuid", _) => call("cairn_uuid", vec![inner]),
            ("bytea", Some(_)) => call("cairn_bytea", vec![inner]),
            ("bytea", None) => with_type(inner, DataType::Bytea),
            ("json", _) => with_type(inner, DataType::Text),
            (other, _) => {
                return Err(Error::new(
                    crate::sqlstate::UNDEFINED_OBJECT,
                    format!("type \"{other}\" does not exist"),
                ));
            }
        };
        Ok(())
    }

    /// A function by the name that DataFusion has for it; what a call becomes where it is none any more.
    fn function(&self, function: &mut Function) -> Result<Option<Expr>> {
        if let [ObjectNamePart::Identifier(schema), _] = function.name.0.as_slice()
            && (ident(schema) == "pg_catalog" || ident(schema) == "information_schema")
        {
            function.name.0.remove(0);
        }
        if matches!(function.args, FunctionArguments::None) {
            function.args = FunctionArguments::List(FunctionArgumentList {
                duplicate_treatment: None,
                args: Vec::new(),
                clauses: Vec::new(),
            });
        }
        let name = last_name(&function.name);
        let arguments: Vec<Expr> = match &function.args {
            FunctionArguments::List(list) => list
                .args
                .iter()
                .filter_map(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        let renamed = match name.as_str() {
            "gen_random_uuid" | "uuid_generate_v4" => "uuid",
            "char_length" | "character_length" => "length",
            "ceiling" => "ceil",
            "pow" => "power",
            "every" => "bool_and",
            "json_agg" | "jsonb_agg" => "array_agg",
            "variance" => "var_samp",
            "cardinality" => "cardinality",
            _ => {
                let value = self.given.system.session_value(&name, arguments.first().and_then(string));
                return Ok(
                    value.map(|value| value.map_or(Expr::Value(Value::Null.into()), |value| text(&value)))
                );
            }
        };
        function.name = ObjectName::from(vec![Ident::new(renamed)]);
        Ok(None)
    }
}

/// Gives results of one SELECT that have the same name names of their own.
fn unique_names(body: &mut ast::SetExpr) {
    match body {
        ast::SetExpr::Select(select) => {
            let mut seen = std::collections::HashSet::new();
            for item in &mut select.projection {
                let name = match item {
                    ast::SelectItem::UnnamedExpr(expr) => without_casts(expr),
                    ast::SelectItem::ExprWithAlias { alias, .. } => ident(alias),
                    _ => continue,
                };
                if seen.insert(name.clone()) {
                    continue;
                }
                let free =
                    (1..).map(|number| format!("{name}:{number}")).find(|name| seen.insert(name.clone()));
                let alias = Ident::with_quote('"', free.unwrap_or(name));
                let expr = match item {
                    ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
                        take(expr)
                    }
                    _ => continue,
                };
                *item = ast::SelectItem::ExprWithAlias { expr, alias };
            }
        }
        ast::SetExpr::SetOperation { left, right, .. } => {
            unique_names(left);
            unique_names(right);
            numbered(right);
        }
        _ => {}
    }
}

/// Names on the right of UNION and the like count for nothing, and are not to be those on the left.
fn numbered(body: &mut ast::SetExpr) {
    let ast::SetExpr::Select(select) = body else { return };
    let plain = |item: &ast::SelectItem| {
        matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. })
    };
    if !select.projection.iter().all(plain) || select.distinct.is_some() {
        return;
    }
    for (at, item) in select.projection.iter_mut().enumerate() {
        if let ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } = item {
            *item = ast::SelectItem::ExprWithAlias {
                expr: take(expr),
                alias: Ident::with_quote('"', format!("right:{at}")),
            };
        }
    }
}

/// An expression's text, as DataFusion names columns by it.
fn without_casts(expr: &Expr) -> String {
    let mut expr = expr.clone();
    let _ = ast::visit_expressions_mut(&mut expr, |expr| {
        if let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
            *expr = take(inner);
        }
        ControlFlow::<()>::Continue(())
    });
    expr.to_string()
}

/// `x NOT IN (SELECT y ...)` where the subquery looks outside, in a condition: as NOT EXISTS, which says the same there.
fn not_in(condition: &mut Expr) {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            not_in(left);
            not_in(right);
        }
        Expr::Nested(inner) => not_in(inner),
        Expr::InSubquery { expr, subquery, negated: true } if looks_outside(subquery) => {
            let plain = subquery.limit_clause.is_none() && subquery.with.is_none();
            let ast::SetExpr::Select(select) = &mut *subquery.body else { return };
            let grouped = !matches!(&select.group_by, ast::GroupByExpr::Expressions(by, _) if by.is_empty())
                || select.having.is_some();
            let [ast::SelectItem::UnnamedExpr(item) | ast::SelectItem::ExprWithAlias { expr: item, .. }] =
                select.projection.as_mut_slice()
            else {
                return;
            };
            if !plain || grouped || matches!(item, Expr::Function(_)) {
                return;
            }
            let (item, outer) = (Expr::Nested(Box::new(take(item))), Expr::Nested(Box::new(take(expr))));
            let or = |left: Expr, right: Expr| Expr::BinaryOp {
                left: Box::new(left),
                op: BinaryOperator::Or,
                right: Box::new(right),
            };
            let equal = Expr::BinaryOp {
                left: Box::new(item.clone()),
                op: BinaryOperator::Eq,
                right: Box::new(outer.clone()),
            };
            let matches = or(or(equal, Expr::IsNull(Box::new(item))), Expr::IsNull(Box::new(outer)));
            let matches = Expr::Nested(Box::new(matches));
            select.selection = Some(match select.selection.take() {
                None => matches,
                Some(selection) => Expr::BinaryOp {
                    left: Box::new(Expr::Nested(Box::new(selection))),
                    op: BinaryOperator::And,
                    right: Box::new(matches),
                },
            });
            select.projection = vec![ast::SelectItem::UnnamedExpr(number(1))];
            let subquery = subquery.clone();
            *condition = Expr::Exists { subquery, negated: true };
        }
        _ => {}
    }
}

/// Whether a subquery names tables that are not in it.
fn looks_outside(query: &ast::Query) -> bool {
    let ast::SetExpr::Select(select) = &*query.body else { return false };
    let inside = names_of(select);
    let mut outside = false;
    let _ = ast::visit_expressions(query, |expr| {
        if let Expr::CompoundIdentifier(names) = expr {
            outside |= names.first().is_some_and(|first| !inside.contains(&ident(first)));
        }
        ControlFlow::<()>::Continue(())
    });
    outside
}

/// What the tables of a SELECT are called.
fn names_of(select: &ast::Select) -> Vec<String> {
    select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)))
        .filter_map(|relation| match relation {
            ast::TableFactor::Table { name, alias, .. } => {
                Some(alias.as_ref().map_or_else(|| last_name(name), |alias| ident(&alias.name)))
            }
            ast::TableFactor::Derived { alias, .. } => alias.as_ref().map(|alias| ident(&alias.name)),
            _ => None,
        })
        .collect()
}

/// What PostgreSQL calls the columns of a query; `None` where only the tables tell.
pub(super) fn result_names(tree: &Tree) -> Option<Vec<String>> {
    let Tree::Query(query) = tree else { return None };
    let mut body = &*query.body;
    loop {
        match body {
            ast::SetExpr::SetOperation { left, .. } => body = left,
            ast::SetExpr::Query(query) => body = &query.body,
            ast::SetExpr::Select(select) => {
                return select
                    .projection
                    .iter()
                    .map(|item| match item {
                        ast::SelectItem::UnnamedExpr(expr) => Some(crate::direct::name_of(expr)),
                        ast::SelectItem::ExprWithAlias { alias, .. } => Some(ident(alias)),
                        _ => None,
                    })
                    .collect();
            }
            _ => return None,
        }
    }
}

/// Takes conditions out of a subquery that look at nothing in it; all of them have to be true for it to give anything.
fn outer_conditions(select: &mut ast::Select) -> Option<Expr> {
    let inside = names_of(select);
    let looks_inside = |expr: &Expr| {
        let mut inner = false;
        let _ = ast::visit_expressions(expr, |expr| {
            inner |= match expr {
                Expr::CompoundIdentifier(names) => {
                    names.first().is_some_and(|first| inside.contains(&ident(first)))
                }
                Expr::Identifier(_) => true,
                _ => false,
            };
            ControlFlow::<()>::Continue(())
        });
        inner
    };
    let (mut outer, mut inner) = (None, None);
    let mut rest = vec![select.selection.take()?];
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => rest.extend([*right, *left]),
            Expr::Nested(inside) if matches!(*inside, Expr::BinaryOp { op: BinaryOperator::And, .. }) => {
                rest.push(*inside)
            }
            expr => {
                let place: &mut Option<Expr> = if looks_inside(&expr) { &mut inner } else { &mut outer };
                *place = Some(match place.take() {
                    None => expr,
                    Some(other) => Expr::BinaryOp {
                        left: Box::new(other),
                        op: BinaryOperator::And,
                        right: Box::new(expr),
                    },
                });
            }
        }
    }
    select.selection = inner;
    outer
}

/// A subquery about the system that gives one row at most, as one that says so: the greatest of one value is that.
fn of_one_row(query: &mut Box<ast::Query>) -> Option<Expr> {
    if query.limit_clause.is_some() || query.with.is_some() {
        return None;
    }
    let ast::SetExpr::Select(select) = &mut *query.body else { return None };
    let name = |from: &ast::TableWithJoins| match &from.relation {
        ast::TableFactor::Table { name, .. } => last_name(name),
        _ => String::new(),
    };
    let plain = matches!(&select.group_by, ast::GroupByExpr::Expressions(by, _) if by.is_empty());
    if select.from.is_empty()
        || !select.from.iter().all(|from| name(from).starts_with("pg_"))
        || !plain
        || select.distinct.is_some()
    {
        return None;
    }
    // All collations are the default one.
    if select.from.iter().any(|from| name(from) == "pg_collation") {
        return Some(Expr::Value(Value::Null.into()));
    }
    let [ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. }] =
        select.projection.as_mut_slice()
    else {
        return None;
    };
    let aggregates = ["max", "min", "count", "sum", "array_agg", "string_agg", "bool_and", "bool_or"];
    let is_aggregate =
        matches!(expr, Expr::Function(function) if aggregates.contains(&last_name(&function.name).as_str()));
    if !is_aggregate {
        *expr = call("max", vec![take(expr)]);
        query.order_by = None;
        if let ast::SetExpr::Select(select) = &mut *query.body
            && let Some(condition) = outer_conditions(select)
        {
            let result = Expr::Subquery(query.clone());
            return Some(Expr::Case {
                case_token: ast::helpers::attached_token::AttachedToken::empty(),
                end_token: ast::helpers::attached_token::AttachedToken::empty(),
                operand: None,
                conditions: vec![ast::CaseWhen { condition, result }],
                else_result: None,
            });
        }
    }
    None
}

fn with_type(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// `x = ANY(list)`.
fn member(left: Expr, right: Expr) -> Expr {
    let inner = match right {
        Expr::Nested(inner) => *inner,
        Expr::Cast { expr, data_type: DataType::Array(_), .. } => *expr,
        other => other,
    };
    if let Some(list) =
        string(&inner).and_then(|list| list.strip_prefix('{')).and_then(|list| list.strip_suffix('}'))
    {
        let list = list
            .split(',')
            .filter(|item| !item.is_empty())
            .map(|item| text(item.trim_matches('"')))
            .collect();
        return Expr::InList { expr: Box::new(left), list, negated: false };
    }
    match inner {
        Expr::Array(array) => Expr::InList { expr: Box::new(left), list: array.elem, negated: false },
        array => call("array_has", vec![array, left]),
    }
}

/// An operator by its symbol, as `OPERATOR(pg_catalog.~)` has it.
fn operator(symbol: &str) -> Result<BinaryOperator> {
    Ok(match symbol {
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "||" => BinaryOperator::StringConcat,
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        other => return Err(Error::unsupported(format_args!("the operator {other}"))),
    })
}

/// Times in microseconds, without zones.
fn plain_type(kind: &mut DataType) {
    match kind {
        DataType::Timestamp(precision, zone) => (*precision, *zone) = (Some(6), TimezoneInfo::None),
        DataType::Datetime(_) => *kind = DataType::Timestamp(Some(6), TimezoneInfo::None),
        DataType::Time(precision, zone) => (*precision, *zone) = (Some(6), TimezoneInfo::None),
        _ => {}
    }
}

/// The name of a type in SQL, for parameters of it.
fn sql_type(kind: &ColumnType) -> Option<DataType> {
    use cairn_table::row::Type;
    Some(match kind.kind {
        Type::Boolean => DataType::Boolean,
        Type::SmallInt => DataType::SmallInt(None),
        Type::Int => DataType::Int(None),
        Type::BigInt => DataType::BigInt(None),
        Type::Real => DataType::Real,
        Type::Double => DataType::DoublePrecision,
        Type::Date => DataType::Date,
        Type::Timestamp => DataType::Timestamp(Some(6), TimezoneInfo::None),
        Type::Time => DataType::Time(Some(6), TimezoneInfo::None),
        Type::Text => DataType::Text,
        _ => return None,
    })
}
