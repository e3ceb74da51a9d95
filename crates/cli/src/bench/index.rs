//! `cairn bench index`: one run of the suite for compressed indexes, as tables, as a report and as
//! JSON.

use std::sync::Arc;

use cairn_bench::catalog::installed;
use cairn_bench::core::dashboard;
use cairn_bench::core::results::Run;
use cairn_bench::suites::index::{self, Options, Suite, text};
use cairn_vfs::Fs;

use super::outcome::{Shown, conclude, measure};
use crate::args::index::BenchIndexArgs;
use crate::error::{Error, Result};
use crate::output::Outcome;

/// Runs the suite, stores the results and prints them.
pub fn run(fs: &Arc<dyn Fs>, args: &BenchIndexArgs) -> Result<Outcome> {
    let options = options(args)?;
    options.check()?;
    if index::plan(&options).is_empty() {
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(Error::usage(format!("no data set has {filter:?} in its name; --help lists them")));
    }
    let run = measure(fs, &args.run, |bar, stop| index::run(&options, installed(), bar, stop))?;
    let text = |run: &Run| Ok(format!("{}\n{}", text::to_text(run), super::settings(run)));
    let nothing = "nothing was measured; the notes above say why".to_owned();
    conclude(fs, &args.run, run, &Shown { nothing, json: &dashboard::to_json, text: &text })
}

/// Converts the arguments to the options of the suite.
fn options(args: &BenchIndexArgs) -> Result<Options> {
    let defaults = Options::default();
    let mut suites: Vec<Suite> = Vec::new();
    for name in &args.suites {
        let named = match name.as_str() {
            "all" => Suite::ALL.to_vec(),
            name => {
                let known = Suite::ALL.into_iter().find(|suite| suite.name() == name);
                vec![known.ok_or_else(|| {
                    Error::usage(format!("no suite {name:?}: expected quick, thrash, pressure, ideas or all"))
                })?]
            }
        };
        suites.extend(named.into_iter().filter(|suite| !suites.contains(suite)).collect::<Vec<_>>());
    }
    Ok(Options {
        suites,
        scale: args.scale,
        contenders: if args.contenders.is_empty() { defaults.contenders } else { args.contenders.clone() },
        filter: args.filter.clone(),
        sets: Vec::new(),
        rounds: args.rounds,
        seconds: args.seconds,
        cold: !args.warm_only,
        shared_buffers: args.shared_buffers,
        seed: args.seed,
        work_dir: args.run.work_dir.clone().unwrap_or(defaults.work_dir),
        probes: if args.run.no_probes { None } else { defaults.probes },
    })
}
