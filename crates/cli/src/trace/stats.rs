//! `cairn trace stats`: statistics of a workload for a terminal, as a page, or as JSON.

use std::sync::Arc;

use cairn_bench::report::{self, trace_text};
use cairn_trace::Trace;
use cairn_trace::stats::{self, Options};
use cairn_vfs::Fs;
use serde_json::{Map, Value};

use crate::args::trace::StatsArgs;
use crate::bench::write_file;
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, is_stdout};

/// Computes and prints the statistics of a trace.
pub fn stats(fs: &Arc<dyn Fs>, args: &StatsArgs) -> Result<Outcome> {
    let mut out = Output::beside("--html", args.html.as_deref(), args.json)?;
    let trace = Trace::open(&**fs, &args.trace)?;
    let options =
        Options { windows: usize::from(args.windows), keys_max: args.keys_max, ..Options::default() };
    let stats = stats::of(&trace, &options)?;
    let name = args.trace.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(page) = &args.html {
        write_file(fs, page, report::render_trace(&name, &stats).as_bytes())?;
    }
    if args.json {
        let figures = serde_json::to_value(&stats).map_err(|error| Error::usage(error.to_string()))?;
        let mut json = Map::from_iter([("trace".to_owned(), args.trace.display().to_string().into())]);
        if let Value::Object(figures) = figures {
            json.extend(figures);
        }
        out.json(&json.into())?;
    } else {
        out.bytes(trace_text::to_text(&name, &stats).as_bytes())?;
        if let Some(page) = args.html.as_ref().filter(|page| !is_stdout(page)) {
            out.line(format!("\npage: {}", page.display()))?;
        }
    }
    out.finish()?;
    super::check_sound(&trace)?;
    Ok(Outcome::Done)
}
