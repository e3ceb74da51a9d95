//! Functions on whole columns, for calls that are common on the general path. A kernel answers
//! `None` for arguments that it does not handle, which are then computed value by value.

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int32Array, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Float64Type, TimeUnit, TimestampMicrosecondType};
use cairn_vfs::sync::Arc;

use crate::error::Result;
use crate::expr::regular::{Options, Regular};
use crate::expr::time::truncate;

/// An argument of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input<'a> {
    Column(&'a ArrayRef),
    /// A constant text.
    Text(&'a str),
    /// Another constant, or NULL.
    Constant,
}

pub(crate) type Kernel = fn(&[Input<'_>]) -> Result<Option<ArrayRef>>;

/// A function of one floating-point number.
pub(super) fn doubles(body: fn(f64) -> Result<f64>, inputs: &[Input<'_>]) -> Result<Option<ArrayRef>> {
    let [Input::Column(numbers)] = inputs else { return Ok(None) };
    if *numbers.data_type() != DataType::Float64 {
        return Ok(None);
    }
    let numbers = numbers.as_primitive::<Float64Type>().iter();
    let values = numbers.map(|number| number.map(body).transpose());
    Ok(Some(Arc::new(values.collect::<Result<Float64Array>>()?)))
}

/// `date_trunc` with a constant unit.
pub(super) fn date_trunc(inputs: &[Input<'_>]) -> Result<Option<ArrayRef>> {
    let [Input::Text(field), Input::Column(moments)] = inputs else { return Ok(None) };
    if *moments.data_type() != DataType::Timestamp(TimeUnit::Microsecond, None) {
        return Ok(None);
    }
    let field = field.to_lowercase();
    let moments = moments.as_primitive::<TimestampMicrosecondType>().iter();
    let starts = moments.map(|at| at.map(|at| truncate(&field, at)).transpose());
    Ok(Some(Arc::new(starts.collect::<Result<TimestampMicrosecondArray>>()?)))
}

/// The lengths of texts.
pub(super) fn length(inputs: &[Input<'_>]) -> Result<Option<ArrayRef>> {
    let [Input::Column(texts)] = inputs else { return Ok(None) };
    if *texts.data_type() != DataType::Utf8View {
        return Ok(None);
    }
    let count = |text: &str| i32::try_from(text.chars().count()).unwrap_or(i32::MAX);
    let texts = texts.as_string_view().iter();
    Ok(Some(Arc::new(texts.map(|text| text.map(count)).collect::<Int32Array>())))
}

/// `a ~ b` with a constant pattern.
pub(super) fn matches(inputs: &[Input<'_>], options: Options) -> Result<Option<ArrayRef>> {
    let [Input::Column(texts), Input::Text(pattern)] = inputs else { return Ok(None) };
    if *texts.data_type() != DataType::Utf8View {
        return Ok(None);
    }
    let regular = Regular::of(pattern, options)?;
    let texts = texts.as_string_view().iter();
    let found = texts.map(|text| text.map(|text| regular.is_match(text)));
    Ok(Some(Arc::new(found.collect::<BooleanArray>())))
}
