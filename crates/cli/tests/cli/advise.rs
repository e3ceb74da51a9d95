//! `cairn advise`, on stores that run only for a moment.

use crate::support::Scratch;

/// Goal: a question leads to an answer that a program can parse. Method: two of Cairn's own stores
/// with lookups only; then a file with the same question.
#[test]
fn an_answer() {
    let scratch = Scratch::new();
    let asked = "--records 2000 --read 1 --dbs cairn,cairn-hash --distribution uniform";
    scratch.run(&format!("advise {asked} --write-workload w.json")).ended(0);
    let written: serde_json::Value = serde_json::from_slice(&scratch.read("w.json")).unwrap();
    assert_eq!(written["workload"]["records"], 2000);
    let ran = scratch.run("advise w.json --effort quick --work-dir work --json").ended(0);
    let advice: serde_json::Value = serde_json::from_str(&ran.text()).unwrap();
    assert_eq!(advice["question"], written);
    assert_eq!(advice["verified"].as_array().unwrap().len(), 2, "{advice}");
    assert!(advice["settings"].as_str().unwrap().contains("open"), "{advice}");
}

/// Goal: a missing recommendation is explained: exit code 2 if no store meets the constraints, 1
/// for invalid questions.
#[test]
fn missing_recommendation_is_explained() {
    let scratch = Scratch::new();
    let ran = scratch
        .run("advise --records 2000 --update 1 --dbs cairn-hash --effort quick --work-dir work")
        .ended(2);
    assert!(
        ran.text().contains("No store meets the constraints") && ran.text().contains("built once"),
        "{}",
        ran.text()
    );
    scratch.run("advise").failed(&["--read"]);
    scratch.run("advise --read 1 --records 3").failed(&["'3' for '--records <COUNT>'", "from 100"]);
    scratch.run("advise --read 1 --dbs rocksbd").failed(&["rocksbd", "cairn"]);
    scratch.run("advise --read 0").failed(&["over 0"]);
    scratch.run("advise --read 1 --p99 0").failed(&["p99"]);
    scratch.run("advise --read=-5").failed(&["'-5' for '--read <SHARE>'", "0 or more"]);
    scratch.run("advise --read 1 --value-size 3").failed(&["'3' for '--value-size <SIZE>'", "8 B"]);
    let steep = scratch.shell("cairn advise --read 1 --distribution 'zipfian 7'");
    steep.failed(&["--distribution", "theta 7", "over 0 and at most 5"]);
    scratch.run("advise --check --filter walks").failed(&["walks", "'short scans'"]);
    scratch.write("w.json", "{\"workload\": {\"recrods\": 5}}");
    scratch.run("advise w.json").failed(&["w.json, line 1: workload: unknown setting `recrods`"]);
    scratch.write("w.json", "{\"workload\": {\n\"records\": {}}}");
    let expected =
        "w.json, line 2: workload.records: found an object, expected a whole number from 100 to 4294967295";
    scratch.run("advise w.json").failed(&[expected]);
    scratch.run("advise missing.json").failed(&["missing.json"]);
}

/// Goal: Ctrl-C ends the command with 130, as documented, and is not reported as an error. Method:
/// while stores are measured, and while it asks on a terminal created by `script`.
#[test]
fn ctrl_c_ends_the_server() {
    let scratch = Scratch::new();
    let measured =
        "cairn advise --read 1 --update 1 --dbs cairn,sqlite --effort full --work-dir work & pid=$!
        until [ -e work ]; do kill -0 $pid || exit 99; done
        kill -INT $pid; wait $pid";
    // Without job control, a shell starts background commands with Ctrl-C ignored.
    let ran = scratch.shell(&format!("set -m; {measured}")).ended(130);
    assert!(ran.err.contains("error: interrupted: "), "{}", ran.err);
    let asked = "mkfifo keys; TERM=dumb script -qefc 'cairn advise' /dev/null <keys >said & pid=$!
        exec 3>keys
        until grep -q Entries said; do kill -0 $pid || exit 99; done
        printf '\\003' >&3; wait $pid";
    scratch.shell(asked).ended(130);
    let said = String::from_utf8(scratch.read("said")).unwrap();
    assert!(!said.contains("error") && !said.contains("Bytes per value"), "{said}");
}

/// Goal: the terminal asks for the same values as the options do, repeats a question after a wrong
/// answer with the expected values, and writes the result. Method: a terminal created by `script`,
/// and every answer.
#[test]
fn terminal_asks_for_the_same_values_as_options() {
    let scratch = Scratch::new();
    let answers =
        "5000\\n64KiB\\nabc\\n80\\n20\\n0\\n0\\nzipfian 7\\nuniform\\n2\\nmaybe\\nsync\\n256MiB\\n\\n2ms\\n";
    let asked = format!(
        "printf '{answers}' | TERM=dumb script -qec 'cairn advise --write-workload asked.json' /dev/null"
    );
    let said = scratch.shell(&asked).ended(0).text();
    for part in [
        "Maximum memory of the store [such as 256MiB, empty for no limit]",
        "Maximum disk space of its files [such as 256MiB, empty for no limit]",
        "Maximum microseconds for 99 of 100 operations [or a time such as 2ms, empty for no limit]",
        "(memory, buffered, sync) [buffered]",
        "\"abc\": expected a number of 0 or more",
        "\"zipfian 7\": zipfian theta 7: expected over 0 and at most 5",
        "\"maybe\": expected memory, buffered or sync",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let written: serde_json::Value = serde_json::from_slice(&scratch.read("asked.json")).unwrap();
    let (workload, constraints) = (&written["workload"], &written["constraints"]);
    assert_eq!((&workload["records"], &workload["value_bytes"]), (&5000.into(), &65_536.into()));
    assert_eq!((&workload["durability"], &workload["distribution"]), (&"sync".into(), &"uniform".into()));
    assert_eq!((&constraints["memory_bytes"], &constraints["p99_us"]), (&268_435_456.into(), &2000.0.into()));
    assert!(constraints["disk_bytes"].is_null(), "{written}");
}

/// Goal: a file with typed answers is not overwritten. Method: the same workload file twice;
/// standard output, which is not a file, and a pipe.
#[test]
fn workload_files_are_not_overwritten() {
    let scratch = Scratch::new();
    scratch.run("advise --read 1 --write-workload w.json").ended(0);
    let before = scratch.read("w.json");
    scratch.run("advise --update 1 --write-workload w.json").failed(&["w.json already exists"]);
    assert_eq!(scratch.read("w.json"), before);
    let piped = scratch.shell("cairn advise --read 1 --write-workload /dev/stdout | cat").ended(0);
    assert!(piped.text().contains("\"records\""), "{}", piped.text());
}

/// Goal: a trace is a question: its workload is written to a file, and the chosen stores replay it.
/// Method: a trace of an imported file; options that contradict it.
#[test]
fn traces_answer_the_questions_of_the_adviser() {
    let scratch = Scratch::new();
    let rows = (0..4_000)
        .map(|number| format!("{},{},50,true\n", if number % 4 > 0 { "get" } else { "put" }, number % 397));
    scratch.write("requests.csv", format!("op,key,value_size,found\n{}", rows.collect::<String>()));
    scratch.run("trace import requests.csv -o app.trace").ended(0);
    scratch.run("advise --trace app.trace --durability sync --write-workload w.json").ended(0);
    let written: serde_json::Value = serde_json::from_slice(&scratch.read("w.json")).unwrap();
    assert_eq!(
        (written["trace"].as_str(), written["workload"]["durability"].as_str()),
        (Some("app.trace"), Some("sync"))
    );
    assert_eq!(written["workload"]["records"], 397);
    let ran =
        scratch.run("advise --trace app.trace --stores cairn --effort quick --work-dir work --json").ended(0);
    let advice: serde_json::Value = serde_json::from_str(&ran.text()).unwrap();
    assert!(advice["verified"][0]["name"].as_str().unwrap().starts_with("cairn"), "{advice}");
    assert_eq!(advice["question"]["trace"], written["trace"]);
    scratch.run("advise --trace app.trace --read 1").failed(&["--trace", "--read"]);
    scratch.run("advise --check --p99 5").failed(&["--check", "--p99"]);
    scratch.run("advise --check --threads 5").failed(&["--check", "--threads"]);
    scratch.run("advise --trace app.trace --records 500").failed(&["--trace", "--records"]);
    scratch
        .run("advise w.json --records 500")
        .failed(&["--records: w.json names the trace app.trace, which determines it"]);
    scratch.run("advise --trace requests.csv").failed(&["requests.csv"]);
}
