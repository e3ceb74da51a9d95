//! The history of runs: recording, trends, and detection of regressions.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cairn_bench::core::compare::{Comparison, compare as compare_runs, vanished};
use cairn_bench::core::results::Run;
use cairn_bench::core::{dashboard, run_files, stats};
use cairn_bench::history::{self, History, Judged, Limits, Recorded, Verdict, judge};
use cairn_bench::report;
use cairn_bench::suites::counts;
use cairn_vfs::Fs;
use serde_json::json;

use super::outcome::{Shown, conclude, measure, nothing_chosen};
use super::write_file;
use crate::args::history::{CompareArgs, CountsArgs, HistoryArgs, RecordRunArgs};
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, counted, is_stdout};

/// The number of missing figures that are listed by name.
const MISSING_SHOWN: usize = 10;

/// Adds runs to the history.
pub fn record(fs: &Arc<dyn Fs>, args: &RecordRunArgs) -> Result<Outcome> {
    // Load all of them before adding the first, so that a mistake in the last one has no effect.
    let mut runs: Vec<Run> = Vec::new();
    for path in &args.runs {
        runs.extend(run_files::load_all(&**fs, path)?);
    }
    let history = History::open(fs, &args.at.history, true)?;
    let (mut added, mut replaced, mut known) = (0, 0, 0);
    for run in &runs {
        match history.record(run)? {
            Recorded::Added => added += 1,
            Recorded::Replaced => replaced += 1,
            Recorded::Known => known += 1,
        }
    }
    let mut out = Output::new();
    let place = args.at.history.display().to_string();
    if args.json {
        out.json(&json!({ "history": place, "added": added, "replaced": replaced, "known": known }))?;
    } else {
        let resumed = if replaced > 0 { format!("{replaced} resumed since, ") } else { String::new() };
        out.line(format!(
            "{place}: {} added, {resumed}{known} already there",
            counted(added, "run", "runs")
        ))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// Prints trends, or the list of runs.
pub fn history(fs: &Arc<dyn Fs>, args: &HistoryArgs) -> Result<Outcome> {
    let mut out = Output::beside("--html", args.html.as_deref(), args.json)?;
    let history = History::open(fs, &args.at.history, false)?;
    let place = args.at.history.display();
    if args.runs {
        let mut runs: Vec<history::Kept> = history.runs(None)?.into_iter().map(|(kept, _)| kept).collect();
        runs.retain(|run| args.words.is_empty() || args.words.contains(&run.suite));
        if args.json {
            out.json(&json!(runs))?;
        } else if runs.is_empty() {
            let suites: Vec<String> = args.words.iter().map(|word| format!("{word:?}")).collect();
            let of = match suites.is_empty() {
                true => String::new(),
                false => format!(" of the suite {}", suites.join(" or ")),
            };
            out.line(format!("{place}: no run{of}"))?;
        } else {
            out.bytes(history::runs_text(&runs).as_bytes())?;
        }
        out.finish()?;
        return Ok(Outcome::found(!runs.is_empty()));
    }
    let series = history.series(&args.words, args.last.max(1))?;
    if let Some(page) = &args.html {
        write_file(fs, page, report::render_history(&series).as_bytes())?;
    }
    if args.json {
        out.json(&json!(series))?;
    } else {
        if series.is_empty() {
            let words: Vec<String> = args.words.iter().map(|word| format!("{word:?}")).collect();
            let of = if words.is_empty() {
                String::new()
            } else {
                format!(" has {} in its name", words.join(" and "))
            };
            out.line(format!("{place}: no series{of}"))?;
        } else {
            out.bytes(history::trends_text(&series).as_bytes())?;
        }
        if let Some(page) = args.html.as_ref().filter(|page| !is_stdout(page)) {
            out.line(format!("\npage: {}", page.display()))?;
        }
    }
    out.finish()?;
    Ok(Outcome::found(!series.is_empty()))
}

/// Two runs of one suite that are compared.
struct Pair {
    suite: String,
    before: Option<Run>,
    after: Option<Run>,
}

/// Compares runs with earlier ones, and reports whether something got worse.
pub fn compare(fs: &Arc<dyn Fs>, args: &CompareArgs) -> Result<Outcome> {
    let known = match fs.exists(&args.at.history)? {
        true => Some(History::open(fs, &args.at.history, false)?),
        false => None,
    };
    let pairs = pairs(fs, args, known.as_ref())?;
    let (mut out, mut passed) = (Output::new(), true);
    for (at, pair) in pairs.iter().enumerate() {
        if at > 0 && !args.json {
            out.line("")?;
        }
        passed &= match (&pair.before, &pair.after) {
            (Some(before), Some(after)) => one(&mut out, args, known.as_ref(), (before, after))?,
            (None, _) => no_baseline(&mut out, args, &pair.suite).map(|()| true)?,
            (Some(_), None) => no_later(&mut out, args, &pair.suite).map(|()| false)?,
        };
    }
    out.finish()?;
    Ok(Outcome::found(!args.fail || passed))
}

/// Pairs the runs to compare: two files hold one pair; directories pair the last runs of each
/// suite. With one path, the earlier runs come from the history.
fn pairs(fs: &Arc<dyn Fs>, args: &CompareArgs, known: Option<&History>) -> Result<Vec<Pair>> {
    let is_file = |path: &Path| Ok::<bool, Error>(!fs.metadata(path)?.is_dir);
    let Some(later) = &args.b else {
        let mut pairs = Vec::new();
        for after in last_of_each(run_files::load_all(&**fs, &args.a)?) {
            let before = known.map(|history| history.before(&after)).transpose()?.flatten();
            pairs.push(Pair { suite: after.suite.clone(), before, after: Some(after) });
        }
        return Ok(pairs);
    };
    let mut before = last_of_each(run_files::load_all(&**fs, &args.a)?);
    let mut after = last_of_each(run_files::load_all(&**fs, later)?);
    match (is_file(&args.a)?, is_file(later)?) {
        // Two files are paired even if their suites differ, which is then reported.
        (true, true) => {
            let (before, after) = (before.pop(), after.pop());
            let suite = after.as_ref().map(|run| run.suite.clone()).unwrap_or_default();
            return Ok(vec![Pair { suite, before, after }]);
        }
        (true, false) => after.retain(|run| before.iter().any(|other| other.suite == run.suite)),
        (false, true) => before.retain(|run| after.iter().any(|other| other.suite == run.suite)),
        (false, false) => {}
    }
    let mut pairs: Vec<Pair> = before
        .into_iter()
        .map(|run| {
            let at = after.iter().position(|other| other.suite == run.suite);
            Pair { suite: run.suite.clone(), after: at.map(|at| after.remove(at)), before: Some(run) }
        })
        .collect();
    pairs.extend(after.into_iter().map(|run| Pair {
        suite: run.suite.clone(),
        before: None,
        after: Some(run),
    }));
    if pairs.is_empty() {
        let (a, b) = (args.a.display(), later.display());
        return Err(Error::usage(format!("{a} and {b} have no run of the same suite")));
    }
    Ok(pairs)
}

/// Returns the last run of each suite, ordered by suite.
pub fn last_of_each(runs: Vec<Run>) -> Vec<Run> {
    let mut last: BTreeMap<String, Run> = BTreeMap::new();
    for run in runs {
        if last.get(&run.suite).is_none_or(|known| known.started <= run.started) {
            last.insert(run.suite.clone(), run);
        }
    }
    last.into_values().collect()
}

/// Reports one pair. Returns true if nothing got worse, nothing is missing, and at least one figure
/// could be judged.
fn one(
    out: &mut Output,
    args: &CompareArgs,
    known: Option<&History>,
    (before, after): (&Run, &Run),
) -> Result<bool> {
    let compared = compare_runs(before, after);
    let limits = Limits { counts: args.tolerance_counts / 100.0, times: args.tolerance / 100.0 };
    let mut failed = None;
    let judged = judge(&compared, limits, after, &mut |row| {
        let name = format!(
            "{}: {}",
            cairn_bench::core::recorder::case_name(&after.suite, &row.case, &row.contender),
            row.metric
        );
        match known.map(|history| history.points(&name)) {
            Some(Ok(points)) => points.into_iter().filter(|point| point.started < after.started).collect(),
            Some(Err(error)) => {
                failed = Some(error);
                Vec::new()
            }
            None => Vec::new(),
        }
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    let worse = judged.iter().filter(|judged| judged.verdict == Verdict::Worse).count();
    let unjudged = history::unjudged(&judged);
    let missing = vanished(before, after);
    if args.json {
        out.json(&json!({
            "suite": after.suite, "before": before.started, "after": after.started, "regressions": worse, "unjudged": unjudged,
            "geometric_mean": compared.geometric_mean, "rows": judged, "missing": missing, "new": compared.only_in_b,
            "differences": compared.differences,
        }))?;
    } else {
        verdict(out, args, (before, after), &judged)?;
        rest(out, &compared, &missing)?;
    }
    // A comparison in which nothing could be judged has not passed.
    Ok(worse == 0 && missing.is_empty() && unjudged < judged.len())
}

fn no_baseline(out: &mut Output, args: &CompareArgs, suite: &str) -> Result<()> {
    if args.json {
        return out.json(&json!({ "suite": suite, "before": null, "regressions": 0, "rows": [] }));
    }
    if args.b.is_some() {
        return out.line(format!("{suite}: {} has no run of this suite, so it is new", args.a.display()));
    }
    out.line(format!(
        "{}: no earlier run of its suite, {suite}, with its mode, settings and machine in {}, so there is nothing to compare it with",
        args.a.display(),
        args.at.history.display()
    ))
}

fn no_later(out: &mut Output, args: &CompareArgs, suite: &str) -> Result<()> {
    if args.json {
        return out.json(
            &json!({ "suite": suite, "after": null, "regressions": 0, "rows": [], "missing": [suite] }),
        );
    }
    let later = args.b.as_deref().unwrap_or(&args.a).display();
    out.line(format!("missing: {suite}, of which {later} has no run"))
}

fn verdict(
    out: &mut Output,
    args: &CompareArgs,
    (before, after): (&Run, &Run),
    judged: &[Judged],
) -> Result<()> {
    let changed = judged.iter().filter(|judged| judged.verdict != Verdict::Same).count();
    out.line(format!(
        "{} of {} against that of {}: {} of {} figures differ",
        after.suite,
        after.started,
        before.started,
        changed,
        judged.len()
    ))?;
    if changed > 0 || (args.all && !judged.is_empty()) {
        out.line(format!("\n{}", history::judged_text(judged, args.all).trim_end()))?;
    }
    let regressions = history::regressions(judged);
    for line in &regressions {
        out.line(format!("regression: {line}"))?;
    }
    let unjudged = history::unjudged(judged);
    if unjudged > 0 {
        let figures = counted(unjudged as u64, "figure rests", "figures rest");
        out.line(format!("{figures} on too few rounds to be judged ({} at least)", stats::SAMPLES_MIN))?;
    }
    match (judged.is_empty(), regressions.is_empty()) {
        (true, _) => out.line("the two runs have no figure in common, so nothing was compared")?,
        (_, true) if unjudged < judged.len() => out.line("no regression")?,
        _ => {}
    }
    Ok(())
}

/// Prints the missing figures and the differences between the runs' settings.
fn rest(out: &mut Output, compared: &Comparison, missing: &[String]) -> Result<()> {
    if let Some(mean) = compared.mean_text() {
        out.line(mean)?;
    }
    for line in missing.iter().take(MISSING_SHOWN) {
        out.line(format!("missing: {line}"))?;
    }
    if missing.len() > MISSING_SHOWN {
        out.line(format!("missing: {} more", missing.len() - MISSING_SHOWN))?;
    }
    if compared.only_in_b > 0 {
        out.line(format!("{} new", counted(compared.only_in_b as u64, "figure is", "figures are")))?;
    }
    for (name, before, after) in &compared.differences {
        out.line(format!("{name} differs: {before} before, {after} after"))?;
    }
    Ok(())
}

/// Counts instructions.
pub fn counts(fs: &Arc<dyn Fs>, args: &CountsArgs) -> Result<Outcome> {
    let options = counts::Options {
        operations: args.n,
        filter: args.filter.clone(),
        work_dir: crate::args::work_dir(args.run.work_dir.as_deref()),
        worker: cairn_bench::core::worker::Worker::this_program()?,
    };
    if counts::plan(&options).is_empty() {
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(nothing_chosen(filter));
    }
    let run = measure(fs, &args.run, |bar, stop| counts::run(&options, bar, stop))?;
    let nothing = "nothing was counted; the notes above say why".to_owned();
    let text = |run: &Run| Ok(counts_text(run));
    conclude(fs, &args.run, run, &Shown { nothing, json: &dashboard::to_json, text: &text })
}

fn counts_text(run: &Run) -> String {
    let lines = run.measurements.iter().map(|measurement| {
        format!("{:14} {:10.1} instructions an operation\n", measurement.case.operation, measurement.median)
    });
    lines.collect()
}
