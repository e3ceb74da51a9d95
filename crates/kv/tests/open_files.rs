//! Tests of stores with more files than the process may have open.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use cairn_kv::strategy::{LeveledOptions, StrategyOptions};
use cairn_kv::{Background, Builder, Compression, Db, KeyspaceOptions, Options};
use cairn_vfs::{
    Advice, Error, ErrorKind, File, FileId, Fs, Map, MemFs, Metadata, OpenOptions, Operation, Result,
};

/// Number of entries in the large store.
const COUNT: u32 = 2000;

/// `EMFILE`.
const TOO_MANY: i32 = 24;

/// A file system of a process that may have only a limited number of files open.
#[derive(Debug, Clone)]
struct FewFiles {
    inner: MemFs,
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    max: Arc<AtomicUsize>,
}

impl FewFiles {
    fn new(max: usize) -> Self {
        FewFiles {
            inner: MemFs::new(),
            open: Arc::default(),
            most: Arc::default(),
            max: Arc::new(AtomicUsize::new(max)),
        }
    }

    fn take(&self, operation: Operation, path: &Path) -> Result<Descriptor> {
        let open = self.open.fetch_add(1, SeqCst) + 1;
        let descriptor = Descriptor(Arc::clone(&self.open));
        if open > self.max.load(SeqCst) {
            return Err(Error::new(operation, path, std::io::Error::from_raw_os_error(TOO_MANY)));
        }
        self.most.fetch_max(open, SeqCst);
        Ok(descriptor)
    }
}

#[derive(Debug)]
struct Descriptor(Arc<AtomicUsize>);

impl Drop for Descriptor {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[derive(Debug)]
struct OneFile {
    inner: Box<dyn File>,
    _descriptor: Descriptor,
}

impl Fs for FewFiles {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn File>> {
        let descriptor = self.take(Operation::Open, path)?;
        Ok(Box::new(OneFile { inner: self.inner.open(path, options)?, _descriptor: descriptor }))
    }
    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.inner.metadata(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.hard_link(from, to)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.inner.create_dir_all(path)
    }
    fn read_dir(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let _descriptor = self.take(Operation::ReadDir, path)?;
        self.inner.read_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> Result<()> {
        let _descriptor = self.take(Operation::SyncDir, path)?;
        self.inner.sync_dir(path)
    }
}

impl File for OneFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }
    fn id(&self) -> FileId {
        self.inner.id()
    }
    fn len(&self) -> Result<u64> {
        self.inner.len()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.inner.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        self.inner.write_at(buf, offset)
    }
    fn set_len(&self, len: u64) -> Result<()> {
        self.inner.set_len(len)
    }
    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.allocate(offset, len)
    }
    fn sync_data(&self) -> Result<()> {
        self.inner.sync_data()
    }
    fn try_lock(&self) -> Result<()> {
        self.inner.try_lock()
    }
    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        self.inner.advise(offset, len, advice);
    }
    fn map(&self) -> Result<Map> {
        self.inner.map()
    }
}

fn builder(fs: &FewFiles, open_files_max: Option<usize>, background: Background) -> Builder {
    let leveled = LeveledOptions { table_bytes: 4 << 10, base_bytes: 16 << 10, ..LeveledOptions::default() };
    let keyspace = KeyspaceOptions {
        memtable_bytes: 64 << 10,
        compression: vec![Compression::None],
        compaction: StrategyOptions::Leveled(leveled),
        blob_bytes_min: Some(1000),
        ..KeyspaceOptions::default()
    };
    // No cache, so that all data is read from the files.
    let options = Options { cache_bytes: 0, open_files_max, background, ..Options::default() };
    Db::builder("/store").fs(Arc::new(fs.clone())).seed(1).options(options).default_keyspace(keyspace)
}

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(2_654_435_761).to_be_bytes()
}

fn value(number: u32) -> Vec<u8> {
    vec![number as u8; if number.is_multiple_of(50) { 1500 } else { 400 }]
}

/// Goal: a process limited to 64 open files can write, merge, read, reopen and copy a store of
/// several hundred tables and blob files, and read it beside a writer.
/// Method: one process that stays below the limit with an option, and one that does not know the
/// limit and has to close files when it reaches it.
#[test]
fn hundreds_of_tables_and_few_descriptors() {
    for (open_files_max, background) in
        [(Some(16), Background::Inline), (None, Background::Inline), (Some(16), Background::Threads(2))]
    {
        let fs = FewFiles::new(64);
        let open = || builder(&fs, open_files_max, background).open().unwrap();
        let mut db = open();
        for number in 0..COUNT {
            db.put(key(number), value(number)).unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let tables = || fs.inner.read_dir(Path::new("/store")).unwrap().len();
        assert!(tables() > 120, "{} files", tables());
        for round in 0..2 {
            for number in (0..COUNT).step_by(7) {
                assert_eq!(db.get(key(number)).unwrap().as_deref(), Some(&value(number)[..]), "{number}");
            }
            assert_eq!(db.iter().count(), COUNT as usize + round);
            assert_eq!(db.iter().rev().count(), COUNT as usize + round);
            assert!(db.verify().unwrap().is_sound());
            db.put("again", "value").unwrap();
            db.compact_range(..).unwrap();
            drop(db);
            db = open();
        }
        assert!(fs.most.load(SeqCst) <= 64);
        db.checkpoint("/copy").unwrap();
        let reader = builder(&fs, open_files_max, background).read_only(true).open().unwrap();
        assert_eq!(reader.iter().count(), COUNT as usize + 1);
        drop((db, reader));
        assert_eq!(fs.open.load(SeqCst), 0, "all are closed");
    }
}

/// Goal: without any descriptor, exactly the operations that need one fail, with that error; when
/// descriptors are available again, everything continues without reopening the store.
/// Method: a limit that drops to the number of open files, while memtables are filled, flushed and
/// merged.
#[test]
fn no_descriptors_poison_nothing() {
    for background in [Background::Inline, Background::Threads(2)] {
        let fs = FewFiles::new(usize::MAX);
        let db = builder(&fs, Some(8), background).open().unwrap();
        for number in 0..500 {
            db.put(key(number), value(number)).unwrap();
        }
        db.wait_idle().unwrap();
        let mut written = 500;
        for round in 0..3 {
            // Simulates that the rest of the process has taken all descriptors of tables.
            fs.max.store(1, SeqCst);
            let mut refused = 0;
            for _ in 0..600 {
                match db.put(key(written), value(written)) {
                    Ok(()) => written += 1,
                    Err(error) => {
                        assert!(error.is_out_of_files(), "{error}");
                        refused += 1;
                    }
                }
            }
            assert!(refused > 0, "round {round}");
            for result in [db.flush(), db.compact_range(..)] {
                let error = result.unwrap_err();
                assert!(error.is_out_of_files() && error.kind() == ErrorKind::Io, "{error}");
            }
            fs.max.store(usize::MAX, SeqCst);
            // A job that began before may still fail, and a writer may get its error.
            let is_written = || {
                cairn_vfs::thread::yield_now();
                db.put(key(written), value(written)).is_ok()
            };
            assert!((0..10_000).any(|_| is_written()), "{background:?}, round {round}");
            written += 1;
            db.flush().unwrap();
            db.wait_idle().unwrap();
            assert_eq!(db.iter().count() as u32, written);
        }
        drop(db);
        let db = builder(&fs, Some(8), background).open().unwrap();
        assert_eq!(db.iter().count() as u32, written);
    }
}
