//! Double writes in every version of the format that was ever written.

#![allow(clippy::unwrap_used, reason = "a test program")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_codec::checksum::xxh3_64;
use cairn_pool::{BackgroundWriter, Copies, Error, FileOptions, Lsn, Owner, Pool, WriteAhead, verify};
use cairn_vfs::{ErrorKind, File, Fs, MemFs, OpenOptions, StdFs};

const PAGE_SIZE: usize = 4096;
/// The owner of the fixture.
const OWNER: Owner = Owner { file: 11, session: 12, before: 13 };
/// How far the log was durable when the fixture was written.
const LOGGED: Lsn = Lsn(14);
/// The bytes of the owner and the log's position in the first block. Version 1 had zeros there.
const ADDED: std::ops::Range<usize> = 4056..4088;

/// A log that is durable up to [`LOGGED`].
#[derive(Debug)]
struct DurableLog;

impl WriteAhead for DurableLog {
    fn make_durable(&self, lsn: Lsn) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        assert!(lsn <= LOGGED);
        Ok(())
    }

    fn durable(&self) -> Lsn {
        LOGGED
    }
}

fn fixture() -> Box<dyn File> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/double-write-v2");
    StdFs::new().open(&path, OpenOptions::read()).unwrap()
}

/// Goal: a double write of the current version is read completely. Method: the fixture, which holds
/// copies of two pages.
#[test]
fn current_version_is_read() {
    let file = fixture();
    let copies = Copies::read(&*file, PAGE_SIZE).unwrap().unwrap();
    assert_eq!((copies.owner, copies.logged), (OWNER, LOGGED));
    for page in 0..2 {
        let copy = copies.page(&*file, page).unwrap().unwrap();
        assert_eq!(verify(&copy, page), Ok(Lsn(u64::from(page) + 7)));
        assert!(copy[16..].iter().all(|&byte| byte == b'a' + page as u8), "page {page}");
    }
    assert!(copies.page(&*file, 2).unwrap().is_none());
    assert_eq!(Copies::read(&*file, 8192).unwrap_err().kind(), ErrorKind::Invalid);
}

/// Goal: a double write of version 1, which no later build has ever read, is refused by a typed
/// error that names the version. Method: the fixture as version 1 would have written it: with that
/// version, without the fields that version 2 added, and with a checksum to match.
#[test]
fn version_1_is_refused_by_name() {
    let mut bytes = fixture().map().unwrap().to_vec();
    bytes[8..12].copy_from_slice(&1_u32.to_le_bytes());
    assert_ne!(bytes[ADDED], [0; ADDED.end - ADDED.start]);
    bytes[ADDED].fill(0);
    let check = xxh3_64(&bytes[..4088]).to_le_bytes();
    bytes[4088..4096].copy_from_slice(&check);
    let file = MemFs::new().open(Path::new("double-write"), OpenOptions::create()).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    let error = Copies::read(&*file, PAGE_SIZE).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }) && error.kind() == ErrorKind::Unsupported, "{error}");
    let text = error.to_string();
    assert!(text.contains("of version 1; this build reads version 2"), "{text}");
}

/// Writes a file and its double write, the fixture of the current version, into the folder that
/// `OUT` names: see `tests/fixtures/README.md`.
#[test]
#[ignore = "writes a fixture"]
fn write_fixture() {
    let dir = PathBuf::from(std::env::var_os("OUT").unwrap());
    StdFs::new().create_dir_all(&dir).unwrap();
    let open = |name: &str| StdFs::new().open(&dir.join(name), OpenOptions::create()).unwrap();
    let pool = Pool::builder().frames(8).background_writer(BackgroundWriter::Off).build().unwrap();
    let options =
        FileOptions::new().write_ahead(Arc::new(DurableLog)).double_write(open("double-write")).owner(OWNER);
    let file = pool.open(open("pages"), options).unwrap();
    for page in 0..2 {
        let mut guard = file.create(page).unwrap();
        guard.payload_mut(Lsn(u64::from(page) + 7)).fill(b'a' + page as u8);
    }
    file.close().unwrap();
}
