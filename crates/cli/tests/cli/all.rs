//! `cairn bench all`: every suite in one run, with tiny sizes; interrupted, killed and resumed;
//! with failing suites and with suites that cannot run.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::{Ran, Scratch};

/// Hides peers that need a virtual machine, a server or a library.
const NOTHING_HERE: [&str; 3] =
    ["CAIRN_SPARKEY_JAR=/none/a.jar", "CAIRN_POSTGRES_BIN=/none/bin", "CAIRN_ROCKSDB_LIB=/none/b.so"];

const TINY: &str = "--scale 0.001 --rounds 1 --no-probes --work-dir w --results runs";

fn run(scratch: &Scratch, line: &str) -> Ran {
    scratch.shell(&format!("{} cairn bench all {line}", NOTHING_HERE.join(" ")))
}

/// Returns the directory of the only run.
fn run_dir(scratch: &Scratch) -> PathBuf {
    let entries = std::fs::read_dir(scratch.path("runs")).unwrap().map(|entry| entry.unwrap().path());
    let mut dirs: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    assert_eq!(dirs.len(), 1, "{dirs:?}");
    dirs.remove(0)
}

fn parts(scratch: &Scratch) -> Vec<PathBuf> {
    let Ok(runs) = std::fs::read_dir(scratch.path("runs")) else { return Vec::new() };
    let dirs = runs.filter_map(|entry| std::fs::read_dir(entry.ok()?.path().join("parts")).ok());
    let files = dirs.flatten().filter_map(|entry| Some(entry.ok()?.path()));
    files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
}

/// Goal: one command measures every suite that can run, reports in one line which ones cannot and
/// what to install, and leaves a report and stored runs that the other commands can read. Method:
/// the quick form at a thousandth of its size, without Java, PostgreSQL and RocksDB.
#[test]
fn every_suite_in_one_run() {
    let scratch = Scratch::new();
    let ran = run(&scratch, &format!("--suites hash,kv,pool,index {TINY}")).ended(0);
    for line in ["note: index is left out:", "note: rocksdb is left out:", "note: sparkey-java is left out:"]
    {
        assert_eq!(ran.err.matches(line).count(), 1, "{line}: {}", ran.err);
    }
    assert!(
        ran.err.contains("[1/") && ran.err.contains("first guess") && ran.err.contains("about"),
        "{}",
        ran.err
    );
    let out = ran.text();
    for words in ["Where a peer is ahead", "Where Cairn is ahead", "left out", "done"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let dir = run_dir(&scratch);
    let report = std::fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(report.len() < 5_000_000, "{}", report.len());
    for words in [
        "Wins and losses",
        "id=\"kv-verdict\"",
        "id=\"hash-verdict\"",
        "id=\"pool-all\"",
        "<h2>Left out</h2>",
    ] {
        assert!(report.contains(words), "{words}");
    }
    let name = dir.file_name().unwrap().to_str().unwrap();
    let kv = format!("runs/{name}/suites/kv.json");
    scratch.run(&format!("bench compare {kv} {kv}")).ended(0);
    scratch.run(&format!("bench record {kv} runs/{name}/suites/pool.json --history h")).ended(0);
    let again = scratch.run(&format!("bench report runs/{name} -o again.html")).ended(0).text();
    assert_eq!((again.as_str(), scratch.read("again.html").len() > 100_000), ("again.html\n", true));
    let ran = run(&scratch, &format!("--suites pool {TINY} --json")).ended(0);
    let list: Value = serde_json::from_str(&ran.text()).unwrap();
    assert!(
        list.as_array().unwrap().iter().any(|entry| entry["name"].as_str().unwrap().starts_with("pool::"))
    );
}

/// Goal: a kill or Ctrl-C loses no completed part; Ctrl-C leaves a report and explains how to
/// resume; resuming measures exactly the missing parts. Method: both signals to a run that has
/// stored a part, and then the rest.
#[test]
fn interrupted_runs_are_resumed() {
    let scratch = Scratch::new();
    let start = |line: &str| {
        let mut command = scratch.command(&format!("bench all {line}"));
        for pair in NOTHING_HERE {
            let (name, value) = pair.split_once('=').unwrap();
            command.env(name, value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let wait_for = |run: &mut Child, count: usize| {
        while parts(&scratch).len() < count {
            assert!(
                run.try_wait().unwrap().is_none(),
                "it ended by itself, with {} parts",
                parts(&scratch).len()
            );
            std::thread::yield_now();
        }
    };
    let mut killed = start(&format!("--suites kv {TINY}"));
    wait_for(&mut killed, 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let dir = run_dir(&scratch);
    assert!(!dir.join("report.html").exists());
    let kept: Vec<PathBuf> = parts(&scratch);

    let mut resumed = start(&format!("--resume {}", dir.display()));
    wait_for(&mut resumed, kept.len() + 1);
    Command::new("kill").args(["-INT", &resumed.id().to_string()]).status().unwrap();
    let output = resumed.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains("parts are finished; to resume: cairn bench all --resume"), "{err}");
    assert!(dir.join("report.html").exists());
    assert!(String::from_utf8_lossy(&output.stdout).contains("resume:  cairn bench all --resume"));

    let before: Vec<(PathBuf, Vec<u8>)> =
        kept.iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    let ran = run(&scratch, &format!("--resume {}", dir.display())).ended(0);
    assert!(!ran.text().contains("resume:") && ran.text().contains("done"), "{}", ran.text());
    for (path, content) in before {
        assert_eq!(std::fs::read(&path).unwrap(), content, "{} was measured again", path.display());
    }
    let report = std::fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(report.contains("3 sittings"), "{}", report.len());
    assert!(report.contains("without probes") && !report.contains("side by side"), "there are no probes");
    // Nothing is left to do, and that is not an error.
    assert!(!run(&scratch, &format!("--resume {}", dir.display())).ended(0).err.contains("[1/"));
}

/// Goal: a failing part does not end the others; its error is in the report, and the exit code
/// tells of it. Method: a data file without the key column.
#[test]
fn failing_suite_does_not_stop_the_others() {
    let scratch = Scratch::new();
    scratch.write("places.csv", "id,name\n1,a\n2,b\n");
    let ran = run(&scratch, &format!("--suites hash,pool --data places.csv --key nosuch {TINY}")).ended(1);
    let last = ran.err.lines().last().unwrap_or_default();
    assert!(last.starts_with("error: ") && last.contains("failed") && last.contains("nosuch"), "{}", ran.err);
    assert!(ran.text().contains("report:"), "{}", ran.text());
    let report = std::fs::read_to_string(run_dir(&scratch).join("report.html")).unwrap();
    for words in ["<h2>Failures</h2>", "nosuch", "id=\"pool-all\"", "id=\"hash-all\""] {
        assert!(report.contains(words), "{words}");
    }
}

/// Goal: an impossible run is refused before any work, and a time limit that is reached before the
/// first measurement is reported.
#[test]
fn impossible_runs_are_refused() {
    let scratch = Scratch::new();
    for (line, word) in [
        ("--suites dkv", "hash, kv, pool"),
        ("--scale 0", "'0' for '--scale <FACTOR>'"),
        ("--rounds 0", "'0' for '--rounds <COUNT>'"),
        ("--quick --full", "--full"),
        ("--data missing.csv --key id", "missing.csv"),
        ("--resume nowhere", "nowhere"),
        ("--resume nowhere --quick", "--resume"),
    ] {
        scratch.run(&format!("bench all {line}")).failed(&[word]);
    }
    assert!(scratch.names().is_empty(), "{:?}", scratch.names());
    let ran =
        run(&scratch, &format!("--suites pool --time-limit 1 {}", TINY.replace("--no-probes", ""))).ended(1);
    assert!(ran.err.contains("nothing was measured") && ran.err.contains("--resume"), "{}", ran.err);
}

/// Goal: a run in which Cairn's store failed does not read as one that Cairn wins, and its exit
/// code is 1.
/// Method: a file size limit that is enough for the report but not for the log of some ten thousand
/// writes.
#[test]
fn run_without_cairn_says_so() {
    let scratch = Scratch::new();
    let line = format!("cairn bench all --suites kv {}", TINY.replace("0.001", "0.25"));
    let ran =
        scratch.shell(&format!("trap '' XFSZ; ulimit -f 1000; {} {line}", NOTHING_HERE.join(" "))).ended(1);
    let out = ran.text();
    let (_, behind) = out.split_once("Where a peer is ahead").unwrap();
    let (behind, _) = behind.split_once("Where Cairn is ahead").unwrap();
    assert!(behind.contains("kv    cairn: failed in ") && !behind.contains("nowhere"), "{out}");
    assert!(out.lines().any(|line| line.starts_with("kv ") && line.contains("cairn failed in ")), "{out}");
    assert!(ran.err.contains("error: not everything was measured: cairn: failed in "), "{}", ran.err);
    let report = std::fs::read_to_string(run_dir(&scratch).join("report.html")).unwrap();
    let (_, words) = report.split_once("<h2>Wins and losses</h2>").unwrap();
    assert!(words.contains("cairn: failed in "), "the report is silent");
}

/// Goal: the commands on runs accept the output of this one. Method: a run of one suite in the
/// default directory, then every command with the run's directory, with the directory of all runs,
/// and without a name; its report once more after a part was damaged.
#[test]
fn directories_are_taken() {
    let scratch = Scratch::new();
    let tiny = TINY.replace("--results runs", "");
    run(&scratch, &format!("--suites pool {tiny}")).ended(0);
    let results = std::fs::read_dir(scratch.path("benchmark-results")).unwrap();
    let name = results.map(|entry| entry.unwrap().file_name().into_string().unwrap()).next().unwrap();
    let dir = format!("benchmark-results/{name}");
    let report = scratch.run("bench report").ended(0).text();
    assert_eq!(report, format!("{dir}/report.html\n"));
    for (place, told) in [(dir.as_str(), "1 run added, 0"), ("benchmark-results", "0 runs added, 1")] {
        let text = scratch.run(&format!("bench record {place} --history h")).ended(0).text();
        assert_eq!(text, format!("h: {told} already there\n"), "{place}");
    }
    let text = scratch.run(&format!("bench compare {dir} {dir} --fail --history h")).ended(0).text();
    assert!(text.contains("pool of ") && text.contains("no regression"), "{text}");
    let suite = format!("{dir}/suites/pool.json");
    scratch.run(&format!("bench compare {suite} benchmark-results --fail --history h")).ended(0);
    scratch.run(&format!("bench compare {dir} --fail --history h")).ended(0);
    std::fs::create_dir(scratch.path("empty")).unwrap();
    scratch.run("bench record empty --history h").failed(&["empty", "no stored run"]);
    scratch.run(&format!("bench compare empty {dir}")).failed(&["empty", "no stored run"]);
    // A part was damaged afterwards: the report contains the other parts, and a note names the
    // missing one and the reason.
    let parts = std::fs::read_dir(scratch.path(&format!("{dir}/parts"))).unwrap();
    let part = parts.map(|entry| entry.unwrap().path()).next().unwrap();
    std::fs::write(&part, "{ \"suite\": \"po").unwrap();
    let told = scratch.run("bench report").ended(0);
    let name = part.file_name().unwrap().to_str().unwrap();
    assert!(told.err.contains(name) && told.err.contains("counts as not measured"), "{}", told.err);
}

/// Goal: a run that cannot start leaves no files. Method: a work directory that cannot be created.
#[test]
fn runs_that_cannot_begin_leave_no_files() {
    let scratch = Scratch::new();
    for suite in ["all --suites pool", "kv --n 10 --modes seq --dbs cairn"] {
        scratch.run(&format!("bench {suite} --work-dir /proc/foo")).failed(&["/proc/foo"]);
        assert_eq!(scratch.names(), [""; 0], "{suite}");
    }
}
