//! Files of every format version that ever was on the main branch: `tests/fixtures/README.md`.
#![allow(clippy::unwrap_used)]

mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_codec::checksum::xxh3_64_seeded;
use cairn_kv::{Backups, Db, Error, RepairOptions, repair};
use cairn_vfs::{Fs, MemFs, OpenOptions, StdFs};

use store::{Contents, STORE, expected};

/// The fixtures, each with the versions of its tables and blob files.
const FIXTURES: [(&str, u32); 2] = [("version-1", 1), ("version-2", 2)];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Copies the files in `from` on the machine's file system to `to` on a file system in memory.
fn copy(fs: &Arc<dyn Fs>, from: &Path, to: &Path) {
    let disk = StdFs::new();
    fs.create_dir_all(to).unwrap();
    for path in disk.read_dir(from).unwrap() {
        let file = disk.open(&path, OpenOptions::read()).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let copy = fs.open(&to.join(path.file_name().unwrap()), OpenOptions::create_new()).unwrap();
        copy.write_all_at(&bytes, 0).unwrap();
    }
    fs.sync_dir(to).unwrap();
}

/// Returns the little-endian number of four bytes at `at`, from the end if `at` is negative.
fn word(fs: &Arc<dyn Fs>, path: &Path, at: i64) -> u32 {
    let file = fs.open(path, OpenOptions::read()).unwrap();
    let offset = if at < 0 { file.len().unwrap().checked_add_signed(at).unwrap() } else { at as u64 };
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, offset).unwrap();
    u32::from_le_bytes(bytes)
}

fn with_ending(fs: &Arc<dyn Fs>, dir: &str, ending: &str) -> Vec<PathBuf> {
    let paths = fs.read_dir(Path::new(dir)).unwrap();
    paths.into_iter().filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

/// Returns everything in the store.
fn contents(db: &Db) -> Contents {
    db.keyspaces().iter().map(|it| (it.name().to_owned(), it.iter().map(Result::unwrap).collect())).collect()
}

/// Goal: this build reads stores of earlier ones, in every version of every format, and goes on
/// with it. Method: open a copy of each fixture read-only and for writing, compare everything in
/// it, verify it, write to it, merge its tables, and open it once more.
#[test]
fn stores_of_every_version_are_read() {
    for (fixture, version) in FIXTURES {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        copy(&fs, &fixtures().join(fixture).join("store"), Path::new(STORE));
        let (tables, blobs) = (with_ending(&fs, STORE, ".table"), with_ending(&fs, STORE, ".blob"));
        assert!(!tables.is_empty() && !blobs.is_empty(), "{fixture}: {tables:?} {blobs:?}");
        assert!(tables.iter().all(|path| word(&fs, path, -24) == version), "{fixture}: tables");
        assert!(blobs.iter().all(|path| word(&fs, path, 4) == version), "{fixture}: blob files");

        let reader = store::builder(&fs).read_only(true).open().unwrap();
        assert_eq!(contents(&reader), expected(), "{fixture}, read-only");
        drop(reader);
        let db = store::builder(&fs).open().unwrap();
        assert_eq!(contents(&db), expected(), "{fixture}");
        let report = db.verify().unwrap();
        assert!(report.is_sound(), "{fixture}: {report}");
        db.put("later", "write").unwrap();
        for keyspace in db.keyspaces() {
            keyspace.compact_range(..).unwrap();
        }
        drop(db);
        let mut later = expected();
        later.get_mut("default").unwrap().insert(b"later".to_vec(), b"write".to_vec());
        let db = store::builder(&fs).open().unwrap();
        assert_eq!(contents(&db), later, "{fixture}, merged by this build");
    }
}

/// Goal: this build restores the backups that earlier ones made. Method: restore the backup of each
/// fixture, and compare everything in the store.
#[test]
fn backups_of_every_version_are_restored() {
    for (fixture, _) in FIXTURES {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        copy(&fs, &fixtures().join(fixture).join("backups"), Path::new("/backups"));
        let backups = Backups::open_in(&fs, "/backups").unwrap();
        let damage = backups.verify().unwrap();
        assert!(damage.is_empty(), "{fixture}: {damage:?}");
        assert_eq!(backups.restore(None, STORE).unwrap(), 1, "{fixture}");
        let db = store::builder(&fs).open().unwrap();
        assert_eq!(contents(&db), expected(), "{fixture}");
    }
}

/// Goal: a store of every version that has lost its manifest is rebuilt from its tables. Method:
/// repair a copy of each fixture without `CURRENT` and the manifest, and compare everything in it.
#[test]
fn stores_of_every_version_are_rebuilt_without_a_manifest() {
    for (fixture, _) in FIXTURES {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        copy(&fs, &fixtures().join(fixture).join("store"), Path::new(STORE));
        fs.remove(&Path::new(STORE).join("CURRENT")).unwrap();
        fs.remove(&Path::new(STORE).join("MANIFEST-000001")).unwrap();
        let options = RepairOptions { fs: Arc::clone(&fs), keyspaces: store::keyspaces() };
        let report = repair(STORE, &options).unwrap();
        assert!(report.is_rebuilt && report.set_aside.is_empty(), "{fixture}: {report}");
        assert!(report.log_records > 0 && report.lost_values == 0, "{fixture}: {report}");
        let db = store::builder(&fs).open().unwrap();
        assert_eq!(contents(&db), expected(), "{fixture}: {report}");
        let verified = db.verify().unwrap();
        assert!(verified.is_sound(), "{fixture}: {verified}");
    }
}

/// A version that no build has written.
const LATER: u8 = 99;

/// Puts the checksum of the bytes in `range` at `at`.
fn put_sum(bytes: &mut [u8], at: usize, range: std::ops::Range<usize>, seed: u64) {
    let sum = xxh3_64_seeded(&bytes[range], seed);
    bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
}

fn raise_table(bytes: &mut [u8]) {
    let footer = bytes.len() - 64;
    bytes[footer + 40] = LATER;
    put_sum(bytes, footer + 48, footer..footer + 48, 0);
}

fn raise_blob_file(bytes: &mut [u8]) {
    bytes[4] = LATER;
}

fn raise_manifest(bytes: &mut [u8]) {
    bytes[8] = LATER;
    put_sum(bytes, 32, 0..32, 0);
}

fn raise_backup(bytes: &mut [u8]) {
    bytes[8] = LATER;
    let end = bytes.len() - 8;
    put_sum(bytes, end, 0..end, 0);
}

/// Raises the version of the options with which the keyspace `large` was created, in the first
/// record of the manifest that has its name.
fn raise_options(bytes: &mut [u8]) {
    let number = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let identity = number(bytes, 16) ^ number(bytes, 24).rotate_left(32);
    let mut at = 40;
    loop {
        let len = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let payload = at + 20..at + 20 + len;
        let name = b"\x05large";
        let Some(found) = bytes[payload.clone()].windows(name.len()).position(|part| part == name) else {
            at = payload.end + 8;
            continue;
        };
        // The length of the options is one byte.
        let version = payload.start + found + name.len() + 1;
        assert_eq!(bytes[version], 2);
        bytes[version] = LATER;
        let seed = xxh3_64_seeded(&(at as u64).to_le_bytes(), identity);
        put_sum(bytes, at + 4, payload, seed);
        put_sum(bytes, at + 12, at..at + 12, seed);
        return;
    }
}

/// Opens the store, reads from a table and from a blob file, and returns the first error.
fn error_of_store(fs: &Arc<dyn Fs>) -> Error {
    let read = || {
        let db = store::builder(fs).open()?;
        db.get("key000")?;
        db.keyspace("large").unwrap().get("large-03")
    };
    read().unwrap_err()
}

/// Goal: a file of a later version is refused as such, with its version and those that this build
/// reads. Method: the newest fixture with the version of one kind of file raised, or that of a
/// keyspace's options, and the checksums corrected.
#[test]
fn later_versions_are_refused_by_name() {
    type Raise = fn(&mut [u8]);
    let cases: [(&str, Raise, &str); 5] = [
        (".table", raise_table, "versions are 1 to 2"),
        (".blob", raise_blob_file, "1 to 2"),
        ("MANIFEST-000001", raise_manifest, "version 1 without"),
        ("MANIFEST-000001", raise_options, "versions are 1 to 2"),
        ("000001.backup", raise_backup, "version 1"),
    ];
    for (ending, raise, supported) in cases {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let (name, to) = if ending.ends_with("backup") { ("backups", "/backups") } else { ("store", STORE) };
        copy(&fs, &fixtures().join("version-2").join(name), Path::new(to));
        let paths = with_ending(&fs, to, ending);
        assert!(!paths.is_empty(), "{ending}");
        for path in paths {
            let file = fs.open(&path, OpenOptions::write()).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            raise(&mut bytes);
            file.write_all_at(&bytes, 0).unwrap();
        }
        let error = match to {
            STORE => error_of_store(&fs),
            _ => Backups::open_in(&fs, to).unwrap().restore(None, STORE).unwrap_err(),
        };
        assert!(matches!(error, Error::Unsupported { .. }), "{ending}: {error:?}");
        let text = error.to_string();
        assert!(text.contains("version 99") && text.contains(supported), "{ending}: {text}");
    }
}

/// Writes the fixture of this build's versions into the folder that `OUT` names: see
/// `tests/fixtures/README.md`.
#[test]
#[ignore = "writes the fixture of a new version"]
fn write_fixture() {
    let to = PathBuf::from(std::env::var_os("OUT").unwrap());
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    store::write(&fs);
    let disk: Arc<dyn Fs> = Arc::new(StdFs::new());
    for (from, name) in [(STORE, "store"), ("/backups", "backups")] {
        let dir = to.join(name);
        disk.create_dir_all(&dir).unwrap();
        for path in fs.read_dir(Path::new(from)).unwrap() {
            let file = fs.open(&path, OpenOptions::read()).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            let copy = disk.open(&dir.join(path.file_name().unwrap()), OpenOptions::create_new()).unwrap();
            copy.write_all_at(&bytes, 0).unwrap();
        }
    }
}
