//! Goal: values print and parse as in PostgreSQL. Method: tables of examples from PostgreSQL's
//! documentation.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::*;

/// Each text is parsed and printed again.
#[test]
fn reads_and_prints() {
    let examples: &[(Type, &str, &str)] = &[
        (Type::Boolean, "yes", "t"),
        (Type::Boolean, " OFF ", "f"),
        (Type::SmallInt, "-32768", "-32768"),
        (Type::BigInt, " 9223372036854775807 ", "9223372036854775807"),
        (Type::Double, "1e15", "1e+15"),
        (Type::Double, "123456789012345", "123456789012345"),
        (Type::Double, "0.0001", "0.0001"),
        (Type::Double, "0.00001", "1e-05"),
        (Type::Double, "-0", "-0"),
        (Type::Double, "1.5", "1.5"),
        (Type::Double, "-inf", "-Infinity"),
        (Type::Real, "123456", "123456"),
        (Type::Real, "1234567", "1.234567e+06"),
        (Type::Real, "0.1", "0.1"),
        (Type::Blob, "\\xDEAD", "\\xdead"),
        (Type::Blob, "a\\\\b\\001", "\\x615c6201"),
        (Type::Date, "2024-02-29", "2024-02-29"),
        (Type::Date, "0044-03-15 BC", "0044-03-15 BC"),
        (Type::Date, "1969/12/31", "1969-12-31"),
        (Type::Time, "12:34:56.789", "12:34:56.789"),
        (Type::Time, "03:04 pm", "15:04:00"),
        (Type::Time, "24:00:00", "24:00:00"),
        (Type::Timestamp, "2001-09-28T01:00:00.5+02:00", "2001-09-28 01:00:00.5"),
        (Type::Timestamp, "1960-01-01 00:00:00.000001", "1960-01-01 00:00:00.000001"),
        (Type::Interval, "1 year 2 mons 3 days 04:05:06.7", "1 year 2 mons 3 days 04:05:06.7"),
        (Type::Interval, "-1 day 02:03", "-1 days +02:03:00"),
        (Type::Interval, "14 months", "1 year 2 mons"),
        (Type::Interval, "1.5 days", "1 day 12:00:00"),
        (Type::Interval, "3 hours ago", "-03:00:00"),
        (Type::Interval, "0", "00:00:00"),
        (Type::Uuid, "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ];
    for (kind, text, expected) in examples {
        let datum = Datum::parse(text, &ColumnType::new(*kind)).unwrap();
        assert_eq!(datum.to_string(), *expected, "{kind:?} {text}");
    }
    let zoned = Datum::parse("2001-09-28 01:00:00.5+02", &ColumnType::zoned()).unwrap();
    assert_eq!(zoned.to_string(), "2001-09-27 23:00:00.5");
    let decimal = |text: &str, precision, scale| Datum::parse(text, &ColumnType::decimal(precision, scale));
    assert_eq!(decimal("-0.055", 4, 2).unwrap().to_string(), "-0.06");
    assert_eq!(decimal("1.5e2", 10, 3).unwrap().to_string(), "150.000");
    assert_eq!(decimal("999.995", 5, 2).unwrap_err().sqlstate(), "22003");
}

/// Malformed values have PostgreSQL's codes.
#[test]
fn refuses() {
    let examples: &[(Type, &str, &str)] = &[
        (Type::Boolean, "o", "22P02"),
        (Type::Int, "1.5", "22P02"),
        (Type::Int, "", "22P02"),
        (Type::Int, "2147483648", "22003"),
        (Type::BigInt, "99999999999999999999", "22003"),
        (Type::Double, "one", "22P02"),
        (Type::Decimal, "1.2.3", "22P02"),
        (Type::Blob, "\\xabc", "22023"),
        (Type::Date, "2023-02-29", "22008"),
        (Type::Date, "yesteryear", "22007"),
        (Type::Time, "25:00", "22007"),
        (Type::Interval, "1 fortnight", "22007"),
        (Type::Interval, "nan", "22007"),
        (Type::Interval, "inf days", "22007"),
        (Type::Interval, "1:99", "22007"),
        (Type::Interval, "1:-5:00", "22007"),
        (Type::Interval, "1:00:61", "22007"),
        (Type::Interval, "1:2:3:4", "22007"),
        (Type::Interval, "--1:00", "22007"),
        (Type::Interval, "99999999999999999999:00", "22007"),
        (Type::Uuid, "a0ee", "22P02"),
    ];
    for (kind, text, sqlstate) in examples {
        let error = Datum::parse(text, &ColumnType::new(*kind)).unwrap_err();
        assert_eq!(error.sqlstate(), *sqlstate, "{kind:?} {text}: {error}");
    }
    // Parts that each reach the limit, and together exceed it.
    let many = "9".repeat(40);
    for text in [
        format!("{many} hours {many} hours"),
        format!("-{many} hours -{many} hours"),
        format!("-{many} hours ago"),
    ] {
        let error = Datum::parse(&text, &Type::Interval.into()).unwrap_err();
        assert!(["22007", "22015"].contains(&error.sqlstate()), "{text}: {error}");
    }
    for (text, valid) in [
        ("{\"a\": [1, -2.5e3, null]}", true),
        ("[1,]", false),
        ("", false),
        ("{\"a\" 1}", false),
        ("01", false),
    ] {
        assert_eq!(Datum::parse(text, &ColumnType::json()).is_ok(), valid, "{text}");
    }
}
