//! What every suite's command does with a run: it is stored, reported on, and shown.

use std::env;
use std::sync::Arc;

use cairn_bench::process::Stop;
use cairn_bench::report::render_html;
use cairn_bench::results::{Contender, Run};
use cairn_bench::store;
use cairn_vfs::Fs;

use super::run::{command_line, end_on_ctrl_c};
use super::write_file;
use crate::args::{RunArgs, time};
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, counted, is_stdout, note};
use crate::progress::SuiteBar;

/// A run that is over, whoever ended it.
pub(super) struct Measured {
    run: Run,
    /// It was ended by Ctrl-C before all was measured.
    is_interrupted: bool,
}

impl Measured {
    /// One that nobody could end early.
    pub fn whole(run: Run) -> Measured {
        Measured { run, is_interrupted: false }
    }
}

/// What is printed of a run.
pub(super) struct Shown<'a> {
    /// What to say when nothing was measured, though the run came to its end.
    pub nothing: String,
    /// The list that dashboards take.
    pub json: &'a dyn Fn(&Run) -> String,
    /// Everything for a reader but where the files are, which follows.
    pub text: &'a dyn Fn(&Run) -> Result<String>,
}

/// Sees before a run that its filter chooses something, and says where it does not count: a
/// dashboard with a history takes no list with gaps.
///
/// Errors: nothing has it in its name.
pub(super) fn chosen(args: &RunArgs, filter: Option<&str>, chooses_anything: bool) -> Result<()> {
    let Some(filter) = filter else { return Ok(()) };
    if args.json {
        note(&format!("{filter:?} is ignored: the dashboard's list is always complete"));
    } else if !chooses_anything {
        return Err(nothing_chosen(filter));
    }
    Ok(())
}

/// The error of a filter that nothing has in its name.
pub(super) fn nothing_chosen(filter: &str) -> Error {
    Error::usage(format!("no case has {filter:?} in its name; --help lists the names"))
}

/// Measures, with a progress bar, until it is done, the time is up, or Ctrl-C. Where results and
/// the report go is tried before, not after an hour of it.
///
/// Errors: as the suite's; when it was ended before it had anything, [`Error::Interrupted`] if that
/// was Ctrl-C, else a usage error.
pub(super) fn measure(
    fs: &Arc<dyn Fs>,
    args: &RunArgs,
    suite: impl FnOnce(&SuiteBar, &Stop) -> cairn_bench::Result<Run>,
) -> Result<Measured> {
    drop(Output::beside("--html", args.html.as_deref(), args.json)?);
    store::check_writable(&**fs, &args.results)?;
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

/// The error of runs in which contenders failed: whoever reads only the exit code would take their
/// comparison for whole.
pub(super) fn failed(runs: &[&Run]) -> Option<Error> {
    let told: Vec<String> =
        runs.iter().flat_map(|run| run.failures()).filter_map(Contender::failure).collect();
    (!told.is_empty()).then(|| Error::usage(format!("not everything was measured: {}", told.join("; "))))
}

/// Stores a run that is over, reports on it and shows it.
///
/// Errors: [`Error::Interrupted`] when the user ended it; a usage error when nothing was measured,
/// when a contender failed, or when a dashboard would get a list with gaps.
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
    let saved = store::save(fs, &args.results, &run)?;
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
