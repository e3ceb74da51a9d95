//! `cairn bench kv`: one run of the suite for key-value stores, in DKV's layout and as a table, a
//! report and JSON.

use std::sync::Arc;

use cairn_bench::catalog::installed;
use cairn_bench::core::dashboard;
use cairn_bench::core::progress::Progress;
use cairn_bench::core::results::Run;
use cairn_bench::core::worker::Worker;
use cairn_bench::report::summary;
use cairn_bench::suites::kv::{self, Mode, Options, YcsbSpec, layout, matrix};
use cairn_vfs::Fs;

use super::outcome::{Shown, conclude, measure};
use crate::args::BenchKvArgs;
use crate::error::Result;
use crate::output::Outcome;

/// Runs the suite, stores the results and prints them.
pub fn run(fs: &Arc<dyn Fs>, args: &BenchKvArgs) -> Result<Outcome> {
    let (options, notes) = options(fs, args)?;
    options.check()?;
    let run = measure(fs, &args.run, |bar, stop| {
        notes.iter().for_each(|note| bar.note(note));
        kv::run(&options, installed(), bar, stop)
    })?;
    let text = |run: &Run| {
        let mut text = format!("{}\n{}", layout::to_text(&options, run), matrix::to_text(run));
        if !summary::lines(run).is_empty() {
            text += &format!("\n{}", summary::to_text(run));
        }
        Ok(text + "\n" + &super::settings(run))
    };
    let nothing = "nothing was measured; the notes above say why".to_owned();
    conclude(fs, &args.run, run, &Shown { nothing, json: &dashboard::to_json, text: &text })
}

/// Converts the arguments to the options of the suite, with notes for the user.
fn options(fs: &Arc<dyn Fs>, args: &BenchKvArgs) -> Result<(Options, Vec<String>)> {
    let defaults = Options::with_all(&installed().kv);
    let (ycsb, notes) = ycsb(fs, args)?;
    let mut modes: Vec<Mode> = Vec::new();
    for word in &args.modes {
        for mode in Mode::parse(word)? {
            if !modes.contains(&mode) {
                modes.push(mode);
            }
        }
    }
    // A user who names benchmarks or workloads wants only those, and other modes only if they are
    // named too.
    if args.modes.is_empty() {
        match (args.benchmarks.is_empty(), ycsb.is_empty()) {
            (true, true) => modes = defaults.modes.clone(),
            (true, false) => {}
            (false, _) => modes.push(Mode::DbBench),
        }
    } else if !args.benchmarks.is_empty() && !modes.contains(&Mode::DbBench) {
        modes.push(Mode::DbBench);
    }
    let mut settings = defaults.settings.clone();
    settings.durability = args.durability.into();
    settings.cache_bytes = args.memory.cache_size.unwrap_or(settings.cache_bytes);
    settings.write_buffer_bytes = args.memory.write_buffer_size.unwrap_or(settings.write_buffer_bytes);
    let benchmarks = if args.benchmarks.is_empty() { defaults.benchmarks } else { args.benchmarks.clone() };
    let options = Options {
        n: args.n,
        batch: args.batch,
        threads: args.threads.clone(),
        ops_per_thread: args.ops_per_thread,
        sync_n: args.sync_n,
        seed: args.seed,
        dbs: if args.dbs.is_empty() { defaults.dbs } else { args.dbs.clone() },
        modes,
        benchmarks,
        ycsb,
        key_bytes: args.key_size,
        value_bytes: args.value_size.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        settings,
        data_bytes: args.data_size.unwrap_or(defaults.data_bytes),
        overwrite_bytes: args.overwrite_size.unwrap_or(defaults.overwrite_bytes),
        rounds: args.rounds,
        latencies: !args.no_latencies,
        probes: if args.run.no_probes { None } else { defaults.probes },
        work_dir: args.run.work_dir.clone().unwrap_or(defaults.work_dir),
        worker: Some(Worker::this_program()?),
        ..Options::default()
    };
    Ok((options, notes))
}

/// Loads the workloads of property files. Properties without a file form a workload of their own.
fn ycsb(fs: &Arc<dyn Fs>, args: &BenchKvArgs) -> Result<(Vec<YcsbSpec>, Vec<String>)> {
    let (mut specs, mut notes) = (Vec::new(), Vec::new());
    let mut add = |name: &str, text: &str| -> Result<()> {
        let (spec, unknown) = YcsbSpec::from_properties(name, text, &args.property)?;
        if !unknown.is_empty() {
            notes.push(format!("{name}: these properties are ignored here: {}", unknown.join(", ")));
        }
        specs.push(spec);
        Ok(())
    };
    for path in &args.ycsb_file {
        let text = super::read_text(fs, path)?;
        let name =
            path.file_stem().map_or_else(|| "ycsb".to_owned(), |stem| stem.to_string_lossy().into_owned());
        add(&name, &text)?;
    }
    if args.ycsb_file.is_empty() && !args.property.is_empty() {
        add("ycsb-custom", "")?;
    }
    Ok((specs, notes))
}
