//! Functions that DataFusion lacks, or that PostgreSQL defines differently.

pub(crate) mod direct_functions;
pub(crate) mod empty_batches;
pub(crate) mod fields;
pub(crate) mod list_casts;
pub(crate) mod list_markers;
pub(crate) mod ranks;
pub(crate) mod sequences;
pub(crate) mod series;
pub(crate) mod single_value;
pub(crate) mod system_functions;
pub(crate) mod time_zones;

use std::fmt;

use arrow::datatypes::{DataType, Field, FieldRef};
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};

use crate::batch::{data_type, field};
use crate::datum::Datum;
use crate::error::Error;
use crate::expr::{first_match, split};
use crate::general::aggregates::{self, keeping, statistics_of};
use crate::general::errors::external;
use crate::general::rewrite::{ESCAPED, SIMILAR, escaped, similar};
use crate::general::rules::quotients;
use crate::general::rules::text_casts;
use crate::general::tree::values::scalar;
use crate::sqlstate::{INVALID_PARAMETER_VALUE, UNDEFINED_FUNCTION};

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

/// `encode(bytes, format)`. DataFusion's base64 has no padding and no line breaks.
fn encode() -> ScalarUDF {
    RowFunction::new("encode", &[2], DataType::Utf8View, |values| {
        let bytes = match values.first() {
            Some(
                ScalarValue::BinaryView(Some(bytes))
                | ScalarValue::Binary(Some(bytes))
                | ScalarValue::LargeBinary(Some(bytes)),
            ) => bytes,
            Some(value) if value.is_null() => return Ok(ScalarValue::Utf8View(None)),
            _ => {
                let what = "function encode(text, text) does not exist";
                return Err(external(Error::new(UNDEFINED_FUNCTION, what)));
            }
        };
        let Some(format) = values.get(1).and_then(text_of) else { return Ok(ScalarValue::Utf8View(None)) };
        let text = match format.to_ascii_lowercase().as_str() {
            "hex" => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            "base64" => base64(bytes),
            "escape" => escape(bytes),
            other => {
                let what = format!("unrecognized encoding: \"{other}\"");
                return Err(external(Error::new(INVALID_PARAMETER_VALUE, what)));
            }
        };
        Ok(ScalarValue::Utf8View(Some(text)))
    })
}

/// With padding, in lines of 76 characters.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for (at, group) in bytes.chunks(3).enumerate() {
        if at > 0 && at % 19 == 0 {
            text.push('\n');
        }
        let bits =
            group.iter().enumerate().fold(0_u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for digit in 0..4 {
            let place = (bits >> (18 - 6 * digit)) & 63;
            let character = DIGITS.get(place as usize).copied().unwrap_or(b'=');
            text.push(if digit <= group.len() { char::from(character) } else { '=' });
        }
    }
    text
}

/// Writes zero bytes and bytes from 128 as a backslash and octal digits.
fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            0 | 128.. => text.push_str(&format!("\\{byte:03o}")),
            b'\\' => text.push_str("\\\\"),
            plain => text.push(char::from(plain)),
        }
    }
    text
}

/// `to_hex(number)`. A negative integer has 32 bits, where DataFusion prints 64.
fn to_hex() -> ScalarUDF {
    RowFunction::new("to_hex", &[1], DataType::Utf8View, |values| {
        let text = match values.first() {
            Some(ScalarValue::Int16(Some(value))) => format!("{:x}", i32::from(*value)),
            Some(ScalarValue::Int32(Some(value))) => format!("{value:x}"),
            Some(ScalarValue::Int64(Some(value))) => format!("{value:x}"),
            Some(value) if value.is_null() => return Ok(ScalarValue::Utf8View(None)),
            _ => {
                let what = "to_hex is of integers";
                return Err(external(Error::new(UNDEFINED_FUNCTION, what)));
            }
        };
        Ok(ScalarValue::Utf8View(Some(text)))
    })
}

/// Creates a function from texts to a list of texts. A NULL argument gives NULL.
fn list_of_texts(
    name: &str,
    counts: &[usize],
    of: impl Fn(&[String]) -> crate::Result<Datum> + Send + Sync + 'static,
) -> ScalarUDF {
    let kind = ColumnType::from(cairn_table::row::Type::Text).list_of();
    RowFunction::new(name, counts, DataType::new_list(DataType::Utf8View, true), move |values| {
        let given: Option<Vec<String>> = values.iter().map(text_of).collect();
        let list = given.map_or(Ok(Datum::Null), |given| of(&given)).map_err(external)?;
        scalar(list.borrow(), &kind)
    })
}

/// Registers our functions, replacing DataFusion's of the same names.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    for name in empty_batches::FUNCTIONS {
        if let Some(function) = state.scalar_functions().get(name).cloned() {
            state.register_udf(Arc::new(empty_batches::tolerant(function)))?;
        }
    }
    let names = ["current_timestamp", "transaction_timestamp"];
    state.register_udf(Arc::new(RowFunction::moment(NOW, true).with_aliases(names)))?;
    state.register_udf(Arc::new(RowFunction::moment(STATEMENT, true)))?;
    state.register_udf(Arc::new(RowFunction::moment(LOCAL, false)))?;
    state.register_udf(Arc::new(text_casts::zoned()))?;
    state.register_udf(Arc::new(text_casts::numeric()))?;
    for name in direct_functions::FUNCTIONS {
        state.register_udf(Arc::new(direct_functions::function(name)))?;
    }
    state.register_udf(direct_functions::span())?;
    for function in [
        direct_functions::to_time(),
        direct_functions::to_moment(),
        direct_functions::to_varchar(),
        encode(),
        to_hex(),
    ] {
        state.register_udf(Arc::new(function))?;
    }
    for name in ["min", "max", "array_agg"] {
        let of = state.udaf(name)?;
        state.register_udaf(Arc::new(keeping(of)))?;
    }
    state.register_udaf(aggregates::sum())?;
    for name in aggregates::STATISTICS {
        let of = state.udaf(name)?;
        state.register_udaf(Arc::new(statistics_of(of)))?;
    }
    for (name, kind) in ranks::RANKS {
        let of = state.udwf(name)?;
        state.register_udwf(Arc::new(ranks::rank(of, kind)))?;
    }
    state.register_udf(Arc::new(crate::general::functions::time_zones::at_zone()))?;
    state.register_udf(crate::general::rules::zone_marks::unmark())?;
    state.register_expr_planner(Arc::new(direct_functions::Times))?;
    state.register_expr_planner(Arc::new(quotients::Untyped))?;
    state.register_udf(Arc::new(crate::general::functions::list_markers::list_marker()))?;
    state.register_udf(Arc::new(single_value::single_value()))?;
    state.register_udf(Arc::new(crate::general::operators::shared_cte::marker()))?;
    state.register_udf(Arc::new(crate::general::plan::recursion::branch()))?;
    state.register_udf(Arc::new(single_value::nullable()))?;
    state.register_udf(Arc::new(single_value::without_metadata()))?;
    state.register_udf(Arc::new(direct_functions::to("cairn_uuid", cairn_table::row::Type::Uuid.into())))?;
    state.register_udf(Arc::new(RowFunction::new(ESCAPED, &[2], DataType::Utf8View, |values| {
        let (pattern, escape) = (values.first().and_then(text_of), values.get(1).and_then(text_of));
        let (Some(pattern), Some(escape)) = (pattern, escape) else {
            return Ok(ScalarValue::Utf8View(None));
        };
        Ok(ScalarValue::Utf8View(Some(escaped(&pattern, &escape).map_err(external)?)))
    })))?;
    state.register_udf(Arc::new(RowFunction::new(SIMILAR, &[2], DataType::Utf8View, |values| {
        let (pattern, escape) = (values.first().and_then(text_of), values.get(1).and_then(text_of));
        let (Some(pattern), Some(escape)) = (pattern, escape) else {
            return Ok(ScalarValue::Utf8View(None));
        };
        Ok(ScalarValue::Utf8View(Some(similar(&pattern, &escape).map_err(external)?)))
    })))?;
    state.register_udf(Arc::new(direct_functions::to("cairn_bytea", cairn_table::row::Type::Blob.into())))?;
    state.register_udf(Arc::new(direct_functions::to(
        crate::general::rewrite::INTERVAL,
        cairn_table::row::Type::Interval.into(),
    )))?;
    for function in list_casts::functions() {
        state.register_udf(Arc::new(function))?;
    }
    state.register_udf(Arc::new(list_casts::has()))?;
    for function in list_casts::measures() {
        state.register_udf(Arc::new(function))?;
    }
    state.register_udf(Arc::new(direct_functions::to("cairn_to_json", ColumnType::json())))?;
    state.register_udf(Arc::new(direct_functions::to("cairn_text", cairn_table::row::Type::Text.into())))?;
    for function in crate::general::functions::fields::functions() {
        state.register_udf(Arc::new(function))?;
    }
    state.register_udaf(Arc::new(crate::general::aggregates::string_agg::string_agg()))?;
    state.register_udf(Arc::new(list_of_texts("regexp_match", &[2, 3], |given| match given {
        [text, pattern, flags @ ..] => first_match(text, pattern, flags.first().map_or("", String::as_str)),
        _ => Ok(Datum::Null),
    })))?;
    state.register_udf(Arc::new(list_of_texts("regexp_split_to_array", &[2, 3], |given| match given {
        [text, pattern, flags @ ..] => split(text, pattern, flags.first().map_or("", String::as_str)),
        _ => Ok(Datum::Null),
    })))?;
    Ok(())
}
