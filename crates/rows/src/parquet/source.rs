//! A file as the Parquet library reads it, with the values that it trusts checked first.

use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use cairn_vfs::File;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, Length};

use super::thrift::{self, Flaw, Number};

/// Bytes to read ahead of a request. Page headers are shorter, unless they have long statistics.
const READ_AHEAD: usize = 16 << 10;
/// The magic number at both ends of the file, and the size of the tail, which holds the footer
/// length and the magic number.
const MAGIC: &[u8] = b"PAR1";
const TAIL_BYTES: u64 = 8;
/// Pages up to this size are always allowed, whatever the column states, since some writers count
/// wrongly.
const PAGE_BYTES: i64 = 64 << 20;

/// Field ids of a page header.
const UNCOMPRESSED: i16 = 2;
const COMPRESSED: i16 = 3;
const DATA: i16 = 5;
const DICTIONARY: i16 = 7;
const DATA_V2: i16 = 8;
/// The number of values, which is the first field of each of the last three.
const VALUES: i16 = 1;

/// A file whose footer and page headers are checked before they are used.
#[derive(Debug, Clone)]
pub struct Source {
    file: Arc<dyn File>,
    bytes: u64,
    counter: Arc<AtomicU64>,
    /// The maximum uncompressed bytes and the maximum values of a page: those of the largest column
    /// chunk.
    limits: Arc<OnceLock<(i64, i64)>>,
}

fn flawed(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

fn failed(error: cairn_vfs::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl Source {
    /// Checks the footer of a file. Later reads are counted in `counter`.
    ///
    /// Errors: [`ParquetError::General`] for a file that is damaged or not Parquet;
    /// [`ParquetError::External`] with the file system's error.
    pub fn open(file: Arc<dyn File>, counter: Arc<AtomicU64>) -> Result<Source> {
        let bytes = file.len().map_err(failed)?;
        let source = Source { file, bytes, counter, limits: Arc::default() };
        let Some(tail_at) = bytes.checked_sub(TAIL_BYTES).filter(|at| *at >= MAGIC.len() as u64) else {
            return Err(flawed(format!("{bytes} bytes is too short for a Parquet file")));
        };
        let mut tail = [0; TAIL_BYTES as usize];
        source.file.read_exact_at(&mut tail, tail_at).map_err(failed)?;
        let (length, magic) = tail.split_at(4);
        if magic != MAGIC {
            return Err(flawed("does not end with PAR1, as a Parquet file does"));
        }
        let length = length.try_into().map(u32::from_le_bytes).unwrap_or_default();
        let Some(start) = tail_at.checked_sub(length.into()) else {
            return Err(flawed(format!("a footer of {length} bytes in a file of {bytes}")));
        };
        let footer = source.get_bytes(start, length as usize)?;
        thrift::walk(&footer, 0).1.map_err(|flaw| told("the footer", flaw))?;
        Ok(source)
    }

    /// Derives the limits for pages from the footer. Refuses columns that extend past the end of
    /// the file.
    ///
    /// Errors: [`ParquetError::General`].
    pub fn limit(&self, metadata: &ParquetMetaData) -> Result<()> {
        let (mut most_bytes, mut most_values) = (PAGE_BYTES, 0);
        let mut rows = 0_i64;
        for group in metadata.row_groups() {
            rows = rows.checked_add(group.num_rows().max(0)).ok_or_else(|| flawed("too many rows"))?;
            for chunk in group.columns() {
                let first = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
                let end = u64::try_from(first.min(chunk.data_page_offset()))
                    .ok()
                    .and_then(|first| first.checked_add(u64::try_from(chunk.compressed_size()).ok()?));
                if end.is_none_or(|end| end > self.bytes) {
                    return Err(flawed("a column reaches beyond the end of the file"));
                }
                most_bytes = most_bytes.max(chunk.uncompressed_size());
                most_values = most_values.max(chunk.num_values());
            }
        }
        let told = metadata.file_metadata().num_rows();
        if told != rows || metadata.row_groups().iter().any(|group| group.num_rows() < 0) {
            return Err(flawed(format!("{told} rows, but its row groups have {rows}")));
        }
        // A second call would set the same limits.
        let _ = self.limits.set((most_bytes, most_values));
        Ok(())
    }

    /// Checks a page header before the library allocates based on it. `head` is the part that was
    /// read.
    fn check_page(&self, start: u64, head: &[u8]) -> Result<()> {
        let beyond = self.bytes.saturating_sub(start).saturating_sub(head.len() as u64);
        let (numbers, walked) = thrift::walk(head, beyond);
        match walked {
            // Only the part that was read ahead ends here. All lengths so far fit the file.
            Err(Flaw::Cut) if beyond > 0 => {}
            Err(flaw) => return Err(told("the head of a page", flaw)),
            Ok(()) => {}
        }
        let number = |within: Option<i16>, field: i16| {
            let is_it = |number: &&Number| number.within == within && number.field == field;
            numbers.iter().find(is_it).map(|number| number.value)
        };
        let (most_bytes, most_values) = *self.limits.get().unwrap_or(&(i64::MAX, i64::MAX));
        let (compressed, uncompressed) =
            (number(None, COMPRESSED).unwrap_or(0), number(None, UNCOMPRESSED).unwrap_or(0));
        let in_file = u64::try_from(compressed).is_ok_and(|bytes| bytes <= self.bytes.saturating_sub(start));
        if !in_file || !(0..=most_bytes).contains(&uncompressed) {
            return Err(flawed(format!(
                "a page at offset {start} claims an impossible {compressed} bytes, \
                 {uncompressed} without compression"
            )));
        }
        // Each value of a dictionary takes at least one byte; for other pages, the column states
        // the number of values.
        for (kind, most) in [(DICTIONARY, uncompressed), (DATA, most_values), (DATA_V2, most_values)] {
            if let Some(count) = number(Some(kind), VALUES).filter(|count| !(0..=most).contains(count)) {
                return Err(flawed(format!("a page at offset {start} claims an impossible {count} values")));
            }
        }
        Ok(())
    }
}

fn told(what: &str, flaw: Flaw) -> ParquetError {
    flawed(match flaw {
        Flaw::Cut => format!("{what} is cut short"),
        Flaw::Long => format!("{what} has a length beyond the end of the file"),
        Flaw::Kind => format!("{what} is damaged"),
    })
}

/// A reader of the file from an offset on.
#[derive(Debug)]
pub struct From {
    file: Arc<dyn File>,
    offset: u64,
}

impl Read for From {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buf, self.offset).map_err(io::Error::other)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Source {
    type T = BufReader<From>;

    /// The library reads page headers and the end of the file through this reader.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let from = From { file: Arc::clone(&self.file), offset: start };
        let mut reader = BufReader::with_capacity(READ_AHEAD, from);
        if start < self.bytes.saturating_sub(TAIL_BYTES) {
            let head = io::BufRead::fill_buf(&mut reader)
                .map_err(|error| ParquetError::External(Box::new(error)))?;
            self.check_page(start, head)?;
        }
        Ok(reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // BOUND: a corrupted length is refused if it exceeds the file.
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            let what =
                format!("{length} bytes at offset {start} reach beyond the file of {} bytes", self.bytes);
            return Err(ParquetError::EOF(what));
        }
        let mut chunk = vec![0; length];
        self.file.read_exact_at(&mut chunk, start).map_err(failed)?;
        self.counter.fetch_add(length as u64, Ordering::Relaxed);
        Ok(chunk.into())
    }
}
