//! `cairn bench hash`: one run of the suite, with its result file, report and table.

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cairn_bench::catalog::installed;
use cairn_bench::core::dashboard;
use cairn_bench::core::process::Stop;
use cairn_bench::core::results::Run;
use cairn_bench::core::worker::Worker;
use cairn_bench::report::summary;
use cairn_bench::suites::hash::{self, DataFile, Matrix, Mode, Options};
use cairn_vfs::Fs;

use super::outcome::{Shown, chosen, conclude, measure};
use crate::args::BenchHashArgs;
use crate::error::Result;
use crate::interrupt::{self, IsRepeated};
use crate::output::Outcome;

/// Runs the suite, stores the results and prints them.
pub fn run(fs: &Arc<dyn Fs>, args: &BenchHashArgs) -> Result<Outcome> {
    let options = options(args)?;
    options.check()?;
    options.check_data()?;
    chosen(&args.run, args.filter.as_deref(), hash::chooses_anything(&options, installed()))?;
    let run = measure(fs, &args.run, |bar, stop| hash::run(&options, installed(), bar, stop))?;
    let nothing = "nothing was measured; the notes above say why".to_owned();
    let text = |run: &Run| Ok(format!("\n{}", summary::to_text(run)));
    conclude(fs, &args.run, run, &Shown { nothing, json: &dashboard::to_json, text: &text })
}

/// Returns the command line, quoted for a shell, for the report's section "Repeat it". Invalid
/// UTF-8, as in file names, becomes replacement characters, because a report is text.
pub(super) fn command_line(arguments: impl Iterator<Item = OsString>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
    let quoted = arguments.skip(1).map(|word| {
        let word = word.to_string_lossy().into_owned();
        let plain = !word.is_empty() && word.chars().all(is_plain);
        if plain { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    // Use the plain name instead of the path of this program, which differs between machines.
    std::iter::once("cairn".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
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
    options.distribution = args.distribution;
    if let Some(seed) = args.seed {
        options.seed = seed;
    }
    if let Some(dir) = &args.run.work_dir {
        options.work_dir = dir.clone();
    }
    if args.run.no_probes {
        options.probes = None;
    }
    options.filter = args.filter.clone();
    options.for_dashboard = args.run.json;
    options.worker = Some(Worker::this_program()?);
    Ok(options)
}

/// Returns the settings of a quick run for stores of other sizes.
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

/// Ctrl-C handling during a run.
#[derive(Debug, Clone)]
pub(crate) struct CtrlC {
    ends_at_once: Arc<AtomicBool>,
}

impl CtrlC {
    /// Sets whether the first Ctrl-C exits the process at once. This is right while there is
    /// nothing to clean up or to keep.
    pub fn end_at_once(&self, at_once: bool) {
        self.ends_at_once.store(at_once, Ordering::Relaxed);
    }
}

/// Installs the handler: the first Ctrl-C asks the run to end with its results so far, a second one
/// exits the process. Other signals of [`interrupt::on_end_request`] do the same.
pub(crate) fn end_on_ctrl_c(stop: &Stop) -> Result<CtrlC> {
    let (stop, ends_at_once) = (stop.clone(), Arc::new(AtomicBool::new(false)));
    let ctrl_c = CtrlC { ends_at_once: Arc::clone(&ends_at_once) };
    interrupt::on_end_request(move |IsRepeated(again)| {
        // Begin a new line after the terminal's ^C and any unfinished line.
        let _ = writeln!(io::stderr());
        if again || ends_at_once.load(Ordering::Relaxed) {
            interrupt::end_now();
        }
        stop.ask();
        let _ = writeln!(io::stderr(), "ending with the results so far; press again to end at once");
    })?;
    Ok(ctrl_c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a shell parses the command line back to the arguments, and the program is called by
    /// its name.
    #[test]
    fn commands_can_be_typed_again() {
        let typed =
            ["/opt/x y/cairn", "bench", "hash", "cairn mmap", "--key", "it's", "--source", "", "--seed", "3"];
        assert_eq!(
            command_line(typed.iter().map(|&word| word.into())),
            r"cairn bench hash 'cairn mmap' --key 'it'\''s' --source '' --seed 3"
        );
    }

    /// Goal: a file name that is not UTF-8 does not make a run fail. Method: an argument that is
    /// not UTF-8.
    #[cfg(unix)]
    #[test]
    fn commands_may_contain_any_bytes() {
        use std::os::unix::ffi::OsStringExt;
        let typed = ["cairn".into(), OsString::from_vec(b"--work-dir=w\xf6rter".to_vec())];
        assert_eq!(command_line(typed.into_iter()), "cairn '--work-dir=w\u{fffd}rter'");
    }
}
