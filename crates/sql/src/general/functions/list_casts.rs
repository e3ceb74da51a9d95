//! Array casts: from texts in PostgreSQL's syntax, and from other arrays item by item. DataFusion
//! turns a text into an array with one item.

use std::hash::{Hash, Hasher};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef};
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::batch::{conform, field};
use crate::datum::{Datum, OPEN};
use crate::expr::cast;
use crate::general::errors::external;
use crate::general::functions::RowFunction;
use crate::general::markers::HAS;
use crate::general::tree::values::scalar;

/// The item types of arrays, with the name of the cast function for each.
const ITEMS: [(&str, ColumnType); 15] = [
    ("cairn_list_boolean", ColumnType::new(Type::Boolean)),
    ("cairn_list_smallint", ColumnType::new(Type::SmallInt)),
    ("cairn_list_integer", ColumnType::new(Type::Int)),
    ("cairn_list_bigint", ColumnType::new(Type::BigInt)),
    ("cairn_list_real", ColumnType::new(Type::Real)),
    ("cairn_list_double", ColumnType::new(Type::Double)),
    ("cairn_list_numeric", ColumnType::decimal(OPEN.0, OPEN.1)),
    ("cairn_list_text", ColumnType::new(Type::Text)),
    ("cairn_list_bytea", ColumnType::new(Type::Blob)),
    ("cairn_list_date", ColumnType::new(Type::Date)),
    ("cairn_list_time", ColumnType::new(Type::Time)),
    ("cairn_list_timestamp", ColumnType::new(Type::Timestamp)),
    ("cairn_list_timestamptz", ColumnType::zoned()),
    ("cairn_list_interval", ColumnType::new(Type::Interval)),
    ("cairn_list_uuid", ColumnType::new(Type::Uuid)),
];

/// Returns the name of the cast to an array with such items; `None` where there is no such array.
/// Precision and length are ignored.
pub(crate) fn name_for(element: &ColumnType) -> Option<&'static str> {
    let is_it =
        |(_, kind): &&(&str, ColumnType)| kind.kind == element.kind && kind.is_zoned == element.is_zoned;
    ITEMS.iter().find(is_it).map(|(name, _)| *name)
}

/// Returns the cast functions.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    ITEMS.into_iter().map(|(name, element)| {
        let signature = Signature::variadic_any(Volatility::Immutable);
        ScalarUDF::from(ToList { name, element, signature })
    })
}

/// A cast to an array. The second argument is the length of the items, or their scale.
#[derive(Debug)]
struct ToList {
    name: &'static str,
    element: ColumnType,
    signature: Signature,
}

impl PartialEq for ToList {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ToList {}

impl Hash for ToList {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.name.hash(to);
    }
}

impl ToList {
    fn element(&self, limit: Option<&ScalarValue>) -> ColumnType {
        let limit = match limit {
            Some(ScalarValue::Int64(Some(limit))) => u32::try_from(*limit).ok(),
            Some(ScalarValue::Int32(Some(limit))) => u32::try_from(*limit).ok(),
            _ => None,
        };
        let mut element = self.element.clone();
        match (element.kind, limit) {
            (Type::Decimal, Some(scale)) => element = ColumnType::decimal(38, scale.min(38) as u8),
            (_, limit) => element.length = limit,
        }
        element
    }
}

impl ScalarUDFImpl for ToList {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::new_list(field("item", &self.element, true).data_type().clone(), true))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let element = self.element(args.scalar_arguments.get(1).copied().flatten());
        let item = field(arrow::datatypes::Field::LIST_FIELD_DEFAULT_NAME, &element, true);
        Ok(Arc::new(arrow::datatypes::Field::new(self.name, DataType::List(Arc::new(item)), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let limit = match args.args.get(1) {
            Some(ColumnarValue::Scalar(limit)) => Some(limit),
            _ => None,
        };
        let element = self.element(limit);
        let to = args.return_field.data_type();
        let Some(given) = args.args.first() else {
            return Err(DataFusionError::Internal("a cast of nothing to an array".to_owned()));
        };
        let is_scalar = matches!(given, ColumnarValue::Scalar(_));
        let array = given.to_array(if is_scalar { 1 } else { args.number_rows })?;
        let lists = self.lists(&array, &element, to)?;
        match is_scalar {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&lists, 0)?)),
            false => Ok(ColumnarValue::Array(lists)),
        }
    }
}

impl ToList {
    fn lists(&self, array: &ArrayRef, element: &ColumnType, to: &DataType) -> Result<ArrayRef> {
        if array.data_type() == to || array.is_empty() {
            return Ok(match array.is_empty() {
                true => arrow::array::new_empty_array(to),
                false => Arc::clone(array),
            });
        }
        let texts = conform(array, &Type::Text.into())?;
        let kind = element.clone().list_of();
        let list = |text: Option<&str>| {
            let datum = match text {
                Some(text) => cast(crate::datum::DatumRef::Text(text), &kind).map_err(external)?.into_datum(),
                None => Datum::Null,
            };
            scalar(datum.borrow(), &kind)
        };
        let values = texts.as_string_view().iter().map(list).collect::<Result<Vec<ScalarValue>>>()?;
        let made = ScalarValue::iter_to_array(values)?;
        Ok(arrow::compute::cast(&made, to)?)
    }
}

/// Whether a value is an item of a list. NULL if it is not found and the value or some item is
/// NULL.
pub(crate) fn has() -> ScalarUDF {
    RowFunction::new(HAS, &[2], DataType::Boolean, |values| {
        let [list, value] = values else { return Ok(ScalarValue::Boolean(None)) };
        let Some(items) = items_of(list)? else { return Ok(ScalarValue::Boolean(None)) };
        let mut found = Some(false);
        for item in items {
            if item.is_null() || value.is_null() {
                found = None;
            } else if value.cast_to(&item.data_type()).is_ok_and(|value| value == item) {
                return Ok(ScalarValue::Boolean(Some(true)));
            }
        }
        Ok(ScalarValue::Boolean(found))
    })
}

/// Returns the items of a list; `None` for NULL.
fn items_of(list: &ScalarValue) -> Result<Option<Vec<ScalarValue>>> {
    let array = match list {
        ScalarValue::List(list) if !list.is_null(0) => list.value(0),
        ScalarValue::LargeList(list) if !list.is_null(0) => list.value(0),
        ScalarValue::FixedSizeList(list) if !list.is_null(0) => list.value(0),
        _ => return Ok(None),
    };
    (0..array.len()).map(|at| ScalarValue::try_from_array(&array, at)).collect::<Result<_>>().map(Some)
}

/// Returns the length of a list in each dimension; no lengths for an empty list.
fn lengths(list: &ScalarValue) -> Result<Option<Vec<i32>>> {
    let Some(items) = items_of(list)? else { return Ok(None) };
    if items.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut lengths = vec![i32::try_from(items.len()).unwrap_or(i32::MAX)];
    if let Some(first) = items.first() {
        lengths.extend(self::lengths(first)?.unwrap_or_default());
    }
    Ok(Some(lengths))
}

/// `array_length`, `array_upper`, `array_lower`, `array_ndims` and `array_dims`, which are NULL for
/// an empty list.
pub(crate) fn measures() -> Vec<ScalarUDF> {
    let of = |name: &str, measure: fn(&[i32], usize) -> Option<i32>| {
        RowFunction::new(name, &[2], DataType::Int32, move |values| {
            let dimension = match values.get(1) {
                Some(ScalarValue::Int64(Some(dimension))) => usize::try_from(*dimension).ok(),
                Some(ScalarValue::Int32(Some(dimension))) => usize::try_from(*dimension).ok(),
                _ => None,
            };
            let lengths = values.first().map_or(Ok(None), lengths)?;
            let dimension = dimension.and_then(|dimension| dimension.checked_sub(1));
            let found = lengths.zip(dimension).and_then(|(lengths, dimension)| measure(&lengths, dimension));
            Ok(ScalarValue::Int32(found))
        })
    };
    vec![
        of("array_length", |lengths, dimension| lengths.get(dimension).copied()),
        of("array_upper", |lengths, dimension| lengths.get(dimension).copied()),
        of("array_lower", |lengths, dimension| lengths.get(dimension).map(|_| 1)),
        RowFunction::new("array_ndims", &[1], DataType::Int32, |values| {
            let lengths = values.first().map_or(Ok(None), lengths)?.filter(|lengths| !lengths.is_empty());
            Ok(ScalarValue::Int32(lengths.map(|lengths| lengths.len() as i32)))
        }),
        RowFunction::new("array_dims", &[1], DataType::Utf8View, |values| {
            let lengths = values.first().map_or(Ok(None), lengths)?.filter(|lengths| !lengths.is_empty());
            let shown = |lengths: Vec<i32>| lengths.iter().map(|length| format!("[1:{length}]")).collect();
            Ok(ScalarValue::Utf8View(lengths.map(shown)))
        }),
    ]
}
