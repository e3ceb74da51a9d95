//! `cairn kv dump`: exports entries to a file or to standard output.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cairn_vfs::Fs;
use serde_json::json;

use super::export::Export;
use super::form::Form;
use super::store;
use crate::args::kv::{DumpArgs, DumpFormat};
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, counted};
use crate::progress::InputProgress;
use crate::target::{BUFFER_BYTES, Target, file_of, refuse_json_of_stdout};

/// Exports the entries of a range, from a snapshot.
pub fn dump(fs: &Arc<dyn Fs>, args: &DumpArgs) -> Result<Outcome> {
    let path = file_of(args.out.as_deref());
    refuse_json_of_stdout(args.json, path)?;
    let format = format_of(args.format, path)?;
    let range = Form { hex: args.hex }.range(&args.range)?;
    let store = store::read(fs, &args.at)?;
    let mut target = Target::open(fs, path)?;
    let mut progress = path.map(|_| InputProgress::new(None));
    let written = progress.as_ref().map(InputProgress::counter).unwrap_or_default();
    let mut bytes = Vec::new();
    let mut export = Export::start(format, &mut bytes)?;
    let mut entries = 0_u64;
    range.visit(&store.keyspace, false, |key, value| {
        export.add(key, value, &mut bytes)?;
        if bytes.len() >= BUFFER_BYTES {
            target.write(&bytes)?;
            written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            bytes.clear();
        }
        if let Some(progress) = &mut progress {
            progress.record();
        }
        entries += 1;
        Ok(true)
    })?;
    export.finish(&mut bytes)?;
    target.write(&bytes)?;
    target.finish()?;
    drop(progress);
    let Some(path) = path else { return Ok(Outcome::Done) };
    let mut out = Output::new();
    if args.json {
        let store = args.at.store.display().to_string();
        let (keyspace, file) = (&args.at.keyspace, path.display().to_string());
        out.json(&json!({ "store": store, "keyspace": keyspace, "file": file, "entries": entries }))?;
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
        return Err(Error::usage("no format for standard output: choose one with --format"));
    };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "csv" => Ok(DumpFormat::Csv),
        "jsonl" | "ndjson" => Ok(DumpFormat::Jsonl),
        "parquet" | "pq" => Ok(DumpFormat::Parquet),
        "bin" => Ok(DumpFormat::Binary),
        _ => Err(Error::usage(format!(
            "{} has no known extension (.csv, .jsonl, .parquet, .bin): use --format",
            path.display()
        ))),
    }
}
