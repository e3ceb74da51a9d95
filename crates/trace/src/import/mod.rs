//! Traces of others as ours: CSV, lists of pages, and what RocksDB records, each plain or with
//! gzip.
//!
//! An input is read once from its start to its end, a row, a line or a record at a time, so that it
//! may be larger than memory and come from a pipe.

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
/// So much of an input shows what it is.
const HEAD_BYTES: u64 = 4096;
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 18;
/// What is told of an operation whose time was before that of the one before it, which it gets
/// then: times of a trace never go back.
const BACK_IN_TIME: &str = "times that go back (the time of the operation before is taken)";

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Rows with a head that names the columns: `key` or `key_hex`, and any of `time`, `op`,
    /// `key_size`, `value_size`, `found`, `count`, `keyspace`, `end` or `end_hex`, `joined`,
    /// `backwards`.
    Csv,
    /// One page number a line, as in the traces of papers on replacement.
    Pages,
    /// RocksDB's trace of operations (`DB::StartTrace`), versions 0.1 and 0.2.
    RocksdbOperations,
    /// RocksDB's trace of its block cache (`DB::StartBlockCacheTrace`): the blocks.
    RocksdbBlockCache,
    /// The same as text, by `block_cache_trace_analyzer -human_readable_trace_file_path`: the
    /// blocks.
    RocksdbBlockCacheText,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 5] = [
        Format::Csv,
        Format::Pages,
        Format::RocksdbOperations,
        Format::RocksdbBlockCache,
        Format::RocksdbBlockCacheText,
    ];

    /// Its word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Pages => "pages",
            Format::RocksdbOperations => "rocksdb",
            Format::RocksdbBlockCache => "rocksdb-block-cache",
            Format::RocksdbBlockCacheText => "rocksdb-block-cache-text",
        }
    }

    /// False where the input cannot be of this format, going by its first bytes. Of text, its lines
    /// tell.
    fn fits(self, input: &[u8]) -> bool {
        match self {
            Format::RocksdbOperations => operations::is_one(input),
            Format::RocksdbBlockCache => block_cache::is_one(input),
            Format::Csv | Format::Pages | Format::RocksdbBlockCacheText => true,
        }
    }

    /// The format that an input begins as, if any.
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

/// How an input becomes a trace.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// What the input is. Default: found out.
    pub format: Option<Format>,
    /// How keys are kept. Default: as they are.
    pub keys: KeyForm,
    /// The operations of one key in so many are taken. Default: 1, all.
    pub sample: u32,
    /// Seeds the hashes of keys. Default: a random number.
    pub hash_seed: Option<u64>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        ImportOptions { format: None, keys: KeyForm::Raw, sample: 1, hash_seed: None }
    }
}

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// What the input was.
    pub format: Format,
    /// Operations in the trace.
    pub records: u64,
    /// Of the input, what has no counterpart in a trace, by name.
    pub skipped: Vec<(String, u64)>,
    /// True where the input ends within a record, as that of a program that was killed does.
    pub cut: bool,
}

/// Makes the trace `path`, which must not exist, from `input`, which messages call `name`.
///
/// Errors: [`Error::Input`] with the line or byte for what is not as it should be; [`Error::Vfs`].
/// The unfinished trace stays, and reads as one that was cut.
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
            "its beginning matches none of the formats {}; a CSV file needs a first line that names a column key",
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
            skipped.iter().map(|(what, count)| format!("; left out, {count}: {what}")).collect();
        let what = format!("it has no operations, so the trace would be empty{}", left_out.concat());
        return Err(Error::Input { input: name.to_owned(), place: None, what });
    }
    Ok(Imported { format, records, skipped, cut })
}

/// The first bytes of an input, and all of it from its start on, without gzip.
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
    // None of the formats begins with these bytes, and texts mean nothing by them.
    head.drain(..head.len() - mark::without(&head).len());
    let whole = Cursor::new(head.clone()).chain(input);
    Ok((head, Box::new(whole)))
}

fn unreadable(name: &str, error: &io::Error) -> Error {
    Error::Input { input: name.to_owned(), place: None, what: error.to_string() }
}

/// Unpacks, and says of an input that it cannot unpack what that should be.
struct Gzip<R>(MultiGzDecoder<R>);

impl<R: Read> Read for Gzip<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let told = |error: &io::Error| format!("not a whole gzip file: {error}");
        self.0.read(buf).map_err(|error| io::Error::new(error.kind(), told(&error)))
    }
}

/// Hands each line to `each`, with its number from 1 and without blanks around it.
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

/// Takes events of a reader, with their real keys. The header is fixed at the first one.
struct Sink {
    fs: Arc<dyn Fs>,
    path: std::path::PathBuf,
    header: Header,
    writer: Option<Finishing>,
    threshold: u64,
    /// Something of the current batch is in the sample.
    goes_on: bool,
    /// The time of the last operation.
    last_ns: u64,
    hash: KeyHash,
    skipped: Vec<(String, u64)>,
    cut: bool,
}

/// A writer that can be taken out to be finished.
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

    /// The hash of a real key, as far as keys go; `None` for one that is not in the sample.
    fn hash_in_sample(&self, key: &[u8]) -> Option<u64> {
        Some(self.hash.of(cut(key))).filter(|hash| *hash <= self.threshold)
    }

    /// Adds an event whose key is the real one; hashes and samples it as asked.
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

    /// The time of the next operation, in nanoseconds from the start on. What goes back behind the
    /// one before is counted, and gets its time.
    fn time(&mut self, time_ns: i128) -> u64 {
        if time_ns < i128::from(self.last_ns) {
            self.skip(BACK_IN_TIME);
        } else {
            self.last_ns = u64::try_from(time_ns).unwrap_or(u64::MAX);
        }
        self.last_ns
    }

    /// As [`Sink::time`], of two readings of a clock in microseconds.
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

/// A key as far as a trace keeps it.
fn cut(key: &[u8]) -> &[u8] {
    key.get(..key.len().min(KEY_BYTES_MAX)).unwrap_or_default()
}

/// An event of the one lane that an input has.
fn event<'a>(time_ns: u64, key: &'a [u8], detail: Detail<'a>) -> Event<'a> {
    Event { time_ns, lane: 0, joined: false, keyspace: 0, key, key_bytes: key.len() as u32, detail }
}

#[cfg(test)]
mod tests;
