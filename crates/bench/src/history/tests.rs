use std::collections::BTreeMap;

use cairn_vfs::MemFs;

use super::*;
use crate::core::compare;
use crate::core::results::{Case, Contender};
use crate::core::testing::sample_run;

fn memory() -> Arc<dyn Fs> {
    Arc::new(MemFs::new())
}

/// Returns the sample run with another start time, and with every figure of one metric multiplied
/// by `factor`.
fn run_at(started: &str, metric: &str, factor: f64) -> Run {
    let mut run = Run { started: started.to_owned(), ..sample_run() };
    for measurement in run.measurements.iter_mut().filter(|m| m.metric == metric) {
        measurement.samples.iter_mut().for_each(|sample| *sample *= factor);
        measurement.median *= factor;
        measurement.low *= factor;
        measurement.high *= factor;
    }
    run
}

fn day(day: u32) -> String {
    format!("2026-01-{day:02}T00:00:00Z")
}

/// Goal: runs and figures persist after the store is closed, ordered by time, and recording a run
/// twice stores it once.
#[test]
fn runs_come_back() {
    let fs = memory();
    let dir = Path::new("/history");
    assert!(
        History::open(&fs, dir, false)
            .unwrap_err()
            .to_string()
            .contains("does not exist: `cairn bench record` begins a history")
    );
    let history = History::open(&fs, dir, true).unwrap();
    for number in [2, 1, 3] {
        let run = run_at(&day(number), "throughput", f64::from(number));
        assert_eq!(history.record(&run).unwrap(), Recorded::Added);
        assert_eq!(history.record(&run).unwrap(), Recorded::Known);
    }
    let other = run_at(&day(1), "throughput", 7.0);
    assert_eq!(history.record(&other).unwrap(), Recorded::Added, "another one of the same second");
    drop(history);
    let history = History::open(&fs, dir, false).unwrap();
    let runs = history.runs(Some("hash")).unwrap();
    let starts: Vec<(&str, u32)> =
        runs.iter().map(|(kept, _)| (kept.started.as_str(), kept.number)).collect();
    let days = [day(1), day(2), day(3)];
    assert_eq!(starts, [(days[0].as_str(), 0), (&days[0], 1), (&days[1], 0), (&days[2], 0)]);
    assert_eq!(runs[1].1, other);
    assert!(history.runs(Some("kv")).unwrap().is_empty() && history.runs(None).unwrap().len() == 4);
    let words = ["throughput".to_owned(), "lmdb".to_owned()];
    let series = history.series(&words, 3).unwrap();
    assert!(!series.is_empty() && series.iter().all(|series| series.points.len() == 3));
    let name = &series[0].name;
    assert_eq!(history.points(name).unwrap().len(), 4);
    let last = &series[0].points;
    assert!((last[2].value / last[1].value - 1.5).abs() < 1e-9, "{last:?}");
    let text = trends_text(&series);
    assert!(text.contains(name.as_str()) && text.contains('█'), "{text}");
    assert!(runs_text(&runs.iter().map(|(kept, _)| kept.clone()).collect::<Vec<_>>()).lines().count() == 6);
}

/// Goal: a run is compared with the last comparable one. Method: later runs; runs of another
/// machine, mode, suite or settings; one without any figure; and one that ended early.
#[test]
fn last_comparable_run_is_the_baseline() {
    let fs = memory();
    let history = History::open(&fs, Path::new("/history"), true).unwrap();
    let run = run_at(&day(10), "throughput", 1.0);
    assert_eq!(history.before(&run).unwrap(), None);
    let good = run_at(&day(5), "throughput", 1.0);
    let mut elsewhere = run_at(&day(6), "throughput", 1.0);
    elsewhere.machine.iter_mut().for_each(|(_, value)| value.push('x'));
    let mut failed = run_at(&day(6), "throughput", 1.0);
    Contender::set_failures(&mut failed.contenders[0].settings, ["seq: no space left".to_owned()]);
    let earliest = Run { started: day(3), ..failed.clone() };
    let others = [
        run_at(&day(4), "throughput", 1.0),
        elsewhere,
        failed,
        earliest.clone(),
        Run { mode: "full".to_owned(), ..run_at(&day(7), "time", 1.0) },
        Run { stopped: true, ..run_at(&day(8), "time", 1.0) },
        Run { suite: "kv".to_owned(), ..run_at(&day(9), "time", 1.0) },
        Run { data: "with other settings".to_owned(), ..run_at(&day(9), "time", 1.0) },
        Run { measurements: Vec::new(), ..run_at(&day(9), "time", 1.0) },
        run_at(&day(11), "time", 1.0),
    ];
    for other in others.iter().chain([&good, &run]) {
        history.record(other).unwrap();
    }
    assert_eq!(history.before(&run).unwrap().unwrap(), good, "the last one in which nobody failed");
    let fourth = run_at(&day(4), "throughput", 1.0);
    assert_eq!(history.before(&fourth).unwrap().unwrap(), earliest, "before that there is no other");
}

/// Goal: instruction counts are compared across processors of an architecture, times only on the
/// same processor. Method: runs of both kinds on two processors of one architecture, and on one of
/// another.
#[test]
fn counts_are_of_an_architecture() {
    let history = History::open(&memory(), Path::new("/history"), true).unwrap();
    let run = |suite: &str, started: u32, cpu: &str, target: &str| {
        let machine = [("cpu", cpu), ("cores", "2"), ("target", target)];
        let machine = machine.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Run { suite: suite.to_owned(), machine, ..run_at(&day(started), "throughput", 1.0) }
    };
    for suite in ["counts", "hash"] {
        history.record(&run(suite, 1, "one", "x86_64-unknown-linux-gnu")).unwrap();
        history.record(&run(suite, 2, "arm", "aarch64-unknown-linux-gnu")).unwrap();
    }
    let before = |suite: &str| history.before(&run(suite, 3, "two", "x86_64-unknown-linux-musl")).unwrap();
    assert_eq!(before("counts").map(|run| run.started), Some(day(1)));
    assert_eq!(before("hash"), None);
}

/// Goal: a run that was interrupted, recorded, resumed and recorded again is one run with one point
/// per figure; another run of the same second is kept beside it.
/// Method: half of a run, the whole, the whole again, and one with another seed.
#[test]
fn resumed_runs_are_one() {
    let history = History::open(&memory(), Path::new("/history"), true).unwrap();
    let whole = run_at(&day(1), "throughput", 1.0);
    let mut half = Run { stopped: true, ..whole.clone() };
    half.measurements.truncate(whole.measurements.len() / 2);
    let other = Run { seed: whole.seed + 1, ..whole.clone() };
    let runs = [(&half, Recorded::Added), (&whole, Recorded::Replaced), (&whole, Recorded::Known)];
    for (run, recorded) in runs {
        assert_eq!(history.record(run).unwrap(), recorded);
        assert_eq!(history.runs(None).unwrap().len(), 1);
    }
    let points = |history: &History| {
        history.series(&[], 9).unwrap().iter().map(|series| series.points.len()).sum::<usize>()
    };
    assert_eq!(points(&history), whole.measurements.len());
    assert_eq!(history.record(&other).unwrap(), Recorded::Added);
    assert_eq!((history.runs(None).unwrap().len(), points(&history)), (2, 2 * whole.measurements.len()));
}

/// Goal: a trend has one machine and one set of settings; labels distinguish several series of one
/// name. Method: runs on two machines, with two settings on the first; then only those of the
/// first.
#[test]
fn trends_do_not_mix() {
    let history = History::open(&memory(), Path::new("/history"), true).unwrap();
    let run = |number: u32, cpu: &str, data: &str| {
        let machine = vec![("cpu".to_owned(), cpu.to_owned())];
        Run { machine, data: data.to_owned(), ..run_at(&day(number), "throughput", f64::from(number)) }
    };
    let series = || history.series(&["throughput".to_owned(), "lmdb".to_owned()], 50).unwrap();
    let plain = run(1, "b", "x");
    let settings = BTreeMap::from([("operations".to_owned(), "7".to_owned())]);
    assert_ne!(settings_of(&Run { settings, ..plain.clone() }), settings_of(&plain));
    let all = [run(1, "b", "x"), run(2, "b", "y"), run(3, "a", "x"), run(4, "b", "x")];
    history.record(&all[0]).unwrap();
    assert_eq!(told_apart(&series()), [""]);
    all[1..].iter().for_each(|run| assert_eq!(history.record(run).unwrap(), Recorded::Added));
    let found = series();
    let points: Vec<usize> = found.iter().map(|series| series.points.len()).collect();
    assert_eq!(points, [2, 1, 1]);
    let machines = [&all[0], &all[0], &all[2]].map(machine_of);
    assert_eq!(found.iter().map(|series| series.machine.clone()).collect::<Vec<_>>(), machines);
    let told = told_apart(&found);
    assert_eq!(told[..2], [1, 2].map(|number| format!("{}, settings {number}", machines[0])));
    assert_eq!(told[2], machines[2]);
    assert_eq!(told_apart(&found[..2]), ["settings 1", "settings 2"]);
    let text = trends_text(&found);
    assert!(text.contains(&format!("{} ({})", found[0].name, told[0])), "{text}");
}

/// Goal: a figure with too few rounds is neither the same nor worse, and is counted. Method: half
/// the throughput in two samples; a size with one sample is judged.
#[test]
fn too_few_rounds_are_not_judged() {
    let before = sample_run();
    let mut after = run_at(&day(1), "throughput", 0.5);
    after.measurements.iter_mut().for_each(|m| m.samples.truncate(2));
    let judged = judge(&compare::compare(&before, &after), Limits::default(), &after, &mut |_| Vec::new());
    let sizes = before.measurements.iter().filter(|m| m.metric == "bytes per entry").count();
    assert_eq!(unjudged(&judged), judged.len() - sizes);
    assert!(regressions(&judged).is_empty() && judged_text(&judged, true).contains('?'));
    // Many samples of one turn are one repetition.
    let mut after = run_at(&day(1), "throughput", 0.5);
    after.measurements.iter_mut().for_each(|m| m.one_turn = true);
    let judged = judge(&compare::compare(&before, &after), Limits::default(), &after, &mut |_| Vec::new());
    assert!(unjudged(&judged) == judged.len() - sizes && regressions(&judged).is_empty());
}

/// Goal: a figure that was 0 or is 0 now has no ratio, so a varying figure gets no verdict, but a
/// count does. Method: seconds of stalls that come and go, and a hit rate.
#[test]
fn zero_has_no_ratio() {
    let run = |suite: &str, metric: &str, higher_is_better: bool, samples: &[f64]| {
        let mut run = Run { suite: suite.to_owned(), ..sample_run() };
        run.measurements.truncate(1);
        for measurement in &mut run.measurements {
            measurement.metric = metric.to_owned();
            measurement.higher_is_better = higher_is_better;
            measurement.samples = samples.to_vec();
            measurement.median = crate::core::stats::median(samples);
        }
        run
    };
    let stalled = |samples: &[f64]| run("kv", "stalled", false, samples);
    let hits = |share: f64| run("pool", "hit rate", true, &[share; 3]);
    let sometimes = stalled(&[0.0, 0.0, 1.0, 1.0, 1.0]);
    for (before, after, verdict) in [
        (stalled(&[0.0; 5]), sometimes, Verdict::Same),
        (hits(0.0), hits(0.0), Verdict::Same),
        (hits(3.0), hits(0.0), Verdict::Worse),
        (hits(0.0), hits(3.0), Verdict::Better),
    ] {
        let judged =
            judge(&compare::compare(&before, &after), Limits::default(), &after, &mut |_| Vec::new());
        assert_eq!(judged[0].verdict, verdict, "{judged:?}");
        let told = regressions(&judged);
        assert_eq!(told.len(), usize::from(verdict == Verdict::Worse));
        assert!(told.iter().all(|line| line.contains("hit rate: worse, from 3")), "{told:?}");
    }
}

fn verdicts(a: &Run, b: &Run, history: &[SeriesPoint]) -> Vec<(String, Verdict)> {
    let judged = judge(&compare::compare(a, b), Limits::default(), b, &mut |_| history.to_vec());
    judged.into_iter().map(|judged| (judged.row.metric, judged.verdict)).collect()
}

fn of(verdicts: &[(String, Verdict)], metric: &str) -> Vec<Verdict> {
    verdicts.iter().filter(|(known, _)| known == metric).map(|(_, verdict)| *verdict).collect()
}

/// Goal: only a change for the worse is a regression, whichever direction the metric has. Method:
/// each metric multiplied by several factors.
#[test]
fn regressions_are_told() {
    let before = sample_run();
    for (metric, factor, verdict) in [
        ("throughput", 0.5, Verdict::Worse),
        ("throughput", 2.0, Verdict::Better),
        ("throughput", 0.98, Verdict::Same),
        ("bytes per entry", 1.02, Verdict::Worse),
        ("bytes per entry", 1.005, Verdict::Same),
        ("bytes per entry", 0.5, Verdict::Better),
    ] {
        let after = run_at(&day(1), metric, factor);
        let verdicts = verdicts(&before, &after, &[]);
        assert!(
            of(&verdicts, metric).iter().all(|found| *found == verdict),
            "{metric} {factor}: {verdicts:?}"
        );
        let others = verdicts.iter().filter(|(known, _)| known != metric);
        assert!(others.clone().count() > 0 && others.clone().all(|(_, verdict)| *verdict == Verdict::Same));
    }
    let after = run_at(&day(1), "bytes per entry", 1.02);
    let judged = judge(&compare::compare(&before, &after), Limits::default(), &after, &mut |_| Vec::new());
    let said = regressions(&judged);
    assert!(!said.is_empty() && said.iter().all(|line| line.contains("worse by 2.0 %")), "{said:?}");
    assert!(judged_text(&judged, false).contains("WORSE") && judged_text(&judged, true).contains("same"));
}

/// Goal: the normal variation of a series is not a regression, and the history of another machine
/// does not count. Method: histories of medians that spread by a fifth, and of equal medians.
#[test]
fn noise_is_learned() {
    let (before, after) = (sample_run(), run_at(&day(30), "throughput", 0.8));
    let points_of = |spread: f64, machine: String, settings: &str| -> Vec<SeriesPoint> {
        (0..10)
            .map(|number| SeriesPoint {
                started: day(number + 1),
                value: 100.0 * (1.0 + spread * f64::from(number % 3)),
                low: 0.0,
                high: 0.0,
                machine: machine.clone(),
                settings: settings.to_owned(),
                commit: String::new(),
                unit: "ops/s".to_owned(),
                higher_is_better: true,
            })
            .collect()
    };
    let own = settings_of(&after);
    let points = |spread: f64, machine: String| points_of(spread, machine, &own);
    let told = |history: &[SeriesPoint]| of(&verdicts(&before, &after, history), "throughput");
    let machine = machine_of(&after);
    assert!(told(&points(0.2, machine.clone())).iter().all(|verdict| *verdict == Verdict::Same));
    assert!(told(&points(0.0, machine.clone())).iter().all(|verdict| *verdict == Verdict::Worse));
    let other = settings_of(&Run { data: "another workload".to_owned(), ..after.clone() });
    let elsewhere = points_of(0.2, machine.clone(), &other);
    assert!(told(&elsewhere).iter().all(|verdict| *verdict == Verdict::Worse));
    assert!(told(&points(0.2, "another".to_owned())).iter().all(|verdict| *verdict == Verdict::Worse));
    assert!(told(&points(0.2, machine)[..4]).iter().all(|verdict| *verdict == Verdict::Worse));
}

/// Goal: reproducible figures are distinguished from others. Method: metrics of all suites; hit
/// rates and page counts that varied, and ones that were measured once.
#[test]
fn counts_are_known() {
    use compare::is_count;
    let same = [70.0; 3];
    for (suite, dataset, metric, unit, samples, counted) in [
        ("counts", "synthetic", "instructions", "instructions", &same[..1], true),
        ("hash", "synthetic", "bytes per entry", "B", &same[..1], true),
        ("hash", "synthetic", "throughput", "ops/s", &same, false),
        ("index", "synthetic", "pages hit", "pages", &same, true),
        ("index", "synthetic", "pages hit", "pages", &[70.0, 71.0, 70.0], false),
        ("index", "synthetic", "pages hit", "pages", &same[..1], false),
        ("index", "synthetic", "latency", "ns", &same, false),
        ("kv", "synthetic", "bytes per entry", "B", &same, false),
        ("pool", "phase 2", "hit rate", "%", &same, true),
        ("pool", "phase 2", "hit rate", "%", &[1.0, 0.0, 1.0], false),
        ("pool", "phase 2", "hit rate", "%", &same[..1], false),
        ("pool", "phase 4", "hit rate", "%", &same[..1], true),
        ("pool", "phase 4", "hit rate", "%", &[1.0, 0.0, 1.0], false),
        ("pool", "trace", "hit rate", "%", &same[..1], true),
        ("sql", "synthetic", "bytes per entry", "B", &same, false),
    ] {
        let first = &sample_run().measurements[0];
        let measurement = Measurement {
            case: Case { dataset: dataset.to_owned(), ..first.case.clone() },
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            samples: samples.to_vec(),
            ..first.clone()
        };
        assert_eq!(is_count(suite, &measurement), counted, "{suite} {dataset} {metric} {samples:?}");
    }
}

/// Goal: a count is judged by its own limit, even if it was measured once. Method: a run with as
/// many instructions, with a few more, and with many more.
#[test]
fn instructions_are_judged_first() {
    let run = |count: f64| {
        let mut run = Run { suite: "counts".to_owned(), ..sample_run() };
        run.measurements.truncate(1);
        for measurement in &mut run.measurements {
            measurement.metric = "instructions".to_owned();
            measurement.unit = "instructions".to_owned();
            measurement.higher_is_better = false;
            measurement.samples = vec![count];
            measurement.median = count;
        }
        run
    };
    for (count, verdict) in [(1000.0, Verdict::Same), (1005.0, Verdict::Same), (1020.0, Verdict::Worse)] {
        assert_eq!(of(&verdicts(&run(1000.0), &run(count), &[]), "instructions"), [verdict], "{count}");
    }
}

/// Goal: figures that no longer exist are named.
#[test]
fn vanished_figures_are_named() {
    let before = sample_run();
    let mut after = before.clone();
    let gone = after.measurements.remove(0);
    let lines = compare::vanished(&before, &after);
    assert!(
        lines.len() == 1 && lines[0].contains(&gone.contender) && lines[0].contains(&gone.metric),
        "{lines:?}"
    );
    assert!(compare::vanished(&after, &before).is_empty());
}
