//! What PostgreSQL says and DataFusion does not understand, said otherwise.

mod arrays;
mod dependents;
mod groups;
mod names;
mod notation;
mod quantified;
mod rows;
mod scope;
mod subqueries;
mod using;
mod windows;

use std::ops::ControlFlow;

use cairn_table::schema::ColumnType;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, DataType, Expr, Function, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Statement as Tree, TimezoneInfo, Value, VisitMut, VisitorMut,
};

pub(super) use names::{result_names, shown};
pub(super) use notation::{ESCAPED, SIMILAR, escaped, similar};
pub(super) use scope::Lookup;
use subqueries::Around;
pub(super) use subqueries::{BARE, MAYBE, ONE};

/// What casting to texts of a length is called.
pub(super) const VARCHAR: &str = "cairn_varchar";

/// What casting to times is called.
pub(super) const TIME: &str = "cairn_time";

/// What gives the length of an interval.
pub(super) const SPAN: &str = "cairn_span";

/// What `AT TIME ZONE` is.
pub(super) const AT_ZONE: &str = "timezone";

/// What gives the parts of a moment that have a fraction.
pub(super) const PART: &str = "cairn_part";

use super::lists::ListUse;
use super::read::{NUMERIC, ZONED};
use crate::error::{Error, Result};
use crate::pg_catalog::count_instead_of_exists;
use crate::sqlstate::UNDEFINED_OBJECT;
use crate::syntax::build::{call, nested, null, number, string, take, text, with_type};
use crate::syntax::{column_type, last_name};

/// Rewrites a statement whose parameters have these types, as far as they are known. Gives the lists that are parameters.
///
/// Errors: what nothing here can say.
pub(super) fn rewrite(
    tree: &mut Tree,
    types: &[Option<ColumnType>],
    lookup: Lookup<'_>,
) -> Result<Vec<ListUse>> {
    let own = scope::own_names(tree, lookup);
    let mut rewriter = Rewriter { types, lookup: Lookup { own: &own, ..lookup }, lists: Vec::new() };
    match tree.visit(&mut rewriter) {
        ControlFlow::Continue(()) => Ok(rewriter.lists),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Rewriter<'a> {
    types: &'a [Option<ColumnType>],
    lookup: Lookup<'a>,
    lists: Vec<ListUse>,
}

impl VisitorMut for Rewriter<'_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Self::Break> {
        if !query.locks.is_empty() {
            return ControlFlow::Break(Box::new(Error::unsupported("FOR UPDATE in this query")));
        }
        if let Some(fetch) = query.fetch.take() {
            if fetch.with_ties {
                return ControlFlow::Break(Box::new(Error::unsupported("FETCH FIRST … WITH TIES")));
            }
            let limit = fetch.quantity.or_else(|| Some(number(1)));
            match &mut query.limit_clause {
                Some(ast::LimitClause::LimitOffset { limit: place, .. }) => *place = limit,
                clause => {
                    *clause =
                        Some(ast::LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() })
                }
            }
        }
        if let Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(order), .. }) = &mut query.order_by {
            once(order);
            groups::name_ordered(&mut query.body, order);
        }
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            names::name_results(&mut cte.query.body);
        }
        if let Err(error) = self.query(query) {
            return ControlFlow::Break(Box::new(error));
        }
        if let ast::SetExpr::Values(values) = &mut *query.body {
            notation::one_type(&mut values.rows);
            let name = if values.rows.len() == 1 { MAYBE } else { BARE };
            for expr in values.rows.iter_mut().flat_map(|row| row.iter_mut()) {
                subqueries::maybe(expr, name, self.lookup);
            }
        }
        names::unique_names(&mut query.body, self.lookup);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<Self::Break> {
        match self.select(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        subqueries::scalar(expr, self.lookup);
        rows::are_null(expr);
        match arrays::mark(expr, &mut self.lists) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut ast::TableFactor) -> ControlFlow<Self::Break> {
        match factor {
            ast::TableFactor::Derived { subquery, .. } => names::name_results(&mut subquery.body),
            // A function that gives one column gives that its own name, or that of its alias.
            ast::TableFactor::Table { name, alias, args: Some(_), .. } => {
                let alias = alias.get_or_insert_with(|| ast::TableAlias {
                    explicit: true,
                    name: Ident::new(last_name(name)),
                    columns: Vec::new(),
                    at: None,
                });
                if alias.columns.is_empty() {
                    alias
                        .columns
                        .push(ast::TableAliasColumnDef { name: alias.name.clone(), data_type: None });
                }
            }
            _ => {}
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

impl Rewriter<'_> {
    /// Sees to what ORDER BY shares with the query that it is of.
    fn query(&self, query: &mut ast::Query) -> Result<()> {
        using::merge(query, self.lookup)?;
        dependents::list(query, self.lookup);
        match &mut *query.body {
            ast::SetExpr::Select(select) => windows::spell_out(select, query.order_by.as_mut()),
            _ => Ok(()),
        }
    }

    /// Sees to the subqueries of a SELECT.
    fn select(&self, select: &mut ast::Select) -> Result<()> {
        windows::spell_out(select, None)?;
        groups::spell_out(&mut select.group_by);
        let around = Around { lookup: self.lookup, tables: self.lookup.tables(select) };
        for item in &mut select.projection {
            let (ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. }) = item
            else {
                continue;
            };
            subqueries::values(expr, &around)?;
            subqueries::maybe(expr, MAYBE, self.lookup);
            subqueries::each_own(expr, count_instead_of_exists);
        }
        for condition in select.selection.iter_mut().chain(&mut select.having) {
            subqueries::condition(condition, &around)?;
        }
        Ok(())
    }

    fn expr(&self, expr: &mut Expr) -> Result<()> {
        match expr {
            Expr::Function(called) => {
                if let name @ ("json_agg" | "jsonb_agg") = last_name(&called.name).as_str() {
                    return Err(Error::unsupported(name));
                }
                let other = remainder(called)
                    .or_else(|| null_if(called))
                    .or_else(|| coalesce(called))
                    .or_else(|| date_part(called));
                if let Some(other) = other {
                    *expr = other;
                    return Ok(());
                }
                arrays::all_equal(called)?;
                function(called);
                Ok(())
            }
            Expr::Substring { expr: of, substring_from, substring_for, .. } => {
                let from = substring_from.take().map_or_else(|| number(1), |from| *from);
                let mut arguments = vec![take(of), from];
                arguments.extend(substring_for.take().map(|count| *count));
                *expr = call("substr", arguments);
                Ok(())
            }
            Expr::Position { expr: of, r#in } => {
                *expr = call("strpos", vec![take(r#in), take(of)]);
                Ok(())
            }
            Expr::Extract { field, expr: of, .. } => {
                if let Some(part) = part_with_fraction(&field.to_string()) {
                    *expr = call(PART, vec![text(part), take(of)]);
                }
                Ok(())
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                *expr = call(AT_ZONE, vec![take(time_zone), take(timestamp)]);
                Ok(())
            }
            Expr::Cast { .. } => cast(expr),
            Expr::TypedString(typed) if notation::is_zoned(&typed.data_type) => {
                if let Value::SingleQuotedString(value) = &typed.value.value {
                    *expr = call(ZONED, vec![text(value)]);
                }
                Ok(())
            }
            Expr::TypedString(typed) if is_time(&typed.data_type) => {
                if let Value::SingleQuotedString(value) = &typed.value.value {
                    *expr = call(TIME, vec![text(value)]);
                }
                Ok(())
            }
            Expr::Interval(interval) => {
                if let Some(value) = notation::interval(interval) {
                    let kind = DataType::Interval { fields: None, precision: None };
                    *expr = with_type(text(&value), kind);
                }
                Ok(())
            }
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right)
                if matches!((rows::bare(left), rows::bare(right)), (Expr::Tuple(_), Expr::Tuple(_))) =>
            {
                rows::distinct(expr)
            }
            Expr::InList { expr: row, list, negated } if matches!(rows::bare(row), Expr::Tuple(_)) => {
                *expr = rows::is_in(row, list, *negated)?;
                Ok(())
            }
            Expr::TypedString(typed) => {
                notation::plain_type(&mut typed.data_type);
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
            Expr::BinaryOp { op: op @ BinaryOperator::PGCustomBinaryOperator(_), .. }
            | Expr::AnyOp { compare_op: op @ BinaryOperator::PGCustomBinaryOperator(_), .. } => {
                if let BinaryOperator::PGCustomBinaryOperator(names) = op {
                    let symbol = names.last().cloned().unwrap_or_default();
                    *op = notation::operator(&symbol)?;
                }
                // What it is now may be something to be seen to.
                self.expr(expr)
            }
            Expr::BinaryOp { left, op, right } => {
                if let (Expr::Tuple(left), Expr::Tuple(right)) = (rows::bare(left), rows::bare(right)) {
                    *expr = rows::compared(left, op, right)?;
                }
                Ok(())
            }
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. }
                if !matches!(**right, Expr::Subquery(_)) =>
            {
                *expr = arrays::member(take(left), take(right))?;
                Ok(())
            }
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right }
                if !matches!(**right, Expr::Subquery(_)) =>
            {
                let member = nested(arrays::member(take(left), take(right))?);
                *expr = Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(member) };
                Ok(())
            }
            Expr::SimilarTo { negated, expr: of, pattern, escape_char } => {
                let escape = match escape_char.take() {
                    Some(escape) => escape.value.into_string().unwrap_or_default(),
                    None => "\\".to_owned(),
                };
                let pattern = match string(pattern) {
                    Some(given) => text(&similar(given, &escape)?),
                    None => call(SIMILAR, vec![take(pattern), text(&escape)]),
                };
                let op =
                    if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
                *expr =
                    nested(Expr::BinaryOp { left: Box::new(nested(take(of))), op, right: Box::new(pattern) });
                Ok(())
            }
            Expr::Like { pattern, escape_char: escape @ Some(_), .. }
            | Expr::ILike { pattern, escape_char: escape @ Some(_), .. } => {
                let character = escape.take().and_then(|value| value.value.into_string()).unwrap_or_default();
                notation::escape(pattern, &character)
            }
            Expr::Value(value) => {
                if let Value::Placeholder(placeholder) = &value.value {
                    let at = crate::expr::parameter(placeholder)?;
                    let name = match self.types.get(at) {
                        Some(Some(kind)) if kind.is_list => None,
                        Some(Some(kind)) if kind.is_zoned => Some(ZONED),
                        Some(Some(kind)) if kind.kind == cairn_table::row::Type::Time => Some(TIME),
                        _ => None,
                    };
                    if let Some(name) = name {
                        *expr = call(name, vec![take(expr)]);
                    } else if let Some(Some(kind)) = self.types.get(at)
                        && let Some(data_type) = notation::sql_type(kind)
                    {
                        *expr = with_type(take(expr), data_type);
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn is_time(kind: &DataType) -> bool {
    matches!(kind, DataType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone))
}

/// How many characters values of a type have at most, where it says so.
fn length_of(kind: &DataType) -> Option<i64> {
    let is_text = matches!(
        kind,
        DataType::Varchar(_)
            | DataType::CharVarying(_)
            | DataType::CharacterVarying(_)
            | DataType::Nvarchar(_)
            | DataType::Char(_)
            | DataType::Character(_)
    );
    is_text.then(|| column_type(kind).ok()?.length).flatten().map(i64::from)
}

fn cast(place: &mut Expr) -> Result<()> {
    let Expr::Cast { expr, data_type, .. } = place else { return Ok(()) };
    if let DataType::Array(_) = data_type {
        notation::plain_type(data_type);
        return Ok(());
    }
    if notation::is_zoned(data_type) {
        *place = call(ZONED, vec![take(expr)]);
        return Ok(());
    }
    if notation::is_open_numeric(data_type) {
        // A literal says how many digits it has.
        *place = match string(expr).and_then(crate::datum::parse_decimal) {
            Some((_, scale)) => with_type(take(expr), notation::numeric(scale)),
            None => call(NUMERIC, vec![take(expr)]),
        };
        return Ok(());
    }
    if is_time(data_type) {
        *place = call(TIME, vec![take(expr)]);
        return Ok(());
    }
    if let Some(length) = length_of(data_type) {
        *place = call(VARCHAR, vec![take(expr), number(length)]);
        return Ok(());
    }
    notation::plain_type(data_type);
    let name = match data_type {
        DataType::Custom(name, _) => last_name(name),
        DataType::Uuid => "uuid".to_owned(),
        DataType::JSON | DataType::JSONB => "json".to_owned(),
        DataType::Bytea => "bytea".to_owned(),
        _ => return Ok(()),
    };
    let inner = take(expr);
    *place = match (name.as_str(), string(&inner)) {
        ("bpchar" | "citext", _) => with_type(inner, DataType::Text),
        ("uuid", _) => call("cairn_uuid", vec![inner]),
        ("bytea", Some(_)) => call("cairn_bytea", vec![inner]),
        ("bytea", None) => with_type(inner, DataType::Bytea),
        ("json", _) => with_type(inner, DataType::Text),
        (other, _) => {
            return Err(Error::new(UNDEFINED_OBJECT, format!("type \"{other}\" does not exist")));
        }
    };
    Ok(())
}

/// The arguments of a function of this name that has two.
fn two<'a>(function: &'a mut Function, name: &str) -> Option<(&'a mut Expr, &'a mut Expr)> {
    let FunctionArguments::List(list) = &mut function.args else { return None };
    if last_name(&function.name) != name {
        return None;
    }
    match list.args.as_mut_slice() {
        [
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(one)),
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(other)),
        ] => Some((one, other)),
        _ => None,
    }
}

/// `mod(a, b)` as `a % b`.
fn remainder(function: &mut Function) -> Option<Expr> {
    let (left, right) = two(function, "mod")?;
    let (left, right) = (Box::new(nested(take(left))), Box::new(nested(take(right))));
    Some(nested(Expr::BinaryOp { left, op: BinaryOperator::Modulo, right }))
}

/// Parts of a moment of which DataFusion's functions leave the fraction out, or round it.
fn part_with_fraction(field: &str) -> Option<&'static str> {
    match field.to_ascii_lowercase().as_str() {
        "second" | "seconds" => Some("second"),
        "millisecond" | "milliseconds" => Some("milliseconds"),
        "epoch" => Some("epoch"),
        _ => None,
    }
}

/// `date_part('second', a)`, which is a float.
fn date_part(function: &mut Function) -> Option<Expr> {
    let (field, of) = two(function, "date_part")?;
    let part = part_with_fraction(string(field)?)?;
    let exact = call(PART, vec![text(part), take(of)]);
    Some(with_type(exact, DataType::DoublePrecision))
}

/// `nullif(a, 'b')` as a CASE, in which what is in quotes gets the type of the other.
fn null_if(function: &mut Function) -> Option<Expr> {
    let (of, other) = two(function, "nullif")?;
    if string(other).is_none() || string(of).is_some() || rows::is_volatile(of) {
        return None;
    }
    let (left, right) = (Box::new(nested(of.clone())), Box::new(take(other)));
    let same = Expr::BinaryOp { left, op: BinaryOperator::Eq, right };
    Some(subqueries::case(vec![(same, null())], take(of)))
}

/// `coalesce(a, 'b')` as a CASE, for the same reason: DataFusion wants to know its type before what is in quotes has one. Of columns only, which are there twice then.
fn coalesce(function: &mut Function) -> Option<Expr> {
    if last_name(&function.name) != "coalesce" {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let arguments = list.args.iter().map(|argument| match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    let mut arguments = arguments.collect::<Option<Vec<Expr>>>()?;
    let last = arguments.pop().filter(|last| string(last).is_some())?;
    if arguments.is_empty() || !arguments.iter().all(is_column) {
        return None;
    }
    let when = |argument: Expr| (Expr::IsNotNull(Box::new(nested(argument.clone()))), argument);
    Some(subqueries::case(arguments.into_iter().map(when).collect(), last))
}

fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_column(inner),
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
        _ => false,
    }
}

/// Leaves out what something is sorted by for the second time: DataFusion's operators cannot count then.
fn once(order: &mut Vec<ast::OrderByExpr>) {
    let mut seen: Vec<Expr> = Vec::with_capacity(order.len());
    order.retain(|by| {
        let is_new = !seen.contains(&by.expr);
        if is_new {
            seen.push(by.expr.clone());
        }
        is_new
    });
}

/// Gives a function the name that DataFusion has for it.
fn function(function: &mut Function) {
    if let Some(ast::WindowType::WindowSpec(window)) = &mut function.over {
        once(&mut window.order_by);
    }
    let name = last_name(&function.name);
    if matches!(function.args, FunctionArguments::None) {
        function.args = FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: Vec::new(),
            clauses: Vec::new(),
        });
    }
    // The age of one moment is that up to today's midnight.
    if let ("age", FunctionArguments::List(list)) = (name.as_str(), &mut function.args)
        && list.args.len() == 1
    {
        let today = with_type(call("now", Vec::new()), ast::DataType::Date);
        list.args.insert(0, ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(today)));
    }
    // What is only in quotes is read as the bytes that it takes.
    if let ("encode", FunctionArguments::List(list)) = (name.as_str(), &mut function.args)
        && let Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(bytes))) = list.args.first_mut()
        && string(bytes).is_some()
    {
        *bytes = call("cairn_bytea", vec![take(bytes)]);
    }
    let renamed = match name.as_str() {
        "gen_random_uuid" | "uuid_generate_v4" => "uuid",
        "char_length" | "character_length" => "length",
        "ceiling" => "ceil",
        "pow" => "power",
        "every" => "bool_and",
        "variance" => "var_samp",
        _ => return,
    };
    function.name = ObjectName::from(vec![Ident::new(renamed)]);
}
