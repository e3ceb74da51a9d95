//! `cairn trace import`: converts a file of another tool to a trace.

use std::sync::Arc;

use cairn_bench::core::text;
use cairn_trace::Trace;
use cairn_trace::import::{self, ImportOptions};
use cairn_vfs::Fs;
use serde_json::Value;

use crate::args::trace::ImportArgs;
use crate::error::Result;
use crate::input::stream::{self, Bytes, StdinStream};
use crate::input::{is_stdin, name_of};
use crate::interrupt;
use crate::output::{Outcome, Output};
use crate::place;

/// Imports a file and prints a summary.
pub fn import(fs: &Arc<dyn Fs>, args: &ImportArgs) -> Result<Outcome> {
    place::expect_nothing(fs, &args.out)?;
    let (name, mut input) = open(fs, args)?;
    let options = ImportOptions {
        format: args.format,
        keys: args.keys.into(),
        sample: args.sample,
        ..ImportOptions::default()
    };
    let (half, at) = (args.out.clone(), Arc::clone(fs));
    // An unfinished trace would look like one that was cut.
    let unfinished = interrupt::unfinished(move || _ = at.remove(&half))?;
    let imported = import::import(fs, &name, &mut input, &args.out, &options).inspect_err(|_| {
        let _ = fs.remove(&args.out);
    })?;
    drop(unfinished);
    let trace = Trace::open(&**fs, &args.out)?;
    let mut out = Output::new();
    if args.json {
        let mut json = super::summary(&args.out, &trace);
        if let Value::Object(fields) = &mut json {
            let skipped =
                imported.skipped.iter().map(|(what, count)| (what.clone(), (*count).into())).collect();
            fields.insert("format".to_owned(), imported.format.name().into());
            fields.insert("skipped".to_owned(), Value::Object(skipped));
            fields.insert("input_cut".to_owned(), imported.cut.into());
        }
        out.json(&json)?;
    } else {
        let (records, bytes) = (text::count(imported.records), text::value(trace.bytes() as f64, "B"));
        out.line(format!(
            "{}: {records} operations of {}, {bytes}",
            args.out.display(),
            imported.format.name()
        ))?;
        for (what, count) in &imported.skipped {
            out.line(format!("left out, {}: {what}", text::count(*count)))?;
        }
        if imported.cut {
            out.line("the input ends within a record; the records before it are imported")?;
        }
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// Opens the input and returns its name and its bytes.
fn open(fs: &Arc<dyn Fs>, args: &ImportArgs) -> Result<(String, Box<dyn Bytes>)> {
    if is_stdin(&args.input) {
        return Ok((name_of(&args.input), Box::new(StdinStream::new(Arc::default()))));
    }
    place::expect_file(fs, &args.input)?;
    let (input, _) = stream::open_in_order(fs, &args.input, Arc::default())?;
    let name = match stream::is_pipe(&args.input) {
        true => name_of(&args.input),
        false => args.input.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
    };
    Ok((name, input))
}
