//! Traces of every version of the format, as fixtures.
//!
//! `tests/fixtures/README.md` says how each file was made. A version is raised only together with a
//! reader for the last one and a fixture.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test program")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_codec::checksum::xxh3_64_seeded;
use cairn_codec::key_hash::KeyHash;
use cairn_trace::format::{Adaptive, BLOCK_HEAD_BYTES, BlockHead, SampleHash};
use cairn_trace::{Detail, Ending, Error, Event, Header, KeyForm, Trace, Writer};
use cairn_vfs::{Fs, MemFs, OpenOptions, StdFs};

/// All kinds of operations, complete.
const V1: &str = "v1.trace";
/// Keys of which a quarter is in the sample, without an end.
const V2: &str = "v2.trace";
/// As [`V2`], with another hash of keys.
const V3: &str = "v3.trace";

const KEYS: u32 = 100;
const SEED: u64 = 77;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn header(adaptive: Option<Adaptive>) -> Header {
    let source = "fixture".to_owned();
    Header { keys: KeyForm::Raw, timed: true, started_ns: 5, file_id: 9, sample: 1, adaptive, source }
}

fn key(number: u32) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// The operations of [`V1`]: time, keyspace, whether it continues a batch, key, details.
fn operations() -> Vec<(u64, u32, bool, Vec<u8>, Detail<'static>)> {
    let details = [
        Detail::Get(None),
        Detail::Get(Some(None)),
        Detail::Get(Some(Some(300))),
        Detail::Put(7),
        Detail::Delete,
        Detail::Merge(9),
        Detail::Scan { entries: 12, backwards: true },
        Detail::DeleteRange { end: b"z", end_bytes: 1 },
        Detail::Statement(4),
        Detail::Block { bytes: 4096, hit: Some(true) },
        Detail::Block { bytes: 4096, hit: None },
    ];
    let event = |(number, detail): (u64, Detail<'static>)| {
        let is_joined = matches!(detail, Detail::Delete);
        (number * 1000, number as u32 % 3, is_joined, key(number as u32), detail)
    };
    (0..).zip(details).map(event).collect()
}

fn write_v1(fs: &Arc<dyn Fs>, path: &Path) {
    let mut writer = Writer::create(fs, path, &header(None)).unwrap();
    for (time_ns, keyspace, joined, key, detail) in &operations() {
        let (key_bytes, detail) = (key.len() as u32, *detail);
        let (joined, keyspace, time_ns) = (*joined, *keyspace, *time_ns);
        writer.add(&Event { time_ns, lane: 0, joined, keyspace, key, key_bytes, detail }).unwrap();
    }
    writer.finish().unwrap();
}

/// Writes a trace whose only block says that one key in four was recorded, with all keys.
fn write_lowered(fs: &Arc<dyn Fs>, path: &Path, hash: SampleHash) {
    let mut block = vec![0; BLOCK_HEAD_BYTES];
    for number in 0..KEYS {
        let key = key(number);
        block.extend_from_slice(&[2, key.len() as u8]);
        block.extend_from_slice(&key);
    }
    let bytes = (block.len() - BLOCK_HEAD_BYTES) as u32;
    let (lane, sample, first_ns, last_ns, number) = (0, 4, 0, 0, 0);
    BlockHead { end: false, bytes, records: KEYS, lane, sample, first_ns, last_ns, number }
        .seal(&mut block, 9);
    let head = header(Some(Adaptive { hash, seed: SEED })).encode();
    let file = fs.open(path, OpenOptions::create()).unwrap();
    file.write_all_at(&[head, block].concat(), 0).unwrap();
}

fn write(fs: &Arc<dyn Fs>, dir: &Path) {
    write_v1(fs, &dir.join(V1));
    write_lowered(fs, &dir.join(V2), SampleHash::Xxh3);
    write_lowered(fs, &dir.join(V3), SampleHash::Rapid);
}

fn read(fs: &Arc<dyn Fs>, path: &Path) -> Vec<u8> {
    fs.open(path, OpenOptions::read()).unwrap().map().unwrap().to_vec()
}

/// Goal: this build reads traces of version 1. Method: the header and every operation of the
/// fixture, which has all kinds.
#[test]
fn traces_of_version_1_are_read() {
    let trace = Trace::open(&StdFs::new(), &fixtures().join(V1)).unwrap();
    assert_eq!((trace.header(), trace.ending()), (&header(None), Ending::Complete { dropped: 0 }));
    let mut events = trace.events();
    for (time_ns, keyspace, joined, key, detail) in &operations() {
        let event = events.next().unwrap().unwrap();
        assert_eq!((event.time_ns, event.keyspace, event.joined), (*time_ns, *keyspace, *joined));
        assert_eq!((event.key, event.detail), (&key[..], *detail));
    }
    assert!(events.next().is_none());
}

/// Goal: this build reads traces of versions 2 and 3, and samples the keys of each by its own hash
/// function. Method: the keys of the fixtures; those in the sample are computed here.
#[test]
fn traces_of_versions_2_and_3_are_read() {
    let hash = KeyHash::new(SEED);
    let hash_of = |name: &str, key: &[u8]| match name {
        V2 => xxh3_64_seeded(key, SEED),
        _ => hash.of(key),
    };
    for name in [V2, V3] {
        let trace = Trace::open(&StdFs::new(), &fixtures().join(name)).unwrap();
        let found: Vec<Vec<u8>> = trace.events().map(|event| event.unwrap().key.to_vec()).collect();
        let expected: Vec<Vec<u8>> =
            (0..KEYS).map(key).filter(|key| hash_of(name, key) <= u64::MAX / 4).collect();
        assert!(!expected.is_empty() && found == expected, "{name}: {found:?}");
        assert_eq!(trace.sample(), 4, "{name}");
    }
}

/// Goal: this build writes the versions of the fixtures, so that a change of the format is noticed.
/// Method: the same operations, byte for byte.
#[test]
fn traces_are_written_as_the_fixtures_are() {
    let (fs, std): (Arc<dyn Fs>, Arc<dyn Fs>) = (Arc::new(MemFs::new()), Arc::new(StdFs::new()));
    write(&fs, Path::new(""));
    for name in [V1, V2, V3] {
        assert!(read(&fs, Path::new(name)) == read(&std, &fixtures().join(name)), "{name} differs");
    }
}

/// Goal: other versions are refused with an error that names the found and the supported versions.
/// Method: the version in a fixture replaced.
#[test]
fn other_versions_are_refused() {
    let bytes = read(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), &fixtures().join(V3));
    for version in [0u32, 4, u32::MAX] {
        let fs = MemFs::new();
        let mut changed = bytes.clone();
        changed[8..12].copy_from_slice(&version.to_le_bytes());
        fs.open(Path::new(V3), OpenOptions::create()).unwrap().write_all_at(&changed, 0).unwrap();
        match Trace::open(&fs, Path::new(V3)).map(|trace| trace.records()) {
            Err(Error::Unsupported { what, .. }) => {
                assert!(what.contains(&format!("version {version}, expected 1 to 3")), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Writes the fixtures of the current versions into the folder that `OUT` names: see
/// `tests/fixtures/README.md`.
#[test]
#[ignore = "writes fixtures"]
fn write_fixtures() {
    let dir = PathBuf::from(std::env::var_os("OUT").unwrap());
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    fs.create_dir_all(&dir).unwrap();
    write(&fs, &dir);
}
