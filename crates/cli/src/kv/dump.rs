//! `cairn kv dump`: entries to a file or to standard output.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_vfs::{AppendWriter, Fs, OutputFile};
use serde_json::json;

use super::export::Export;
use super::form::Form;
use super::store;
use crate::args::kv::{DumpArgs, DumpFormat};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::output::{Outcome, Output, counted, is_stdout};
use crate::progress::InputProgress;

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 1 << 18;

/// Where an export goes.
#[derive(Debug)]
enum Target {
    /// A file that appears as a whole, or a device.
    File { file: OutputFile, writer: AppendWriter, progress: InputProgress, written: Arc<AtomicU64> },
    /// Standard output.
    Output(Output),
}

impl Target {
    fn open(fs: &Arc<dyn Fs>, path: Option<&Path>) -> Result<Target> {
        let Some(path) = path else { return Ok(Target::Output(Output::new())) };
        let file = OutputFile::create(fs, path)?;
        let writer = AppendWriter::new(Arc::clone(file.file()), 0, BUFFER_BYTES);
        let progress = InputProgress::new(None);
        let written = progress.counter();
        Ok(Target::File { file, writer, progress, written })
    }

    /// Writes what is ready and forgets it.
    fn write(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        match self {
            Target::File { writer, written, .. } => {
                writer.write_all(bytes)?;
                written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
            Target::Output(out) => out.bytes(bytes)?,
        }
        bytes.clear();
        Ok(())
    }

    /// One more entry went through.
    fn record(&mut self) {
        if let Target::File { progress, .. } = self {
            progress.record();
        }
    }

    /// Publishes a file, durably.
    fn finish(self) -> Result<()> {
        match self {
            Target::File { file, mut writer, progress, .. } => {
                writer.flush()?;
                progress.finish();
                Ok(file.commit()?)
            }
            Target::Output(out) => out.finish(),
        }
    }
}

/// Exports the entries of a range, as they are now.
pub fn dump(fs: &Arc<dyn Fs>, args: &DumpArgs) -> Result<Outcome> {
    // As for inputs, - is the standard stream.
    let path = args.out.as_deref().filter(|path| !is_stdout(path));
    if args.json && path.is_none() {
        return Err(Error::usage("--json says what was written to a file; standard output has the entries"));
    }
    let format = format_of(args.format, path)?;
    let range = Form { hex: args.hex }.range(&args.range)?;
    let store = store::read(fs, &args.at)?;
    // To a pipe there is nothing to put away: Ctrl-C may end it as it ends any command.
    let interrupt = path.map(|_| Interrupt::catch()).transpose()?;
    let mut target = Target::open(fs, path)?;
    let mut bytes = Vec::new();
    let mut export = Export::start(format, &mut bytes)?;
    let mut entries = 0_u64;
    range.visit(&store.keyspace, false, |key, value| {
        export.add(key, value, &mut bytes)?;
        if bytes.len() >= BUFFER_BYTES {
            target.write(&mut bytes)?;
            if let Some(interrupt) = &interrupt {
                interrupt.check(|| "nothing is written".to_owned())?;
            }
        }
        target.record();
        entries += 1;
        Ok(true)
    })?;
    export.finish(&mut bytes)?;
    target.write(&mut bytes)?;
    target.finish()?;
    let Some(path) = path else { return Ok(Outcome::Done) };
    let mut out = Output::new();
    if args.json {
        out.json(&json!({ "file": path.display().to_string(), "entries": entries }))?;
    } else {
        out.line(format!("wrote {}: {}", path.display(), counted(entries, "entry", "entries")))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

fn format_of(format: Option<DumpFormat>, path: Option<&Path>) -> Result<DumpFormat> {
    if let Some(format) = format {
        return Ok(format);
    }
    let Some(path) = path else {
        return Err(Error::usage("say what to write to standard output with --format"));
    };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "csv" => Ok(DumpFormat::Csv),
        "jsonl" | "ndjson" => Ok(DumpFormat::Jsonl),
        "parquet" | "pq" => Ok(DumpFormat::Parquet),
        "bin" => Ok(DumpFormat::Binary),
        _ => Err(Error::usage(format!(
            "{} does not tell its format by its name (.csv, .jsonl, .parquet, .bin): say --format",
            path.display()
        ))),
    }
}
