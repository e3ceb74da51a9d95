//! The lab's commands: running suites, and processing stored runs.

pub mod all;
pub mod history;
pub mod index;
pub mod kv;
mod outcome;
pub mod pool;
pub mod replay;
pub mod run;
pub mod sql;
pub mod stored;

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use cairn_bench::core::results::Run;
use cairn_rows::mark;
use cairn_vfs::{Fs, OutputFile};

use crate::error::{Error, Result};
use crate::input::{name_of, read_whole};
use crate::output::{Outcome, Output, is_stdout};

/// Runs one job that it reads from standard input. The lab starts this in a new process.
pub fn worker() -> Result<Outcome> {
    cairn_bench::core::process::end_with_parent();
    let mut job = String::new();
    io::stdin().lock().read_to_string(&mut job).map_err(Error::Stdin)?;
    // Run the job before locking standard output: a store that prints something would otherwise
    // wait for the lock forever.
    let answer = cairn_bench::catalog::serve(&job);
    let mut out = Output::new();
    out.bytes(answer.as_bytes())?;
    out.finish()?;
    Ok(Outcome::Done)
}

/// Writes a file atomically and durably; a pipe or another device is written through.
pub fn write_file(fs: &Arc<dyn Fs>, path: &Path, content: &[u8]) -> Result<()> {
    if is_stdout(path) {
        let mut out = Output::new();
        out.bytes(content)?;
        return out.finish();
    }
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        fs.create_dir_all(dir)?;
    }
    let file = OutputFile::create(fs, path)?;
    file.file().write_all_at(content, 0)?;
    Ok(file.commit()?)
}

/// Reads a whole text from a file, a pipe, or standard input (`-`). Removes a byte order mark.
pub fn read_text(fs: &Arc<dyn Fs>, path: &Path) -> Result<String> {
    let mut text = read_whole(fs, path, u64::MAX - 1)?;
    text.drain(..text.len() - mark::without(&text).len());
    let refuse = |what: String| Error::Input { input: name_of(path), place: None, what };
    String::from_utf8(text).map_err(|_| refuse("not text: expected UTF-8".to_owned()))
}

/// Returns every setting of every contender, one per line.
fn settings(run: &Run) -> String {
    let mut out = String::new();
    for contender in &run.contenders {
        out += &format!("{} {}\n", contender.name, contender.version);
        if let Some(failure) = contender.failure().filter(|_| contender.skipped.is_some()) {
            out += &format!("  {failure}\n");
            continue;
        }
        if let Some(reason) = &contender.skipped {
            out += &format!("  left out: {reason}\n");
            continue;
        }
        for (name, value) in contender.settings.iter().filter(|(name, _)| !name.starts_with("counter")) {
            out += &format!("  {name}: {value}\n");
        }
    }
    out
}
