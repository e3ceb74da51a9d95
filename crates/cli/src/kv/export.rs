//! Encodes entries in the formats that `load` reads back, with arbitrary bytes.

use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::args::kv::DumpFormat;
use crate::error::{Error, Result};
use crate::output;

/// A row group is written once its entries have this many bytes. A reader decodes a group at once.
const GROUP_BYTES: usize = 32 << 20;

/// The memory overhead of a row.
const ROW_BYTES: usize = 64;

const SCHEMA: &str = "message entries { REQUIRED BYTE_ARRAY key; REQUIRED BYTE_ARRAY value; }";

/// An encoder of entries.
#[derive(Debug)]
pub enum Export {
    /// Comma-separated.
    Csv,
    /// One JSON object per line.
    Jsonl,
    /// Length-prefixed keys and values.
    Binary,
    /// Apache Parquet.
    Parquet(Box<ParquetExport>),
}

impl Export {
    /// Begins a file; appends its first bytes to `out`.
    pub fn start(format: DumpFormat, out: &mut Vec<u8>) -> Result<Export> {
        Ok(match format {
            DumpFormat::Csv => {
                out.extend_from_slice(b"key,value\n");
                Export::Csv
            }
            DumpFormat::Jsonl => Export::Jsonl,
            DumpFormat::Binary => Export::Binary,
            DumpFormat::Parquet => Export::Parquet(Box::new(ParquetExport::start()?)),
        })
    }

    /// Adds an entry; appends the bytes that are complete to `out`.
    pub fn add(&mut self, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Export::Csv => {
                csv_field(key, out);
                out.push(b',');
                csv_field(value, out);
                out.push(b'\n');
            }
            Export::Jsonl => {
                out.extend_from_slice(output::record(key, Some(value)).to_string().as_bytes());
                out.push(b'\n');
            }
            Export::Binary => {
                for part in [key, value] {
                    // Cannot overflow: keys and values of a store are shorter.
                    out.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
                }
                out.extend_from_slice(key);
                out.extend_from_slice(value);
            }
            Export::Parquet(parquet) => parquet.add(key, value, out)?,
        }
        Ok(())
    }

    /// Ends the file; appends its last bytes to `out`.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Export::Parquet(parquet) => parquet.finish(out),
            _ => Ok(()),
        }
    }
}

/// Appends a field, quoted if it contains special characters.
fn csv_field(field: &[u8], out: &mut Vec<u8>) {
    if !field.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return out.extend_from_slice(field);
    }
    out.push(b'"');
    for &byte in field {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// A Parquet file that is written by row groups.
pub struct ParquetExport {
    writer: SerializedFileWriter<Vec<u8>>,
    keys: Vec<ByteArray>,
    values: Vec<ByteArray>,
    bytes: usize,
}

impl std::fmt::Debug for ParquetExport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetExport").field("rows", &self.keys.len()).finish_non_exhaustive()
    }
}

fn refuse(error: ParquetError) -> Error {
    Error::usage(format!("the Parquet file cannot be written: {error}"))
}

impl ParquetExport {
    fn start() -> Result<ParquetExport> {
        let schema = parse_message_type(SCHEMA).map_err(refuse)?;
        let level = ZstdLevel::try_new(3).map_err(refuse)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_created_by(format!("cairn {}", env!("CARGO_PKG_VERSION")))
            .build();
        let writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties));
        Ok(ParquetExport { writer: writer.map_err(refuse)?, keys: Vec::new(), values: Vec::new(), bytes: 0 })
    }

    fn add(&mut self, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.keys.push(key.to_vec().into());
        self.values.push(value.to_vec().into());
        self.bytes += key.len() + value.len() + ROW_BYTES;
        if self.bytes < GROUP_BYTES { Ok(()) } else { self.write_group(out) }
    }

    fn write_group(&mut self, out: &mut Vec<u8>) -> Result<()> {
        if !self.keys.is_empty() {
            let mut group = self.writer.next_row_group().map_err(refuse)?;
            for rows in [&self.keys, &self.values] {
                if let Some(mut column) = group.next_column().map_err(refuse)? {
                    column.typed::<ByteArrayType>().write_batch(rows, None, None).map_err(refuse)?;
                    column.close().map_err(refuse)?;
                }
            }
            group.close().map_err(refuse)?;
            self.keys.clear();
            self.values.clear();
            self.bytes = 0;
        }
        self.take(out)
    }

    /// Moves the finished bytes out of the writer, which counts positions itself and does not need
    /// them any more.
    fn take(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.writer.flush().map_err(|error| refuse(error.into()))?;
        out.append(self.writer.inner_mut());
        Ok(())
    }

    fn finish(mut self, out: &mut Vec<u8>) -> Result<()> {
        self.write_group(out)?;
        self.writer.finish().map_err(refuse)?;
        self.take(out)
    }
}
