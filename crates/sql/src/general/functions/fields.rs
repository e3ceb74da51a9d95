//! Fields of dates, times and intervals (`extract`). They are numerics: `extract(year from d) / 2`
//! is not an integer division.

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::datatypes::{
    DataType, Date32Type, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType,
};
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::batch::sql_types;
use crate::datum::{Datum, DatumRef, rescale};
use crate::error::Error;
use crate::expr::extract;
use crate::general::errors::external;
use crate::general::functions::text_of;
use crate::general::markers::DATE_PART;
use crate::sqlstate::UNDEFINED_FUNCTION;

/// The functions that return fields, with their scales: 0, 3 or 6 digits.
pub(crate) const FIELDS: [(&str, u8); 4] =
    [("cairn_part", 0), ("cairn_part_3", 3), ("cairn_part_6", 6), (DATE_PART, 6)];

/// Returns the name of the function for a field.
pub(crate) fn name_for(field: &str) -> &'static str {
    match field.to_ascii_lowercase().as_str() {
        "second" | "seconds" | "epoch" | "julian" => "cairn_part_6",
        "millisecond" | "milliseconds" => "cairn_part_3",
        _ => "cairn_part",
    }
}

/// Returns the functions: `cairn_part('year', x)`.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    FIELDS.into_iter().map(|(name, scale)| {
        ScalarUDF::from(DateField { name, scale, signature: Signature::any(2, Volatility::Immutable) })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateField {
    name: &'static str,
    /// Digits after the point.
    scale: u8,
    signature: Signature,
}

impl ScalarUDFImpl for DateField {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let is_time = |kind: &DataType| {
            matches!(
                kind,
                DataType::Date32
                    | DataType::Time64(TimeUnit::Microsecond)
                    | DataType::Timestamp(..)
                    | DataType::Interval(IntervalUnit::MonthDayNano)
                    | DataType::Null
            )
        };
        match kinds.get(1) {
            Some(kind) if !is_time(kind) => {
                let kind = sql_types(&kind.to_string());
                let what = format!("function pg_catalog.extract(unknown, {kind}) does not exist");
                Err(external(Error::new(UNDEFINED_FUNCTION, what)))
            }
            _ => Ok(DataType::Decimal128(38, self.scale as i8)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [field, of] = args.args.as_slice() else {
            return Err(DataFusionError::Internal(format!("{} has other arguments", self.name)));
        };
        let is_scalar = matches!(of, ColumnarValue::Scalar(_));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let field = match field {
            ColumnarValue::Scalar(field) => text_of(field).unwrap_or_default().to_ascii_lowercase(),
            ColumnarValue::Array(_) => {
                return Err(DataFusionError::Internal("a part that is no constant".to_owned()));
            }
        };
        let parts = self.parts(&field, &of.to_array(rows)?)?;
        match is_scalar {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&parts, 0)?)),
            false => Ok(ColumnarValue::Array(parts)),
        }
    }
}

impl DateField {
    fn parts(&self, field: &str, of: &ArrayRef) -> Result<ArrayRef> {
        let each = |values: &mut dyn Iterator<Item = Option<DatumRef<'static>>>| {
            let part = |value: Option<DatumRef<'static>>| {
                let Some(value) = value else { return Ok(None) };
                match extract(field, value).map_err(external)? {
                    Datum::Decimal { unscaled, scale } => Ok(rescale(unscaled, scale, self.scale)),
                    _ => Ok(None),
                }
            };
            values.map(part).collect::<Result<Decimal128Array>>()
        };
        let parts = match of.data_type() {
            DataType::Date32 if self.name != DATE_PART => {
                each(&mut of.as_primitive::<Date32Type>().iter().map(|day| day.map(DatumRef::Date)))
            }
            DataType::Time64(TimeUnit::Microsecond) => {
                each(&mut of.as_primitive::<Time64MicrosecondType>().iter().map(|at| at.map(DatumRef::Time)))
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                let spans = of.as_primitive::<IntervalMonthDayNanoType>().iter();
                each(&mut spans.map(|span| {
                    span.map(|span| DatumRef::Interval {
                        months: span.months,
                        days: span.days,
                        micros: span.nanoseconds / 1_000,
                    })
                }))
            }
            DataType::Null => each(&mut (0..of.len()).map(|_| None)),
            _ => {
                let moments = arrow::compute::cast(of, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
                let moments = moments.as_primitive::<TimestampMicrosecondType>().iter();
                each(&mut moments.map(|at| at.map(DatumRef::Timestamp)))
            }
        };
        let kind = DataType::Decimal128(38, self.scale as i8);
        Ok(Arc::new(parts?.with_data_type(kind)))
    }
}
