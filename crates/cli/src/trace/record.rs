//! `cairn trace record`: runs a program with the environment variables that make its stores record.
//! Ctrl-C is left to the program; operations recorded until then are reported.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use cairn_bench::core::text;
use cairn_trace::{ENV_KEYS, ENV_PATH, ENV_SAMPLE, Ending, Trace};
use cairn_vfs::{Fs, OpenOptions};
use serde_json::json;

use crate::args::trace::{Keys, RecordArgs};
use crate::error::{Error, Result};
use crate::interrupt::ChildSignals;
use crate::output::{Outcome, Output};
use crate::place;

/// Runs the program and prints a summary.
pub fn record(fs: &Arc<dyn Fs>, args: &RecordArgs) -> Result<Outcome> {
    place::expect_nothing(fs, &args.out)?;
    let Some((program, arguments)) = args.program.split_first() else {
        return Err(Error::usage("no program: expected one after --"));
    };
    let program = Path::new(program);
    let out = match args.out.is_absolute() {
        // The program may change its directory before it opens its stores.
        false => std::env::current_dir().map_err(|error| Error::usage(error.to_string()))?.join(&args.out),
        true => args.out.clone(),
    };
    // Check that the trace can be created before the program does its work.
    drop(fs.open(&args.out, OpenOptions::create_new())?);
    fs.remove(&args.out)?;
    let before = all(fs, &args.out)?;
    let mut interrupted = ChildSignals::catch()?;
    let refuse = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Error::usage(format!("{} does not exist", program.display())),
        _ => Error::usage(format!("{}: {error}", program.display())),
    };
    let child = Command::new(program)
        .args(arguments)
        .env(ENV_PATH, &out)
        .env(ENV_KEYS, if args.keys == Keys::Raw { "raw" } else { "hashed" })
        .env(ENV_SAMPLE, args.sample.to_string())
        .spawn()
        .map_err(refuse)?;
    let status = interrupted.wait(child).map_err(refuse)?;
    let mut traces = all(fs, &args.out)?;
    traces.retain(|path| !before.contains(path));
    let mut output = Output::new();
    let mut endless = None;
    for path in &traces {
        let trace = Trace::open(&**fs, path)?;
        if !matches!(trace.ending(), Ending::Complete { .. }) {
            endless = trace.ending().flaw().map(|flaw| format!("{}: {flaw}", path.display()));
        }
        if args.json {
            output.json(&super::summary(path, &trace))?;
        } else {
            let ending = trace.ending().flaw().map_or_else(String::new, |ending| format!("; {ending}"));
            let (records, bytes) = (text::count(trace.records()), text::value(trace.bytes() as f64, "B"));
            let share = super::share(&trace);
            output.line(format!("{}: {records} operations, {bytes}, of {share}{ending}", path.display()))?;
        }
    }
    if args.json && traces.is_empty() {
        output.json(&json!({ "trace": null }))?;
    }
    output.finish()?;
    let Some(status) = status else {
        return Err(Error::Interrupted(format!("{} was told to end, and still runs", program.display())));
    };
    if !status.success() && interrupted.was_pressed(status) {
        return Err(Error::Interrupted(format!("{} ended with {status}", program.display())));
    }
    if !status.success() {
        return Err(Error::usage(format!("{} ended with {status}", program.display())));
    }
    if traces.is_empty() {
        let what =
            "recorded nothing: it does not open a store through cairn_trace, or could not create its trace";
        return Err(Error::usage(format!("{} {what}", program.display())));
    }
    // A program that ended normally also ended its traces, unless it could not write them.
    if let Some(what) = endless {
        return Err(Error::usage(what));
    }
    Ok(Outcome::Done)
}

/// Returns the existing traces: the one with the given name, and the numbered ones of further
/// stores.
fn all(fs: &Arc<dyn Fs>, first: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let numbered = |number: usize| {
        let mut name = first.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    if fs.exists(first)? {
        found.push(first.to_owned());
    }
    for number in 1.. {
        let path = numbered(number);
        if !fs.exists(&path)? {
            break;
        }
        found.push(path);
    }
    Ok(found)
}
