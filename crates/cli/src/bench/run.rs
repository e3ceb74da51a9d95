//! `cairn bench hash`: one run of the suite, its result file, its report and its table.

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cairn_bench::process::Stop;
use cairn_bench::results::Run;
use cairn_bench::runner::worker::Worker;
use cairn_bench::suite_hash::{self, DataFile, Matrix, Mode, Options};
use cairn_bench::{dashboard, table};
use cairn_vfs::Fs;

use super::outcome::{Shown, chosen, conclude, measure};
use crate::args::BenchHashArgs;
use crate::error::Result;
use crate::interrupt::{self, Again};
use crate::output::Outcome;

/// Runs the suite, stores what it measured and shows it.
pub fn run(fs: &Arc<dyn Fs>, args: &BenchHashArgs) -> Result<Outcome> {
    let options = options(args)?;
    options.check()?;
    options.check_data()?;
    chosen(&args.run, args.filter.as_deref(), suite_hash::chooses_anything(&options))?;
    let run = measure(fs, &args.run, |bar, stop| suite_hash::run(&options, bar, stop))?;
    let nothing = "nothing was measured; the notes above say why".to_owned();
    let text = |run: &Run| Ok(format!("\n{}", table::to_text(run)));
    conclude(fs, &args.run, run, &Shown { nothing, json: &dashboard::to_json, text: &text })
}

/// The command as it was typed, quoted where a shell needs it, for the report's "Repeat it". Bytes
/// that are not UTF-8, as names of files may have them, become replacement characters: a report is
/// text.
pub(super) fn command_line(arguments: impl Iterator<Item = OsString>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
    let quoted = arguments.skip(1).map(|word| {
        let word = word.to_string_lossy().into_owned();
        let plain = !word.is_empty() && word.chars().all(is_plain);
        if plain { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    // Not the path of this program, which is another on another machine.
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

/// Ctrl-C during a run.
#[derive(Debug, Clone)]
pub(crate) struct CtrlC {
    ends_at_once: Arc<AtomicBool>,
}

impl CtrlC {
    /// From here on the first one ends the process: nothing has begun that could be put away.
    pub fn end_at_once(&self, at_once: bool) {
        self.ends_at_once.store(at_once, Ordering::Relaxed);
    }
}

/// The first Ctrl-C asks the run to end with what it has, a second one ends the process. So do
/// others of [`interrupt::when_ended`].
pub(crate) fn end_on_ctrl_c(stop: &Stop) -> Result<CtrlC> {
    let (stop, ends_at_once) = (stop.clone(), Arc::new(AtomicBool::new(false)));
    let ctrl_c = CtrlC { ends_at_once: Arc::clone(&ends_at_once) };
    interrupt::when_ended(move |Again(again)| {
        // Behind the terminal's ^C, in a line that may have begun.
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

    /// Goal: a shell reads back what was typed, and the program is called by its name.
    #[test]
    fn commands_can_be_typed_again() {
        let typed =
            ["/opt/x y/cairn", "bench", "hash", "cairn mmap", "--key", "it's", "--source", "", "--seed", "3"];
        assert_eq!(
            command_line(typed.iter().map(|&word| word.into())),
            r"cairn bench hash 'cairn mmap' --key 'it'\''s' --source '' --seed 3"
        );
    }

    /// Goal: a run is not lost to a file's name. Method: an argument that is not UTF-8.
    #[cfg(unix)]
    #[test]
    fn commands_need_not_be_utf8() {
        use std::os::unix::ffi::OsStringExt;
        let typed = ["cairn".into(), OsString::from_vec(b"--work-dir=w\xf6rter".to_vec())];
        assert_eq!(command_line(typed.into_iter()), "cairn '--work-dir=w\u{fffd}rter'");
    }
}
