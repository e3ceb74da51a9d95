//! Goal: COPY accepts and rejects the same input as PostgreSQL, however it is cut into pieces.
//! Method: texts with their rows, random rows through encoder and decoder, random bytes.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use proptest::prelude::*;

use super::*;
use crate::datum::{Datum, DatumRef};
use crate::{Error, Result};

type Row = Vec<Option<String>>;

const MOST: usize = 1 << 20;

fn read(options: &Options, columns: &[&str], bytes: &[u8], piece: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut each = |row: &RawRow<'_>| {
        let text = |column: usize| {
            let cell = row.get(column, &Type::Text.into())?;
            Ok((!cell.borrow().is_null()).then(|| cell.borrow().to_string()))
        };
        rows.push((0..columns.len()).map(text).collect::<Result<Row>>()?);
        Ok(())
    };
    let mut decoder = Decoder::new(options, "t", columns, MOST);
    bytes.chunks(piece).try_for_each(|piece| decoder.write(piece, &mut each))?;
    decoder.finish(&mut each)?;
    Ok(rows)
}

fn rows(format: Format, text: &str) -> Vec<Row> {
    let options = Options::new(format);
    let whole = read(&options, &["a", "b"], text.as_bytes(), MOST).unwrap();
    for piece in 1..4 {
        assert_eq!(read(&options, &["a", "b"], text.as_bytes(), piece).unwrap(), whole, "pieces of {piece}");
    }
    whole
}

fn some(values: &[&str]) -> Row {
    values.iter().map(|value| (*value != "NULL").then(|| (*value).to_owned())).collect()
}

fn fails(options: &Options, text: &[u8]) -> Error {
    read(options, &["a", "b"], text, 3).unwrap_err()
}

/// Escapes, NULL and the end-of-data marker of the text format.
#[test]
fn text_format() {
    assert_eq!(rows(Format::Text, "1\ttwo\n\\N\t\n"), [some(&["1", "two"]), some(&["NULL", ""])]);
    assert_eq!(rows(Format::Text, "a\\tb\\\\\\n\t\\x41\\101\\q"), [some(&["a\tb\\\n", "AAq"])]);
    assert_eq!(rows(Format::Text, "x\\\ny\tz\n"), [some(&["x\ny", "z"])]);
    assert_eq!(rows(Format::Text, "1\t2\r\n3\t4\r\n"), [some(&["1", "2"]), some(&["3", "4"])]);
    assert_eq!(rows(Format::Text, "1\t2\n\\.\nwhatever comes then"), [some(&["1", "2"])]);
    assert_eq!(rows(Format::Text, "\\\\N\tb\n"), [some(&["\\N", "b"])]);
}

/// Quotes, line breaks within quotes, NULL and the empty text of CSV.
#[test]
fn csv_format() {
    assert_eq!(rows(Format::Csv, "1,two\n,\"\"\n"), [some(&["1", "two"]), some(&["NULL", ""])]);
    assert_eq!(rows(Format::Csv, "\"a,\"\"b\"\"\r\n\",x\"y,z\"w\r\n"), [some(&["a,\"b\"\r\n", "xy,zw"])]);
    assert_eq!(rows(Format::Csv, "\"1\n2\",\"3\"\n4,5"), [some(&["1\n2", "3"]), some(&["4", "5"])]);
    let options = Options { escape: b'\\', ..Options::new(Format::Csv) };
    for piece in 1..6 {
        let found = read(&options, &["a", "b"], b"\"a\\\"\n\",\"\\\\\"\n\"b\\c\",\n", piece).unwrap();
        assert_eq!(found, [some(&["a\"\n", "\\"]), some(&["b\\c", "NULL"])]);
    }
    let options = Options {
        force_null: vec![true, false],
        force_not_null: vec![false, true],
        ..Options::new(Format::Csv)
    };
    assert_eq!(read(&options, &["a", "b"], b"\"\",\n", 2).unwrap(), [some(&["NULL", ""])]);
}

/// Names in the first line are skipped, or compared.
#[test]
fn headers() {
    let mut options = Options { header: Header::Yes, ..Options::new(Format::Csv) };
    assert_eq!(read(&options, &["a", "b"], b"x,y,z\n1,2\n", 1).unwrap(), [some(&["1", "2"])]);
    options.header = Header::Match;
    assert_eq!(read(&options, &["a", "b"], b"a,\"b\"\n1,2\n", 1).unwrap(), [some(&["1", "2"])]);
    let error = fails(&options, b"a,c\n");
    assert_eq!(error.message(), "column name mismatch in header line field 2: got \"c\", expected \"b\"");
    let error = fails(&options, b"a\n");
    assert_eq!(error.message(), "wrong number of fields in header line: field count is 1, expected 2");
}

/// Goal: the first line break sets the line ending of all rows, and the end-of-data marker counts
/// only before a line break of that kind, as in PostgreSQL 15. Method: the results of PostgreSQL
/// 15.20 for each input; whole, and in pieces of one byte.
#[test]
fn line_breaks_are_alike() {
    let literal = |name: &str| format!("literal {name} found in data");
    let unquoted = |name: &str| format!("unquoted {name} found in data");
    let (feed, back) = ("newline", "carriage return");
    let (corrupt, mismatch) =
        ("end-of-copy marker corrupt", "end-of-copy marker does not match previous newline style");
    type Case = (Format, &'static [u8], Result<&'static [&'static str], String>);
    let cases: [Case; 23] = [
        (Format::Text, b"a\nb", Ok(&["a", "b"])),
        (Format::Text, b"a\r\nb\r\n", Ok(&["a", "b"])),
        (Format::Text, b"a\rb\r", Ok(&["a", "b"])),
        (Format::Text, b"a\nb\r\n", Err(literal(back))),
        (Format::Text, b"a\r\nb\n", Err(literal(feed))),
        (Format::Text, b"a\r\nb\rc", Err(literal(back))),
        (Format::Text, b"a\rb\n", Err(literal(feed))),
        (Format::Text, b"a\\\nb\n", Ok(&["a\nb"])),
        (Format::Text, b"a\n\\.\nb", Ok(&["a"])),
        (Format::Text, b"a\nb\\.\nc", Ok(&["a", "b", "c"])),
        (Format::Text, b"\\.\r\nb", Ok(&[])),
        (Format::Text, b"a\n\\.", Err(corrupt.to_owned())),
        (Format::Text, b"a\n\\.b\n", Err(corrupt.to_owned())),
        (Format::Text, b"a\n\\.\r\n", Err(mismatch.to_owned())),
        (Format::Text, b"a\r\n\\.\n", Err(mismatch.to_owned())),
        (Format::Text, b"a\n\\\\.\n", Ok(&["a", "\\."])),
        (Format::Text, b"a\nb\\", Ok(&["a", "b"])),
        (Format::Csv, b"a\nb\r\n", Err(unquoted(back))),
        (Format::Csv, b"a\r\nb\n", Err(unquoted(feed))),
        (Format::Csv, b"\"a\r\nb\"\nc\n", Ok(&["a\r\nb", "c"])),
        (Format::Csv, b"a\r\"b\nc\"\r", Ok(&["a", "b\nc"])),
        (Format::Csv, b"a\n\\.\nb\n", Ok(&["a"])),
        (Format::Csv, b"a\nb\\.\n\\.", Ok(&["a", "b\\.", "\\."])),
    ];
    for (format, bytes, expected) in cases {
        for piece in [1, bytes.len()] {
            let found = read(&Options::new(format), &["a"], bytes, piece);
            let found = found.map_err(|error| error.message().to_owned());
            let expected =
                expected.as_ref().map(|rows| rows.iter().map(|row| some(&[*row])).collect::<Vec<_>>());
            assert_eq!(found.as_ref(), expected.as_ref().map_err(|error| *error), "{}", bytes.escape_ascii());
        }
    }
}

/// Malformed rows are rejected in PostgreSQL's words, with their line.
#[test]
fn errors() {
    let (text, csv) = (Options::new(Format::Text), Options::new(Format::Csv));
    let cases: [(&Options, &[u8], &str, &str, &str); 8] = [
        (&text, b"1\t2\n3\n", "22P04", "missing data for column \"b\"", "COPY t, line 2"),
        (&text, b"1\t2\t3\n", "22P04", "extra data after last expected column", "COPY t, line 1"),
        (&csv, b"\"1\n\",2\n\n", "22P04", "missing data for column \"b\"", "COPY t, line 3"),
        (&csv, b"1,\"2\n3,4\n", "22P04", "unterminated CSV quoted field", "COPY t, line 1"),
        (&csv, b"1,a\rb\n", "22P04", "unquoted newline found in data", "COPY t, line 2"),
        (
            &text,
            b"1\t\xc3(\n",
            "22021",
            "invalid byte sequence for encoding \"UTF8\": 0xc3",
            "COPY t, line 1",
        ),
        (
            &text,
            b"1\t\\xff\n",
            "22021",
            "invalid byte sequence for encoding \"UTF8\": 0xff",
            "COPY t, line 1",
        ),
        (&text, b"1\t\0\n", "22021", "invalid byte sequence for encoding \"UTF8\": 0x00", "COPY t, line 1"),
    ];
    for (options, bytes, state, message, detail) in cases {
        let error = fails(options, bytes);
        assert_eq!((error.sqlstate(), error.message(), error.detail()), (state, message, Some(detail)));
    }
    let mut decoder = Decoder::new(&text, "t", &["a"], 10);
    let error = decoder.write(b"a row that does not end", &mut |_| Ok(())).unwrap_err();
    assert_eq!(error.sqlstate(), "54000");
    let mut found = None;
    let mut decoder = Decoder::new(&text, "t", &["a", "b"], MOST);
    decoder
        .write(b"1\tx\n", &mut |row| {
            found = row.get(1, &Type::Int.into()).err();
            Ok(())
        })
        .unwrap();
    let error = found.unwrap();
    assert_eq!(error.message(), "invalid input syntax for type integer: \"x\"");
    assert_eq!(error.detail(), Some("COPY t, line 1, column b: \"x\""));
}

fn kinds() -> Vec<ColumnType> {
    let plain = [
        Type::Boolean,
        Type::SmallInt,
        Type::Int,
        Type::BigInt,
        Type::Real,
        Type::Double,
        Type::Text,
        Type::Blob,
        Type::Date,
        Type::Time,
        Type::Timestamp,
        Type::Interval,
        Type::Uuid,
    ];
    plain
        .into_iter()
        .map(ColumnType::new)
        .chain([ColumnType::decimal(38, 5), ColumnType::varchar(9)])
        .collect()
}

fn row() -> impl Strategy<Value = Vec<Datum>> {
    let day = 86_400_000_000_i64;
    let text = || "[a\\\\\"'\\t\\n\\r,;ñ€N. ]{0,9}";
    let values = (
        (any::<bool>(), any::<i16>(), any::<i32>(), any::<i64>(), -1e30_f32..1e30, -1e300_f64..1e300),
        (
            text(),
            prop::collection::vec(any::<u8>(), 0..9),
            -700_000_i32..2_000_000,
            0..day,
            -60_000 * day..100_000 * day,
        ),
        (
            any::<[u8; 16]>(),
            -99_999_999_999_999_999_999_999_i128..99_999_999_999_999_999_999_999,
            text(),
            -500_i32..500,
            -9_000_i32..9_000,
            -3 * day..3 * day,
        ),
        prop::collection::vec(prop::bool::weighted(0.1), 15),
    );
    values.prop_map(|((a, b, c, d, e, f), (g, h, i, j, k), (l, m, n, months, days, micros), nulls)| {
        let values = [
            Datum::Boolean(a),
            b.into(),
            c.into(),
            d.into(),
            e.into(),
            f.into(),
            g.into(),
            h.into(),
            Datum::Date(i),
            Datum::Time(j),
            Datum::Timestamp(k),
            Datum::Interval { months, days, micros },
            l.into(),
            Datum::Decimal { unscaled: m, scale: 5 },
            n.into(),
        ];
        values.into_iter().zip(nulls).map(|(value, null)| if null { Datum::Null } else { value }).collect()
    })
}

fn formats() -> impl Strategy<Value = Options> {
    let header = prop_oneof![Just(Header::No), Just(Header::Yes), Just(Header::Match)];
    (0..3_u8, header, any::<bool>(), any::<bool>()).prop_map(|(format, header, other, force)| {
        let mut options = Options::new([Format::Text, Format::Csv, Format::Binary][usize::from(format)]);
        if options.format != Format::Binary {
            options.header = header;
        }
        if other {
            options.delimiter = b';';
            options.null = "NULL".to_owned();
            options.escape = if options.format == Format::Csv { b'\\' } else { options.escape };
        }
        if force {
            options.force_quote = vec![true; 15];
        }
        options
    })
}

proptest! {
    /// Goal: encoded rows are decoded unchanged. Method: random rows of every type, in every
    /// format, in pieces of random size.
    #[test]
    fn round_trips(options in formats(), rows in prop::collection::vec(row(), 0..9), piece in 1_usize..99) {
        let names: Vec<String> = (0..15).map(|at| format!("c{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let encoder = Encoder::new(&options, &names);
        let mut bytes = Vec::new();
        encoder.begin(&mut bytes);
        rows.iter().for_each(|row| encoder.row(|column| row[column].borrow(), &mut bytes));
        encoder.finish(&mut bytes);
        let (kinds, mut found) = (kinds(), Vec::new());
        let mut each = |row: &RawRow<'_>| {
            let cells: Result<Vec<Datum>> = (0..kinds.len()).map(|at| Ok(row.get(at, &kinds[at])?.borrow().to_owned())).collect();
            found.push(cells?);
            Ok(())
        };
        let mut decoder = Decoder::new(&options, "t", &names, MOST);
        for piece in bytes.chunks(piece) {
            decoder.write(piece, &mut each).unwrap();
        }
        decoder.finish(&mut each).unwrap();
        prop_assert_eq!(found, rows);
    }

    /// Goal: no input panics, and its division into pieces does not change the result. Method:
    /// bytes with a high share of special characters, in every format.
    #[test]
    fn any_bytes(options in formats(), mut bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'"'), Just(b'\\'), Just(b','), Just(b'\t'), Just(0)], 0..300), begins in any::<bool>(), piece in 1_usize..9) {
        if begins && options.format == Format::Binary {
            bytes.splice(0..0, b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".iter().copied());
        }
        let run = |piece: usize| {
            let mut values = Vec::new();
            let kinds = [ColumnType::new(Type::Text), ColumnType::decimal(9, 2)];
            let mut decoder = Decoder::new(&options, "t", &["a", "b"], MOST);
            let mut each = |row: &RawRow<'_>| {
                kinds.iter().enumerate().for_each(|(at, kind)| values.push(row.get(at, kind).map(|cell| cell.borrow().to_owned()).ok()));
                Ok(())
            };
            let result = bytes.chunks(piece).try_for_each(|piece| decoder.write(piece, &mut each)).and_then(|()| decoder.finish(&mut each));
            (values, result.map_err(|error| error.to_string()))
        };
        prop_assert_eq!(run(piece), run(usize::MAX));
    }
}

/// Goal: rows pass through a Parquet file unchanged, and other files are rejected. Method: batches
/// written and read back; other bytes.
#[test]
fn parquet_files() {
    use arrow::array::{Int64Array, RecordBatch, StringViewArray};
    use arrow::datatypes::{DataType, Field, Schema};
    use cairn_vfs::sync::Arc;
    use cairn_vfs::{File, Fs, MemFs, OpenOptions};

    let fs = MemFs::new();
    let open = |name: &str| -> Arc<dyn File> {
        fs.open(std::path::Path::new(name), OpenOptions::create()).unwrap().into()
    };
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8View, true),
    ]));
    let mut writer = ParquetWriter::new(&schema).unwrap();
    let ids: Int64Array = (0..20_000).collect();
    let names: StringViewArray = (0..20_000).map(|at| (at % 7 > 0).then(|| format!("name {at}"))).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(ids), Arc::new(names)]).unwrap();
    let bytes = [writer.write(&batch).unwrap(), writer.finish().unwrap()].concat();
    let file = open("rows.parquet");
    file.write_all_at(&bytes, 0).unwrap();
    let reader = ParquetReader::open(file).unwrap();
    assert_eq!(reader.schema().field(1).name(), "name");
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert_eq!(arrow::compute::concat_batches(&schema, &batches).unwrap(), batch);
    let other = open("other");
    other.write_all_at(b"PAR1 but nothing else PAR1", 0).unwrap();
    assert_eq!(ParquetReader::open(other).unwrap_err().sqlstate(), "22P04");
}

/// Goal: a flipped bit of a Parquet file gives rows or an error with a code, never a panic or an
/// allocation whose size the file dictates. Method: each bit of whole files, with and without a
/// dictionary, plain and compressed, with texts, numbers, booleans and NULLs; a file that asked for
/// more memory than the machine has would end the test.
#[test]
fn flipped_bits_of_parquet() {
    use ::parquet::arrow::ArrowWriter;
    use ::parquet::basic::Compression;
    use ::parquet::file::properties::WriterProperties;
    use arrow::array::{BooleanArray, Int64Array, RecordBatch, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};
    use cairn_vfs::sync::Arc;
    use cairn_vfs::{File, Fs, MemFs, OpenOptions};

    cairn_rows::parquet::quiet_panics();
    let schema = Arc::new(Schema::new(vec![
        Field::new("k", DataType::Utf8, true),
        Field::new("n", DataType::Int64, false),
        Field::new("b", DataType::Boolean, true),
    ]));
    let texts: StringArray = (0..40).map(|at| (at % 5 > 0).then(|| format!("text {}", at % 9))).collect();
    let numbers: Int64Array = (0..40).map(|at| at * at).collect();
    let truths: BooleanArray = (0..40).map(|at| (at % 3 > 0).then_some(at % 2 == 0)).collect();
    let columns: Vec<arrow::array::ArrayRef> = vec![Arc::new(texts), Arc::new(numbers), Arc::new(truths)];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    for (codec, has_dictionary) in
        [(Compression::UNCOMPRESSED, true), (Compression::UNCOMPRESSED, false), (Compression::LZ4_RAW, true)]
    {
        let properties =
            WriterProperties::builder().set_compression(codec).set_dictionary_enabled(has_dictionary);
        let mut writer =
            ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        let sound = writer.into_inner().unwrap();
        let (mut read, mut refused) = (0, 0);
        let fs = MemFs::new();
        let file: Arc<dyn File> =
            fs.open(std::path::Path::new("flipped"), OpenOptions::create()).unwrap().into();
        file.write_all_at(&sound, 0).unwrap();
        for bit in 0..sound.len() * 8 {
            let (at, mask) = (bit / 8, 1_u8 << (bit % 8));
            file.write_all_at(&[sound[at] ^ mask], at as u64).unwrap();
            let rows = ParquetReader::open(Arc::clone(&file)).and_then(|reader| {
                reader.map(|batch| batch.map(|batch| batch.num_rows())).sum::<Result<usize>>()
            });
            match rows {
                Ok(_) => read += 1,
                Err(error) => {
                    assert!(matches!(error.sqlstate(), "22P04" | "58030"), "bit {bit}: {error}");
                    refused += 1;
                }
            }
            file.write_all_at(&[sound[at]], at as u64).unwrap();
        }
        assert!(read > 100 && refused > 1000, "{codec}: {read} read, {refused} refused");
    }
}

/// Goal: dates and timestamps that cannot be printed, PostgreSQL's infinities among them, are
/// rejected in binary rows. Method: the first and the last printable ones, their neighbours, and
/// the ends of the integers.
#[test]
fn binary_dates_and_moments_have_ends() {
    let code = |kind: &ColumnType, bytes: &[u8]| match binary::get(bytes, kind) {
        Ok(cell) => cell.borrow().to_string(),
        Err(error) => error.sqlstate().to_owned(),
    };
    let kind = ColumnType::new(Type::Date);
    let (first, last) = ("290308-01-01 BC", "294246-12-31");
    let ends = [first, last].map(|text| match Datum::parse(text, &kind) {
        Ok(Datum::Date(days)) => days - 10_957,
        other => panic!("{other:?}"),
    });
    let of = |days: i32| code(&kind, &days.to_be_bytes());
    assert_eq!(ends.map(of), [first, last]);
    for days in [ends[0] - 1, ends[1] + 1, i32::MIN, i32::MAX] {
        assert_eq!(of(days), "22008", "{days}");
    }
    let (first, last) = ("290279-12-22 19:59:05.224193 BC", "294246-12-31 23:59:59.999999");
    for kind in [ColumnType::new(Type::Timestamp), ColumnType::zoned()] {
        let ends = [first, last].map(|text| match Datum::parse(text, &kind) {
            Ok(Datum::Timestamp(micros)) => micros - 10_957 * 86_400_000_000,
            other => panic!("{other:?}"),
        });
        let of = |micros: i64| code(&kind, &micros.to_be_bytes());
        assert_eq!(ends.map(of), [first, last]);
        for micros in [ends[0] - 1, ends[1] + 1, i64::MIN, i64::MAX] {
            assert_eq!(of(micros), "22008", "{micros}");
        }
    }
}

/// Numerics in binary format: digits of base 10,000 from the highest that is not zero to the lowest
/// that is not zero, with the weight of the first. The bytes are those that PostgreSQL 15 writes.
#[test]
fn binary_numerics() {
    let written = |unscaled: i128, scale: u8| {
        let mut bytes = Vec::new();
        binary::put(DatumRef::Decimal { unscaled, scale }, &mut bytes);
        bytes.chunks(2).skip(2).map(|word| i16::from_be_bytes([word[0], word[1]])).collect::<Vec<_>>()
    };
    for (unscaled, scale, words) in [
        (0, 0, vec![0, 0, 0, 0]),
        (0, 4, vec![0, 0, 0, 4]),
        (10_000, 0, vec![1, 1, 0, 0, 1]),
        (100_000_000, 0, vec![1, 2, 0, 0, 1]),
        (10_000, 4, vec![1, 0, 0, 4, 1]),
        (1, 4, vec![1, -1, 0, 4, 1]),
        (1, 8, vec![1, -2, 0, 8, 1]),
        (100_000_001, 4, vec![3, 1, 0, 4, 1, 0, 1]),
        (-12_345, 2, vec![2, 0, 0x4000, 2, 123, 4500]),
        (10_000_000_000, 8, vec![1, 0, 0, 8, 100]),
    ] {
        assert_eq!(written(unscaled, scale), words, "{unscaled} with scale {scale}");
        let mut bytes = Vec::new();
        binary::put(DatumRef::Decimal { unscaled, scale }, &mut bytes);
        let kind = ColumnType::decimal(38, scale);
        let read = binary::get(&bytes[4..], &kind).unwrap();
        assert_eq!(read.borrow(), DatumRef::Decimal { unscaled, scale });
    }
}
