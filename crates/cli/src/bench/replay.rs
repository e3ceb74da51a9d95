//! `cairn bench replay`: replays a trace on every store.

use std::sync::Arc;

use cairn_bench::catalog::installed;
use cairn_bench::core::dashboard;
use cairn_bench::core::results::Run;
use cairn_bench::core::worker::Worker;
use cairn_bench::suites::kv::replay::Replay;
use cairn_bench::suites::kv::{Options, matrix, replay};
use cairn_vfs::Fs;

use super::outcome::{Shown, conclude, measure};
use crate::args::trace::BenchReplayArgs;
use crate::error::Result;
use crate::output::Outcome;

/// Replays the trace, stores the results and prints them.
pub fn run(fs: &Arc<dyn Fs>, args: &BenchReplayArgs) -> Result<Outcome> {
    let replay = Replay {
        speed: args.speed.0,
        threads: args.threads,
        operations_max: args.limit,
        ..Replay::new(&args.trace)
    };
    let defaults = Options::with_all(&installed().kv);
    let mut settings = defaults.settings.clone();
    settings.durability = args.durability.into();
    settings.cache_bytes = args.memory.cache_size.unwrap_or(settings.cache_bytes);
    settings.write_buffer_bytes = args.memory.write_buffer_size.unwrap_or(settings.write_buffer_bytes);
    let options = Options {
        dbs: if args.dbs.is_empty() { defaults.dbs } else { args.dbs.clone() },
        settings,
        rounds: args.rounds,
        latencies: !args.no_latencies,
        probes: if args.run.no_probes { None } else { defaults.probes },
        seed: args.seed,
        work_dir: args.run.work_dir.clone().unwrap_or(defaults.work_dir),
        worker: Some(Worker::this_program()?),
        ..Options::default()
    };
    // Report an unreadable trace before probing the machine.
    drop(replay.load()?);
    let run = measure(fs, &args.run, |bar, stop| replay::run(&options, &replay, installed(), bar, stop))?;
    let shown = |run: &Run| {
        Ok(format!("{}\n\n{}\n{}", wrapped(&run.data), matrix::to_text(run), super::settings(run)))
    };
    let nothing = "nothing was measured; the notes above say why".to_owned();
    conclude(fs, &args.run, run, &Shown { nothing, json: &dashboard::to_json, text: &shown })
}

/// Wraps text at 100 characters.
fn wrapped(sentences: &str) -> String {
    let mut lines = vec![String::new()];
    for word in sentences.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= 100 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
