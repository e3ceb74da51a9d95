//! Block scans, compared with row scans.

use std::cell::Cell;

use cairn_table::row::Interval;
use cairn_table::{Block, ColumnBuf, ColumnValues, View};
use cairn_vfs::Rng;

use super::*;

const TYPES: [Type; 14] = [
    Type::Int,
    Type::Text,
    Type::BigInt,
    Type::Boolean,
    Type::SmallInt,
    Type::Real,
    Type::Double,
    Type::Decimal,
    Type::Blob,
    Type::Date,
    Type::Time,
    Type::Timestamp,
    Type::Interval,
    Type::Uuid,
];

/// Generates a row of all types: some values are NULL, texts vary in length, one in a hundred is
/// too long for a page, and one in a thousand is longer than 64 KiB.
fn row(id: i32, long: u64, rng: &mut SeededRng, texts: &mut (String, Vec<u8>)) -> Vec<Value<'static>> {
    let length = match rng.below(1_000) + long {
        0 => 70_000,
        1..10 => 5_000,
        _ => rng.below(40),
    };
    texts.0 = (0..length).map(|_| char::from(b'a' + rng.below(3) as u8)).collect();
    texts.1 = (0..rng.below(9)).map(|_| rng.below(256) as u8).collect();
    let number = rng.next_u64() as i64 >> rng.below(64);
    let values = [
        Value::Int(id),
        Value::Null,
        Value::BigInt(number),
        Value::Boolean(number % 2 == 0),
        Value::SmallInt(number as i16),
        Value::Real(number as f32),
        Value::Double(number as f64 / 8.0),
        Value::Decimal(i128::from(number) << (number & 31)),
        Value::Null,
        Value::Date(number as i32),
        Value::Time(number),
        Value::Timestamp(number % 50),
        Value::Interval(Interval { months: number as i32, days: 3, micros: number }),
        Value::Uuid([number as u8; 16]),
    ];
    let is_null = |at: usize, rng: &mut SeededRng| at > 0 && rng.below(10) == 0;
    let values = values.into_iter().enumerate();
    values.map(|(at, value)| if is_null(at, rng) { Value::Null } else { value }).collect()
}

fn shown(column: &ColumnBuf, at: usize, kind: Type) -> String {
    if !column.validity().is_valid(at) {
        return Value::Null.to_string();
    }
    let value = match (column.values(), kind) {
        (ColumnValues::Boolean(values), _) => Value::Boolean(values[at]),
        (ColumnValues::SmallInt(values), _) => Value::SmallInt(values[at]),
        (ColumnValues::Int(values), Type::Date) => Value::Date(values[at]),
        (ColumnValues::Int(values), _) => Value::Int(values[at]),
        (ColumnValues::BigInt(values), Type::Time) => Value::Time(values[at]),
        (ColumnValues::BigInt(values), Type::Timestamp) => Value::Timestamp(values[at]),
        (ColumnValues::BigInt(values), _) => Value::BigInt(values[at]),
        (ColumnValues::Real(values), _) => Value::Real(values[at]),
        (ColumnValues::Double(values), _) => Value::Double(values[at]),
        (ColumnValues::Decimal(values), _) => Value::Decimal(values[at]),
        (ColumnValues::Interval(values), _) => Value::Interval(values[at]),
        (ColumnValues::Uuid(values), _) => Value::Uuid(values[at]),
        (ColumnValues::Bytes(values), Type::Text) => {
            Value::Text(std::str::from_utf8(values.get(at).unwrap()).unwrap())
        }
        (ColumnValues::Bytes(values), _) => Value::Blob(values.get(at).unwrap()),
    };
    value.to_string()
}

type Range<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

thread_local! {
    /// Number of block columns that were compared with bounds without decoding.
    static COMPARED: Cell<u64> = const { Cell::new(0) };
    static TEXTS: Cell<u64> = const { Cell::new(0) };
}

/// Returns a value as a number in the unit of its column.
fn whole(column: &ColumnBuf, at: usize) -> Option<i128> {
    if !column.validity().is_valid(at) {
        return None;
    }
    match column.values() {
        ColumnValues::SmallInt(values) => Some(values[at].into()),
        ColumnValues::Int(values) => Some(values[at].into()),
        ColumnValues::BigInt(values) => Some(values[at].into()),
        ColumnValues::Decimal(values) => Some(values[at]),
        _ => None,
    }
}

/// Whether a row is selected.
type Holds<'h> = &'h dyn Fn(usize) -> bool;

/// Whether a text is wanted.
type HoldsText<'h> = &'h dyn Fn(&[u8]) -> bool;

/// Compares a block's selections with its columns: few rows and most rows, appended to existing
/// values; rows between two values of the column; and rows with certain texts.
fn agree_of_chosen(block: &Block<'_>, column: usize, kind: Type, all: &ColumnBuf) {
    let rows = block.rows();
    let bits = |holds: &dyn Fn(usize) -> bool| {
        let mut words = vec![0u64; rows.div_ceil(64)];
        (0..rows).filter(|at| holds(*at)).for_each(|at| words[at / 64] |= 1 << (at % 64));
        words
    };
    let mut some = ColumnBuf::new(kind);
    let mut expected: Vec<String> = Vec::new();
    let choices: [Holds<'_>; 5] =
        [&|at| at % 9 == 1, &|at| at % 3 == 1, &|at| at % 5 != 2, &|at| at % 40 > 3, &|_| true];
    for holds in choices {
        block.column_of(column, &bits(holds), &mut some).unwrap();
        expected.extend((0..rows).filter(|at| holds(*at)).map(|at| shown(all, at, kind)));
        let found: Vec<String> = (0..some.len()).map(|at| shown(&some, at, kind)).collect();
        assert_eq!(found, expected, "{column}");
    }
    if let ColumnValues::Bytes(values) = all.values() {
        let first = values.get(0).unwrap_or_default().to_vec();
        let tests: [HoldsText<'_>; 4] =
            [&|value| value == first, &|value| value.len() % 2 == 0, &|_| true, &|_| false];
        for holds in tests {
            let mut words = bits(&|at| at % 7 != 2);
            if block.keep_texts(column, holds, &mut words).unwrap() {
                TEXTS.set(TEXTS.get() + 1);
                let is_kept = |at: usize| all.validity().is_valid(at) && values.get(at).is_some_and(holds);
                assert_eq!(words, bits(&|at| at % 7 != 2 && is_kept(at)), "{column}");
            }
        }
    }
    let (Some(a), Some(b)) = (whole(all, 0), whole(all, rows / 2)) else { return };
    for (low, high) in
        [(a.min(b), a.max(b)), (a, a), (i128::MIN, b), (b, i128::MAX), (a.max(b), a.min(b) - 1)]
    {
        let mut words = bits(&|at| at % 7 != 2);
        if block.keep_within(column, (low, high), &mut words).unwrap() {
            COMPARED.set(COMPARED.get() + 1);
            let holds = |at: usize| whole(all, at).is_some_and(|value| (low..=high).contains(&value));
            assert_eq!(words, bits(&|at| at % 7 != 2 && holds(at)), "{column} from {low} to {high}");
        }
    }
}

/// Compares both ways of reading a range. Returns the number of rows.
pub fn agree(view: &View, table: &Arc<Table>, index: Option<usize>, range: Range<'_>) -> usize {
    let count = table.def().columns.len();
    let columns: Vec<usize> = (0..=count).collect();
    let kinds: Vec<Type> = table.def().columns.iter().map(|column| column.kind.kind).collect();
    let kind = |column: usize| kinds.get(column).copied().unwrap_or(Type::Blob);
    let mut found = 0;
    for direction in [Direction::Forward, Direction::Backward] {
        let mut rows = view.scan(table, index, range, direction).unwrap();
        let mut blocks = view.blocks(table, index, range, direction, &columns).unwrap();
        found = 0;
        while let Some(block) = blocks.next().unwrap() {
            let mut buffers: Vec<ColumnBuf> = columns.iter().map(|at| ColumnBuf::new(kind(*at))).collect();
            for (column, buffer) in columns.iter().zip(&mut buffers) {
                block.column(*column, buffer).unwrap();
                assert_eq!(buffer.len(), block.rows());
                agree_of_chosen(&block, *column, kind(*column), buffer);
            }
            assert!(block.rows() > 0);
            for at in 0..block.rows() {
                let row = rows.next().unwrap().unwrap();
                for (column, buffer) in buffers.iter().enumerate() {
                    let value = if column < count { row.get(column) } else { Value::Blob(row.key()) };
                    assert_eq!(shown(buffer, at, kind(column)), value.to_string(), "{column} of {at}");
                }
            }
            found += block.rows();
        }
        assert!(rows.next().unwrap().is_none());
        // A scan of some columns returns the same values for these.
        let some = [0, 2, 7, 9, 11];
        let mut whole = view.scan(table, index, range, direction).unwrap();
        let mut part = view.scan_columns(table, index, range, direction, &some).unwrap();
        while let Some(row) = part.next().unwrap() {
            let other = whole.next().unwrap().unwrap();
            assert_eq!(row.key(), other.key());
            for column in some.into_iter().filter(|column| *column < count) {
                assert_eq!(row.get(column).to_string(), other.get(column).to_string(), "{column}");
            }
        }
        assert!(whole.next().unwrap().is_none());
    }
    assert_eq!(view.count(table, index, range).unwrap(), found as u64);
    found
}

/// Compares everything, and some ranges, of the table and of its indexes.
fn agree_all(view: &View, table: &Arc<Table>, rng: &mut SeededRng) -> usize {
    let everything = (Bound::Unbounded, Bound::Unbounded);
    let rows = agree(view, table, None, everything);
    for index in 0..table.def().indexes.len() {
        assert_eq!(agree(view, table, Some(index), everything), rows);
    }
    for _ in 0..2 {
        let (low, high) = (key(table, rng.below(2_500) as i32), key(table, rng.below(2_500) as i32));
        for range in [
            (Bound::Included(&low[..]), Bound::Unbounded),
            (Bound::Excluded(&low[..]), Bound::Included(&high[..])),
            (Bound::Included(&low[..]), Bound::Excluded(&high[..])),
        ] {
            agree(view, table, None, range);
        }
    }
    rows
}

fn table(fixture: &Fixture) -> Arc<Table> {
    let names: Vec<String> = (0..TYPES.len()).map(|at| format!("c{at}")).collect();
    let columns: Vec<(&str, Type)> = names.iter().map(String::as_str).zip(TYPES).collect();
    let mut def = def("t", &columns, &[0]);
    def.indexes = vec![index("of_numbers", &[11, 2], false), index("of_ids", &[4, 0], true)];
    def.indexes[0].include = vec![8, 7];
    def.indexes[1].include = vec![9, 8];
    fixture.run(|transaction| transaction.create_table(def).unwrap())
}

fn values<'a>(row: &[Value<'a>], texts: &'a (String, Vec<u8>)) -> Vec<Value<'a>> {
    let mut row = row.to_vec();
    if !texts.0.len().is_multiple_of(7) {
        row[1] = Value::Text(&texts.0);
    }
    if !texts.1.len().is_multiple_of(5) {
        row[8] = Value::Blob(&texts.1);
    }
    row
}

/// Goal: block scans return the same rows, values and keys as row scans, for every type, forward
/// and backward, in the table and in its indexes, and counts agree: for committed rows, own
/// changes, ghosts, long and wide rows, and in a snapshot that predates changes of others. Method:
/// random changes; both ways of reading are compared.
#[test]
fn block_scans_equal_row_scans() {
    let fixture = Fixture::new();
    let table = table(&fixture);
    let mut rng = SeededRng::new(3);
    let mut texts = Default::default();
    fixture.run(|transaction| {
        for id in 0..2_000 {
            let row = row(id, 0, &mut rng, &mut texts);
            transaction.insert(&table, &values(&row, &texts)).unwrap();
        }
    });
    agree_through_changes(&fixture, &table, &mut rng);
}

/// Goal: the same for rows in packed leaves, and in leaves that changes have unpacked.
#[test]
fn block_scans_of_packed_leaves_equal_row_scans() {
    let fixture = Fixture::new();
    table(&fixture);
    let mut rng = SeededRng::new(4);
    let mut texts = Default::default();
    let ordinary = fixture.run(|transaction| {
        let pages = fixture.db.pages().unwrap().0;
        let table = Arc::clone(transaction.view().catalog().table("public", "t").unwrap());
        let mut bulk = transaction.bulk_insert(&table).unwrap();
        for id in 0..2_000 {
            let mut row = row(id, 10, &mut rng, &mut texts);
            // Similar numbers, as in most real data.
            for (at, value) in row.iter_mut().enumerate().filter(|(_, value)| **value != Value::Null) {
                *value = match *value {
                    Value::BigInt(_) => Value::BigInt(i64::from(id) % 1_000 - 500),
                    Value::Decimal(_) => Value::Decimal(i128::from(id) - 1_000),
                    Value::Time(time) => Value::Time(time & 0xfff),
                    Value::Interval(_) => Value::Interval(Interval { months: id, days: 3, micros: -1 }),
                    Value::Double(_) => Value::Double(f64::from(id % 10) / 10.0),
                    Value::Uuid(_) => Value::Uuid([(id % 5) as u8; 16]),
                    other => other,
                };
                assert!(at < TYPES.len());
            }
            texts.0 =
                ["ash", "birch", "", "a text that is longer than the others"][id as usize % 4].to_owned();
            bulk.push(&values(&row, &texts)).unwrap();
        }
        bulk.finish().unwrap();
        fixture.db.pages().unwrap().0 - pages
    });
    // Three trees of 2,000 rows with some 130 bytes each would take more pages in ordinary leaves.
    assert!(ordinary < 40, "{ordinary} pages");
    let table = fixture.table("t");
    agree_through_changes(&fixture, &table, &mut rng);
    assert!(COMPARED.get() > 300, "{}", COMPARED.get());
    assert!(TEXTS.get() > 40, "{}", TEXTS.get());
}

fn agree_through_changes(fixture: &Fixture, table: &Arc<Table>, rng: &mut SeededRng) {
    let mut texts = Default::default();
    let old = fixture.db.begin(Isolation::Snapshot).unwrap();
    assert_eq!(agree_all(old.view(), table, rng), 2_000);
    let mut transaction = fixture.begin();
    for _ in 0..300 {
        let id = rng.below(2_500) as i32;
        let row = row(id, 0, rng, &mut texts);
        let row = values(&row, &texts);
        match rng.below(2) {
            0 => _ = transaction.delete(table, &key(table, id)).unwrap(),
            _ if transaction.update(table, &key(table, id), &row).unwrap() => {}
            _ => transaction.insert(table, &row).unwrap(),
        }
    }
    let own = agree_all(transaction.view(), table, rng);
    assert!(own != 2_000);
    assert_eq!(agree_all(fixture.begin().view(), table, rng), 2_000);
    transaction.commit(Durability::Buffered).unwrap();
    assert_eq!(agree_all(fixture.begin().view(), table, rng), own);
    assert_eq!(agree_all(old.view(), table, rng), 2_000);
    drop(old);
    // Ghosts whose deletion every snapshot sees, and rows on pages that are all visible.
    assert_eq!(agree_all(fixture.begin().view(), table, rng), own);
    assert_eq!(fixture.db.check().unwrap().rows, own as u64);
    fixture.db.vacuum().unwrap();
    assert_eq!(agree_all(fixture.begin().view(), &fixture.table("t"), rng), own);
}

/// Goal: columns that were not announced or do not exist, and buffers of another type, are refused.
#[test]
fn blocks_refuse_unknown_columns() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 2), (3, 4)]);
    let transaction = fixture.begin();
    let everything = (Bound::Unbounded, Bound::Unbounded);
    let blocks =
        |columns: &[usize]| transaction.view().blocks(&table, None, everything, Direction::Forward, columns);
    assert!(blocks(&[3]).is_err());
    let mut scan = blocks(&[1, 2]).unwrap();
    let block = scan.next().unwrap().unwrap();
    assert!(block.column(0, &mut ColumnBuf::new(Type::Int)).is_err());
    assert!(block.column(1, &mut ColumnBuf::new(Type::Real)).is_err());
    let mut column = ColumnBuf::new(Type::Int);
    block.column(1, &mut column).unwrap();
    block.column(1, &mut column).unwrap();
    assert_eq!(column.values(), &ColumnValues::Int(vec![2, 4, 2, 4]));
    assert!(scan.next().unwrap().is_none() && scan.next().unwrap().is_none());
}
