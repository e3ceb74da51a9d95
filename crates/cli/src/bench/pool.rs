//! `cairn bench pool`: one run of the suite of buffer pools, in the guide's layout, as a report and as JSON.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use cairn_bench::process::Stop;
use cairn_bench::report::render_html;
use cairn_bench::store;
use cairn_bench::suite_pool::{self, Options, catalog, text};
use cairn_pool::PolicyKind;
use cairn_vfs::Fs;

use super::run::{command_line, end_on_ctrl_c};
use super::write_file;
use crate::args::pool::BenchPoolArgs;
use crate::error::{Error, Result};
use crate::output::{Outcome, Output};
use crate::progress::SuiteBar;

/// Runs the suite, stores what it measured and shows it.
pub fn run(fs: &Arc<dyn Fs>, args: &BenchPoolArgs) -> Result<Outcome> {
    let options = options(args)?;
    options.check()?;
    if suite_pool::plan(&options).is_empty() {
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(Error::usage(format!("no case has {filter:?} in its name; --help lists the names")));
    }
    // Before the run, not after an hour of it.
    store::check_writable(&**fs, &args.results)?;
    let stop = Stop::after(args.time_limit.map(Duration::from_secs));
    end_on_ctrl_c(&stop)?;
    let bar = SuiteBar::new();
    let mut run = suite_pool::run(&options, &bar, &stop)?;
    drop(bar);
    run.machine.push(("command".to_owned(), command_line(env::args_os())));
    if run.measurements.is_empty() {
        return Err(Error::usage("nothing was measured; the notes above say why"));
    }
    let saved = store::save(fs, &args.results, &run)?;
    let report = args.report.clone().unwrap_or_else(|| saved.with_extension("html"));
    write_file(fs, &report, render_html(&run, None).as_bytes())?;
    let mut out = Output::new();
    if args.json {
        out.bytes(text::to_json(&run).as_bytes())?;
    } else {
        out.bytes(text::to_text(&run).as_bytes())?;
        out.line("")?;
        out.bytes(super::settings(&run).as_bytes())?;
        out.line("")?;
        out.line(format!("results: {}", saved.display()))?;
        out.line(format!("report:  {}", report.display()))?;
    }
    out.finish()?;
    if run.stopped && args.json {
        return Err(Error::usage("the run was ended early: the list has gaps, no dashboard should take it"));
    }
    Ok(Outcome::Done)
}

/// What was typed, as the suite takes it.
fn options(args: &BenchPoolArgs) -> Result<Options> {
    let defaults = Options::default();
    Ok(Options {
        iterations: args.iterations,
        buffers: args.buffers,
        filter: args.filter.clone(),
        for_dashboard: args.json,
        policies: policies(&args.policies)?,
        peers: peers(&args.peers)?,
        page_size: usize::try_from(args.page_size).unwrap_or(usize::MAX),
        rounds: args.rounds.min(args.iterations),
        seed: args.seed,
        direct: args.direct,
        threads: args.threads.clone(),
        work_dir: args.work_dir.clone().unwrap_or(defaults.work_dir.clone()),
        ..defaults
    })
}

/// The policies of these names, each once.
pub(super) fn policies(names: &[String]) -> Result<Vec<PolicyKind>> {
    let mut policies: Vec<PolicyKind> = Vec::new();
    for name in names {
        let named = match name.as_str() {
            "all" => PolicyKind::ALL.to_vec(),
            "none" => Vec::new(),
            name => vec![name.parse().map_err(|error| Error::usage(format!("{error}, or all, or none")))?],
        };
        policies.extend(named);
    }
    let mut seen = Vec::new();
    policies.retain(|policy| {
        !seen.contains(policy) && {
            seen.push(*policy);
            true
        }
    });
    Ok(policies)
}

fn peers(names: &[String]) -> Result<Vec<String>> {
    let mut peers: Vec<String> = Vec::new();
    for name in names {
        let named = match name.as_str() {
            "all" => catalog::peer_names().into_iter().map(str::to_owned).collect(),
            "none" => Vec::new(),
            name => {
                catalog::check(name)?;
                vec![name.to_owned()]
            }
        };
        peers.extend(named.into_iter().filter(|name: &String| !peers.contains(name)).collect::<Vec<_>>());
    }
    Ok(peers)
}
