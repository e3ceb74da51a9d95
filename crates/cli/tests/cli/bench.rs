//! The lab's commands, on short runs.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use crate::support::Scratch;

/// Goal: a run stores its figures and its report; stored runs can be compared, reported on and put
/// into a README.
/// Method: the smallest run of one contender, which exercises everything that a long one does.
#[test]
fn hash_run_stores_reports_and_compares() {
    let scratch = Scratch::new();
    scratch
        .write("data.csv", (0..500).fold("id,name\n".to_owned(), |csv, n| csv + &format!("{n},name {n}\n")));
    let run = "bench hash heap --data data.csv --key id --source GeoNames --entries 1000 --rounds 1 \
               --seed 7 --distribution sequential --time-limit 60 --work-dir . --results runs";
    let ran = scratch.run(run).ended(0);
    let out = ran.text();
    assert!(
        out.contains("cairn") && out.contains("results: runs/hash-") && out.contains("report:  runs/hash-"),
        "{out}"
    );
    let run = out.lines().find_map(|line| line.strip_prefix("results: ")).unwrap();
    let stored: serde_json::Value = serde_json::from_slice(&scratch.read(run)).unwrap();
    assert_eq!((&stored["stopped"], &stored["seed"]), (&serde_json::Value::Bool(false), &7.into()));
    let html = String::from_utf8(scratch.read(&run.replace(".json", ".html"))).unwrap();
    let repeat =
        "cairn bench hash heap --data data.csv --key id --source GeoNames --entries 1000 --rounds 1 --seed 7";
    assert!(html.contains(repeat), "the page says how to repeat it");
    assert!(html.starts_with("<!doctype html") || html.starts_with("<!DOCTYPE html"), "{}", &html[..40]);

    let compared = scratch.run(&format!("bench compare {run} {run} --json")).ended(0);
    let compared: serde_json::Value = serde_json::from_str(&compared.text()).unwrap();
    assert_eq!(compared["geometric_mean"], 1.0);
    scratch.run(&format!("bench compare {run} {run}")).ended(0);
    scratch.run(&format!("bench report {run} -o r.html --baseline {run}")).ended(0);
    assert!(scratch.read("r.html").len() > html.len());
    scratch.run(&format!("bench report {run} -o again.html")).ended(0);
    let out = scratch.run(&format!("bench report {run} -o -")).ended(0);
    assert!(out.text().as_bytes() == scratch.read("again.html"), "a page on standard output is the page");

    scratch.write(
        "README.md",
        "# A\n<!-- results:hash:begin -->\nstale words\n<!-- results:hash:end -->\nend\n",
    );
    scratch.run("bench readme").failed(&["benchmark-results/stored"]);
    scratch.run(&format!("bench readme --run {run}")).ended(0);
    let page = String::from_utf8(scratch.read("README.md")).unwrap();
    assert!(page.starts_with("# A\n") && page.ends_with("end\n") && page.contains("| cairn"), "{page}");
    assert!(!page.contains("stale words"));
    scratch.write("README.md", page.replace("| cairn", "| stale"));
    let told = scratch.run("bench readme --run runs").ended(0).text();
    assert_eq!(told, "README.md: the table of suite hash from runs\n");
    assert_eq!(
        scratch.read("README.md"),
        page.as_bytes(),
        "the run of a directory that the page has a place for"
    );
    scratch.write("bare.md", "# no markers\n");
    scratch
        .run("bench readme --run runs --readme bare.md")
        .failed(&["bare.md", "no markers for the suites in runs, which are hash"]);
    scratch
        .run(&format!("bench readme --run {run} --readme bare.md"))
        .failed(&["bare.md", "results:hash:begin"]);
}

/// Goal: impossible options and unreadable or missing files are errors before any work.
#[test]
fn impossible_runs_are_refused() {
    let scratch = Scratch::new();
    scratch.write("a.json", "{}");
    scratch.run("bench hash --quick --full").failed(&["--full"]);
    scratch.run("bench hash --data a.csv").failed(&["--key"]);
    scratch.run("bench hash --data missing.csv --key id").failed(&["missing.csv"]);
    scratch.run("bench hash --distribution normal").failed(&["normal", "zipfian"]);
    scratch.run("bench hash --entries 0").failed(&["'0' for '--entries <COUNT>'"]);
    scratch.run("bench hash --rounds 0").failed(&["'0' for '--rounds <COUNT>'"]);
    scratch
        .run("bench hash nosuchcase --work-dir w --results r")
        .failed(&["no case has \"nosuchcase\" in its name"]);
    scratch.write("places.csv", "id,name\n1,a\n");
    scratch
        .run("bench hash --data places.csv --key zz --work-dir w --results r")
        .failed(&["error: places.csv, line 1: no column \"zz\""]);
    scratch.run("hash bench --entries x").failed(&["--entries"]);
    scratch.run("bench compare a.json missing.json").failed(&["a.json", "schema"]);
    scratch.run("bench report").failed(&["benchmark-results"]);
    assert_eq!(scratch.names(), ["a.json", "places.csv"]);
}

/// Goal: the key-value suite accepts DKV's command line, runs each turn in a separate process,
/// prints its layout, a table and every setting, and stores a run that the other commands can read.
/// Method: SQLite at a tiny size, with both spellings of one option.
#[test]
fn kv_run_stores_reports_and_compares() {
    let scratch = Scratch::new();
    let common =
        "--n=300 --batch=100 --threads=2 --sync-n=20 --dbs=sqlite --rounds 1 --work-dir . --results runs";
    let ran = scratch.run(&format!(
        "bench kv {common} --ops-per-threads=50 --modes=seq,rand,batch,mt,sync-seq,sync-rand --seed 7"
    ));
    let out = ran.ended(0).text();
    let head = "cairn benchmark suite\n  n=300, batch=100, threads=2, ops_per_thread=50, sync_n=20, seed=7\n\nSQLite (seq, n=300)\n   put:    ";
    assert!(out.starts_with(head), "{out}");
    for words in [
        "\nSQLite (mt, 2 threads, 50 ops each)\n  put (worst thread): ",
        "\nSQLite (sync-rand, n=20)\n   put:    ",
    ] {
        assert!(out.contains(words), "{out}");
    }
    assert!(out.contains("synchronous = FULL") && out.contains("wal_autocheckpoint"), "{out}");
    let run = out.lines().find_map(|line| line.strip_prefix("results: ")).unwrap();
    let stored: serde_json::Value = serde_json::from_slice(&scratch.read(run)).unwrap();
    assert_eq!((&stored["suite"], &stored["stopped"]), (&"kv".into(), &serde_json::Value::Bool(false)));
    let metrics = stored["measurements"].as_array().unwrap();
    for metric in ["throughput", "latency", "write amplification", "bytes per entry", "time"] {
        assert!(metrics.iter().any(|m| m["metric"] == metric && m["verified"] == true), "{metric}");
    }
    scratch.run(&format!("bench compare {run} {run}")).ended(0);
    scratch.run(&format!("bench report {run} -o kv.html")).ended(0);
    std::fs::create_dir(scratch.path("benchmark-results")).unwrap();
    scratch.write("benchmark-results/kv-newest.json", scratch.read(run));
    let newest = scratch.run("bench report").ended(0).text();
    assert_eq!(newest, "benchmark-results/kv-newest.html\n");

    scratch.write(
        "mine",
        "recordcount=200\noperationcount=100\nreadproportion=1\nupdateproportion=0\nexporter=x\n",
    );
    let own = "--ycsb-file mine -p fieldlength=2 --benchmarks fillseq,readseq --json";
    let ran = scratch.run(&format!("bench kv {common} {own}")).ended(0);
    assert!(ran.err.contains("exporter"), "{}", ran.err);
    let list: serde_json::Value = serde_json::from_str(&ran.text()).unwrap();
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert!(names.iter().any(|name| name.contains("dataset=mine") && name.contains("value=20")), "{names:?}");
    assert!(names.iter().any(|name| name.contains("kv::readseq/dataset=db_bench")), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("dataset=seq")), "{names:?}");
}

/// Goal: a run that ends within its first turn reports that it has no result, and is not taken for
/// an interrupted one. Method: hours of work with a limit of one second; a limit of zero.
#[test]
fn kv_run_that_ends_at_once() {
    let scratch = Scratch::new();
    let line = "bench kv --n 400000000 --dbs cairn --modes seq --results runs --work-dir w --no-probes";
    let ran = scratch.run(&format!("{line} --time-limit 1")).ended(1);
    assert!(
        ran.err.contains("--time-limit 1") && ran.err.contains("nothing is reported or stored"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("kept") && !ran.err.contains("interrupted"), "{}", ran.err);
    assert!(ran.out.is_empty());
    scratch.run(&format!("{line} --time-limit 0")).failed(&["--time-limit", "a time over 0"]);
}

/// Goal: Ctrl-C keeps the results so far, reports where they are, and the exit code says that they
/// are incomplete. Method: an interrupt to a run of very many rounds, once some turns have created
/// their directories.
#[test]
fn interrupted_run_is_stored() {
    let scratch = Scratch::new();
    let line = "bench kv --n 500 --modes seq --dbs cairn --rounds 1000000 --no-latencies --no-probes --results runs --work-dir w";
    let mut command = scratch.command(line);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = command.spawn().unwrap();
    let mut turns = BTreeSet::new();
    while turns.len() < 4 {
        assert!(run.try_wait().unwrap().is_none(), "it ended by itself after {turns:?}");
        let entries = std::fs::read_dir(scratch.path("w")).into_iter().flatten();
        turns.extend(entries.filter_map(|entry| Some(entry.ok()?.file_name())));
        std::thread::yield_now();
    }
    Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    let output = run.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{err}");
    let file = out.lines().find_map(|line| line.strip_prefix("results: ")).unwrap();
    assert!(err.contains("error: interrupted: ") && err.contains(&format!("kept: {file}")), "{err}");
    let stored: serde_json::Value = serde_json::from_slice(&scratch.read(file)).unwrap();
    assert_eq!(stored["stopped"], true);
    assert!(!stored["measurements"].as_array().unwrap().is_empty());
}

/// Goal: impossible options of the key-value suite are errors before any work.
#[test]
fn impossible_kv_runs_are_refused() {
    let scratch = Scratch::new();
    scratch.write("bad", "readproportion=x\n");
    for (line, word) in [
        ("--n 0", "'0' for '--n <COUNT>'"),
        ("--threads 0", "expected a whole number from 1 to 1024"),
        ("--dbs dkv", "'dkv' for '--dbs <NAMES>': expected one of cairn, rocksdb, "),
        ("--modes fast", "sync-rand"),
        ("--benchmarks fillfast", "fillseq"),
        ("--key-size 5", "key size 5"),
        ("--key-size 0", "'0' for '--key-size <SIZE>'"),
        ("--value-size 3", "'3' for '--value-size <SIZE>'"),
        ("--cache-size 1", "expected 1.0 MiB to 1.0 TiB"),
        ("--durability maybe", "buffered"),
        ("--ycsb-file missing", "missing"),
        ("--ycsb-file bad", "readproportion"),
        ("-p recordcount", "recordcount"),
    ] {
        scratch.run(&format!("bench kv {line} --results runs --work-dir w")).failed(&[word]);
    }
    assert_eq!(scratch.names(), ["bad"]);
}

/// Goal: the buffer pool suite accepts the guide's commands, prints the guide's phases, and stores
/// a run that the other commands can read; its filter is ignored in JSON. Method: few samples, two
/// thread counts.
#[test]
fn pool_run_stores_reports_and_compares() {
    let scratch = Scratch::new();
    let common = "--threads 2 --work-dir . --results runs --policies lru,sieve --peers textbook";
    let out = scratch.run(&format!("bench pool 2 12 Random {common}")).ended(0).text();
    for words in [
        "2 iterations, 12 buffers",
        "Random MT x2 (K=50, uniform)",
        "cairn sieve",
        "textbook",
        "Hit Rate (Random K=100)",
        "policy: SIEVE",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(!out.contains("Zipfian") && !out.contains("pin:t2"), "{out}");
    let run = out.lines().find_map(|line| line.strip_prefix("results: ")).unwrap();
    scratch.run(&format!("bench compare {run} {run}")).ended(0);
    scratch.run(&format!("bench report {run} -o pool.html")).ended(0);
    assert!(String::from_utf8(scratch.read("pool.html")).unwrap().contains("Pages over threads"));

    let ran = scratch.run(&format!("bench pool 1 12 --json Random {common}")).ended(0);
    assert!(
        ran.err.contains("note: \"Random\" is ignored: the dashboard's list is always complete"),
        "{}",
        ran.err
    );
    let list: serde_json::Value = serde_json::from_str(&ran.text()).unwrap();
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    for name in ["Pin/Unpin (hit)", "Zipfian MT x2 (80/20)", "hotset:t2_k4", "hotset:t2_k4 [textbook]"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert_eq!(list[0]["unit"], "ns");
}

/// Goal: raw results are stored by platform, and rendering the documentation's tables from them is
/// reproducible.
#[test]
fn pool_tables_are_rendered() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path("d/engines")).unwrap();
    scratch.write(
        "d/engines/pool-benchmark.md",
        "# A\n<!-- results:pool-linux:begin -->\nstale\n<!-- results:pool-linux:end -->\nend\n",
    );
    scratch.run("bench render --docs d").failed(&["raw"]);
    let run = "bench pool 1 12 --collect --platform linux --docs d --threads 2 --work-dir . --results runs --policies lru,clock --peers textbook";
    let out = scratch.run(run).ended(0).text();
    assert!(
        out.contains("raw results: d/benchmarks/replacement_policies/raw/linux/buffer_pool.json"),
        "{out}"
    );
    let log = String::from_utf8(scratch.read("d/benchmarks/replacement_policies/raw/linux/buffer_pool.log"))
        .unwrap();
    assert!(out.starts_with(&log), "the log is what was printed");
    scratch.run("bench render --docs d --platforms linux").ended(0);
    let read = |name: &str| String::from_utf8(scratch.read(name)).unwrap();
    let (page, own) =
        (read("d/engines/pool-benchmark.md"), read("d/benchmarks/replacement_policies/linux_buffer_pool.md"));
    assert!(page.starts_with("# A\n") && page.ends_with("end\n") && !page.contains("stale"), "{page}");
    assert!(
        page.contains("| Benchmark | cairn lru | cairn clock | textbook |") && page.contains("**"),
        "{page}"
    );
    assert!(own.contains("| kernel |") && own.contains("## Phase 5"), "{own}");
    scratch.run("bench render --docs d").ended(0);
    assert_eq!(page, read("d/engines/pool-benchmark.md"));
    scratch.write("d/engines/pool-benchmark.md", "# no markers\n");
    scratch.run("bench render --docs d").failed(&["pool-benchmark.md", "results:pool-linux:begin"]);
}

/// Goal: traces are replayed at the requested sizes, as a table, as JSON and in a report. Method: a
/// loop that does not fit, and one that does.
#[test]
fn traces_are_replayed() {
    let scratch = Scratch::new();
    let text = |pages: u32| (0..300).map(|at| format!("{}\n", at % pages)).collect::<String>();
    scratch.write("loop.txt", text(10));
    scratch.write("short.txt", text(2));
    let common = "--results runs --sizes 50%,10";
    let out = scratch.run(&format!("bench pool --trace loop.txt short.txt {common}")).ended(0).text();
    assert!(
        out.contains("loop: 300 requests of 10 pages")
            && out.contains("W-TinyLFU")
            && out.contains("optimum"),
        "{out}"
    );
    let ran = scratch
        .run(&format!("bench pool --trace loop.txt {common} --policies lru,lirs --json --html t.html"));
    let rows: serde_json::Value = serde_json::from_str(&ran.ended(0).text()).unwrap();
    assert_eq!((&rows[0]["frames"], &rows[0]["hit_ratios"]["lru"]), (&5.into(), &0.0.into()));
    assert!(
        rows[0]["optimum"].as_f64().unwrap() > 0.4 && rows[1]["hit_ratios"]["lru"].as_f64().unwrap() > 0.96
    );
    assert!(String::from_utf8(scratch.read("t.html")).unwrap().contains("Recorded requests"));
    scratch.write("bad.txt", "1\n2\nx7\n");
    scratch.run("bench pool --trace loop.txt bad.txt").failed(&["bad.txt", "line 3", "x7"]);
    scratch.run("bench pool --trace none.txt").failed(&["none.txt"]);
    scratch.run("bench pool --trace loop.txt --sizes 0").failed(&["\"0\"", "5%"]);
    scratch.run("bench pool --trace loop.txt --sizes 99999999999999").failed(&[
        "--sizes",
        "99999999999999",
        "memory",
    ]);
    scratch.run("bench pool 50 12 --trace loop.txt").failed(&["--trace"]);
}

/// Goal: impossible options of the buffer pool suite are errors before any work.
#[test]
fn impossible_pool_runs_are_refused() {
    let scratch = Scratch::new();
    for (line, word) in [
        ("0", "'0' for '[ITERATIONS]'"),
        ("5 2", "'2' for '[BUFFERS]'"),
        ("5 12 nothing-like-it", "nothing-like-it"),
        ("--policies fifo", "w-tinylfu"),
        ("--peers foyer", "quick_cache"),
        ("--policies none --peers none", "no policies"),
        ("--page-size 5000", "'5000' for '--page-size <SIZE>'"),
        ("--threads 1", "'1' for '--threads <COUNT>'"),
        ("--collect", "--platform"),
        ("--collect --platform a/b", "a/b"),
        ("--sizes 5%", "--trace"),
        ("x", "ITERATIONS"),
    ] {
        scratch.run(&format!("bench pool {line} --results runs --work-dir w")).failed(&[word]);
    }
    assert!(scratch.names().is_empty(), "{:?}", scratch.names());
}

/// Goal: the hidden worker answers any request.
#[test]
fn worker_answers() {
    let scratch = Scratch::new();
    let answer = scratch.run_with("bench-worker", b"no job").ended(0).text();
    assert!(answer.contains("failed") && answer.contains("job"), "{answer}");
}

/// Goal: the SQL suite accepts the guide's commands, prints its groups, and stores a run that the
/// other commands can read; its filter is ignored in JSON; impossible options are reported. Method:
/// SQLite alone, little data.
#[test]
fn sql_run_stores_reports_and_compares() {
    let scratch = Scratch::new();
    let common = "--work-dir . --results runs --peers sqlite --rounds 1 --seconds 0.005 --rows 300 --load-rows 300 --clients 2 --writers 2 \
                  --threads 1,2 --durability buffered";
    let out = scratch.run(&format!("bench sql 2 INSERT {common}")).ended(0).text();
    for words in ["INSERT (single record)", "Index Concurrency: INSERT disjoint keys t4", "SQL: guide"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(!out.contains("SELECT (") && out.contains("synchronous = NORMAL"), "{out}");
    let run = out.lines().find_map(|line| line.strip_prefix("results: ")).unwrap();
    scratch.run(&format!("bench compare {run} {run}")).ended(0);
    scratch.run(&format!("bench report {run} -o sql.html")).ended(0);
    assert!(String::from_utf8(scratch.read("sql.html")).unwrap().contains("INSERT (single record)"));

    let ran = scratch.run(&format!("bench sql 1 --json INSERT {common}")).ended(0);
    let list: serde_json::Value = serde_json::from_str(&ran.text()).unwrap();
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    for name in ["INSERT (single record)", "SELECT (table scan)", "SELECT COUNT(*)"] {
        assert!(names.iter().any(|known| known.starts_with(name)), "{name}: {names:?}");
    }
    assert_eq!(list[0]["unit"], "ns");
    scratch.run(&format!("bench sql 1 nonesuch {common}")).failed(&["nonesuch"]);
    scratch.run("bench sql 1 --peers oracle --results runs").failed(&["oracle", "sqlite"]);
    scratch.run("bench sql --tpch 1 --pgbench 1").failed(&["cannot be used with"]);
}

/// Goal: a failed contender does not vanish from the comparison: it is named on the terminal, in
/// the stored run and in the report, and the exit code is 1. Method: a file size limit that
/// SQLite's log exceeds and Cairn's files do not.
#[test]
fn failing_suite_is_named() {
    let scratch = Scratch::new();
    let ran = scratch
        .shell(
            "trap '' XFSZ; ulimit -f 2048; cairn bench kv --n=2000 --modes seq --dbs cairn,sqlite --rounds 1 \
             --no-probes --work-dir w --results runs",
        )
        .ended(1);
    let out = ran.text();
    assert!(out.contains("\nsqlite: failed in 1 case: seq: "), "{out}");
    assert!(
        ran.err.contains("error: not everything was measured: sqlite: failed in 1 case: seq: "),
        "{}",
        ran.err
    );
    let run = out.lines().find_map(|line| line.strip_prefix("results: ")).unwrap();
    let stored: serde_json::Value = serde_json::from_slice(&scratch.read(run)).unwrap();
    let contenders = stored["contenders"].as_array().unwrap();
    let sqlite = contenders.iter().find(|contender| contender["name"] == "sqlite").unwrap();
    assert!(sqlite["settings"]["not measured 1"].as_str().unwrap().starts_with("seq: "), "{sqlite}");
    let report = String::from_utf8(scratch.read(&run.replace(".json", ".html"))).unwrap();
    assert!(report.contains("sqlite: failed in 1 case: seq: "), "the report is silent");
}
