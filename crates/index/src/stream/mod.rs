//! One column of integers in a page, in the smallest of five encodings, chosen by measured size:
//!
//! | tag | encoding | random access | for |
//! |---|---|---|---|
//! | 0 | line | a multiplication | constants, counters |
//! | 1 | packed distances from the least value (frame of reference) | one load | payload |
//! | 2 | chunks of 128, packed values or differences | up to 127 additions | row ids, timestamps |
//! | 3 | runs on a line (run-length) | binary search of the ends | repeated keys, regular row ids |
//! | 4 | dictionary of distinct values, packed codes | two loads | few distinct wide values |
//!
//! Frame of reference: Goldstein, Ramakrishnan, Shaft, "Compressing relations and indexes",
//! ICDE 1998.

mod basic;
mod fold;
mod runs;
#[cfg(test)]
mod tests;

use std::ops::Range;

use hashbrown::HashMap;

pub use fold::Extremes;
pub use runs::Run;

use crate::cursor::Cursor;
use crate::damage::{Checked, Damage};
use basic::Basic;
use runs::{Runs, Segments};

const DICTIONARY: u8 = 4;
/// A dictionary is tried only if this many leading values have few distinct ones.
const SAMPLE: usize = 256;
const SAMPLE_DISTINCT: usize = 96;
const DICTIONARY_MOST: usize = 4096;
const _: () = assert!(DICTIONARY_MOST * 9 < u16::MAX as usize, "the size of the values has two bytes");
const _: () = assert!(SAMPLE_DISTINCT < SAMPLE && SAMPLE < DICTIONARY_MOST);
const _: () = assert!(DICTIONARY > runs::RUNS && runs::RUNS > basic::CHUNKED, "each encoding has its tag");

/// The encoding chosen for some values.
pub(crate) struct Plan {
    choice: Choice,
    /// The number of bytes that [`Plan::emit`] writes.
    pub(crate) bytes: usize,
}

enum Choice {
    Basic(basic::Plan),
    Runs(Segments),
    Dictionary(Dictionary),
}

struct Dictionary {
    values: Vec<u64>,
    codes: Vec<u64>,
}

impl Dictionary {
    /// Returns the distinct values in ascending order and the position of each row's value among
    /// them; `None` if there are many.
    fn find(values: &[u64]) -> Option<Dictionary> {
        let mut codes_of: HashMap<u64, u64> = HashMap::new();
        for (index, value) in values.iter().enumerate() {
            codes_of.insert(*value, 0);
            if codes_of.len() > DICTIONARY_MOST || (index + 1 == SAMPLE && codes_of.len() > SAMPLE_DISTINCT) {
                return None;
            }
        }
        let mut distinct: Vec<u64> = codes_of.keys().copied().collect();
        distinct.sort_unstable_by_key(|value| *value as i64);
        for (code, value) in distinct.iter().enumerate() {
            codes_of.insert(*value, code as u64);
        }
        let codes = values.iter().map(|value| codes_of.get(value).copied().unwrap_or(0)).collect();
        debug_assert!(distinct.is_sorted_by_key(|value| *value as i64), "`hull` takes the ends");
        let dictionary = Dictionary { values: distinct, codes };
        debug_assert!(
            dictionary
                .codes
                .iter()
                .zip(values)
                .all(|(code, value)| dictionary.values[*code as usize] == *value),
            "each code stands for its value"
        );
        Some(dictionary)
    }

    fn bytes(&self) -> usize {
        let values = basic::plan(&self.values).bytes;
        3 + cairn_codec::varint::encoded_len(self.values.len() as u64)
            + values
            + basic::plan(&self.codes).bytes
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let plan = basic::plan(&self.values);
        debug_assert!(plan.bytes <= usize::from(u16::MAX), "{} bytes of values", plan.bytes);
        out.push(DICTIONARY);
        cairn_codec::varint::push(self.values.len() as u64, out);
        out.extend_from_slice(&(plan.bytes as u16).to_le_bytes());
        plan.emit(&self.values, out);
        basic::plan(&self.codes).emit(&self.codes, out);
    }
}

/// Chooses the encoding of `values`. Takes 1 to 10 ns per value.
pub(crate) fn plan(values: &[u64]) -> Plan {
    let segments = Segments::find(values);
    // No other encoding is likely to be smaller than runs this long.
    if let Some(runs) = segments.as_ref().filter(|runs| runs.len() > 1 && runs.len() * 64 < values.len()) {
        let bytes = runs.bytes();
        return Plan { bytes, choice: segments.map_or(Choice::Basic(basic::plan(values)), Choice::Runs) };
    }
    let basic = basic::plan(values);
    let mut best = Plan { bytes: basic.bytes, choice: Choice::Basic(basic) };
    if let Some(runs) = segments.filter(|runs| runs.len() > 1) {
        let bytes = runs.bytes();
        if bytes < best.bytes {
            best = Plan { bytes, choice: Choice::Runs(runs) };
        }
    }
    // A dictionary of 256 values takes one byte per value. For narrower encodings the gain is not
    // worth the extra lookup.
    if best.bytes > values.len()
        && let Some(dictionary) = Dictionary::find(values)
    {
        let bytes = dictionary.bytes();
        if bytes < best.bytes {
            best = Plan { bytes, choice: Choice::Dictionary(dictionary) };
        }
    }
    best
}

impl Plan {
    /// Appends `values`, for which this plan was made.
    pub(crate) fn emit(&self, values: &[u64], out: &mut Vec<u8>) {
        let before = out.len();
        match &self.choice {
            Choice::Basic(plan) => plan.emit(values, out),
            Choice::Runs(runs) => runs.emit(out),
            Choice::Dictionary(dictionary) => dictionary.emit(out),
        }
        debug_assert_eq!(out.len() - before, self.bytes, "the size by which the encoding was chosen");
    }
}

/// Encoded integers, located and bounds-checked. Later reads are checked again.
#[derive(Clone, Copy)]
pub(crate) struct Stream<'a> {
    at: usize,
    bytes: usize,
    kind: Kind<'a>,
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    Basic(Basic<'a>),
    Runs(Runs<'a>),
    Dictionary { count: usize, values: Basic<'a>, codes: Basic<'a> },
}

impl<'a> Stream<'a> {
    /// Parses the head of a stream of `rows` values that fills `part`.
    pub(crate) fn parse(part: Cursor<'a>, rows: usize) -> Checked<Self> {
        let at = part.at();
        let mut head = part;
        let kind = match head.u8()? {
            runs::RUNS => Kind::Runs(Runs::parse(head, rows)?),
            DICTIONARY => {
                let count = head.varint()?;
                if count > rows as u64 {
                    return Err(Damage::at(at, "a dictionary with at most one value for each row"));
                }
                let bytes = usize::from(head.u16()?);
                let values = Basic::parse(head.part(bytes)?, count as usize)?;
                Kind::Dictionary { count: count as usize, values, codes: Basic::parse(head, rows)? }
            }
            _ => Kind::Basic(Basic::parse(part, rows)?),
        };
        Ok(Stream { at, bytes: part.end() - at, kind })
    }

    /// Returns the first of `rows` whose value does not satisfy `is_before`, which must hold for
    /// all rows before it and for none after.
    pub(crate) fn partition(&self, rows: Range<usize>, is_before: impl Fn(u64) -> bool) -> Checked<usize> {
        match &self.kind {
            Kind::Basic(basic) => basic.partition(rows, is_before),
            Kind::Runs(runs) => runs.partition(rows, is_before),
            Kind::Dictionary { .. } => {
                let (mut low, mut high) = (rows.start, rows.end);
                while low < high {
                    let middle = low + (high - low) / 2;
                    if is_before(self.get(middle)?) {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                Ok(low)
            }
        }
    }

    /// Returns the name of the encoding, for users who inspect pages.
    pub(crate) fn encoding(&self) -> &'static str {
        match &self.kind {
            Kind::Basic(Basic::Line { .. }) => "line",
            Kind::Basic(Basic::Packed { .. }) => "packed",
            Kind::Basic(Basic::Chunked { .. }) => "chunked",
            Kind::Runs(_) => "runs",
            Kind::Dictionary { .. } => "dictionary",
        }
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of stored runs; 1 for a line, 0 for encodings without runs.
    pub(crate) fn run_count(&self) -> usize {
        match &self.kind {
            Kind::Basic(Basic::Line { .. }) => 1,
            Kind::Runs(runs) => runs.count(),
            _ => 0,
        }
    }

    /// Returns the value of `row`, which the caller has checked to be below the number of rows.
    pub(crate) fn get(&self, row: usize) -> Checked<u64> {
        match &self.kind {
            Kind::Basic(basic) => basic.get(row),
            Kind::Runs(runs) => runs.get(row),
            Kind::Dictionary { count, values, codes } => {
                let code = codes.get(row)?;
                if code >= *count as u64 {
                    return Err(Damage::at(self.at, "codes within the dictionary"));
                }
                values.get(code as usize)
            }
        }
    }

    /// Returns bounds of all values as signed integers, for encodings that give them in some
    /// nanoseconds.
    fn hull(&self) -> Checked<Option<(i64, i64)>> {
        match &self.kind {
            Kind::Basic(basic) => Ok(basic.hull()),
            Kind::Dictionary { count, values, .. } if *count > 0 => {
                // The writer sorts the values of a dictionary in ascending order.
                Ok(Some((values.get(0)? as i64, values.get(*count - 1)? as i64)))
            }
            _ => Ok(None),
        }
    }

    /// Reads values `start..start + out.len()`, all below the number of rows. Takes 0.3 to 2 ns per
    /// value.
    pub(crate) fn decode(&self, start: usize, out: &mut [u64]) -> Checked<()> {
        match &self.kind {
            _ if out.is_empty() => Ok(()),
            Kind::Basic(basic) => basic.decode(start, out),
            Kind::Runs(runs) => runs.decode(start, out),
            Kind::Dictionary { count, values, codes } => {
                codes.decode(start, out)?;
                for value in out {
                    if *value >= *count as u64 {
                        return Err(Damage::at(self.at, "codes within the dictionary"));
                    }
                    *value = values.get(*value as usize)?;
                }
                Ok(())
            }
        }
    }
}
