//! The simulator's commands.

use serde_json::{Value, json};

use crate::support::Scratch;

/// Options for a run of a few thousand writes.
const SMALL: &str = "--keys 50000 --seconds 60 --rate 5";

/// Goal: a run prints text and JSON, reproducibly; its options can be exported and imported again.
/// Method: OPTIONS are exported and read back, and both runs are compared.
#[test]
fn run_result_holds_its_options() {
    let scratch = Scratch::new();
    let ran = scratch
        .run(&format!("sim run {SMALL} --set options.max_background_jobs=6 --export OPTIONS-1"))
        .ended(0);
    for words in ["write amplification", "space amplification", "level"] {
        assert!(ran.text().to_lowercase().contains(words), "{words}: {}", ran.text());
    }
    let options = String::from_utf8(scratch.read("OPTIONS-1")).unwrap();
    assert!(
        options.contains("max_background_jobs=6") && options.contains("[CFOptions \"default\"]"),
        "{options}"
    );
    assert!(options.contains("[Version]") && options.contains("[DBOptions]"), "{options}");
    let ran = scratch.run(&format!("sim run {SMALL} --cache-size 1GiB --export OPTIONS-2")).ended(0);
    assert!(ran.err.contains("an OPTIONS file cannot hold block_cache_size=1073741824"), "{}", ran.err);
    let kv = "--set options.engine=cairn_kv --set options.wal=false --export kv.json";
    let ran = scratch.run(&format!("sim run {SMALL} {kv}")).ended(0);
    assert!(ran.err.contains("a file of kv options cannot hold wal=false"), "{}", ran.err);
    let of = |more: &str| -> Value {
        let ran = scratch.run(&format!("sim run {SMALL} --json {more}")).ended(0);
        serde_json::from_str(&ran.text()).unwrap()
    };
    let (direct, read) = (of("--set options.max_background_jobs=6"), of("--options OPTIONS-1"));
    assert_eq!(direct, of("--set options.max_background_jobs=6"), "equal seeds give equal results");
    assert_eq!(direct["write_amp"], read["write_amp"]);
    assert!(direct["write_amp"].as_f64().unwrap() >= 1.0);
    assert_eq!(direct["outcome"], "done");
    assert!(direct["series"].as_array().unwrap().len() > 10);
    assert_ne!(of("--seed 7")["series"], direct["series"]);
}

/// Goal: a configuration can come from a file, from standard input and from profiles, and can be
/// printed in full. Method: --show-config of each.
#[test]
fn configurations_come_from_everywhere() {
    let scratch = Scratch::new();
    let shown = |arguments: &str| -> Value {
        serde_json::from_str(&scratch.run(&format!("sim run --show-config {arguments}")).ended(0).text())
            .unwrap()
    };
    scratch.write("c.json", r#"{"workload":{"value_bytes":200},"options":{"write_buffer_size":8388608}}"#);
    let config = shown("c.json --hardware hdd --cache-size 16MiB --rate 3");
    assert_eq!(config["workload"]["value_bytes"], 200);
    assert_eq!(config["options"]["write_buffer_size"], 8_388_608);
    assert_eq!(config["options"]["block_cache_size"], 16 << 20);
    assert_eq!(config["hardware"]["disk"]["write_mb_per_sec"], 160.0);
    scratch.write("kv.json", "{}");
    assert_eq!(shown("--kv-options kv.json")["options"]["engine"], "cairn_kv");
    let names = scratch.run("sim profiles --json").ended(0).json();
    assert!(names[0].to_string().contains("nvme"), "{names:?}");
}

/// Goal: mistakes are named, with their line if they have one. Method: one mistake at a time.
#[test]
fn mistakes_are_reported() {
    let scratch = Scratch::new();
    scratch.write("unknown", "[Version]\n  rocksdb_version=7.8.3\n[DBOptions]\n  max_backgruond_jobs=2\n");
    scratch.run("sim run --options unknown").failed(&["unknown", "line 4", "CFOptions"]);
    scratch.write("value", "[DBOptions]\n  max_background_jobs=many\n");
    scratch.run("sim run --options value").failed(&["line 2", "max_background_jobs"]);
    scratch.write("torn", "[DBOptions\n");
    scratch.run("sim run --options torn").failed(&["line 1"]);
    scratch.run("sim run --options missing").failed(&["missing"]);
    scratch.write("bad.json", "{\"workload\":\n{\"kyes\":1}}");
    scratch.run("sim run bad.json").failed(&["bad.json", "line 2", "kyes"]);
    for (setting, word) in [
        ("options.write_buffer_size=0", "write_buffer_size"),
        ("options.write_buffer_size=-5", "write_buffer_size"),
        ("options.max_bytes_for_level_multiplier=NaN", "max_bytes_for_level_multiplier"),
        ("options.num_levels=1000000", "num_levels"),
        ("options.max_background_jobs=0", "max_background_jobs"),
        ("options.level0_stop_writes_trigger=1", "level0_stop_writes_trigger"),
        ("workload.keys=0", "workload.keys"),
        ("workload.keys=99999999999999999999", "keys"),
        ("workload.deletes=1.5", "workload.deletes"),
        ("duration_secs=-1", "duration_secs"),
        ("hardware.disk.write_mb_per_sec=0", "write_mb_per_sec"),
        ("hardware.cores=-2", "cores"),
        ("nothing.at.all=1", "nothing"),
    ] {
        scratch.run(&format!("sim run --set {setting}")).failed(&[word]);
    }
    scratch
        .run("sim run --set nope=1")
        .failed(&["error: --set nope=1: unknown setting `nope`", "--show-config"]);
    scratch.run("sim sweep --vary options.write_bufer_size=1,2").failed(&[
        "error: --vary options.write_bufer_size=1: unknown setting",
        "expected `write_buffer_size`",
        "--show-config",
    ]);
    scratch.run("sim run --keys 0").failed(&["'0' for '--keys <COUNT>'"]);
    scratch.run("sim run --seconds 0").failed(&["'0' for '--seconds <SECONDS>'"]);
    scratch.run("sim run --rate=-5").failed(&["error: --rate: "]);
    scratch.run("sim run --rate fast").failed(&["fast"]);
    scratch.run("sim run --hardware toaster").failed(&["toaster"]);
    scratch.run("sim sweep --vary options.max_background_jobs=1..4").failed(&["--samples"]);
    for count in ["0", "1000001", "99999999999", "-1"] {
        let line = format!("sim sweep --vary seed=1..9 --samples {count}");
        scratch.run(&line).failed(&["--samples", "from 1 to 1000000"]);
    }
    scratch.run("sim calibrate --base nope").failed(&["--base nope", "known: "]);
    let unit = "sim run --set options.write_buffer_size=1PiB";
    scratch.run(unit).failed(&["options.write_buffer_size", "expected a whole number", "TiB"]);
    scratch.run("sim run --replay-cache 99999999999").failed(&["--replay-cache", "from 1 to 100000000"]);
    scratch.run("sim sweep --vary options.nothing=1,2").failed(&["nothing"]);
    scratch.run("sim sweep --vary seed=1,2 --vary seed=3").failed(&["--vary seed: given twice"]);
    let much = "--set mode=paced --set sample=1 --set writes=99999999999 --set writes_per_flush=99999999999";
    scratch.run(&format!("sim run {much}")).failed(&["writes_per_flush is 99999999999", "at most 16777216"]);
    let paced = "sim run --keys 10000 --set mode=paced --set writes=20000";
    scratch.run(&format!("{paced} --seconds 5")).failed(&["error: --seconds: ", "mode=paced"]);
    scratch.run(&format!("{paced} --rate max")).failed(&["error: --rate: ", "mode=paced"]);
    let ran = scratch.run(&format!("{paced} --set options.ttl=5")).ended(0);
    assert!(ran.err.contains("options.ttl is ignored"), "{}", ran.err);
    scratch.run("sim optimize --at-most width=3").failed(&["width"]);
    scratch.run("sim validate --filter nosuchcase").failed(&["nosuchcase", "leveled uniform"]);
    scratch.run("sim validate --held-out --filter nosuchcase").failed(&["nosuchcase", "held one range"]);
    scratch.run("sim validate --held-out --timed").failed(&["--held-out", "--timed"]);
    if cfg!(feature = "peers") {
        scratch.run("sim validate --library nowhere.so --filter fifo").failed(&["nowhere.so"]);
    }
    for (words, word) in [("--part 7/6", "2/6"), ("--part two", "2/6"), ("--merge a.json --quick", "--quick")]
    {
        scratch.run(&format!("sim validate {words}")).failed(&[word]);
    }
    scratch.run("sim validate --merge nowhere.json").failed(&["nowhere.json"]);
    scratch.write("empty.txt", "readrandom   :  0.5 micros/op 1999 ops/sec; (0 of 100000 found)\n");
    scratch.run("sim calibrate --db-bench empty.txt").failed(&["empty.txt"]);
}

/// Goal: the reports of a validation in parts are merged, and the signs of changes are computed
/// over all of their cases. Method: handmade reports of two cases, one of them outside of its
/// limit.
#[test]
fn parts_of_a_validation_are_one_report() {
    let scratch = Scratch::new();
    let write = |name: &str, case: &str, base: Value, predicted: f64| {
        let verdict = json!({ "quantity": "write_amplification", "predicted": predicted, "measured": 10.0,
            "error": predicted / 10.0 - 1.0, "limit": 0.03 });
        let comparison = json!({ "case": case, "base": base, "version": "RocksDB 0", "verdicts": [verdict], "spread": 0.0 });
        let report =
            json!({ "versions": ["RocksDB 0"], "comparisons": [comparison], "signs": [], "skipped": [] });
        scratch.write(name, report.to_string());
    };
    write("one.json", "plain", Value::Null, 10.1);
    write("two.json", "changed", json!("plain"), 12.0);
    let ran = scratch.run("sim validate --merge one.json two.json --page page.md --json").ended(2);
    let report: Value = serde_json::from_str(&ran.text()).unwrap();
    assert_eq!(report["comparisons"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&report["signs"][0]["case"], &report["signs"][0]["base"]),
        (&json!("changed"), &json!("plain"))
    );
    let page = String::from_utf8(scratch.read("page.md")).unwrap();
    assert!(page.contains("| changed | write amp | 12.000 | 10.000 | +20.0 % | off |"), "{page}");
    scratch.run("sim validate --merge one.json").ended(0);
    scratch.write("other.json", "{\"a\":1}");
    scratch.run("sim validate --merge other.json").failed(&["other.json"]);
}

/// Goal: overload is a result with its own exit code, and is computed quickly. Method: an old disk
/// under a load that it cannot sustain.
#[test]
fn overload_is_reported_as_a_result() {
    let scratch = Scratch::new();
    let ran = scratch.run("sim run --hardware hdd --rate 500 --json").ended(2);
    let results: Value = serde_json::from_str(&ran.text()).unwrap();
    assert_eq!(results["outcome"], "out_of_memory");
    assert!(results["secs"].as_f64().unwrap() < 3600.0);
}

/// Goal: sweeps have one row per configuration, in every format, whatever the number of threads.
/// Method: a grid and a hypercube.
#[test]
fn sweeps_write_tables() {
    let scratch = Scratch::new();
    let grid = format!(
        "sim sweep {SMALL} --vary options.write_buffer_size=1MiB,4MiB --vary options.compaction_style=leveled,universal"
    );
    let csv = scratch.run(&format!("{grid} --threads 1")).ended(0).text();
    assert_eq!(csv.lines().count(), 5, "{csv}");
    assert!(csv.starts_with("options.write_buffer_size,options.compaction_style,"), "{csv}");
    scratch.run(&format!("{grid} --threads 3 -o grid.csv")).ended(0);
    assert_eq!(String::from_utf8(scratch.read("grid.csv")).unwrap(), csv);
    assert_eq!(scratch.run(&format!("{grid} --json")).ended(0).json().len(), 4);
    let cube = format!("sim sweep {SMALL} --vary options.max_bytes_for_level_multiplier=4..12 --samples 5");
    scratch.run(&format!("{cube} -o cube.parquet")).ended(0);
    assert!(scratch.read("cube.parquet").starts_with(b"PAR1"));
    scratch.run(&format!("{cube} -o cube.txt")).failed(&["cube.txt"]);
}

/// Goal: the search finds a front within its limits, reports which limits bind, and exports
/// readable changes.
/// Method: a small search; a limit that no configuration meets.
#[test]
fn optimize_finds_a_pareto_front() {
    let scratch = Scratch::new();
    let vary =
        "--vary options.compaction_style=leveled,universal --vary options.write_buffer_size=1MiB,4MiB,16MiB";
    let search = format!("sim optimize {SMALL} {vary} --objective write_amp,space_amp");
    let ran = scratch.run(&format!("{search} --export changes --json")).ended(0);
    let found: Value = serde_json::from_str(&ran.text()).unwrap();
    assert!(!found["front"].as_array().unwrap().is_empty(), "{found}");
    scratch.run(&format!("sim run {SMALL} --options changes")).ended(0);
    let ran = scratch.run(&format!("{search} --at-most space_amp=0.01")).ended(2);
    assert!((ran.text() + &ran.err).contains("space_amp"));
}

/// Goal: a configuration that never flushed does not win, but is left out. Method: a memtable that
/// the run fills several times, and one that it never fills.
#[test]
fn optimize_leaves_out_inconclusive_runs() {
    let scratch = Scratch::new();
    let search =
        "sim optimize --keys 20000 --seconds 20 --rate 1 --vary options.write_buffer_size=1MiB,64MiB";
    let found: Value =
        serde_json::from_str(&scratch.run(&format!("{search} --json")).ended(0).text()).unwrap();
    assert_eq!((&found["tried"], &found["never_flushed"]), (&json!(1), &json!(1)), "{found}");
    assert_eq!(found["front"][0]["settings"]["options.write_buffer_size"], 1 << 20);
    let text = scratch.run(search).ended(0).text();
    assert!(text.contains("1 that never flushed"), "{text}");
}

/// Goal: a hardware profile made from the output of RocksDB's tools can be used. Method: a line of
/// db_bench.
#[test]
fn profiles_come_from_tools() {
    let scratch = Scratch::new();
    scratch.write("fill.txt", "fillrandom   :       4.500 micros/op 222222 ops/sec;  245.8 MB/s\n");
    scratch.run("sim calibrate --db-bench fill.txt --name mine -o mine.json").ended(0);
    let profile: Value = serde_json::from_slice(&scratch.read("mine.json")).unwrap();
    assert!(profile.to_string().contains("mine"), "{profile}");
    scratch.run(&format!("sim run {SMALL} --hardware ./mine.json")).ended(0);
}

/// Goal: every command has help with examples. Method: --help of all.
#[test]
fn all_commands_have_help() {
    let scratch = Scratch::new();
    for command in ["run", "sweep", "optimize", "validate", "calibrate", "profiles"] {
        let text = scratch.run(&format!("sim {command} --help")).ended(0).text();
        assert!(text.contains("cairn sim ") && text.contains("Example"), "{command}: {text}");
    }
}
