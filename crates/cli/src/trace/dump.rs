//! `cairn trace dump`: prints operations as CSV, which `cairn trace import` reads. The thread
//! column is not read back, because an import has a single thread. A trace without times has no
//! time column: the order of the rows is enough, and numbers would be read as times.

use std::sync::Arc;

use cairn_trace::{Detail, Event, KeyForm, Trace};
use cairn_vfs::Fs;
use serde_json::json;

use crate::args::trace::DumpArgs;
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, counted, to_hex};
use crate::target::{Target, file_of, refuse_json_of_stdout};

/// The columns. The first one exists only in a trace with times. Those of keys get the suffix
/// `_hex` if any key of the trace is not text.
const HEAD: [&str; COLUMNS] = [
    TIME,
    "thread",
    "op",
    "keyspace",
    KEY,
    "key_size",
    "value_size",
    "found",
    "count",
    END,
    "joined",
    "backwards",
];
const COLUMNS: usize = 12;
const TIME: &str = "time_ns";
const KEY: &str = "key";
const END: &str = "end";

/// The number of rows written at once.
const PART: u64 = 1_000;

/// Prints a trace.
pub fn dump(fs: &Arc<dyn Fs>, args: &DumpArgs) -> Result<Outcome> {
    let path = file_of(args.out.as_deref());
    refuse_json_of_stdout(args.json, path)?;
    let trace = Trace::open(&**fs, &args.trace)?;
    if super::check_sound(&trace).is_ok() {
        super::tell_flaw(&trace);
    }
    let form = match trace.header().keys {
        KeyForm::Hashed => Form::Hash,
        KeyForm::Raw if is_text(&trace, args.limit)? => Form::Text,
        KeyForm::Raw => Form::Hex,
    };
    let mut target = Target::open(fs, path)?;
    let untimed = usize::from(!trace.header().timed);
    let head = HEAD.map(|name| match form == Form::Hex && (name == KEY || name == END) {
        true => format!("{name}_hex"),
        false => name.to_owned(),
    });
    target.write((head.get(untimed..).unwrap_or_default().join(",") + "\n").as_bytes())?;
    let refuse = |error: csv::Error| Error::usage(error.to_string());
    let (mut left, mut records) = (args.limit.unwrap_or(u64::MAX), 0_u64);
    let mut events = trace.events();
    while left > 0 {
        let mut rows = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
        let part = left.min(PART);
        for event in events.by_ref().take(part as usize) {
            rows.write_record(row(&event?, form).iter().skip(untimed)).map_err(refuse)?;
            records += 1;
        }
        let bytes = rows.into_inner().map_err(|error| Error::usage(error.to_string()))?;
        target.write(&bytes)?;
        left = if bytes.is_empty() { 0 } else { left - part };
    }
    target.finish()?;
    let Some(path) = path else { return super::check_sound(&trace).map(|()| Outcome::Done) };
    let mut out = Output::new();
    if args.json {
        let (trace, file) = (args.trace.display().to_string(), path.display().to_string());
        out.json(&json!({ "trace": trace, "file": file, "records": records }))?;
    } else {
        out.line(format!("wrote {}: {}", path.display(), counted(records, "operation", "operations")))?;
    }
    out.finish()?;
    super::check_sound(&trace)?;
    Ok(Outcome::Done)
}

/// The notation of keys. It is the same for the whole trace, because a key in hexadecimal could
/// also be the text of another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Hex,
    /// In hexadecimal. An import takes the hash for the key itself, because the original is
    /// unknown.
    Hash,
}

/// Returns true if all printed keys are readable text and survive the round trip. Binary numbers
/// may be valid UTF-8 by chance, but then contain control characters. Statements may contain line
/// breaks and tabs.
fn is_text(trace: &Trace, limit: Option<u64>) -> Result<bool> {
    let most = usize::try_from(limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    for event in trace.events().take(most) {
        let event = event?;
        let separates =
            |letter| matches!(event.detail, Detail::Statement(_)) && matches!(letter, '\n' | '\r' | '\t');
        let is_control = |letter: char| letter.is_control() && !separates(letter);
        let readable = |key: &[u8]| std::str::from_utf8(key).is_ok_and(|text| !text.contains(is_control));
        let end = match event.detail {
            // An end is trimmed when it is read, and an empty one counts as missing.
            Detail::DeleteRange { end, .. } => readable(end) && !end.is_empty() && end.trim_ascii() == end,
            _ => true,
        };
        if !end || !readable(event.key) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn row(event: &Event<'_>, form: Form) -> [String; COLUMNS] {
    let shown = |key: &[u8]| match form {
        Form::Text => String::from_utf8_lossy(key).into_owned(),
        Form::Hex | Form::Hash => to_hex(key),
    };
    let backwards = matches!(event.detail, Detail::Scan { backwards: true, .. });
    let flag = |is_set: bool| if is_set { "true".to_owned() } else { String::new() };
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
        flag(event.joined),
        flag(backwards),
    ]
}
