use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::PathBuf;

use super::*;
use crate::{Error, OpenOptions, StdFs};

fn disk() -> Arc<dyn Fs> {
    Arc::new(StdFs::new())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let out = OutputFile::create(&disk(), path)?;
    out.file().write_all_at(bytes, 0)?;
    out.commit()
}

/// Creates a named pipe with the system's `mkfifo` command.
fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Goal: a pipe receives the bytes, in as many writes as it takes, and stays a pipe; replacing it
/// by a file or opening it as one is refused at once. Method: write more bytes than a pipe buffers,
/// to a reader.
#[test]
fn pipes_are_written_through() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    pipe(&path);
    let error = AtomicFile::create(&disk(), &path).unwrap_err();
    assert!(error.kind() == crate::ErrorKind::Invalid && error.to_string().contains("pipe"), "{error}");
    for options in [OpenOptions::read(), OpenOptions::write(), OpenOptions::create()] {
        let error = disk().open(&path, options).unwrap_err();
        assert!(error.kind() == crate::ErrorKind::Invalid && error.path == path, "{error}");
    }
    let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let reader = {
        let path = path.clone();
        std::thread::spawn(move || {
            let mut read = Vec::new();
            fs::File::open(path).unwrap().read_to_end(&mut read).unwrap();
            read
        })
    };
    write(&path, &content).unwrap();
    assert!(reader.join().unwrap() == content);
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing beside it");
}

/// Goal: a replacement keeps the permissions of the old file, from before its first byte on, except
/// that the owner may always read and write; a new file gets the process's default permissions.
/// Method: files with all kinds of permissions, checked during the build and after it.
#[test]
fn rights_stay() {
    let dir = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    for (before, after) in [(0o600, 0o600), (0o640, 0o640), (0o666, 0o666), (0o444, 0o644), (0o4711, 0o711)] {
        let (path, temporary) = (dir.path().join("file"), dir.path().join("file.tmp"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(before)).unwrap();
        let out = OutputFile::create(&disk(), &path).unwrap();
        assert_eq!((mode(&temporary), fs::metadata(&temporary).unwrap().len()), (after, 0), "{before:o}");
        out.file().write_all_at(b"new", 0).unwrap();
        out.commit().unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (after, b"new".to_vec()), "{before:o}");
        fs::remove_file(&path).unwrap();
    }
    fs::write(dir.path().join("own"), "").unwrap();
    write(&dir.path().join("file"), b"new").unwrap();
    assert_eq!(mode(&dir.path().join("file")), mode(&dir.path().join("own")));
}

/// Goal: a link in the place of the temporary file is removed; its target is not touched and does
/// not take the final name. Method: links to nothing, to a file, to a directory.
#[test]
fn links_in_the_way_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("other"), "other").unwrap();
    fs::create_dir(at("d")).unwrap();
    for to in ["elsewhere", "other", "d"] {
        symlink(to, at("file.tmp")).unwrap();
        write(&at("file"), b"new").unwrap();
        assert!(fs::symlink_metadata(at("file")).unwrap().is_file(), "{to}");
        assert_eq!(
            (fs::read(at("file")).unwrap(), fs::read(at("other")).unwrap()),
            (b"new".to_vec(), b"other".to_vec())
        );
        assert!(!at("elsewhere").exists() && fs::symlink_metadata(at("file.tmp")).is_err(), "{to}");
        assert_eq!(fs::read_dir(at("d")).unwrap().count(), 0);
    }
}

/// Goal: a symbolic link stays a link and its target is replaced, whether or not the target exists;
/// a cycle of links is an error. Method: links to a file, to nothing, to a link in another
/// directory, to each other.
#[test]
fn links_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("d")).unwrap();
    fs::write(at("d/file"), "old").unwrap();
    let links = [("relative", "d/file"), ("missing", "d/new"), ("chain", "d/link"), ("d/link", "file")];
    for (link, target) in links {
        symlink(target, at(link)).unwrap();
    }
    symlink(at("d/file"), at("absolute")).unwrap();
    let ends = [("relative", "d/file"), ("missing", "d/new"), ("chain", "d/file"), ("absolute", "d/file")];
    for (link, target) in ends {
        write(&at(link), link.as_bytes()).unwrap();
        assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink(), "{link}");
        assert!(!fs::symlink_metadata(at(target)).unwrap().is_symlink(), "{target}");
        assert_eq!(fs::read_to_string(at(target)).unwrap(), link);
    }
    let before = fs::File::open(at("d/file")).unwrap();
    write(&at("relative"), b"whole").unwrap();
    let replaced = fs::metadata(at("d/file")).unwrap();
    assert_ne!(disk().metadata(&at("d/file")).unwrap().id.inode, inode(&before), "replaced, not overwritten");
    assert_eq!(replaced.len(), 5);
    symlink("b", at("a")).unwrap();
    symlink("a", at("b")).unwrap();
    assert!(write(&at("a"), b"").is_err());
    let left: Vec<PathBuf> = disk().read_dir(dir.path()).unwrap();
    assert!(left.iter().all(|path| path.extension().is_none()), "{left:?}");
}

fn inode(file: &fs::File) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap())
}

/// Goal: an open file reached through a kernel link (`/proc/self/fd`) is written in place, so that
/// its holder sees the bytes. Method: the test's own file by its descriptor number, with and
/// without a name.
#[test]
fn open_files_stay_the_same() {
    use std::os::fd::AsRawFd;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("held");
    fs::write(&path, "what was there before").unwrap();
    let mut held = fs::File::open(&path).unwrap();
    for content in ["one", "another"] {
        write(&PathBuf::from(format!("/dev/fd/{}", held.as_raw_fd())), content.as_bytes()).unwrap();
        let mut read = String::new();
        std::io::Seek::rewind(&mut held).unwrap();
        held.read_to_string(&mut read).unwrap();
        assert_eq!(read, content);
        let _ = fs::remove_file(&path);
    }
}

/// Goal: errors name the path that the user gave, or its missing directory. Method: a directory, a
/// missing directory, and an obstacle in the place of the temporary file.
#[test]
fn errors_name_what_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let failure = |name: &str| -> Error { OutputFile::create(&disk(), &at(name)).unwrap_err() };
    fs::create_dir(at("d")).unwrap();
    symlink("d", at("to_d")).unwrap();
    for (name, named, kind) in [
        ("d", "d", ErrorKind::IsADirectory),
        ("to_d", "to_d", ErrorKind::IsADirectory),
        ("no/x", "no", ErrorKind::NotFound),
    ] {
        let error = failure(name);
        assert_eq!((&error.path, error.source.kind()), (&at(named), kind), "{error}");
    }
    fs::create_dir(at("x.tmp")).unwrap();
    assert_eq!(failure("x").path, at("x.tmp"));
}
