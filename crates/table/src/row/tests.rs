use std::cmp::Ordering;

use proptest::prelude::*;

use super::super::{KeyFormat, Order, RowFormat, Type, Value};

/// A value that owns its bytes.
#[derive(Debug, Clone)]
enum Owned {
    Plain(Value<'static>),
    Text(String),
    Blob(Vec<u8>),
}

impl Owned {
    fn value(&self) -> Value<'_> {
        match self {
            Owned::Plain(value) => *value,
            Owned::Text(text) => Value::Text(text),
            Owned::Blob(bytes) => Value::Blob(bytes),
        }
    }
}

const TYPES: [Type; 13] = [
    Type::Boolean,
    Type::SmallInt,
    Type::Int,
    Type::BigInt,
    Type::Real,
    Type::Double,
    Type::Decimal,
    Type::Text,
    Type::Blob,
    Type::Date,
    Type::Time,
    Type::Timestamp,
    Type::Uuid,
];

fn value(kind: Type) -> BoxedStrategy<Owned> {
    let plain = |strategy: BoxedStrategy<Value<'static>>| strategy.prop_map(Owned::Plain).boxed();
    let some = match kind {
        Type::Boolean => plain(any::<bool>().prop_map(Value::Boolean).boxed()),
        Type::SmallInt => plain(any::<i16>().prop_map(Value::SmallInt).boxed()),
        Type::Int => plain(any::<i32>().prop_map(Value::Int).boxed()),
        Type::BigInt => plain(any::<i64>().prop_map(Value::BigInt).boxed()),
        Type::Real => plain(
            prop_oneof![any::<f32>(), Just(-0.0), Just(f32::NAN), Just(-f32::NAN)]
                .prop_map(Value::Real)
                .boxed(),
        ),
        Type::Double => plain(
            prop_oneof![any::<f64>(), Just(-0.0), Just(0.0), Just(f64::NAN), Just(f64::NEG_INFINITY)]
                .prop_map(Value::Double)
                .boxed(),
        ),
        Type::Decimal => plain(any::<i128>().prop_map(Value::Decimal).boxed()),
        Type::Date => plain(any::<i32>().prop_map(Value::Date).boxed()),
        Type::Time => plain(any::<i64>().prop_map(Value::Time).boxed()),
        Type::Timestamp => plain(any::<i64>().prop_map(Value::Timestamp).boxed()),
        Type::Uuid => plain(any::<[u8; 16]>().prop_map(Value::Uuid).boxed()),
        Type::Text => "[\u{0}a-c\u{ff}é]{0,6}".prop_map(Owned::Text).boxed(),
        _ => prop::collection::vec(prop_oneof![Just(0), Just(1), Just(255), any::<u8>()], 0..6)
            .prop_map(Owned::Blob)
            .boxed(),
    };
    prop_oneof![1 => Just(Owned::Plain(Value::Null)), 8 => some].boxed()
}

type Columns = Vec<(Type, Order)>;

/// Generates columns, and rows of them that share many values.
fn rows() -> impl Strategy<Value = (Columns, Vec<Vec<Owned>>)> {
    let column = (0..TYPES.len(), any::<bool>(), any::<bool>())
        .prop_map(|(kind, descending, nulls_first)| (TYPES[kind], Order { descending, nulls_first }));
    prop::collection::vec(column, 1..5).prop_flat_map(|columns| {
        let pools: Vec<_> = columns.iter().map(|(kind, _)| prop::collection::vec(value(*kind), 3)).collect();
        let picks = prop::collection::vec(prop::collection::vec(0usize..3, columns.len()), 2..8);
        (Just(columns), pools, picks).prop_map(|(columns, pools, picks)| {
            let row = |pick: Vec<usize>| pools.iter().zip(pick).map(|(pool, at)| pool[at].clone()).collect();
            (columns, picks.into_iter().map(row).collect())
        })
    })
}

fn order(columns: &Columns, a: &[Value<'_>], b: &[Value<'_>]) -> Ordering {
    for ((a, b), (_, order)) in a.iter().zip(b).zip(columns) {
        let found = match (a, b) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => {
                if order.nulls_first {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (_, Value::Null) => {
                if order.nulls_first {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            _ => {
                let plain = a.order(b).unwrap();
                if order.descending { plain.reverse() } else { plain }
            }
        };
        if found != Ordering::Equal {
            return found;
        }
    }
    Ordering::Equal
}

proptest! {
    #![proptest_config(crate::test_config::cases(400))]

    /// Goal: keys sort like their values for all types and directions, and decode to the same
    /// values.
    /// Method: random columns, and rows that share values.
    #[test]
    fn keys((columns, rows) in rows()) {
        let format = KeyFormat::new(columns.clone());
        let values: Vec<Vec<Value<'_>>> = rows.iter().map(|row| row.iter().map(Owned::value).collect()).collect();
        let keys: Vec<Vec<u8>> = values.iter().map(|row| {
            let mut key = Vec::new();
            assert!(format.encode(row, &mut key));
            key
        }).collect();
        for (a, key_a) in values.iter().zip(&keys) {
            for (b, key_b) in values.iter().zip(&keys) {
                prop_assert_eq!(key_a.cmp(key_b), order(&columns, a, b), "{:?} {:?}", a, b);
            }
            let mut at = 0;
            let is_key = format.decode(key_a, |value| {
                assert_eq!(value.order(&a[at]), Some(Ordering::Equal), "{value:?} {:?}", a[at]);
                at += 1;
            });
            prop_assert!(is_key && at == a.len());
            for len in 0..a.len() {
                let mut start = Vec::new();
                prop_assert!(format.encode(&a[..len], &mut start) && key_a.starts_with(&start));
            }
            for cut in 0..key_a.len() {
                let is_key = format.decode(&key_a[..cut], |_| ());
                prop_assert!(!is_key);
            }
        }
    }

    /// Goal: rows return the encoded values, column by column.
    #[test]
    fn rows_round_trip((columns, rows) in rows()) {
        let types: Vec<Type> = columns.iter().map(|(kind, _)| *kind).collect();
        let format = RowFormat::new(&types);
        for row in &rows {
            let values: Vec<Value<'_>> = row.iter().map(Owned::value).collect();
            let mut bytes = vec![7, 7];
            prop_assert!(format.encode(&values, &mut bytes));
            let read = format.read(&bytes[2..]);
            for (at, value) in values.iter().enumerate() {
                let found = read.get(at).unwrap();
                prop_assert_eq!(found.order(value), Some(Ordering::Equal), "{:?} {:?}", found, value);
            }
            prop_assert_eq!(read.get(values.len()), None);
            prop_assert!(!format.encode(&values[1..], &mut bytes));
        }
    }

    /// Goal: reading arbitrary bytes as keys and rows never panics.
    #[test]
    fn any_bytes((columns, _) in rows(), bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let types: Vec<Type> = columns.iter().map(|(kind, _)| *kind).collect();
        let format = RowFormat::new(&types);
        let row = format.read(&bytes);
        (0..=types.len()).for_each(|at| _ = row.get(at));
        let _ = KeyFormat::new(columns).decode(&bytes, |_| {});
    }
}

/// Goal: values of the wrong type, too many values and too long values are refused, and nothing is
/// appended.
#[test]
fn invalid_values_are_refused() {
    let (key, row) =
        (KeyFormat::new(vec![(Type::Int, Order::default())]), RowFormat::new(&[Type::Text, Type::Blob]));
    let mut bytes = Vec::new();
    assert!(
        !key.encode(&[Value::BigInt(1)], &mut bytes)
            && !key.encode(&[Value::Int(1), Value::Int(2)], &mut bytes)
    );
    let long = vec![0; 70_000];
    assert!(!row.encode(&[Value::Text("a"), Value::Blob(&long)], &mut bytes) && bytes.is_empty());
    assert!(!row.encode(&[Value::Blob(b"a"), Value::Blob(b"b")], &mut bytes) && bytes.is_empty());
    assert!((key.len(), row.len(), key.is_empty(), row.is_empty()) == (1, 2, false, false));
    assert_eq!(Value::Int(1).order(&Value::BigInt(1)), None);
}
