//! A store of either format that is being written. Either way it appears whole or not at all.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_hash::generations::StoreBuilder;
use cairn_hash::sparkey::{self, Construction, IndexOptions, LogLock, LogOptions, LogWriter};
use cairn_hash::table::{self, BuildOptions};
use cairn_vfs::{Fs, OpenOptions, Operation, SystemRng};
use serde_json::{Value, json};

use crate::args::hash::{Codec, Kind, WriteArgs};
use crate::error::{Error, Result};
use crate::input::Sink;
use crate::output::human;
use crate::progress::BuildBar;

/// Writes one store.
#[derive(Debug)]
pub enum Writer {
    /// Cairn's own format.
    Table {
        /// What builds it.
        builder: Box<StoreBuilder>,
        /// The store.
        path: PathBuf,
    },
    /// Sparkey's.
    Sparkey(Box<PairWriter>),
}

impl Writer {
    /// Starts a store of the given kind at `path`, to take the place of what is there.
    pub fn create(
        fs: &Arc<dyn Fs>,
        path: &Path,
        kind: Kind,
        args: &WriteArgs,
        codec: Codec,
    ) -> Result<Writer> {
        match kind {
            Kind::Cairn => {
                let options = table_options(args, codec)?;
                let mut builder = StoreBuilder::create_in(fs, path, options, &mut rng(path)?)?;
                builder.set_progress(Box::new(BuildBar::new()));
                Ok(Writer::Table { builder: Box::new(builder), path: path.to_owned() })
            }
            Kind::Sparkey => Ok(Writer::Sparkey(Box::new(PairWriter::create(fs, path, args, codec)?))),
        }
    }

    /// Publishes the store and says what was written.
    pub fn finish(self) -> Result<Value> {
        match self {
            Writer::Table { builder, path } => {
                let done = builder.finish()?;
                Ok(json!({
                    "store": path.display().to_string(),
                    "format": "cairn",
                    "records": done.puts,
                    "entries": done.entries,
                    "file_bytes": done.file_bytes,
                    "index_bytes": done.index_bytes,
                }))
            }
            Writer::Sparkey(pair) => pair.finish(),
        }
    }
}

impl Sink for Writer {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match self {
            Writer::Table { builder, .. } => builder.put(key, value)?,
            Writer::Sparkey(pair) => pair.log.put(key, value)?,
        }
        Ok(())
    }

    fn put_stream(&mut self, key: &[u8], bytes: u64, value: &mut dyn Read) -> Result<()> {
        match self {
            Writer::Table { builder, .. } => builder.put_stream(key, bytes, value)?,
            Writer::Sparkey(pair) => pair.log.put_stream(key, bytes, value)?,
        }
        Ok(())
    }
}

/// Writes a log and its index beside their places and moves both there at the end. Dropped before that, it removes
/// what it wrote.
#[derive(Debug)]
pub struct PairWriter {
    log: LogWriter,
    /// Keeps writers off the log that is going to be replaced.
    old_log: Option<LogLock>,
    fs: Arc<dyn Fs>,
    index_options: IndexOptions,
    /// What the two files share of their names while they are built.
    building: Building,
    /// What the store was called.
    path: PathBuf,
    /// The places of the log and the index: where the names of the two lead.
    targets: [PathBuf; 2],
}

/// Removes the unfinished files when it is dropped before one has moved to its place.
#[derive(Debug)]
struct Building {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    moved: bool,
}

impl Drop for Building {
    fn drop(&mut self) {
        // Once both have moved, files of these names belong to another build; while one has, the other is needed.
        if self.moved {
            return;
        }
        for file in [sparkey::index_path(&self.path), sparkey::log_path(&self.path)] {
            // Best effort: a later build replaces them.
            let _ = self.fs.remove(&file);
        }
    }
}

impl PairWriter {
    fn create(fs: &Arc<dyn Fs>, path: &Path, args: &WriteArgs, codec: Codec) -> Result<PairWriter> {
        let (log_options, index_options) = (log_options(args, codec)?.replace(true), index_options(args)?);
        let index = sparkey::index_path(path);
        if fs.metadata(&index).is_ok_and(|found| !found.is_file) {
            // A directory or a pipe: its open says so. The log's is tried by its lock.
            drop(fs.open(&index, OpenOptions::read())?);
        }
        let old_log = LogLock::take(fs, path)?;
        // A link stays, and what it leads to is replaced. Built beside that, since files are only moved within a
        // file system.
        let log_target = followed(&**fs, &sparkey::log_path(path))?;
        let targets = [log_target.clone(), followed(&**fs, &index)?];
        let mut building = log_target.with_extension("").into_os_string();
        building.push(".building");
        let building = PathBuf::from(building);
        let log = LogWriter::create_in(fs, &building, &log_options)?;
        // Only now are the files ours to remove: another build of the same store has ended in `Busy` above.
        let building = Building { fs: fs.clone(), path: building, moved: false };
        Ok(PairWriter {
            log,
            old_log,
            fs: fs.clone(),
            index_options,
            building,
            path: path.to_owned(),
            targets,
        })
    }

    fn finish(mut self) -> Result<Value> {
        self.log.flush()?;
        sparkey::build_index_in(&self.fs, &self.building.path, &self.index_options)?;
        if self.old_log.is_none() {
            // There was no log when we began; one that was made meanwhile may have a writer.
            self.old_log = LogLock::take(&self.fs, &self.path)?;
        }
        let [log, index] = &self.targets;
        let built_index = sparkey::index_path(&self.building.path);
        // ORDER: both are on stable storage; the log's name first. The old index refuses the new log, so between
        // the two renames an open fails and never gives a wrong answer.
        self.fs.rename(&sparkey::log_path(&self.building.path), log)?;
        // The new log without its index would be no store.
        self.building.moved = true;
        // ORDER: the log's name is durable before the index has its own, or a power loss could leave the new index
        // beside the old log.
        self.fs
            .sync_parent(log)
            .and_then(|()| self.fs.rename(&built_index, index))
            .map_err(|error| index_is_left(error, &built_index, index, log))?;
        self.fs.sync_parent(index)?;
        summarize_pair(&self.fs, &self.path)
    }
}

/// Where the file called `path` really is.
fn followed(fs: &dyn Fs, path: &Path) -> Result<PathBuf> {
    Ok(fs.follow(path)?.unwrap_or_else(|| path.to_owned()))
}

/// What has failed when the new log was in its place already: where its index is, and what to do.
fn index_is_left(error: cairn_vfs::Error, built: &Path, index: &Path, log: &Path) -> cairn_vfs::Error {
    let [built, index, log] = [built, index, log].map(Path::display);
    let what = format!(
        "{}; {log} is the new log already, its index is {built}: \
         rename that to {index}, or run `cairn hash index {log}`",
        error.source
    );
    cairn_vfs::Error { source: io::Error::new(error.source.kind(), what), ..error }
}

/// What stands in the headers of a pair that was just written.
pub fn summarize_pair(fs: &Arc<dyn Fs>, path: &Path) -> Result<Value> {
    let info = sparkey::SparkeyReader::open_in(fs, path, &sparkey::ReaderOptions::default())?.info();
    Ok(json!({
        "store": info.index_path.display().to_string(),
        "format": "sparkey",
        "records": info.log.puts,
        "entries": info.index.entries,
        "file_bytes": info.log.data_end + info.index_bytes,
        "index_bytes": info.index_bytes,
    }))
}

/// The level that values are compressed with. Errors: one was asked for, and nothing is compressed with levels.
fn zstd_level(args: &WriteArgs, codec: Codec) -> Result<i32> {
    match (args.level, codec) {
        (Some(level), Codec::None | Codec::Snappy) => Err(Error::usage(format!(
            "--level {level}: expected with --compression zstd, which alone has levels"
        ))),
        (level, _) => Ok(level.unwrap_or(3)),
    }
}

/// The options of a table. Errors: less memory than it can be built with, and what is an option of others.
pub fn table_options(args: &WriteArgs, codec: Codec) -> Result<BuildOptions> {
    check_memory(args, BuildOptions::MEMORY_BYTES_MIN)?;
    let level = zstd_level(args, codec)?;
    if args.block_bytes.is_some() {
        return Err(Error::usage(
            "--block-bytes: expected with a Sparkey store, which alone compresses blocks",
        ));
    }
    let compression = match codec {
        Codec::None => table::Compression::None,
        Codec::Snappy => table::Compression::Snappy,
        Codec::Zstd => match table::Compression::zstd() {
            table::Compression::Zstd { dictionary_bytes, .. } => {
                table::Compression::Zstd { level, dictionary_bytes }
            }
            other => other,
        },
    };
    let options = BuildOptions::default().compression(compression).memory_bytes(args.memory);
    Ok(match args.threads {
        Some(threads) => options.threads(usize::from(threads)),
        None => options,
    })
}

fn check_memory(args: &WriteArgs, least: u64) -> Result<()> {
    let given = args.memory;
    if given < least {
        return Err(Error::usage(format!("--memory {}: expected at least {}", human(given), human(least))));
    }
    Ok(())
}

/// The options of a log, whose commits are durable. Errors: what is an option of others.
pub fn log_options(args: &WriteArgs, codec: Codec) -> Result<LogOptions> {
    let level = zstd_level(args, codec)?;
    if let Some(threads) = args.threads {
        return Err(Error::usage(format!(
            "--threads {threads}: expected with Cairn's own format, which alone is built by several"
        )));
    }
    if let (Some(bytes), Codec::None) = (args.block_bytes, codec) {
        let bytes = human(bytes);
        return Err(Error::usage(format!(
            "--block-bytes {bytes}: expected with --compression snappy or zstd, or there are no blocks"
        )));
    }
    let compression = match codec {
        Codec::None => sparkey::Compression::None,
        Codec::Snappy => sparkey::Compression::Snappy,
        Codec::Zstd => sparkey::Compression::Zstd { level },
    };
    let options = LogOptions::default().compression(compression).sync(true);
    Ok(match args.block_bytes {
        Some(bytes) => options.block_bytes(u32::try_from(bytes).unwrap_or(u32::MAX)),
        None => options,
    })
}

/// The options of an index. Errors: less memory than it can be built with.
pub fn index_options(args: &WriteArgs) -> Result<IndexOptions> {
    check_memory(args, IndexOptions::MEMORY_BYTES_MIN)?;
    Ok(IndexOptions::default().construction(Construction::Auto { memory_bytes: args.memory }))
}

/// The system's randomness, for seeds and ids of what is written to `path`.
pub fn rng(path: &Path) -> Result<SystemRng> {
    SystemRng::new().map_err(|source| cairn_vfs::Error::new(Operation::Open, path, source).into())
}

/// The format that `path` asks for by its extension.
pub fn kind_by_extension(path: &Path) -> Result<Kind> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("cairn") => Ok(Kind::Cairn),
        Some("spi" | "spl") => Ok(Kind::Sparkey),
        _ => Err(Error::usage(format!(
            "{} does not tell its format by its name: expected .cairn, .spi or .spl",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::fault::{Fault, Rule};
    use cairn_vfs::{FaultFs, FaultOptions, MemFs};

    use super::*;

    /// Goal: a log that somebody appends to is not replaced: neither one that was there from the start nor one that
    /// was made meanwhile. Method: both, with a writer open.
    #[test]
    fn a_log_with_a_writer_is_not_replaced() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let path = Path::new("x.spl");
        let create = || Writer::create(&fs, path, Kind::Sparkey, &WriteArgs::unchanged(), Codec::None);
        let started = create().unwrap();
        let mut writer = LogWriter::create_in(&fs, path, &LogOptions::default()).unwrap();
        started.finish().unwrap_err();
        create().unwrap_err();
        writer.put(b"a", b"1").unwrap();
        writer.close().unwrap();
        sparkey::build_index_in(&fs, path, &IndexOptions::default()).unwrap();
        let store = sparkey::SparkeyReader::open_in(&fs, path, &sparkey::ReaderOptions::default()).unwrap();
        assert!(store.contains(b"a").unwrap());
        create().unwrap().finish().unwrap();
    }

    /// Goal: what fails once the new log has its name leaves the index that was built, and says where it is; before
    /// that, nothing is left. Method: over an old pair the rename of the log fails, the sync after it, and the rename
    /// of the index; then the index is moved by hand, and another pair built.
    #[test]
    fn a_built_index_is_not_lost() {
        let (pair, built) = (Path::new("x.spi"), Path::new("x.building.spi"));
        for (operation, from_end, is_log_new) in
            [(Operation::Rename, 2, false), (Operation::SyncDir, 2, true), (Operation::Rename, 1, true)]
        {
            let disk = FaultFs::new(FaultOptions::seeded(1));
            let fs: Arc<dyn Fs> = Arc::new(disk.clone());
            let build = |value: &[u8]| {
                let args = WriteArgs::unchanged();
                let mut writer = Writer::create(&fs, pair, Kind::Sparkey, &args, Codec::None)?;
                writer.put(b"a", value)?;
                writer.finish()
            };
            build(b"old").unwrap();
            // The next build does as many.
            let count = 2 * disk.operation_count_of(operation);
            disk.inject(Rule::nth(operation, count - from_end, Fault::Io));
            let error = build(b"new").unwrap_err().to_string();
            disk.clear_rules();
            let tells = error.contains("x.building.spi") && error.contains("`cairn hash index x.spl`");
            assert_eq!((tells, fs.exists(built).unwrap()), (is_log_new, is_log_new), "{error}");
            if is_log_new {
                fs.rename(built, pair).unwrap();
            }
            let options = sparkey::ReaderOptions::default();
            let store = sparkey::SparkeyReader::open_in(&fs, pair, &options).unwrap();
            let expected = if is_log_new { b"new" } else { b"old" };
            assert_eq!(store.get(b"a").unwrap().as_deref(), Some(&expected[..]));
            build(b"again").unwrap();
            assert_eq!(disk.files(), ["x.spi", "x.spl"].map(PathBuf::from));
        }
    }
}
