//! The behaviour required of every [`Fs`], tested on each of them, so that a test on a simulated
//! disk also holds for a real one.

use std::path::{Path, PathBuf};

use crate::{Advice, ErrorKind, FaultFs, FaultOptions, File, Fs, MemFs, OpenOptions, Result, StdFs};

pub(crate) mod random;

/// A file system under test and an empty directory in it.
struct Subject<'a> {
    fs: &'a dyn Fs,
    root: &'a Path,
}

impl Subject<'_> {
    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn open(&self, name: &str, options: OpenOptions) -> Result<Box<dyn File>> {
        self.fs.open(&self.at(name), options)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Box<dyn File> {
        let file = self.open(name, OpenOptions::create_new()).unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file
    }

    fn get(&self, name: &str) -> Vec<u8> {
        self.open(name, OpenOptions::read()).unwrap().map().unwrap().to_vec()
    }
}

/// Returns the kind of the error and the name of its `io::ErrorKind`, on which all file systems
/// must agree.
fn failure<T>(result: Result<T>) -> (ErrorKind, String) {
    match result {
        Ok(_) => panic!("expected an error"),
        Err(error) => (error.kind(), format!("{:?}", error.source.kind())),
    }
}

fn kind(kind: ErrorKind, source: &str) -> (ErrorKind, String) {
    (kind, source.to_owned())
}

fn open_modes(s: &Subject<'_>) {
    assert_eq!(failure(s.open("a", OpenOptions::read())), kind(ErrorKind::NotFound, "NotFound"));
    assert_eq!(failure(s.open("a", OpenOptions::write())), kind(ErrorKind::NotFound, "NotFound"));
    assert_eq!(failure(s.open("no/a", OpenOptions::create())), kind(ErrorKind::NotFound, "NotFound"));
    s.put("a", b"abc");
    assert_eq!(failure(s.open("a", OpenOptions::create_new())), kind(ErrorKind::Conflict, "AlreadyExists"));
    assert_eq!(s.open("a", OpenOptions::create()).unwrap().len().unwrap(), 3, "never truncated");
    let odd = OpenOptions { access: crate::Access::Read, ..OpenOptions::create() };
    assert_eq!(failure(s.open("b", odd)), kind(ErrorKind::Invalid, "InvalidInput"));
    s.fs.create_dir_all(&s.at("d")).unwrap();
    for options in [OpenOptions::read(), OpenOptions::write(), OpenOptions::create()] {
        assert_eq!(failure(s.open("d", options)), kind(ErrorKind::Io, "IsADirectory"), "{options:?}");
        assert_eq!(failure(s.open("a/b", options)), kind(ErrorKind::Io, "NotADirectory"), "{options:?}");
        assert_eq!(failure(s.fs.open(Path::new(""), options)), kind(ErrorKind::NotFound, "NotFound"));
        assert_eq!(failure(s.fs.open(Path::new("/"), options)), kind(ErrorKind::Io, "IsADirectory"));
    }
    assert_eq!(failure(s.open("d", OpenOptions::create_new())), kind(ErrorKind::Conflict, "AlreadyExists"));
}

fn reads_and_writes(s: &Subject<'_>) {
    let file = s.put("a", b"hello");
    assert_eq!(file.path(), s.at("a"));
    assert_eq!(file.write_at(b"XY", 7).unwrap(), 2);
    assert_eq!(file.write_at(b"", 100).unwrap(), 0);
    assert_eq!(file.len().unwrap(), 9, "an empty write does not grow the file");
    let mut buf = [b'.'; 12];
    assert_eq!(file.read_at(&mut buf, 0).unwrap(), 9);
    assert_eq!(&buf, b"hello\0\0XY...");
    assert_eq!(file.read_at(&mut buf, 8).unwrap(), 1);
    assert_eq!(file.read_at(&mut buf, 9).unwrap(), 0);
    assert_eq!(file.read_at(&mut buf, 1 << 40).unwrap(), 0);
    let error = file.read_exact_at(&mut buf, 2).unwrap_err();
    assert_eq!((error.source.kind(), error.offset), (std::io::ErrorKind::UnexpectedEof, Some(9)));
    assert_eq!(failure(file.read_at(&mut buf, u64::MAX)), kind(ErrorKind::Invalid, "InvalidInput"));
    assert_eq!(failure(file.write_at(b"a", u64::MAX)), kind(ErrorKind::Invalid, "InvalidInput"));
    assert_eq!(failure(file.set_len(u64::MAX)), kind(ErrorKind::Invalid, "InvalidInput"));
    assert_eq!(failure(file.write_at(b"a", i64::MAX as u64 - 9)), kind(ErrorKind::Io, "FileTooLarge"));
    assert_eq!(failure(file.set_len(i64::MAX as u64)), kind(ErrorKind::Io, "FileTooLarge"));
    file.advise(0, 100, Advice::WillNeed);
    file.sync_data().unwrap();
    assert_eq!(s.get("a"), b"hello\0\0XY");
}

fn read_only_handles(s: &Subject<'_>) {
    s.put("a", b"abc");
    let file = s.open("a", OpenOptions::read()).unwrap();
    for result in [file.write_at(b"x", 0).map(|_| ()), file.set_len(0), file.allocate(0, 1)] {
        assert_eq!(failure(result), kind(ErrorKind::Invalid, "InvalidInput"));
    }
    file.sync_data().unwrap();
    assert_eq!(s.get("a"), b"abc");
}

fn lengths(s: &Subject<'_>) {
    let file = s.put("a", b"abcdef");
    assert!(!file.is_empty().unwrap());
    file.set_len(2).unwrap();
    file.set_len(5).unwrap();
    assert_eq!(s.get("a"), b"ab\0\0\0", "the part that was cut off reads as zeros");
    file.set_len(0).unwrap();
    assert!(file.is_empty().unwrap());
    assert!(file.map().unwrap().is_empty());
    file.allocate(0, 100_000).unwrap();
    file.allocate(0, 0).unwrap();
    assert_eq!(file.len().unwrap(), 0, "a reservation is not a length");
    file.write_all_at(b"far", 6 << 30).unwrap();
    assert_eq!(file.len().unwrap(), (6 << 30) + 3);
    assert_eq!(s.fs.metadata(&s.at("a")).unwrap().len, (6 << 30) + 3);
}

fn renames(s: &Subject<'_>) {
    let a = s.put("a", b"A");
    let b = s.put("b", b"B");
    s.fs.rename(&s.at("a"), &s.at("b")).unwrap();
    assert_eq!(s.get("b"), b"A");
    assert!(!s.fs.exists(&s.at("a")).unwrap());
    assert_eq!(&*b.map().unwrap(), b"B", "the replaced file lives on in its handle");
    assert_eq!(s.fs.metadata(&s.at("b")).unwrap().id, a.id());
    assert_eq!(a.path(), s.at("a"), "a handle keeps the path it was opened by");
    s.fs.rename(&s.at("b"), &s.at("b")).unwrap();
    s.fs.hard_link(&s.at("b"), &s.at("c")).unwrap();
    s.fs.rename(&s.at("b"), &s.at("c")).unwrap();
    assert!(s.fs.exists(&s.at("b")).unwrap(), "two names of one file: rename does nothing");
    s.fs.create_dir_all(&s.at("d/e")).unwrap();
    s.fs.create_dir_all(&s.at("empty")).unwrap();
    let rename = |from: &str, to: &str| s.fs.rename(&s.at(from), &s.at(to));
    assert_eq!(failure(rename("zz", "b")), kind(ErrorKind::NotFound, "NotFound"));
    assert_eq!(failure(rename("b", "no/b")), kind(ErrorKind::NotFound, "NotFound"));
    assert_eq!(failure(rename("b", "d")), kind(ErrorKind::Io, "IsADirectory"));
    assert_eq!(failure(rename("d", "b")), kind(ErrorKind::Io, "NotADirectory"));
    assert_eq!(failure(rename("empty", "d")), kind(ErrorKind::Io, "DirectoryNotEmpty"));
    assert_eq!(failure(rename("d", "d/e/f")), kind(ErrorKind::Invalid, "InvalidInput"));
    assert_eq!(failure(rename("b/x", "y")), kind(ErrorKind::Io, "NotADirectory"));
    rename("b", "d/e/b").unwrap();
    rename("d", "empty").unwrap();
    assert_eq!(s.get("empty/e/b"), b"A");
    assert_eq!(s.get("empty/../empty/./e/b"), b"A");
}

fn links_and_removal(s: &Subject<'_>) {
    let a = s.put("a", b"abc");
    s.fs.hard_link(&s.at("a"), &s.at("b")).unwrap();
    assert_eq!(s.fs.metadata(&s.at("a")).unwrap().id, s.fs.metadata(&s.at("b")).unwrap().id);
    s.fs.create_dir_all(&s.at("d")).unwrap();
    let link = |from: &str, to: &str| s.fs.hard_link(&s.at(from), &s.at(to));
    assert_eq!(failure(link("a", "b")), kind(ErrorKind::Conflict, "AlreadyExists"));
    assert_eq!(failure(link("zz", "c")), kind(ErrorKind::NotFound, "NotFound"));
    assert_eq!(failure(link("d", "c")), kind(ErrorKind::Io, "PermissionDenied"));
    s.fs.remove(&s.at("a")).unwrap();
    assert_eq!(s.get("b"), b"abc");
    s.fs.remove(&s.at("b")).unwrap();
    assert_eq!(&*a.map().unwrap(), b"abc", "a file lives on while it is open");
    a.write_all_at(b"still", 0).unwrap();
    let again = s.put("a", b"new");
    assert_ne!(again.id(), a.id());
    assert_eq!(failure(s.fs.remove(&s.at("b"))), kind(ErrorKind::NotFound, "NotFound"));
    assert_eq!(failure(s.fs.remove(&s.at("d"))), kind(ErrorKind::Io, "IsADirectory"));
    assert_eq!(failure(s.fs.remove(&s.at("a/x"))), kind(ErrorKind::Io, "NotADirectory"));
}

fn directories(s: &Subject<'_>) {
    s.fs.create_dir_all(&s.at("x/y/z")).unwrap();
    s.fs.create_dir_all(&s.at("x/y/z")).unwrap();
    s.fs.create_dir_all(Path::new("")).unwrap();
    s.put("x/b", b"");
    s.put("x/a", b"");
    assert_eq!(s.fs.read_dir(&s.at("x")).unwrap(), [s.at("x/a"), s.at("x/b"), s.at("x/y")]);
    assert!(s.fs.read_dir(&s.at("x/y/z")).unwrap().is_empty());
    assert_eq!(failure(s.fs.read_dir(&s.at("no"))), kind(ErrorKind::NotFound, "NotFound"));
    assert_eq!(failure(s.fs.read_dir(&s.at("x/a"))), kind(ErrorKind::Io, "NotADirectory"));
    assert_eq!(failure(s.fs.create_dir_all(&s.at("x/a"))), kind(ErrorKind::Conflict, "AlreadyExists"));
    assert_eq!(failure(s.fs.create_dir_all(&s.at("x/a/b"))), kind(ErrorKind::Io, "NotADirectory"));
    let metadata = s.fs.metadata(&s.at("x")).unwrap();
    assert!(metadata.is_dir && metadata.len == 0);
    assert_eq!(failure(s.fs.metadata(&s.at("no"))), kind(ErrorKind::NotFound, "NotFound"));
    assert_eq!(failure(s.fs.exists(&s.at("x/a/b"))), kind(ErrorKind::Io, "NotADirectory"));
    s.fs.sync_dir(&s.at("x")).unwrap();
    s.fs.sync_parent(&s.at("x/a")).unwrap();
    s.fs.sync_parent(Path::new("relative")).unwrap();
    assert_eq!(failure(s.fs.sync_dir(&s.at("no"))), kind(ErrorKind::NotFound, "NotFound"));
    assert_eq!(failure(s.fs.sync_dir(&s.at("x/a"))), kind(ErrorKind::Io, "NotADirectory"));
}

fn locks(s: &Subject<'_>) {
    let first = s.put("a", b"");
    let second = s.open("a", OpenOptions::read()).unwrap();
    first.try_lock().unwrap();
    first.try_lock().unwrap();
    let busy = second.try_lock();
    let told = format!("{} is already open in this or another process", s.at("a").display());
    assert_eq!(busy.as_ref().unwrap_err().to_string(), told);
    assert_eq!(failure(busy), kind(ErrorKind::Busy, "WouldBlock"));
    drop(first);
    second.try_lock().unwrap();
    let other = s.put("b", b"");
    other.try_lock().unwrap();
}

/// Runs only on file systems that support it.
fn removal_of_directories(fs: &dyn Fs, root: &Path) {
    let s = Subject { fs, root };
    s.fs.create_dir_all(&s.at("x/y")).unwrap();
    s.put("x/a", b"");
    assert_eq!(failure(s.fs.remove_dir(&s.at("x"))).1, "DirectoryNotEmpty");
    assert_eq!(failure(s.fs.remove_dir(&s.at("x/a"))), kind(ErrorKind::Io, "NotADirectory"));
    assert_eq!(failure(s.fs.remove_dir(&s.at("no"))), kind(ErrorKind::NotFound, "NotFound"));
    s.fs.remove_dir(&s.at("x/y")).unwrap();
    s.fs.remove(&s.at("x/a")).unwrap();
    s.fs.remove_dir(&s.at("x")).unwrap();
    assert!(!s.fs.exists(&s.at("x")).unwrap());
}

type Test = fn(&Subject<'_>);

/// Runs every test, each in a directory of its own.
pub(crate) fn check(fs: &dyn Fs, root: &Path) {
    let tests: [(&str, Test); 8] = [
        ("open_modes", open_modes),
        ("reads_and_writes", reads_and_writes),
        ("read_only_handles", read_only_handles),
        ("lengths", lengths),
        ("renames", renames),
        ("links_and_removal", links_and_removal),
        ("directories", directories),
        ("locks", locks),
    ];
    for (name, test) in tests {
        let root = root.join(name);
        fs.create_dir_all(&root).unwrap();
        test(&Subject { fs, root: &root });
    }
}

/// Goal: the real file system passes the suite, so the suite describes real behaviour.
#[test]
fn std_fs_conforms() {
    let directory = tempfile::tempdir().unwrap();
    check(&StdFs::new(), directory.path());
    removal_of_directories(&StdFs::new(), directory.path());
}

/// Goal: the disk in memory agrees with the real one on every method and error kind.
#[test]
fn mem_fs_conforms() {
    check(&MemFs::new(), Path::new("/some/where"));
    check(&MemFs::new(), Path::new("relative"));
    let fs = MemFs::new();
    fs.create_dir_all(Path::new("/some")).unwrap();
    removal_of_directories(&fs, Path::new("/some"));
}

/// Goal: without power losses, the simulated disk that can lose power agrees as well, also while it
/// records and captures crash points.
#[test]
fn fault_fs_conforms() {
    check(&FaultFs::new(FaultOptions::default()), Path::new("/some/where"));
    let busy = FaultFs::new(FaultOptions { record: true, quota_bytes: Some(1 << 20), ..Default::default() });
    busy.capture_crash_points();
    check(&busy, Path::new("relative"));
    assert!(!busy.take_crash_points().is_empty() && !busy.log().is_empty());
}
