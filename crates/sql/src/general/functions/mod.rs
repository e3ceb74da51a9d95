//! Functions that DataFusion lacks, or that PostgreSQL defines differently.

pub(crate) mod direct_functions;
pub(crate) mod empty_batches;
pub(crate) mod exact_functions;
pub(crate) mod fields;
pub(crate) mod list_casts;
pub(crate) mod list_markers;
pub(crate) mod number_functions;
pub(crate) mod ranks;
pub(crate) mod register;
pub(crate) mod sequences;
pub(crate) mod series;
pub(crate) mod single_value;
pub(crate) mod system_functions;
mod texts;
pub(crate) mod time_zones;

use std::fmt;

use arrow::datatypes::{DataType, Field, FieldRef};
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};

use crate::batch::{data_type, field};

/// The placeholder function for the time of the transaction, replaced once it is known.
pub(crate) const NOW: &str = "now";

/// Like [`NOW`], but in local time.
pub(crate) const LOCAL: &str = "localtimestamp";

/// Like [`NOW`], but the time of the statement.
pub(crate) const STATEMENT: &str = "statement_timestamp";

/// Computes a function on the values of one row.
type Row = dyn Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync;

/// A function evaluated row by row, for functions that are rarely called.
pub(crate) struct RowFunction {
    name: String,
    signature: Signature,
    result: DataType,
    /// Whether its timestamps have a time zone.
    is_zoned: bool,
    row: Arc<Row>,
}

impl RowFunction {
    #[allow(clippy::new_ret_no_self, reason = "nobody sees it but as a function")]
    /// Creates a function. `counts`: the numbers of arguments that it accepts, of any type.
    pub fn new(
        name: &str,
        counts: &[usize],
        result: DataType,
        row: impl Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync + 'static,
    ) -> ScalarUDF {
        RowFunction::with(name, counts, result, Volatility::Stable, row)
    }

    /// Like [`RowFunction::new`], but with a new result for each call.
    pub fn volatile(
        name: &str,
        counts: &[usize],
        result: DataType,
        row: impl Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync + 'static,
    ) -> ScalarUDF {
        RowFunction::with(name, counts, result, Volatility::Volatile, row)
    }

    /// Like [`RowFunction::volatile`], but without arguments and with a timestamp with time zone as
    /// result.
    pub fn clock(
        name: &str,
        row: impl Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync + 'static,
    ) -> ScalarUDF {
        ScalarUDF::from(RowFunction {
            name: name.to_owned(),
            signature: Signature::one_of(vec![TypeSignature::Nullary], Volatility::Volatile),
            result: data_type(&ColumnType::zoned()),
            is_zoned: true,
            row: Arc::new(row),
        })
    }

    fn with(
        name: &str,
        counts: &[usize],
        result: DataType,
        volatility: Volatility,
        row: impl Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync + 'static,
    ) -> ScalarUDF {
        let one =
            |&count: &usize| if count == 0 { TypeSignature::Nullary } else { TypeSignature::Any(count) };
        let signature = Signature::one_of(counts.iter().map(one).collect(), volatility);
        let (name, row) = (name.to_owned(), Arc::new(row));
        ScalarUDF::from(RowFunction { name, signature, result, is_zoned: false, row })
    }

    /// Creates a placeholder for a time, which is replaced before the query runs.
    fn moment(name: &str, is_zoned: bool) -> ScalarUDF {
        let row = |_: &[ScalarValue]| {
            Err(DataFusionError::Internal("the time of the transaction is not known".to_owned()))
        };
        ScalarUDF::from(RowFunction {
            name: name.to_owned(),
            signature: Signature::one_of(vec![TypeSignature::Nullary], Volatility::Stable),
            result: data_type(&ColumnType::zoned()),
            is_zoned,
            row: Arc::new(row),
        })
    }
}

/// Returns a value as text; `None` for NULL.
pub(crate) fn text_of(value: &ScalarValue) -> Option<String> {
    match value {
        value if value.is_null() => None,
        ScalarValue::Utf8(Some(text))
        | ScalarValue::Utf8View(Some(text))
        | ScalarValue::LargeUtf8(Some(text)) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

impl fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowFunction").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.row, &other.row)
    }
}

impl Eq for RowFunction {}

impl std::hash::Hash for RowFunction {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.result.clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(match self.is_zoned {
            true => field(&self.name, &ColumnType::zoned(), true),
            false => Field::new(&self.name, self.result.clone(), true),
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = self.signature.volatility != Volatility::Volatile
            && args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let mut results = Vec::with_capacity(rows);
        for row in 0..rows {
            let value = |value: &ColumnarValue| match value {
                ColumnarValue::Scalar(scalar) => Ok(scalar.clone()),
                ColumnarValue::Array(array) => ScalarValue::try_from_array(array, row),
            };
            let values = args.args.iter().map(value).collect::<Result<Vec<_>>>()?;
            results.push((self.row)(&values)?);
        }
        if constant && let Some(only) = results.pop() {
            return Ok(ColumnarValue::Scalar(only));
        }
        if results.is_empty() {
            return Ok(ColumnarValue::Array(arrow::array::new_empty_array(&self.result)));
        }
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(results)?))
    }
}
