//! One column of a Parquet file, decoded a batch at a time.

use cairn_rows::parquet::nanos;
use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::column::page::PageReader;
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescPtr;

/// The maximum number of digits after the point of a decimal.
const SCALE_MAX: usize = 76;

/// A value.
#[derive(Debug, PartialEq)]
pub enum Cell<'a> {
    /// The value is null.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer, a time or a decimal, in the notation of JSON.
    Digits(String),
    /// A floating point number.
    Number(f64),
    /// A string or bytes.
    Bytes(&'a [u8]),
}

/// The interpretation of stored values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// No interpretation.
    Plain,
    /// An unsigned integer.
    Unsigned,
    /// A decimal: an integer with this many digits after the point.
    Decimal(usize),
    /// A string in UTF-8.
    Text,
    /// A floating point number of two bytes.
    Half,
}

/// The values of a batch, without nulls.
#[derive(Debug)]
enum Values {
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<Int96>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

/// A column of a file.
pub struct Column {
    /// Its index among the leaves of the schema.
    pub leaf: usize,
    /// Its name.
    pub name: String,
    descriptor: ColumnDescPtr,
    meaning: Meaning,
    reader: Option<ColumnReader>,
    values: Values,
    /// The definition level of each row of the batch; below the maximum for null. Unused for a
    /// column that cannot be null.
    levels: Vec<i16>,
    /// The current row of the batch, and the index of its value.
    row: usize,
    value: usize,
}

impl Column {
    /// Creates a column without rows.
    pub fn new(leaf: usize, descriptor: ColumnDescPtr) -> Column {
        let values = match descriptor.physical_type() {
            Physical::BOOLEAN => Values::Bool(Vec::new()),
            Physical::INT32 => Values::Int32(Vec::new()),
            Physical::INT64 => Values::Int64(Vec::new()),
            Physical::INT96 => Values::Int96(Vec::new()),
            Physical::FLOAT => Values::Float(Vec::new()),
            Physical::DOUBLE => Values::Double(Vec::new()),
            Physical::BYTE_ARRAY => Values::Bytes(Vec::new()),
            Physical::FIXED_LEN_BYTE_ARRAY => Values::Fixed(Vec::new()),
        };
        let name = descriptor.self_type().name().to_owned();
        let meaning = meaning(&descriptor);
        Column { leaf, name, descriptor, meaning, reader: None, values, levels: Vec::new(), row: 0, value: 0 }
    }

    /// Continues with the pages of another row group.
    pub fn open(&mut self, pages: Box<dyn PageReader>) {
        self.reader = Some(get_column_reader(self.descriptor.clone(), pages));
    }

    /// Decodes `count` rows. Errors: there are fewer rows; errors of the library.
    pub fn decode(&mut self, count: usize) -> Result<()> {
        (self.row, self.value) = (0, 0);
        self.levels.clear();
        let levels = Some(&mut self.levels);
        macro_rules! read {
            ($reader:expr, $values:expr) => {{
                $values.clear();
                $reader.read_records(count, levels, None, $values)?
            }};
        }
        let (rows, ..) = match (&mut self.reader, &mut self.values) {
            (Some(ColumnReader::BoolColumnReader(reader)), Values::Bool(values)) => read!(reader, values),
            (Some(ColumnReader::Int32ColumnReader(reader)), Values::Int32(values)) => read!(reader, values),
            (Some(ColumnReader::Int64ColumnReader(reader)), Values::Int64(values)) => read!(reader, values),
            (Some(ColumnReader::Int96ColumnReader(reader)), Values::Int96(values)) => read!(reader, values),
            (Some(ColumnReader::FloatColumnReader(reader)), Values::Float(values)) => read!(reader, values),
            (Some(ColumnReader::DoubleColumnReader(reader)), Values::Double(values)) => read!(reader, values),
            (Some(ColumnReader::ByteArrayColumnReader(reader)), Values::Bytes(values)) => {
                read!(reader, values)
            }
            (Some(ColumnReader::FixedLenByteArrayColumnReader(reader)), Values::Fixed(values)) => {
                read!(reader, values)
            }
            _ => (0, 0, 0),
        };
        if rows != count {
            let what = format!("column {:?} ends after {rows} of {count} rows", self.name);
            return Err(ParquetError::General(what));
        }
        Ok(())
    }

    fn is_null(&self) -> bool {
        let most = self.descriptor.max_def_level();
        most > 0 && self.levels.get(self.row).is_none_or(|level| *level < most)
    }

    /// Returns the value of the current row. Errors: a description of the defect, to follow the
    /// column's name in a sentence.
    pub fn cell(&self) -> std::result::Result<Cell<'_>, String> {
        if self.is_null() {
            return Ok(Cell::Null);
        }
        // BOUND: this many digits are written before or after the point.
        if let Meaning::Decimal(scale) = self.meaning
            && scale > SCALE_MAX
        {
            return Err(format!(
                "is a decimal with {scale} digits after the point, expected at most {SCALE_MAX}"
            ));
        }
        let at = self.value;
        let absent = || "has no value for this row".to_owned();
        let digits = |value: i128| match self.meaning {
            Meaning::Decimal(scale) => Cell::Digits(decimal(value, scale)),
            _ => Cell::Digits(value.to_string()),
        };
        match &self.values {
            Values::Bool(values) => values.get(at).map(|value| Cell::Bool(*value)).ok_or_else(absent),
            Values::Int32(values) => {
                let value = *values.get(at).ok_or_else(absent)?;
                let is_unsigned = self.meaning == Meaning::Unsigned;
                Ok(digits(if is_unsigned { (value as u32).into() } else { value.into() }))
            }
            Values::Int64(values) => {
                let value = *values.get(at).ok_or_else(absent)?;
                let is_unsigned = self.meaning == Meaning::Unsigned;
                Ok(digits(if is_unsigned { (value as u64).into() } else { value.into() }))
            }
            Values::Int96(values) => values.get(at).map(|value| digits(nanos(value))).ok_or_else(absent),
            Values::Float(values) => {
                values.get(at).map(|value| Cell::Number((*value).into())).ok_or_else(absent)
            }
            Values::Double(values) => values.get(at).map(|value| Cell::Number(*value)).ok_or_else(absent),
            Values::Bytes(values) => self.of_bytes(values.get(at).ok_or_else(absent)?.data()),
            Values::Fixed(values) => self.of_bytes(values.get(at).ok_or_else(absent)?.data()),
        }
    }

    fn of_bytes<'v>(&self, bytes: &'v [u8]) -> std::result::Result<Cell<'v>, String> {
        match self.meaning {
            Meaning::Decimal(scale) => match big_endian(bytes) {
                Some(value) => Ok(Cell::Digits(decimal(value, scale))),
                None => Err("is a decimal of more than 38 digits".to_owned()),
            },
            Meaning::Half => match *bytes {
                [low, high] => Ok(Cell::Number(half(u16::from_le_bytes([low, high])))),
                _ => Err(format!("is a number of {} bytes, expected 2", bytes.len())),
            },
            Meaning::Text if std::str::from_utf8(bytes).is_err() => {
                Err("is a text that is not UTF-8".to_owned())
            }
            _ => Ok(Cell::Bytes(bytes)),
        }
    }

    /// Moves to the next row of the batch.
    pub fn advance(&mut self) {
        self.value += usize::from(!self.is_null());
        self.row += 1;
    }
}

fn meaning(descriptor: &ColumnDescPtr) -> Meaning {
    let decimal = |scale: i32| Meaning::Decimal(usize::try_from(scale).unwrap_or_default());
    match descriptor.logical_type_ref() {
        Some(LogicalType::Decimal(decimal_type)) => return decimal(decimal_type.scale),
        Some(LogicalType::Integer(integer)) if !integer.is_signed => return Meaning::Unsigned,
        Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => return Meaning::Text,
        Some(LogicalType::Float16) => return Meaning::Half,
        Some(_) => return Meaning::Plain,
        None => {}
    }
    match descriptor.converted_type() {
        ConvertedType::DECIMAL => decimal(descriptor.type_scale()),
        ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64 => {
            Meaning::Unsigned
        }
        ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Meaning::Text,
        _ => Meaning::Plain,
    }
}

/// Decodes a big-endian two's complement number; `None` if it does not fit.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let fill = if bytes.first().is_some_and(|byte| *byte >= 0x80) { 0xff } else { 0 };
    let (more, last) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut whole = [fill; 16];
    whole.get_mut(16 - last.len()..)?.copy_from_slice(last);
    let value = i128::from_be_bytes(whole);
    // The leading bytes must only extend the sign.
    let is_whole = more.iter().all(|byte| *byte == fill) && (value < 0) == (fill == 0xff);
    is_whole.then_some(value)
}

/// Formats an integer with a point before the last `scale` digits.
fn decimal(value: i128, scale: usize) -> String {
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, rest) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    let point = if scale > 0 { "." } else { "" };
    format!("{sign}{whole}{point}{rest}")
}

/// Decodes a 16-bit floating point number.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => mantissa * 2_f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + mantissa / 1024.0) * 2_f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the scale places a decimal's point, and numbers that are too large are detected.
    /// Method: short and long values, with and without a sign.
    #[test]
    fn decimals_are_written() {
        for (value, scale, text) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (-5, 2, "-0.05"),
            (12345, 2, "123.45"),
            (-100, 0, "-100"),
            (7, 1, "0.7"),
        ] {
            assert_eq!(decimal(value, scale), text);
        }
        assert_eq!(big_endian(&[]), Some(0));
        assert_eq!(big_endian(&[0xff]), Some(-1));
        assert_eq!(big_endian(&[0x00, 0xff]), Some(255));
        assert_eq!(big_endian(&[[0].as_slice(), &i128::MAX.to_be_bytes()].concat()), Some(i128::MAX));
        assert_eq!(big_endian(&[[0].as_slice(), &[0x80; 16]].concat()), None);
        assert_eq!(big_endian(&[1; 17]), None);
    }

    /// Goal: 16-bit numbers are decoded according to IEEE 754.
    #[test]
    fn numbers_of_16_bits_are_decoded() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x0001, 2_f64.powi(-24)),
            (0x7bff, 65504.0),
            (0x7c00, f64::INFINITY),
        ] {
            assert_eq!(half(bits), value);
        }
        assert!(half(0x7e00).is_nan() && half(0x8000).is_sign_negative());
    }
}
