//! Values of the system catalogs, single and as columns.

use arrow::array::{
    Array, ArrayRef, BooleanArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, ListArray,
    StringArray, TimestampMicrosecondArray, builder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int16Type, Int64Type};
use arrow::error::ArrowError;
use cairn_vfs::sync::Arc;

/// A value.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Cell {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Ints(Vec<i64>),
    Texts(Vec<String>),
}

/// The type of a catalog column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    Bool,
    Small,
    Int,
    Big,
    Real,
    Double,
    Time,
    Text,
    Smalls,
    Bigs,
    Texts,
}

macro_rules! from {
    ($($from:ty => |$value:ident| $cell:expr),* $(,)?) => { $(impl From<$from> for Cell {
        fn from($value: $from) -> Cell {
            $cell
        }
    })* };
}
from! {
    bool => |value| Cell::Bool(value),
    i64 => |value| Cell::Int(value),
    i32 => |value| Cell::Int(value.into()),
    usize => |value| Cell::Int(value as i64),
    f64 => |value| Cell::Float(value),
    &str => |value| Cell::Text(value.to_owned()),
    &String => |value| Cell::Text(value.clone()),
    String => |value| Cell::Text(value),
    Vec<i64> => |value| Cell::Ints(value),
    Vec<String> => |value| Cell::Texts(value),
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, Into::into)
    }
}

impl Cell {
    pub fn is_null(&self) -> bool {
        *self == Cell::Null
    }

    pub fn int(&self) -> Option<i64> {
        match self {
            Cell::Int(value) => Some(*value),
            Cell::Float(value) => Some(*value as i64),
            Cell::Bool(value) => Some((*value).into()),
            Cell::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<String> {
        match self {
            Cell::Null => None,
            Cell::Text(text) => Some(text.clone()),
            Cell::Int(value) => Some(value.to_string()),
            Cell::Float(value) => Some(value.to_string()),
            Cell::Bool(value) => Some(value.to_string()),
            Cell::Ints(values) => {
                Some(format!("{{{}}}", values.iter().map(i64::to_string).collect::<Vec<_>>().join(",")))
            }
            Cell::Texts(values) => Some(format!("{{{}}}", values.join(","))),
        }
    }

    fn bool(&self) -> Option<bool> {
        match self {
            Cell::Bool(value) => Some(*value),
            Cell::Int(value) => Some(*value != 0),
            _ => None,
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            Cell::Float(value) => Some(*value),
            other => other.int().map(|value| value as f64),
        }
    }

    fn ints(&self) -> Option<Vec<Option<i64>>> {
        match self {
            Cell::Ints(values) => Some(values.iter().copied().map(Some).collect()),
            _ => None,
        }
    }
}

/// Builds an Arrow array from values.
pub(super) fn array(shape: Shape, cells: &[Cell]) -> ArrayRef {
    let each = || cells.iter();
    match shape {
        Shape::Bool => Arc::new(each().map(Cell::bool).collect::<BooleanArray>()),
        Shape::Small => {
            Arc::new(each().map(|cell| cell.int().map(|value| value as i16)).collect::<Int16Array>())
        }
        Shape::Int => {
            Arc::new(each().map(|cell| cell.int().map(|value| value as i32)).collect::<Int32Array>())
        }
        Shape::Big => Arc::new(each().map(Cell::int).collect::<Int64Array>()),
        Shape::Real => {
            Arc::new(each().map(|cell| cell.float().map(|value| value as f32)).collect::<Float32Array>())
        }
        Shape::Double => Arc::new(each().map(Cell::float).collect::<Float64Array>()),
        Shape::Time => Arc::new(each().map(Cell::int).collect::<TimestampMicrosecondArray>()),
        Shape::Text => Arc::new(each().map(Cell::text).collect::<StringArray>()),
        Shape::Smalls => {
            let small = |values: Vec<Option<i64>>| {
                values.into_iter().map(|value| value.map(|value| value as i16)).collect::<Vec<_>>()
            };
            Arc::new(ListArray::from_iter_primitive::<Int16Type, _, _>(
                each().map(|cell| cell.ints().map(small)),
            ))
        }
        Shape::Bigs => Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(each().map(Cell::ints))),
        Shape::Texts => {
            let mut lists = builder::ListBuilder::new(builder::StringBuilder::new());
            for cell in cells {
                match cell {
                    Cell::Texts(values) => lists.append_value(values.iter().map(Some)),
                    _ => lists.append_null(),
                }
            }
            Arc::new(lists.finish())
        }
    }
}

/// Returns the values of an Arrow array of any type.
///
/// Errors: types that the system catalogs do not use.
pub(super) fn cells(array: &ArrayRef) -> Result<Vec<Cell>, ArrowError> {
    let wrong =
        || ArrowError::CastError(format!("no value of the system catalogs is a {}", array.data_type()));
    fn of<A: 'static>(array: &ArrayRef) -> Option<&A> {
        array.as_any().downcast_ref()
    }
    Ok(match array.data_type() {
        DataType::Null => vec![Cell::Null; array.len()],
        DataType::Boolean => of::<BooleanArray>(array).ok_or_else(wrong)?.iter().map(Cell::from).collect(),
        DataType::Utf8 => of::<StringArray>(array).ok_or_else(wrong)?.iter().map(Cell::from).collect(),
        DataType::Utf8View | DataType::LargeUtf8 => cells(&cast(array, &DataType::Utf8)?)?,
        DataType::Int64 => of::<Int64Array>(array).ok_or_else(wrong)?.iter().map(Cell::from).collect(),
        kind if kind.is_integer() => cells(&cast(array, &DataType::Int64)?)?,
        DataType::Float64 => of::<Float64Array>(array).ok_or_else(wrong)?.iter().map(Cell::from).collect(),
        kind if kind.is_numeric() => cells(&cast(array, &DataType::Float64)?)?,
        DataType::List(_) => {
            let lists = of::<ListArray>(array).ok_or_else(wrong)?;
            let one = |list: Option<ArrayRef>| {
                let Some(list) = list else { return Ok(Cell::Null) };
                let cells = cells(&list)?;
                Ok(match cells.iter().all(|cell| matches!(cell, Cell::Int(_))) {
                    true => Cell::Ints(cells.iter().filter_map(Cell::int).collect()),
                    false => Cell::Texts(cells.iter().filter_map(Cell::text).collect()),
                })
            };
            lists.iter().map(one).collect::<Result<_, ArrowError>>()?
        }
        _ => cells(&cast(array, &DataType::Utf8)?)?,
    })
}
