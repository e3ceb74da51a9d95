//! Lookups, scans, verification, and exit codes.

use std::io::Read;
use std::process::Stdio;

use crate::support::{Scratch, binary};

/// Creates a scratch directory with one small store in both formats.
fn stores() -> Scratch {
    let scratch = Scratch::new();
    let records = [binary(b"a", b"1"), binary(b"\xff\x00", b"\x80"), binary(b"empty", b"")].concat();
    scratch.write("in.bin", records);
    scratch.run("hash build in.bin -o s.cairn").ended(0);
    scratch.run("hash build in.bin -o s.spi").ended(0);
    scratch
}

/// Goal: the exit code is 0 for found, 2 for not found, and 1 for all errors, including usage
/// errors; values are printed unchanged.
#[test]
fn exit_codes_tell_found_from_not_found() {
    let scratch = stores();
    for store in ["s.cairn", "s.spi", "s.spl"] {
        assert_eq!(scratch.run(&format!("hash get {store} a")).ended(0).out, b"1");
        assert_eq!(scratch.run(&format!("hash get {store} --hex FF00")).ended(0).out, b"\x80");
        assert_eq!(scratch.run(&format!("hash get {store} empty")).ended(0).out, b"");
        assert_eq!(scratch.run(&format!("hash get {store} b")).ended(2).out, b"");
        scratch.run(&format!("hash get {store} --hex abc")).failed(&["hexadecimal"]);
    }
    scratch.run("hash get missing.cairn a").failed(&["missing.cairn"]);
    scratch.run("hash get in.bin a").failed(&["in.bin"]);
    for usage in ["", "hash", "hash get", "hash get s.cairn", "nonsense", "hash scan s.cairn --json --binary"]
    {
        assert_eq!(scratch.run(usage).code, 1, "{usage:?}");
    }
    scratch.run("--help").ended(0);
    scratch.run("--version").ended(0);
}

/// Goal: every command's help works and shows an example.
#[test]
fn help_has_examples() {
    let scratch = Scratch::new();
    let hash = [
        "build", "get", "mget", "scan", "info", "verify", "append", "delete", "index", "rewrite", "convert",
        "bench",
    ];
    let bench = ["hash", "compare", "readme", "report"];
    let all = hash
        .iter()
        .map(|name| format!("hash {name}"))
        .chain(bench.iter().map(|name| format!("bench {name}")));
    for command in all {
        let help = scratch.run(&format!("{command} --help")).ended(0).text();
        assert!(help.contains("Example") && help.contains("\n  cairn "), "{command}: {help}");
    }
}

/// Goal: JSON output has the fields that scripts rely on.
#[test]
fn json_has_its_shape() {
    let scratch = stores();
    for (store, format) in [("s.cairn", "cairn"), ("s.spi", "sparkey")] {
        let get = scratch.run(&format!("hash get {store} a --json")).ended(0).text();
        assert_eq!(get, "{\"key\":\"a\",\"value\":\"1\"}\n");
        assert_eq!(
            scratch.run(&format!("hash get {store} b --json")).ended(2).text(),
            "{\"key\":\"b\",\"value\":null}\n"
        );
        let hex = scratch.run(&format!("hash get {store} --hex ff00 --json")).ended(0).text();
        assert_eq!(hex, "{\"key_hex\":\"ff00\",\"value_hex\":\"80\"}\n");
        let info = &scratch.run(&format!("hash info {store} --json")).ended(0).json()[0];
        assert_eq!(info["format"], format);
        let entries = if format == "cairn" { &info["generations"][0]["entries"] } else { &info["entries"] };
        assert_eq!(entries, &3);
        let verify = &scratch.run(&format!("hash verify {store} --json")).ended(0).json()[0];
        assert_eq!((&verify["sound"], &verify["entries"]), (&true.into(), &3.into()));
        assert_eq!((&verify["store"], &info["store"]), (&store.into(), &store.into()));
        assert!(scratch.run(&format!("hash info {store}")).ended(0).text().contains("entries        3"));
    }
}

/// Goal: many keys can be looked up at once, from arguments, a file and standard input; the exit
/// code tells whether all were found.
#[test]
fn mget_takes_keys_from_everywhere() {
    let scratch = stores();
    scratch.write("keys", "a\r\nempty\n");
    for store in ["s.cairn", "s.spi"] {
        assert_eq!(scratch.run(&format!("hash mget {store} empty a")).ended(0).text(), "empty\t\na\t1\n");
        assert_eq!(scratch.run(&format!("hash mget {store} --keys keys")).ended(0).text(), "a\t1\nempty\t\n");
        let some = scratch.run_with(&format!("hash mget {store} --keys - --json"), b"zz\na").ended(2).json();
        assert_eq!(
            (some.len(), &some[0]["value"], &some[1]["value"]),
            (2, &serde_json::Value::Null, &"1".into())
        );
        scratch.run(&format!("hash mget {store}")).failed(&[]);
        scratch.run(&format!("hash mget {store} --keys missing")).failed(&["missing"]);
        scratch.run(&format!("hash mget {store} a --keys keys")).failed(&["--keys"]);
    }
}

/// Goal: a scan can be limited, and its binary output builds the same store again.
#[test]
fn scans_can_be_limited_and_read_back() {
    let scratch = stores();
    for store in ["s.cairn", "s.spi"] {
        let count = |limit: u32| {
            scratch.run(&format!("hash scan {store} --limit {limit} --json")).ended(0).json().len()
        };
        assert_eq!([count(0), count(2), count(9)], [0, 2, 3]);
        let records = scratch.run(&format!("hash scan {store} --binary")).ended(0).out;
        scratch.run_with("hash build - --format binary -o again.spi", &records).ended(0);
        assert_eq!(scratch.run("hash scan again.spi --binary").ended(0).out, records);
    }
}

/// Goal: `verify` and lookups report any flipped byte of a table. Method: a bit in each 61st byte.
#[test]
fn damage_is_found_and_named() {
    let scratch = stores();
    let sound = scratch.read("s.cairn");
    for at in (0..sound.len()).step_by(61) {
        let mut damaged = sound.clone();
        damaged[at] ^= 1 << (at % 8);
        scratch.write("s.cairn", &damaged);
        scratch.run("hash verify s.cairn").failed(&["s.cairn"]);
    }
    // Also as JSON: damage in a page that only `verify` reads, and in a header, which prevents
    // opening the store.
    for at in [sound.len() - 1, 40] {
        let mut damaged = sound.clone();
        damaged[at] ^= 1;
        scratch.write("s.cairn", &damaged);
        let found = &scratch.run("hash verify s.cairn --json").ended(1).json()[0];
        assert_eq!((&found["store"], &found["sound"]), (&"s.cairn".into(), &false.into()), "{found}");
        assert_eq!(found["damage"][0]["file"], "s.cairn", "{found}");
        let text = scratch.run("hash verify s.cairn").ended(1).text();
        assert!(text.starts_with("damaged: s.cairn is damaged at offset "), "{text}");
    }
    scratch.write("s.cairn", &sound[..sound.len() / 2]);
    scratch.run("hash get s.cairn a").failed(&["s.cairn"]);
    scratch.write("s.spi", &scratch.read("s.spi")[..50]);
    scratch.run("hash verify s.spi").failed(&["s.spi"]);
    // A missing store is not damage.
    scratch.run("hash verify missing.cairn --json").failed(&["missing.cairn"]);
}

/// Goal: `verify` reads every file of a store, even if one of them cannot be opened. Method: three
/// files, each damaged so that it cannot be opened, one at a time and all together; then a missing
/// delta.
#[test]
fn damage_in_one_file_does_not_hide_damage_in_others() {
    let scratch = stores();
    for value in ["2", "3"] {
        scratch.write("more.bin", binary(b"a", value.as_bytes()));
        scratch.run("hash append s.cairn more.bin").ended(0);
    }
    let files = ["s.cairn", "s.cairn.delta.000001", "s.cairn.delta.000002"];
    let sound = files.map(|file| scratch.read(file));
    // The damage is in the header of the base, in a delta's field that identifies it, and in the
    // checksum of the page of checksums.
    let damage = |file: usize| {
        let mut bytes = sound[file].clone();
        bytes[[40, 0, 152][file]] ^= 1;
        scratch.write(files[file], bytes);
    };
    let damaged = || -> Vec<String> {
        let report = &scratch.run("hash verify s.cairn --json").ended(1).json()[0];
        let text = scratch.run("hash verify s.cairn").ended(1).text();
        assert_eq!(text.lines().count(), 3, "{text}");
        let found = report["damage"].as_array().unwrap();
        found.iter().map(|found| found["file"].as_str().unwrap().to_owned()).collect()
    };
    for file in 0..3 {
        damage(file);
        assert_eq!(damaged(), [files[file]]);
        scratch.write(files[file], &sound[file]);
    }
    (0..3).for_each(damage);
    assert_eq!(damaged(), files);
    (0..3).for_each(|file| scratch.write(files[file], &sound[file]));
    scratch.run("hash verify s.cairn").ended(0);
    std::fs::remove_file(scratch.path(files[1])).unwrap();
    assert_eq!(damaged(), [files[1]], "beside two files that are sound");
}

/// Goal: a reader that goes away ends a long scan quietly. Method: a store larger than all buffers,
/// of whose scan only ten bytes are read.
#[test]
fn closed_pipe_ends_without_an_error() {
    let scratch = Scratch::new();
    let lines: String = (0..50_000).map(|n| format!("key{n},value{n}\n")).collect();
    scratch.write("in.csv", format!("k,v\n{lines}"));
    scratch.run("hash build in.csv -o s.cairn").ended(0);
    let mut child =
        scratch.command("hash scan s.cairn").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut start = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");
    let full = scratch.shell("cairn hash scan s.cairn > /dev/full");
    full.failed(&["standard output"]);
}

/// Goal: a disk that becomes full during a build is an error, and leaves the old store and no other
/// file.
/// Method: a file size limit with its signal ignored, which makes writes fail as on a full disk.
#[test]
fn full_disk_keeps_the_old_store() {
    let scratch = stores();
    let lines: String = (0..20_000).map(|n| format!("key{n},{n:0200}\n")).collect();
    scratch.write("in.csv", format!("k,v\n{lines}"));
    let before = scratch.names();
    for store in ["s.cairn", "s.spi"] {
        let script = format!("trap '' XFSZ; ulimit -f 64; cairn hash build in.csv -o {store}");
        scratch.shell(&script).failed(&[store.split('.').next().unwrap(), "cannot write"]);
        assert_eq!(scratch.run(&format!("hash get {store} a")).ended(0).out, b"1");
        scratch.run(&format!("hash verify {store}")).ended(0);
    }
    assert_eq!(scratch.names(), before);
}
