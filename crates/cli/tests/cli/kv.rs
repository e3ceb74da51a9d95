//! Key-value stores: reading, writing, importing, exporting, maintenance.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::Stdio;
use std::sync::Arc;

use cairn_kv::{Db, KeyspaceOptions, MergeOperator};

use crate::support::{Scratch, binary};

/// Returns keys and values with everything that text formats may mishandle.
fn awkward() -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut entries: BTreeMap<Vec<u8>, Vec<u8>> = [
        (&b""[..], &b"empty key"[..]),
        (b"empty value", b""),
        (b"comma, \"quote\"", b"\"\""),
        (b"line\nbreak\r\n", b"\r"),
        (b"tab\t", b"\\N"),
        (b"\xff\x00\x80", b"\x00\xff\n,\""),
        (b"\xef\xbb\xbfmark", b"\xef\xbb\xbf"),
        (b" blanks ", b"  "),
        (b"123", b"-4.50"),
        ("ä\u{2028}€".as_bytes(), "\u{1f600}".as_bytes()),
        (b"#", b"null"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_vec(), value.to_vec()))
    .collect();
    entries.extend((0..=255).map(|byte| (vec![byte], vec![byte, b'x', byte])));
    // Longer than the write buffer.
    entries.insert(b"long".to_vec(), (0..3_000_000_u32).flat_map(|n| n.to_be_bytes()).collect());
    entries
}

fn binary_file(entries: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    entries.iter().flat_map(|(key, value)| binary(key, value)).collect()
}

/// Creates a small store called `s` with a second keyspace.
fn store() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("in.tsv", "key\tvalue\na\t1\nab\t2\nb\t3\nba\t4\nc\t5\n");
    scratch.run("kv load s in.tsv --create").ended(0);
    scratch.run("kv put s a other --keyspace k --create").ended(0);
    scratch
}

/// Returns the names of files in a subdirectory of the scratch directory.
fn files(scratch: &Scratch, dir: &str, ending: &str) -> Vec<String> {
    let names = std::fs::read_dir(scratch.path(dir)).unwrap();
    let mut names: Vec<String> = names.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(ending));
    names.sort();
    names
}

/// Goal: single keys can be written, read and deleted; exit codes distinguish found, not found and
/// errors; bytes can be given in hexadecimal; writes persist with every durability.
#[test]
fn single_keys() {
    let scratch = Scratch::new();
    for durability in ["memory", "buffered", "sync"] {
        let at = format!("--durability {durability}");
        scratch.run(&format!("kv put s key {durability} --create {at}")).ended(0);
        assert_eq!(scratch.run("kv get s key").ended(0).text(), durability);
        scratch.run(&format!("kv put s ff00 80 --hex {at}")).ended(0);
        let get = scratch.run("kv get s --hex FF00").ended(0).text();
        assert_eq!(get, "80\n");
        assert_eq!(
            scratch.run(&format!("kv delete s key nope key --json {at}")).ended(2).text(),
            "{\"store\":\"s\",\"keyspace\":\"default\",\"deleted\":1,\"absent\":[{\"key\":\"nope\"}]}\n"
        );
        assert_eq!(scratch.run("kv get s key").ended(2).out, b"");
        scratch.run(&format!("kv delete s ff00 --hex {at}")).ended(0);
    }
    scratch.run_with("kv put s raw --value-file -", b"\x00\xff\n").ended(0);
    assert_eq!(scratch.run("kv get s raw --read-only").ended(0).out, b"\x00\xff\n");
    assert_eq!(
        scratch.run("kv get s raw --json").ended(0).text(),
        "{\"key\":\"raw\",\"value_hex\":\"00ff0a\"}\n"
    );
    assert_eq!(scratch.run("kv get s no --json").ended(2).text(), "{\"key\":\"no\",\"value\":null}\n");
    let absent = scratch.run("kv delete s no raw").ended(2).text();
    assert_eq!(absent, "not there: no\ndeleted 1 key from s\n");
    scratch.run("kv get s abc --hex").failed(&["hexadecimal"]);
    scratch.run("kv put s a").failed(&["VALUE"]);
    scratch.run("kv put s a b --ttl 5").failed(&["--create"]);
}

/// Goal: scans respect range and order. Method: every way to give a range, both directions, with
/// and without values, against the contents of the store.
#[test]
fn scans_keep_to_their_range() {
    let scratch = store();
    let scan = |line: &str| scratch.run(&format!("kv scan s {line}")).ended(0).text();
    assert_eq!(scan(""), "a\t1\nab\t2\nb\t3\nba\t4\nc\t5\n");
    assert_eq!(scan("--reverse --limit 2"), "c\t5\nba\t4\n");
    assert_eq!(scan("--from ab --to ba --keys-only"), "ab\nb\n");
    assert_eq!(scan("--from ab --to ba --keys-only --reverse"), "b\nab\n");
    assert_eq!(
        scan("--prefix b --json"),
        "{\"key\":\"b\",\"value\":\"3\"}\n{\"key\":\"ba\",\"value\":\"4\"}\n"
    );
    assert_eq!(scan("--prefix 62 --reverse --hex"), "6261\t34\n62\t33\n");
    assert_eq!(scan("--prefix 62 --hex --json --limit 1"), "{\"key_hex\":\"62\",\"value_hex\":\"33\"}\n");
    assert_eq!(scan("--keys-only --json --limit 1"), "{\"key\":\"a\"}\n");
    assert_eq!(scan("--keyspace k"), "a\tother\n");
    for empty in ["--limit 0", "--from b --to b", "--from c --to a", "--from d", "--prefix x"] {
        assert_eq!(scan(empty), "", "{empty}");
    }
    scratch.run("kv scan s --prefix a --from b").failed(&["--prefix"]);
}

/// Goal: an output name means the same as in other programs: a pipe gets the bytes and stays, a
/// link is followed, - is standard output, and errors name the file. Method: an export and the
/// simulator's output, which use different code to write, to each kind.
#[test]
fn outputs_are_written_to_the_named_files() {
    let scratch = store();
    let csv = scratch.run("kv dump s --format csv").ended(0).text();
    let conf = {
        scratch.run("sim run --show-config --export conf").ended(0);
        scratch.read("conf")
    };
    let commands =
        [("kv dump s --format csv -o", csv.as_bytes()), ("sim run --show-config --export", &conf[..])];
    for (command, content) in commands {
        let ran = scratch.shell(&format!(
            "rm -f pipe && mkfifo pipe && (timeout 30 cat pipe > got & cairn {command} pipe > /dev/null; wait) && test -p pipe"
        ));
        assert_eq!((ran.code, &scratch.read("got")[..]), (0, content), "{command}: {}", ran.err);
        let ran = scratch.shell(&format!(
            "rm -rf d link && mkdir d && echo old > d/f && ln -s d/f link && cairn {command} link > /dev/null && test -L link"
        ));
        assert_eq!((ran.code, &scratch.read("d/f")[..]), (0, content), "{command}: {}", ran.err);
        scratch.run(&format!("{command} d")).failed(&["d is a directory, expected a file"]);
    }
    scratch.run("kv dump s --format csv -o no/x").failed(&["error: no does not exist"]);
    assert_eq!(scratch.run("kv dump s --format csv -o -").ended(0).text(), csv);
    scratch.run("kv dump s -o -").failed(&["--format"]);
    scratch.run("kv dump s --format csv -o - --json").failed(&["--json"]);
    let names = scratch.names();
    assert!(!names.iter().any(|name| name == "-" || name.contains(".tmp")), "{names:?}");
}

/// Goal: `load` reads back the output of `dump` for arbitrary bytes. Method: awkward entries
/// through each format, by file and by pipe, compared as binary dumps of the copy.
#[test]
fn dumps_are_read_back() {
    let scratch = Scratch::new();
    let entries = awkward();
    scratch.write("in.bin", binary_file(&entries));
    scratch.run("kv load s in.bin --create").ended(0);
    for (format, extension) in [("csv", "csv"), ("jsonl", "jsonl"), ("parquet", "parquet"), ("binary", "bin")]
    {
        let file = format!("d.{extension}");
        let dumped = scratch.run(&format!("kv dump s -o {file} --json")).ended(0).json();
        assert_eq!(dumped[0]["entries"], entries.len());
        let loaded = scratch.run(&format!("kv load c-{format} {file} --create --json")).ended(0).json();
        assert_eq!(loaded[0]["records"], entries.len());
        let copy = scratch.run(&format!("kv dump c-{format} --format binary")).ended(0).out;
        assert!(copy == binary_file(&entries), "{format}");
        // Equal to the file, so the checks of the file also cover the pipe.
        let piped = scratch.run(&format!("kv dump s --format {format}")).ended(0).out;
        assert!(piped == scratch.read(&file), "{format}");
    }
    let part = scratch.run("kv dump s --format csv --from 23 --to 24 --hex").ended(0).text();
    assert_eq!(part, "key,value\n#,#x#\n");
    // An empty store is dumped to an empty file of every format, which is loaded as an empty store.
    scratch.run("kv put e a 1 --create").ended(0);
    scratch.run("kv delete e a").ended(0);
    for extension in ["csv", "jsonl", "parquet", "bin"] {
        scratch.run(&format!("kv dump e -o e.{extension}")).ended(0);
        let loaded = scratch.run(&format!("kv load e2 e.{extension} --create --json")).ended(0).json();
        assert_eq!(loaded[0]["records"], 0, "{extension}");
    }
    scratch.run("kv dump s").failed(&["--format"]);
    scratch.run("kv dump s -o d.xls").failed(&["d.xls", "--format"]);
    assert!(scratch.names().iter().all(|name| !name.ends_with(".tmp")), "{:?}", scratch.names());
}

/// Goal: records of other programs are imported by column, and whole if no value column is named,
/// from files and standard input; a bad record is named, and earlier records stay.
#[test]
fn records_are_loaded_by_their_columns() {
    let scratch = Scratch::new();
    scratch.write("in.csv", "id,name\n7,\"seven, of nine\"\n8,eight\n");
    scratch.run("kv load s in.csv --create").failed(&["in.csv", "\"key\"", "id, name"]);
    scratch.run("kv load s in.csv --create --key id --value name").ended(0);
    assert_eq!(scratch.run("kv get s 7").ended(0).text(), "seven, of nine");
    scratch.run("kv load s in.csv --key 1").ended(0);
    assert_eq!(scratch.run("kv get s 7").ended(0).text(), "7,\"seven, of nine\"");
    let line = "{\"id\": 9, \"x\": [1]}";
    scratch.run_with("kv load s - --format jsonl --key id", line.as_bytes()).ended(0);
    assert_eq!(scratch.run("kv get s 9").ended(0).text(), line);
    let hex = "{\"key_hex\":\"ff\",\"value\":\"v\"}\n{\"key\":\"k\",\"value_hex\":\"fe\"}\n";
    scratch.run_with("kv load s - --format jsonl", hex.as_bytes()).ended(0);
    assert_eq!(scratch.run("kv get s ff --hex").ended(0).text(), "76\n");
    assert_eq!(scratch.run("kv get s k").ended(0).out, b"\xfe");
    for (wrong, words) in [
        ("{\"key_hex\":\"f\",\"value\":\"v\"}", ["line 1", "hexadecimal"]),
        ("{\"key_hexx\":\"ff\",\"value\":\"v\"}", ["line 1", "\"key\""]),
    ] {
        scratch.run_with("kv load s - --format jsonl", wrong.as_bytes()).failed(&words);
    }
    // A batch has 1 MiB, so the first of these records fill one.
    let many: String = (0..3000).map(|n| format!("{n},{n:0500}\n")).collect();
    scratch.write("cut.csv", format!("key,value\n{many}torn\n"));
    scratch.run("kv load t cut.csv --create").failed(&["cut.csv", "line 3002"]);
    assert_eq!(scratch.run("kv get t 0").ended(0).text().len(), 500);
    let huge = [&[1, 0, 0, 0][..], &[0xff; 4], b"key and the first bytes"].concat();
    scratch.run_with("kv load t - --format binary", &huge).failed(&["4294967295 bytes"]);
    scratch
        .run_with("kv load t - --format binary", &binary(b"k", &[7; 2 << 20])[..1000])
        .failed(&["offset 0"]);
}

/// Goal: a batch is atomic. Method: every operation, both forms, two keyspaces; then a batch whose
/// last line is invalid, of which nothing is visible.
#[test]
fn batches_are_atomic() {
    let scratch = store();
    let lines = "# comment\nput x 1 2\n\ndelete a\nput\twith blank\tv\ndelete-range b c\n\
        {\"op\":\"put\",\"key\":\"y\",\"value\":\"other\",\"keyspace\":\"k\"}\n";
    let done = scratch.run_with("kv batch s --json --durability sync", lines.as_bytes()).ended(0).json();
    assert_eq!(done[0]["writes"], 5);
    let all = "ab\t2\nc\t5\nwith blank\tv\nx\t1 2\n";
    assert_eq!(scratch.run("kv scan s").ended(0).text(), all);
    assert_eq!(scratch.run("kv scan s --keyspace k").ended(0).text(), "a\tother\ny\tother\n");
    for (wrong, words) in [
        ("put z 1\nfrobnicate", ["line 2", "frobnicate"]),
        ("put z 1\nput z", ["line 2", "no value"]),
        ("put z 1\nmerge z 1", ["line 2", "merge operator"]),
        ("put z 1\n{\"op\":\"put\",\"key\":\"z\",\"value\":\"1\",\"keyspace\":\"no\"}", ["line 2", "\"no\""]),
        ("put z 1\ndelete-range b a", ["line 2", "range"]),
    ] {
        scratch.run_with("kv batch s", wrong.as_bytes()).failed(&words);
    }
    assert_eq!(scratch.run("kv scan s").ended(0).text(), all);
    scratch.write("hex.txt", "put 00ff 0a\n");
    scratch.run("kv batch s hex.txt --hex").ended(0);
    assert_eq!(scratch.run("kv get s --hex 00ff").ended(0).text(), "0a\n");
}

/// Goal: every command opens keyspaces with the merge operator and the time to live that they were
/// created with, without options. Method: a counter, a log and expiring entries, created here and
/// read back from tables and from the log.
#[test]
fn keyspaces_are_opened_with_their_options() {
    let scratch = Scratch::new();
    let merge = |keyspace: &str, lines: &str, more: &str| {
        scratch.run_with(&format!("kv batch s --keyspace {keyspace} {more}"), lines.as_bytes())
    };
    merge("default", "merge 6e 0500000000000000", "--hex --create --merge-operator add-u64").ended(0);
    merge("log", "merge k one", "--create --merge-operator append").ended(0);
    scratch.run("kv put s a 1 --keyspace brief --create --ttl 1000000").ended(0);
    let both = "--create --merge-operator append --ttl 5";
    merge("both", "merge k one", both).failed(&["ttl and merge_operator"]);
    merge("default", "merge 6e 0600000000000000", "--hex").ended(0);
    merge("log", "merge k ,two", "").ended(0);
    for _ in 0..2 {
        assert_eq!(scratch.run("kv get s 6e --hex").ended(0).text(), "0b00000000000000\n");
        assert_eq!(scratch.run("kv scan s --keyspace log").ended(0).text(), "k\tone,two\n");
        let stats = &scratch.run("kv stats s --json").ended(0).json()[0];
        let made =
            |at: usize| (&stats["keyspaces"][at]["merge_operator"], &stats["keyspaces"][at]["ttl_secs"]);
        assert_eq!(made(0), (&"cairn.add_u64".into(), &serde_json::Value::Null));
        assert_eq!(made(1), (&"cairn.append".into(), &serde_json::Value::Null));
        assert_eq!(made(2), (&serde_json::Value::Null, &1_000_000.into()));
        assert_eq!(scratch.run("kv get s a --keyspace brief").ended(0).text(), "1");
        for keyspace in ["default", "log", "brief"] {
            scratch.run(&format!("kv compact s --keyspace {keyspace}")).ended(0);
        }
    }
    let other = merge("default", "merge 6e 01", "--hex --merge-operator append");
    other.failed(&["cairn.add_u64", "cairn.append"]);
    for words in ["cairn.add_u64", "live   1000000 seconds"] {
        assert!(scratch.run("kv stats s").ended(0).text().contains(words), "{words}");
    }
}

/// Goal: merged values can be read later, even if the keyspace was created without an operator.
/// Method: operands for such a keyspace, read without naming the operator, and with another one; a
/// keyspace with the operator of another program.
#[test]
fn operators_are_kept() {
    let scratch = Scratch::new();
    scratch.run("kv put s a 1 --create").ended(0);
    scratch.run("kv get s a --merge-operator append").ended(0);
    let stats =
        || scratch.run("kv stats s --json").ended(0).json()[0]["keyspaces"][0]["merge_operator"].clone();
    assert!(stats().is_null(), "readers change nothing");
    scratch.run_with("kv batch s --merge-operator append", b"merge zz one").ended(0);
    assert_eq!(stats(), "cairn.append");
    scratch.run_with("kv batch s", b"merge zz ,two").ended(0);
    scratch.run("kv compact s").ended(0);
    assert_eq!(scratch.run("kv scan s").ended(0).text(), "a\t1\nzz\tone,two\n");
    scratch.run("kv put s b 2 --merge-operator add-u64").failed(&["cairn.append", "cairn.add_u64"]);

    #[derive(Debug)]
    struct Own;
    impl MergeOperator for Own {
        fn name(&self) -> &str {
            "a program's"
        }
        fn merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Result<Vec<u8>, String> {
            Ok(b"merged".to_vec())
        }
    }
    let options = KeyspaceOptions { merge_operator: Some(Arc::new(Own)), ..KeyspaceOptions::default() };
    let db = Db::builder(scratch.path("p")).default_keyspace(options).open().unwrap();
    db.merge("m", "1").unwrap();
    drop(db);
    scratch.run("kv get p m").failed(&["\"m\"", "merge_operator", "--merge-operator"]);
    scratch.run_with("kv batch p", b"merge m 1").failed(&["no known merge operator", "--merge-operator"]);
}

/// Goal: a requested time to live is never ignored. Method: keyspaces created without one and with
/// one, then written with different ones.
#[test]
fn times_to_live_are_as_made() {
    let scratch = store();
    scratch.run("kv put s c d --ttl 1 --create").failed(&["--ttl 1", "\"default\"", "forever"]);
    assert_eq!(scratch.run("kv get s c").ended(0).text(), "5");
    scratch.run("kv put s c d --keyspace brief --ttl 1000 --create").ended(0);
    scratch.run("kv put s c e --keyspace brief --ttl 1000 --create").ended(0);
    scratch.run("kv put s c f --keyspace brief --ttl 999 --create").failed(&["--ttl 999", "1000 seconds"]);
    assert_eq!(scratch.run("kv get s c --keyspace brief").ended(0).text(), "e");
}

/// Goal: compaction removes deleted entries, only in its range and its keyspace. Method: entries
/// counted before and after.
#[test]
fn compaction_removes_what_is_deleted() {
    let scratch = store();
    scratch.run("kv compact s").ended(0);
    scratch.run("kv delete s a ab c").ended(0);
    let compacted = &scratch.run("kv compact s --json").ended(0).json()[0];
    assert_eq!(compacted["entries_after"], 2, "{compacted}");
    assert!(compacted["bytes_after"].as_u64() < compacted["bytes_before"].as_u64(), "{compacted}");
    assert_eq!(scratch.run("kv scan s").ended(0).text(), "b\t3\nba\t4\n");
    assert_eq!(scratch.run("kv scan s --keyspace k").ended(0).text(), "a\tother\n");
    scratch.run("kv compact s --from b --to a").ended(0);
    let text = scratch.run("kv compact s --prefix b").ended(0).text();
    assert!(text.starts_with("compacted s: ") && text.contains("2 now"), "{text}");
    let stats = &scratch.run("kv stats s --json").ended(0).json()[0];
    assert_eq!(stats["keyspaces"][0]["table_entries"], 2, "{stats}");
}

/// Goal: a checkpoint and each backup is a complete copy of the store at its time, even after older
/// backups are purged. Method: three states, copied by both, with the store closed and while a
/// program has it open.
#[test]
fn copies_are_stores_as_they_were() {
    let scratch = store();
    let get = |store: &str| scratch.run(&format!("kv get {store} day")).ended(0).text();
    // Create a table, which only the first backup has to copy.
    scratch.run("kv compact s").ended(0);
    for day in ["monday", "tuesday", "wednesday"] {
        scratch.run(&format!("kv put s day {day}")).ended(0);
        let beside = (day == "tuesday").then(|| Db::open(scratch.path("s")).unwrap());
        let flag = match &beside {
            Some(db) => {
                db.put("unflushed", "as well").unwrap();
                scratch.run("kv checkpoint s c").failed(&["already open", "--read-only"]);
                scratch.run("kv backup create s b").failed(&["already open", "--read-only"]);
                "--read-only"
            }
            None => "",
        };
        scratch.run(&format!("kv checkpoint s c-{day} {flag}")).ended(0);
        scratch.run(&format!("kv backup create s b {flag} --json")).ended(0);
    }
    assert_eq!(scratch.run("kv get c-tuesday unflushed").ended(0).text(), "as well");
    let list = scratch.run("kv backup list b --json").ended(0).json();
    assert_eq!(list.iter().map(|backup| backup["id"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(list[2]["copied_bytes"].as_u64() < list[2]["bytes"].as_u64(), "{list:?}");
    scratch.run("kv restore b r-monday --id 1").ended(0);
    scratch.run("kv backup purge b --keep 0").failed(&["'0' for '--keep <COUNT>'", "from 1"]);
    let kept = scratch.run("kv backup purge b --keep 2").ended(0).text();
    assert_eq!(kept.lines().count(), 3, "{kept}");
    assert!(kept.starts_with("removed backup 1\nbackup 2  20"), "{kept}");
    scratch.run("kv restore b r --id 1").failed(&["no backup 1"]);
    scratch.run("kv backup restore b r-tuesday --id 2 --json").ended(0);
    scratch.run("kv restore b r-wednesday").ended(0);
    for day in ["monday", "tuesday", "wednesday"] {
        assert_eq!((get(&format!("c-{day}")), get(&format!("r-{day}"))), (day.into(), day.into()));
        scratch.run(&format!("kv verify r-{day}")).ended(0);
    }
    scratch.run("kv restore b r-monday").failed(&["r-monday"]);
    scratch.run("kv checkpoint s c-monday").failed(&["c-monday"]);
    assert!(scratch.run("kv backup verify b").ended(0).text().contains("2 backups, sound"));
    let purged = scratch.run("kv backup purge b --keep 1 --json").ended(0).json();
    assert_eq!(
        (&purged[0]["id"], &purged[0]["removed"], &purged[1]["id"]),
        (&2.into(), &true.into(), &3.into())
    );
    let shared = files(&scratch, "b", ".table");
    let path = format!("b/{}", shared[0]);
    let mut bytes = scratch.read(&path);
    bytes[10] ^= 1;
    scratch.write(&path, bytes);
    let damaged = scratch.run("kv backup verify b").ended(1);
    assert!(damaged.text().contains(&shared[0]), "{damaged:?}");
    assert_eq!(damaged.err, "error: b is damaged: 1 finding\n");
    for command in ["list s", "verify s", "purge s --keep 1", "restore s x"] {
        scratch.run(&format!("kv backup {command}")).failed(&["there are no backups in s"]);
    }
    for command in ["list no", "verify no", "purge no --keep 1", "restore no x"] {
        scratch.run(&format!("kv backup {command}")).failed(&["no does not exist"]);
    }
    assert!(!scratch.names().contains(&"no".to_owned()) && !scratch.names().contains(&"c".to_owned()));
}

/// Goal: all damage is listed by file, with exit code 1; reading it is an error, and a repair saves
/// the rest.
/// Method: two tables with a byte flipped in each.
#[test]
fn damage_is_found_and_repaired() {
    let scratch = store();
    let sound = scratch.run("kv verify s --json").ended(0).json();
    assert_eq!((&sound[0]["sound"], &sound[0]["log_records"]), (&true.into(), &2.into()));
    scratch.run("kv compact s").ended(0);
    scratch.run("kv compact s --keyspace k").ended(0);
    scratch.run("kv put s new 6").ended(0);
    let tables = files(&scratch, "s", ".table");
    assert_eq!(tables.len(), 2, "{tables:?}");
    for table in &tables {
        let mut bytes = scratch.read(&format!("s/{table}"));
        bytes[5] ^= 0x40;
        scratch.write(&format!("s/{table}"), bytes);
    }
    let found = scratch.run("kv verify s").ended(1);
    let text = found.text();
    assert!(tables.iter().all(|table| text.contains(table)) && text.ends_with("damaged\n"), "{text}");
    assert!(found.err.starts_with("error: s is damaged: "), "{}", found.err);
    assert_eq!(found.err.lines().count(), 1);
    let found = &scratch.run("kv verify s --json").ended(1).json()[0];
    assert_eq!(found["sound"], false);
    assert!(found["damage"].as_array().unwrap().len() >= 2, "{found}");
    scratch.run("kv get s b").failed(&[".table", "`cairn kv verify`"]);
    let repaired = scratch.run("kv repair s").ended(0).text();
    assert!(repaired.contains("set aside: s/lost/"), "{repaired}");
    scratch.run("kv verify s").ended(0);
    assert_eq!(scratch.run("kv get s new").ended(0).text(), "6");
    let again = &scratch.run("kv repair s --json").ended(0).json()[0];
    assert_eq!((&again["rebuilt"], again["damage"].as_array().unwrap().len()), (&false.into(), 0));
}

/// Goal: a store that is missing, open in another process or not a store leads to one readable
/// line, and nothing is created or changed.
#[test]
fn unopenable_store_is_reported() {
    let scratch = store();
    scratch.write("file", "no store");
    let before = scratch.names();
    for command in [
        "get no a",
        "put no a b",
        "delete no a",
        "scan no",
        "batch no",
        "dump no --format csv",
        "stats no",
        "compact no",
        "checkpoint no c",
        "backup create no b",
        "verify no",
        "repair no",
    ] {
        scratch.run(&format!("kv {command}")).failed(&["error: no does not exist"]);
    }
    scratch.run("kv put no a b").failed(&["--create"]);
    scratch.run("kv put s a").failed(&["<VALUE>", "<STORE> <KEY> <VALUE | --value-file <FILE>>"]);
    scratch.run("kv load no in.tsv").failed(&["no does not exist", "--create"]);
    scratch.run("kv load no missing.csv --create").failed(&["missing.csv"]);
    for command in ["get file a", "put file a b --create", "verify file", "repair file", "backup list file"] {
        scratch.run(&format!("kv {command}")).failed(&["file is a file, expected a directory"]);
    }
    scratch.run("kv backup create s s").failed(&["s is the store itself"]);
    scratch.run("kv get s a --keyspace=").failed(&["--keyspace <NAME>"]);
    scratch
        .run("kv scan s --limit -1")
        .failed(&["'-1' for '--limit <COUNT>'", "expected a whole number from 0"]);
    scratch.run("kv get s a --keyspace x").failed(&["no keyspace \"x\" in s", "default, k"]);
    scratch.run("kv put s a b --keyspace x").failed(&["--create"]);
    assert_eq!(scratch.names(), before);

    let db = Db::builder(scratch.path("s")).keyspace("k", KeyspaceOptions::default()).open().unwrap();
    db.put("a", "newer").unwrap();
    for command in
        ["put s a b", "delete s a", "batch s", "load s in.tsv", "compact s", "repair s", "verify s"]
    {
        scratch.run(&format!("kv {command}")).failed(&["the store in s is already open"]);
    }
    assert_eq!(scratch.run("kv get s a").ended(0).text(), "newer");
    assert_eq!(scratch.run("kv scan s --limit 1").ended(0).text(), "a\tnewer\n");
    assert!(scratch.run("kv dump s --format csv").ended(0).text().contains("a,newer\n"));
    scratch.run("kv stats s").ended(0);
    scratch.run("kv verify s --read-only").ended(0);
}

/// Goal: a closed pipe ends the command quietly; a full output and a full disk lead to one readable
/// line, and acknowledged writes stay. Method: a reader that goes away; `/dev/full`; a file size
/// limit with its signal ignored, which makes writes fail as on a full disk.
#[test]
fn closed_and_full_outputs() {
    let scratch = Scratch::new();
    let lines: String = (0..20_000).map(|n| format!("{n},{n:0200}\n")).collect();
    scratch.write("in.csv", format!("key,value\n{lines}"));
    scratch.run("kv load s in.csv --create").ended(0);
    for command in ["kv scan s", "kv dump s --format csv", "kv dump s --format parquet"] {
        let mut command = scratch.command(command);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0; 4]).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");
    }
    scratch.shell("cairn kv dump s --format binary > /dev/full").failed(&["standard output"]);
    let before = scratch.names();
    let limited = "trap '' XFSZ; ulimit -f 64";
    scratch.shell(&format!("{limited}; cairn kv dump s -o d.csv")).failed(&["d.csv", "cannot write"]);
    assert_eq!(scratch.names(), before);
    scratch.shell(&format!("{limited}; cairn kv load t in.csv --create --durability memory")).failed(&["t/"]);
    scratch.run("kv verify t").ended(0);
    scratch.run("kv put t after 1").ended(0);
    assert_eq!(scratch.run("kv get t after").ended(0).text(), "1");
}

/// Goal: Ctrl-C ends an import but keeps the batches that it has written, and the store opens with
/// them.
/// Method: an endless input through a pipe; the signal once the store exists; the exit code of an
/// interrupted command.
#[test]
fn interrupted_imports_keep_written_records() {
    let scratch = Scratch::new();
    let script = "mkfifo in
        yes 'a,1' | sed '1s/.*/key,value/' > in 2> /dev/null &
        cairn kv load s in --format csv --create & pid=$!
        until [ -e s/CURRENT ]; do kill -0 $pid || exit 99; done
        kill -INT -- -$pid; wait $pid";
    // Without job control, a shell starts background jobs with the signal ignored. With it, each
    // job is a process group.
    let ran = scratch.shell(&format!("set -m; {script}")).ended(130);
    assert!(ran.err.contains("error: interrupted: "), "{}", ran.err);
    scratch.run("kv verify s").ended(0);
    scratch.run("kv scan s").ended(0);
}

/// Goal: every command's help works and shows an example.
#[test]
fn help_has_examples() {
    let scratch = Scratch::new();
    let commands = [
        "get",
        "put",
        "delete",
        "scan",
        "batch",
        "load",
        "dump",
        "stats",
        "compact",
        "checkpoint",
        "restore",
        "verify",
        "repair",
        "bench",
        "backup create",
        "backup list",
        "backup verify",
        "backup purge",
        "backup restore",
    ];
    for command in commands {
        let help = scratch.run(&format!("kv {command} --help")).ended(0).text();
        assert!(help.contains("Example") && help.contains("cairn "), "{command}: {help}");
    }
    for usage in ["kv", "kv backup", "kv get", "kv get s", "kv nonsense", "kv scan s --limit x"] {
        assert_eq!(scratch.run(usage).code, 1, "{usage:?}");
    }
}

/// Goal: `kv bench` is an alias of `bench kv`. Method: an impossible run, refused with the same
/// message.
#[test]
fn kv_bench_is_an_alias_of_bench_kv() {
    let scratch = Scratch::new();
    let [here, there] = ["kv bench --n 0", "bench kv --n 0"].map(|line| scratch.run(line).ended(1).err);
    assert_eq!(here, there);
    assert!(here.contains("'0' for '--n <COUNT>'"), "{here}");
}
