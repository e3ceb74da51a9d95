//! Records from the outside, one at a time: an input is never in memory as a whole.

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

/// Bytes that are read from an input at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Takes records.
pub trait Sink {
    /// One record.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// One record with a value of exactly `bytes` bytes that need not be in memory as a whole.
    fn put_stream(&mut self, key: &[u8], bytes: u64, value: &mut dyn Read) -> Result<()>;
}

/// Gives records.
pub trait Source: Debug {
    /// Hands the next record to `sink`; false at the end.
    ///
    /// Errors: [`Error::Input`] naming the place of a record that is not as it should be; those of
    /// `sink`.
    fn feed(&mut self, sink: &mut dyn Sink) -> Result<bool>;
}

/// What an input is called in messages.
pub fn name_of(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Whether a name stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The file behind an input, which for standard input may be one that the shell has opened.
pub fn path_of(args: &InputArgs) -> &Path {
    if is_stdin(&args.input) { Path::new("/dev/stdin") } else { &args.input }
}

/// What an input is: as it was said, or else by its name.
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

/// Opens an input, and a bar that shows how far it is read.
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

/// Bytes in order, from a file, a pipe or standard input.
type Stream = BufReader<Box<dyn stream::Bytes>>;

fn from_stream(format: Format, stream: Stream, name: String, args: &InputArgs) -> Result<Box<dyn Source>> {
    Ok(match format {
        Format::Csv => Box::new(csv::CsvSource::open(stream, Dialect::CSV, name, args)?),
        Format::Tsv => Box::new(csv::CsvSource::open(stream, Dialect::TSV, name, args)?),
        Format::Jsonl => Box::new(jsonl::JsonlSource::open(stream, name, args)?),
        Format::Parquet | Format::Binary => Box::new(binary::BinarySource::new(stream, name)),
    })
}

/// Finds a column by its name, or else by its number counted from 1.
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
