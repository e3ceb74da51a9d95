//! Input files that are damaged, begin with a byte order mark, are ambiguous, or contain unusual
//! types.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;

use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::support::Scratch;

/// Builds a store from an input and returns its entries.
fn built(scratch: &Scratch, input: &str, options: &str) -> BTreeMap<String, String> {
    scratch.run(&format!("hash build {input} -o s.cairn {options}")).ended(0);
    let scanned = scratch.run("hash scan s.cairn --json").ended(0).json();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    scanned.iter().map(|entry| (text(&entry["key"]), text(&entry["value"]))).collect()
}

/// Goal: an input that ends within quotes is refused with file and line by every command that reads
/// CSV, and leaves no files. Method: the same file into each command; with the quote closed, it is
/// accepted.
#[test]
fn open_quotes_are_refused_everywhere() {
    let scratch = Scratch::new();
    scratch.write("open.csv", "id,v\n1,\"no end\n2,two\n3,three\n");
    scratch.write("closed.csv", "id,v\n1,\"an end\"\n2,two\n3,three\n");
    scratch.write("trace.csv", "key,op\na,get\nb,\"get\nc,get\n");
    scratch.run("hash build open.csv -o s.cairn --key id --value v").failed(&["open.csv, line 2", "quote"]);
    scratch.run("hash build open.csv -o s.spi --key id").failed(&["open.csv, line 2", "quote"]);
    scratch.run("kv load s open.csv --create --key id --value v").failed(&["open.csv, line 2", "quote"]);
    scratch.run("trace import trace.csv -o t").failed(&["trace.csv, line 3", "quote"]);
    let sql = |command: &str| {
        scratch.run_with("sql", format!("create table t (id text, v text);\n{command}\n").as_bytes())
    };
    for command in [
        ".import open.csv new",
        ".import --header open.csv t",
        "\\copy t from 'open.csv' (format csv, header)",
    ] {
        sql(command).failed(&["open.csv", "line 2", "unterminated CSV quoted field"]);
    }
    let ran = sql("copy t from 'open.csv' (format csv, header);").ended(1);
    assert!(ran.err.contains("unterminated CSV quoted field") && ran.err.contains("line 2"), "{}", ran.err);
    let names = scratch.names();
    assert!(
        !names.iter().any(|name| ["t", "s.cairn", "s.spi", "s.spl"].contains(&name.as_str())),
        "{names:?}"
    );
    assert_eq!(built(&scratch, "closed.csv", "--key id --value v").len(), 3);
    // In TSV a quote is an ordinary character.
    scratch.write("open.tsv", "id\tv\n1\t\"no end\n2\ttwo\n");
    assert_eq!(built(&scratch, "open.tsv", "--key id --value v")["1"], "\"no end");
}

/// Goal: a byte order mark is skipped in all inputs: CSV, TSV, JSON Lines, trace imports, SQL
/// scripts, imports, lists of keys. Method: one of each that begins with it.
#[test]
fn byte_order_marks_are_skipped() {
    let scratch = Scratch::new();
    let marked = |name: &str, text: &str| scratch.write(name, format!("\u{feff}{text}"));
    marked("a.csv", "id,v\n1,one\n");
    marked("a.tsv", "id\tv\n1\tone\n");
    marked("a.jsonl", "{\"id\":\"1\",\"v\":\"one\"}\n");
    for input in ["a.csv", "a.tsv", "a.jsonl"] {
        assert_eq!(
            built(&scratch, input, "--key id --value v"),
            BTreeMap::from([("1".to_owned(), "one".to_owned())]),
            "{input}"
        );
    }
    marked("keys", "1\n");
    assert_eq!(scratch.run("hash mget s.cairn --keys keys").ended(0).text(), "1\tone\n");
    marked("batch", "put a 1\n");
    scratch.run("kv batch s batch --create").ended(0);
    assert_eq!(scratch.run("kv get s a").ended(0).text(), "1");
    marked("requests.csv", "key,op\na,get\n");
    marked("pages", "7\n8\n");
    scratch.run("trace import requests.csv -o t1").ended(0);
    scratch.run("trace import pages -o t2").ended(0);
    marked("schema.sql", "create table n (id int);\ninsert into n values (1);\n");
    scratch.run("sql my.db -f schema.sql").ended(0);
    let script =
        "\u{feff}.import a.csv made\n.import --header a.csv n2\n.mode csv\nselect id, v from made;\n";
    let ran = scratch.run_with("sql my.db", script.as_bytes()).ended(0);
    assert_eq!(ran.text(), "id,v\n1,one\n");
    marked("rows.csv", "5\n");
    let ran = scratch
        .run_with("sql my.db", b".import rows.csv n\n.mode csv\nselect * from n order by 1;\n")
        .ended(0);
    assert_eq!(ran.text(), "id\n1\n5\n");
    marked("config.json", "{\"seed\":3}");
    scratch.run("sim run config.json --show-config").ended(0);
}

/// Goal: a column name that occurs twice is refused, but either column can be given by number.
/// Method: CSV, TSV, JSON Lines and trace imports with a duplicate name.
#[test]
fn two_columns_of_a_name_are_an_error() {
    let scratch = Scratch::new();
    scratch.write("a.csv", "id,v,v\n1,one,two\n");
    scratch.write("a.tsv", "id\tv\tv\n1\tone\ttwo\n");
    for input in ["a.csv", "a.tsv"] {
        let build = format!("hash build {input} -o s.cairn --key id");
        scratch.run(&format!("{build} --value v")).failed(&[input, "two columns", "number 2 and number 3"]);
        scratch.run(&format!("kv load s {input} --create --key v --value id")).failed(&["two columns"]);
        assert_eq!(built(&scratch, input, "--key id --value 3")["1"], "two");
    }
    scratch.write("a.jsonl", "{\"id\":\"1\",\"v\":1}\n{\"id\":\"2\",\"v\":1,\"v\":2}\n");
    scratch
        .run("hash build a.jsonl -o t.cairn --key id --value v")
        .failed(&["a.jsonl, line 2", "\"v\" is given twice"]);
    scratch.write("t.csv", "key,op,key\na,get,b\n");
    scratch.run("trace import t.csv -o t").failed(&["t.csv, line 1", "duplicate column key"]);
}

/// Goal: a header is parsed like the rows. Method: names that contain commas, quotes and line
/// breaks, in CSV and with tabs.
#[test]
fn headers_of_imports_are_csv() {
    let scratch = Scratch::new();
    scratch.write("a.csv", "\"a, b\",\"say \"\"c\"\"\",\"d\ne\"\r\n1,2,3\r\n");
    scratch.write("a.tsv", "\"a\tb\"\tc\n1\t2\n");
    let script = ".import a.csv t\n.import --tabs a.tsv u\n.mode csv\nselect * from t;\nselect * from u;\n";
    let ran = scratch.run_with("sql", script.as_bytes()).ended(0);
    assert_eq!(ran.text(), "\"a, b\",\"say \"\"c\"\"\",\"d\ne\"\n1,2,3\na\tb,c\n1,2\n");
}

/// Goal: line breaks within literals are preserved, however the script arrives. Method: CRLF, LF
/// and CR within literals, in a file, a pipe and an argument; COPY data with CRLF.
#[test]
fn line_breaks_of_literals_stay() {
    let scratch = Scratch::new();
    let script = "select encode('a\r\nb\rc\nd'::text::bytea, 'hex');\r\n";
    let expected = "610d0a620d630a64\n";
    scratch.write("script.sql", script);
    assert_eq!(scratch.run("sql --csv -t -f script.sql").ended(0).text(), expected);
    assert_eq!(scratch.run_with("sql --csv -t", script.as_bytes()).ended(0).text(), expected);
    let mut command = scratch.command("sql --csv -t -c");
    let ran = command.arg(script.trim_end()).output().unwrap();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), expected);
    let copy = "create table t (a int, b text);\r\ncopy t from stdin;\r\n1\tx\r\n2\ty\r\n\\.\r\n.mode csv\r\nselect a, b, length(b) from t;\r\n";
    assert_eq!(scratch.run_with("sql", copy.as_bytes()).ended(0).text(), "a,b,length\n1,x,1\n2,y,1\n");
}

/// Writes a Parquet file with two columns.
fn write_parquet<K: DataType, V: DataType>(
    scratch: &Scratch,
    schema: &str,
    codec: Compression,
    keys: &[K::T],
    values: &[V::T],
) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(codec).build());
    let file = fs::File::create(scratch.path("made.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<K>().write_batch(keys, None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<V>().write_batch(values, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

fn texts(texts: &[&str]) -> Vec<ByteArray> {
    texts.iter().map(|text| ByteArray::from(*text)).collect()
}

/// Goal: both readers support every Parquet compression. Method: a file with each, read into a
/// store and into a table.
#[test]
fn all_compressions_of_parquet_are_read() {
    let scratch = Scratch::new();
    let keys: Vec<String> = (0..300).map(|n| format!("key {n}")).collect();
    let keys = texts(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    let values: Vec<i32> = (0..300).collect();
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ] {
        let schema = "message t { REQUIRED BYTE_ARRAY k (UTF8); REQUIRED INT32 n; }";
        write_parquet::<ByteArrayType, Int32Type>(&scratch, schema, codec, &keys, &values);
        let found = built(&scratch, "made.parquet", "--key k --value n");
        assert_eq!((found.len(), found["key 299"].as_str()), (300, "299"), "{codec}");
        let script = "create table t (k text, n int);\n\\copy t from made.parquet (format parquet)\n.mode csv\nselect count(*), sum(n) from t;\n";
        let ran = scratch.run_with("sql -t", script.as_bytes()).ended(0);
        assert_eq!(ran.text(), "300,44850\n", "{codec}");
    }
}

/// Goal: timestamps in the old 96-bit form become keys with nanosecond precision, even in years
/// beyond the range of 64-bit nanoseconds; a table stores them with microsecond precision. Method:
/// times a nanosecond and a microsecond apart, and the year 3000.
#[test]
fn old_times_of_parquet_keep_their_nanoseconds() {
    let scratch = Scratch::new();
    let time = |day: u32, nanos: u64| {
        let mut time = Int96::new();
        time.set_data(nanos as u32, (nanos >> 32) as u32, day);
        time
    };
    // 2000-01-01 is the Julian day 2451545, 3000-01-01 is 2816788.
    let times = [time(2_451_545, 1_000), time(2_451_545, 1_001), time(2_451_545, 2_000), time(2_816_788, 0)];
    let schema = "message t { REQUIRED INT96 t; REQUIRED BYTE_ARRAY v (UTF8); }";
    let codec = Compression::UNCOMPRESSED;
    write_parquet::<Int96Type, ByteArrayType>(&scratch, schema, codec, &times, &texts(&["a", "b", "c", "d"]));
    let found = built(&scratch, "made.parquet", "--key t --value v");
    let expected = [
        ("32503680000000000000", "d"),
        ("946684800000001000", "a"),
        ("946684800000001001", "b"),
        ("946684800000002000", "c"),
    ];
    assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let script = "create table t (t timestamp, v text);\n\\copy t from made.parquet (format parquet)\n.mode csv\nselect t from t order by v;\n";
    let ran = scratch.run_with("sql -t", script.as_bytes()).ended(0);
    assert_eq!(
        ran.text(),
        "2000-01-01 00:00:00.000001\n2000-01-01 00:00:00.000001\n2000-01-01 00:00:00.000002\n3000-01-01 00:00:00\n"
    );
}

/// Goal: both readers refuse a duplicate column name in a Parquet file. Method: a file that only
/// other programs write; a column by name, by number, and as part of a whole record.
#[test]
fn two_columns_of_a_name_in_parquet() {
    let scratch = Scratch::new();
    let schema = "message t { REQUIRED BYTE_ARRAY a (UTF8); REQUIRED INT32 a; }";
    write_parquet::<ByteArrayType, Int32Type>(
        &scratch,
        schema,
        Compression::UNCOMPRESSED,
        &texts(&["x"]),
        &[7],
    );
    for options in ["--key a --value 2", "--key 1 --value a", "--key 1"] {
        scratch
            .run(&format!("hash build made.parquet -o s.cairn {options}"))
            .failed(&["made.parquet", "two columns"]);
    }
    assert_eq!(built(&scratch, "made.parquet", "--key 1 --value 2")["x"], "7");
    let script = "create table t (a text);\n\\copy t from made.parquet (format parquet)\n";
    scratch.run_with("sql", script.as_bytes()).failed(&["made.parquet", "two columns"]);
}

/// Creates a Parquet file with several types, using the command itself.
fn parquet(scratch: &Scratch) -> Vec<u8> {
    let script = "create table t (k text, a int, b double precision, c timestamp, d numeric(9,2), e boolean, f bytea);
        insert into t select 'key ' || n, n, n / 4.0, '2024-01-01'::timestamp + n * interval '1 hour', n / 100.0, n % 2 = 0, decode('00ff', 'hex') from generate_series(1, 30) s(n);
        insert into t values ('nan', null, 'NaN', null, null, null, null), ('more', 1, '-Infinity', null, null, true, null), ('much', 1, 'Infinity', null, null, true, null);
        \\copy t to small.parquet (format parquet)\n";
    let script = script.replace("\n        ", "\n");
    scratch.run_with("sql", script.as_bytes()).ended(0);
    scratch.read("small.parquet")
}

/// Goal: in whole records, values that JSON cannot represent become strings and not null; decimals
/// keep their digits. Method: a file that the command wrote, read back.
#[test]
fn whole_records_keep_values_that_json_lacks() {
    let scratch = Scratch::new();
    parquet(&scratch);
    let found = built(&scratch, "small.parquet", "--key k");
    assert_eq!(found.len(), 33);
    let record = |key: &str| -> serde_json::Value { serde_json::from_str(&found[key]).unwrap() };
    assert_eq!(record("nan")["b"], "NaN");
    assert_eq!(record("more")["b"], "-Infinity");
    assert_eq!(record("much")["b"], "Infinity");
    assert_eq!(record("nan")["a"], serde_json::Value::Null);
    assert!(found["key 7"].contains("\"d\":0.07,"), "{}", found["key 7"]);
    assert_eq!((&record("key 7")["b"], &record("key 7")["f_hex"]), (&1.75.into(), &"00ff".into()));
}

/// Goal: no flipped bit of a Parquet file makes a command panic, hang, or allocate memory at the
/// file's choice: the result is rows, or an error of one line. Method: each bit of a whole file
/// (each 997th without CAIRN_SOAK), into the two commands, with a memory limit. The readers have
/// their own tests for each bit.
#[test]
fn flipped_bits_of_parquet_are_errors() {
    let scratch = Scratch::new();
    let sound = parquet(&scratch);
    let step = if std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0") { 1 } else { 997 };
    scratch.write("load.sql", "create table t (k text, a int, b double precision, c timestamp, d numeric(9,2), e boolean, f bytea);\n\\copy t from flipped.parquet (format parquet)\n");
    let mut read = [0, 0];
    for bit in (0..sound.len() * 8).step_by(step) {
        let mut flipped = sound.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(scratch.path("flipped.parquet"), &flipped).unwrap();
        for (at, line) in
            ["hash build flipped.parquet -o s.cairn --key k", "sql -f load.sql"].iter().enumerate()
        {
            let program = env!("CARGO_BIN_EXE_cairn");
            let mut command = Command::new("bash");
            command.args(["-c", &format!("ulimit -v 4000000; exec timeout 60 {program} {line}")]);
            let ran = command.current_dir(scratch.path("")).stdin(Stdio::null()).output().unwrap();
            let err = String::from_utf8(ran.stderr).unwrap();
            match ran.status.code() {
                Some(0) => read[at] += 1,
                Some(1) => assert!(
                    err.starts_with("error: ") && !err.contains("panicked"),
                    "bit {bit}, {line}: {err}"
                ),
                code => panic!("bit {bit}, {line}: {code:?} {err}"),
            }
        }
    }
    assert!(read.iter().all(|read| *read > 0), "{read:?}");
}
