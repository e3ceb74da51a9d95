//! Apache Parquet, read row by row. Only the requested columns are decoded.

mod column;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use cairn_rows::parquet::{self as rows, guarded, repeated};
use cairn_vfs::File;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{FileReader, SerializedFileReader};

use self::column::{Cell, Column};
use super::{Sink, Source, find_column};
use crate::args::hash::InputArgs;
use crate::error::{Error, Result};

/// The number of rows decoded at once.
const BATCH_ROWS: usize = 256;

/// Reads rows. Strings and byte arrays give their bytes; integers and decimals give their digits.
/// Times are integers in the unit of their column; times in the old 96-bit form are in nanoseconds
/// since 1970. The value of a whole record is a JSON object of its columns.
pub struct ParquetSource {
    file: SerializedFileReader<rows::Source>,
    name: String,
    /// The decoded columns.
    columns: Vec<Column>,
    /// Indexes into `columns`.
    key: usize,
    /// `None` for the whole record.
    value: Option<usize>,
    /// The next row group, and the number of rows of the current one that are not decoded yet.
    next_group: usize,
    left: usize,
    /// The number of decoded rows that were not returned yet.
    decoded: usize,
    row: u64,
    line: Vec<u8>,
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
    /// Reads the footer and finds the columns.
    pub fn open(
        file: Arc<dyn File>,
        name: String,
        args: &InputArgs,
        counter: Arc<AtomicU64>,
    ) -> Result<ParquetSource> {
        let refuse = |what: String| Error::Input { input: name.clone(), place: None, what };
        let unreadable =
            |error: ParquetError| refuse(format!("not a readable Parquet file: {}", told(&error)));
        let source = rows::Source::open(file, counter).map_err(unreadable)?;
        let file = guarded(|| SerializedFileReader::new(source.clone())).map_err(unreadable)?;
        source.limit(file.metadata()).map_err(unreadable)?;
        let schema = file.metadata().file_metadata().schema_descr_ptr();
        let fields = schema.root_schema().get_fields();
        let names = || fields.iter().map(|field| field.name().as_bytes());
        let leaves = || (0..schema.num_columns()).map(|leaf| (leaf, schema.get_column_root_idx(leaf)));
        let flat = |at: usize| {
            let Some(field) = fields.get(at) else { return Err(refuse("has no columns".to_owned())) };
            let leaf = leaves().find(|(_, root)| *root == at).map(|(leaf, _)| leaf);
            match leaf.filter(|leaf| field.is_primitive() && schema.column(*leaf).max_rep_level() == 0) {
                Some(leaf) => Ok(Column::new(leaf, schema.column(leaf))),
                None => Err(refuse(format!(
                    "column {:?} is nested, which a record cannot hold: expected texts, byte arrays or numbers, so choose another --key or a --value column",
                    field.name()
                ))),
            }
        };
        let find = |column: &str| find_column(names(), column, &name);
        let key = args.key.as_deref().map_or(Ok(0), find)?;
        let value = args.value.as_deref().map(find).transpose()?;
        if value.is_none()
            && let Some(name) = repeated(fields.iter().map(|field| field.name()))
        {
            let what = format!(
                "two columns are called {name:?}, which a record cannot hold: choose a --value column by its number"
            );
            return Err(refuse(what));
        }
        let wanted: Vec<usize> = match value {
            None => (0..fields.len().max(1)).collect(),
            Some(value) => (0..fields.len().max(1)).filter(|at| [key, value].contains(at)).collect(),
        };
        let columns = wanted.iter().map(|at| flat(*at)).collect::<Result<Vec<_>>>()?;
        let place = |column: usize| wanted.iter().position(|at| *at == column).unwrap_or_default();
        let (key, value) = (place(key), value.map(place));
        let (next_group, left, decoded, row) = (0, 0, 0, 0);
        let line = Vec::new();
        Ok(ParquetSource { file, name, columns, key, value, next_group, left, decoded, row, line })
    }

    fn refuse(&self, what: String) -> Error {
        Error::Input { input: self.name.clone(), place: Some(format!("row {}", self.row)), what }
    }

    /// Decodes the next rows if none is left. Returns false after the last row.
    fn fill(&mut self) -> ParquetResult<bool> {
        while self.decoded == 0 {
            if self.left == 0 {
                if self.next_group == self.file.num_row_groups() {
                    return Ok(false);
                }
                self.open_group()?;
                continue;
            }
            let count = self.left.min(BATCH_ROWS);
            self.columns.iter_mut().try_for_each(|column| column.decode(count))?;
            (self.decoded, self.left) = (count, self.left - count);
        }
        Ok(true)
    }

    fn open_group(&mut self) -> ParquetResult<()> {
        let group = self.file.get_row_group(self.next_group)?;
        let rows = group.metadata().num_rows();
        for column in &mut self.columns {
            let values = group.metadata().column(column.leaf).num_values();
            if values != rows {
                let what = format!("a row group of {rows} rows, but a column has {values} values");
                return Err(ParquetError::General(what));
            }
            column.open(group.get_column_page_reader(column.leaf)?);
        }
        self.next_group += 1;
        self.left = usize::try_from(rows).unwrap_or_default();
        Ok(())
    }

    fn cell(&self, at: usize) -> Result<(&str, Cell<'_>)> {
        let Some(column) = self.columns.get(at) else {
            return Err(self.refuse(format!("has no column {}", at + 1)));
        };
        let cell = column.cell().map_err(|what| self.refuse(format!("column {:?} {what}", column.name)))?;
        Ok((&column.name, cell))
    }

    fn bytes(&self, at: usize) -> Result<Vec<u8>> {
        let (name, cell) = self.cell(at)?;
        let wrong = |found: &str| {
            self.refuse(format!("column {name:?} is {found}, expected a text, bytes or an integer"))
        };
        match cell {
            Cell::Bytes(bytes) => Ok(bytes.to_vec()),
            Cell::Digits(digits) => Ok(digits.into_bytes()),
            Cell::Null => Err(wrong("null")),
            Cell::Bool(_) | Cell::Number(_) => Err(wrong("of another type")),
        }
    }

    /// Formats the row as a JSON object. NaN and infinities, which JSON cannot represent, become
    /// strings with their SQL names.
    fn whole(&self, line: &mut Vec<u8>) -> Result<()> {
        let mut names = std::collections::HashSet::new();
        line.clear();
        for at in 0..self.columns.len() {
            let (name, cell) = self.cell(at)?;
            let (name, value) = match cell {
                Cell::Null => (name.to_owned(), "null".to_owned()),
                Cell::Bool(value) => (name.to_owned(), value.to_string()),
                Cell::Digits(digits) => (name.to_owned(), digits),
                Cell::Number(value) => (name.to_owned(), json_number(value)),
                Cell::Bytes(bytes) => match std::str::from_utf8(bytes) {
                    Ok(text) => (name.to_owned(), json_text(text)),
                    Err(_) => (format!("{name}_hex"), json_text(&crate::output::to_hex(bytes))),
                },
            };
            line.push(if at == 0 { b'{' } else { b',' });
            line.extend_from_slice(json_text(&name).as_bytes());
            line.push(b':');
            line.extend_from_slice(value.as_bytes());
            if let Some(twice) = names.replace(name) {
                let what =
                    format!("a record would have two members called {twice:?}: choose a --value column");
                return Err(self.refuse(what));
            }
        }
        line.push(b'}');
        Ok(())
    }
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn json_number(value: f64) -> String {
    match value {
        value if value.is_finite() => serde_json::Value::from(value).to_string(),
        value if value.is_nan() => json_text("NaN"),
        value => json_text(if value > 0.0 { "Infinity" } else { "-Infinity" }),
    }
}

/// Returns an error's message without the library's prefix around our own messages.
fn told(error: &ParquetError) -> String {
    match error {
        ParquetError::General(what) => what.clone(),
        other => other.to_string(),
    }
}

impl Source for ParquetSource {
    fn feed(&mut self, sink: &mut dyn Sink) -> Result<bool> {
        self.row += 1;
        if !guarded(|| self.fill()).map_err(|error| self.refuse(told(&error)))? {
            return Ok(false);
        }
        let key = self.bytes(self.key)?;
        match self.value {
            Some(at) => sink.put(&key, &self.bytes(at)?)?,
            None => {
                let mut line = std::mem::take(&mut self.line);
                self.whole(&mut line)?;
                sink.put(&key, &line)?;
                self.line = line;
            }
        }
        self.columns.iter_mut().for_each(Column::advance);
        self.decoded -= 1;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::path::{Path, PathBuf};

    use cairn_vfs::{Fs, MemFs, OpenOptions};
    use parquet::basic::Compression;
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    /// A sink that counts records.
    struct Counting(u64);

    impl Sink for Counting {
        fn put(&mut self, _: &[u8], _: &[u8]) -> Result<()> {
            self.0 += 1;
            Ok(())
        }

        fn put_stream(&mut self, _: &[u8], _: u64, _: &mut dyn Read) -> Result<()> {
            Ok(())
        }
    }

    /// Goal: a flipped bit leads to records or to an error that names the file, never to a panic or
    /// to an allocation of a size that the file dictates. Method: each bit of whole files, with and
    /// without a dictionary, with strings and nullable numbers.
    #[test]
    fn flipped_bits_are_errors() {
        rows::quiet_panics();
        let schema = "message t { REQUIRED BYTE_ARRAY k (UTF8); OPTIONAL DOUBLE n; }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        for (codec, has_dictionary) in [(Compression::UNCOMPRESSED, true), (Compression::SNAPPY, false)] {
            let properties =
                WriterProperties::builder().set_compression(codec).set_dictionary_enabled(has_dictionary);
            let mut sound = Vec::new();
            let mut writer =
                SerializedFileWriter::new(&mut sound, Arc::clone(&schema), Arc::new(properties.build()))
                    .unwrap();
            let mut group = writer.next_row_group().unwrap();
            let keys: Vec<ByteArray> =
                (0..30).map(|at| ByteArray::from(format!("key {}", at % 7).as_str())).collect();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<ByteArrayType>().write_batch(&keys, None, None).unwrap();
            column.close().unwrap();
            let levels: Vec<i16> = (0..30).map(|at| i16::from(at % 3 > 0)).collect();
            let numbers: Vec<f64> = (0..20).map(f64::from).collect();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<DoubleType>().write_batch(&numbers, Some(&levels), None).unwrap();
            column.close().unwrap();
            group.close().unwrap();
            writer.close().unwrap();

            let file: Arc<dyn File> =
                MemFs::new().open(Path::new("f"), OpenOptions::create()).unwrap().into();
            file.write_all_at(&sound, 0).unwrap();
            let args =
                InputArgs { input: PathBuf::from("f"), format: None, key: Some("1".to_owned()), value: None };
            let (mut read, mut refused) = (0, 0);
            for bit in 0..sound.len() * 8 {
                let (at, mask) = (bit / 8, 1_u8 << (bit % 8));
                file.write_all_at(&[sound[at] ^ mask], at as u64).unwrap();
                let source = ParquetSource::open(Arc::clone(&file), "f".to_owned(), &args, Arc::default());
                let mut counting = Counting(0);
                let fed = source.and_then(|mut source| {
                    while source.feed(&mut counting)? {}
                    Ok(())
                });
                match fed {
                    Ok(()) => read += 1,
                    Err(error) => {
                        assert!(
                            matches!(error, Error::Input { .. }) && error.to_string().starts_with('f'),
                            "bit {bit}: {error}"
                        );
                        refused += 1;
                    }
                }
                file.write_all_at(&[sound[at]], at as u64).unwrap();
            }
            assert!(read > 100 && refused > 500, "{codec}: {read} read, {refused} refused");
        }
    }
}
