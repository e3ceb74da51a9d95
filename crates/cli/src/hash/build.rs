//! `cairn hash build` and `cairn hash index`.

use std::sync::Arc;

use cairn_hash::sparkey;
use cairn_vfs::Fs;
use serde_json::Value;

use super::store::{Recording, Store, kind_of, same_file};
use super::writer::{Writer, index_options, kind_by_extension, summarize_pair};
use crate::args::hash::{BuildArgs, Codec, IndexArgs, Kind, WriteArgs};
use crate::error::{Error, Result};
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::{Outcome, Output, counted, human};

/// Ctrl-C is checked once per this many records.
const RECORDS_PER_LOOK: u64 = 256;

/// Builds a store from an input.
pub fn build(fs: &Arc<dyn Fs>, args: &BuildArgs) -> Result<Outcome> {
    let kind = match (args.to, kind_by_extension(&args.out)) {
        // Refuse this: stores are opened by extension, so nothing would find a store under this
        // name.
        (Some(kind), Ok(named)) if kind != named => {
            let (kind, named) = (kind_name(kind), kind_name(named));
            let out = args.out.display();
            return Err(Error::usage(format!("--to {kind} contradicts the extension of {out} ({named})")));
        }
        (Some(kind), _) => kind,
        (None, named) => {
            named.map_err(|error| Error::usage(format!("{error}; or use --to cairn or --to sparkey")))?
        }
    };
    let (source, progress) = input::open(fs, &args.input)?;
    let targets = match kind {
        Kind::Cairn => vec![args.out.clone()],
        Kind::Sparkey => vec![sparkey::log_path(&args.out), sparkey::index_path(&args.out)],
    };
    for target in &targets {
        if same_file(&**fs, input::path_of(&args.input), target)? {
            return Err(Error::usage(format!(
                "{} is the input, which the store would replace: choose another name with -o",
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

/// Returns the name of a format for `--to`.
fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Cairn => "cairn",
        Kind::Sparkey => "sparkey",
    }
}

/// Rebuilds the index of a Sparkey log.
pub fn index(fs: &Arc<dyn Fs>, args: &IndexArgs) -> Result<Outcome> {
    let path = &args.store;
    // A log may not have an index yet.
    let is_log = !fs.exists(path)? && fs.exists(&sparkey::log_path(path))?;
    if !is_log && kind_of(&**fs, path)? == Kind::Cairn {
        // This reports a missing file, or one that is not a store, with the usual error.
        drop(Store::open(fs, path)?);
        return Err(Error::usage(format!(
            "{} contains its index: expected a Sparkey log, whose index is a separate file",
            path.display()
        )));
    }
    let options = index_options(&WriteArgs { memory: args.memory, ..WriteArgs::unchanged() })?;
    sparkey::build_index_in(fs, path, &options)?;
    report("indexed", summarize_pair(fs, path)?, args.json)
}

/// Copies all records of an input to `sink`. Ctrl-C rolls back the operation.
pub fn pump(
    mut source: Box<dyn input::Source>,
    mut progress: crate::progress::InputProgress,
    sink: &mut dyn input::Sink,
) -> Result<u64> {
    let interrupt = Interrupt::catch()?;
    let told = || "existing data is unchanged".to_owned();
    let mut records = 0_u64;
    while interrupt.outcome(source.feed(sink), told)? {
        progress.record();
        records += 1;
        if records.is_multiple_of(RECORDS_PER_LOOK) {
            interrupt.check(told)?;
        }
    }
    progress.finish();
    Ok(records)
}

/// Reports the written store: as a sentence, or as the JSON object.
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
