//! DataFusion functions that fail on a constant numeric in an empty batch: they read the first of
//! as many values as there are rows.

use arrow::datatypes::DataType;
use cairn_vfs::sync::Arc;
use datafusion::error::Result;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature};

/// The affected functions.
pub(crate) const FUNCTIONS: [&str; 2] = ["floor", "ceil"];

/// Wraps a function so that it evaluates constants for at least one row.
pub(crate) fn tolerant(function: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::from(Tolerant { aliases: function.aliases().to_vec(), function })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Tolerant {
    function: Arc<ScalarUDF>,
    aliases: Vec<String>,
}

impl ScalarUDFImpl for Tolerant {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.function.return_type(kinds)
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_))) {
            args.number_rows = args.number_rows.max(1);
        }
        self.function.invoke_with_args(args)
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.function.output_ordering(input)
    }
}
