//! PostgreSQL's result types for `generate_series`: a series of integers consists of integers.
//! DataFusion's consists of bigints, so that `to_hex(n)` would have sixteen digits, `sum(n)` would
//! be a numeric, and `n * 2` would not overflow at the integer limit.

use arrow::datatypes::{DataType, Field};
use cairn_vfs::sync::Arc;
use datafusion::common::{DFSchema, ExprSchema};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlanBuilder, TableSource};

/// Its name as a table and as a function.
pub(crate) const NAME: &str = "generate_series";

/// Whether a series with such arguments consists of integers. NULL has no type of its own.
fn is_narrow(arguments: &[Expr], schema: &dyn ExprSchema) -> bool {
    let mut kinds = arguments.iter().map(|argument| argument.get_type(schema));
    let mut has_integer = false;
    kinds.all(|kind| match kind {
        Ok(DataType::Int16 | DataType::Int32) => {
            has_integer = true;
            true
        }
        Ok(kind) => kind == DataType::Null,
        Err(_) => false,
    }) && has_integer
}

/// Widens an argument to bigint, the only integer type that DataFusion accepts here.
pub(crate) fn wide(argument: Expr) -> Expr {
    match argument.get_type(&DFSchema::empty()) {
        Ok(DataType::Int16 | DataType::Int32) => Expr::Cast(Cast::new(Box::new(argument), DataType::Int64)),
        _ => argument,
    }
}

/// Casts the result of a call to a list of integers if its arguments are integers.
pub(crate) fn call(function: ScalarFunction, schema: &dyn ExprSchema) -> Expr {
    let is_narrow = is_narrow(&function.args, schema);
    let series = Expr::ScalarFunction(function);
    if !is_narrow {
        return series;
    }
    let integers = DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true)));
    Expr::Cast(Cast::new(Box::new(series), integers))
}

/// Casts the series `source` to integers if its arguments are integers.
///
/// Errors: none known.
pub(crate) fn table(source: Arc<dyn TableSource>, arguments: &[Expr]) -> Result<Arc<dyn TableSource>> {
    if !is_narrow(arguments, &DFSchema::empty()) {
        return Ok(source);
    }
    let scan = LogicalPlanBuilder::scan(NAME, source, None)?;
    let columns = scan.schema().columns().into_iter();
    let integers: Vec<Expr> = columns
        .map(|column| {
            let name = column.name.clone();
            Expr::Cast(Cast::new(Box::new(Expr::Column(column)), DataType::Int32)).alias(name)
        })
        .collect();
    let plan = scan.project(integers)?.build()?;
    Ok(provider_as_source(Arc::new(ViewTable::new(plan, None))))
}
