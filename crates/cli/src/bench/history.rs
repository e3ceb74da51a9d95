//! Runs over time: recording, trends, and whether a run is a regression.

use std::sync::Arc;

use cairn_bench::compare::{Comparison, compare as compare_runs, vanished};
use cairn_bench::history::{self, History, Judged, Limits, Recorded, Verdict, judge};
use cairn_bench::results::Run;
use cairn_bench::{dashboard, report, store, suite_counts};
use cairn_vfs::Fs;
use serde_json::json;

use super::outcome::{Shown, conclude, measure, nothing_chosen};
use super::write_file;
use crate::args::history::{CompareArgs, CountsArgs, HistoryArgs, RecordRunArgs};
use crate::error::Result;
use crate::output::{Outcome, Output, counted, is_stdout};

/// Missing figures that are named.
const MISSING_SHOWN: usize = 10;

/// Adds runs to the history.
pub fn record(fs: &Arc<dyn Fs>, args: &RecordRunArgs) -> Result<Outcome> {
    // All of them before the first is added: a mistake in the last one shows at once.
    let runs: Vec<Run> =
        args.runs.iter().map(|path| store::load(&**fs, path)).collect::<cairn_bench::Result<_>>()?;
    let history = History::open(fs, &args.at.history, true)?;
    let (mut added, mut known) = (0, 0);
    for run in &runs {
        match history.record(run)? {
            Recorded::Added => added += 1,
            Recorded::Known => known += 1,
        }
    }
    let mut out = Output::new();
    let place = args.at.history.display().to_string();
    if args.json {
        out.json(&json!({ "history": place, "added": added, "known": known }))?;
    } else {
        out.line(format!("{place}: {} added, {known} already there", counted(added, "run", "runs")))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// Shows trends, or the runs.
pub fn history(fs: &Arc<dyn Fs>, args: &HistoryArgs) -> Result<Outcome> {
    let mut out = Output::beside("--html", args.html.as_deref(), args.json)?;
    let history = History::open(fs, &args.at.history, false)?;
    if args.runs {
        let suite = args.words.first().map(String::as_str);
        let runs: Vec<history::Kept> = history.runs(suite)?.into_iter().map(|(kept, _)| kept).collect();
        if args.json {
            out.json(&json!(runs))?;
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
        out.bytes(history::trends_text(&series).as_bytes())?;
        if let Some(page) = args.html.as_ref().filter(|page| !is_stdout(page)) {
            out.line(format!("\npage: {}", page.display()))?;
        }
    }
    out.finish()?;
    Ok(Outcome::found(!series.is_empty()))
}

/// Holds a run against an earlier one, and says whether it got worse.
pub fn compare(fs: &Arc<dyn Fs>, args: &CompareArgs) -> Result<Outcome> {
    let mut out = Output::new();
    let known = match fs.exists(&args.at.history)? {
        true => Some(History::open(fs, &args.at.history, false)?),
        false => None,
    };
    let (before, after) = match &args.b {
        Some(b) => (Some(store::load(&**fs, &args.a)?), store::load(&**fs, b)?),
        None => {
            let after = store::load(&**fs, &args.a)?;
            (known.as_ref().map(|history| history.before(&after)).transpose()?.flatten(), after)
        }
    };
    let Some(before) = before else {
        no_baseline(&mut out, args)?;
        out.finish()?;
        return Ok(Outcome::Done);
    };
    let compared = compare_runs(&before, &after);
    let limits = Limits { counts: args.tolerance_counts / 100.0, times: args.tolerance / 100.0 };
    let mut failed = None;
    let judged = judge(&compared, limits, &after, &mut |row| {
        let name = format!(
            "{}: {}",
            cairn_bench::suite_hash::case_name(&after.suite, &row.case, &row.contender),
            row.metric
        );
        match known.as_ref().map(|history| history.points(&name)) {
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
    let missing = vanished(&before, &after);
    // With two runs and nothing to decide it is the table that it always was.
    let plain = args.b.is_some() && !args.fail;
    match (args.json, plain) {
        (true, true) => out.line(compared.to_json().trim_end())?,
        (true, false) => out.json(&json!({
            "before": before.started, "after": after.started, "regressions": worse, "rows": judged, "missing": missing,
            "differences": compared.differences,
        }))?,
        (false, true) => out.line(compared.to_text().trim_end())?,
        (false, false) => {
            verdict(&mut out, args, (&before, &after), &judged)?;
            rest(&mut out, &compared, &missing)?;
        }
    }
    out.finish()?;
    // What cannot be held against anything has not passed.
    let passed = worse == 0 && missing.is_empty() && !judged.is_empty();
    Ok(Outcome::found(!args.fail || passed))
}

fn no_baseline(out: &mut Output, args: &CompareArgs) -> Result<()> {
    if args.json {
        return out.json(&json!({ "before": null, "regressions": 0, "rows": [] }));
    }
    out.line(format!(
        "{}: no earlier run of its suite, mode, settings and machine in {}, so there is nothing to hold it against",
        args.a.display(),
        args.at.history.display()
    ))
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
    if changed > 0 || args.all {
        out.line(format!("\n{}", history::judged_text(judged, args.all).trim_end()))?;
    }
    let regressions = history::regressions(judged);
    for line in &regressions {
        out.line(format!("regression: {line}"))?;
    }
    match (judged.is_empty(), regressions.is_empty()) {
        (true, _) => out.line("the two have no figure in common, so nothing was held against anything")?,
        (_, true) => out.line("no regression")?,
        _ => {}
    }
    Ok(())
}

/// Figures that are gone, and how the runs differ themselves.
fn rest(out: &mut Output, compared: &Comparison, missing: &[String]) -> Result<()> {
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
    let options = suite_counts::Options {
        operations: args.n,
        filter: args.filter.clone(),
        work_dir: crate::args::work_dir(args.run.work_dir.as_deref()),
        worker: cairn_bench::runner::worker::Worker::this_program()?,
    };
    if suite_counts::plan(&options).is_empty() {
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(nothing_chosen(filter));
    }
    let run = measure(fs, &args.run, |bar, stop| suite_counts::run(&options, bar, stop))?;
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
