//! Traces: recording a program, importing, statistics, replays, simulation.

use std::sync::Arc;
use std::time::Duration;

use cairn_trace::{Options, Recorder};
use cairn_vfs::{Fs, ManualClock, StdFs};

use crate::support::Scratch;

const REQUESTS: &str = "time_ms,op,key,value_size,found\n\
    0,put,user:1,100,\n1,get,user:1,100,true\n2,get,user:2,,false\n3,put,user:2,50,\n4,delete,user:1,,\n5,get,user:2,50,true\n";

/// Creates a trace `t` of a few requests.
fn imported() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("requests.csv", REQUESTS);
    let out = scratch.run("trace import requests.csv -o t").ended(0).text();
    assert!(out.contains("t: 6 operations of csv"), "{out}");
    scratch
}

/// Goal: operations of `cairn kv` under `record` are in the trace, raw and hashed, and a program
/// that records nothing is reported.
/// Method: a load and a put; a program without tracing, one that fails, one that does not exist.
#[test]
fn programs_are_recorded() {
    let scratch = Scratch::new();
    scratch.write("in.tsv", "key\tvalue\na\t1\nab\t2\nb\t3\n");
    let program = env!("CARGO_BIN_EXE_cairn");
    let record =
        |rest: &str| scratch.run(&format!("trace record --json {}", rest.replace("PROGRAM", program)));
    let json = record("-o t --keys raw -- PROGRAM kv load s in.tsv --create").ended(0);
    // The program prints a line of its own first.
    let last = json.text().lines().last().unwrap().to_owned();
    let summary: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert_eq!((summary["records"].as_u64(), summary["ending"].as_str()), (Some(3), Some("complete")));
    let dump = scratch.run("trace dump t").ended(0).text();
    let rows: Vec<&str> = dump.lines().collect();
    assert_eq!(
        rows[0],
        "time_ns,thread,op,keyspace,key,key_size,value_size,found,count,end,joined,backwards"
    );
    let row: Vec<&str> = rows[2].split(',').collect();
    assert_eq!((rows.len(), row[2], row[4], row[6]), (4, "put", "ab", "1"));
    record("-o h -- PROGRAM kv get s a").ended(0);
    let bytes = std::fs::read(scratch.path("h")).unwrap();
    assert!(
        scratch.run("trace stats h --json").ended(0).json()[0]["kinds"][0]["kind"] == "get"
            && bytes.len() > 100
    );

    record("-o scans --keys raw -- PROGRAM kv scan s --prefix a").ended(0);
    record("-o back --keys raw -- PROGRAM kv scan s --reverse --limit 1").ended(0);
    record("-o all --keys raw -- PROGRAM kv dump s -o all.csv").ended(0);
    for (trace, row) in
        [("scans", "scan,0,a,1,,,2,,,"), ("back", "scan,0,b,1,,,1,,,true"), ("all", "scan,0,,0,,,3,,,")]
    {
        let dump = scratch.run(&format!("trace dump {trace}")).ended(0).text();
        assert!(dump.lines().count() == 2 && dump.ends_with(&format!(",{row}\n")), "{trace}: {dump}");
    }

    record("-o t -- PROGRAM kv get s a").failed(&["t already exists"]);
    let ran = record("-o none -- PROGRAM --version").ended(1);
    assert!(ran.err.contains("recorded nothing"), "{}", ran.err);
    let ran = record("-o f -- PROGRAM kv get nowhere a").ended(1);
    assert!(ran.err.contains("ended with"), "{}", ran.err);
    record("-o x -- /no/such/program").failed(&["/no/such/program"]);
    let help = scratch.run("trace record --help").ended(0).text();
    assert!(help.contains("features kv, hash and sql"), "{help}");
}

/// Goal: `cairn hash` records like `cairn kv`, in either format. Method: each command that writes
/// or reads entries, and the rows of its trace.
#[test]
fn constant_stores_are_recorded() {
    let scratch = Scratch::new();
    scratch.write("in.csv", "key,value\na,1\nb,22\n");
    scratch.write("more.csv", "key,value\nc,333\n");
    for store in ["s.cairn", "s.spi"] {
        let record = |name: &str, words: &str, code: i32, rows: &[&str]| {
            let ran =
                scratch.shell(&format!("cairn trace record -o {name} --keys raw -- cairn hash {words}"));
            assert_eq!(ran.code, code, "{words}: {}{}", ran.text(), ran.err);
            let dump = scratch.run(&format!("trace dump {name}")).ended(0).text();
            let seen: Vec<&str> = dump.lines().skip(1).collect();
            assert!(
                seen.len() == rows.len() && seen.iter().zip(rows).all(|(seen, row)| seen.ends_with(row)),
                "{words}: {dump}"
            );
            std::fs::remove_file(scratch.path(name)).unwrap();
        };
        record(
            "build",
            &format!("build in.csv -o {store} --key key --value value"),
            0,
            &["put,0,a,1,1,,,,,", "put,0,b,1,2,,,,,"],
        );
        record("get", &format!("get {store} b"), 0, &["get,0,b,1,2,true,,,,"]);
        record("json", &format!("get {store} b --json"), 0, &["get,0,b,1,2,true,,,,"]);
        // `get` ends with 2 for an absent key, so `record` reports that the program failed.
        record("absent", &format!("get {store} x"), 1, &["get,0,x,1,,false,,,,"]);
        let rows = ["get,0,a,1,1,true,,,,", "get,0,b,1,2,true,,,,"];
        record("mget", &format!("mget {store} a b"), 0, &rows);
        record("scan", &format!("scan {store}"), 0, &["scan,0,,0,,,2,,,"]);
        record("some", &format!("scan {store} --limit 1"), 0, &["scan,0,,0,,,1,,,"]);
        record(
            "append",
            &format!("append {store} more.csv --key key --value value"),
            0,
            &["put,0,c,1,3,,,,,"],
        );
        // The existence check does not read the value, so its size is unknown.
        let rows = ["get,0,a,1,,,,,,", "delete,0,a,1,,,,,,"];
        record("delete", &format!("delete {store} a"), 0, &rows);
    }
}

/// Goal: imports print a summary, and leave no file if they fail. Method: CSV, a list of pages,
/// standard input, mistakes.
#[test]
fn imports() {
    let scratch = imported();
    scratch.write("pages.txt", "1\n2\n1\n3\n1\n");
    let json = scratch.run("trace import pages.txt -o p --keys hashed --json").ended(0).json();
    assert_eq!((json[0]["format"].as_str(), json[0]["records"].as_u64()), (Some("pages"), Some(5)));
    scratch.run("trace import pages.txt -o p").failed(&["p already exists"]);
    scratch.write("bad.csv", "key,op\na,put\nb,fly\n");
    scratch.run("trace import bad.csv -o b").failed(&["bad.csv, line 3", "fly"]);
    assert!(!scratch.path("b").exists());
    scratch.run("trace import bad.csv -o b --format tape").failed(&["tape", "rocksdb-block-cache"]);
    scratch.run("trace import nothing -o b").failed(&["nothing"]);
    for format in ["rocksdb", "rocksdb-block-cache"] {
        let words = format!("trace import requests.csv -o b --format {format}");
        scratch.run(&words).failed(&["requests.csv", "does not begin like", format]);
        assert!(!scratch.path("b").exists());
    }
    // A pipe is processed as its bytes arrive: the pipe here never ends after the invalid row.
    let endless = "timeout 20 cairn trace import - -o b < <(echo key,op; echo a,fly; cat /dev/zero)";
    scratch.shell(endless).failed(&["standard input, line 2", "fly"]);
    assert!(!scratch.path("b").exists());
    scratch.shell("gzip -c pages.txt | cairn trace import - -o piped").ended(0);
    scratch.write("back.csv", "time,key\n5,a\n3,a\n");
    let out = scratch.run("trace import back.csv -o back").ended(0).text();
    assert!(out.contains("left out, 1: times before the previous operation's, replaced by it"), "{out}");
    // A dump can be imported again without changes.
    let dump = scratch.run("trace dump t").ended(0).text();
    scratch.write("again.csv", &dump);
    scratch.run("trace import again.csv -o again").ended(0);
    assert_eq!(scratch.run("trace dump again").ended(0).text(), dump);
    assert_eq!(scratch.run("trace dump t --limit 2").ended(0).text().lines().count(), 3);
    assert_eq!(scratch.run("trace dump t --limit 2 -o t.csv").ended(0).text(), "wrote t.csv: 2 operations\n");
    assert_eq!(scratch.read("t.csv").iter().filter(|byte| **byte == b'\n').count(), 3);
    let told = &scratch.run("trace dump t -o t.csv --json").ended(0).json()[0];
    assert_eq!((&told["trace"], &told["file"]), (&"t".into(), &"t.csv".into()));
    assert_eq!(String::from_utf8(scratch.read("t.csv")).unwrap(), dump);
}

/// Goal: a dump is complete: binary keys differ from text keys that look like their hexadecimal
/// form, and batches and descending scans are preserved. Method: a trace made from a hexadecimal
/// file, dumped, imported and dumped again.
#[test]
fn dumps_are_whole() {
    let scratch = Scratch::new();
    let rows = "op,key_hex,value_size,count,end_hex,joined,backwards\n\
        put,ff,1,,,,\nput,6666,1,,,true,\nscan,ff00,,7,,,true\ndelete_range,61,,,20,,\n";
    scratch.write("in.csv", rows);
    scratch.run("trace import in.csv -o t").ended(0);
    let dump = scratch.run("trace dump t").ended(0).text();
    let lines: Vec<&str> = dump.lines().collect();
    assert!(lines[0].contains("key_hex") && lines[1].contains(",put,0,ff,1,"), "{dump}");
    assert!(lines[2].contains(",6666,2,") && lines[2].ends_with(",true,"), "{dump}");
    assert!(lines[3].ends_with(",7,,,true") && lines[4].contains(",20,"), "{dump}");
    scratch.write("again.csv", &dump);
    scratch.run("trace import again.csv -o again").ended(0);
    assert_eq!(scratch.run("trace dump again").ended(0).text(), dump);
    assert_eq!(scratch.run("trace stats again --json").ended(0).json()[0]["keys"], 3.0);
    // Page numbers may be valid UTF-8 by chance, but then contain control characters.
    scratch.write("pages.txt", "1\n2\n");
    scratch.run("trace import pages.txt -o p").ended(0);
    let dump = scratch.run("trace dump p").ended(0).text();
    assert!(dump.contains("key_hex") && dump.contains(",0000000000000002,8,"), "{dump}");
    scratch.write("tab.csv", "op,key\nput,\"a\tb\"\n");
    scratch.run("trace import tab.csv -o tab").ended(0);
    assert!(scratch.run("trace dump tab").ended(0).text().contains(",610962,3,"));
    // A trace without times has no time column, which would be read back as nanoseconds.
    scratch.write("untimed.csv", "op,key\nput,a\nget,b\n");
    scratch.run("trace import untimed.csv -o untimed").ended(0);
    let dump = scratch.run("trace dump untimed").ended(0).text();
    assert!(dump.starts_with("thread,op,") && dump.contains("\n0,get,0,b,"), "{dump}");
    scratch.write("again.csv", &dump);
    let summary = &scratch.run("trace import again.csv -o back --json").ended(0).json()[0];
    assert_eq!((&summary["timed"], &summary["secs"]), (&false.into(), &0.0.into()));
    assert_eq!(scratch.run("trace dump back").ended(0).text(), dump);
    scratch.write("odd.csv", "key_hex\nabc\n");
    scratch.run("trace import odd.csv -o odd").failed(&["line 2", "abc", "hexadecimal"]);
}

/// Goal: existing files are not reported as traces of the program. Method: a file with the name of
/// a second store's trace; then two stores.
#[test]
fn leftover_files_are_not_reported() {
    let scratch = imported();
    std::fs::rename(scratch.path("t"), scratch.path("r.1")).unwrap();
    scratch.write("in.tsv", "key\tvalue\na\t1\n");
    let program = env!("CARGO_BIN_EXE_cairn");
    let words = format!("trace record --json -o r -- {program} kv load s in.tsv --create");
    let text = scratch.run(&words).ended(0).text();
    assert!(text.contains("\"trace\":\"r\"") && !text.contains("r.1"), "{text}");
}

/// Goal: recording and reading commands report the share of keys, and the reason if the recorder
/// lowered it.
/// Method: a trace of fast lookups under a manual clock, through every command that takes one; a
/// program that leaves such a trace for `record`; explicit numbers, and invalid words.
#[test]
fn sampled_share_is_reported() {
    let scratch = Scratch::new();
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let clock = Arc::new(ManualClock::new(Duration::ZERO));
    let options = Options { hash_seed: Some(1), ..Options::default() };
    let recorder = Recorder::with_clock(&fs, &scratch.path("low"), options, clock.clone()).unwrap();
    for number in 0..700_000_u64 {
        clock.advance(Duration::from_nanos(200));
        let key = (number % 400).to_be_bytes();
        if number < 400 { recorder.put(0, &key, 10) } else { recorder.get(0, &key, Some(10)) }
    }
    recorder.finish().unwrap();
    let why = "at 200 ns an operation, recording all keys would have taken more than 1.1 % of the time; \
               --sample 1 records all";
    let text = scratch.run("trace stats low").ended(0).text();
    assert!(text.contains("One key in 4") && text.contains(&format!("{why}.")), "{text}");
    let json = &scratch.run("trace stats low --json").ended(0).json()[0];
    let records = json["records"].as_u64().unwrap();
    assert_eq!((&json["sample"], &json["lowered"]["operation_ns"]), (&4.into(), &200.into()));
    assert!((100_000..250_000).contains(&records), "{records}");
    assert_eq!(scratch.run("trace dump low").ended(0).text().lines().count() as u64, records + 1);
    let sim = scratch.run("sim run --trace low --set duration_secs=1").ended(0);
    assert!(format!("{}{}", sim.text(), sim.err).contains("one key in 4"), "{}{}", sim.text(), sim.err);
    let replay = "bench replay low --dbs cairn --rounds 1 --no-probes --work-dir work --results results";
    let ran = scratch.run(replay).ended(0);
    assert!(
        format!("{}{}", ran.text(), ran.err).contains(&format!("of one key in 4 only: {why}")),
        "{}",
        ran.err
    );

    let ran = scratch.shell("cairn trace record -o r -- sh -c 'cp low \"$CAIRN_TRACE\"'");
    assert!(ran.text().contains(&format!("of one key in 4 ({why})")), "{}{}", ran.text(), ran.err);
    let ran = scratch.shell("cairn trace record -o s --json -- sh -c 'cp low \"$CAIRN_TRACE\"'").ended(0);
    assert_eq!((&ran.json()[0]["sample"], &ran.json()[0]["records"]), (&4.into(), &records.into()));
    scratch.run("kv put s.kv a 1 --create").ended(0);
    for (given, env, share) in
        [("", "auto", "all keys"), ("--sample 1", "1", "all keys"), ("--sample 7", "7", "one key in 7")]
    {
        let name = format!("t{env}");
        let program = "echo sample $CAIRN_TRACE_SAMPLE; cairn kv get s.kv a";
        let ran = scratch.shell(&format!("cairn trace record -o {name} {given} -- sh -c '{program}'"));
        let text = ran.text();
        assert!(
            text.contains(&format!("sample {env}\n")) && text.contains(&format!(", of {share}\n")),
            "{text}"
        );
    }
    for word in ["0", "some", "-1"] {
        scratch
            .run(&format!("trace record -o w --sample={word} -- true"))
            .failed(&[word, "expected auto, or"]);
    }
    scratch.run("trace record -o w -- ./nowhere").failed(&["error: ./nowhere does not exist"]);
    let ran = scratch.shell("CAIRN_TRACE=w CAIRN_TRACE_SAMPLE=0 cairn kv get s.kv a");
    assert!(ran.err.contains("CAIRN_TRACE_SAMPLE \"0\": expected auto, or"), "{}", ran.err);
}

/// Goal: the shell's statements are recorded with their row counts, failed ones are not, and the
/// shell continues.
/// Method: a script under `record`.
#[cfg(feature = "sql")]
#[test]
fn statements_are_recorded() {
    let scratch = Scratch::new();
    scratch.write(
        "s.sql",
        "CREATE TABLE t (a int PRIMARY KEY);\nINSERT INTO t VALUES (1), (2);\nINSERT INTO t VALUES (1);\nSELECT * FROM t;\n\
         SELECT a FROM t WHERE a = 2;\n",
    );
    let program = env!("CARGO_BIN_EXE_cairn");
    let words = format!("trace record -o r --keys raw -- {program} sql d.db --keep-going -f s.sql");
    let ran = scratch.run(&words);
    assert!(
        ran.err.contains("duplicate key") && ran.text().contains("r: 4 operations"),
        "{}{}",
        ran.text(),
        ran.err
    );
    let dump = scratch.run("trace dump r").ended(0).text();
    let lines: Vec<&str> = dump.lines().skip(1).collect();
    assert_eq!(lines.len(), 4, "{dump}");
    for (line, (text, rows)) in lines.iter().zip([
        ("CREATE TABLE t", "0"),
        ("INSERT INTO t VALUES (1), (2)", "2"),
        ("SELECT * FROM t", "2"),
        ("WHERE a = 2", "1"),
    ]) {
        assert!(line.contains(text) && line.contains(&format!(",{rows},")), "{line}");
    }
    let stats = scratch.run("trace stats r --html r.html").ended(0).text();
    assert!(stats.contains("statement") && stats.contains("50.0 % read, 25.0 % write"), "{stats}");
    // Hashed statements cannot be classified as reads or writes.
    let words = format!("trace record -o hashed -- {program} sql d.db -c VALUES(1)");
    scratch.run(&words).ended(0);
    let stats = scratch.run("trace stats hashed --html h.html").ended(0).text();
    assert!(stats.contains("statements: texts were not kept") && !stats.contains("% read"), "{stats}");
    let page = String::from_utf8(scratch.read("h.html")).unwrap();
    assert!(page.contains("texts were not kept") && !page.contains("<dt>Reads</dt>"));
    let json = &scratch.run("trace stats hashed --json").ended(0).json()[0];
    assert!(json["read_share"].is_null() && json["write_share"].is_null(), "{json}");
}

/// Goal: a store works even if its trace cannot be written. Method: an environment that names a
/// missing directory.
#[test]
fn unwritable_trace_is_reported() {
    let scratch = Scratch::new();
    scratch.write("in.tsv", "key\tvalue\na\t1\n");
    let ran = scratch.shell("CAIRN_TRACE=/no/such/place cairn kv load s in.tsv --create");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("not recorded") && ran.err.contains("/no/such does not exist"), "{}", ran.err);
}

/// Goal: a disk that becomes full during a recording is reported by the recording program and by
/// `record`, and does not affect the store. Method: a file size limit that the first block exceeds,
/// and one of zero.
#[test]
fn full_disk_is_an_error() {
    let scratch = Scratch::new();
    let key = "k".repeat(2_000);
    scratch.run(&format!("kv put s {key} value --create")).ended(0);
    let record = |blocks: u32, trace: &str| {
        let limited = format!("trap '' XFSZ; ulimit -f {blocks}; cairn kv get s {key}");
        scratch.shell(&format!("cairn trace record -o {trace} --keys raw -- bash -c \"{limited}\""))
    };
    let ran = record(1, "t").ended(1);
    assert!(ran.text().starts_with("value") && ran.text().contains("t: 0 operations"), "{}", ran.text());
    for told in ["note: not all operations are recorded: cannot write", "t: the trace has no end", "error:"] {
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
    let ran = record(0, "none").ended(1);
    assert!(ran.err.contains("operations are not recorded: cannot write"), "{}", ran.err);
    assert!(ran.err.contains("recorded nothing") && !scratch.path("none").exists(), "{}", ran.err);
}

/// Goal: a trace that cannot be created is reported before the program runs. Method: a missing
/// directory, and a directory in place of the file.
#[test]
fn recording_is_refused_before_the_program_runs() {
    let scratch = Scratch::new();
    for (out, named) in [("no/t", "no does not exist"), (".", "already exists")] {
        scratch.run(&format!("trace record -o {out} -- touch ran")).failed(&[named]);
        assert!(scratch.names().is_empty(), "{:?}", scratch.names());
    }
}

/// Goal: when Ctrl-C ends a recorded server, its trace is complete and reported. Method: an
/// interrupt to the whole process group, as from a terminal, for a script that then uses a store
/// and exits normally, and for one that it kills.
#[test]
fn ctrl_c_is_left_to_the_recorded_program() {
    let scratch = Scratch::new();
    scratch.run("kv put s a 1 --create").ended(0);
    scratch.write(
        "well",
        "trap 'sleep 0.5; cairn kv get s a; exit 0' INT; : > ready; while :; do sleep 0.05; done",
    );
    // `exec` avoids a child that Ctrl-C could reach instead; bash would continue if that exited
    // normally.
    scratch.write("badly", "cairn kv get s a; : > ready; exec sleep 100");
    for (script, code, told) in [("well", 0, ""), ("badly", 130, "interrupted: bash ended with signal: 2")] {
        let ran = scratch.shell(&format!(
            "set -m; rm -f ready; cairn trace record -o {script}.trace -- bash {script} & \
             while ! test -e ready; do sleep 0.05; done; kill -INT -- -$!; wait $!"
        ));
        assert_eq!(ran.code, code, "{script}: {}", ran.err);
        assert!(ran.text().contains(&format!("{script}.trace: 1 operations")), "{script}: {}", ran.text());
        assert!(ran.err.contains(told), "{script}: {}", ran.err);
    }
    // The program may end before this process sees Ctrl-C itself; here it never does.
    scratch.write("alone", "cairn kv get s a; kill -INT $$");
    let ran = scratch.shell("cairn trace record -o alone.trace -- bash alone");
    assert_eq!(ran.code, 130, "{}", ran.err);
}

/// Goal: statistics are printed as text, JSON and a page, and damaged files are read as far as
/// possible. Method: a trace, one that was cut, and another file.
#[test]
fn statistics() {
    let scratch = imported();
    let text = scratch.run("trace stats t --html t.html").ended(0).text();
    for part in ["t: 6 operations on 2 keys in 5.00 ms", "50.0 % read, 50.0 % write", "page: t.html"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = std::fs::read_to_string(scratch.path("t.html")).unwrap();
    assert!(
        page.starts_with("<!doctype html>") && !page.contains("http://") && page.contains("requests.csv")
    );
    let json = &scratch.run("trace stats t --json --windows 3").ended(0).json()[0];
    assert_eq!((json["records"].as_u64(), json["windows"].as_array().unwrap().len()), (Some(6), 3));
    let bytes = std::fs::read(scratch.path("t")).unwrap();
    std::fs::write(scratch.path("cut"), &bytes[..bytes.len() - 3]).unwrap();
    let text = scratch.run("trace stats cut").ended(0).text();
    assert!(text.contains("has no end") && text.contains("6 operations"), "{text}");
    scratch.run("trace stats requests.csv").failed(&["requests.csv", "CAIRNTRC"]);
}

/// Goal: every command that uses an incomplete trace reports that, on standard error and in its
/// results. Method: a trace without its end, through every command that takes one; then one with a
/// changed byte in the middle, and a complete one.
#[test]
fn flaws_of_a_trace_are_reported() {
    let scratch = imported();
    let bytes = scratch.read("t");
    scratch.write("cut", &bytes[..bytes.len() - 3]);
    let told = |words: &str, within: bool| {
        let ran = scratch.run(words).ended(0);
        assert!(ran.err.contains("cut: the trace has no end"), "{words}: {}", ran.err);
        assert_eq!(ran.text().contains("the trace has no end"), within, "{words}: {}", ran.text());
    };
    told("trace dump cut", false);
    let sim = "sim run --trace cut --set duration_secs=1";
    told(sim, true);
    told(&format!("{sim} --json"), true);
    let idle = scratch.run("sim optimize --trace cut --set duration_secs=1 --vary seed=1,2").ended(2).text();
    assert!(idle.contains("no configuration ever flushed"), "{idle}");
    for command in ["sweep", "optimize"] {
        let sim = format!("sim {command} --trace cut --set mode=paced --set writes=2000000 --vary seed=1,2");
        told(&sim, true);
        let ran = scratch.run(&format!("{sim} --json")).ended(0);
        for line in ran.json() {
            assert!(line["trace_flaw"].as_str().unwrap().contains("the trace has no end"), "{line}");
        }
        let whole = scratch.run(&sim.replace("cut", "t")).ended(0);
        assert!(!whole.text().contains("flaw") && !whole.text().contains("trace"), "{}", whole.text());
    }
    let pool = "bench pool --trace cut --sizes 1 --policies lru --results results";
    told(pool, true);
    told(&format!("{pool} --json"), true);
    told("advise --trace cut --write-workload w.json", false);
    let replay = "bench replay cut --dbs cairn --rounds 1 --no-probes --work-dir work --results results";
    let ran = scratch.run(replay).ended(0);
    assert!(
        ran.err.contains("the trace has no end") && ran.text().contains("the trace has no"),
        "{}",
        ran.err
    );
    let ran = scratch.run(&format!("{replay} --limit 2")).ended(0);
    assert!(!ran.text().contains("no end"), "what is missing is not asked for: {}", ran.text());

    let rows: String = (0..30_000).map(|number| format!("{number},put,key {number},10\n")).collect();
    scratch.write("long.csv", format!("time_us,op,key,value_size\n{rows}"));
    scratch.run("trace import long.csv -o long").ended(0);
    let ran = scratch.run("trace dump long --limit 1").ended(0);
    assert_eq!(ran.err, "", "nothing to say of a whole one");
    let mut bytes = scratch.read("long");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    scratch.write("long", bytes);
    let ran = scratch.run("trace stats long").ended(1);
    assert!(ran.err.contains("long: the trace is damaged at byte"), "{}", ran.err);
    assert!(ran.text().contains(" operations on "), "what is before the damage is told: {}", ran.text());
    let ran = scratch.run("trace dump long").ended(1);
    let lines = ran.text().lines().count();
    assert!(
        ran.err.contains("long: the trace is damaged at byte") && (2..30_000).contains(&lines),
        "{}",
        ran.err
    );
}

/// Goal: a trace can be replayed, its run is stored with a report, and the simulator and the
/// replacement policies accept it. Method: Cairn's own stores, each in a separate process.
#[test]
fn traces_are_used() {
    let scratch = imported();
    let words = "bench replay t --dbs cairn --rounds 1 --no-probes --work-dir work --results results";
    let text = scratch.run(words).ended(0).text();
    assert!(
        text.contains("6 operations on 2 keys of the trace t") && text.contains("results: results/replay-"),
        "{text}"
    );
    let list = scratch.run(&format!("{words} --speed recorded --threads 2 --json")).ended(0).text();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(
        names.iter().any(|name| name.starts_with("replay::get/dataset=t/") && name.ends_with("latency")),
        "{names:?}"
    );
    scratch.run("bench replay t --dbs cairn --rounds 0").failed(&["'0' for '--rounds <COUNT>'"]);
    scratch.run("bench replay t --dbs cairn --speed fast").failed(&["fast", "recorded"]);
    scratch.run("bench replay requests.csv --dbs cairn").failed(&["requests.csv"]);
    let shown = scratch.run("sim run --trace t --show-config").ended(0).text();
    let config: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(config["workload"]["distribution"]["kind"], "trace");
    assert_eq!(config["workload"]["keys"], 2);
    let text =
        scratch.run("bench pool --trace t --sizes 1,2 --policies lru --results results").ended(0).text();
    assert!(text.contains("t: 6 requests of 2 pages"), "{text}");
}

/// Goal: an input without operations is refused, and no trace is left. Method: a header line alone.
#[test]
fn empty_imports_are_refused() {
    let scratch = Scratch::new();
    scratch.write("empty.csv", "op,key,value_size\n");
    scratch.run("trace import empty.csv -o e").failed(&["empty.csv", "no operation"]);
    assert!(!scratch.path("e").exists());
}
