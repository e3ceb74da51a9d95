//! `cairn bench all`: every suite in one run, with its own directory and one report.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_bench::catalog::installed;
use cairn_bench::core::process::Stop;
use cairn_bench::core::results::Run;
use cairn_bench::core::worker::Worker;
use cairn_bench::core::{dashboard, probe, run_files};
use cairn_bench::report::render_whole;
use cairn_bench::report::whole::text;
use cairn_bench::suites::all::{self, Ending, Journal, Options, Sitting, SuiteName, Whole};
use cairn_bench::suites::hash::DataFile;
use cairn_vfs::Fs;

use super::outcome::failed;
use super::run::{command_line, end_on_ctrl_c};
use super::write_file;
use crate::args::all::BenchAllArgs;
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, counted, is_stdout, note};
use crate::progress::AllBar;

/// The name of the report in a run's directory.
const REPORT: &str = "report.html";

/// Starts or resumes a run, stores its results and prints them.
pub fn run(fs: &Arc<dyn Fs>, args: &BenchAllArgs) -> Result<Outcome> {
    drop(beside(args)?);
    let stop = Stop::after(args.run.time_limit);
    end_on_ctrl_c(&stop)?;
    let mut journal = match &args.resume {
        Some(dir) => resume(fs, dir)?,
        None => begin(fs, args)?,
    };
    let worker = Worker::this_program()?;
    let plans = all::plan(&journal.head().options, installed(), Some(&worker));
    let ending = {
        let bar = AllBar::new();
        all::measure(&plans, &mut journal, &bar, &stop)?
    };
    let whole = Whole::of(&plans, &journal);
    conclude(fs, args, &journal, &whole, (&ending, stop.is_asked()))
}

fn beside(args: &BenchAllArgs) -> Result<Output> {
    Output::beside("--html", args.run.html.as_deref(), args.run.json)
}

fn begin(fs: &Arc<dyn Fs>, args: &BenchAllArgs) -> Result<Journal> {
    let options = options(args)?;
    options.check()?;
    run_files::check_writable(&**fs, &args.run.results)?;
    let sitting = probed(sitting(fs, &options)?, &options)?;
    Ok(Journal::begin(fs, &args.run.results, &options, sitting)?)
}

fn resume(fs: &Arc<dyn Fs>, dir: &Path) -> Result<Journal> {
    let mut journal = Journal::open(fs, dir)?;
    let options = journal.head().options.clone();
    let sitting = sitting(fs, &options)?;
    // Check before the probes, which take seconds.
    journal.check(&sitting)?;
    journal.resume(probed(sitting, &options)?)?;
    Ok(journal)
}

/// Describes the sitting that begins now, before anything is measured.
fn sitting(fs: &Arc<dyn Fs>, options: &Options) -> Result<Sitting> {
    // Create the directory first: the probe determines its file system.
    fs.create_dir_all(&options.work_dir)?;
    let mut machine = probe::describe(&options.work_dir);
    machine.push(("command".to_owned(), command_line(env::args_os())));
    Ok(Sitting::now(machine, Vec::new()).marked(&**fs, options))
}

fn probed(sitting: Sitting, options: &Options) -> Result<Sitting> {
    if !options.probes {
        return Ok(sitting);
    }
    let probes = probe::measure(&options.work_dir, probe::ProbeEffort::quick())?;
    Ok(Sitting { probes, ..sitting })
}

/// Converts the arguments to the options of the run.
fn options(args: &BenchAllArgs) -> Result<Options> {
    let usual = if args.full { Options::full() } else { Options::quick() };
    let mut suites: Vec<SuiteName> = Vec::new();
    for word in &args.suites {
        let suite = SuiteName::parse(word)?;
        if !suites.contains(&suite) {
            suites.push(suite);
        }
    }
    // Make paths absolute, because a run may be resumed in another directory.
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let data = args.data.as_ref().zip(args.key.as_ref()).map(|(path, column)| DataFile {
        source: args.source.clone().unwrap_or_default(),
        ..DataFile::new(whole(path), column)
    });
    let options = Options {
        suites: if suites.is_empty() { usual.suites.clone() } else { suites },
        scale: args.scale.unwrap_or(usual.scale),
        rounds: args.rounds,
        data,
        seed: args.seed.unwrap_or(usual.seed),
        work_dir: args.run.work_dir.as_deref().map_or_else(|| usual.work_dir.clone(), whole),
        probes: !args.run.no_probes,
        ..usual
    };
    Ok(options)
}

/// Writes the results of each suite and the report, prints them, and returns the outcome of the
/// run.
///
/// Errors: [`Error::Interrupted`] if the user ended the run; a usage error if a part or a contender
/// failed, if nothing was measured, or if a dashboard would get an incomplete list.
fn conclude(
    fs: &Arc<dyn Fs>,
    args: &BenchAllArgs,
    journal: &Journal,
    whole: &Whole,
    (ending, asked): (&Ending, bool),
) -> Result<Outcome> {
    let go_on = format!("cairn bench all --resume {}", journal.dir().display());
    let (over, count) = ending.over;
    if whole.has_figures() {
        whole.keep(journal)?;
        let report = args.run.html.clone().unwrap_or_else(|| journal.dir().join(REPORT));
        write_file(fs, &report, render_whole(whole, journal.dir()).as_bytes())?;
        let mut out = beside(args)?;
        if args.run.json {
            out.bytes(to_json(whole)?.as_bytes())?;
        } else {
            out.bytes(text::to_text(whole).as_bytes())?;
            out.line(format!("\nresults: {}", journal.dir().display()))?;
            if !is_stdout(&report) {
                out.line(format!("report:  {}", report.display()))?;
            }
            if ending.stopped {
                out.line(format!("resume:  {go_on}"))?;
            }
        }
        out.finish()?;
    }
    if ending.stopped && asked {
        return Err(Error::Interrupted(format!("{over} of {count} parts are finished; to resume: {go_on}")));
    }
    if !ending.failed.is_empty() {
        let names: Vec<String> = ending
            .failed
            .iter()
            .map(|(suite, part, why)| format!("{}, {part}: {why}", suite.word()))
            .collect();
        let many = counted(names.len() as u64, "part", "parts");
        return Err(Error::usage(format!("{many} of {count} failed: {}", names.join("; "))));
    }
    if !whole.has_figures() && !whole.has_failures() {
        return Err(Error::usage(format!(
            "nothing was measured; the notes above say why; to resume: {go_on}"
        )));
    }
    let runs: Vec<&Run> = whole.suites.iter().filter_map(|suite| suite.run.as_ref()).collect();
    if let Some(error) = failed(&runs) {
        return Err(error);
    }
    if ending.stopped && args.run.json {
        return Err(Error::usage(
            "the run was ended early: the list has gaps, so a dashboard should not take it",
        ));
    }
    Ok(Outcome::Done)
}

/// Returns the results of all suites as the JSON list that dashboards read.
fn to_json(whole: &Whole) -> Result<String> {
    let runs = whole.suites.iter().filter_map(|suite| suite.run.as_ref());
    let entries: Vec<dashboard::Entry> = runs.flat_map(dashboard::entries).collect();
    let json = serde_json::to_string_pretty(&entries);
    Ok(json.map_err(|error| Error::usage(format!("the list cannot be written as JSON: {error}")))? + "\n")
}

/// Writes the report of a run's directory again, as `cairn bench report DIR` does. Prints a note
/// for each part that cannot be read. Returns the path of the report.
pub fn report(fs: &Arc<dyn Fs>, dir: &Path, out: Option<&Path>) -> Result<PathBuf> {
    let journal = Journal::read(fs, dir)?;
    journal.notes().iter().for_each(|line| note(line));
    let worker = Worker::this_program()?;
    let whole = Whole::of(&all::plan(&journal.head().options, installed(), Some(&worker)), &journal);
    let target = out.map_or_else(|| dir.join(REPORT), Path::to_owned);
    write_file(fs, &target, render_whole(&whole, dir).as_bytes())?;
    Ok(target)
}
