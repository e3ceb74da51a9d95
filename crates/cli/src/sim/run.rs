//! `cairn sim run`: runs one configuration.

use std::sync::Arc;

use cairn_sim::import::{export_kv, export_rocksdb, kv_unrepresentable, rocksdb_unrepresentable};
use cairn_sim::options::Engine;
use cairn_sim::results::Outcome as RunOutcome;
use cairn_sim::{Config, Options, Simulation};
use cairn_vfs::Fs;
use serde_json::Value;

use super::setup::{Setup, setup};
use super::table;
use crate::args::sim::RunArgs;
use crate::bench::write_file;
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, is_stdout, note};

/// Runs the configuration and prints the results.
pub fn run(fs: &Arc<dyn Fs>, args: &RunArgs) -> Result<Outcome> {
    let mut out = Output::beside("--export", args.export.as_deref(), args.json)?;
    if args.show_config && args.export.as_deref().is_some_and(is_stdout) {
        return Err(Error::usage("--export -: standard output has the configuration, so this needs a file"));
    }
    let Setup { config, notes, flaw } = setup(fs, &args.from)?;
    tell(&notes);
    if let Some(path) = &args.export {
        write_file(fs, path, exported(&config)?.as_bytes())?;
        tell(left_out(&Options::default(), &config.options).as_slice());
    }
    if args.show_config {
        out.line(config.to_json())?;
        out.finish()?;
        return Ok(Outcome::Done);
    }
    let mut simulation = Simulation::new(&config)?;
    while simulation.step() {}
    let results = simulation.results();
    let replayed_hit = args.replay_cache.map(|fetches| simulation.replayed_hit(fetches));
    if args.json {
        let mut json = serde_json::to_value(&results).map_err(|error| Error::usage(error.to_string()))?;
        if let Value::Object(fields) = &mut json {
            fields.extend(replayed_hit.map(|hit| ("replayed_cache_hit".to_owned(), hit.into())));
            fields.extend(flaw.map(|flaw| ("trace_flaw".to_owned(), flaw.into())));
        }
        out.json(&json)?;
    } else {
        out.bytes(table::to_text(&results).as_bytes())?;
        if let Some(hit) = replayed_hit {
            out.line(format!("{:22} {:.1} % by a replayed cache", "cache hits", hit * 100.0))?;
        }
        if let Some(flaw) = flaw {
            out.line(format!("{:22} {flaw}", "workload"))?;
        }
    }
    out.finish()?;
    Ok(Outcome::found(results.outcome == RunOutcome::Done))
}

/// Prints notes on standard error.
pub fn tell(notes: &[String]) {
    notes.iter().for_each(|text| note(text));
}

/// Describes the differences from `before` that the engine's own format cannot hold.
pub fn left_out(before: &Options, after: &Options) -> Option<String> {
    let (file, settings) = match after.engine {
        Engine::Rocksdb => ("an OPTIONS file", rocksdb_unrepresentable(before, after)),
        Engine::CairnKv => ("a file of kv options", kv_unrepresentable(before, after)),
    };
    (!settings.is_empty()).then(|| format!("{file} cannot hold {}", settings.join(", ")))
}

/// Returns the options in the engine's own format.
pub fn exported(config: &Config) -> Result<String> {
    Ok(match config.options.engine {
        Engine::Rocksdb => export_rocksdb(&config.options)?,
        Engine::CairnKv => export_kv(&config.options)? + "\n",
    })
}
