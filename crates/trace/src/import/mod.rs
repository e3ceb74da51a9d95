//! Traces of others as ours: CSV, lists of pages, and what RocksDB records, each plain or with gzip.
//!
//! The whole input is in memory while it is read; RocksDB's traces and lists of pages are small beside what they were taken from.

mod block_cache;
mod csv_rows;
mod operations;
mod pages;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cairn_codec::checksum::xxh3_64_seeded;
use cairn_vfs::{Clock, Fs, Rng, SystemClock, SystemRng};
use flate2::read::MultiGzDecoder;

use crate::error::{Error, Result};
use crate::event::{Detail, Event};
use crate::format::{Header, KEY_BYTES_MAX, KeyForm};
use crate::writer::Writer;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// An input that unpacks to more than this is taken for a mistake.
const INPUT_BYTES_MAX: u64 = 16 << 30;

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Rows with a head that names the columns: `key` or `key_hex`, and any of `time`, `op`, `key_size`, `value_size`, `found`, `count`,
    /// `keyspace`, `end`, `joined`, `backwards`.
    Csv,
    /// One page number a line, as in the traces of papers on replacement.
    Pages,
    /// RocksDB's trace of operations (`DB::StartTrace`), versions 0.1 and 0.2.
    RocksdbOperations,
    /// RocksDB's trace of its block cache (`DB::StartBlockCacheTrace`): the blocks.
    RocksdbBlockCache,
    /// The same as text, by `block_cache_trace_analyzer -human_readable_trace_file_path`: the blocks.
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

    /// False where the input cannot be of this format, going by its first bytes. Of text, its lines tell.
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
        let start = input.get(..input.len().min(4096)).unwrap_or_default();
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
/// Errors: [`Error::Input`] with the line or byte for what is not as it should be; [`Error::Vfs`]. The unfinished trace stays, and
/// reads as one that was cut.
pub fn import(
    fs: &Arc<dyn Fs>,
    name: &str,
    input: Vec<u8>,
    path: &Path,
    options: &ImportOptions,
) -> Result<Imported> {
    let input = unpacked(name, input)?;
    let format = options.format.or_else(|| Format::guess(&input)).ok_or_else(|| Error::Input {
        input: name.to_owned(),
        place: None,
        what: format!(
            "not one of the formats {}, as far as its beginning shows; a CSV file needs a first line that names a column key",
            Format::ALL.map(Format::name).join(", ")
        ),
    })?;
    if !format.fits(&input) {
        let what = format!("does not begin as a trace of the format {} does", format.name());
        return Err(Error::Input { input: name.to_owned(), place: None, what });
    }
    if options.sample == 0 {
        return Err(Error::invalid("sample 0: expected the operations of one key in 1 or more"));
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
        threshold: u64::MAX / u64::from(options.sample),
        hash_seed: options.hash_seed.unwrap_or_else(|| random(2)),
        skipped: Vec::new(),
        cut: false,
    };
    match format {
        Format::Csv => csv_rows::read(name, &input, &mut sink)?,
        Format::Pages => pages::read(name, &input, &mut sink)?,
        Format::RocksdbOperations => operations::read(name, &input, &mut sink)?,
        Format::RocksdbBlockCache => block_cache::read(name, &input, &mut sink)?,
        Format::RocksdbBlockCacheText => block_cache::read_text(name, &input, &mut sink)?,
    }
    let (skipped, cut) = (std::mem::take(&mut sink.skipped), sink.cut);
    let records = sink.writer()?.take_finish()?;
    if records == 0 {
        let left_out: Vec<String> =
            skipped.iter().map(|(what, count)| format!("; left out, {count}: {what}")).collect();
        let what =
            format!("there is no operation in it, so there would be none in the trace{}", left_out.concat());
        return Err(Error::Input { input: name.to_owned(), place: None, what });
    }
    Ok(Imported { format, records, skipped, cut })
}

fn unpacked(name: &str, input: Vec<u8>) -> Result<Vec<u8>> {
    if !input.starts_with(&GZIP) {
        return Ok(input);
    }
    let refuse = |what: String| Error::Input { input: name.to_owned(), place: None, what };
    let mut bytes = Vec::new();
    let mut unpacked = MultiGzDecoder::new(&input[..]).take(INPUT_BYTES_MAX + 1);
    unpacked.read_to_end(&mut bytes).map_err(|error| refuse(format!("not a whole gzip file: {error}")))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(refuse(format!("unpacks to more than {INPUT_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// Takes events of a reader, with their real keys. The header is fixed at the first one.
struct Sink {
    fs: Arc<dyn Fs>,
    path: std::path::PathBuf,
    header: Header,
    writer: Option<Finishing>,
    threshold: u64,
    hash_seed: u64,
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

    /// Adds an event whose key is the real one; hashes and samples it as asked.
    fn add(&mut self, event: &Event<'_>) -> Result<()> {
        let cut = |key: &[u8]| key.len().min(KEY_BYTES_MAX);
        let key = event.key.get(..cut(event.key)).unwrap_or_default();
        let hash = xxh3_64_seeded(key, self.hash_seed);
        if hash > self.threshold {
            return Ok(());
        }
        let hashed = self.header.keys == KeyForm::Hashed;
        let hash = hash.to_le_bytes();
        let end_hash;
        let mut event = *event;
        if hashed {
            event.key = &hash;
            if let Detail::DeleteRange { end, end_bytes } = event.detail {
                end_hash = xxh3_64_seeded(end, self.hash_seed).to_le_bytes();
                event.detail = Detail::DeleteRange { end: &end_hash, end_bytes };
            }
        } else {
            event.key = key;
        }
        match &mut self.writer()?.0 {
            Some(writer) => writer.add(&event),
            None => Ok(()),
        }
    }

    fn skip(&mut self, what: &str) {
        match self.skipped.iter_mut().find(|(known, _)| known == what) {
            Some((_, count)) => *count += 1,
            None => self.skipped.push((what.to_owned(), 1)),
        }
    }
}

/// An event of the one lane that an input has.
fn event<'a>(time_ns: u64, key: &'a [u8], detail: Detail<'a>) -> Event<'a> {
    Event { time_ns, lane: 0, joined: false, keyspace: 0, key, key_bytes: key.len() as u32, detail }
}

#[cfg(test)]
mod tests;
