//! RocksDB's trace of operations.
//!
//! ```text
//!   record   time in µs 8 · type 1 · payload bytes 4 · payload
//!   first    type 1, payload "feedcafedeadbeef\tTrace Version: 0.2\tRocksDB Version: 7.8\t..."
//!   0.2      a payload begins with an 8-byte bit map of the fields that follow, in this order
//!              1 batch   2 family 4   3 key   4 family 4   5 key   6 lower bound   7 upper bound
//!              8 count 4   9 families   10 keys         strings have a varint length prefix
//!   0.1      write: the batch;  get, seek: family 4, key
//!   batch    seqno 8 · count 4 · entries: tag 1, [family varint], key, [value]
//! ```

use std::io::{BufRead, Read};

use super::outcomes::Outcomes;
use super::{Sink, event, unreadable};
use crate::error::{Error, Result};
use crate::event::{Detail, Event};
use crate::format::take_varint;

const MAGIC: &[u8] = b"feedcafedeadbeef\t";
const HEAD_BYTES: usize = 13;
const BEGIN: u8 = 1;
const END: u8 = 2;
const WRITE: u8 = 3;
const GET: u8 = 4;
const SEEK: u8 = 5;
const SEEK_FOR_PREV: u8 = 6;
const MULTI_GET: u8 = 13;

/// Returns true if the input begins like a trace of operations.
pub(super) fn is_one(input: &[u8]) -> bool {
    input.get(8) == Some(&BEGIN) && input.get(HEAD_BYTES..).is_some_and(|payload| payload.starts_with(MAGIC))
}

/// A record of any RocksDB trace.
pub(super) struct Framed<'a> {
    /// The offset of its first byte.
    pub at: u64,
    pub micros: u64,
    pub kind: u8,
    pub payload: &'a [u8],
}

/// Reads the records of any RocksDB trace.
pub(super) struct Records<'a> {
    name: &'a str,
    input: &'a mut dyn BufRead,
    /// The current record.
    bytes: Vec<u8>,
    /// The offset of the next record.
    at: u64,
}

impl<'a> Records<'a> {
    pub fn new(name: &'a str, input: &'a mut dyn BufRead) -> Records<'a> {
        Records { name, input, bytes: Vec::new(), at: 0 }
    }

    /// Returns the next record; `None` at the end of the input. Notes in the sink if the input ends
    /// within a record.
    pub fn next(&mut self, sink: &mut Sink) -> Result<Option<Framed<'_>>> {
        self.bytes.clear();
        self.fill(HEAD_BYTES as u64)?;
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let length = self.bytes.last_chunk::<4>().filter(|_| self.bytes.len() == HEAD_BYTES);
        if let Some(length) = length.copied() {
            self.fill(u64::from(u32::from_le_bytes(length)))?;
        }
        let framed = framed(self.at, &self.bytes);
        self.at += self.bytes.len() as u64;
        sink.cut |= framed.is_none();
        Ok(framed)
    }

    /// Reads this many more bytes, or up to the end.
    fn fill(&mut self, bytes: u64) -> Result<()> {
        // BOUND: the buffer grows only as bytes are read, whatever length a record claims.
        let read = (&mut *self.input).take(bytes).read_to_end(&mut self.bytes);
        read.map(|_| ()).map_err(|error| unreadable(self.name, &error))
    }
}

/// Parses a record. Returns `None` if it is incomplete.
fn framed(at: u64, bytes: &[u8]) -> Option<Framed<'_>> {
    let mut rest = bytes;
    let micros = u64::from_le_bytes(take(&mut rest)?);
    let [kind] = take(&mut rest)?;
    let length = u32::from_le_bytes(take(&mut rest)?) as usize;
    (rest.len() == length).then_some(Framed { at, micros, kind, payload: rest })
}

pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (front, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*front)
}

/// Takes a string with a varint length prefix.
pub(super) fn take_string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_varint(rest).ok()?).ok()?;
    let (string, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(string)
}

/// Returns true if the first record names the version whose payloads have bit maps.
fn has_maps(name: &str, payload: &[u8]) -> Result<bool> {
    let text = String::from_utf8_lossy(payload);
    let version = text.split('\t').find_map(|part| part.strip_prefix("Trace Version: "));
    match version {
        Some("0.1") => Ok(false),
        Some("0.2") => Ok(true),
        other => Err(Error::Input {
            input: name.to_owned(),
            place: Some("byte 0".to_owned()),
            what: format!("trace version {:?}: expected 0.1 or 0.2", other.unwrap_or("none")),
        }),
    }
}

pub(super) fn read(name: &str, input: &mut dyn BufRead, sink: &mut Sink) -> Result<()> {
    let mut records = Records::new(name, input);
    let (mut start, mut maps) = (0, true);
    let mut outcomes = Outcomes::new();
    while let Some(record) = records.next(sink)? {
        let refuse = |what: &str| Error::Input {
            input: name.to_owned(),
            place: Some(format!("byte {}", record.at)),
            what: what.to_owned(),
        };
        match record.kind {
            BEGIN => {
                maps = has_maps(name, record.payload)?;
                start = record.micros;
                sink.header.started_ns = start.saturating_mul(1_000);
            }
            END => break,
            WRITE | GET | SEEK | SEEK_FOR_PREV | MULTI_GET => {
                let time_ns = sink.micros(record.micros, start);
                let added = match maps {
                    true => with_map(&record, time_ns, sink, &mut outcomes),
                    false => without_map(&record, time_ns, sink, &mut outcomes),
                };
                added?.ok_or_else(|| refuse("a record is shorter than its fields"))?;
            }
            other => sink.skip(&format!("record type {other}")),
        }
    }
    Ok(())
}

/// The result of adding a record. `None`: its payload is too short.
type Added = Result<Option<()>>;

fn without_map(record: &Framed<'_>, time_ns: u64, sink: &mut Sink, outcomes: &mut Outcomes) -> Added {
    let mut rest = record.payload;
    if record.kind == WRITE {
        return batch(rest, time_ns, sink, outcomes);
    }
    let Some(family) = take(&mut rest).map(u32::from_le_bytes) else { return Ok(None) };
    let Some(key) = take_string(&mut rest) else { return Ok(None) };
    lookup(record.kind, (family, key), time_ns, sink, outcomes)
}

fn with_map(record: &Framed<'_>, time_ns: u64, sink: &mut Sink, outcomes: &mut Outcomes) -> Added {
    let mut rest = record.payload;
    let Some(map) = take(&mut rest).map(u64::from_le_bytes) else { return Ok(None) };
    let (mut family, mut key, mut families, mut keys) = (0, None, None, None);
    // Bits from 11 on belong to later versions; all fields that matter come before them.
    for bit in (0..11).filter(|bit| map >> bit & 1 == 1) {
        match bit {
            1 => {
                let Some(bytes) = take_string(&mut rest) else { return Ok(None) };
                return batch(bytes, time_ns, sink, outcomes);
            }
            2 | 4 | 8 => {
                let Some(number) = take(&mut rest).map(u32::from_le_bytes) else { return Ok(None) };
                family = number;
            }
            3 | 5 | 6 | 7 | 9 | 10 => {
                let Some(string) = take_string(&mut rest) else { return Ok(None) };
                match bit {
                    3 | 5 => key = Some(string),
                    9 => families = Some(string),
                    10 => keys = Some(string),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    if record.kind == MULTI_GET {
        return multi_get(families.zip(keys), time_ns, sink, outcomes);
    }
    match key {
        Some(key) => lookup(record.kind, (family, key), time_ns, sink, outcomes),
        None => Ok(None),
    }
}

fn lookup(
    kind: u8,
    (family, key): (u32, &[u8]),
    time_ns: u64,
    sink: &mut Sink,
    outcomes: &Outcomes,
) -> Added {
    let detail = match kind {
        GET => found(family, key, sink, outcomes),
        // The trace does not contain how far the iterator went.
        _ => Detail::Scan { entries: 1, backwards: kind == SEEK_FOR_PREV },
    };
    sink.add(&Event { keyspace: family, ..event(time_ns, key, detail) })?;
    Ok(Some(()))
}

/// Returns a lookup with its outcome, as far as it is known.
fn found(family: u32, key: &[u8], sink: &Sink, outcomes: &Outcomes) -> Detail<'static> {
    // The sink drops a lookup outside the sample, so its outcome does not matter.
    sink.hash_in_sample(key).map_or(Detail::Get(None), |hash| outcomes.get(family, key, hash))
}

fn multi_get(fields: Option<(&[u8], &[u8])>, time_ns: u64, sink: &mut Sink, outcomes: &Outcomes) -> Added {
    let Some((mut families, mut keys)) = fields else { return Ok(None) };
    let mut joined = false;
    while !keys.is_empty() {
        let family = take(&mut families).map(u32::from_le_bytes);
        let Some((family, key)) = family.zip(take_string(&mut keys)) else { return Ok(None) };
        let detail = found(family, key, sink, outcomes);
        sink.add(&Event { keyspace: family, joined, ..event(time_ns, key, detail) })?;
        joined = true;
    }
    Ok(Some(()))
}

/// Adds the operations of a write batch.
fn batch(bytes: &[u8], time_ns: u64, sink: &mut Sink, outcomes: &mut Outcomes) -> Added {
    let Some(mut rest) = bytes.get(12..) else { return Ok(None) };
    let mut joined = false;
    while let Some((&tag, after)) = rest.split_first() {
        rest = after;
        // For ranges and blobs, the tag with a column family comes before the one without; for
        // other operations, after it.
        let has_family = matches!(tag, 0x04 | 0x05 | 0x06 | 0x08 | 0x0e | 0x10 | 0x17);
        let family = match has_family {
            true => take_varint(&mut rest).ok().and_then(|family| u32::try_from(family).ok()),
            false => Some(0),
        };
        let Some(family) = family else { return Ok(None) };
        let strings = match tag {
            0x00 | 0x03 | 0x04 | 0x07 | 0x08 | 0x0a | 0x0b | 0x0c => 1,
            0x01 | 0x02 | 0x05 | 0x06 | 0x0e | 0x0f | 0x10 | 0x11 | 0x16 | 0x17 => 2,
            0x09 | 0x0d | 0x12 | 0x13 => 0,
            _ => {
                sink.skip(&format!("rest of a batch from tag {tag}"));
                return Ok(Some(()));
            }
        };
        let key = if strings > 0 { take_string(&mut rest) } else { Some(&[][..]) };
        let value = if strings > 1 { take_string(&mut rest) } else { Some(&[][..]) };
        let Some((key, value)) = key.zip(value) else { return Ok(None) };
        let bytes = value.len() as u64;
        let detail = match tag {
            0x00 | 0x04 | 0x07 | 0x08 => Detail::Delete,
            0x01 | 0x05 | 0x10 | 0x11 | 0x16 | 0x17 => Detail::Put(bytes),
            0x02 | 0x06 => Detail::Merge(bytes),
            0x0e | 0x0f => Detail::DeleteRange { end: value, end_bytes: value.len() as u32 },
            // Log data and transaction markers.
            _ => continue,
        };
        match (detail, sink.hash_in_sample(key)) {
            (Detail::Put(bytes), Some(hash)) => outcomes.wrote(family, hash, Some(bytes)),
            (Detail::Delete, Some(hash)) => outcomes.wrote(family, hash, None),
            (Detail::Merge(_), Some(hash)) => outcomes.forget(family, hash),
            // Apply the range even if its first key is not in the sample, because its other keys
            // may be.
            (Detail::DeleteRange { end, .. }, _) => outcomes.removed(family, key, end),
            _ => {}
        }
        sink.add(&Event { keyspace: family, joined, ..event(time_ns, key, detail) })?;
        joined = true;
    }
    Ok(Some(()))
}
