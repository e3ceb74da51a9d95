//! `cairn trace dump`: the operations as CSV, which `cairn trace import` reads.

use std::sync::Arc;

use cairn_trace::{Detail, Event, KeyForm, Trace};
use cairn_vfs::Fs;

use crate::args::trace::DumpArgs;
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, to_hex};

const HEAD: [&str; 10] =
    ["time_ns", "thread", "op", "keyspace", "key", "key_size", "value_size", "found", "count", "end"];

/// Rows that are handed on together.
const PART: u64 = 1_000;

/// Prints a trace.
pub fn dump(fs: &Arc<dyn Fs>, args: &DumpArgs) -> Result<Outcome> {
    let trace = Trace::open(&**fs, &args.trace)?;
    let keys = trace.header().keys;
    let mut out = Output::new();
    out.line(HEAD.join(","))?;
    let refuse = |error: csv::Error| Error::usage(error.to_string());
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut events = trace.events();
    while left > 0 {
        let mut rows = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
        let part = left.min(PART);
        for event in events.by_ref().take(part as usize) {
            rows.write_record(row(&event?, keys)).map_err(refuse)?;
        }
        let bytes = rows.into_inner().map_err(|error| Error::usage(error.to_string()))?;
        out.bytes(&bytes)?;
        left = if bytes.is_empty() { 0 } else { left - part };
    }
    out.finish()?;
    Ok(Outcome::Done)
}

fn row(event: &Event<'_>, keys: KeyForm) -> [String; 10] {
    let shown = |key: &[u8]| match (keys, std::str::from_utf8(key)) {
        (KeyForm::Raw, Ok(text)) => text.to_owned(),
        _ => to_hex(key),
    };
    let (found, count, end) = match event.detail {
        Detail::Get(Some(found)) => (found.is_some().to_string(), String::new(), String::new()),
        Detail::Block { hit: Some(hit), .. } => (hit.to_string(), String::new(), String::new()),
        Detail::Scan { entries, .. } => (String::new(), entries.to_string(), String::new()),
        Detail::Statement(rows) => (String::new(), rows.to_string(), String::new()),
        Detail::DeleteRange { end, .. } => (String::new(), String::new(), shown(end)),
        _ => Default::default(),
    };
    [
        event.time_ns.to_string(),
        event.lane.to_string(),
        event.kind().name().to_owned(),
        event.keyspace.to_string(),
        shown(event.key),
        event.key_bytes.to_string(),
        event.value_bytes().map_or_else(String::new, |bytes| bytes.to_string()),
        found,
        count,
        end,
    ]
}
