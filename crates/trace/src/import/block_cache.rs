//! RocksDB's trace of its block cache: the binary form, and the text that RocksDB's analyzer
//! writes.
//!
//! ```text
//!   record   time in µs 8 · type 1 · payload bytes 4 · payload    (as in the trace of operations)
//!   first    type 1, payload: length and "feedcafedeadbeef", major 4, minor 4
//!   access   type 7 index, 8 filter, 9 data, 10 dictionary, 11 range deletions
//!            payload: block key (string) · bytes 8 · family 8 · family's name (string) · level 4 ·
//!                     file 8 · caller 1 · hit 1 · no insert 1 · fields that only lookups have
//!   text     21 fields: time, block id, type, bytes, family, its name, level, file, caller,
//!            no insert, get id, key id, bytes requested, hit, ...
//! ```

use std::io::BufRead;

use super::operations::{Records, take, take_string};
use super::{Sink, each_line, event};
use crate::error::{Error, Result};
use crate::event::{Detail, Event};

const MAGIC: &[u8] = b"\x10feedcafedeadbeef";
const BEGIN: u8 = 1;
const END: u8 = 2;
const FIELDS: usize = 21;

/// Returns true if the input begins like a block cache trace.
pub(super) fn is_one(input: &[u8]) -> bool {
    input.get(8) == Some(&BEGIN) && input.get(13..).is_some_and(|payload| payload.starts_with(MAGIC))
}

/// Returns true for a line of the text form.
pub(super) fn is_text(fields: &[&str]) -> bool {
    let is_number = |at: usize| fields.get(at).is_some_and(|field| field.parse::<u64>().is_ok());
    fields.len() == FIELDS && [0, 1, 2, 3, 4, 7].into_iter().all(is_number)
}

pub(super) fn read(name: &str, input: &mut dyn BufRead, sink: &mut Sink) -> Result<()> {
    let mut records = Records::new(name, input);
    let mut start = 0;
    while let Some(record) = records.next(sink)? {
        match record.kind {
            BEGIN => {
                start = record.micros;
                sink.header.started_ns = start.saturating_mul(1_000);
            }
            END => break,
            7..=11 => {
                let time_ns = sink.micros(record.micros, start);
                let access = access(record.payload, time_ns).ok_or_else(|| Error::Input {
                    input: name.to_owned(),
                    place: Some(format!("byte {}", record.at)),
                    what: "a record is shorter than its fields".to_owned(),
                })?;
                sink.add(&access)?;
            }
            other => sink.skip(&format!("record type {other}")),
        }
    }
    Ok(())
}

fn access(payload: &[u8], time_ns: u64) -> Option<Event<'_>> {
    let mut rest = payload;
    let key = take_string(&mut rest)?;
    let bytes = u64::from_le_bytes(take(&mut rest)?);
    let family = u64::from_le_bytes(take(&mut rest)?);
    take_string(&mut rest)?;
    // Level, file and caller.
    take::<13>(&mut rest)?;
    let [hit] = take(&mut rest)?;
    let detail = Detail::Block { bytes, hit: Some(hit != 0) };
    // Block keys are unique over all families; the keyspace only tells which family the block
    // belongs to.
    Some(Event { keyspace: u32::try_from(family).unwrap_or(0), ..event(time_ns, key, detail) })
}

pub(super) fn read_text(name: &str, input: &mut dyn BufRead, sink: &mut Sink) -> Result<()> {
    let mut start = None;
    each_line(name, input, |at, line| {
        if line.is_empty() {
            return Ok(());
        }
        let refuse =
            |what: String| Error::Input { input: name.to_owned(), place: Some(format!("line {at}")), what };
        let text = std::str::from_utf8(line).map_err(|error| refuse(error.to_string()))?;
        let fields: Vec<&str> = text.split(',').collect();
        if fields.len() != FIELDS {
            return Err(refuse(format!("{} fields: expected {FIELDS}", fields.len())));
        }
        let number = |field: usize| {
            let text = fields.get(field).copied().unwrap_or_default();
            text.parse::<u64>()
                .map_err(|_| refuse(format!("field {}, {text:?}: expected a number", field + 1)))
        };
        let (micros, block, bytes, hit) = (number(0)?, number(1)?, number(3)?, number(13)?);
        let start = *start.get_or_insert(micros);
        let time_ns = sink.micros(micros, start);
        sink.header.started_ns = start.saturating_mul(1_000);
        let key = block.to_be_bytes();
        let family = u32::try_from(number(4)?).unwrap_or(0);
        let detail = Detail::Block { bytes, hit: Some(hit != 0) };
        sink.add(&Event { keyspace: family, ..event(time_ns, &key, detail) })
    })
}
