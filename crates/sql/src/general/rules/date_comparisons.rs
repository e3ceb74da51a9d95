//! Turns comparisons of dates with timestamps into comparisons of dates. As in PostgreSQL, the
//! right side of `d < date '1995-01-01' + interval '1 year'` is a timestamp, so every date would be
//! cast to a timestamp. Bounds of a tree scan and conditions on leaves need plain dates.

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::general::tree::walk::{Walk, WalkPlan};
use arrow::datatypes::DataType;
use datafusion::common::ExprSchema;

/// The rule. It runs after constant folding.
#[derive(Debug)]
pub(crate) struct DateComparisons;

impl OptimizerRule for DateComparisons {
    fn name(&self) -> &str {
        "cairn_days"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        plan.walk_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.walk_up(|expr| Ok(compared(expr, &schema)))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })
    }
}

fn compared(expr: Expr, schema: &dyn ExprSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expr else { return Transformed::no(expr) };
    let found = match (date(left, schema), date(right, schema)) {
        (Some(date), None) => bound(*op, right).map(|(op, day)| (date, op, day)),
        (None, Some(date)) => op.swap().and_then(|op| bound(op, left)).map(|(op, day)| (date, op, day)),
        _ => None,
    };
    match found {
        Some((date, op, day)) => {
            let day = Expr::Literal(ScalarValue::Date32(Some(day)), None);
            Transformed::yes(Expr::BinaryExpr(BinaryExpr {
                left: Box::new(date.clone()),
                op,
                right: Box::new(day),
            }))
        }
        None => Transformed::no(expr),
    }
}

/// Returns the date under a cast to timestamp.
fn date<'e>(expr: &'e Expr, schema: &dyn ExprSchema) -> Option<&'e Expr> {
    match expr {
        Expr::Cast(Cast { expr, field }) if matches!(field.data_type(), DataType::Timestamp(_, None)) => {
            matches!(expr.get_type(schema), Ok(DataType::Date32)).then_some(&**expr)
        }
        _ => None,
    }
}

/// Returns the comparison with a day that is equivalent to a comparison with a timestamp. A date
/// counts as its midnight.
fn bound(op: Operator, moment: &Expr) -> Option<(Operator, i32)> {
    let Expr::Literal(moment, _) = moment else { return None };
    let (moment, day) = match moment {
        ScalarValue::TimestampNanosecond(Some(moment), None) => (moment, 86_400_000_000_000),
        ScalarValue::TimestampMicrosecond(Some(moment), None) => (moment, 86_400_000_000),
        ScalarValue::TimestampMillisecond(Some(moment), None) => (moment, 86_400_000),
        ScalarValue::TimestampSecond(Some(moment), None) => (moment, 86_400),
        _ => return None,
    };
    let is_midnight = moment.rem_euclid(day) == 0;
    let op = match op {
        // A date before a moment within a day is on that day or earlier.
        Operator::Lt if !is_midnight => Operator::LtEq,
        Operator::GtEq if !is_midnight => Operator::Gt,
        Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => op,
        Operator::Eq | Operator::NotEq if is_midnight => op,
        _ => return None,
    };
    Some((op, i32::try_from(moment.div_euclid(day)).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a comparison of dates agrees with the comparison of their midnights.
    /// Method: all operators, days before and after 1970, moments at and around midnight, in all
    /// units.
    #[test]
    fn days_compare_as_their_first_moments() {
        let all = [Operator::Lt, Operator::LtEq, Operator::Gt, Operator::GtEq, Operator::Eq, Operator::NotEq];
        fn holds<T: PartialOrd>(op: Operator, left: T, right: T) -> bool {
            match op {
                Operator::Lt => left < right,
                Operator::LtEq => left <= right,
                Operator::Gt => left > right,
                Operator::GtEq => left >= right,
                Operator::Eq => left == right,
                _ => left != right,
            }
        }
        for (unit, literal) in [
            (1_000_000_000, ScalarValue::TimestampNanosecond as fn(Option<i64>, _) -> ScalarValue),
            (1_000_000, ScalarValue::TimestampMicrosecond),
            (1_000, ScalarValue::TimestampMillisecond),
            (1, ScalarValue::TimestampSecond),
        ] {
            for (day, off) in
                [-400, -1, 0, 1, 9000].into_iter().flat_map(|day| [(day, -1), (day, 0), (day, 1)])
            {
                let moment = day * 86_400 * unit + off;
                for op in all {
                    let expr = Expr::Literal(literal(Some(moment), None), None);
                    let found = bound(op, &expr);
                    assert_eq!(found.is_none(), off != 0 && matches!(op, Operator::Eq | Operator::NotEq));
                    let Some((as_days, bound)) = found else { continue };
                    for other in day - 2..=day + 2 {
                        let expected = holds(op, other * 86_400 * unit, moment);
                        assert_eq!(
                            holds(as_days, other, i64::from(bound)),
                            expected,
                            "{other} {op} {moment}"
                        );
                    }
                }
            }
        }
    }
}
