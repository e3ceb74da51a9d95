//! Functions that DataFusion has under another name or with other semantics.

use sqlparser::ast::{
    self, BinaryOperator, DataType, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
};

use super::{arrays, distinct_keys, rows, subqueries};
use crate::error::{Error, Result};
use crate::general::functions::fields;
use crate::general::markers::AT_ZONE;
use crate::sqlstate::INVALID_COLUMN_REFERENCE;
use crate::syntax::build::{call, nested, null, number, string, take, text, with_type};
use crate::syntax::{ident, last_name};

/// Rewrites a function with the usual call syntax.
///
/// Errors: 42P10; 0A000 for a function that is not supported.
pub(super) fn called(place: &mut Expr) -> Result<()> {
    let Expr::Function(called) = place else { return Ok(()) };
    sorted_by_arguments(called)?;
    match last_name(&called.name).as_str() {
        name @ ("json_agg" | "jsonb_agg") => return Err(Error::unsupported(name)),
        // DataFusion's function returns a list, which is unnested into rows. Used as a table, it is
        // not an expression and does not get here.
        "generate_series" => {
            *place = call("unnest", vec![take(place)]);
            return Ok(());
        }
        _ => {}
    }
    let other = remainder(called)
        .or_else(|| null_if(called))
        .or_else(|| coalesce(called))
        .or_else(|| nowhere(called))
        .or_else(|| in_zone(called))
        .or_else(|| date_part(called));
    if let Some(other) = other {
        *place = other;
        return Ok(());
    }
    arrays::all_equal(called)?;
    rename(called);
    Ok(())
}

/// Checks that an aggregate with DISTINCT is ordered by its arguments only.
///
/// Errors: 42P10.
fn sorted_by_arguments(called: &Function) -> Result<()> {
    let FunctionArguments::List(list) = &called.args else { return Ok(()) };
    if list.duplicate_treatment != Some(DuplicateTreatment::Distinct) {
        return Ok(());
    }
    let is_argument = |by: &Expr| {
        list.args.iter().any(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => is_same(argument, by),
            _ => false,
        })
    };
    let mut clauses = list.clauses.iter();
    let is_known = clauses.all(|clause| match clause {
        FunctionArgumentClause::OrderBy(order) => order.iter().all(|by| is_argument(&by.expr)),
        _ => true,
    });
    if is_known {
        return Ok(());
    }
    let what = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
    Err(Error::new(INVALID_COLUMN_REFERENCE, what))
}

/// Whether two expressions have the same text, up to qualification of a column with its table.
fn is_same(one: &Expr, other: &Expr) -> bool {
    match (one, other) {
        (Expr::Nested(one), other) | (other, Expr::Nested(one)) => is_same(one, other),
        (Expr::Identifier(name), Expr::CompoundIdentifier(names))
        | (Expr::CompoundIdentifier(names), Expr::Identifier(name)) => {
            names.last().map(ident) == Some(ident(name))
        }
        (Expr::Identifier(one), Expr::Identifier(other)) => ident(one) == ident(other),
        (one, other) => one == other,
    }
}

/// Rewrites a function with a syntax of its own, such as `SUBSTRING(a FROM 2)`.
pub(super) fn spelt(place: &mut Expr) {
    *place = match place {
        Expr::Substring { expr: of, substring_from, substring_for, .. } => {
            let from = substring_from.take().map_or_else(|| number(1), |from| *from);
            let mut arguments = vec![take(of), from];
            arguments.extend(substring_for.take().map(|count| *count));
            call("substring", arguments)
        }
        Expr::Overlay { expr: of, overlay_what, overlay_from, overlay_for } => {
            let mut arguments = vec![take(of), take(overlay_what), take(overlay_from)];
            arguments.extend(overlay_for.take().map(|count| *count));
            call("overlay", arguments)
        }
        Expr::Position { expr: of, r#in } => call("strpos", vec![take(r#in), take(of)]),
        Expr::Extract { field, expr: of, .. } => part(&field.to_string(), take(of)),
        Expr::AtTimeZone { timestamp, time_zone } => call(AT_ZONE, vec![take(time_zone), take(timestamp)]),
        _ => return,
    };
}

/// Returns the arguments of a function with the given name and two arguments.
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

/// Rewrites `mod(a, b)` as `a % b`.
fn remainder(function: &mut Function) -> Option<Expr> {
    let (left, right) = two(function, "mod")?;
    let (left, right) = (Box::new(nested(take(left))), Box::new(nested(take(right))));
    Some(nested(Expr::BinaryOp { left, op: BinaryOperator::Modulo, right }))
}

/// Returns a field of a date, time or interval, as a numeric.
fn part(field: &str, of: Expr) -> Expr {
    let field = field.trim_matches('"').to_ascii_lowercase();
    call(fields::name_for(&field), vec![text(&field), of])
}

/// Rewrites `date_part('second', a)`, which is double precision.
fn date_part(function: &mut Function) -> Option<Expr> {
    let (field, of) = two(function, "date_part")?;
    let field = string(field)?.to_owned();
    let part = call(crate::general::markers::DATE_PART, vec![text(&field.to_ascii_lowercase()), take(of)]);
    Some(with_type(part, DataType::DoublePrecision))
}

/// Rewrites `date_trunc(field, moment, zone)` and `make_timestamptz` with a zone: truncates or
/// builds the local time in that zone.
fn in_zone(function: &mut Function) -> Option<Expr> {
    let name = last_name(&function.name);
    if !matches!(name.as_str(), "date_trunc" | "make_timestamptz") {
        return None;
    }
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let given = list.args.iter().map(|argument| match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    let mut given = given.collect::<Option<Vec<Expr>>>()?;
    let shown = match (name.as_str(), given.len()) {
        ("date_trunc", 3) => {
            let zone = given.pop()?;
            let moment = given.pop()?;
            let clock = call(AT_ZONE, vec![zone.clone(), moment]);
            (zone, call("date_trunc", vec![given.pop()?, clock]))
        }
        ("make_timestamptz", 7) => (given.pop()?, call("make_timestamp", given)),
        _ => return None,
    };
    Some(call(AT_ZONE, vec![shown.0, shown.1]))
}

/// Rewrites `lag(a, NULL)` and similar calls, which refer to no row, as a NULL of the result type.
fn nowhere(function: &mut Function) -> Option<Expr> {
    let name = last_name(&function.name);
    if !matches!(name.as_str(), "lag" | "lead" | "nth_value" | "ntile") || function.over.is_none() {
        return None;
    }
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let mut given = list.args.iter_mut().map(|argument| match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    let value = given.next()??;
    if name == "ntile" {
        return is_null(value).then(|| with_type(null(), DataType::Int(None)));
    }
    let offset = given.next()??;
    if !is_null(offset) {
        return None;
    }
    let never = Expr::Value(ast::Value::Boolean(false).into());
    Some(subqueries::case(vec![(never, take(value))], null()))
}

fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_null(inner),
        Expr::Value(value) => matches!(value.value, ast::Value::Null),
        _ => false,
    }
}

/// Rewrites `nullif(a, 'b')` as a CASE, in which an untyped literal takes the type of the other
/// operand.
fn null_if(function: &mut Function) -> Option<Expr> {
    let (of, other) = two(function, "nullif")?;
    if string(other).is_none() || string(of).is_some() || rows::is_volatile(of) {
        return None;
    }
    let (left, right) = (Box::new(nested(of.clone())), Box::new(take(other)));
    let same = Expr::BinaryOp { left, op: BinaryOperator::Eq, right };
    Some(subqueries::case(vec![(same, null())], take(of)))
}

/// Rewrites `coalesce(a, 'b')` as a CASE for the same reason: DataFusion needs its type before the
/// untyped literal has one. Only for columns, because the CASE repeats them.
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

/// Renames a function to DataFusion's name for it.
fn rename(function: &mut Function) {
    if let Some(ast::WindowType::WindowSpec(window)) = &mut function.over {
        distinct_keys(&mut window.order_by);
    }
    let name = last_name(&function.name);
    if matches!(function.args, FunctionArguments::None) {
        function.args = FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: Vec::new(),
            clauses: Vec::new(),
        });
    }
    // With one argument, `age` counts up to midnight of the current day.
    if let ("age", FunctionArguments::List(list)) = (name.as_str(), &mut function.args)
        && list.args.len() == 1
    {
        let today = with_type(call("now", Vec::new()), ast::DataType::Date);
        list.args.insert(0, ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(today)));
    }
    // An untyped literal is read as bytea here.
    if let ("encode", FunctionArguments::List(list)) = (name.as_str(), &mut function.args)
        && let Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(bytes))) = list.args.first_mut()
        && string(bytes).is_some()
    {
        *bytes = call("cairn_bytea", vec![take(bytes)]);
    }
    let Some(renamed) = other_name(&name) else { return };
    function.name = ObjectName::from(vec![Ident::new(renamed)]);
}

/// Returns DataFusion's name of a function, where it differs.
pub(super) fn other_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "gen_random_uuid" | "uuid_generate_v4" => "uuid",
        "char_length" | "character_length" => "length",
        "ceiling" => "ceil",
        "pow" => "power",
        "every" => "bool_and",
        "variance" => "var_samp",
        _ => return None,
    })
}
