//! Pages compared with the rows that were packed.

use proptest::prelude::*;

use crate::fuzz::page as read_all;
use crate::{Kind, Leaf, Packer, Value};

#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Null,
    Integer(i64),
    Bytes(Vec<u8>),
}

fn cells(kind: Kind, rows: usize) -> BoxedStrategy<Vec<Cell>> {
    let cell = match kind {
        Kind::Integers => prop_oneof![
            8 => (0..50i64).prop_map(Cell::Integer),
            2 => any::<i64>().prop_map(Cell::Integer),
            1 => Just(Cell::Null)
        ]
        .boxed(),
        Kind::Bytes => prop_oneof![
            4 => "[ab]{0,4}".prop_map(|s| Cell::Bytes(format!("prefix-{s}").into_bytes())),
            2 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Cell::Bytes),
            1 => Just(Cell::Null)
        ]
        .boxed(),
    };
    prop::collection::vec(cell, rows).boxed()
}

fn rows() -> impl Strategy<Value = (Vec<Kind>, Vec<u64>, Vec<Vec<Cell>>, usize)> {
    let kind = prop_oneof![Just(Kind::Integers), Just(Kind::Bytes)];
    (prop::collection::vec(kind, 1..4), 0..1500usize, 400usize..4000).prop_flat_map(
        |(kinds, rows, capacity)| {
            let columns: Vec<_> = kinds.iter().map(|kind| cells(*kind, rows)).collect();
            let ids = prop_oneof![
                prop::collection::vec(
                    (0..100_000u64, 1..290u64).prop_map(|(block, offset)| block << 16 | offset),
                    rows
                ),
                Just((0..rows as u64).map(|i| (i / 226) << 16 | (i % 226 + 1)).collect::<Vec<_>>()),
            ];
            (Just(kinds), ids, columns, Just(capacity))
        },
    )
}

fn pages(kinds: &[Kind], ids: &[u64], columns: &[Vec<Cell>], capacity: usize) -> Vec<Vec<u8>> {
    let mut packer = Packer::new(kinds, capacity, 65_535, true).unwrap();
    let mut pages = Vec::new();
    let mut page = Vec::new();
    for (row, id) in ids.iter().enumerate() {
        let values = columns.iter().map(|column| match &column[row] {
            Cell::Null => Value::Null,
            Cell::Integer(integer) => Value::Integer(*integer as u64),
            Cell::Bytes(bytes) => Value::Bytes(bytes),
        });
        if packer.push(*id, values).unwrap() {
            while packer.cut(false, &mut page).unwrap() > 0 {
                pages.push(page.clone());
            }
        }
    }
    while packer.cut(true, &mut page).unwrap() > 0 {
        pages.push(page.clone());
    }
    pages
}

fn read(leaf: &Leaf<'_>, column: usize, row: usize) -> Cell {
    if leaf.is_null(column, row).unwrap() {
        return Cell::Null;
    }
    let integer = leaf.integer(column, row).unwrap();
    if leaf.kind(column).unwrap() == Kind::Integers {
        return Cell::Integer(integer as i64);
    }
    let mut string = Vec::new();
    leaf.string(column, integer, &mut string).unwrap();
    Cell::Bytes(string)
}

proptest! {
    #![proptest_config(crate::test_config::cases(120))]

    /// Goal: pages hold all rows, in order, within the page size. Method: random columns with NULLs
    /// and duplicates, row ids of shuffled and of regular heaps, pages of random size.
    #[test]
    fn rows_come_back((kinds, ids, columns, capacity) in rows()) {
        let mut row = 0;
        for page in pages(&kinds, &ids, &columns, capacity) {
            prop_assert!(page.len() <= capacity, "{} > {}", page.len(), capacity);
            let leaf = Leaf::open(&page).unwrap();
            leaf.verify().unwrap();
            let mut out = vec![0; leaf.rows()];
            leaf.ids(0, &mut out).unwrap();
            prop_assert_eq!(&out[..], &ids[row..row + leaf.rows()]);
            for at in 0..leaf.rows() {
                for (index, column) in columns.iter().enumerate() {
                    prop_assert_eq!(&read(&leaf, index, at), &column[row + at]);
                }
            }
            row += leaf.rows();
        }
        prop_assert_eq!(row, ids.len());
    }

    /// Goal: a damaged page leads to values or an error. Method: change bytes of sound pages, and
    /// read all of it.
    #[test]
    fn hostile((kinds, ids, columns, capacity) in rows(), changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..6)) {
        for mut page in pages(&kinds, &ids, &columns, capacity) {
            for (at, byte) in &changes {
                let at = at % page.len();
                page[at] = *byte;
            }
            read_all(&page);
        }
    }

    /// Goal: arbitrary bytes lead to values or an error. Method: random bytes with a valid version,
    /// all of it read.
    #[test]
    fn noise(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Some(first) = bytes.first_mut() { *first = 1; }
        read_all(&bytes);
    }
}

/// Goal: no page of the corpus makes the reader fail. Method: every file in the corpus of the fuzz
/// target. `CAIRN_WRITE_CORPUS=1` first writes sound pages of each shape there, after a change of
/// the format.
#[test]
#[allow(clippy::disallowed_methods, reason = "the corpus is files of the source tree")]
fn corpus() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/index_page");
    if std::env::var_os("CAIRN_WRITE_CORPUS").is_some() {
        type Shape = (&'static str, fn(i64) -> Cell);
        let shapes: [Shape; 5] = [
            ("line", Cell::Integer),
            ("runs", |i| Cell::Integer(i / 9)),
            ("packed", |i| Cell::Integer(i * 7919 % 1009)),
            ("chunked", |i| Cell::Integer(i * 100 + i * 7919 % 13)),
            ("strings", |i| {
                if i % 5 == 0 { Cell::Null } else { Cell::Bytes(format!("key {}", i / 3).into_bytes()) }
            }),
        ];
        for (name, cell) in shapes {
            let kind = if name == "strings" { Kind::Bytes } else { Kind::Integers };
            let ids: Vec<u64> = (0..400).map(|i| (i * 7 % 50) << 16 | (i % 90 + 1)).collect();
            let page = pages(&[kind], &ids, &[(0..400).map(cell).collect()], 4000).remove(0);
            std::fs::write(folder.join(name), page).unwrap();
        }
    }
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 5, "{}", folder.display());
    files.iter().for_each(|path| read_all(&std::fs::read(path).unwrap()));
}

/// Goal: the sizes that the format is designed for. Method: 200,000 sequential keys over a heap in
/// order and shuffled; bytes per row.
#[test]
fn sizes() {
    let bytes = |ids: &dyn Fn(u64) -> u64| {
        let columns = [(0..200_000).map(Cell::Integer).collect::<Vec<_>>()];
        let ids: Vec<u64> = (0..200_000).map(ids).map(|i| (i / 226) << 16 | (i % 226 + 1)).collect();
        let pages = pages(&[Kind::Integers], &ids, &columns, 8100);
        (pages.len(), pages.iter().map(Vec::len).sum::<usize>() as f64 / 200_000.0)
    };
    let (count, per_row) = bytes(&|i| i);
    assert!(count <= 4 && per_row < 0.002, "{count} {per_row}");
    let (_, per_row) = bytes(&|i| i * 7919 % 200_003);
    assert!(per_row < 2.3, "{per_row}");
}

/// Goal: a row that does not fit a page is refused with its size. Method: one long string.
#[test]
fn row_too_large() {
    let mut packer = Packer::new(&[Kind::Bytes], 1000, 100, false).unwrap();
    packer.push(1, [Value::Bytes(&[7; 2000])].into_iter()).unwrap();
    let error = packer.cut(true, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, crate::PackError::RowTooLarge { bytes: 2000.., capacity: 1000 }), "{error}");
}

/// Goal: a refused row has no effect. Method: rows with too few values, too many, or one of another
/// type, before and after valid ones, with strings that occur in no other row or in a later one;
/// the pages equal those of the valid rows alone.
#[test]
fn refused_rows() {
    let (integer, bytes) = (Value::Integer(9), Value::Bytes(b"of no other row"));
    let later = Value::Bytes(b"key 90");
    let refused: [&[Value<'_>]; 9] = [
        &[],
        &[integer],
        &[integer, bytes],
        &[Value::Null, Value::Null],
        &[integer, bytes, bytes, bytes],
        &[bytes, bytes, bytes],
        &[integer, integer, bytes],
        &[integer, bytes, integer],
        &[integer, later],
    ];
    let packed = |refused: &[&[Value<'_>]]| {
        let mut packer = Packer::new(&[Kind::Integers, Kind::Bytes, Kind::Bytes], 500, 65_535, true).unwrap();
        let refuse = |packer: &mut Packer| {
            for values in refused {
                assert_eq!(packer.push(1, values.iter().copied()), Err(crate::PackError::WrongColumns));
            }
        };
        let (mut pages, mut page) = (Vec::new(), Vec::new());
        refuse(&mut packer);
        for row in 0..2000 {
            let key = format!("key {}", row / 3 % 100);
            let other = if row % 5 == 0 { Value::Null } else { Value::Bytes(b"same") };
            let values = [Value::Integer(row % 7), Value::Bytes(key.as_bytes()), other];
            let is_due = packer.push(row << 16 | 1, values.into_iter()).unwrap();
            refuse(&mut packer);
            while is_due && packer.cut(false, &mut page).unwrap() > 0 {
                pages.push(page.clone());
            }
        }
        assert!(packer.waiting() > 0);
        while packer.cut(true, &mut page).unwrap() > 0 {
            pages.push(page.clone());
        }
        pages
    };
    let pages = packed(&[]);
    assert!(pages.len() > 3, "{}", pages.len());
    assert!(packed(&refused) == pages);
}

/// Goal: a NULL satisfies no condition and is in no sum, whatever the values of its neighbours.
/// Method: a page with NULLs in every third row and in a range of rows, parts of its rows, and
/// bounds that include all values, some, and none, compared with the rows.
#[test]
fn conditions_leave_nulls_out() {
    let cell = |row: i64| match row % 3 == 1 || (200..280).contains(&row) {
        true => Cell::Null,
        false => Cell::Integer(row / 7 - 20),
    };
    let cells: Vec<Cell> = (0..400).map(cell).collect();
    let ids: Vec<u64> = (0..400).map(|row| (row / 90) << 16 | (row % 90 + 1)).collect();
    let page = pages(&[Kind::Integers], &ids, std::slice::from_ref(&cells), 4000).remove(0);
    let leaf = Leaf::open(&page).unwrap();
    assert_eq!(leaf.rows(), cells.len());
    let ones = |count: usize| vec![u64::MAX; count.div_ceil(64)];
    for (from, to) in [(0, 400), (1, 399), (63, 129), (190, 300), (200, 280), (7, 7)] {
        let part = &cells[from..to];
        let is_kept = |mask: &[u64], row: usize| mask[row / 64] >> (row % 64) & 1 == 1;
        for (least, most) in [(i64::MIN, i64::MAX), (-20, 37), (-3, 9), (0, 0), (38, 90)] {
            let mut mask = ones(part.len());
            leaf.filter(0, from, to, least, most, &mut mask).unwrap();
            let mut values = Vec::new();
            for (row, cell) in part.iter().enumerate() {
                let value = match cell {
                    Cell::Integer(value) if (least..=most).contains(value) => Some(*value),
                    _ => None,
                };
                assert_eq!(
                    is_kept(&mask, row),
                    value.is_some(),
                    "row {row} of {from}..{to}, {least}..={most}"
                );
                values.extend(value);
            }
            let sum: i128 = values.iter().map(|value| i128::from(*value)).sum();
            assert_eq!(leaf.sum(0, from, to, Some(&mask)).unwrap(), sum, "{from}..{to}, {least}..={most}");
        }
        for keep_values in [false, true] {
            let mut mask = ones(part.len());
            leaf.filter_nulls(0, from, to, keep_values, &mut mask).unwrap();
            for (row, cell) in part.iter().enumerate() {
                let is_value = *cell != Cell::Null;
                assert_eq!(is_kept(&mask, row), is_value == keep_values, "row {row} of {from}..{to}");
            }
        }
    }
}

/// Goal: a page may have no rows. Method: a page with both types of columns.
#[test]
fn empty_page() {
    let packer = Packer::new(&[Kind::Bytes, Kind::Integers], 1000, 100, true).unwrap();
    let mut page = Vec::new();
    packer.empty_page(&mut page);
    let leaf = Leaf::open(&page).unwrap();
    leaf.verify().unwrap();
    assert_eq!((leaf.rows(), leaf.columns()), (0, 2));
}
