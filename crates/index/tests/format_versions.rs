//! Files of every version of the index file and its pages, as fixtures.
//!
//! `tests/fixtures/README.md` says how each file was made. A version is raised only together with a
//! reader for the last one and a fixture.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test program")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_index::{BuildOptions, Builder, Cell, Error, Index, Kind, Leaf, Row, Value};
use cairn_vfs::{Fs, MemFs, OpenOptions, StdFs};

/// Integers in every encoding, strings of both modes, NULLs.
const INDEX: &str = "index-v1";
const PAGE: usize = 1024;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn std_fs() -> Arc<dyn Fs> {
    Arc::new(StdFs::new())
}

/// The rows in the order of the index: the key column ascends, with runs of equal keys.
fn rows() -> Vec<Row> {
    (0..700i64)
        .map(|n| {
            let scattered = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64;
            let cells = vec![
                Cell::Integer(n / 5),
                Cell::Integer(scattered >> 40),
                if n % 11 == 3 {
                    Cell::Null
                } else {
                    Cell::Integer([i64::MIN, -1, i64::MAX][n as usize % 3])
                },
                Cell::Bytes(format!("shared prefix {}", "x".repeat(n as usize % 7)).into_bytes()),
                if n % 13 == 5 { Cell::Null } else { Cell::Bytes(format!("{:02}", n % 60).into_bytes()) },
            ];
            Row { id: 1000 + n as u64 * 3, cells }
        })
        .collect()
}

fn write(fs: &Arc<dyn Fs>, path: &Path) {
    let columns = vec![Kind::Integers, Kind::Integers, Kind::Integers, Kind::Bytes, Kind::Bytes];
    let options = BuildOptions { page_bytes: PAGE, ..BuildOptions::new(columns, 1) };
    let mut builder = Builder::create(fs, path, options).unwrap();
    for row in rows().iter().rev() {
        let values: Vec<Value<'_>> = row.cells.iter().map(Cell::value).collect();
        builder.add(row.id, &values).unwrap();
    }
    builder.finish().unwrap();
}

fn read(fs: &Arc<dyn Fs>, path: &Path) -> Vec<u8> {
    fs.open(path, OpenOptions::read()).unwrap().map().unwrap().to_vec()
}

/// Goal: this build reads index files and pages of version 1. Method: every row of the fixture, in
/// both directions, a range, and the verification.
#[test]
fn indexes_of_version_1_are_read() {
    let index = Index::open(&StdFs::new(), &fixtures().join(INDEX)).unwrap();
    let expected = rows();
    assert_eq!(index.rows(), expected.len() as u64);
    assert!(index.pages() > 1);
    let all = index.range(..).unwrap();
    let found: Vec<Row> = all.iter().map(|row| row.unwrap()).collect();
    assert_eq!(found, expected);
    let mut back: Vec<Row> = all.iter().rev().map(|row| row.unwrap()).collect();
    back.reverse();
    assert_eq!(back, expected);
    let (low, high) = ([Cell::Integer(30)], [Cell::Integer(33)]);
    let some = index.range(&low[..]..&high[..]).unwrap();
    assert_eq!(some.count().unwrap(), 15);
    assert_eq!(some.sum(0).unwrap(), 5 * (30 + 31 + 32));
    index.verify().unwrap();
}

/// Goal: this build writes the version of the fixture, so that a change of the format is noticed.
/// Method: the same rows, byte for byte.
#[test]
fn indexes_are_written_as_the_fixture_is() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    write(&fs, Path::new(INDEX));
    assert!(read(&fs, Path::new(INDEX)) == read(&std_fs(), &fixtures().join(INDEX)));
}

/// Goal: other versions are refused with an error that names the found and the supported version.
/// Method: the version in the fixture replaced, in the file and in a page.
#[test]
fn other_versions_are_refused() {
    let bytes = read(&std_fs(), &fixtures().join(INDEX));
    for version in [0u32, 2, u32::MAX] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let mut changed = bytes.clone();
        changed[8..12].copy_from_slice(&version.to_le_bytes());
        let file = fs.open(Path::new(INDEX), OpenOptions::create()).unwrap();
        file.write_all_at(&changed, 0).unwrap();
        match Index::open(&*fs, Path::new(INDEX)).err() {
            Some(Error::Unsupported { what, .. }) => {
                assert_eq!(what, format!("version {version}; this build reads version 1"));
            }
            other => panic!("{other:?}"),
        }
        let mut page = bytes[PAGE..2 * PAGE - 8].to_vec();
        assert!(Leaf::open(&page).is_ok());
        page[0] = version as u8;
        let damage = Leaf::open(&page).map(|leaf| leaf.rows()).unwrap_err();
        assert_eq!((damage.offset, damage.what), (0, "version 1 of a page of rows"));
    }
}

/// Writes the fixture of the current version into the folder that `OUT` names: see
/// `tests/fixtures/README.md`.
#[test]
#[ignore = "writes a fixture"]
fn write_fixtures() {
    let dir = PathBuf::from(std::env::var_os("OUT").unwrap());
    std_fs().create_dir_all(&dir).unwrap();
    write(&std_fs(), &dir.join(INDEX));
}
