//! `cairn bench sql`: one run of the suite for SQL engines, as tables, as a report and as JSON.

use std::sync::Arc;

use cairn_bench::catalog::installed;
use cairn_bench::core::results::Run;
use cairn_bench::suites::sql::{self, Options, text};
use cairn_vfs::Fs;

use super::outcome::{Shown, chosen, conclude, measure};
use crate::args::sql::BenchSqlArgs;
use crate::error::Result;
use crate::output::Outcome;

/// Runs the suite, stores the results and prints them.
pub fn run(fs: &Arc<dyn Fs>, args: &BenchSqlArgs) -> Result<Outcome> {
    let options = options(args);
    options.check()?;
    chosen(&args.run, args.filter.as_deref(), !sql::plan(&options).is_empty())?;
    let run = measure(fs, &args.run, |bar, stop| sql::run(&options, installed(), bar, stop))?;
    let text = |run: &Run| Ok(format!("{}\n{}", text::to_text(run), super::settings(run)));
    let nothing = "nothing was measured; the notes above say why".to_owned();
    conclude(fs, &args.run, run, &Shown { nothing, json: &text::to_json, text: &text })
}

/// Converts the arguments to the options of the suite.
fn options(args: &BenchSqlArgs) -> Options {
    let defaults = Options::with_all(&installed().sql);
    Options {
        iterations: args.iterations,
        filter: args.filter.clone(),
        for_dashboard: args.run.json,
        peers: peers(&args.peers),
        durability: args.durability.into(),
        rows: args.rows,
        load_rows: args.load_rows,
        threads: args.threads.clone(),
        writers: args.writers.clone(),
        clients: args.clients,
        cache_bytes: args.cache_size,
        rounds: args.rounds.min(args.iterations),
        seconds: args.seconds,
        tpch: args.tpch,
        pgbench: args.pgbench,
        seed: args.seed,
        probes: if args.run.no_probes { None } else { defaults.probes },
        work_dir: args.run.work_dir.clone().unwrap_or(defaults.work_dir.clone()),
        ..defaults
    }
}

/// Returns the peers with these names; the suite refuses unknown ones.
fn peers(names: &[String]) -> Vec<String> {
    let mut peers: Vec<String> = Vec::new();
    for name in names {
        match name.as_str() {
            "all" => peers.extend(installed().sql.peer_names().into_iter().map(str::to_owned)),
            "none" => {}
            name => peers.push(name.to_owned()),
        }
    }
    peers
}
