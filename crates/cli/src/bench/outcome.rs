//! The steps that every suite's command performs with a run: storing, reporting, printing.

use std::env;
use std::sync::Arc;

use cairn_bench::core::process::Stop;
use cairn_bench::core::results::{Contender, Run};
use cairn_bench::core::run_files;
use cairn_bench::report::render_html;
use cairn_vfs::Fs;

use super::run::{command_line, end_on_ctrl_c};
use super::write_file;
use crate::args::{RunArgs, time};
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, counted, is_stdout, note};
use crate::progress::SuiteBar;

/// A run that has ended, whether or not it is complete.
pub(super) struct Measured {
    run: Run,
    /// True if Ctrl-C ended it early.
    is_interrupted: bool,
}

impl Measured {
    /// Wraps a run that could not be interrupted.
    pub fn whole(run: Run) -> Measured {
        Measured { run, is_interrupted: false }
    }
}

/// The parts of the output of a run.
pub(super) struct Shown<'a> {
    /// The message for a complete run in which nothing was measured.
    pub nothing: String,
    /// Returns the list that dashboards read.
    pub json: &'a dyn Fn(&Run) -> String,
    /// Returns the text for the user, except the file names, which follow it.
    pub text: &'a dyn Fn(&Run) -> Result<String>,
}

/// Checks before a run that its filter matches something. Prints a note if the filter is ignored: a
/// dashboard with a history must not get an incomplete list.
///
/// Errors: no name contains the filter.
pub(super) fn chosen(args: &RunArgs, filter: Option<&str>, chooses_anything: bool) -> Result<()> {
    let Some(filter) = filter else { return Ok(()) };
    if args.json {
        note(&format!("{filter:?} is ignored: the dashboard's list is always complete"));
    } else if !chooses_anything {
        return Err(nothing_chosen(filter));
    }
    Ok(())
}

/// Returns the error for a filter that matches no name.
pub(super) fn nothing_chosen(filter: &str) -> Error {
    Error::usage(format!("no case has {filter:?} in its name; --help lists the names"))
}

/// Measures with a progress bar until the suite is complete, the time limit is reached, or Ctrl-C.
/// Checks first that results and report can be written, rather than after an hour of measuring.
///
/// Errors: those of the suite. If the run ended before anything was measured:
/// [`Error::Interrupted`] after Ctrl-C, else a usage error.
pub(super) fn measure(
    fs: &Arc<dyn Fs>,
    args: &RunArgs,
    suite: impl FnOnce(&SuiteBar, &Stop) -> cairn_bench::Result<Run>,
) -> Result<Measured> {
    drop(Output::beside("--html", args.html.as_deref(), args.json)?);
    run_files::check_writable(&**fs, &args.results)?;
    let stop = Stop::after(args.time_limit);
    end_on_ctrl_c(&stop)?;
    let run = suite(&SuiteBar::new(), &stop)?;
    if run.measurements.is_empty() && run.stopped {
        let what = "no turn was finished, so nothing is reported or stored";
        return Err(match (stop.is_asked(), args.time_limit) {
            (false, Some(limit)) => {
                let limit = time::shown(limit);
                Error::usage(format!("--time-limit {limit}: the time was up and {what}"))
            }
            _ => Error::Interrupted(what.to_owned()),
        });
    }
    let is_interrupted = run.stopped && stop.is_asked();
    Ok(Measured { run, is_interrupted })
}

/// Returns the error for runs in which contenders failed. Without it, a caller that only checks the
/// exit code would take the comparison for complete.
pub(super) fn failed(runs: &[&Run]) -> Option<Error> {
    let told: Vec<String> =
        runs.iter().flat_map(|run| run.failures()).filter_map(Contender::failure).collect();
    (!told.is_empty()).then(|| Error::usage(format!("not everything was measured: {}", told.join("; "))))
}

/// Stores a run that has ended, writes its report and prints it.
///
/// Errors: [`Error::Interrupted`] if the user ended it; a usage error if nothing was measured, if a
/// contender failed, or if a dashboard would get an incomplete list.
pub(super) fn conclude(
    fs: &Arc<dyn Fs>,
    args: &RunArgs,
    measured: Measured,
    shown: &Shown<'_>,
) -> Result<Outcome> {
    let Measured { mut run, is_interrupted } = measured;
    run.machine.push(("command".to_owned(), command_line(env::args_os())));
    if run.measurements.is_empty() {
        return Err(failed(&[&run]).unwrap_or_else(|| Error::usage(shown.nothing.clone())));
    }
    let saved = run_files::save(fs, &args.results, &run)?;
    let report = args.html.clone().unwrap_or_else(|| saved.with_extension("html"));
    write_file(fs, &report, render_html(&run, None).as_bytes())?;
    let mut out = Output::beside("--html", args.html.as_deref(), args.json)?;
    if args.json {
        out.bytes((shown.json)(&run).as_bytes())?;
    } else {
        out.bytes((shown.text)(&run)?.as_bytes())?;
        for failure in run.failures().into_iter().filter_map(Contender::failure) {
            out.line(format!("\n{failure}"))?;
        }
        out.line("")?;
        out.line(format!("results: {}", saved.display()))?;
        if !is_stdout(&report) {
            out.line(format!("report:  {}", report.display()))?;
        }
    }
    out.finish()?;
    if is_interrupted {
        let kept = counted(run.measurements.len() as u64, "measurement is kept", "measurements are kept");
        return Err(Error::Interrupted(format!("{kept}: {}", saved.display())));
    }
    if let Some(error) = failed(&[&run]) {
        return Err(error);
    }
    if run.stopped && args.json {
        return Err(Error::usage(
            "the run was ended early: the list has gaps, so a dashboard should not take it",
        ));
    }
    Ok(Outcome::Done)
}
