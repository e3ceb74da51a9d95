//! Functions of texts that the general path evaluates row by row.

use arrow::datatypes::DataType;
use cairn_table::schema::ColumnType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ScalarUDF;

use super::{RowFunction, text_of};
use crate::datum::Datum;
use crate::error::Error;
use crate::expr::encoded;
use crate::general::errors::external;
use crate::general::markers::{ESCAPED, SIMILAR};
use crate::general::rewrite::{escaped, similar};
use crate::general::tree::values::scalar;
use crate::sqlstate::UNDEFINED_FUNCTION;

/// `encode(bytes, format)`. DataFusion's base64 has no padding and no line breaks.
pub(super) fn encode() -> ScalarUDF {
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
        Ok(ScalarValue::Utf8View(Some(encoded(bytes, &format).map_err(external)?)))
    })
}

/// Creates a function from texts to a list of texts. A NULL argument gives NULL.
pub(super) fn list_of_texts(
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

/// The function that rewrites a pattern with its escape character.
fn pattern(name: &str, rewritten: fn(&str, &str) -> crate::error::Result<String>) -> ScalarUDF {
    RowFunction::new(name, &[2], DataType::Utf8View, move |values| {
        let (pattern, escape) = (values.first().and_then(text_of), values.get(1).and_then(text_of));
        let (Some(pattern), Some(escape)) = (pattern, escape) else {
            return Ok(ScalarValue::Utf8View(None));
        };
        Ok(ScalarValue::Utf8View(Some(rewritten(&pattern, &escape).map_err(external)?)))
    })
}

/// The functions that rewrite patterns of LIKE and SIMILAR TO.
pub(super) fn patterns() -> [ScalarUDF; 2] {
    [pattern(ESCAPED, escaped), pattern(SIMILAR, similar)]
}
