//! Writes a store of either format. The store is published atomically.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_hash::generations::StoreBuilder;
use cairn_hash::sparkey::{self, Construction, IndexOptions, LogOptions, PairBuilder};
use cairn_hash::table::{self, BuildOptions};
use cairn_vfs::{Fs, Operation, SystemRng};
use serde_json::{Value, json};

use crate::args::hash::{Codec, Kind, WriteArgs};
use crate::error::{Error, Result};
use crate::input::Sink;
use crate::interrupt::Unfinished;
use crate::output::human;
use crate::progress::BuildBar;
use crate::target::create_with;

/// A writer of one store.
#[derive(Debug)]
pub enum Writer {
    /// Cairn's own format.
    Table {
        /// The builder.
        builder: Box<StoreBuilder>,
        /// The path of the store.
        path: PathBuf,
        /// The cleanup if a signal ends the command.
        unfinished: Unfinished,
    },
    /// A Sparkey pair.
    Sparkey {
        /// The builder.
        pair: Box<PairBuilder>,
        /// The file system.
        fs: Arc<dyn Fs>,
        /// The path that the user gave.
        path: PathBuf,
        /// The cleanup if a signal ends the command.
        unfinished: Unfinished,
    },
}

impl Writer {
    /// Begins a store of the given kind, which replaces an existing one at `path`.
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
                let (mut builder, unfinished) = create_with(fs, &[path], || {
                    Ok(StoreBuilder::create_in(fs, path, options, &mut rng(path)?)?)
                })?;
                builder.set_progress(Box::new(BuildBar::new()));
                Ok(Writer::Table { builder: Box::new(builder), path: path.to_owned(), unfinished })
            }
            Kind::Sparkey => {
                let (log, index) = (log_options(args, codec)?, index_options(args)?);
                let files = [sparkey::log_path(path), sparkey::index_path(path)];
                let (pair, unfinished) = create_with(fs, &files.each_ref().map(PathBuf::as_path), || {
                    Ok(PairBuilder::create_in(fs, path, &log, &index)?)
                })?;
                Ok(Writer::Sparkey {
                    pair: Box::new(pair),
                    fs: Arc::clone(fs),
                    path: path.to_owned(),
                    unfinished,
                })
            }
        }
    }

    /// Publishes the store and returns a summary of it.
    pub fn finish(self) -> Result<Value> {
        match self {
            Writer::Table { builder, path, unfinished } => {
                let done = builder.finish()?;
                drop(unfinished);
                Ok(json!({
                    "store": path.display().to_string(),
                    "format": "cairn",
                    "records": done.puts,
                    "entries": done.entries,
                    "file_bytes": done.file_bytes,
                    "index_bytes": done.index_bytes,
                }))
            }
            Writer::Sparkey { pair, fs, path, unfinished } => {
                pair.finish()?;
                drop(unfinished);
                summarize_pair(&fs, &path)
            }
        }
    }
}

impl Sink for Writer {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match self {
            Writer::Table { builder, .. } => builder.put(key, value)?,
            Writer::Sparkey { pair, .. } => pair.put(key, value)?,
        }
        Ok(())
    }

    fn put_stream(&mut self, key: &[u8], bytes: u64, value: &mut dyn Read) -> Result<()> {
        match self {
            Writer::Table { builder, .. } => builder.put_stream(key, bytes, value)?,
            Writer::Sparkey { pair, .. } => pair.put_stream(key, bytes, value)?,
        }
        Ok(())
    }
}

/// Returns a summary of a pair that was just written, from its headers.
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

/// Returns the compression level of values. Errors: a level is given, but the compression has none.
fn zstd_level(args: &WriteArgs, codec: Codec) -> Result<i32> {
    match (args.level, codec) {
        (Some(level), Codec::None | Codec::Snappy) => Err(Error::usage(format!(
            "--level {level}: expected with --compression zstd, the only one that has levels"
        ))),
        (level, _) => Ok(level.unwrap_or(3)),
    }
}

/// Returns the options of a table. Errors: too little memory; options that do not apply to tables.
pub fn table_options(args: &WriteArgs, codec: Codec) -> Result<BuildOptions> {
    check_memory(args, BuildOptions::MEMORY_BYTES_MIN)?;
    let level = zstd_level(args, codec)?;
    if args.block_bytes.is_some() {
        return Err(Error::usage(
            "--block-bytes: expected with a Sparkey store, the only format that compresses blocks",
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

/// Returns the options of a log, whose commits are durable. Errors: options that do not apply to
/// logs.
pub fn log_options(args: &WriteArgs, codec: Codec) -> Result<LogOptions> {
    let level = zstd_level(args, codec)?;
    if let Some(threads) = args.threads {
        return Err(Error::usage(format!(
            "--threads {threads}: expected with Cairn's own format, the only one that is built by several threads"
        )));
    }
    if let (Some(bytes), Codec::None) = (args.block_bytes, codec) {
        let bytes = human(bytes);
        return Err(Error::usage(format!(
            "--block-bytes {bytes}: expected with --compression snappy or zstd; without them there are no blocks"
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

/// Returns the options of an index. Errors: too little memory.
pub fn index_options(args: &WriteArgs) -> Result<IndexOptions> {
    check_memory(args, IndexOptions::MEMORY_BYTES_MIN)?;
    Ok(IndexOptions::default().construction(Construction::Auto { memory_bytes: args.memory }))
}

/// Returns the system's random number generator, for seeds and ids of the store at `path`.
pub fn rng(path: &Path) -> Result<SystemRng> {
    SystemRng::new().map_err(|source| cairn_vfs::Error::new(Operation::Open, path, source).into())
}

/// Returns the format that the extension of `path` asks for.
pub fn kind_by_extension(path: &Path) -> Result<Kind> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("cairn") => Ok(Kind::Cairn),
        Some("spi" | "spl") => Ok(Kind::Sparkey),
        _ => Err(Error::usage(format!(
            "{} has no known extension: expected .cairn, .spi or .spl",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use cairn_hash::sparkey::LogWriter;
    use cairn_vfs::fault::{Fault, Rule};
    use cairn_vfs::{ErrorKind, FaultFs, FaultOptions, MemFs, OpenOptions, StdFs};

    use super::*;
    use crate::hook_fs::HookFs;

    /// Returns an unfinished pair with one entry at `path`.
    fn begun(fs: &Arc<dyn Fs>, path: &Path, value: &[u8]) -> Result<Writer> {
        let mut writer = Writer::create(fs, path, Kind::Sparkey, &WriteArgs::unchanged(), Codec::None)?;
        writer.put(b"a", value)?;
        Ok(writer)
    }

    fn value_in(fs: &Arc<dyn Fs>, path: &Path) -> Vec<u8> {
        let store = sparkey::SparkeyReader::open_in(fs, path, &sparkey::ReaderOptions::default()).unwrap();
        store.get(b"a").unwrap().unwrap().into_owned()
    }

    /// Goal: a log with an open writer is not replaced, whether it existed from the start or was
    /// created meanwhile. Method: both cases.
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

    /// Goal: a failure after the new log has been renamed into place is reported together with the
    /// command that completes the job; before that, the old pair stays. No other file is left.
    /// Method: over an old pair, the rename of the log fails, then the sync after it, then the
    /// rename of the index. Where the log is the new one, it is then indexed.
    #[test]
    fn log_without_an_index_is_reported() {
        let pair = Path::new("x.spi");
        for (operation, from_end, is_log_new) in
            [(Operation::Rename, 2, false), (Operation::SyncDir, 2, true), (Operation::Rename, 1, true)]
        {
            let disk = FaultFs::new(FaultOptions::seeded(1));
            let fs: Arc<dyn Fs> = Arc::new(disk.clone());
            begun(&fs, pair, b"old").unwrap().finish().unwrap();
            // The next build does the same number of operations.
            let count = 2 * disk.operation_count_of(operation);
            disk.inject(Rule::nth(operation, count - from_end, Fault::Io));
            let error = begun(&fs, pair, b"new").unwrap().finish().unwrap_err();
            disk.clear_rules();
            let tells = error.to_string().contains("`cairn hash index x.spl`");
            assert_eq!(tells, is_log_new, "{error}");
            if is_log_new {
                sparkey::build_index_in(&fs, pair, &IndexOptions::default()).unwrap();
            }
            assert_eq!(value_in(&fs, pair), if is_log_new { b"new" } else { b"old" });
            begun(&fs, pair, b"again").unwrap().finish().unwrap();
            assert_eq!(disk.files(), ["x.spi", "x.spl"].map(PathBuf::from));
        }
    }

    /// Goal: a pair keeps the permissions of the one that it replaces. Method: a pair that only its
    /// owner can read; the permissions of every file while another pair is built, and afterwards.
    #[test]
    fn new_pair_keeps_access_rights() {
        let directory = tempfile::tempdir().unwrap();
        let (fs, path): (Arc<dyn Fs>, _) = (Arc::new(StdFs::new()), directory.path().join("x.spi"));
        let files = || fs.read_dir(directory.path()).unwrap().into_iter();
        begun(&fs, &path, b"old").unwrap().finish().unwrap();
        for file in files() {
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let are_private = || {
            files().for_each(|file| {
                let mode = file.metadata().unwrap().permissions().mode() & 0o777;
                assert_eq!(mode, 0o600, "{}", file.display());
            });
        };
        let building = begun(&fs, &path, b"new").unwrap();
        are_private();
        building.finish().unwrap();
        are_private();
        assert_eq!((value_in(&fs, &path), files().count()), (b"new".to_vec(), 2));
    }

    /// Goal: the two files of a pair may be on two file systems. Method: links into two
    /// directories, and renames of an index out of the log's directory fail.
    #[test]
    fn index_is_built_in_a_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let real: Arc<dyn Fs> = Arc::new(StdFs::new());
        for (dir, link) in [("logs", "x.spl"), ("indexes", "x.spi")] {
            real.create_dir_all(&at(dir)).unwrap();
            symlink(at(dir).join(link), at(link)).unwrap();
        }
        let logs = at("logs");
        let fs = HookFs::over(&real, move |operation, from| {
            let is_index = from.extension().is_some_and(|extension| extension == "spi");
            if operation == Operation::Rename && is_index && from.parent() == Some(&logs) {
                let source = io::ErrorKind::CrossesDevices.into();
                return Err(cairn_vfs::Error::new(operation, from, source));
            }
            Ok(())
        });
        for value in [b"old", b"new"] {
            begun(&fs, &at("x.spi"), value).unwrap().finish().unwrap();
            assert_eq!(value_in(&fs, &at("x.spl")), value);
            assert!(["x.spi", "x.spl"].iter().all(|link| at(link).is_symlink()));
        }
    }

    /// Goal: no other process can put an index in place between the renames of log and index.
    /// Method: an index build is attempted before each of the two.
    #[test]
    fn index_stays_locked_between_both_renames() {
        let (inner, path): (Arc<dyn Fs>, _) = (Arc::new(MemFs::new()), Path::new("x.spi"));
        begun(&inner, path, b"old").unwrap().finish().unwrap();
        let moves = Arc::new(AtomicUsize::new(0));
        let (asked, under) = (Arc::clone(&moves), Arc::clone(&inner));
        let fs = HookFs::over(&inner, move |operation, _| {
            if operation == Operation::Rename {
                asked.fetch_add(1, Ordering::Relaxed);
                let error = sparkey::build_index_in(&under, "x", &IndexOptions::default()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
            }
            Ok(())
        });
        begun(&fs, path, b"new").unwrap().finish().unwrap();
        assert_eq!((moves.load(Ordering::Relaxed), value_in(&inner, path)), (2, b"new".to_vec()));
    }

    /// Goal: a build that ends early removes no file of a build that begins meanwhile. Method: an
    /// attempt to lock the log before each file is removed.
    #[test]
    fn leftovers_are_removed_under_their_lock() {
        let (inner, path): (Arc<dyn Fs>, _) = (Arc::new(MemFs::new()), Path::new("x.spi"));
        let removals = Arc::new(AtomicUsize::new(0));
        let (tried, under) = (Arc::clone(&removals), Arc::clone(&inner));
        let fs = HookFs::over(&inner, move |operation, file| {
            if operation == Operation::Remove
                && let Ok(file) = under.open(file, OpenOptions::write())
            {
                tried.fetch_add(1, Ordering::Relaxed);
                assert_eq!(file.try_lock().unwrap_err().kind(), ErrorKind::Busy, "{file:?}");
            }
            Ok(())
        });
        drop(begun(&fs, path, b"new").unwrap());
        assert!(removals.load(Ordering::Relaxed) > 0);
        assert!(inner.read_dir(Path::new(".")).unwrap().is_empty());
    }
}
