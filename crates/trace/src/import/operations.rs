//! RocksDB's trace of operations.
//!
//! ```text
//!   record   time in µs 8 · type 1 · payload bytes 4 · payload
//!   first    type 1, payload "feedcafedeadbeef\tTrace Version: 0.2\tRocksDB Version: 7.8\t..."
//!   0.2      a payload begins with a map of 8 bytes: which fields follow, by bit, in order
//!              1 batch   2 family 4   3 key   4 family 4   5 key   6 lower bound   7 upper bound
//!              8 count 4   9 families   10 keys                       strings have a varint length before them
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

/// True where a trace of operations begins.
pub(super) fn is_one(input: &[u8]) -> bool {
    input.get(8) == Some(&BEGIN) && input.get(HEAD_BYTES..).is_some_and(|payload| payload.starts_with(MAGIC))
}

/// One record of any of RocksDB's traces.
pub(super) struct Framed<'a> {
    /// The byte that it begins at.
    pub at: u64,
    pub micros: u64,
    pub kind: u8,
    pub payload: &'a [u8],
}

/// Reads the records of any of RocksDB's traces.
pub(super) struct Records<'a> {
    name: &'a str,
    input: &'a mut dyn BufRead,
    /// The current one.
    bytes: Vec<u8>,
    /// Where the next one begins.
    at: u64,
}

impl<'a> Records<'a> {
    pub fn new(name: &'a str, input: &'a mut dyn BufRead) -> Records<'a> {
        Records { name, input, bytes: Vec::new(), at: 0 }
    }

    /// The next one; `None` at the end, which is noted where it is within a record.
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

    /// Reads so many bytes more, or what there is.
    fn fill(&mut self, bytes: u64) -> Result<()> {
        // BOUND: the length that a record claims takes no memory before so much has been read.
        let read = (&mut *self.input).take(bytes).read_to_end(&mut self.bytes);
        read.map(|_| ()).map_err(|error| unreadable(self.name, &error))
    }
}

/// `None` where it is not whole.
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

/// A string with its varint length before it.
pub(super) fn take_string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_varint(rest).ok()?).ok()?;
    let (string, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(string)
}

/// True for the version that has maps of fields, going by the first record.
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

/// Inner `None`: the payload is too short.
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
    // Later fields are of later versions; all that matter stand before them.
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
        // How far the iterator went is not in the trace.
        _ => Detail::Scan { entries: 1, backwards: kind == SEEK_FOR_PREV },
    };
    sink.add(&Event { keyspace: family, ..event(time_ns, key, detail) })?;
    Ok(Some(()))
}

/// What a lookup found, as far as that is known.
fn found(family: u32, key: &[u8], sink: &Sink, outcomes: &Outcomes) -> Detail<'static> {
    // One that is not in the sample is not told of.
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

/// The operations of a write batch.
fn batch(bytes: &[u8], time_ns: u64, sink: &mut Sink, outcomes: &mut Outcomes) -> Added {
    let Some(mut rest) = bytes.get(12..) else { return Ok(None) };
    let mut joined = false;
    while let Some((&tag, after)) = rest.split_first() {
        rest = after;
        // Tags with a column family come before those without for ranges and blobs, after them for
        // the rest.
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
            // Notes and marks of transactions.
            _ => continue,
        };
        match (detail, sink.hash_in_sample(key)) {
            (Detail::Put(bytes), Some(hash)) => outcomes.wrote(family, hash, Some(bytes)),
            (Detail::Delete, Some(hash)) => outcomes.wrote(family, hash, None),
            (Detail::Merge(_), Some(hash)) => outcomes.forget(family, hash),
            // Its keys may be in the sample where its first one is not.
            (Detail::DeleteRange { end, .. }, _) => outcomes.removed(family, key, end),
            _ => {}
        }
        sink.add(&Event { keyspace: family, joined, ..event(time_ns, key, detail) })?;
        joined = true;
    }
    Ok(Some(()))
}
