//! Appending, deleting, rewriting and converting.

use std::collections::BTreeMap;

use crate::support::{Scratch, binary};

fn content(scratch: &Scratch, store: &str) -> BTreeMap<String, String> {
    let lines = scratch.run(&format!("hash scan {store} --json")).ended(0).json();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let entries: Vec<_> = lines.iter().map(|line| (text(&line["key"]), text(&line["value"]))).collect();
    let map: BTreeMap<_, _> = entries.iter().cloned().collect();
    assert_eq!(map.len(), entries.len(), "a key twice in {store}");
    map
}

/// Goal: append, delete, rewrite and another append have the same effect on both formats as on a
/// map.
/// Method: after each step, the whole contents are compared and the store is verified.
#[test]
fn changes_follow_a_model() {
    for store in ["s.cairn", "s.spi"] {
        let scratch = Scratch::new();
        let mut model = BTreeMap::new();
        let csv = |model: &mut BTreeMap<String, String>, from: u32, to: u32, value: &str| {
            (from..to).fold("k,v\n".to_owned(), |csv, n| {
                model.insert(format!("key{n}"), format!("{value}{n}"));
                csv + &format!("key{n},{value}{n}\n")
            })
        };
        let check = |model: &BTreeMap<String, String>| {
            assert_eq!(&content(&scratch, store), model, "{store}");
            scratch.run(&format!("hash verify {store}")).ended(0);
        };
        scratch.write("a.csv", csv(&mut model, 0, 300, "first"));
        scratch.run(&format!("hash build a.csv -o {store} --key k --value v")).ended(0);
        check(&model);

        scratch.write("b.csv", csv(&mut model, 200, 400, "second"));
        let appended =
            scratch.run(&format!("hash append {store} b.csv --key k --value v --json")).ended(0).json();
        // A delta has only appended records, so the count is reported under one name.
        assert_eq!((&appended[0]["appended"], &appended[0]["store"]), (&200.into(), &store.into()));
        assert_eq!(appended[0].get("records").is_some(), store == "s.spi");
        check(&model);

        for key in ["key0", "key250", "key399"] {
            model.remove(key);
        }
        let deleted =
            scratch.run(&format!("hash delete {store} key0 key250 nope key399 key0 --json")).ended(2).json();
        let expected = serde_json::json!({ "store": store, "deleted": 3, "absent": [{ "key": "nope" }] });
        assert_eq!(deleted, [expected]);
        check(&model);
        scratch.run(&format!("hash get {store} key250")).ended(2);
        let told = scratch.run(&format!("hash delete {store} key250")).ended(2).text();
        assert_eq!(told, format!("not there: key250\ndeleted 0 keys from {store}\n"));

        let rewritten = scratch.run(&format!("hash rewrite {store} --json")).ended(0).json();
        assert_eq!(rewritten[0]["entries"], model.len());
        check(&model);
        assert!(!scratch.names().iter().any(|name| name.contains(".delta.")), "{:?}", scratch.names());

        scratch.write("c.csv", csv(&mut model, 0, 1, "third"));
        scratch.run(&format!("hash append {store} c.csv --key k --value v")).ended(0);
        check(&model);
        let other = format!("other.{}", &store[2..]);
        for compression in ["zstd", "snappy", "none"] {
            let named = format!("\"compression\":\"{compression}\"");
            scratch.run(&format!("hash rewrite {store} -o {other} --compression {compression}")).ended(0);
            assert_eq!(content(&scratch, &other), model);
            let info = scratch.run(&format!("hash info {other} --json")).ended(0).text();
            assert!(info.contains(&named), "{info}");
            // Options that are not given keep their values.
            scratch.run(&format!("hash rewrite {other}")).ended(0);
            let info = scratch.run(&format!("hash info {other} --json")).ended(0).text();
            assert!(info.contains(&named), "{info}");
        }
    }
}

/// Goal: an append to a table keeps its compression by default, and a delete does not change that
/// default.
/// Method: a table with each compression; then a default delta, one of deletions, another default
/// one, and one with an explicit compression. The compression of every generation is checked, and
/// that it shrinks values of one letter.
#[test]
fn deltas_keep_the_compression() {
    for (compression, other) in [("none", "snappy"), ("snappy", "zstd"), ("zstd", "none")] {
        let scratch = Scratch::new();
        for (file, letter) in [("a.csv", "a"), ("b.csv", "b"), ("c.csv", "c")] {
            let csv: String = (0..200).map(|n| format!("{letter}{n},{}\n", letter.repeat(150))).collect();
            scratch.write(file, "k,v\n".to_owned() + &csv);
        }
        scratch
            .run(&format!("hash build a.csv -o s.cairn --key k --value v --compression {compression}"))
            .ended(0);
        scratch.run("hash append s.cairn b.csv --key k --value v").ended(0);
        scratch.run("hash delete s.cairn a0 b0").ended(0);
        scratch.run("hash append s.cairn c.csv --key k --value v").ended(0);
        scratch.run(&format!("hash append s.cairn c.csv --key k --value v --compression {other}")).ended(0);
        let info = &scratch.run("hash info s.cairn --json").ended(0).json()[0];
        let found: Vec<&str> = info["generations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|generation| {
                let compressed = generation["data_bytes"].as_u64() < generation["value_bytes"].as_u64();
                let name = generation["compression"].as_str().unwrap();
                assert_eq!(compressed, name != "none" && generation["value_bytes"] != 0, "{generation}");
                name
            })
            .collect();
        assert_eq!(found, [compression, compression, "none", compression, other]);
        let text = scratch.run("hash info s.cairn").ended(0).text();
        for name in [compression, other] {
            assert!(text.contains(&format!(" bytes, compression {name}; blobs")), "{text}");
        }
        assert_eq!(scratch.run("hash get s.cairn b7").ended(0).text().trim_end(), "b".repeat(150));
        scratch.run("hash get s.cairn b0").ended(2);
        scratch.run("hash verify s.cairn").ended(0);
    }
}

/// Goal: a log keeps its block size unless another one is given, even if its compression changes;
/// an append, which cannot change it, says so. Method: a log with blocks of 64 KiB; its header
/// after each step.
#[test]
fn logs_keep_the_size_of_their_blocks() {
    let scratch = Scratch::new();
    scratch.write("a.csv", "k,v\na,1\n");
    let block_bytes = |store: &str| {
        scratch.run(&format!("hash info {store} --json")).ended(0).json()[0]["block_bytes"].clone()
    };
    scratch.run("hash build a.csv -o s.spi --compression snappy --block-bytes 64KiB").ended(0);
    assert_eq!(block_bytes("s.spi"), 65536);
    scratch.run("hash rewrite s.spi").ended(0);
    assert_eq!(block_bytes("s.spi"), 65536);
    scratch.run("hash rewrite s.spi -o other.spi --compression zstd").ended(0);
    assert_eq!(block_bytes("other.spi"), 65536);
    scratch.run("hash append s.spi a.csv --block-bytes 4KiB").failed(&["65536", "rewrite"]);
    scratch.run("hash append s.spi a.csv --block-bytes 64KiB").ended(0);
    scratch.run("hash rewrite s.spi --block-bytes 8KiB").ended(0);
    assert_eq!(block_bytes("s.spi"), 8192);
    // Without compression there are no blocks, and a new log gets the default size.
    scratch.run("hash rewrite s.spi --compression none").ended(0);
    assert_eq!(block_bytes("s.spi"), 0);
    scratch.run("hash rewrite s.spi --block-bytes 8KiB").failed(&["--block-bytes 8.0 KiB", "--compression"]);
    scratch.run("hash rewrite s.spi --compression snappy").ended(0);
    assert_eq!(block_bytes("s.spi"), 4096);
}

/// Goal: a refused append leaves the log unchanged. Method: each option that a log refuses, on a
/// log without compression; then the same append without options.
#[test]
fn refused_appends_leave_the_log() {
    let scratch = Scratch::new();
    scratch.write("a.csv", "k,v\na,1\n");
    scratch.write("b.csv", "k,v\nb,2\n");
    scratch.run("hash build a.csv -o s.spi").ended(0);
    let files = ["s.spi", "s.spl"];
    let before = files.map(|file| scratch.read(file));
    for (option, words) in [
        ("--memory 1KiB", "--memory 1.0 KiB"),
        ("--threads 2", "--threads 2"),
        ("--block-bytes 4KiB", "--block-bytes 4.0 KiB"),
        ("--level 3", "--level 3"),
    ] {
        scratch.run(&format!("hash append s.spi b.csv {option}")).failed(&[words]);
        assert_eq!(files.map(|file| scratch.read(file)), before, "{option}");
    }
    scratch.run("hash append s.spi b.csv").ended(0);
    assert_eq!(content(&scratch, "s.spi").len(), 2);
}

/// Goal: a log can be indexed alone, without an existing index and after another program has added
/// to it.
/// Method: an old index over a longer log, which cannot be rewritten until then; no index, under
/// all names; an index without a log.
#[test]
fn logs_are_indexed() {
    let scratch = Scratch::new();
    scratch.write("a.csv", "k,v\na,1\n");
    scratch.write("b.csv", "k,v\nb,2\n");
    scratch.run("hash build a.csv -o s.spi").ended(0);
    let old = scratch.read("s.spi");
    scratch.run("hash append s.spi b.csv").ended(0);
    scratch.write("s.spi", &old);
    scratch.run("hash rewrite s.spi").failed(&["build the index first", "`cairn hash index`"]);
    scratch.run("hash index s.spi --memory 1KiB").failed(&["--memory 1.0 KiB"]);
    for name in ["s.spi", "s.spl", "s"] {
        let indexed = scratch.run(&format!("hash index {name} --json")).ended(0).json();
        assert_eq!((&indexed[0]["store"], &indexed[0]["entries"]), (&"s.spi".into(), &2.into()));
        scratch.run("hash verify s.spi").ended(0);
        std::fs::remove_file(scratch.path("s.spi")).unwrap();
    }
    let said = scratch.run("hash index s").ended(0).text();
    assert!(said.starts_with("indexed s.spi: 2 entries, "), "{said}");
    scratch.run("hash rewrite s.spi").ended(0);
    scratch.run("hash build a.csv -o s.cairn").ended(0);
    scratch.run("hash index s.cairn").failed(&["s.cairn contains its index"]);
    std::fs::remove_file(scratch.path("s.spl")).unwrap();
    scratch.run("hash index s.spi").failed(&["s.spl does not exist"]);
}

/// Goal: a pair is built at the targets of links, and the links stay. Method: dangling links, then
/// the same over an existing pair.
#[test]
fn pairs_are_built_at_the_target_of_a_link() {
    let scratch = Scratch::new();
    scratch.write("a.csv", "k,v\na,1\n");
    std::fs::create_dir(scratch.path("d")).unwrap();
    for (link, target) in [("s.spi", "d/t.spi"), ("s.spl", "d/t.spl")] {
        std::os::unix::fs::symlink(target, scratch.path(link)).unwrap();
    }
    for _ in 0..2 {
        scratch.run("hash build a.csv -o s.spi").ended(0);
        assert_eq!(content(&scratch, "d/t.spi"), content(&scratch, "s.spi"));
        assert!(["s.spi", "s.spl"].iter().all(|link| scratch.path(link).is_symlink()));
        assert_eq!(scratch.names(), ["a.csv", "d", "s.spi", "s.spl"]);
        assert_eq!(std::fs::read_dir(scratch.path("d")).unwrap().count(), 2);
    }
}

/// Goal: each format converts to the other and back, with every compression, long values and binary
/// bytes.
#[test]
fn conversion_goes_both_ways() {
    let scratch = Scratch::new();
    let long: Vec<u8> = (0..2_500_000_u32).map(|n| (n / 7) as u8).collect();
    let records =
        [binary(b"long", &long), binary(b"", b""), binary(b"\xfe", b"\xff"), binary(b"k", b"v")].concat();
    scratch.write("in.bin", &records);
    scratch.run("hash build in.bin -o a.spi --compression snappy").ended(0);
    let expected = scratch.run("hash scan a.spi --binary").ended(0).out;
    assert_eq!(expected, records);
    scratch.run("hash convert a.spi b.cairn").ended(0);
    let info = &scratch.run("hash info b.cairn --json").ended(0).json()[0];
    assert_eq!(info["generations"][0]["compression"], "snappy", "kept");
    for compression in ["none", "snappy", "zstd"] {
        let table = format!("{compression}.cairn");
        scratch.run(&format!("hash convert a.spi {table} --compression {compression}")).ended(0);
        let info = &scratch.run(&format!("hash info {table} --json")).ended(0).json()[0];
        assert_eq!(info["generations"][0]["compression"], compression);
        assert_eq!(scratch.run(&format!("hash get {table} long")).ended(0).out, long);
        let out = format!("{compression}.spl");
        scratch.run(&format!("hash convert {table} {out}")).ended(0);
        assert_eq!(scratch.run(&format!("hash get {out} long")).ended(0).out, long);
        assert_eq!(scratch.run(&format!("hash get {out} --hex fe")).ended(0).out, b"\xff");
        scratch.run(&format!("hash verify {out}")).ended(0);
        let info = &scratch.run(&format!("hash info {out} --json")).ended(0).json()[0];
        assert_eq!((&info["compression"], &info["entries"]), (&compression.into(), &4.into()));
    }
    scratch.run("hash convert a.spi c.spi").failed(&["rewrite"]);
    scratch.run("hash convert a.spi c").failed(&[".cairn"]);
    scratch.run("hash rewrite a.spi -o c.cairn").failed(&["convert"]);
    scratch.run("hash append a.spi in.bin --compression zstd").failed(&["snappy", "rewrite"]);
}

/// Goal: a build that a signal ends leaves the old store unchanged and no other file; leftovers of
/// a killed build are removed by the next one. Method: a signal once the unfinished file exists;
/// the input is a pipe that yields one record and then blocks, so the build cannot finish.
#[test]
fn interrupted_build_leaves_no_files() {
    let stores = [("s.cairn", "s.cairn.tmp"), ("s.spi", "s.spl.tmp")];
    for ((store, unfinished), (signal, code)) in
        stores.into_iter().flat_map(|store| [("TERM", 143), ("KILL", 137)].map(|signal| (store, signal)))
    {
        let scratch = Scratch::new();
        scratch.write("a.csv", "k,v\na,1\n");
        let build = format!("cairn hash build a.csv -o {store} --key k --value v");
        scratch.shell(&build).ended(0);
        let names = scratch.names();
        let ended = scratch.shell(&format!(
            "mkfifo in; exec 3<>in; printf 'k,v\\nb,2\\n' >&3
            {:?} hash build in --format csv -o {store} --key k --value v 3>&- & pid=$!
            until [ -e {unfinished} ]; do kill -0 $pid || exit 99; done
            kill -{signal} $pid; wait $pid; code=$?; rm in; exit $code",
            env!("CARGO_BIN_EXE_cairn")
        ));
        // 128 + the signal, the shells' convention.
        ended.ended(code);
        let is_left = scratch.names().contains(&unfinished.to_owned());
        assert_eq!(is_left, signal == "KILL", "{:?}", scratch.names());
        assert_eq!(scratch.run(&format!("hash scan {store}")).ended(0).text(), "a\t1\n");
        scratch.shell(&build).ended(0);
        assert_eq!(scratch.names(), names);
        scratch.run(&format!("hash verify {store}")).ended(0);
    }
}

/// Goal: no command that changes or copies a store loses records of a log beyond its index. Method:
/// an old index over a longer log: each command refuses and changes nothing; after `index` each of
/// them works.
#[test]
fn log_beyond_its_index_is_kept() {
    let scratch = Scratch::new();
    scratch.write("a.csv", "k,v\na,1\nb,2\n");
    scratch.write("more.csv", "k,v\nc,3\n");
    scratch.run("hash build a.csv -o s.spi").ended(0);
    let old_index = scratch.read("s.spi");
    scratch.run("hash append s.spi more.csv").ended(0);
    scratch.write("s.spi", old_index);
    let (log, names) = (scratch.read("s.spl"), scratch.names());
    for change in ["delete s.spi c a", "rewrite s.spi", "rewrite s.spi -o t.spi", "convert s.spi t.cairn"] {
        scratch.run(&format!("hash {change}")).failed(&["s.spl ends at", "build the index first"]);
        assert!(scratch.names() == names && scratch.read("s.spl") == log, "{change}");
    }
    scratch.run("hash index s.spi").ended(0);
    scratch.run("hash rewrite s.spi -o t.spi").ended(0);
    scratch.run("hash convert s.spi t.cairn").ended(0);
    for copy in ["t.spi", "t.cairn"] {
        assert_eq!(content(&scratch, copy).len(), 3, "{copy}");
    }
    scratch.run("hash delete s.spi c a").ended(0);
    assert_eq!(content(&scratch, "s.spi").into_keys().collect::<Vec<_>>(), ["b"]);
}
