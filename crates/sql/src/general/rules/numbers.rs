//! Arithmetic and casts of numbers as in PostgreSQL: overflow is an error, and casts round.
//!
//! DataFusion's integer operators wrap around, its floating-point operators divide by zero, its
//! casts truncate, and a rounded numeric keeps its trailing zeros. An analyzer rule replaces them
//! by functions once the types are known. The functions work on whole arrays.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ExprSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, ScalarUDF, lit};
use datafusion::optimizer::AnalyzerRule;

use crate::general::functions::direct_functions::cast;
use crate::general::functions::number_functions::{Arithmetic, Number, NumberFunction};
use crate::general::tree::expression_types::type_of;
use crate::general::tree::operand_schema::operand_schema;
use crate::general::tree::walk::{Walk, WalkPlan};

/// The rule.
#[derive(Debug)]
pub(crate) struct Numbers;

impl AnalyzerRule for Numbers {
    fn name(&self) -> &str {
        "numbers"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.walk_up_with_subqueries(in_plan)?.data)
    }
}

fn in_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = operand_schema(&plan)?;
    let names = NamePreserver::new(&plan);
    plan.walk_expressions(|expr| {
        let name = names.save(&expr);
        let done = expr.walk_up(|expr| in_expr(expr, &schema))?;
        Ok(done.update_data(|expr| name.restore(expr)))
    })
}

fn in_expr(expr: Expr, schema: &dyn ExprSchema) -> Result<Transformed<Expr>> {
    // Works for references to outer queries too: they carry their own type, while the schema does
    // not know their columns.
    let kind = |expr: &Expr| type_of(expr, schema);
    let (function, arguments) = match &expr {
        // The type of an average is known only now.
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
            return Ok(match common(kind(left), kind(right)) {
                Some(both) => {
                    let cast =
                        |of: &Expr| Box::new(Expr::Cast(Cast::new(Box::new(of.clone()), both.clone())));
                    Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(cast(left), *op, cast(right))))
                }
                None => Transformed::no(expr),
            });
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let arithmetic = match op {
                Operator::Plus => Arithmetic::Add,
                Operator::Minus => Arithmetic::Subtract,
                Operator::Multiply => Arithmetic::Multiply,
                Operator::Divide => Arithmetic::Divide,
                _ => return Ok(Transformed::no(expr)),
            };
            match (kind(left), kind(right)) {
                (Some(left), Some(right)) if left == right && arithmetic.is_ours(&left) => {}
                // The optimizer replaces a product of 0 and a non-NULL operand by the constant 0,
                // which has the type of that 0 rather than that of the product.
                (Some(DataType::Decimal128(..)), Some(DataType::Decimal128(..)))
                    if *op == Operator::Multiply && (is_constant(left) || is_constant(right)) =>
                {
                    return Ok(match kind(&expr) {
                        Some(product) => Transformed::yes(Expr::Cast(Cast::new(Box::new(expr), product))),
                        None => Transformed::no(expr),
                    });
                }
                _ => return Ok(Transformed::no(expr)),
            }
            (Number::Arithmetic(arithmetic), vec![(**left).clone(), (**right).clone()])
        }
        Expr::Negative(of) => match negation(kind(of)) {
            Some((arithmetic, by)) => (Number::Arithmetic(arithmetic), vec![by, (**of).clone()]),
            None => return Ok(Transformed::no(expr)),
        },
        Expr::Cast(_) => return Ok(in_cast(expr, schema)),
        Expr::ScalarFunction(call) if call.name() == "round" && call.args.len() == 1 => {
            match call.args.first().and_then(&kind) {
                Some(DataType::Float32 | DataType::Float64) => (Number::RoundedToEven, call.args.clone()),
                _ => return Ok(Transformed::no(expr)),
            }
        }
        Expr::ScalarFunction(call) => {
            let to = call.args.first().and_then(kind).and_then(|of| with_digits(call, &of));
            return Ok(match to {
                Some(to) => Transformed::yes(Expr::Cast(Cast::new(Box::new(expr), to))),
                None => Transformed::no(expr),
            });
        }
        _ => return Ok(Transformed::no(expr)),
    };
    Ok(call(function, arguments, schema))
}

/// Replaces a cast that DataFusion computes otherwise.
fn in_cast(expr: Expr, schema: &dyn ExprSchema) -> Transformed<Expr> {
    let Expr::Cast(Cast { expr: of, field }) = &expr else { return Transformed::no(expr) };
    match (type_of(of, schema), field.data_type()) {
        (
            Some(DataType::Float32 | DataType::Float64 | DataType::Decimal128(..)),
            to @ (DataType::Int16 | DataType::Int32 | DataType::Int64),
        ) => call(Number::Rounded(to.clone()), vec![(**of).clone()], schema),
        // Converts by the decimal digits of the number; a binary fraction has more than are
        // significant.
        (Some(from @ (DataType::Float32 | DataType::Float64)), DataType::Decimal128(precision, scale)) => {
            let from = if from == DataType::Float32 { Type::Real } else { Type::Double };
            let to = ColumnType::decimal(*precision, (*scale).clamp(0, 38) as u8);
            Transformed::yes(cast((**of).clone(), from.into(), to))
        }
        // A narrowing cast may overflow or underflow.
        (Some(DataType::Float64), DataType::Float32) => {
            Transformed::yes(cast((**of).clone(), Type::Double.into(), Type::Real.into()))
        }
        // A numeric with more than 15 digits, or with a negative scale or one above 22, is not
        // exact in a double. This cast rounds only once.
        (Some(DataType::Decimal128(precision, scale)), to @ (DataType::Float32 | DataType::Float64))
            if precision > 15 || !(0..=22).contains(&scale) =>
        {
            let digits = scale.clamp(0, 38);
            let of = match digits == scale {
                true => (**of).clone(),
                false => Expr::Cast(Cast::new(of.clone(), DataType::Decimal128(38, digits))),
            };
            let to = if *to == DataType::Float32 { Type::Real } else { Type::Double };
            Transformed::yes(cast(of, ColumnType::decimal(38, digits as u8), to.into()))
        }
        _ => Transformed::no(expr),
    }
}

/// Returns the operation and the number that negate a number of a type.
fn negation(of: Option<DataType>) -> Option<(Arithmetic, Expr)> {
    Some(match of? {
        DataType::Int16 => (Arithmetic::Subtract, lit(0_i16)),
        DataType::Int32 => (Arithmetic::Subtract, lit(0_i32)),
        DataType::Int64 => (Arithmetic::Subtract, lit(0_i64)),
        // Flipping the sign bit would create a second NaN.
        DataType::Float32 => (Arithmetic::Multiply, lit(-1_f32)),
        DataType::Float64 => (Arithmetic::Multiply, lit(-1_f64)),
        _ => return None,
    })
}

/// Returns the call of an operation.
fn call(number: Number, arguments: Vec<Expr>, schema: &dyn ExprSchema) -> Transformed<Expr> {
    let of = arguments.first().and_then(|of| type_of(of, schema));
    let function = Arc::new(ScalarUDF::from(NumberFunction::new(number, of, &arguments)));
    Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments)))
}

fn is_constant(expr: &Expr) -> bool {
    expr.column_refs().is_empty()
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Returns the type in which two numerics of different scales are compared.
fn common(left: Option<DataType>, right: Option<DataType>) -> Option<DataType> {
    let (Some(DataType::Decimal128(p, m)), Some(DataType::Decimal128(q, n))) = (left, right) else {
        return None;
    };
    let (before, behind) = ((i16::from(p) - i16::from(m)).max(i16::from(q) - i16::from(n)), m.max(n));
    let precision = u8::try_from(before + i16::from(behind)).ok()?.min(DECIMAL128_MAX_PRECISION);
    (m != n).then_some(DataType::Decimal128(precision, behind))
}

/// Gives `floor`, `ceil`, `trunc` and `round` of numerics the scale of their results. Runs before
/// type coercion, so that the other operands are coerced to the call's final type.
pub(crate) fn digits_in_expr(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let changed = with_numeric(expr, schema);
    let Expr::ScalarFunction(call) = &changed.data else { return changed };
    let of = call.args.first().filter(|_| ROUNDS.contains(&call.name())).and_then(|of| type_of(of, schema));
    match of.and_then(|of| with_digits(call, &of)) {
        Some(to) => Transformed::yes(Expr::Cast(Cast::new(Box::new(changed.data), to))),
        None => changed,
    }
}

/// Functions whose result has another scale than their argument.
const ROUNDS: [&str; 4] = ["floor", "ceil", "trunc", "round"];

/// Digits of the largest bigint.
const WHOLE_DIGITS: u8 = 19;

/// Casts the integer argument of `round` and `trunc` with a digit count to numeric, since the
/// result is a numeric.
fn with_numeric(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::ScalarFunction(mut call)
            if call.args.len() == 2 && ["trunc", "round"].contains(&call.name()) =>
        {
            let mut is_changed = false;
            if let Some(of) = call.args.first_mut()
                && type_of(of, schema).is_some_and(|kind| kind.is_integer())
            {
                let whole = std::mem::take(of);
                *of = Expr::Cast(Cast::new(Box::new(whole), DataType::Decimal128(WHOLE_DIGITS, 0)));
                is_changed = true;
            }
            Transformed::new_transformed(Expr::ScalarFunction(call), is_changed)
        }
        expr => Transformed::no(expr),
    }
}

/// Returns the result type of such a call on a numeric; `None` where the declared type is right.
fn with_digits(call: &ScalarFunction, of: &DataType) -> Option<DataType> {
    let DataType::Decimal128(precision, had) = of else { return None };
    let digits = digits_left(call, *had)?;
    // Rounding up may carry into one more digit before the point.
    let before = i16::from(*precision) - i16::from(*had) + 1;
    let precision = (before + i16::from(digits)).clamp(1, i16::from(DECIMAL128_MAX_PRECISION));
    Some(DataType::Decimal128(u8::try_from(precision).ok()?, digits))
}

/// The largest scale that such a call may add, so that there is room before the point.
const MOST_DIGITS: i8 = 20;

/// Returns the scale of the result of `floor`, `ceil`, `trunc` or `round`, where it differs from
/// the argument's; `None` for other calls.
fn digits_left(call: &ScalarFunction, had: i8) -> Option<i8> {
    let digits = match (call.name(), call.args.get(1)) {
        ("floor" | "ceil" | "trunc", None) => 0,
        ("trunc" | "round", Some(digits)) => whole(digits)?,
        _ => return None,
    };
    let digits = i8::try_from(digits.max(0)).ok()?;
    (digits < had || digits > had && digits <= MOST_DIGITS).then_some(digits)
}

/// Returns the value of a constant integer of any type.
fn whole(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::Int64(value), _) => *value,
        Expr::Literal(ScalarValue::Int32(value), _) => value.map(i64::from),
        Expr::Cast(Cast { expr, field }) if field.data_type().is_integer() => whole(expr),
        Expr::Negative(of) => whole(of)?.checked_neg(),
        _ => None,
    }
}
