//! Runs over time: recording, trends, regressions, and the CI workflow for projects that adopt
//! Cairn.

use serde_json::Value;

use crate::support::Scratch;

/// Writes a stored run of the suite `replay` with one figure.
fn write_run(scratch: &Scratch, name: &str, started: &str, value: f64) {
    let samples: Vec<f64> = [0.99, 1.0, 1.01, 0.995, 1.005].iter().map(|noise| noise * value).collect();
    let case = serde_json::json!({
        "operation": "replay", "dataset": "t", "entries": 10, "value_bytes": 8, "compression": "none",
        "keys": "mixed", "distribution": "trace", "threads": 1,
    });
    let measurement = serde_json::json!({
        "contender": "cairn", "case": case, "metric": "throughput", "unit": "ops/s", "higher_is_better": true,
        "samples": samples, "median": value, "low": value * 0.99, "high": value * 1.01, "percentiles": {}, "verified": true,
    });
    let run = serde_json::json!({
        "schema": 1, "suite": "replay", "started": started, "mode": "custom", "seed": 1,
        "machine": [["cpu", "test"], ["cores", "2"], ["commit", "abcdef"]], "probes": [],
        "contenders": [{
            "name": "cairn", "family": "cairn", "version": "1", "ours": true, "settings": {}, "skipped": null,
        }],
        "data": "a test", "measurements": [measurement], "stopped": false,
    });
    scratch.write(name, run.to_string());
}

/// Goal: runs are recorded once, trends are drawn, and the exit code reports a regression. Method:
/// the runs of a week, the last one slower.
#[test]
fn regression_fails_the_command() {
    let scratch = Scratch::new();
    for day in 1..=6 {
        write_run(
            &scratch,
            &format!("{day}.json"),
            &format!("2026-01-0{day}T00:00:00Z"),
            1000.0 + f64::from(day),
        );
    }
    write_run(&scratch, "slow.json", "2026-01-07T00:00:00Z", 500.0);
    write_run(&scratch, "same.json", "2026-01-08T00:00:00Z", 1001.0);
    let first = scratch.run("bench compare 1.json --fail --history h").ended(0).text();
    assert!(first.contains("nothing to compare it with"), "{first}");
    scratch.run("bench history --history h").failed(&["h does not exist", "cairn bench record"]);
    let text =
        scratch.run("bench record 1.json 2.json 3.json 4.json 5.json 6.json --history h").ended(0).text();
    assert_eq!(text, "h: 6 runs added, 0 already there\n");
    let json = scratch.run("bench record 6.json --history h --json").ended(0).json();
    assert_eq!((json[0]["added"].as_u64(), json[0]["known"].as_u64()), (Some(0), Some(1)));

    let slow = scratch.run("bench compare slow.json --fail --history h").ended(2).text();
    assert!(
        slow.contains("regression: replay") && slow.contains("WORSE") && slow.contains("50.3 %"),
        "{slow}"
    );
    scratch.run("bench compare slow.json --history h").ended(0);
    scratch.run("bench compare slow.json --fail --tolerance 150 --history h").ended(0);
    let same = scratch.run("bench compare same.json --fail --history h --all").ended(0).text();
    assert!(same.contains("no regression") && same.contains("same"), "{same}");
    let json = scratch.run("bench compare slow.json --fail --history h --json").ended(2).json();
    assert_eq!(
        (json[0]["regressions"].as_u64(), json[0]["rows"][0]["verdict"].as_str()),
        (Some(1), Some("worse"))
    );
    scratch.run("bench compare 1.json slow.json --fail --history none").ended(2);
    let plain = scratch.run("bench compare 1.json slow.json --history none").ended(0).text();
    assert!(plain.contains("geometric mean"), "{plain}");
    scratch.run("bench compare 1.json --tolerance=-3").failed(&["percent"]);

    let trend = scratch.run("bench history throughput --history h --html trend.html").ended(0).text();
    assert!(
        trend.contains("replay::replay/dataset=t")
            && trend.contains('█')
            && trend.contains("page: trend.html"),
        "{trend}"
    );
    assert!(String::from_utf8(scratch.read("trend.html")).unwrap().starts_with("<!doctype html>"));
    let page = scratch.run("bench history throughput --history h --html -").ended(0);
    assert_eq!(page.out, scratch.read("trend.html"));
    assert!(trend.starts_with(&page.err), "{}", page.err);
    let json = scratch.run("bench history --history h --last 3 --json").ended(0).json();
    assert_eq!(json[0][0]["points"].as_array().unwrap().len(), 3);
    scratch.run("bench history nothing-like-this --history h").ended(2);
    let runs = scratch.run("bench history --runs replay --history h").ended(0).text();
    assert_eq!(runs.lines().count(), 8, "{runs}");
    assert_eq!(scratch.run("bench history --runs kv replay --history h").ended(0).text(), runs);
    scratch.run("bench record nothing.json --history h").failed(&["nothing.json"]);
}

/// Goal: figures that cannot be compared do not pass. Method: a run that lacks a figure of the
/// earlier one, one with other settings, and two with nothing in common.
#[test]
fn incomparable_runs_fail() {
    let scratch = Scratch::new();
    write_run(&scratch, "1.json", "2026-01-01T00:00:00Z", 1000.0);
    let changed = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut run: Value = serde_json::from_slice(&scratch.read("1.json")).unwrap();
        run["started"] = "2026-01-02T00:00:00Z".into();
        change(&mut run);
        scratch.write(name, run.to_string());
    };
    changed("other.json", &|run| run["measurements"][0]["case"]["dataset"] = "u".into());
    changed("settings.json", &|run| run["data"] = "a test with another durability".into());
    changed("two.json", &|run| {
        let mut second = run["measurements"][0].clone();
        second["metric"] = "latency".into();
        run["measurements"].as_array_mut().unwrap().push(second);
    });
    let text = scratch.run("bench compare 1.json other.json --fail --history h").ended(2).text();
    assert!(text.contains("no figure in common") && text.contains("missing: "), "{text}");
    let text = scratch.run("bench compare two.json 1.json --fail --history h").ended(2).text();
    assert!(text.contains("missing: ") && text.contains("latency"), "{text}");
    scratch.run("bench compare 1.json two.json --fail --history h").ended(0);
    let text = scratch.run("bench compare 1.json settings.json --fail --history h").ended(0).text();
    assert!(text.contains("data differs: a test before"), "{text}");
    scratch.run("bench record 1.json --history h").ended(0);
    let text = scratch.run("bench compare settings.json --fail --history h").ended(0).text();
    assert!(text.contains("nothing to compare it with"), "{text}");
}

/// Goal: figures with too few rounds do not pass as unchanged. Method: a run of two rounds, and one
/// in which one of two figures has too few.
#[test]
fn too_few_rounds_are_not_a_pass() {
    let scratch = Scratch::new();
    write_run(&scratch, "1.json", "2026-01-01T00:00:00Z", 1000.0);
    let changed = |name: &str, measurements: &dyn Fn(Value) -> Vec<Value>| {
        let mut run: Value = serde_json::from_slice(&scratch.read("1.json")).unwrap();
        run["measurements"] = measurements(run["measurements"][0].clone()).into();
        scratch.write(name, run.to_string());
    };
    let short = |mut one: Value| {
        one["samples"].as_array_mut().unwrap().truncate(2);
        one
    };
    let latency = |mut one: Value| {
        one["metric"] = "latency".into();
        one
    };
    changed("short.json", &|one| vec![short(one)]);
    changed("two.json", &|one| vec![one.clone(), latency(one)]);
    changed("half.json", &|one| vec![one.clone(), short(latency(one))]);
    let told = "1 figure rests on too few rounds to be judged (3 at least)";
    let text = scratch.run("bench compare 1.json short.json --fail --history h").ended(2).text();
    assert!(text.contains(told) && !text.contains("no regression"), "{text}");
    scratch.run("bench compare 1.json short.json --history h").ended(0);
    let json = scratch.run("bench compare 1.json short.json --fail --history h --json").ended(2).json();
    assert_eq!(json[0]["unjudged"], 1);
    let text = scratch.run("bench compare two.json half.json --fail --history h").ended(0).text();
    assert!(text.contains(told) && text.contains("no regression"), "{text}");
}

/// Returns the scripts of a workflow's steps, with their names.
fn steps(workflow: &str) -> Vec<(String, String)> {
    let (mut steps, mut name) = (Vec::new(), String::new());
    let mut lines = workflow.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(rest) = line.trim().strip_prefix("- name: ") {
            name = rest.to_owned();
        }
        if line.trim() != "run: |" {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let mut script = String::new();
        while let Some(line) =
            lines.next_if(|next| next.trim().is_empty() || next.len() - next.trim_start().len() > indent)
        {
            script += line.trim();
            script.push('\n');
        }
        steps.push((name.clone(), script));
    }
    steps
}

/// Goal: the workflow installs this program and not another one of the same name, because Cairn's
/// crates are not published. Method: its command is checked against this repository's manifests,
/// since a build would take too long.
#[test]
fn the_workflow_installs_this_program() {
    let workflow = include_str!("../../../../examples/github-actions/benchmarks.yml");
    let steps = steps(workflow);
    let install = steps[0].1.lines().find_map(|line| Some(line.split_once("cargo install ")?.1)).unwrap();
    let words: Vec<&str> = install.split_whitespace().collect();
    let after = |option: &str| words.iter().skip_while(|word| **word != option).nth(1).copied();
    // The directory into which the workflow checks out Cairn's repository.
    let from = after("--path").expect("a path, since no crate is published");
    let (folder, inside) = from.split_once('/').unwrap();
    assert!(workflow.contains(&format!("path: {folder}\n")) && workflow.contains("repository: ${{ vars."));
    assert!(words.contains(&"--locked"), "{words:?}");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert!(root.join("Cargo.lock").exists());
    let asked = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1", "--manifest-path"])
        .arg(root.join(inside).join("Cargo.toml"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&asked.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let manifest = root.join(inside).join("Cargo.toml").canonicalize().unwrap();
    let package = packages.iter().find(|it| it["manifest_path"].as_str() == manifest.to_str()).unwrap();
    let targets = package["targets"].as_array().unwrap();
    assert!(targets.iter().any(|it| it["name"] == "cairn" && it["kind"][0] == "bin"), "{package}");
    for feature in after("--features").unwrap_or_default().split(',') {
        assert!(package["features"].get(feature).is_some(), "{feature}");
    }
}

/// Goal: the history survives a failed comparison, and only the main branch writes it. Method: the
/// workflow's steps that restore and save it.
#[test]
fn the_workflow_keeps_its_history() {
    let workflow = include_str!("../../../../examples/github-actions/benchmarks.yml");
    let step = |name: &str| {
        let (_, rest) = workflow.split_once(&format!("- name: {name}\n")).unwrap();
        rest.split("- name: ").next().unwrap()
    };
    assert!(step("Bring the history").contains("uses: actions/cache/restore@v4"));
    let save = step("Keep the history");
    assert!(save.contains("uses: actions/cache/save@v4") && !workflow.contains("uses: actions/cache@"));
    let condition = "if: ${{ !cancelled() && github.ref == 'refs/heads/main' }}";
    assert!(save.contains(condition) && step("Remember, and draw the trends").contains(condition));
    assert!(workflow.find("Remember, and") < workflow.find("Keep the history"));
}

/// Goal: the workflow that adopters copy works: its steps run here twice, and a third time with a
/// run that got worse. Method: its own steps in a shell, except the installation, with one counted
/// case of few operations; without valgrind, the step that needs it is skipped.
#[test]
fn the_workflow_runs() {
    let scratch = Scratch::new();
    let workflow = include_str!("../../../../examples/github-actions/benchmarks.yml");
    let steps = steps(workflow);
    let counts = scratch.shell("command -v valgrind").code == 0;
    // All counts would take minutes of valgrind in an unoptimized build. Tests run in parallel, so
    // no useful limit on times would hold. A count is the difference of two processes; with so few
    // operations, it varies as much as the rest of a process does, by some 300,000 instructions.
    let adapted = |script: &str| {
        let script = script.replace("bench counts", "bench counts hash --n 1000 --no-probes");
        let script = script.replace("--tolerance 25", "--tolerance 1000 --tolerance-counts 30");
        let script = script.replace("--rounds 5", "--rounds 3 --no-latencies --no-probes");
        if counts { script } else { script.replace("runs/counts-*.json ", "") }
    };
    let names: Vec<&str> = steps.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "Install",
        "Count instructions",
        "Replay the recorded workload",
        "Compare with the main branch",
        "Remember, and draw the trends",
    ];
    assert_eq!(names, expected);
    let requests = (0..2_000).map(|number| format!("get,{},50,true\nput,{},50,\n", number % 97, number % 89));
    scratch.write("requests.csv", format!("op,key,value_size,found\n{}", requests.collect::<String>()));
    scratch.shell("mkdir bench work && cairn trace import requests.csv -o bench/app.trace").ended(0);
    for turn in 0..2 {
        for (name, script) in steps.iter().skip(if counts { 1 } else { 2 }) {
            let script = adapted(script);
            let script = format!("set -e\nexport CAIRN_CACHE=$PWD/work\n{script}");
            let ran = scratch.shell(&script);
            assert_eq!(ran.code, 0, "turn {turn}, {name}: {}\n{}", ran.text(), ran.err);
        }
        let page = String::from_utf8(scratch.read("trends.html")).unwrap();
        assert!(page.contains("replay::replay/dataset=app"));
        assert!(!counts || page.contains("counts::"));
        scratch.shell("mkdir -p old && mv runs/* old").ended(0);
    }
    // The first of the two runs, made ten times as fast, becomes the earlier one. The same speed is
    // then a regression.
    let kept = std::fs::read_dir(scratch.path("old")).unwrap().map(|entry| entry.unwrap().path());
    let is_replay = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("replay-") && name.ends_with(".json")
    };
    let mut files: Vec<_> = kept.filter(is_replay).collect();
    files.sort();
    let mut run: Value = serde_json::from_slice(&std::fs::read(&files[0]).unwrap()).unwrap();
    let mut same = run.clone();
    same["started"] = "2098-01-01T00:00:00Z".into();
    for measurement in run["measurements"].as_array_mut().unwrap() {
        let by = if measurement["higher_is_better"] == true { 0.01 } else { 100.0 };
        for sample in measurement["samples"].as_array_mut().unwrap() {
            *sample = (sample.as_f64().unwrap() * by).into();
        }
        measurement["median"] = (measurement["median"].as_f64().unwrap() * by).into();
    }
    run["started"] = "2099-01-01T00:00:00Z".into();
    std::fs::create_dir_all(scratch.path("runs")).unwrap();
    scratch.write("runs/replay-worse.json", run.to_string());
    // Unchanged counts come first and do not end the comparison.
    if counts {
        scratch.shell("cp $(ls old/counts-*.json | tail -n 1) runs/counts-same.json").ended(0);
    }
    // A run that got worse does not keep later runs from being compared either.
    scratch.write("runs/replay-zsame.json", same.to_string());
    let ran = scratch.shell(&format!("set -e\n{}", adapted(&steps[3].1)));
    assert!(ran.code == 2 && ran.text().contains("regression: "), "{}: {}", ran.code, ran.text());
    assert!(ran.text().contains("replay of 2099") && ran.text().contains("replay of 2098"), "{}", ran.text());
}

/// Goal: counting reports missing requirements, and refuses invalid options.
#[test]
fn counts_are_refused() {
    let scratch = Scratch::new();
    scratch
        .run("bench counts nosuch --results r --work-dir w")
        .failed(&["no case has \"nosuch\" in its name"]);
    assert!(scratch.names().is_empty(), "{:?}", scratch.names());
    scratch
        .run("bench counts --n 1 --results . --work-dir .")
        .failed(&["'1' for '--n <COUNT>'", "from 1000"]);
}

/// Goal: a user's own store is neither turned into a history nor taken for one. Method: a store
/// with other keys, one without keys, one of a history without the marker.
#[test]
fn directories_of_other_programs_are_no_history() {
    let scratch = Scratch::new();
    write_run(&scratch, "1.json", "2026-01-01T00:00:00Z", 1000.0);
    scratch.run("kv put users alice 1 --create").ended(0);
    let before = scratch.run("kv scan users").ended(0).text();
    for command in ["record 1.json", "history", "history --runs", "compare 1.json"] {
        scratch.run(&format!("bench {command} --history users")).failed(&["users", "not a history"]);
    }
    assert_eq!(scratch.run("kv scan users").ended(0).text(), before);
    scratch.run("kv put empty a 1 --create").ended(0);
    scratch.run("kv delete empty a").ended(0);
    for place in ["empty", "new"] {
        scratch.run(&format!("bench record 1.json --history {place}")).ended(0);
        assert!(scratch.run(&format!("bench history --history {place}")).ended(0).text().contains("replay"));
    }
    // As histories were before the marker was introduced.
    scratch.run("kv delete new history").ended(0);
    scratch.run("bench history --history new").ended(0);
    scratch.run("bench record 1.json --history new").ended(0);
    assert!(scratch.run("kv get new history").ended(0).text().contains("cairn bench"));
    scratch.run("kv delete new history").ended(0);
    scratch.run("kv put new sorted/between 1").ended(0);
    scratch.run("bench record 1.json --history new").failed(&["new", "not a history"]);
}

/// Goal: a comparison has the same output whether or not it sets the exit code: the changes, or
/// everything with `--all`, with the same columns and fields. Method: one figure that is halved
/// next to one that is unchanged.
#[test]
fn comparisons_have_one_form() {
    let scratch = Scratch::new();
    write_run(&scratch, "1.json", "2026-01-01T00:00:00Z", 1000.0);
    let mut run: Value = serde_json::from_slice(&scratch.read("1.json")).unwrap();
    let mut second = run["measurements"][0].clone();
    second["case"]["dataset"] = "second".into();
    run["measurements"].as_array_mut().unwrap().push(second);
    scratch.write("1.json", run.to_string());
    for samples in run["measurements"][0]["samples"].as_array_mut().unwrap() {
        *samples = (samples.as_f64().unwrap() / 2.0).into();
    }
    run["measurements"][0]["median"] = 500.0.into();
    run["started"] = "2026-01-02T00:00:00Z".into();
    scratch.write("2.json", run.to_string());
    let text = |words: &str, code: i32| {
        scratch.run(&format!("bench compare 1.json 2.json --history none {words}")).ended(code).text()
    };
    let told = text("", 0);
    assert_eq!(told, text("--fail", 2));
    assert_eq!(
        (told.matches("second").count(), text("--all", 0).matches("second").count()),
        (0, 1),
        "{told}"
    );
    assert_eq!(text("--all", 0), text("--all --fail", 2));
    assert_eq!(text("--json", 0), text("--json --fail", 2));
    assert!(told.contains("worse by 50.0 %"), "{told}");
    // A rate that is halved is worse by 50 %, not by more than 100 %.
    text("--fail --tolerance 60", 0);
}

/// Goal: an empty result is reported in a sentence.
#[test]
fn empty_results_are_reported_in_words() {
    let scratch = Scratch::new();
    write_run(&scratch, "1.json", "2026-01-01T00:00:00Z", 1000.0);
    scratch.run("bench record 1.json --history h").ended(0);
    let text = scratch.run("bench history put nothing --history h").ended(2).text();
    assert_eq!(text, "h: no series has \"put\" and \"nothing\" in its name\n");
    let text = scratch.run("bench history --runs kv --history h").ended(2).text();
    assert_eq!(text, "h: no run of the suite \"kv\"\n");
    assert_eq!(scratch.run("bench history nothing --history h --json").ended(2).text(), "[]\n");
}
