//! `cairn sim validate`: compares predictions with real stores.

use std::path::PathBuf;
use std::sync::Arc;

use cairn_bench::catalog::installed;
use cairn_bench::core::process::Stop;
use cairn_bench::core::progress::Progress;
use cairn_bench::suites::sim::{self, Options, Report};
use cairn_vfs::Fs;

use crate::args::sim::ValidateArgs;
use crate::args::work_dir;
use crate::bench::run::end_on_ctrl_c;
use crate::bench::{read_text, write_file};
use crate::error::{Error, Result};
use crate::output::{Outcome, Output};
use crate::progress::SuiteBar;

/// Runs all cases, or merges reports of earlier runs, and reports whether predictions are within
/// their limits.
pub fn run(fs: &Arc<dyn Fs>, args: ValidateArgs) -> Result<Outcome> {
    let mut out = Output::beside("--page", args.page.as_deref(), args.json)?;
    let report = match Report::merged(read(fs, &args.merge)?) {
        Some(report) => report,
        None => measured(&args)?,
    };
    if let Some(page) = &args.page {
        write_file(fs, page, sim::to_page(&report).as_bytes())?;
    }
    if args.json {
        out.json(&serde_json::to_value(&report).map_err(|error| Error::usage(error.to_string()))?)?;
    } else {
        out.bytes(sim::to_text(&report).as_bytes())?;
    }
    out.finish()?;
    let holds = report.comparisons.iter().all(|it| it.holds()) && report.signs.iter().all(|it| it.holds());
    Ok(Outcome::found(holds))
}

fn measured(args: &ValidateArgs) -> Result<Report> {
    let options = Options {
        quick: args.quick,
        only: args.filter.clone(),
        names: Vec::new(),
        held_out: args.held_out,
        timed: args.timed,
        part: args.part,
        library: args.library.clone(),
        work_dir: Some(work_dir(args.work_dir.as_deref())),
    };
    let stop = Stop::default();
    end_on_ctrl_c(&stop)?;
    let bar = SuiteBar::new();
    Ok(sim::validate(&options, installed(), &stop, &mut |at, count, name| bar.group(at, count, name))?)
}

/// Reads reports in the form that `--json` prints.
fn read(fs: &Arc<dyn Fs>, files: &[PathBuf]) -> Result<Vec<Report>> {
    let one = |file: &PathBuf| {
        let text = read_text(fs, file)?;
        let report = cairn_sim::json::parse(&text, &file.display().to_string());
        report.map_err(|error| Error::usage(format!("{error}; expected a report of sim validate --json")))
    };
    files.iter().map(one).collect()
}
