//! The lab's commands, on runs that take a moment.

use crate::support::Scratch;

/// Goal: a run stores its figures and its report; stored runs can be compared, reported on and put into a README.
/// Method: the smallest run of one contender, which goes through everything that a long one does.
#[test]
fn a_run_goes_all_the_way() {
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

    scratch.write("README.md", "# A\n<!-- results:begin -->\nstale words\n<!-- results:end -->\nend\n");
    scratch.run("bench readme").failed(&["benchmark-results/stored"]);
    scratch.run(&format!("bench readme --run {run}")).ended(0);
    let page = String::from_utf8(scratch.read("README.md")).unwrap();
    assert!(page.starts_with("# A\n") && page.ends_with("end\n") && page.contains("| cairn"), "{page}");
    assert!(!page.contains("stale words"));
    scratch.write("bare.md", "# no markers\n");
    scratch.run(&format!("bench readme --run {run} --readme bare.md")).failed(&["bare.md", "results:begin"]);
}

/// Goal: what cannot be run, read or found is an error before any work.
#[test]
fn impossible_runs_are_refused() {
    let scratch = Scratch::new();
    scratch.write("a.json", "{}");
    scratch.run("bench hash --quick --full").failed(&["--full"]);
    scratch.run("bench hash --data a.csv").failed(&["--key"]);
    scratch.run("bench hash --data missing.csv --key id").failed(&["missing.csv"]);
    scratch.run("bench hash --distribution normal").failed(&["normal", "zipfian"]);
    scratch.run("bench hash --entries 0").failed(&["entries 0"]);
    scratch.run("bench hash --rounds 0").failed(&["rounds 0"]);
    scratch.run("hash bench --entries x").failed(&["--entries"]);
    scratch.run("bench compare a.json missing.json").failed(&["a.json", "schema"]);
    scratch.run("bench report").failed(&["benchmark-results"]);
    assert_eq!(scratch.names(), ["a.json"]);
}

/// Goal: the hidden worker answers, whatever it is asked.
#[test]
fn worker_answers() {
    let scratch = Scratch::new();
    let answer = scratch.run_with("bench-worker", b"no job").ended(0).text();
    assert!(answer.contains("failed") && answer.contains("job"), "{answer}");
}
