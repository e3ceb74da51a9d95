use std::io::BufReader;

use proptest::prelude::*;

use super::*;
use crate::test_config::cases;

/// A row's line and its fields.
type Numbered = (u64, Vec<Vec<u8>>);

/// Returns the rows of an input, read through a buffer of `capacity` bytes.
fn rows(input: &[u8], dialect: Dialect, capacity: usize) -> Result<Vec<Numbered>, Failure> {
    let mut reader = Reader::new(BufReader::with_capacity(capacity, input), dialect);
    let (mut row, mut rows) = (Row::default(), Vec::new());
    while reader.read(&mut row)? {
        rows.push((row.line(), row.iter().map(<[u8]>::to_vec).collect()));
    }
    Ok(rows)
}

/// Goal: an input that ends within quotes is an error with the line of the opening quote, and
/// nothing else is. Method: inputs of both kinds, through buffers of every small size; in TSV a
/// quote opens nothing.
#[test]
fn open_quotes_are_refused() {
    for (input, line) in [
        (&b"id,v\n1,\"no end\n2,two\n3,three\n"[..], Some(2)),
        (b"id,v\r\n1,a\r\n2,\"", Some(3)),
        (b"\"id,v\n", Some(1)),
        (b"a,b\n\"x\ny\",\"z\n\n", Some(3)),
        (b"a,\"b\"\"\n", Some(1)),
        (b"a,b\"\n1,2\n", None),
        (b"a,\"b\"\n1,\"\"", None),
        (b"a, \"b\n1,2", None),
    ] {
        for capacity in 1..9 {
            let read = rows(input, Dialect::CSV, capacity);
            match (line, read) {
                (Some(line), Err(failure)) => {
                    assert!(matches!(failure, Failure::Unclosed { .. }), "{failure:?}");
                    assert_eq!(failure.line(), Some(line), "{}", input.escape_ascii());
                }
                (None, Ok(_)) => {}
                (expected, read) => panic!("{}: {read:?}, expected {expected:?}", input.escape_ascii()),
            }
        }
        assert!(rows(input, Dialect::TSV, 3).is_ok());
    }
}

/// Goal: each row knows its line, and its byte range in the input, which excludes the line break.
/// Method: line breaks of all kinds, empty lines, a line break within quotes, and a byte order
/// mark.
#[test]
fn rows_know_their_place() {
    let input = b"\xef\xbb\xbfa,b\r\n\r\n\"x\r\ny\",1\r\r\n2,3\n\n4,5";
    for capacity in 1..9 {
        let mut reader = Reader::new(BufReader::with_capacity(capacity, &input[..]), Dialect::CSV);
        let (mut row, mut found) = (Row::default(), Vec::new());
        while reader.read(&mut row).unwrap() {
            let range = row.range();
            found.push((row.line(), &input[range.start as usize..range.end as usize]));
        }
        let expected: [(u64, &[u8]); 4] = [(1, b"a,b"), (3, b"\"x\r\ny\",1"), (6, b"2,3"), (8, b"4,5")];
        assert_eq!(found, expected);
    }
}

/// Goal: a column is found by name or number, and of two columns with one name, none is chosen.
#[test]
fn columns_are_found() {
    let names = || [&b"id"[..], b"v", b"3", b"v"].into_iter();
    assert_eq!(find_column(names(), "id"), Ok(0));
    assert_eq!(find_column(names(), "3"), Ok(2));
    assert_eq!(find_column(names(), "4"), Ok(3));
    assert_eq!(find_column(names(), "v"), Err(Missing::Ambiguous(2, 4)));
    for absent in ["0", "5", "x", "-1", ""] {
        assert_eq!(find_column(names(), absent), Err(Missing::Unknown), "{absent}");
    }
    assert!(Missing::Ambiguous(2, 4).told("v", names()).contains("number 2 and number 4"));
}

proptest! {
    #![proptest_config(cases(2000))]

    /// Goal: rows equal those of the `csv` crate, which agrees with Python's `csv`, except that an
    /// input which ends within quotes is an error. Method: random texts of significant bytes, in
    /// both dialects, through buffers of random size; a quote is still open at the end if the `csv`
    /// crate does not find a row that is appended to the text.
    #[test]
    fn rows_are_those_of_the_csv_crate(
        input in proptest::collection::vec(proptest::sample::select(&b"a,\t\"\"\"\r\n\n b\xff\0"[..]), 0..60),
        is_csv: bool,
        capacity in 1_usize..70,
    ) {
        // Only this reader skips a byte order mark, so the input has none.
        let dialect = if is_csv { Dialect::CSV } else { Dialect::TSV };
        let theirs = |input: &[u8]| -> Vec<Vec<Vec<u8>>> {
            let mut builder = ::csv::ReaderBuilder::new();
            builder.delimiter(dialect.separator).quoting(is_csv).flexible(true).has_headers(false);
            let rows = builder.from_reader(input).into_byte_records();
            rows.map(|row| row.unwrap().iter().map(<[u8]>::to_vec).collect()).collect()
        };
        let expected = theirs(&input);
        let longer = [&input[..], b"\nEND"].concat();
        let is_open = theirs(&longer).last() != Some(&vec![b"END".to_vec()]);
        match rows(&input, dialect, capacity) {
            Ok(found) => {
                prop_assert!(!is_open);
                let found: Vec<Vec<Vec<u8>>> = found.into_iter().map(|(_, row)| row).collect();
                prop_assert_eq!(found, expected);
            }
            Err(failure) => {
                let is_unclosed = matches!(failure, Failure::Unclosed { .. });
                prop_assert!(is_open && is_unclosed, "{:?}", failure);
            }
        }
    }
}
