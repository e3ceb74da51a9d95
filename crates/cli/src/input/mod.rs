//! Input records, read one at a time, so that an input may be larger than memory.

mod binary;
mod csv;
mod jsonl;
mod parquet;
pub mod stream;

use std::fmt::Debug;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use cairn_rows::csv::{self as rows, Dialect, Missing};
use cairn_vfs::{Fs, OpenOptions};

use crate::args::hash::{Format, InputArgs};
use crate::error::{Error, Result};
use crate::place;
use crate::progress::InputProgress;
use stream::StdinStream;
pub use stream::{read_lines, read_whole};

/// The size of the read buffer.
const BUFFER_BYTES: usize = 1 << 20;

/// A consumer of records.
pub trait Sink {
    /// Consumes one record.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Consumes one record with a value of exactly `bytes` bytes, which is streamed.
    fn put_stream(&mut self, key: &[u8], bytes: u64, value: &mut dyn Read) -> Result<()>;
}

/// A producer of records.
pub trait Source: Debug {
    /// Passes the next record to `sink`; returns false at the end.
    ///
    /// Errors: [`Error::Input`] with the place of a malformed record; those of `sink`.
    fn feed(&mut self, sink: &mut dyn Sink) -> Result<bool>;
}

/// Returns the name of an input in messages.
pub fn name_of(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Returns true if the path stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the file of an input. Standard input may be a file that the shell has opened.
pub fn path_of(args: &InputArgs) -> &Path {
    if is_stdin(&args.input) { Path::new("/dev/stdin") } else { &args.input }
}

/// Returns the format of an input: the given one, or else the one that its extension names.
pub fn format_of(args: &InputArgs) -> Result<Format> {
    if let Some(format) = args.format {
        return Ok(format);
    }
    let extension = args.input.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "csv" => Ok(Format::Csv),
        "tsv" | "tab" => Ok(Format::Tsv),
        "jsonl" | "ndjson" => Ok(Format::Jsonl),
        "parquet" | "pq" => Ok(Format::Parquet),
        "bin" => Ok(Format::Binary),
        _ => Err(Error::usage(format!(
            "{} has no known extension (.csv, .tsv, .jsonl, .parquet, .bin): use --format",
            name_of(&args.input)
        ))),
    }
}

/// Opens an input together with its progress bar.
pub fn open(fs: &Arc<dyn Fs>, args: &InputArgs) -> Result<(Box<dyn Source>, InputProgress)> {
    let (format, name) = (format_of(args)?, name_of(&args.input));
    if format == Format::Binary && (args.key.is_some() || args.value.is_some()) {
        return Err(Error::usage("--key and --value name columns, which the binary format does not have"));
    }
    let in_order = is_stdin(&args.input) || stream::is_pipe(&args.input);
    if in_order && format == Format::Parquet {
        return Err(Error::usage(format!("Parquet is read from its end: expected a file instead of {name}")));
    }
    if is_stdin(&args.input) {
        let progress = InputProgress::new(None);
        let stream: Stream =
            BufReader::with_capacity(BUFFER_BYTES, Box::new(StdinStream::new(progress.counter())));
        return Ok((from_stream(format, stream, name, args)?, progress));
    }
    place::expect_file(fs, &args.input)?;
    if format == Format::Parquet {
        let file = fs.open(&args.input, OpenOptions::read())?;
        let progress = InputProgress::new(Some(file.len()?));
        let source = parquet::ParquetSource::open(file.into(), name, args, progress.counter())?;
        return Ok((Box::new(source), progress));
    }
    let counter = Arc::default();
    let (bytes, total_bytes) = stream::open_in_order(fs, &args.input, Arc::clone(&counter))?;
    let progress = InputProgress::counting(total_bytes, counter);
    let stream: Stream = BufReader::with_capacity(BUFFER_BYTES, bytes);
    Ok((from_stream(format, stream, name, args)?, progress))
}

/// Sequential bytes of a file, a pipe or standard input.
type Stream = BufReader<Box<dyn stream::Bytes>>;

fn from_stream(format: Format, stream: Stream, name: String, args: &InputArgs) -> Result<Box<dyn Source>> {
    Ok(match format {
        Format::Csv => Box::new(csv::CsvSource::open(stream, Dialect::CSV, name, args)?),
        Format::Tsv => Box::new(csv::CsvSource::open(stream, Dialect::TSV, name, args)?),
        Format::Jsonl => Box::new(jsonl::JsonlSource::open(stream, name, args)?),
        Format::Parquet | Format::Binary => Box::new(binary::BinarySource::new(stream, name)),
    })
}

/// Finds a column by its name, or else by its number, counted from 1.
fn find_column<'a>(
    names: impl Iterator<Item = &'a [u8]> + Clone,
    column: &str,
    input: &str,
) -> Result<usize> {
    rows::find_column(names.clone(), column).map_err(|missing: Missing| {
        let hint = if missing == Missing::Unknown { "; choose with --key and --value" } else { "" };
        let what = format!("{}{hint}", missing.told(column, names));
        Error::Input { input: input.to_owned(), place: None, what }
    })
}
