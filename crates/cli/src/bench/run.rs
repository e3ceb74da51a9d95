//! `cairn bench hash`: one run of the suite, its result file, its report and its table.

use std::io::{self, Write};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cairn_bench::process::Stop;
use cairn_bench::report::render_html;
use cairn_bench::runner::worker::Worker;
use cairn_bench::suite_hash::{self, DataFile, Matrix, Mode, Options};
use cairn_bench::{dashboard, store, table};
use cairn_vfs::Fs;

use super::write_file;
use crate::args::BenchHashArgs;
use crate::error::{Error, Result};
use crate::output::{Outcome, Output};
use crate::progress::SuiteBar;

/// Runs the suite, stores what it measured and shows it.
pub fn run(fs: &Arc<dyn Fs>, args: &BenchHashArgs) -> Result<Outcome> {
    let options = options(args)?;
    options.check()?;
    // Before the run, not after an hour of it.
    fs.create_dir_all(&args.results)?;
    let stop = Stop::after(args.time_limit.map(Duration::from_secs));
    end_on_ctrl_c(&stop)?;
    let bar = SuiteBar::new();
    let run = suite_hash::run(&options, &bar, &stop)?;
    drop(bar);
    if run.measurements.is_empty() {
        return Err(Error::usage(match &args.filter {
            Some(filter) if !args.json => {
                format!("nothing was measured: no case or contender has {filter:?} in its name")
            }
            _ => "nothing was measured; the notes above say why".to_owned(),
        }));
    }
    let saved = store::save(fs, &args.results, &run)?;
    let report = args.report.clone().unwrap_or_else(|| saved.with_extension("html"));
    write_file(fs, &report, render_html(&run, None).as_bytes())?;
    let mut out = Output::new();
    if args.json {
        out.bytes(dashboard::to_json(&run).as_bytes())?;
    } else {
        out.line("")?;
        out.bytes(table::to_text(&run).as_bytes())?;
        out.line("Over 1 is in Cairn's favour; ~ marks ratios that cannot be told from 1.\n")?;
        out.line(format!("results: {}", saved.display()))?;
        out.line(format!("report:  {}", report.display()))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

fn options(args: &BenchHashArgs) -> Result<Options> {
    let mut options = if args.full { Options::full() } else { Options::quick() };
    if !args.entries.is_empty() {
        let matrix = if args.full { Matrix::full() } else { small_matrix() };
        options.matrix = Some(Matrix { entries: args.entries.clone(), ..matrix });
        options.mode = Mode::Custom;
    }
    if let (Some(path), Some(column)) = (&args.data, &args.key) {
        let mut data = DataFile::new(path, column);
        data.source = args.source.clone().unwrap_or_default();
        options.data = Some(data);
    }
    if let Some(rounds) = args.rounds {
        options.rounds = rounds;
        options.mode = Mode::Custom;
    }
    if let Some(dir) = &args.work_dir {
        options.work_dir = dir.clone();
    }
    options.filter = args.filter.clone();
    options.for_dashboard = args.json;
    options.worker = Some(Worker::this_program()?);
    Ok(options)
}

/// What a quick run measures in stores of other sizes.
fn small_matrix() -> Matrix {
    let full = Matrix::full();
    let first = |count| full.threads.iter().copied().take(count).collect();
    Matrix {
        value_bytes: full.value_bytes.iter().copied().take(1).collect(),
        compressions: full.compressions.iter().copied().take(1).collect(),
        threads: first(2),
        ..full
    }
}

/// The first Ctrl-C asks the run to end with what it has, a second one ends the process.
fn end_on_ctrl_c(stop: &Stop) -> Result<()> {
    let (stop, asked) = (stop.clone(), AtomicBool::new(false));
    ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            // 128 + SIGINT, as shells count.
            process::exit(130);
        }
        stop.ask();
        let _ = writeln!(io::stderr(), "\nending with what is measured; once more to end at once");
    })
    .map_err(|error| Error::usage(format!("Ctrl-C cannot be caught: {error}")))
}
