use std::sync::Mutex;

use super::*;
use crate::{MemFs, Metadata};

fn memory() -> Arc<dyn Fs> {
    Arc::new(MemFs::new())
}

fn put(fs: &Arc<dyn Fs>, path: &str, bytes: &[u8]) {
    let file = fs.open(Path::new(path), OpenOptions::create()).unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

fn get(fs: &Arc<dyn Fs>, path: &str) -> Vec<u8> {
    fs.open(Path::new(path), OpenOptions::read()).unwrap().map().unwrap().to_vec()
}

/// Goal: a commit replaces the old file and leaves no temporary one; readers of the old file keep
/// it.
#[test]
fn commit_replaces() {
    let fs = memory();
    put(&fs, "a", b"old");
    let reader = fs.open(Path::new("a"), OpenOptions::read()).unwrap();
    let new = AtomicFile::create(&fs, Path::new("a")).unwrap();
    assert_eq!(new.path(), Path::new("a"));
    new.file().write_all_at(b"new!", 0).unwrap();
    assert_eq!(get(&fs, "a"), b"old");
    new.commit().unwrap();
    assert_eq!(get(&fs, "a"), b"new!");
    assert_eq!(&*reader.map().unwrap(), b"old");
    assert!(!fs.exists(Path::new("a.tmp")).unwrap());
}

/// Goal: dropping leaves the old file and no stray one; leftovers of a crash are removed.
#[test]
fn drop_cleans_up_and_leftovers_go() {
    let fs = memory();
    put(&fs, "a", b"old");
    put(&fs, "a.tmp", b"left by a crash");
    let new = AtomicFile::create(&fs, Path::new("a")).unwrap();
    assert_eq!(new.file().len().unwrap(), 0);
    new.file().write_all_at(b"half", 0).unwrap();
    drop(new);
    assert_eq!(get(&fs, "a"), b"old");
    assert!(!fs.exists(Path::new("a.tmp")).unwrap());
}

/// Goal: only one builder at a time; the next may start once the first has committed or was
/// dropped.
#[test]
fn second_builder_is_busy() {
    let fs = memory();
    let first = AtomicFile::create(&fs, Path::new("a")).unwrap();
    first.file().write_all_at(b"one", 0).unwrap();
    assert_eq!(AtomicFile::create(&fs, Path::new("a")).unwrap_err().kind(), ErrorKind::Busy);
    first.commit().unwrap();
    assert_eq!(get(&fs, "a"), b"one", "the refused builder must not have touched it");
    drop(AtomicFile::create(&fs, Path::new("a")).unwrap());
    AtomicFile::create(&fs, Path::new("a")).unwrap().commit().unwrap();
    assert_eq!(get(&fs, "a"), b"");
}

/// Goal: paths without a file name are refused.
#[test]
fn needs_a_name() {
    for path in ["", "/", ".."] {
        assert_eq!(AtomicFile::create(&memory(), Path::new(path)).unwrap_err().kind(), ErrorKind::Invalid);
    }
}

/// Publishes another builder's temporary file between our open and our lock of it.
#[derive(Debug)]
struct Racing {
    inner: Arc<dyn Fs>,
    /// Number of races left.
    races: Mutex<usize>,
    /// Whether a third builder then starts a new temporary file.
    and_another: bool,
}

impl Fs for Racing {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn File>> {
        let file = self.inner.open(path, options)?;
        let mut races = self.races.lock().unwrap();
        if *races > 0 {
            *races -= 1;
            file.write_all_at(b"published", 0)?;
            self.inner.rename(path, Path::new("a"))?;
            if self.and_another {
                self.inner.open(path, OpenOptions::create_new())?;
            }
        }
        Ok(file)
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
        self.inner.read_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.inner.sync_dir(path)
    }
}

/// Goal: a file published between open and lock is neither emptied nor kept as ours, whether or not
/// the temporary name refers to a new file by then; endless racing ends in `Busy`.
#[test]
fn lost_race_is_noticed() {
    for and_another in [false, true] {
        for (races, wins) in [(3, true), (usize::MAX, false)] {
            let inner = memory();
            let racing = Racing { inner: Arc::clone(&inner), races: Mutex::new(races), and_another };
            let ours = AtomicFile::create(&(Arc::new(racing) as Arc<dyn Fs>), Path::new("a"));
            assert_eq!(get(&inner, "a"), b"published");
            match ours {
                Ok(_) => assert!(wins),
                Err(error) => assert!(!wins && error.kind() == ErrorKind::Busy, "{error}"),
            }
            assert_eq!(get(&inner, "a"), b"published");
        }
    }
}

/// Goal: dropping removes our temporary file, but no other file that has taken its name.
#[test]
fn drop_removes_only_its_own() {
    let fs = memory();
    let ours = AtomicFile::create(&fs, Path::new("a")).unwrap();
    fs.remove(Path::new("a.tmp")).unwrap();
    put(&fs, "a.tmp", b"theirs");
    drop(ours);
    assert_eq!(get(&fs, "a.tmp"), b"theirs");
}

/// Goal: after a rename that a crash left half done, no later build damages the published file.
/// Method: both names on one file, then one build that is dropped and one that is committed.
#[test]
fn half_done_rename_does_not_empty_the_published_file() {
    let fs = memory();
    let (path, temporary) = (Path::new("a"), Path::new("a.tmp"));
    put(&fs, "a", b"old");
    fs.hard_link(path, temporary).unwrap();
    drop(AtomicFile::create(&fs, path).unwrap());
    assert_eq!(get(&fs, "a"), b"old");
    assert!(!fs.exists(temporary).unwrap());
    fs.hard_link(path, temporary).unwrap();
    let new = AtomicFile::create(&fs, path).unwrap();
    new.file().write_all_at(b"new", 0).unwrap();
    new.commit().unwrap();
    assert_eq!(get(&fs, "a"), b"new");
    assert!(!fs.exists(temporary).unwrap());
}

/// Goal: a leftover that readers still have open, because it was published once, keeps its bytes.
/// Method: both names on one file, as a half-done rename leaves them; then the final name is
/// removed, or given to a newer file.
#[test]
fn leftovers_keep_their_bytes() {
    for replaced in [false, true] {
        let fs = memory();
        put(&fs, "a", b"mapped by readers");
        let reader = fs.open(Path::new("a"), OpenOptions::read()).unwrap();
        fs.hard_link(Path::new("a"), Path::new("a.tmp")).unwrap();
        fs.remove(Path::new("a")).unwrap();
        if replaced {
            put(&fs, "a", b"newer");
        }
        let new = AtomicFile::create(&fs, Path::new("a")).unwrap();
        new.file().write_all_at(b"newest", 0).unwrap();
        new.commit().unwrap();
        assert_eq!(&*reader.map().unwrap(), b"mapped by readers");
        assert_eq!(get(&fs, "a"), b"newest");
    }
}

/// Goal: when it is unknown whether the temporary file is published, it is left alone. Method: a
/// published empty file under both names, with each metadata call failing in turn.
#[test]
fn unknown_is_not_unpublished() {
    use crate::fault::{Fault, FaultFs, FaultOptions, Rule};
    for nth in 0..4 {
        let fault = FaultFs::new(FaultOptions::default());
        let fs: Arc<dyn Fs> = Arc::new(fault.clone());
        put(&fs, "a", b"");
        fs.hard_link(Path::new("a"), Path::new("a.tmp")).unwrap();
        let first = fault.operation_count_of(Operation::Stat);
        fault.inject(Rule::nth(Operation::Stat, first + nth, Fault::Io));
        let error = AtomicFile::create(&fs, Path::new("a")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(fs.exists(Path::new("a")).unwrap());
    }
}
