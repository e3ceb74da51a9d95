//! `cairn hash build`.

use std::sync::Arc;

use cairn_hash::sparkey;
use cairn_vfs::Fs;
use serde_json::Value;

use super::store::{Recording, same_file};
use super::writer::{Writer, kind_by_extension};
use crate::args::hash::{BuildArgs, Codec, Kind};
use crate::error::{Error, Result};
use crate::input;
use crate::output::{Outcome, Output, counted, human};

/// Builds a store from an input.
pub fn build(fs: &Arc<dyn Fs>, args: &BuildArgs) -> Result<Outcome> {
    let kind = match args.to {
        Some(kind) => kind,
        None => kind_by_extension(&args.out)
            .map_err(|error| Error::usage(format!("{error}; or say --to cairn or --to sparkey")))?,
    };
    let (source, progress) = input::open(fs, &args.input)?;
    let targets = match kind {
        Kind::Cairn => vec![args.out.clone()],
        Kind::Sparkey => vec![sparkey::log_path(&args.out), sparkey::index_path(&args.out)],
    };
    for target in &targets {
        if same_file(&**fs, input::path_of(&args.input), target)? {
            return Err(Error::usage(format!(
                "{} is the input, which the store would replace: say another name with -o",
                target.display()
            )));
        }
    }
    let mut writer =
        Writer::create(fs, &args.out, kind, &args.write, args.write.compression.unwrap_or(Codec::None))?;
    let recording = Recording::begin();
    pump(source, progress, &mut recording.of(&mut writer))?;
    report("built", writer.finish()?, args.json)
}

/// Hands all records of an input to `sink`.
pub fn pump(
    mut source: Box<dyn input::Source>,
    mut progress: crate::progress::InputProgress,
    sink: &mut dyn input::Sink,
) -> Result<u64> {
    let mut records = 0;
    while source.feed(sink)? {
        progress.record();
        records += 1;
    }
    progress.finish();
    Ok(records)
}

/// Says what was written: a sentence, or the object itself.
pub fn report(verb: &str, written: Value, json: bool) -> Result<Outcome> {
    let mut out = Output::new();
    if json {
        out.json(&written)?;
    } else {
        let store = written.get("store").and_then(Value::as_str).unwrap_or_default();
        let [entries, bytes, index] = ["entries", "file_bytes", "index_bytes"]
            .map(|field| written.get(field).and_then(Value::as_u64).unwrap_or_default());
        let (bytes, index) = (human(bytes), human(index));
        let entries = counted(entries, "entry", "entries");
        out.line(format!("{verb} {store}: {entries}, {bytes}, {index} of it index"))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}
