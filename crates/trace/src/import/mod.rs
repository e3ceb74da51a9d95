//! Converts traces of other tools: CSV, lists of pages, and RocksDB's traces, each plain or
//! gzip-compressed.
//!
//! An input is read in one pass, a row, line or record at a time. It may therefore be larger than
//! memory, and may be a pipe.

mod block_cache;
mod csv_rows;
mod operations;
mod outcomes;
mod pages;

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use cairn_codec::key_hash::KeyHash;
use cairn_rows::mark;
use cairn_vfs::{Clock, Fs, Rng, SystemClock, SystemRng};
use flate2::read::MultiGzDecoder;

use crate::error::{Error, Result};
use crate::event::{Detail, Event};
use crate::format::{Header, KEY_BYTES_MAX, KeyForm};
use crate::sample;
use crate::writer::Writer;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The number of bytes from which the format is guessed.
const HEAD_BYTES: u64 = 4096;
/// The size of the read buffer.
const BUFFER_BYTES: usize = 1 << 18;
/// The report for operations whose time is before that of the operation before. They get that time
/// instead, because the times of a trace never decrease.
const BACK_IN_TIME: &str = "times before the previous operation's, replaced by it";

/// The format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// CSV with a header row. Columns: `key` or `key_hex`, and any of `time`, `op`, `key_size`,
    /// `value_size`, `found`, `count`, `keyspace`, `end` or `end_hex`, `joined`, `backwards`.
    Csv,
    /// One page number per line, as in traces of papers on replacement policies.
    Pages,
    /// RocksDB's trace of operations (`DB::StartTrace`), versions 0.1 and 0.2.
    RocksdbOperations,
    /// RocksDB's trace of its block cache (`DB::StartBlockCacheTrace`): the block accesses.
    RocksdbBlockCache,
    /// The same trace as text, as written by `block_cache_trace_analyzer
    /// -human_readable_trace_file_path`: the block accesses.
    RocksdbBlockCacheText,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 5] = [
        Format::Csv,
        Format::Pages,
        Format::RocksdbOperations,
        Format::RocksdbBlockCache,
        Format::RocksdbBlockCacheText,
    ];

    /// Returns the format's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Pages => "pages",
            Format::RocksdbOperations => "rocksdb",
            Format::RocksdbBlockCache => "rocksdb-block-cache",
            Format::RocksdbBlockCacheText => "rocksdb-block-cache-text",
        }
    }

    /// Returns false if the first bytes show that the input does not have this format. For text
    /// formats it returns true; their lines are checked when they are read.
    fn fits(self, input: &[u8]) -> bool {
        match self {
            Format::RocksdbOperations => operations::is_one(input),
            Format::RocksdbBlockCache => block_cache::is_one(input),
            Format::Csv | Format::Pages | Format::RocksdbBlockCacheText => true,
        }
    }

    /// Guesses the format from the first bytes of an input.
    pub fn guess(input: &[u8]) -> Option<Format> {
        if operations::is_one(input) {
            return Some(Format::RocksdbOperations);
        }
        if block_cache::is_one(input) {
            return Some(Format::RocksdbBlockCache);
        }
        let start = input.get(..input.len().min(HEAD_BYTES as usize)).unwrap_or_default();
        let line = start.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty())?;
        let line = std::str::from_utf8(line).ok()?.trim();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number(line) {
            return Some(Format::Pages);
        }
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if block_cache::is_text(&fields) {
            return Some(Format::RocksdbBlockCacheText);
        }
        csv_rows::has_key(&fields).then_some(Format::Csv)
    }
}

/// Options of an import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The format of the input. Default: guessed from its first bytes.
    pub format: Option<Format>,
    /// The form of keys. Default: unchanged.
    pub keys: KeyForm,
    /// The operations of one key in this many are imported. Default: 1, all.
    pub sample: u32,
    /// The seed of the key hashes. Default: a random number.
    pub hash_seed: Option<u64>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        ImportOptions { format: None, keys: KeyForm::Raw, sample: 1, hash_seed: None }
    }
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The format of the input.
    pub format: Format,
    /// The number of operations in the trace.
    pub records: u64,
    /// Input items that have no counterpart in a trace, counted by name.
    pub skipped: Vec<(String, u64)>,
    /// True if the input ends within a record, as the trace of a killed program does.
    pub cut: bool,
}

/// Writes the trace `path`, which must not exist, from `input`. Messages call the input `name`.
///
/// Errors: [`Error::Input`] with the line or byte for malformed input; [`Error::Vfs`]. The
/// unfinished trace stays, and reads as one that was cut.
pub fn import(
    fs: &Arc<dyn Fs>,
    name: &str,
    input: &mut dyn Read,
    path: &Path,
    options: &ImportOptions,
) -> Result<Imported> {
    let (head, input) = unpacked(name, input)?;
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let format = options.format.or_else(|| Format::guess(&head)).ok_or_else(|| Error::Input {
        input: name.to_owned(),
        place: None,
        what: format!(
            "matches no known format ({}); a CSV file needs a header with a column `key`",
            Format::ALL.map(Format::name).join(", ")
        ),
    })?;
    if !format.fits(&head) {
        let what = format!("does not begin like a trace of the format {}", format.name());
        return Err(Error::Input { input: name.to_owned(), place: None, what });
    }
    if options.sample == 0 {
        return Err(Error::invalid("sample 0: expected 1 or more"));
    }
    let random = |salt: u64| {
        SystemRng::new().map_or(SystemClock::new().wall().as_nanos() as u64 ^ salt, |mut rng| rng.next_u64())
    };
    let mut sink = Sink {
        fs: Arc::clone(fs),
        path: path.to_owned(),
        header: Header {
            keys: options.keys,
            timed: true,
            started_ns: 0,
            file_id: random(1),
            sample: options.sample,
            adaptive: None,
            source: format!("{name}, {}", format.name()),
        },
        writer: None,
        threshold: sample::threshold(options.sample),
        goes_on: false,
        last_ns: 0,
        hash: KeyHash::new(options.hash_seed.unwrap_or_else(|| random(2))),
        skipped: Vec::new(),
        cut: false,
    };
    match format {
        Format::Csv => csv_rows::read(name, &mut input, &mut sink)?,
        Format::Pages => pages::read(name, &mut input, &mut sink)?,
        Format::RocksdbOperations => operations::read(name, &mut input, &mut sink)?,
        Format::RocksdbBlockCache => block_cache::read(name, &mut input, &mut sink)?,
        Format::RocksdbBlockCacheText => block_cache::read_text(name, &mut input, &mut sink)?,
    }
    let (skipped, cut) = (std::mem::take(&mut sink.skipped), sink.cut);
    let records = sink.writer()?.take_finish()?;
    if records == 0 {
        let left_out: Vec<String> =
            skipped.iter().map(|(what, count)| format!("; skipped {count}: {what}")).collect();
        let what = format!("contains no operations{}", left_out.concat());
        return Err(Error::Input { input: name.to_owned(), place: None, what });
    }
    Ok(Imported { format, records, skipped, cut })
}

/// Returns the first bytes of an input, and a reader over the whole input, both decompressed.
fn unpacked<'a>(name: &str, input: &'a mut dyn Read) -> Result<(Vec<u8>, Box<dyn Read + 'a>)> {
    let (head, whole) = peeked(name, Box::new(input))?;
    match head.starts_with(&GZIP) {
        true => peeked(name, Box::new(Gzip(MultiGzDecoder::new(whole)))),
        false => Ok((head, whole)),
    }
}

fn peeked<'a>(name: &str, mut input: Box<dyn Read + 'a>) -> Result<(Vec<u8>, Box<dyn Read + 'a>)> {
    let mut head = Vec::new();
    input.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(|error| unreadable(name, &error))?;
    // Remove a byte order mark: no format begins with one, and it has no meaning in text.
    head.drain(..head.len() - mark::without(&head).len());
    let whole = Cursor::new(head.clone()).chain(input);
    Ok((head, Box::new(whole)))
}

fn unreadable(name: &str, error: &io::Error) -> Error {
    Error::Input { input: name.to_owned(), place: None, what: error.to_string() }
}

/// Decompresses, and explains in errors that the input should be a gzip file.
struct Gzip<R>(MultiGzDecoder<R>);

impl<R: Read> Read for Gzip<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let told = |error: &io::Error| format!("truncated or damaged gzip data: {error}");
        self.0.read(buf).map_err(|error| io::Error::new(error.kind(), told(&error)))
    }
}

/// Passes each line to `each`, with its number from 1 and without surrounding blanks.
fn each_line(
    name: &str,
    input: &mut dyn BufRead,
    mut each: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if input.read_until(b'\n', &mut line).map_err(|error| unreadable(name, &error))? == 0 {
            break;
        }
        each(number, line.trim_ascii())?;
    }
    Ok(())
}

/// Receives events with original keys from a format's reader. The header is fixed by the first
/// event.
struct Sink {
    fs: Arc<dyn Fs>,
    path: std::path::PathBuf,
    header: Header,
    writer: Option<Finishing>,
    threshold: u64,
    /// True if an operation of the current batch is in the sample.
    goes_on: bool,
    /// The time of the last operation.
    last_ns: u64,
    hash: KeyHash,
    skipped: Vec<(String, u64)>,
    cut: bool,
}

/// A writer that can be moved out to be finished.
struct Finishing(Option<Writer>);

impl Finishing {
    fn take_finish(&mut self) -> Result<u64> {
        self.0.take().map_or(Ok(0), Writer::finish)
    }
}

impl Sink {
    fn writer(&mut self) -> Result<&mut Finishing> {
        if self.writer.is_none() {
            let writer = Writer::create(&self.fs, &self.path, &self.header)?;
            self.writer = Some(Finishing(Some(writer)));
        }
        self.writer.as_mut().ok_or_else(|| Error::invalid("no writer"))
    }

    /// Returns the hash of an original key, truncated as in a trace; `None` if it is not in the
    /// sample.
    fn hash_in_sample(&self, key: &[u8]) -> Option<u64> {
        Some(self.hash.of(cut(key))).filter(|hash| *hash <= self.threshold)
    }

    /// Adds an event with its original key. Hashes and samples it according to the options.
    fn add(&mut self, event: &Event<'_>) -> Result<()> {
        let key = cut(event.key);
        let hash = self.hash.of(key);
        let mut event = *event;
        if !sample::takes(hash, self.threshold, &mut event.joined, &mut self.goes_on) {
            return Ok(());
        }
        let hashed = self.header.keys == KeyForm::Hashed;
        let hash = hash.to_le_bytes();
        let end_hash;
        event.key = if hashed { &hash } else { key };
        if let Detail::DeleteRange { end, end_bytes } = event.detail {
            let end = cut(end);
            end_hash = self.hash.of(end).to_le_bytes();
            event.detail = Detail::DeleteRange { end: if hashed { &end_hash } else { end }, end_bytes };
        }
        match &mut self.writer()?.0 {
            Some(writer) => writer.add(&event),
            None => Ok(()),
        }
    }

    /// Returns the time of the next operation, in nanoseconds from the start. A time before that of
    /// the last operation is counted and replaced by the latter.
    fn time(&mut self, time_ns: i128) -> u64 {
        if time_ns < i128::from(self.last_ns) {
            self.skip(BACK_IN_TIME);
        } else {
            self.last_ns = u64::try_from(time_ns).unwrap_or(u64::MAX);
        }
        self.last_ns
    }

    /// Like [`Sink::time`], for clock readings in microseconds.
    fn micros(&mut self, micros: u64, start: u64) -> u64 {
        self.time((i128::from(micros) - i128::from(start)) * 1_000)
    }

    fn skip(&mut self, what: &str) {
        match self.skipped.iter_mut().find(|(known, _)| known == what) {
            Some((_, count)) => *count += 1,
            None => self.skipped.push((what.to_owned(), 1)),
        }
    }
}

/// Truncates a key to the maximum length that a trace keeps.
fn cut(key: &[u8]) -> &[u8] {
    key.get(..key.len().min(KEY_BYTES_MAX)).unwrap_or_default()
}

/// Creates an event in the single lane of an input.
fn event<'a>(time_ns: u64, key: &'a [u8], detail: Detail<'a>) -> Event<'a> {
    Event { time_ns, lane: 0, joined: false, keyspace: 0, key, key_bytes: key.len() as u32, detail }
}

#[cfg(test)]
mod tests;
