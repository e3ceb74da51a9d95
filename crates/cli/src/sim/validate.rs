//! `cairn sim validate`: predictions against real stores.

use std::sync::Arc;

use cairn_bench::process::Stop;
use cairn_bench::suite_hash::Progress;
use cairn_bench::suite_sim::{self, Options};
use cairn_vfs::Fs;

use crate::args::sim::ValidateArgs;
use crate::bench::run::end_on_ctrl_c;
use crate::bench::write_file;
use crate::error::Result;
use crate::output::{Outcome, Output};
use crate::progress::SuiteBar;

/// Runs all cases, and tells whether predictions were within their limits.
pub fn run(fs: &Arc<dyn Fs>, args: ValidateArgs) -> Result<Outcome> {
    let options = Options {
        quick: args.quick,
        only: args.filter,
        names: Vec::new(),
        timed: args.timed,
        library: args.library,
        work_dir: args.work_dir,
    };
    let stop = Stop::default();
    end_on_ctrl_c(&stop)?;
    let bar = SuiteBar::new();
    let report = suite_sim::validate(&options, &stop, &mut |at, count, name| bar.group(at, count, name))?;
    drop(bar);
    if let Some(page) = &args.page {
        write_file(fs, page, suite_sim::to_page(&report).as_bytes())?;
    }
    let mut out = Output::new();
    if args.json {
        out.json(
            &serde_json::to_value(&report).map_err(|error| crate::error::Error::usage(error.to_string()))?,
        )?;
    } else {
        out.bytes(suite_sim::to_text(&report).as_bytes())?;
    }
    out.finish()?;
    let holds = report.comparisons.iter().all(|it| it.holds()) && report.signs.iter().all(|it| it.holds());
    Ok(Outcome::found(holds))
}
