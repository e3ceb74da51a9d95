//! Types and names of expressions that are deep, as sums of a thousand terms.
//!
//! DataFusion knows the type of a function's result by the fields of its arguments, each with a
//! name that has all that is below in full. Rules ask for the type of each step, so the work would
//! grow with the cube of how many there are. Functions of ours that stand above each other know
//! their type and have a short name, made when they are.

use std::hash::{DefaultHasher, Hash, Hasher};

use arrow::datatypes::DataType;
use datafusion::common::ExprSchema;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::type_coercion::other::get_coerce_type_for_case_expression;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF};

use super::{numbers, quotients};

/// The type of an expression, if it has one by now.
pub(super) fn type_of(expr: &Expr, schema: &dyn ExprSchema) -> Option<DataType> {
    Typing { schema, last: None }.of(expr)
}

/// Finds types. Most steps of a long sum are of the same types as the one before.
struct Typing<'a> {
    schema: &'a dyn ExprSchema,
    last: Option<Step>,
}

struct Step {
    operands: (DataType, DataType),
    op: Operator,
    result: DataType,
}

impl Typing<'_> {
    fn of(&mut self, expr: &Expr) -> Option<DataType> {
        match expr {
            Expr::Alias(alias) if !matches!(*alias.expr, Expr::Placeholder(_)) => self.of(&alias.expr),
            Expr::Column(column) => self.schema.data_type(column).ok().cloned(),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let operands = (self.of(left)?, self.of(right)?);
                if let Some(last) = self.last.as_ref().filter(|last| last.op == *op)
                    && last.operands == operands
                {
                    return Some(last.result.clone());
                }
                let result = BinaryTypeCoercer::new(&operands.0, op, &operands.1).get_result_type().ok()?;
                self.last = Some(Step { operands, op: *op, result: result.clone() });
                Some(result)
            }
            // DataFusion takes the first result's type, until it has made all of them one.
            Expr::Case(case) => {
                let results = case.when_then_expr.iter().map(|(_, then)| self.of(then));
                let results = results.collect::<Option<Vec<DataType>>>()?;
                let otherwise = match &case.else_expr {
                    Some(otherwise) => Some(self.of(otherwise)?),
                    None => None,
                };
                get_coerce_type_for_case_expression(&results, otherwise.as_ref())
            }
            Expr::ScalarFunction(call) => known(&call.func).or_else(|| expr.get_type(self.schema).ok()),
            expr => expr.get_type(self.schema).ok(),
        }
    }
}

/// The type that a function of ours gives, whatever its arguments.
fn known(function: &ScalarUDF) -> Option<DataType> {
    numbers::result_of(function).or_else(|| quotients::result_of(function))
}

/// A name for a call of something that is a call itself; `None` for others, whose names are short
/// in full.
pub(super) fn short_name(function: &str, arguments: &[Expr]) -> Option<String> {
    if !arguments.iter().any(|argument| matches!(argument, Expr::ScalarFunction(_))) {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    for argument in arguments {
        match argument {
            Expr::ScalarFunction(call) => {
                match numbers::name_of(&call.func).or_else(|| quotients::name_of(&call.func)) {
                    Some(name) => name.hash(&mut hasher),
                    None => argument.hash(&mut hasher),
                }
            }
            argument => argument.hash(&mut hasher),
        }
    }
    Some(format!("{function}({:x})", hasher.finish()))
}

/// The name of a call in full.
pub(super) fn full_name(function: &str, arguments: &[Expr]) -> String {
    let names: Vec<String> = arguments.iter().map(|argument| argument.schema_name().to_string()).collect();
    format!("{function}({})", names.join(","))
}
