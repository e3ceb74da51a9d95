//! `cairn hash append`, `delete`, `rewrite` and `convert`.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cairn_hash::generations::{self, Generations, StoreBuilder};
use cairn_hash::sparkey::{self, Format, IndexOptions, LogReader, LogWriter, Mode};
use cairn_hash::table::ReaderOptions;
use cairn_vfs::Fs;
use serde_json::{Value, json};

use super::build::{pump, report};
use super::get::parse_key;
use super::store::{Recording, Store, kind_of, same_file};
use super::writer::{
    Writer, index_options, kind_by_extension, log_options, rng, summarize_pair, table_options,
};
use crate::args::hash::{AppendArgs, Codec, ConvertArgs, DeleteArgs, Kind, RewriteArgs, WriteArgs};
use crate::deleted::Deleted;
use crate::error::{Error, Result};
use crate::input::{self, Sink};
use crate::output::{Outcome, Output, counted};
use crate::progress::BuildBar;

/// A change of an existing store: a delta over a table, or new records in a log.
#[derive(Debug)]
enum Change {
    Table(Box<StoreBuilder>),
    /// The log, and the options for its index.
    Sparkey(Box<LogWriter>, IndexOptions),
}

impl Change {
    fn start(fs: &Arc<dyn Fs>, path: &Path, args: &WriteArgs, codec: Codec) -> Result<Change> {
        match kind_of(&**fs, path)? {
            Kind::Cairn => {
                let mut delta =
                    StoreBuilder::append_in(fs, path, table_options(args, codec)?, &mut rng(path)?)?;
                delta.set_progress(Box::new(BuildBar::new()));
                Ok(Change::Table(Box::new(delta)))
            }
            Kind::Sparkey => {
                // ORDER: check everything before the log is touched, because flushed records stay.
                let (options, index) = (log_options(args, codec)?, index_options(args)?);
                Ok(Change::Sparkey(Box::new(LogWriter::append_in(fs, path, &options)?), index))
            }
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        match self {
            Change::Table(delta) => delta.delete(key)?,
            Change::Sparkey(log, _) => _ = log.delete(key)?,
        }
        Ok(())
    }

    fn finish(self, fs: &Arc<dyn Fs>, path: &Path) -> Result<Value> {
        match self {
            Change::Table(delta) => {
                let done = delta.finish()?;
                Ok(json!({
                    "store": path.display().to_string(),
                    "format": "cairn",
                    "delta_bytes": done.file_bytes,
                }))
            }
            Change::Sparkey(mut log, index) => {
                // The log stays locked until its index is complete.
                log.flush()?;
                sparkey::build_index_in(fs, path, &index).map_err(|error| {
                    let log = log.path().display();
                    let left = format!("the changes are already in {log}: run `cairn hash index {log}`");
                    cairn_hash::Error::Unfinished { error: Box::new(error), left }
                })?;
                summarize_pair(fs, path)
            }
        }
    }
}

impl Sink for Change {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match self {
            Change::Table(delta) => delta.put(key, value)?,
            Change::Sparkey(log, _) => log.put(key, value)?,
        }
        Ok(())
    }

    fn put_stream(&mut self, key: &[u8], bytes: u64, value: &mut dyn Read) -> Result<()> {
        match self {
            Change::Table(delta) => delta.put_stream(key, bytes, value)?,
            Change::Sparkey(log, _) => log.put_stream(key, bytes, value)?,
        }
        Ok(())
    }
}

/// The format of an existing store, which its changes get by default.
#[derive(Debug)]
struct Written {
    codec: Codec,
    /// `None` for a store without blocks.
    block_bytes: Option<u64>,
}

impl Written {
    fn find(fs: &Arc<dyn Fs>, path: &Path) -> Result<Written> {
        let (format, block_bytes) = match kind_of(&**fs, path)? {
            Kind::Cairn => {
                let store = Generations::open_in(fs, path, ReaderOptions::default())?;
                // Newest first. A table that only deletes keys has no compression, and says nothing
                // about the store.
                let mut formats = store.tables().iter().map(|table| table.info().compression);
                (formats.find(|format| *format != Format::None).unwrap_or_default(), 0)
            }
            Kind::Sparkey => {
                let log = LogReader::open_in(fs, path, Mode::Pread)?;
                match log.header().compression {
                    // Ignore the block size, which Java writes even without compression.
                    Format::None => (Format::None, 0),
                    format => (format, log.header().block_bytes),
                }
            }
        };
        let codec = match format {
            Format::None => Codec::None,
            Format::Snappy => Codec::Snappy,
            Format::Zstd => Codec::Zstd,
        };
        Ok(Written { codec, block_bytes: (block_bytes > 0).then_some(block_bytes.into()) })
    }
}

/// Refuses options that differ from the log's format, because a log keeps its format and would
/// ignore them.
fn check_same_log(args: &WriteArgs, had: &Written) -> Result<()> {
    let refuse = |what: String| {
        Err(Error::usage(format!("the log is written with {what}; `rewrite` can change that")))
    };
    if args.compression.is_some_and(|codec| codec != had.codec) {
        return refuse(format!("compression {}", format!("{:?}", had.codec).to_lowercase()));
    }
    match had.block_bytes {
        Some(bytes) if args.block_bytes.is_some_and(|asked| asked != bytes) => {
            refuse(format!("blocks of {bytes} bytes"))
        }
        _ => Ok(()),
    }
}

/// Adds the records of an input. A bad record leaves the store unchanged.
pub fn append(fs: &Arc<dyn Fs>, args: &AppendArgs) -> Result<Outcome> {
    let had = Written::find(fs, &args.store)?;
    if kind_of(&**fs, &args.store)? == Kind::Sparkey {
        check_same_log(&args.write, &had)?;
    }
    let (source, progress) = input::open(fs, &args.input)?;
    let mut change =
        Change::start(fs, &args.store, &args.write, args.write.compression.unwrap_or(had.codec))?;
    let recording = Recording::begin();
    let records = pump(source, progress, &mut recording.of(&mut change))?;
    let mut written = change.finish(fs, &args.store)?;
    if let Some(object) = written.as_object_mut() {
        object.insert("appended".to_owned(), records.into());
    }
    let mut out = Output::new();
    if args.json {
        out.json(&written)?;
    } else {
        let records = counted(records, "record", "records");
        out.line(format!("appended {records} to {}", args.store.display()))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// Deletes keys. Absent keys are reported, and make the outcome "not found".
pub fn delete(fs: &Arc<dyn Fs>, args: &DeleteArgs) -> Result<Outcome> {
    let mut keys = Vec::new();
    for key in &args.key {
        keys.push(parse_key(key, args.hex)?);
    }
    let mut seen = HashSet::new();
    keys.retain(|key| seen.insert(key.clone()));
    let write = WriteArgs::unchanged();
    let start = || Change::start(fs, &args.store, &write, Codec::None);
    // ORDER: lock the log before reading the store. Otherwise keys that another process appends in
    // between would be taken for absent.
    let locked = match kind_of(&**fs, &args.store)? {
        Kind::Sparkey => Some(start()?),
        // Do not begin a delta that may stay empty.
        Kind::Cairn => None,
    };
    let store = Store::open_all_of(fs, &args.store)?;
    let (mut there, mut absent) = (Vec::new(), Vec::new());
    let recording = Recording::begin();
    for key in keys {
        recording.contains(&key);
        if store.contains(&key)? { there.push(key) } else { absent.push(key) }
    }
    drop(store);
    if !there.is_empty() {
        let mut change = match locked {
            Some(change) => change,
            None => start()?,
        };
        there.iter().try_for_each(|key| change.delete(key))?;
        change.finish(fs, &args.store)?;
        there.iter().for_each(|key| recording.delete(key));
    }
    let absent = absent.iter().map(Vec::as_slice).collect();
    let deleted = Deleted { store: &args.store, keyspace: None, count: there.len(), absent };
    deleted.tell(args.hex, args.json)
}

/// Rewrites a store with only its live entries.
pub fn rewrite(fs: &Arc<dyn Fs>, args: &RewriteArgs) -> Result<Outcome> {
    let kind = kind_of(&**fs, &args.store)?;
    let had = Written::find(fs, &args.store)?;
    let codec = args.write.compression.unwrap_or(had.codec);
    // Without compression there are no blocks, so no block size to keep.
    let kept = had.block_bytes.filter(|_| codec != Codec::None);
    let write = WriteArgs { block_bytes: args.write.block_bytes.or(kept), ..args.write.clone() };
    let out = args.out.as_deref().unwrap_or(&args.store);
    if args.out.is_some() && kind_by_extension(out).is_ok_and(|asked| asked != kind) {
        return Err(Error::usage(format!(
            "{} has the other format: use `cairn hash convert`",
            out.display()
        )));
    }
    let written = match (Store::open_all_of(fs, &args.store)?, kind) {
        (Store::Sparkey(store), _) => {
            store.rewrite_in(fs, out, &log_options(&write, codec)?, &index_options(&write)?)?;
            summarize_pair(fs, out)?
        }
        (store, Kind::Cairn) if same_file(&**fs, &args.store, out)? => {
            drop(store);
            let options = table_options(&write, codec)?;
            let done = generations::compact_in(fs, &args.store, options, &mut rng(out)?)?;
            json!({
                "store": out.display().to_string(),
                "format": "cairn",
                "records": done.puts,
                "entries": done.entries,
                "file_bytes": done.file_bytes,
                "index_bytes": done.index_bytes,
            })
        }
        (store, kind) => copy(fs, &store, out, kind, &write, codec)?,
    };
    report("rewrote", written, args.json)
}

/// Copies a store to the format that the new name's extension asks for.
pub fn convert(fs: &Arc<dyn Fs>, args: &ConvertArgs) -> Result<Outcome> {
    let kind = kind_by_extension(&args.to)?;
    let store = Store::open_all_of(fs, &args.from)?;
    if kind == kind_of(&**fs, &args.from)? {
        return Err(Error::usage(format!(
            "{} already has that format: use `cairn hash rewrite`",
            args.from.display()
        )));
    }
    let codec = match args.write.compression {
        Some(codec) => codec,
        None => Written::find(fs, &args.from)?.codec,
    };
    let written = copy(fs, &store, &args.to, kind, &args.write, codec)?;
    report("wrote", written, args.json)
}

fn copy(
    fs: &Arc<dyn Fs>,
    store: &Store,
    to: &Path,
    kind: Kind,
    args: &WriteArgs,
    codec: Codec,
) -> Result<Value> {
    let mut writer = Writer::create(fs, to, kind, args, codec)?;
    store.copy_to(&mut writer)?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use cairn_vfs::fault::{Fault, Rule};
    use cairn_vfs::{AtomicFile, ErrorKind, FaultFs, FaultOptions, Operation};

    use super::*;

    /// Goal: when a log's index cannot be built after an append, the error says that the records
    /// are in the log and how to complete the job. Method: another process is building the index;
    /// the disk fails when the index is renamed into place.
    #[test]
    fn records_without_an_index_are_told() {
        let disk = FaultFs::new(FaultOptions::seeded(1));
        let (fs, path): (Arc<dyn Fs>, _) = (Arc::new(disk.clone()), Path::new("x.spi"));
        LogWriter::create_in(&fs, path, &sparkey::LogOptions::default()).unwrap().close().unwrap();
        sparkey::build_index_in(&fs, path, &IndexOptions::default()).unwrap();
        for (count, kind) in [(1, ErrorKind::Busy), (2, ErrorKind::Io)] {
            let mut change = Change::start(&fs, path, &WriteArgs::unchanged(), Codec::None).unwrap();
            change.put(b"k", b"v").unwrap();
            let other = (kind == ErrorKind::Busy).then(|| AtomicFile::create(&fs, path).unwrap());
            if other.is_none() {
                disk.inject(Rule::nth(
                    Operation::Rename,
                    disk.operation_count_of(Operation::Rename),
                    Fault::Io,
                ));
            }
            let error = change.finish(&fs, path).unwrap_err();
            disk.clear_rules();
            assert!(matches!(&error, Error::Hash(error) if error.kind() == kind), "{error}");
            let told = error.to_string();
            assert!(told.contains("already in x.spl") && told.contains("`cairn hash index x.spl`"), "{told}");
            drop(other);
            assert_eq!(LogReader::open_in(&fs, path, Mode::Pread).unwrap().header().puts, count);
        }
    }
}
