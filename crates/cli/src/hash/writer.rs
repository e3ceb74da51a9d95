//! A store of either format that is being written. Either way it appears whole or not at all.

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

/// Writes one store.
#[derive(Debug)]
pub enum Writer {
    /// Cairn's own format.
    Table {
        /// What builds it.
        builder: Box<StoreBuilder>,
        /// The store.
        path: PathBuf,
        /// What is removed where the command is ended from outside.
        unfinished: Unfinished,
    },
    /// Sparkey's.
    Sparkey {
        /// What builds it.
        pair: Box<PairBuilder>,
        /// Where.
        fs: Arc<dyn Fs>,
        /// What the store was called.
        path: PathBuf,
        /// What is removed where the command is ended from outside.
        unfinished: Unfinished,
    },
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

    /// Publishes the store and says what was written.
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

/// The level that values are compressed with. Errors: one was asked for, and nothing is compressed
/// with levels.
fn zstd_level(args: &WriteArgs, codec: Codec) -> Result<i32> {
    match (args.level, codec) {
        (Some(level), Codec::None | Codec::Snappy) => Err(Error::usage(format!(
            "--level {level}: expected with --compression zstd, the only one that has levels"
        ))),
        (level, _) => Ok(level.unwrap_or(3)),
    }
}

/// The options of a table. Errors: less memory than it can be built with, and what is an option of
/// others.
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

/// The options of a log, whose commits are durable. Errors: what is an option of others.
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
    use crate::asking::Asking;

    /// A pair with one entry that is being written at `path`.
    fn begun(fs: &Arc<dyn Fs>, path: &Path, value: &[u8]) -> Result<Writer> {
        let mut writer = Writer::create(fs, path, Kind::Sparkey, &WriteArgs::unchanged(), Codec::None)?;
        writer.put(b"a", value)?;
        Ok(writer)
    }

    fn value_in(fs: &Arc<dyn Fs>, path: &Path) -> Vec<u8> {
        let store = sparkey::SparkeyReader::open_in(fs, path, &sparkey::ReaderOptions::default()).unwrap();
        store.get(b"a").unwrap().unwrap().into_owned()
    }

    /// Goal: a log that somebody appends to is not replaced: neither one that was there from the
    /// start nor one that was made meanwhile. Method: both, with a writer open.
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

    /// Goal: what fails once the new log has its name is told so, with what mends it; before that
    /// the old pair stays. No other file does. Method: over an old pair the rename of the log
    /// fails, the sync after it, and the rename of the index; then the log is indexed where it is
    /// the new one.
    #[test]
    fn a_log_without_its_index_is_told() {
        let pair = Path::new("x.spi");
        for (operation, from_end, is_log_new) in
            [(Operation::Rename, 2, false), (Operation::SyncDir, 2, true), (Operation::Rename, 1, true)]
        {
            let disk = FaultFs::new(FaultOptions::seeded(1));
            let fs: Arc<dyn Fs> = Arc::new(disk.clone());
            begun(&fs, pair, b"old").unwrap().finish().unwrap();
            // The next build does as many.
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

    /// Goal: who may not read a pair may not read the one that takes its place either. Method: a
    /// pair that is its owner's alone; the rights of every file there while another is built, and
    /// afterwards.
    #[test]
    fn a_pair_has_the_rights_of_the_one_before() {
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

    /// Goal: the two files of a pair may stand on two file systems. Method: links into two
    /// directories, of which the log's lets no index go to another.
    #[test]
    fn an_index_is_built_beside_its_own_place() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let real: Arc<dyn Fs> = Arc::new(StdFs::new());
        for (dir, link) in [("logs", "x.spl"), ("indexes", "x.spi")] {
            real.create_dir_all(&at(dir)).unwrap();
            symlink(at(dir).join(link), at(link)).unwrap();
        }
        let logs = at("logs");
        let fs = Asking::over(&real, move |operation, from| {
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

    /// Goal: between the moves of a log and its index nobody else moves an index there. Method: an
    /// index is asked for before each of the two.
    #[test]
    fn nobody_indexes_between_the_moves() {
        let (inner, path): (Arc<dyn Fs>, _) = (Arc::new(MemFs::new()), Path::new("x.spi"));
        begun(&inner, path, b"old").unwrap().finish().unwrap();
        let moves = Arc::new(AtomicUsize::new(0));
        let (asked, under) = (Arc::clone(&moves), Arc::clone(&inner));
        let fs = Asking::over(&inner, move |operation, _| {
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

    /// Goal: a build that ends early takes no file from one that begins meanwhile. Method: the lock
    /// of the log is tried before each file is removed.
    #[test]
    fn what_is_left_over_is_removed_under_its_lock() {
        let (inner, path): (Arc<dyn Fs>, _) = (Arc::new(MemFs::new()), Path::new("x.spi"));
        let removals = Arc::new(AtomicUsize::new(0));
        let (tried, under) = (Arc::clone(&removals), Arc::clone(&inner));
        let fs = Asking::over(&inner, move |operation, file| {
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
