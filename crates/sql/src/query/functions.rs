//! Functions that DataFusion has not, or has otherwise than PostgreSQL.

use std::fmt;

use arrow::datatypes::{DataType, TimeUnit};
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::errors::external;
use super::read;
use super::rewrite::{ESCAPED, escaped};
use super::single;
use crate::datum::Datum;

/// What the time of the transaction is called until it is known.
pub(super) const NOW: &str = "now";

/// What a function does with one row's values.
type Row = dyn Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync;

/// A function that looks at one row at a time: for what is rarely called.
pub(super) struct RowFunction {
    name: String,
    signature: Signature,
    result: DataType,
    row: Arc<Row>,
}

impl RowFunction {
    #[allow(clippy::new_ret_no_self, reason = "nobody sees it but as a function")]
    /// `counts`: how many arguments it may have, of whatever types.
    pub fn new(
        name: &str,
        counts: &[usize],
        result: DataType,
        row: impl Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync + 'static,
    ) -> ScalarUDF {
        RowFunction::with(name, counts, result, Volatility::Stable, row)
    }

    /// As [`RowFunction::new`], with something else to give at each call.
    pub fn volatile(
        name: &str,
        counts: &[usize],
        result: DataType,
        row: impl Fn(&[ScalarValue]) -> Result<ScalarValue> + Send + Sync + 'static,
    ) -> ScalarUDF {
        RowFunction::with(name, counts, result, Volatility::Volatile, row)
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
        ScalarUDF::from(RowFunction { name: name.to_owned(), signature, result, row: Arc::new(row) })
    }

    /// As [`RowFunction::new`], of texts and with one for a result; NULL for NULL.
    pub fn text(
        name: &str,
        counts: &[usize],
        row: impl Fn(&[String]) -> Option<String> + Send + Sync + 'static,
    ) -> ScalarUDF {
        RowFunction::new(name, counts, DataType::Utf8View, move |values| {
            let texts: Option<Vec<String>> = values.iter().map(text_of).collect();
            Ok(ScalarValue::Utf8View(texts.and_then(|texts| row(&texts))))
        })
    }
}

/// A value's text; `None` for NULL.
pub(super) fn text_of(value: &ScalarValue) -> Option<String> {
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

/// Puts our functions over DataFusion's.
pub(super) fn register(state: &mut SessionState) -> Result<()> {
    // The time of the transaction is put in its place before it runs.
    let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
    let unknown = |_: &[ScalarValue]| {
        Err(DataFusionError::Internal("the time of the transaction is not known".to_owned()))
    };
    let now = RowFunction::new(NOW, &[0], timestamp, unknown);
    let names = [
        "current_timestamp",
        "transaction_timestamp",
        "statement_timestamp",
        "localtimestamp",
        "clock_timestamp",
    ];
    state.register_udf(Arc::new(now.with_aliases(names)))?;
    state.register_udf(Arc::new(read::zoned()))?;
    state.register_udf(Arc::new(read::numeric()))?;
    state.register_udf(Arc::new(single::one()))?;
    state.register_udf(Arc::new(single::maybe()))?;
    state.register_udf(Arc::new(RowFunction::text("cairn_uuid", &[1], |texts| {
        let text = texts.first()?;
        Datum::parse(text, &cairn_table::row::Type::Uuid.into()).ok().map(|datum| datum.to_string())
    })))?;
    state.register_udf(Arc::new(RowFunction::new(ESCAPED, &[2], DataType::Utf8View, |values| {
        let (pattern, escape) = (values.first().and_then(text_of), values.get(1).and_then(text_of));
        let (Some(pattern), Some(escape)) = (pattern, escape) else {
            return Ok(ScalarValue::Utf8View(None));
        };
        Ok(ScalarValue::Utf8View(Some(escaped(&pattern, &escape).map_err(external)?)))
    })))?;
    let bytes = |values: &[ScalarValue]| {
        let Some(text) = values.first().and_then(text_of) else { return Ok(ScalarValue::BinaryView(None)) };
        match Datum::parse(&text, &cairn_table::row::Type::Blob.into()) {
            Ok(Datum::Blob(bytes)) => Ok(ScalarValue::BinaryView(Some(bytes))),
            Ok(_) => Ok(ScalarValue::BinaryView(None)),
            Err(error) => Err(external(error)),
        }
    };
    state.register_udf(Arc::new(RowFunction::new("cairn_bytea", &[1], DataType::BinaryView, bytes)))?;
    Ok(())
}
