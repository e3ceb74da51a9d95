//! Inputs: every format yields the same store, and bad records are named.

use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::support::{Scratch, binary};

const RECORDS: [(i64, &str); 4] = [(1, "one"), (-2, "comma, \"quote\""), (30, ""), (4, "vier\u{e4}")];

fn parquet_file(nested: bool) -> Vec<u8> {
    let group = if nested { "OPTIONAL GROUP box { REQUIRED INT64 x; }" } else { "" };
    let columns = "REQUIRED INT64 id; OPTIONAL BYTE_ARRAY name (UTF8); OPTIONAL BYTE_ARRAY raw;";
    let schema = Arc::new(parse_message_type(&format!("message places {{ {columns} {group} }}")).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    // Two row groups, so that the reader must move from one to the next.
    for half in RECORDS.chunks(2) {
        let mut group = writer.next_row_group().unwrap();
        let ids: Vec<i64> = half.iter().map(|(id, _)| *id).collect();
        let names: Vec<ByteArray> = half.iter().map(|(_, name)| ByteArray::from(*name)).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&ids, None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&names, Some(&[1, 1]), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let raw = [ByteArray::from(vec![0xff, 0x00])];
        column.typed::<ByteArrayType>().write_batch(&raw, Some(&[1, 0]), None).unwrap();
        column.close().unwrap();
        if let Some(mut column) = group.next_column().unwrap() {
            column.typed::<Int64Type>().write_batch(&[], Some(&[0, 0]), None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn write_inputs(scratch: &Scratch) {
    let mut csv = "id,name\n".to_owned();
    let (mut tsv, mut jsonl, mut bin) = ("id\tname\r\n".to_owned(), String::new(), Vec::new());
    for (id, name) in RECORDS {
        csv += &format!("{id},\"{}\"\n", name.replace('"', "\"\""));
        tsv += &format!("{id}\t{name}\r\n");
        jsonl +=
            &format!("{{\"other\": [1, {{}}], \"name\": {}, \"id\": {id}}}\n\n", serde_json::json!(name));
        bin.extend(binary(id.to_string().as_bytes(), name.as_bytes()));
    }
    scratch.write("in.csv", csv);
    scratch.write("in.tsv", tsv);
    scratch.write("in.jsonl", jsonl);
    scratch.write("in.bin", bin);
    scratch.write("in.parquet", parquet_file(true));
    scratch.write("in.flat.parquet", parquet_file(false));
}

/// Returns the contents of a store, sorted.
fn entries(scratch: &Scratch, store: &str) -> Vec<String> {
    let scanned = scratch.run(&format!("hash scan {store} --json")).ended(0);
    let mut lines: Vec<String> = scanned.text().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Goal: the five input formats yield the same entries, in both store formats, from files and from
/// standard input.
#[test]
fn every_format_gives_the_same_store() {
    let scratch = Scratch::new();
    write_inputs(&scratch);
    let mut expected: Vec<String> = RECORDS
        .iter()
        .map(|(id, name)| serde_json::json!({ "key": id.to_string(), "value": name }).to_string())
        .collect();
    expected.sort();
    for format in ["csv", "tsv", "jsonl", "parquet", "binary"] {
        let file = if format == "binary" { "in.bin".to_owned() } else { format!("in.{format}") };
        let columns = if format == "binary" { "" } else { "--key id --value name" };
        for out in ["o.cairn", "o.spi"] {
            let built = scratch.run(&format!("hash build {file} -o {out} {columns} --json")).ended(0).json();
            assert_eq!((&built[0]["entries"], &built[0]["records"]), (&4.into(), &4.into()), "{built:?}");
            assert_eq!(entries(&scratch, out), expected, "{format} to {out}");
            if format != "parquet" {
                let line = format!("hash build - --format {format} -o piped.cairn {columns}");
                scratch.run_with(&line, &scratch.read(&file)).ended(0);
                assert_eq!(entries(&scratch, "piped.cairn"), expected, "{format} from standard input");
            }
        }
    }
    let left: Vec<String> = scratch.names().into_iter().filter(|name| !name.starts_with("in.")).collect();
    assert_eq!(left, ["o.cairn", "o.cairn.lock", "o.spi", "o.spl", "piped.cairn", "piped.cairn.lock"]);
}

/// Goal: without `--value` the value is the whole record: its line, or for Parquet an object.
/// Columns can also be given by number.
#[test]
fn whole_records_are_kept() {
    let scratch = Scratch::new();
    write_inputs(&scratch);
    for (file, expected) in [
        ("in.csv", "-2,\"comma, \"\"quote\"\"\""),
        ("in.tsv", "-2\tcomma, \"quote\""),
        ("in.flat.parquet", "{\"id\":-2,\"name\":\"comma, \\\"quote\\\"\",\"raw\":null}"),
        ("in.jsonl", "{\"other\": [1, {}], \"name\": \"comma, \\\"quote\\\"\", \"id\": -2}"),
    ] {
        let key = if file == "in.jsonl" { "id" } else { "1" };
        scratch.run(&format!("hash build {file} -o w.cairn --key {key}")).ended(0);
        assert_eq!(scratch.run("hash get w.cairn -- -2").ended(0).text(), expected, "{file}");
    }
    scratch.run("hash build in.parquet -o w.cairn --key id").failed(&["in.parquet", "\"box\""]);
    scratch.run("hash build in.flat.parquet -o w.cairn").ended(0);
    let first = scratch.run("hash get w.cairn 1").ended(0).text();
    assert_eq!(first, "{\"id\":1,\"name\":\"one\",\"raw_hex\":\"ff00\"}");
    scratch
        .run("hash build in.parquet -o w.cairn --key id --value raw")
        .failed(&["row 2", "\"raw\" is null"]);
    scratch.run("hash build in.parquet -o w.cairn --key box").failed(&["nested"]);
}

/// Goal: without `--key` the key is the first column, in every format with columns, whatever the
/// names of the others. Method: a second column named "1".
#[test]
fn the_first_column_is_the_key() {
    let scratch = Scratch::new();
    scratch.write("in.csv", "a,1\nfirst,second\n");
    scratch.write("in.tsv", "a\t1\nfirst\tsecond\n");
    let schema = "message m { REQUIRED BYTE_ARRAY a (UTF8); REQUIRED BYTE_ARRAY 1 (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for text in ["first", "second"] {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&[ByteArray::from(text)], None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    scratch.write("in.parquet", writer.into_inner().unwrap());
    for file in ["in.csv", "in.tsv", "in.parquet"] {
        scratch.run(&format!("hash build {file} -o s.cairn --value 1")).ended(0);
        assert_eq!(scratch.run("hash scan s.cairn").ended(0).text(), "first\tsecond\n", "{file}");
    }
}

/// Goal: numbers in JSON keep their digits. Method: a number that no float can represent.
#[test]
fn json_numbers_keep_their_digits() {
    let scratch = Scratch::new();
    let line =
        b"{\"k\": 12345678901234567890123, \"v\": 1.50}\n{\"k\": \"\\u00e4\", \"v\": {\"a\": [1 ,2]}}\n";
    scratch.run_with("hash build - --format jsonl -o n.cairn --key k --value v", line).ended(0);
    assert_eq!(scratch.run("hash get n.cairn 12345678901234567890123").ended(0).text(), "1.50");
    assert_eq!(scratch.run("hash get n.cairn \u{e4}").ended(0).text(), "{\"a\": [1 ,2]}");
}

/// Goal: a bad record is an error that names the input, the place and the expected content, and
/// leaves the old store and no other file. Method: each kind of damage, over an intact store.
#[test]
fn bad_records_are_named() {
    let scratch = Scratch::new();
    scratch.write("good.csv", "id,name\na,1\n");
    let cases: [(&str, Vec<u8>, &[&str]); 14] = [
        ("csv", b"id,name\na,1\nb\n".to_vec(), &["line 3", "1 columns, expected 2"]),
        ("csv", b"".to_vec(), &["header"]),
        ("csv", b"x,y\n1,2\n".to_vec(), &["no column \"id\"", "x, y"]),
        ("tsv", b"id\tname\na\t1\t2\n".to_vec(), &["line 2", "3 columns"]),
        ("jsonl", b"{\"id\":1,\"name\":2}\n{\"id\":1,\n".to_vec(), &["line 2"]),
        ("jsonl", b"[1]\n".to_vec(), &["line 1", "JSON object"]),
        ("jsonl", b"{\"name\":1}\n".to_vec(), &["line 1", "no field \"id\""]),
        ("jsonl", b"{\"id\":null,\"name\":1}\n".to_vec(), &["line 1", "null"]),
        (
            "jsonl",
            b"{\"id\":\"\\ud800\",\"name\":1}\n".to_vec(),
            &["line 1", "\"id\"", "ud800", "not a text"],
        ),
        ("jsonl", b"{\"id\":1,\"name\":\"a\\udc00\"}\n".to_vec(), &["line 1", "\"name\"", "not a text"]),
        ("jsonl", b"{\"id\":\"\xff\"}\n".to_vec(), &["line 1", "UTF-8"]),
        ("bin", [binary(b"a", b"b"), vec![1, 0, 0]].concat(), &["offset 10", "3 of the 8 bytes"]),
        ("bin", [&[255; 8][..], b"abc"].concat(), &["offset 0", "key ends after 3 of 4294967295 bytes"]),
        ("parquet", b"PAR1 and then nothing of the kind PAR1".to_vec(), &["Parquet"]),
    ];
    for out in ["s.cairn", "s.spi"] {
        scratch.run(&format!("hash build good.csv -o {out} --key id --value name")).ended(0);
        for (extension, content, words) in &cases {
            let file = format!("bad.{extension}");
            scratch.write(&file, content);
            let columns = if *extension == "bin" { "" } else { "--key id --value name" };
            let words: Vec<&str> = words.iter().copied().chain([file.as_str()]).collect();
            scratch.run(&format!("hash build {file} -o {out} {columns}")).failed(&words);
            scratch.run(&format!("hash append {out} {file} {columns}")).failed(&words);
            std::fs::remove_file(scratch.path(&file)).unwrap();
            assert_eq!(scratch.run(&format!("hash scan {out}")).ended(0).text(), "a\t1\n");
        }
    }
    assert_eq!(scratch.names(), ["good.csv", "s.cairn", "s.cairn.lock", "s.spi", "s.spl"]);
}

/// Goal: a streamed value that is cut off is reported as an error of the input, not of the store.
#[test]
fn long_values_that_end_early_are_named() {
    let scratch = Scratch::new();
    let whole = binary(b"long", &vec![b'v'; 3 << 20]);
    scratch.write("whole.bin", &whole);
    scratch.write("cut.bin", &whole[..2 << 20]);
    for out in ["l.cairn", "l.spi"] {
        scratch
            .run(&format!("hash build cut.bin -o {out}"))
            .failed(&["cut.bin, record at offset 0", "of 3145728"]);
        scratch.run(&format!("hash build whole.bin -o {out}")).ended(0);
        assert_eq!(scratch.run(&format!("hash get {out} long")).ended(0).out, &whole[12..]);
    }
}

/// Goal: an unsuitable input is refused before anything is written.
#[test]
fn impossible_inputs_are_refused() {
    let scratch = Scratch::new();
    scratch.write("a.txt", "x");
    scratch.write("a.csv", "k\nx\n");
    scratch.run("hash build a.txt -o s.cairn").failed(&["a.txt", "--format"]);
    scratch.run("hash build missing.csv -o s.cairn").failed(&["missing.csv does not exist"]);
    scratch.run("hash build . --format csv -o s.cairn").failed(&["directory"]);
    scratch.run("hash build - --format parquet -o s.cairn").failed(&["standard input"]);
    scratch.run("hash build - --format binary --key k -o s.cairn").failed(&["--key"]);
    scratch.run("hash build - --format jsonl -o s.cairn").failed(&["--key"]);
    scratch.run("hash build a.csv -o store").failed(&[".cairn, .spi or .spl", "--to"]);
    scratch.run("hash build a.csv -o s.cairn --memory 1MiB").failed(&["--memory 1.0 MiB", "16.0 MiB"]);
    scratch.run("hash build a.csv -o s.cairn --level 5").failed(&["--level 5", "--compression zstd"]);
    scratch.run("hash build a.csv -o s.spi --level 5 --compression snappy").failed(&["--level 5"]);
    scratch.run("hash build a.csv -o s.cairn --block-bytes 4KiB").failed(&["--block-bytes", "Sparkey"]);
    scratch
        .run("hash build a.csv -o s.spi --block-bytes 4KiB")
        .failed(&["--block-bytes 4.0 KiB", "--compression"]);
    scratch.run("hash build a.csv -o s.spi --threads 2").failed(&["--threads 2", "Cairn's own"]);
    scratch
        .run("hash build a.csv -o s.spl --to cairn")
        .failed(&["--to cairn contradicts", "s.spl (sparkey)"]);
    scratch
        .run("hash build a.csv -o s.cairn --to sparkey")
        .failed(&["--to sparkey contradicts", "s.cairn (cairn)"]);
    scratch
        .run("hash build a.csv -o s.spi --compression zstd --block-bytes 2")
        .failed(&["--block-bytes", "16 B to 1.0 GiB"]);
    scratch.run("hash mget s.cairn").failed(&["<KEY>", "<STORE> <KEY... | --keys <FILE>>"]);
    scratch.write("binary", b"SQLite format 3\0\x10\n1\n");
    scratch
        .run("hash build binary --format csv -o s.cairn")
        .failed(&["error: binary, line 1: not text: expected a header line"]);
    scratch
        .run("hash get a.csv x")
        .failed(&["a.csv is not a constant store: it does not begin with CAIRNTBL"]);
    assert_eq!(
        scratch.names().iter().filter(|name| !name.ends_with(".lock")).count(),
        3,
        "{:?}",
        scratch.names()
    );
}

/// Goal: sequential inputs work, for records and for keys: a named pipe, a process substitution,
/// and a pipe by its name under /dev. Parquet needs random access and says so.
#[test]
fn pipes_are_inputs() {
    let scratch = Scratch::new();
    write_inputs(&scratch);
    let expected = {
        scratch.run("hash build in.csv -o file.cairn --key id --value name").ended(0);
        entries(&scratch, "file.cairn")
    };
    let columns = "--key id --value name";
    for script in [
        format!("cairn hash build <(cat in.csv) --format csv -o p.cairn {columns}"),
        format!("cat in.jsonl | cairn hash build /dev/stdin --format jsonl -o p.cairn {columns}"),
        format!("mkfifo fifo.tsv; cat in.tsv >fifo.tsv & cairn hash build fifo.tsv -o p.cairn {columns}"),
        "cairn hash build <(cat in.bin) --format binary -o p.cairn".to_owned(),
        format!("cairn hash build /dev/stdin --format csv -o p.cairn {columns} <in.csv"),
    ] {
        scratch.shell(&script).ended(0);
        assert_eq!(entries(&scratch, "p.cairn"), expected, "{script}");
        std::fs::remove_file(scratch.path("p.cairn")).unwrap();
    }
    let keys = scratch.shell("cairn hash mget file.cairn --keys <(printf '1\\n4\\n')").ended(0).text();
    assert_eq!(keys, "1\tone\n4\tvier\u{e4}\n");
    scratch
        .shell("cairn hash build <(cat in.parquet) --format parquet -o p.cairn --key id")
        .failed(&["Parquet", "expected a file"]);
}

/// Goal: a pipe is neither a store nor a trace: every command that reads or writes one refuses it
/// at once, and the pipe stays. Method: a named pipe whose other end is not open.
#[test]
fn pipes_are_refused_as_stores() {
    let scratch = Scratch::new();
    write_inputs(&scratch);
    scratch.run("hash build in.csv -o file.cairn --key id --value name").ended(0);
    scratch.shell("mkfifo pipe.cairn pipe.spi log.spl pipe").ended(0);
    let names = scratch.names();
    for (words, pipe) in [
        ("hash build in.csv --key id -o pipe.cairn", "pipe.cairn"),
        ("hash build in.csv --key id -o pipe.spi", "pipe.spi"),
        ("hash build in.csv --key id -o log.spi", "log.spl"),
        ("hash convert file.cairn pipe.spi", "pipe.spi"),
        ("hash convert file.cairn log.spi", "log.spl"),
        ("hash rewrite file.cairn -o pipe.cairn", "pipe.cairn"),
        ("hash append pipe.cairn in.csv --key id", "pipe.cairn"),
        ("hash get pipe.cairn 1", "pipe.cairn"),
        ("hash info pipe.spi", "pipe.sp"),
        ("trace stats pipe", "pipe"),
        ("trace import requests.csv -o pipe", "pipe"),
    ] {
        let ran = scratch.shell(&format!("timeout 20 cairn {words}")).ended(1);
        assert!(ran.err.starts_with("error: ") && ran.err.contains(pipe), "{words}: {}", ran.err);
        assert_eq!(scratch.names(), names, "{words}: {}", ran.err);
    }
    let text = "timeout 20 cairn sim run <(echo '{\"seed\": 7}') --show-config";
    assert!(scratch.shell(text).ended(0).text().contains("\"seed\": 7"));
}

/// Goal: a store never replaces its own input. Method: the same name, another spelling of it,
/// either file of a pair, and standard input that the shell has redirected; the input is compared
/// after each.
#[test]
fn an_input_is_not_replaced() {
    let scratch = Scratch::new();
    scratch.write("in.csv", "k\na\n");
    scratch.write("in.spl", "k\na\n");
    scratch.write("in.spi", "k\na\n");
    std::os::unix::fs::symlink("in.csv", scratch.path("link.csv")).unwrap();
    for line in [
        "in.csv -o in.csv --to cairn",
        "in.csv -o ./in.csv --to cairn",
        "link.csv -o in.csv --to cairn",
        "in.spl --format csv -o in.spi",
        "in.spi --format csv -o in.spi",
        "in.spl --format csv -o in --to sparkey",
    ] {
        scratch.run(&format!("hash build {line}")).failed(&["is the input", "-o"]);
    }
    scratch.shell("cairn hash build - --format csv -o in.csv --to cairn <in.csv").failed(&["is the input"]);
    for name in ["in.csv", "in.spl", "in.spi"] {
        assert_eq!(scratch.read(name), b"k\na\n", "{name}");
    }
    assert_eq!(scratch.names(), ["in.csv", "in.spi", "in.spl", "link.csv"]);
}
