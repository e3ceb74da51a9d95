use super::*;

/// Goal: direct I/O either works on aligned buffers or is refused as `Unsupported`. Method: the
/// temporary directory, and a tmpfs if there is one, which supports direct I/O only on recent
/// kernels.
#[test]
fn direct_io_works_or_is_unsupported() {
    #[repr(align(4096))]
    struct Aligned([u8; 4096]);
    let mut directories = vec![tempfile::tempdir().unwrap()];
    directories.extend(tempfile::tempdir_in("/dev/shm").ok());
    for directory in directories {
        let options = OpenOptions { direct: true, ..OpenOptions::create() };
        match StdFs::new().open(&directory.path().join("direct"), options) {
            Ok(file) => {
                assert_eq!(file.write_at(&Aligned([7; 4096]).0, 4096).unwrap(), 4096);
                let mut back = Aligned([1; 4096]);
                assert_eq!(file.read_at(&mut back.0, 4096).unwrap(), 4096);
                assert!(back.0.iter().all(|&byte| byte == 7));
            }
            Err(error) => assert_eq!(error.kind(), crate::ErrorKind::Unsupported, "{error}"),
        }
    }
}

/// Goal: messages name the operation, the file and the offset.
#[test]
fn errors_say_what_and_where() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing");
    let error = StdFs::new().open(&path, OpenOptions::read()).unwrap_err().to_string();
    assert_eq!(error, format!("{} does not exist", path.display()));
    let file = StdFs::new().open(&path, OpenOptions::create()).unwrap();
    let error = file.read_at(&mut [0; 4], u64::MAX).unwrap_err().to_string();
    assert!(error.contains("cannot read ") && error.contains("at offset 18446744073709551615"), "{error}");
}

/// Goal: a missing file and a file of the wrong kind get the same wording, whatever the operation.
/// Method: a file and a directory in each other's place, a missing name, and a file to be created
/// in a missing directory.
#[test]
fn names_are_told_in_the_same_words() {
    let directory = tempfile::tempdir().unwrap();
    let fs = StdFs::new();
    let at = |name: &str| directory.path().join(name);
    drop(fs.open(&at("file"), OpenOptions::create()).unwrap());
    fs.create_dir_all(&at("dir")).unwrap();
    let told = |path: &Path, words: &str, error: Error| {
        assert_eq!(error.to_string(), format!("{} {words}", path.display()));
    };
    for options in [OpenOptions::read(), OpenOptions::write()] {
        told(&at("no"), "does not exist", fs.open(&at("no"), options).unwrap_err());
    }
    told(&at("no"), "does not exist", fs.metadata(&at("no")).unwrap_err());
    told(&at("no"), "does not exist", fs.read_dir(&at("no")).unwrap_err());
    told(&at("file"), "is a file, expected a directory", fs.read_dir(&at("file")).unwrap_err());
    for options in [OpenOptions::read(), OpenOptions::write(), OpenOptions::create()] {
        told(&at("dir"), "is a directory, expected a file", fs.open(&at("dir"), options).unwrap_err());
    }
    for options in [OpenOptions::create(), OpenOptions::create_new()] {
        told(&at("no"), "does not exist", fs.open(&at("no/file"), options).unwrap_err());
    }
    told(&at("no"), "does not exist", fs.open_stream(&at("no/file")).unwrap_err());
}

/// Goal: a file system that does not support directory syncs is distinguished from one that fails.
/// Method: `/proc`, which does not support them.
#[test]
fn directories_that_cannot_be_synced() {
    let Err(error) = StdFs::new().sync_dir(Path::new("/proc")) else {
        println!("this system syncs /proc, and nothing was tested");
        return;
    };
    assert_eq!(error.kind(), crate::ErrorKind::Unsupported, "{error}");
    assert!(
        error.to_string().starts_with("cannot sync the directory /proc: the file system does not"),
        "{error}"
    );
}

/// Goal: reserved space does not change the length, and calls with length 0 do nothing.
#[test]
fn allocate_keeps_the_length() {
    let directory = tempfile::tempdir().unwrap();
    let file = StdFs::new().open(&directory.path().join("a"), OpenOptions::create()).unwrap();
    file.allocate(0, 1 << 20).unwrap();
    file.allocate(5, 0).unwrap();
    file.advise(0, 0, Advice::DontNeed);
    file.advise(0, 1 << 20, Advice::Sequential);
    assert!(file.is_empty().unwrap());
    assert!(file.map().unwrap().is_empty());
}

/// Goal: interrupted calls are repeated, other errors are not.
#[test]
fn repeat_hides_interrupts() {
    let mut left = 3;
    let result = repeat(|| {
        left -= 1;
        if left > 0 { Err(io::ErrorKind::Interrupted.into()) } else { Ok(left) }
    });
    assert_eq!(result.unwrap(), 0);
    let mut calls = 0;
    let result: io::Result<()> = repeat(|| {
        calls += 1;
        Err(io::ErrorKind::Other.into())
    });
    assert_eq!((result.is_err(), calls), (true, 1));
}
