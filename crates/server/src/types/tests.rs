use cairn_sql::{Datum, DatumRef};

use super::*;

fn binary_of(kind: &ColumnType, value: &Datum) -> Vec<u8> {
    let mut out = Vec::new();
    binary::encode(&mut out, kind, value.borrow());
    out
}

/// Goal: each type's values survive a round trip through binary, by the OID that describes it and
/// by OID
/// 0. Method: edge values of each type.
#[test]
fn values_round_trip_through_binary() {
    let values: &[(Type, &[Datum])] = &[
        (Type::Boolean, &[Datum::Boolean(true), Datum::Boolean(false)]),
        (Type::SmallInt, &[Datum::SmallInt(i16::MIN), Datum::SmallInt(7)]),
        (Type::Int, &[Datum::Int(i32::MIN), Datum::Int(7)]),
        (Type::BigInt, &[Datum::BigInt(i64::MIN), Datum::BigInt(7)]),
        (Type::Real, &[Datum::Real(1.5), Datum::Real(f32::INFINITY)]),
        (Type::Double, &[Datum::Double(-0.1), Datum::Double(f64::MAX)]),
        (Type::Text, &[Datum::Text("žluť".into()), Datum::Text(String::new())]),
        (Type::Blob, &[Datum::Blob(vec![0, 255]), Datum::Blob(Vec::new())]),
        (Type::Date, &[Datum::Date(0), Datum::Date(-719_528), Datum::Date(10_957)]),
        (Type::Time, &[Datum::Time(0), Datum::Time(86_399_999_999)]),
        (Type::Timestamp, &[Datum::Timestamp(0), Datum::Timestamp(-1), Datum::Timestamp(1 << 52)]),
        (Type::Interval, &[Datum::Interval { months: -14, days: 3, micros: -1 }]),
        (Type::Uuid, &[Datum::Uuid([9; 16])]),
    ];
    for (kind, values) in values {
        let kind = ColumnType::new(*kind);
        for value in *values {
            let bytes = binary_of(&kind, value);
            assert_eq!(binary::decode(oid_of(&kind), &kind, &bytes).unwrap(), *value);
            assert_eq!(binary::decode(0, &kind, &bytes).unwrap(), *value);
        }
    }
}

/// Goal: the binary format is PostgreSQL's. Method: its bytes of a date after 2000-01-01 and of
/// numerics.
#[test]
fn bytes_are_postgresqls() {
    assert_eq!(binary_of(&Type::Date.into(), &Datum::Date(10_958)), [0, 0, 0, 1]);
    let bytes = binary_of(&ColumnType::decimal(10, 3), &Datum::Decimal { unscaled: -12_345_678, scale: 3 });
    // 1 2345.6780
    assert_eq!(bytes, [0, 3, 0, 1, 0x40, 0, 0, 3, 0, 1, 9, 41, 0x1a, 0x7c]);
    let bytes = binary_of(&ColumnType::decimal(10, 5), &Datum::Decimal { unscaled: 1, scale: 5 });
    // 0.0000 1000
    assert_eq!(bytes, [0, 1, 0xff, 0xfe, 0, 0, 0, 5, 3, 0xe8]);
    let bytes = binary_of(&ColumnType::decimal(10, 2), &Datum::Decimal { unscaled: 0, scale: 2 });
    assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 2]);
}

/// Goal: decimals survive the round trip with any digits and scale. Method: powers of ten and their
/// neighbours, at every scale.
#[test]
fn decimals_round_trip_through_binary() {
    for scale in 0..=38 {
        for exponent in 0..38 {
            for unscaled in
                [10_i128.pow(exponent), 10_i128.pow(exponent) - 1, -7 * 10_i128.pow(exponent.min(36))]
            {
                let mut out = Vec::new();
                numeric::encode(&mut out, unscaled, scale);
                assert_eq!(
                    numeric::decode(&out).unwrap(),
                    Datum::Decimal { unscaled, scale },
                    "{unscaled} {scale}"
                );
            }
        }
    }
    for sign in [0xc000_u16, 0xd000, 0xf000] {
        let nan = [&[0_u8, 0, 0, 0][..], &sign.to_be_bytes(), &[0, 0]].concat();
        assert!(numeric::decode(&nan).is_err());
    }
    // A weight that no number of 38 digits has, and a digit above 9999.
    assert!(numeric::decode(&[0, 1, 0x7f, 0xff, 0, 0, 0, 0, 0, 1]).is_err());
    assert!(numeric::decode(&[0, 1, 0, 0, 0, 0, 0, 0, 0x27, 0x10]).is_err());
}

/// Goal: binary values of the wrong length are refused for every type of fixed length. Method: each
/// length from 0 to 19.
#[test]
fn wrong_lengths_are_refused() {
    for kind in [
        Type::Boolean,
        Type::SmallInt,
        Type::Int,
        Type::BigInt,
        Type::Real,
        Type::Double,
        Type::Date,
        Type::Time,
        Type::Timestamp,
        Type::Interval,
        Type::Uuid,
    ] {
        let kind = ColumnType::new(kind);
        let right = bytes_of(oid_of(&kind));
        for length in 0..20 {
            let taken = binary::decode(oid_of(&kind), &kind, &vec![0; length]).is_ok();
            assert_eq!(taken, i16::try_from(length).unwrap() == right, "{kind} {length}");
        }
    }
}

/// Goal: integers are formatted correctly. Method: edge values and neighbours of powers of ten,
/// against the standard library.
#[test]
fn integers_are_written() {
    let powers = (0..19).map(|exponent| 10_i64.pow(exponent));
    let edges =
        [0, i64::MIN, i64::MAX].into_iter().chain(powers.flat_map(|power| [power - 1, power, -power]));
    for value in edges {
        let mut out = Vec::new();
        text::integer(&mut out, value);
        assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
    }
    let mut out = Vec::new();
    text::encode(&mut out, DatumRef::Blob(&[0, 0xab]));
    assert_eq!(out, b"\\x00ab");
}

/// Goal: columns are described as PostgreSQL does it.
#[test]
fn columns_are_described() {
    let mut column = Column::new("a", ColumnType::varchar(10));
    column.table = Some((16_384, 2));
    let field = field_of(&column, true);
    assert_eq!(
        (field.type_oid, field.type_bytes, field.modifier, field.table, field.column),
        (1043, -1, 14, 16_384, 3)
    );
    let field = field_of(&Column::new("b", ColumnType::decimal(10, 2)), false).modifier;
    assert_eq!(field, (10 << 16 | 2) + 4);
    assert_eq!(field_of(&Column::new("c", ColumnType::json()), false).type_oid, oid::JSON);
}

/// Goal: timestamps with a time zone show it, and have their own type. Method: text of one in and
/// one before the common era, and the OIDs of the types.
#[test]
fn moments_have_a_zone() {
    let shown = |micros: i64| {
        let mut out = Vec::new();
        text::encode_of(&mut out, &ColumnType::zoned(), DatumRef::Timestamp(micros));
        String::from_utf8(out).unwrap()
    };
    assert_eq!(shown(500_000), "1970-01-01 00:00:00.5+00");
    assert!(shown(-70_000_000_000_000_000).ends_with("+00 BC"));
    assert_eq!((oid_of(&ColumnType::zoned()), bytes_of(oid::TIMESTAMPTZ)), (1184, 8));
    assert_eq!(oid_of(&Type::Timestamp.into()), 1114);
}

/// Goal: dates and timestamps that have no text form, including PostgreSQL's infinities, are
/// refused as parameters. Method: the first and the last that have one, their neighbours, and the
/// ends of the integers; with and without a time zone.
#[test]
fn dates_and_moments_have_ends() {
    let after_2000 = |kind: &ColumnType, text: &str| {
        let bytes = binary_of(kind, &Datum::parse(text, kind).unwrap());
        bytes.iter().fold(i64::from(bytes[0] as i8) >> 8, |number, byte| number << 8 | i64::from(*byte))
    };
    let code = |kind: &ColumnType, bytes: &[u8]| match binary::decode(oid_of(kind), kind, bytes) {
        Ok(value) => value.to_string(),
        Err(failure) => failure.sqlstate.into_owned(),
    };
    let kind = ColumnType::new(Type::Date);
    let (first, last) = ("290308-01-01 BC", "294246-12-31");
    let of = |days: i64| code(&kind, &i32::try_from(days).unwrap().to_be_bytes());
    let ends = [after_2000(&kind, first), after_2000(&kind, last)];
    assert_eq!(ends.map(of), [first, last]);
    for days in [ends[0] - 1, ends[1] + 1, i32::MIN.into(), i32::MAX.into()] {
        assert_eq!(of(days), "22008", "{days}");
    }
    let (first, last) = ("290279-12-22 19:59:05.224193 BC", "294246-12-31 23:59:59.999999");
    for kind in [ColumnType::new(Type::Timestamp), ColumnType::zoned()] {
        let of = |micros: i64| code(&kind, &micros.to_be_bytes());
        let ends = [after_2000(&kind, first), after_2000(&kind, last)];
        assert_eq!(ends.map(of), [first, last]);
        for micros in [ends[0] - 1, ends[1] + 1, i64::MIN, i64::MAX] {
            assert_eq!(of(micros), "22008", "{kind} {micros}");
        }
    }
}
