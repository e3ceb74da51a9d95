//! Outputs from stored runs: comparisons, tables and a picture for a page, reports.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_bench::core::run_files;
use cairn_bench::report::{render_html, render_picture, summary};
use cairn_bench::suites::{all, counts, hash, index, kv, pool, sql};
use cairn_vfs::Fs;

use super::history::last_of_each;
use super::write_file;
use crate::args::{ReadmeArgs, ReportArgs};
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, is_stdout};

/// The subdirectory for runs that are kept permanently.
pub const STORED: &str = "stored";

/// Writes the tables of runs between the markers of a page. The runs come from a file, or from a
/// directory: the last run of each suite for which the page has markers.
pub fn readme(fs: &Arc<dyn Fs>, args: &ReadmeArgs) -> Result<Outcome> {
    let dir = Path::new(run_files::RESULTS_DIR).join(STORED);
    let newest = newest(fs, &dir, &[hash::NAME, kv::NAME, sql::NAME])?;
    let path = named_or(args.run.as_deref(), newest, &dir)?;
    let mut runs = last_of_each(run_files::load_all(&**fs, &path)?);
    let refuse = |what: String| Error::Input { input: args.readme.display().to_string(), place: None, what };
    let page = super::read_text(fs, &args.readme)?;
    if fs.metadata(&path)?.is_dir {
        let suites: Vec<String> = runs.iter().map(|run| run.suite.clone()).collect();
        runs.retain(|run| summary::markers(&run.suite).iter().any(|marker| page.contains(marker)));
        if runs.is_empty() {
            let (dir, suites) = (path.display(), suites.join(", "));
            return Err(refuse(format!("it has no markers for the suites in {dir}, which are {suites}")));
        }
    }
    let mut filled = page.clone();
    for run in &runs {
        filled = summary::replace_between_markers(&filled, &run.suite, &summary::to_markdown(run))
            .map_err(|error| refuse(error.to_string()))?;
    }
    if filled != page {
        write_file(fs, &args.readme, filled.as_bytes())?;
    }
    if let Some(picture) = &args.picture {
        write_file(fs, picture, render_picture(&runs).as_bytes())?;
    }
    let mut out = Output::new();
    for run in &runs {
        let (readme, suite, path) = (args.readme.display(), &run.suite, path.display());
        out.line(format!("{readme}: the table of suite {suite} from {path}"))?;
        if run.stopped {
            out.line("that run was ended early: its table has gaps, and says so")?;
        }
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// Writes the HTML report of a run.
pub fn report(fs: &Arc<dyn Fs>, args: &ReportArgs) -> Result<Outcome> {
    if let Some(dir) = &args.run
        && fs.exists(dir)?
        && fs.metadata(dir)?.is_dir
    {
        if args.baseline.is_some() {
            return Err(Error::usage(
                "--baseline needs a single stored run; the directory has one for each of its suites",
            ));
        }
        return written(&super::all::report(fs, dir, args.out.as_deref())?);
    }
    let suites = [counts::NAME, hash::NAME, index::NAME, kv::NAME, pool::NAME, sql::NAME, kv::replay::NAME];
    let results = Path::new(run_files::RESULTS_DIR);
    let path = match &args.run {
        Some(path) => path.clone(),
        None => {
            let newest = newest(fs, results, &suites)?;
            if let Some((begun, dir)) = all::latest(fs, results)?
                && args.baseline.is_none()
                && newest.as_ref().is_none_or(|(started, _)| begun > *started)
            {
                return written(&super::all::report(fs, &dir, args.out.as_deref())?);
            }
            named_or(None, newest, results)?
        }
    };
    let run = run_files::load(&**fs, &path)?;
    let baseline = args.baseline.as_deref().map(|path| run_files::load(&**fs, path)).transpose()?;
    let target = args.out.clone().unwrap_or_else(|| path.with_extension("html"));
    if target == path {
        return Err(Error::usage(format!(
            "{} is the run itself: choose another file with -o",
            target.display()
        )));
    }
    write_file(fs, &target, render_html(&run, baseline.as_ref()).as_bytes())?;
    written(&target)
}

/// Prints the name of the written file, unless it is standard output.
fn written(target: &Path) -> Result<Outcome> {
    if is_stdout(target) {
        return Ok(Outcome::Done);
    }
    let mut out = Output::new();
    out.line(target.display())?;
    out.finish()?;
    Ok(Outcome::Done)
}

/// Returns the named run, or the newest one. Errors: there is none.
fn named_or(named: Option<&Path>, newest: Option<(String, PathBuf)>, dir: &Path) -> Result<PathBuf> {
    named
        .map(Path::to_owned)
        .or_else(|| newest.map(|(_, path)| path))
        .ok_or_else(|| Error::usage(format!("no stored run in {}: make one or name one", dir.display())))
}

/// Returns the run of these suites in `dir` that started last, with its start time.
fn newest(fs: &Arc<dyn Fs>, dir: &Path, suites: &[&str]) -> Result<Option<(String, PathBuf)>> {
    let mut newest: Option<(String, PathBuf)> = None;
    for suite in suites {
        let Some(path) = run_files::latest(&**fs, dir, suite)? else { continue };
        let started = run_files::load(&**fs, &path)?.started;
        if newest.as_ref().is_none_or(|(known, _)| started > *known) {
            newest = Some((started, path));
        }
    }
    Ok(newest)
}
