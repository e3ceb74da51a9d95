//! Types and names of deep expressions, such as sums of a thousand terms.
//!
//! DataFusion derives the type of a function call from the fields of its arguments, and each field
//! has a name that spells out the whole expression below it. Rules ask for the type at every step,
//! so the work would be cubic in the number of steps. Nested calls of our functions store their
//! type and a short name, both computed when the call is created.

use std::hash::{DefaultHasher, Hash, Hasher};

use arrow::datatypes::DataType;
use datafusion::common::ExprSchema;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::type_coercion::other::get_coerce_type_for_case_expression;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF};

use crate::general::functions::{exact_functions, number_functions};

/// Returns the type of an expression, if it is known yet.
pub(crate) fn type_of(expr: &Expr, schema: &dyn ExprSchema) -> Option<DataType> {
    Typing { schema, last: None }.of(expr)
}

/// Infers types. It caches the last step, because most steps of a long sum have the same types.
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
            // DataFusion takes the type of the first result until it has coerced all results to one
            // type.
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

/// Returns the result type of a function of ours, which does not depend on its arguments.
fn known(function: &ScalarUDF) -> Option<DataType> {
    number_functions::result_of(function).or_else(|| exact_functions::result_of(function))
}

/// Returns a short name for a call whose arguments include a call. `None` for others, whose full
/// names are short.
pub(crate) fn short_name(function: &str, arguments: &[Expr]) -> Option<String> {
    if !arguments.iter().any(|argument| matches!(argument, Expr::ScalarFunction(_))) {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    for argument in arguments {
        match argument {
            Expr::ScalarFunction(call) => {
                match number_functions::name_of(&call.func).or_else(|| exact_functions::name_of(&call.func)) {
                    Some(name) => name.hash(&mut hasher),
                    None => argument.hash(&mut hasher),
                }
            }
            argument => argument.hash(&mut hasher),
        }
    }
    Some(format!("{function}({:x})", hasher.finish()))
}

/// Returns the full name of a call.
pub(crate) fn full_name(function: &str, arguments: &[Expr]) -> String {
    let names: Vec<String> = arguments.iter().map(|argument| argument.schema_name().to_string()).collect();
    format!("{function}({})", names.join(","))
}
