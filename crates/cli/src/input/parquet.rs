//! Apache Parquet, row by row, with nothing but the columns that are asked for decoded.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use cairn_vfs::File;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use parquet::schema::types::Type;
use serde_json::{Map, Value};

use super::{Sink, Source, find_column};
use crate::args::hash::InputArgs;
use crate::error::{Error, Result};
use crate::output::insert_bytes;

/// Reads rows. Texts and byte arrays give their bytes, integers their decimal digits. The value of a whole record is
/// a JSON object of its columns.
pub struct ParquetSource {
    rows: RowIter<'static>,
    name: String,
    /// Positions among the columns that are decoded.
    key: usize,
    /// `None` for the whole record.
    value: Option<usize>,
    row: u64,
}

impl std::fmt::Debug for ParquetSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetSource")
            .field("name", &self.name)
            .field("row", &self.row)
            .finish_non_exhaustive()
    }
}

impl ParquetSource {
    /// Reads the footer and finds the columns. Errors: no Parquet file, a column that is not there or is nested.
    pub fn open(
        file: Arc<dyn File>,
        name: String,
        args: &InputArgs,
        counter: Arc<AtomicU64>,
    ) -> Result<ParquetSource> {
        let refuse = |what: String| Error::Input { input: name.clone(), place: None, what };
        let bytes = file.len()?;
        let reader = guarded(|| SerializedFileReader::new(Chunks { file, bytes, counter }))
            .map_err(|what| refuse(format!("no Parquet file that can be read: {what}")))?;
        let schema = reader.metadata().file_metadata().schema_descr().root_schema_ptr();
        let fields = schema.get_fields();
        let names = || fields.iter().map(|field| field.name().as_bytes());
        let flat = |at: usize| match fields.get(at) {
            Some(field) if field.is_primitive() => Ok(at),
            Some(field) => Err(refuse(format!(
                "column {:?} is nested, expected texts, byte arrays or integers",
                field.name()
            ))),
            None => Err(refuse("has no columns".to_owned())),
        };
        let find = |column: &str| flat(find_column(names(), column, &name)?);
        // Not as "1", which may be the name of another column.
        let key = args.key.as_deref().map_or_else(|| flat(0), find)?;
        let value = args.value.as_deref().map(find).transpose()?;
        if value.is_none()
            && let Some(nested) = fields.iter().find(|field| !field.is_primitive())
        {
            let what = format!(
                "column {:?} is nested, which a record cannot hold: name a --value column",
                nested.name()
            );
            return Err(refuse(what));
        }
        let wanted: Vec<usize> = match value {
            None => (0..fields.len()).collect(),
            Some(value) => (0..fields.len()).filter(|at| [key, value].contains(at)).collect(),
        };
        let columns = wanted.iter().filter_map(|at| fields.get(*at).cloned()).collect();
        let projection = Type::group_type_builder(schema.name()).with_fields(columns).build();
        let projection = projection.map_err(|error| refuse(error.to_string()))?;
        let rows = guarded(|| RowIter::from_file_into(Box::new(reader)).project(Some(projection)))
            .map_err(refuse)?;
        let place = |column: usize| wanted.iter().position(|at| *at == column).unwrap_or_default();
        Ok(ParquetSource { rows, key: place(key), value: value.map(place), name: name.clone(), row: 0 })
    }

    fn refuse(&self, what: String) -> Error {
        Error::Input { input: self.name.clone(), place: Some(format!("row {}", self.row)), what }
    }

    fn column(&self, row: &Row, at: usize) -> Result<Vec<u8>> {
        let Some((name, field)) = row.get_column_iter().nth(at) else {
            return Err(self.refuse(format!("has no column {}", at + 1)));
        };
        let wrong = |found: &str| {
            self.refuse(format!("column {name:?} is {found}, expected a text, bytes or an integer"))
        };
        Ok(match field {
            Field::Str(text) => text.clone().into_bytes(),
            Field::Bytes(bytes) => bytes.data().to_vec(),
            Field::Null => return Err(wrong("null")),
            _ => match integer(field) {
                Some(digits) => digits.into_bytes(),
                None => return Err(wrong("of another type")),
            },
        })
    }

    fn whole(&self, row: &Row) -> Result<Vec<u8>> {
        let mut object = Map::new();
        for (name, field) in row.get_column_iter() {
            let value = match field {
                Field::Null => Value::Null,
                Field::Bool(value) => Value::Bool(*value),
                Field::Float(value) => f64::from(*value).into(),
                Field::Double(value) => (*value).into(),
                Field::Str(text) => text.as_str().into(),
                Field::Bytes(bytes) => {
                    insert_bytes(&mut object, name, bytes.data());
                    continue;
                }
                _ => match integer(field).and_then(|digits| serde_json::from_str(&digits).ok()) {
                    Some(number) => number,
                    None => {
                        let what = format!(
                            "column {name:?} has a type that a record cannot hold; name a --value column"
                        );
                        return Err(self.refuse(what));
                    }
                },
            };
            object.insert(name.clone(), value);
        }
        Ok(Value::Object(object).to_string().into_bytes())
    }
}

impl Source for ParquetSource {
    fn feed(&mut self, sink: &mut dyn Sink) -> Result<bool> {
        self.row += 1;
        let next = guarded(|| self.rows.next().transpose());
        let Some(row) = next.map_err(|what| self.refuse(what))? else { return Ok(false) };
        let key = self.column(&row, self.key)?;
        let value = match self.value {
            Some(at) => self.column(&row, at)?,
            None => self.whole(&row)?,
        };
        sink.put(&key, &value)?;
        Ok(true)
    }
}

/// Integers, and times, which are counted in whole units since 1970.
fn integer(field: &Field) -> Option<String> {
    Some(match field {
        Field::Byte(value) => value.to_string(),
        Field::Short(value) => value.to_string(),
        Field::Int(value) | Field::Date(value) | Field::TimeMillis(value) => value.to_string(),
        Field::Long(value)
        | Field::TimeMicros(value)
        | Field::TimestampMillis(value)
        | Field::TimestampMicros(value) => value.to_string(),
        Field::UByte(value) => value.to_string(),
        Field::UShort(value) => value.to_string(),
        Field::UInt(value) => value.to_string(),
        Field::ULong(value) => value.to_string(),
        _ => return None,
    })
}

/// Runs a step of the library, which panics on some damaged files, and gives its message either way.
fn guarded<T>(step: impl FnOnce() -> parquet::errors::Result<T>) -> std::result::Result<T, String> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("damaged".to_owned()),
    }
}

/// A file as the library wants it.
#[derive(Debug)]
struct Chunks {
    file: Arc<dyn File>,
    bytes: u64,
    counter: Arc<AtomicU64>,
}

/// Reads the file from somewhere on.
#[derive(Debug)]
struct From {
    file: Arc<dyn File>,
    offset: u64,
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Chunks {
    type T = io::BufReader<From>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(io::BufReader::new(From { file: self.file.clone(), offset: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // BOUND: a garbled length asks for no more than the file has.
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            let what =
                format!("{length} bytes at offset {start} reach beyond the file of {} bytes", self.bytes);
            return Err(ParquetError::EOF(what));
        }
        let mut chunk = vec![0; length];
        self.file
            .read_exact_at(&mut chunk, start)
            .map_err(|error| ParquetError::External(Box::new(error)))?;
        self.counter.fetch_add(length as u64, Ordering::Relaxed);
        Ok(chunk.into())
    }
}

impl Read for From {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buf, self.offset).map_err(io::Error::other)?;
        self.offset += count as u64;
        Ok(count)
    }
}
