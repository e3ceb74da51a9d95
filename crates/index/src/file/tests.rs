//! Index files compared with a sorted `Vec`.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{ErrorKind, Fs, MemFs, OpenOptions};
use proptest::prelude::*;

use super::*;
use crate::Kind;

fn build(fs: &Arc<dyn Fs>, rows: &[Row], kinds: &[Kind], keys: usize, memory_bytes: usize) -> Index {
    let options = BuildOptions { page_bytes: 512, memory_bytes, ..BuildOptions::new(kinds.to_vec(), keys) };
    let mut builder = Builder::create(fs, Path::new("i"), options).unwrap();
    builder
        .extend(rows.iter().map(|row| (row.id, row.cells.iter().map(Cell::value).collect::<Vec<_>>())))
        .unwrap();
    builder.finish().unwrap();
    Index::open(&**fs, Path::new("i")).unwrap()
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let integer = prop_oneof![9 => (-20..20i64).prop_map(Cell::Integer), 1 => Just(Cell::Null), 1 => any::<i64>().prop_map(Cell::Integer)];
    let bytes =
        prop_oneof![9 => "[ab]{0,5}".prop_map(|s| Cell::Bytes(s.into_bytes())), 1 => Just(Cell::Null)];
    prop::collection::vec((integer.clone(), bytes, integer), 0..500).prop_map(|rows| {
        let row = |(id, (a, b, c)): (usize, _)| Row { id: id as u64 * 7 % 512, cells: vec![a, b, c] };
        rows.into_iter().enumerate().map(row).collect()
    })
}

const KINDS: [Kind; 3] = [Kind::Integers, Kind::Bytes, Kind::Integers];

fn sorted(rows: &[Row]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| a.cells[..2].cmp(&b.cells[..2]).then(a.id.cmp(&b.id)));
    rows
}

proptest! {
    #![proptest_config(crate::test_config::cases(100))]

    /// Goal: ranges in both directions, and everything computed from them. Method: random rows in
    /// memory and spilled, random boundaries of one and two columns, compared with the sorted rows.
    #[test]
    fn against_vec(rows in rows(), spill: bool, low in -22..22i64, span in 0..30i64, text in "[ab]{0,3}", kind in 0..5) {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let index = build(&fs, &rows, &KINDS, 2, if spill { 4000 } else { 1 << 20 });
        prop_assert!(!fs.exists(Path::new("i.runs")).unwrap());
        index.verify().unwrap();
        let a = [Cell::Integer(low)];
        let b = [Cell::Integer(low), Cell::Bytes(text.clone().into_bytes())];
        let c = [Cell::Integer(low + span)];
        let bounds: (Bound<&[Cell]>, Bound<&[Cell]>) = match kind {
            0 => (Bound::Unbounded, Bound::Unbounded),
            1 => (Bound::Included(&a), Bound::Excluded(&c)),
            2 => (Bound::Excluded(&b), Bound::Included(&c)),
            3 => (Bound::Included(&b), Bound::Included(&b)),
            _ => (Bound::Excluded(&c), Bound::Unbounded),
        };
        let after = |row: &Row| match bounds.0 {
            Bound::Unbounded => true,
            Bound::Included(key) => compare_prefix(&row.cells, key).is_ge(),
            Bound::Excluded(key) => compare_prefix(&row.cells, key).is_gt(),
        };
        let before = |row: &Row| match bounds.1 {
            Bound::Unbounded => true,
            Bound::Included(key) => compare_prefix(&row.cells, key).is_le(),
            Bound::Excluded(key) => compare_prefix(&row.cells, key).is_lt(),
        };
        let want: Vec<Row> = sorted(&rows).into_iter().filter(|row| after(row) && before(row)).collect();
        let got: Vec<Row> = index.range(bounds).unwrap().iter().map(|row| row.unwrap()).collect();
        prop_assert_eq!(&got, &want);
        let mut back: Vec<Row> = index.range(bounds).unwrap().iter().rev().map(|row| row.unwrap()).collect();
        back.reverse();
        prop_assert_eq!(&back, &want);
        let range = index.range(bounds).unwrap();
        prop_assert_eq!(range.count().unwrap(), want.len() as u64);
        let values: Vec<i64> = want.iter().filter_map(|row| match row.cells[2] { Cell::Integer(i) => Some(i), _ => None }).collect();
        prop_assert_eq!(range.sum(2).unwrap(), values.iter().map(|v| i128::from(*v)).sum::<i128>());
        prop_assert_eq!((range.min(2).unwrap(), range.max(2).unwrap()), (values.iter().min().copied(), values.iter().max().copied()));
        let mut groups = BTreeMap::new();
        want.iter().for_each(|row| *groups.entry(row.cells[0].clone()).or_insert(0) += 1);
        let groups: Vec<Group> = groups.into_iter().map(|(key, count)| Group { key, count }).collect();
        prop_assert_eq!(range.groups().unwrap(), groups);
    }

    /// Goal: a damaged file leads to values or an error. Method: change bytes of a sound file,
    /// recompute its checksums, and read all of it.
    #[test]
    fn hostile(rows in rows(), changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..6)) {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        build(&fs, &rows, &KINDS, 2, 1 << 20);
        let mut bytes = vec![1];
        bytes.extend_from_slice(&fs.open(Path::new("i"), OpenOptions::read()).unwrap().map().unwrap());
        for (at, to) in changes {
            let at = at % bytes.len();
            bytes[at] = to;
        }
        crate::fuzz::file(&bytes);
    }

    /// Goal: every flipped bit is detected. Method: flip one bit of a sound file; opening or
    /// verifying it must fail.
    #[test]
    fn every_flip_is_found(rows in rows(), at: usize, bit in 0..8u32) {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let index = build(&fs, &rows, &KINDS, 2, 1 << 20);
        let bytes = index.bytes() as usize;
        let file = fs.open(Path::new("i"), OpenOptions::write()).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, (at % bytes) as u64).unwrap();
        byte[0] ^= 1 << bit;
        file.write_all_at(&byte, (at % bytes) as u64).unwrap();
        let found = Index::open(&*fs, Path::new("i")).and_then(|index| index.verify());
        let kind = found.as_ref().map_err(|error| error.kind());
        prop_assert!(matches!(kind, Err(ErrorKind::Corruption | ErrorKind::Unsupported)), "byte {}: {:?}", at % bytes, found);
    }
}

/// Goal: all small sets of keys are handled correctly, not just random ones. Method: all
/// combinations of three keys out of all strings of up to two characters over two letters, each
/// string looked up.
#[test]
fn exhaustive() {
    let words: Vec<Vec<u8>> =
        ["", "a", "b", "aa", "ab", "ba", "bb"].iter().map(|w| w.as_bytes().to_vec()).collect();
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    for picks in 0..7usize.pow(3) {
        let rows: Vec<Row> = (0..3)
            .map(|place| Row {
                id: place,
                cells: vec![Cell::Bytes(words[picks / 7usize.pow(place as u32) % 7].clone())],
            })
            .collect();
        let index = build(&fs, &rows, &[Kind::Bytes], 1, 1 << 20);
        for word in &words {
            let key = [Cell::Bytes(word.clone())];
            let want = rows.iter().filter(|row| row.cells == key).count() as u64;
            let range = index.range((Bound::Included(&key[..]), Bound::Included(&key[..]))).unwrap();
            assert_eq!(range.count().unwrap(), want, "{rows:?} {word:?}");
        }
    }
}

/// Creates a file of several pages. Returns its file system and its bytes.
fn several_pages() -> (Arc<dyn Fs>, Vec<u8>) {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let row = |id: u64| Row {
        id,
        cells: vec![
            Cell::Integer((id * 37 % 101) as i64),
            Cell::Bytes(format!("key {id}").into_bytes()),
            Cell::Null,
        ],
    };
    let index = build(&fs, &(0..300).map(row).collect::<Vec<_>>(), &KINDS, 2, 1 << 20);
    assert!(index.pages() > 4, "{}", index.pages());
    let bytes = fs.open(Path::new("i"), OpenOptions::read()).unwrap().map().unwrap().to_vec();
    (fs, bytes)
}

/// Replaces the file with these bytes and opens it.
fn opened(fs: &Arc<dyn Fs>, bytes: &[u8]) -> crate::Result<Index> {
    let file = fs.open(Path::new("i"), OpenOptions::create()).unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    Index::open(&**fs, Path::new("i"))
}

/// Goal: a misplaced page is reported as damage and never gives an answer. Method: two pages are
/// swapped, or one is copied over another. Reading fails at the first changed page, and so do sums
/// over all rows.
#[test]
fn pages_in_the_wrong_place() {
    let (fs, sound) = several_pages();
    for (a, b, is_copy) in [(1, 2, false), (1, 4, false), (3, 2, true)] {
        let mut bytes = sound.clone();
        let page = |number: usize| 512 * number..512 * (number + 1);
        bytes[page(b)].copy_from_slice(&sound[page(a)]);
        if !is_copy {
            bytes[page(a)].copy_from_slice(&sound[page(b)]);
        }
        let index = opened(&fs, &bytes).unwrap();
        let first = if is_copy { b } else { a.min(b) };
        let mut rows = index.range(..).unwrap().iter();
        let error = rows.find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains(&(512 * first).to_string()), "{a} {b}: {error}");
        assert!(index.range(..).unwrap().sum(0).is_err(), "{a} {b}");
        assert!(index.verify().is_err(), "{a} {b}");
    }
}

/// Goal: a changed directory does not lead to wrong pages. Method: flip each bit of it; the file
/// does not open.
#[test]
fn directories_are_checked_on_opening() {
    let (fs, mut bytes) = several_pages();
    let mut at = [0; 8];
    at.copy_from_slice(&bytes[112..120]);
    for at in u64::from_le_bytes(at) as usize..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            let error = opened(&fs, &bytes).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "byte {at}, bit {bit}: {error}");
            bytes[at] ^= 1 << bit;
        }
    }
    assert!(opened(&fs, &bytes).is_ok());
}

/// Goal: the length of a file must match its header. Method: a file with extra bytes at its end,
/// and one without its last bytes, do not open.
#[test]
fn files_of_another_length() {
    let (fs, sound) = several_pages();
    for more in [1, 7, 512, 513] {
        let longer: Vec<u8> = sound.iter().copied().chain(std::iter::repeat_n(0, more)).collect();
        for bytes in [&longer[..], &sound[..sound.len() - more]] {
            let error = opened(&fs, bytes).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{} bytes: {error}", bytes.len());
        }
    }
}

/// Goal: runs of any length are merged in order. Method: runs that take several reads, with rows
/// across the boundaries of reads, compared with the sorted rows.
#[test]
fn runs_of_many_reads() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let row = |id: u64| {
        let text = format!("{:0>width$}", id * 7919 % 4001, width = 5 + id as usize % 90);
        Row {
            id,
            cells: vec![
                Cell::Integer((id * 37 % 1009) as i64),
                Cell::Bytes(text.into_bytes()),
                Cell::Integer(id as i64),
            ],
        }
    };
    let rows: Vec<Row> = (0..4000).map(row).collect();
    let index = build(&fs, &rows, &KINDS, 2, 400_000);
    index.verify().unwrap();
    let found: Vec<Row> = index.range(..).unwrap().iter().map(|row| row.unwrap()).collect();
    assert!(found == sorted(&rows), "{} rows", found.len());
}

/// Goal: errors name the invalid argument. Method: one of each.
#[test]
fn wrong_arguments() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let create = |options| Builder::create(&fs, Path::new("i"), options).map(|_| ()).unwrap_err().to_string();
    assert!(create(BuildOptions::new(vec![], 0)).contains("0 columns"));
    assert!(
        create(BuildOptions { page_bytes: 1000, ..BuildOptions::new(vec![Kind::Bytes], 1) }).contains("1000")
    );
    let index = build(&fs, &[], &KINDS, 2, 1000);
    assert_eq!(index.range(..).unwrap().count().unwrap(), 0);
    assert!(index.range(..).unwrap().sum(1).unwrap_err().to_string().contains("column 1"));
    let long = [Cell::Null, Cell::Null, Cell::Null];
    assert!(index.range(&long[..]..).map(|_| ()).unwrap_err().to_string().contains("3 columns"));
}

/// Goal: no file of the corpus makes the reader fail. Method: every file in the corpus of the fuzz
/// target. `CAIRN_WRITE_CORPUS=1` first writes sound files there, after a change of the format.
#[test]
#[allow(clippy::disallowed_methods, reason = "the corpus is files of the source tree")]
fn corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/index_file");
    if std::env::var_os("CAIRN_WRITE_CORPUS").is_some() {
        for (name, count) in [("empty", 0), ("few", 7), ("pages", 90)] {
            let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
            let text = |n: i64| {
                if n % 5 == 0 { Cell::Null } else { Cell::Bytes(format!("key {}", n / 3).into_bytes()) }
            };
            let row = |n: i64| Row {
                cells: vec![Cell::Integer(n * 37 % 101), text(n), Cell::Integer(n)],
                id: n as u64,
            };
            build(&fs, &(0..count).map(row).collect::<Vec<_>>(), &KINDS, 2, 1 << 20);
            let mut bytes = vec![1];
            bytes.extend_from_slice(&fs.open(Path::new("i"), OpenOptions::read()).unwrap().map().unwrap());
            std::fs::write(folder.join(name), bytes).unwrap();
        }
    }
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 3, "{}", folder.display());
    files.iter().for_each(|path| crate::fuzz::file(&std::fs::read(path).unwrap()));
}
