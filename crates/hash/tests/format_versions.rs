//! Files of every version of the constant store's formats, as fixtures.
//!
//! `tests/fixtures/README.md` says how each file was made. A version is raised only together with a
//! reader for the last one and a fixture. Files of Sparkey are in `testing/compat`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test program")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_hash::Error;
use cairn_hash::generations::{Generations, StoreBuilder};
use cairn_hash::table::{BuildOptions, Builder, Compression, Mode, Reader, ReaderOptions};
use cairn_vfs::{Fs, MemFs, OpenOptions, SeededRng, StdFs};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A table of records of one width.
const FIXED: &str = "fixed-v2.cairn";
/// A store: a compressed base with a long value, a delta over it, and their manifest.
const STORE: &str = "store-v2.cairn";
const DELTA: &str = "store-v2.cairn.delta.000001";
const MANIFEST: &str = "store-v2.cairn.manifest";

const MODES: [Mode; 3] = [Mode::Mmap, Mode::Heap, Mode::Pread];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn std_fs() -> Arc<dyn Fs> {
    Arc::new(StdFs::new())
}

fn options(id: u64) -> BuildOptions {
    BuildOptions::default().seed(7).id(id).threads(1).memory_bytes(16 << 20)
}

fn fixed() -> Model {
    (0..100u32).map(|n| (n.to_be_bytes().to_vec(), (n * n).to_le_bytes().to_vec())).collect()
}

fn base() -> Model {
    let key = |n: u32| format!("key-{n:03}").into_bytes();
    let mut model: Model = (0..60).map(|n| (key(n), format!("value {n} ").repeat(9).into_bytes())).collect();
    model.insert(b"empty".to_vec(), Vec::new());
    model.insert(b"long".to_vec(), (0..40_000u32).map(|n| (n / 100) as u8).collect());
    model
}

/// The changes of the delta: a value replaced, a key deleted, a key added.
fn changed() -> Model {
    let mut model = base();
    model.insert(b"key-007".to_vec(), b"replaced".to_vec());
    model.remove(&b"key-008"[..]);
    model.insert(b"added".to_vec(), b"later".to_vec());
    model
}

/// Writes all fixtures to `dir`.
fn write(fs: &Arc<dyn Fs>, dir: &Path) {
    let rng = &mut SeededRng::new(1);
    let mut table = Builder::create_in(fs, &dir.join(FIXED), options(0xf1), rng).unwrap();
    fixed().iter().for_each(|(key, value)| table.put(key, value).unwrap());
    table.finish().unwrap();
    let zstd = Compression::Zstd { level: 3, dictionary_bytes: 0 };
    let mut store =
        StoreBuilder::create_in(fs, &dir.join(STORE), options(0xb1).compression(zstd), rng).unwrap();
    base().iter().for_each(|(key, value)| store.put(key, value).unwrap());
    store.finish().unwrap();
    let mut delta = StoreBuilder::append_in(fs, &dir.join(STORE), options(0xd1), rng).unwrap();
    delta.put(b"key-007", b"replaced").unwrap();
    delta.delete(b"key-008").unwrap();
    delta.put(b"added", b"later").unwrap();
    delta.finish().unwrap();
}

fn read(fs: &Arc<dyn Fs>, path: &Path) -> Vec<u8> {
    fs.open(path, OpenOptions::read()).unwrap().map().unwrap().to_vec()
}

/// Goal: this build reads tables of version 2. Method: the whole content of the fixture, by lookup
/// and by scan, in every mode.
#[test]
fn tables_of_version_2_are_read() {
    let model = fixed();
    for mode in MODES {
        let table =
            Reader::open_in(&std_fs(), &fixtures().join(FIXED), ReaderOptions::default().mode(mode)).unwrap();
        assert!(table.info().fixed_width);
        let entries = table.scan().map(|entry| entry.unwrap());
        let scanned: Model =
            entries.map(|entry| (entry.key.into_owned(), entry.value.into_owned())).collect();
        assert_eq!(scanned, model, "{mode:?}");
        for (key, value) in &model {
            assert_eq!(table.get(key).unwrap().as_deref(), Some(&value[..]), "{mode:?} {key:?}");
        }
        assert_eq!(table.verify().unwrap().entries, model.len() as u64);
    }
}

/// Goal: this build reads stores whose tables have version 2 and whose manifest has version 1.
/// Method: the whole content of the fixture, which has compressed values, a long one, an empty one
/// and a deleted one, by lookup and by scan, in every mode.
#[test]
fn stores_of_version_2_are_read() {
    let model = changed();
    for mode in MODES {
        let options = ReaderOptions::default().mode(mode);
        let store = Generations::open_in(&std_fs(), &fixtures().join(STORE), options).unwrap();
        assert_eq!(store.tables().len(), 2);
        let mut scanned = Model::new();
        store
            .for_each(|key, value| {
                assert!(scanned.insert(key.to_vec(), value.to_vec()).is_none(), "{key:?} comes twice");
                Ok::<(), Error>(())
            })
            .unwrap();
        assert_eq!(scanned, model, "{mode:?}");
        for (key, value) in &model {
            assert_eq!(store.get(key).unwrap().as_deref(), Some(&value[..]), "{mode:?} {key:?}");
        }
        assert_eq!(store.get(b"key-008").unwrap(), None);
        store.verify().unwrap();
    }
}

/// Goal: this build writes the versions of the fixtures, so that a change of a format is noticed.
/// Method: the same records, seed and ids; files without compressed values byte for byte, the
/// header of the other one.
#[test]
fn files_are_written_as_the_fixtures_are() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    write(&fs, Path::new(""));
    for name in [FIXED, DELTA, MANIFEST] {
        let fixture = read(&std_fs(), &fixtures().join(name));
        assert!(read(&fs, Path::new(name)) == fixture, "{name} differs");
    }
    let fixture = read(&std_fs(), &fixtures().join(STORE));
    assert_eq!(read(&fs, Path::new(STORE))[..72], fixture[..72]);
}

/// Goal: other versions are refused with an error that names the found and the supported version.
/// Method: the version in the fixtures replaced by the first one, which was never released, by the
/// next one, and by the largest; the checksum of the manifest is corrected.
#[test]
fn other_versions_are_refused() {
    let text = |error: Error| match error {
        Error::Unsupported { detail, .. } => detail,
        error => panic!("{error}"),
    };
    for version in [0u32, 1, 3, u32::MAX] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let write = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = read(&std_fs(), &fixtures().join(name));
            change(&mut bytes);
            let file = fs.open(Path::new(name), OpenOptions::create()).unwrap();
            file.write_all_at(&bytes, 0).unwrap();
        };
        write(FIXED, &|bytes| bytes[8..12].copy_from_slice(&version.to_le_bytes()));
        let detail = text(Reader::open_in(&fs, Path::new(FIXED), ReaderOptions::default()).unwrap_err());
        let expected = format!("format version {version}; this build reads version 2");
        assert!(detail.starts_with(&expected), "{detail}");
        if version == 1 {
            continue;
        }
        write(STORE, &|_| {});
        write(DELTA, &|_| {});
        write(MANIFEST, &|bytes| {
            bytes[8..12].copy_from_slice(&version.to_le_bytes());
            let end = bytes.len() - 8;
            let sum = cairn_codec::checksum::xxh3_64(&bytes[..end]);
            bytes[end..].copy_from_slice(&sum.to_le_bytes());
        });
        let detail = text(Generations::open_in(&fs, Path::new(STORE), ReaderOptions::default()).unwrap_err());
        assert_eq!(detail, format!("version {version} of a manifest; this build reads version 1"));
    }
}

/// Writes the fixtures of the current versions into the folder that `OUT` names: see
/// `tests/fixtures/README.md`.
#[test]
#[ignore = "writes fixtures"]
fn write_fixtures() {
    let dir = PathBuf::from(std::env::var_os("OUT").unwrap());
    std_fs().create_dir_all(&dir).unwrap();
    write(&std_fs(), &dir);
    std_fs().remove(&dir.join(format!("{STORE}.lock"))).unwrap();
}
