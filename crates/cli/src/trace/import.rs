//! `cairn trace import`: a trace of other people's files.

use std::sync::Arc;

use cairn_bench::text;
use cairn_trace::Trace;
use cairn_trace::import::{self, ImportOptions};
use cairn_vfs::{Fs, OpenOptions};
use serde_json::Value;

use crate::args::trace::ImportArgs;
use crate::error::Result;
use crate::input::stream::is_pipe;
use crate::input::{is_stdin, name_of, read_whole};
use crate::output::{Outcome, Output};
use crate::place;

/// Imports, and says what came of it.
pub fn import(fs: &Arc<dyn Fs>, args: &ImportArgs) -> Result<Outcome> {
    place::expect_nothing(fs, &args.out)?;
    let (name, input) = read(fs, args)?;
    let options = ImportOptions {
        format: args.format,
        keys: args.keys.into(),
        sample: args.sample,
        ..ImportOptions::default()
    };
    let imported = import::import(fs, &name, input, &args.out, &options).inspect_err(|_| {
        // Half of a trace would pass for one that was cut.
        let _ = fs.remove(&args.out);
    })?;
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
            out.line("the input ends within a record; what is before that is there")?;
        }
    }
    out.finish()?;
    Ok(Outcome::Done)
}

fn read(fs: &Arc<dyn Fs>, args: &ImportArgs) -> Result<(String, Vec<u8>)> {
    if is_stdin(&args.input) || is_pipe(&args.input) {
        return Ok((name_of(&args.input), read_whole(fs, &args.input, u64::MAX - 1)?));
    }
    let file = fs.open(&args.input, OpenOptions::read())?;
    let mut input = vec![0; usize::try_from(file.len()?).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut input, 0)?;
    let name = args.input.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok((name.unwrap_or_default(), input))
}
