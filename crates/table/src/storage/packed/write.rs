//! Writing packed leaves.

use super::pack::{Gathered, Lead, Packer};
use super::plan::{Form, Keys, Line, Plan, Word, ends_of};
use super::read::{LENGTH, LENGTH_AND_BYTES};
use super::symbols::renumber;
use super::{
    ALL_NULL, CODES, END, HEADER, KEYS, NO_NULLS, NUMBERS, PACKED, PLAIN, Packed, SLACK, STREAM, STREAMS,
    TEXTS, Unpacked, VALUES, bits,
};
use crate::storage::node::{Bounds, put_fences};

/// The page under construction, from its start.
struct Page {
    bytes: Vec<u8>,
}

impl Page {
    fn place(&self) -> u16 {
        debug_assert!(u16::try_from(self.bytes.len()).is_ok(), "a page has {} bytes", self.bytes.len());
        self.bytes.len() as u16
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        debug_assert!(at + bytes.len() <= self.bytes.len(), "{} bytes at {at} are not there", bytes.len());
        if let Some(place) = self.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn put_u16(&mut self, at: usize, value: u16) {
        self.put(at, &value.to_le_bytes());
    }

    fn numbers(&mut self, numbers: impl Iterator<Item = u64>, bits: u8) -> u16 {
        let place = self.place();
        bits::put(numbers, bits, &mut self.bytes);
        place
    }
}

/// Writes some records as a page. Returns `None` if they do not fit.
pub(super) fn page(packer: &Packer, plan: &Plan, bounds: Bounds<'_>) -> Option<Vec<u8>> {
    debug_assert!(
        plan.streams.len() == packer.streams().len() && plan.records.end <= packer.len(),
        "{:?} of {} records are written",
        plan.records,
        packer.len()
    );
    let payload = packer.payload();
    let fences = bounds.lower.map_or(0, <[u8]>::len) + bounds.upper.map_or(0, <[u8]>::len);
    if plan.size + SLACK + fences > payload {
        return None;
    }
    let streams = packer.streams();
    let mut page = Page { bytes: vec![0; HEADER + STREAM * streams.len()] };
    let lead = match packer.layout().lead {
        Lead::Nothing => 0,
        Lead::Length => LENGTH,
        Lead::Bytes => LENGTH_AND_BYTES,
    };
    page.put(0, &[PACKED, 0]);
    page.put_u16(2, u16::try_from(plan.records.len()).ok()?);
    page.put(STREAMS, &[u8::try_from(streams.len()).ok()?, lead]);
    put_keys(&mut page, packer, plan);
    for (nth, (stream, form)) in streams.iter().zip(&plan.streams).enumerate() {
        put_stream(&mut page, HEADER + nth * STREAM, packer, plan, stream, form);
    }
    debug_assert_eq!(page.bytes.len(), plan.size, "{plan:?}");
    let end = page.place();
    page.put_u16(END, end);
    page.bytes.resize(payload, 0);
    put_fences(&mut page.bytes, bounds, usize::from(end) + SLACK).ok()?;
    Some(page.bytes)
}

/// Returns whether all records of a page are those that were packed. For assertions: unpacks the
/// page.
pub(super) fn is_read_back(packer: &Packer, plan: &Plan, page: &[u8]) -> bool {
    let mut unpacked = Unpacked::default();
    let count = plan.records.len();
    unpacked.fill(Packed(page), 0..count, None).is_ok()
        && (0..count).all(|at| {
            let packed = packer.record(plan.records.start + at);
            packed.is_some() && packed == unpacked.record(at)
        })
}

fn put_keys(page: &mut Page, packer: &Packer, plan: &Plan) {
    let records = plan.records.clone();
    match &plan.keys {
        Keys::Words { positions, low, high } => {
            let template = packer.key(records.start);
            debug_assert!(
                positions.last().is_none_or(|last| usize::from(*last) < template.len()),
                "keys of {} bytes differ at {positions:?}",
                template.len()
            );
            debug_assert!(
                low.numbers.len() == records.len()
                    && (high.numbers.is_empty() || high.numbers.len() == records.len()),
                "{} keys have {} low words and {} high ones",
                records.len(),
                low.numbers.len(),
                high.numbers.len()
            );
            page.put_u16(KEYS, template.len() as u16);
            let place = page.place();
            page.bytes.extend_from_slice(template);
            page.put_u16(KEYS + 2, place);
            page.put(KEYS + 4, &[positions.len() as u8, high.bits, low.bits]);
            let place = page.place();
            page.bytes.extend_from_slice(positions);
            page.put_u16(KEYS + 12, place);
            for (word, place, base) in [(low, 8, 16), (high, 10, 24)] {
                let Word { numbers, base: least, bits } = word;
                let at = page.numbers(numbers.iter().map(|number| number - least), *bits);
                page.put_u16(KEYS + place, at);
                page.put(KEYS + base, &least.to_le_bytes());
            }
        }
        Keys::Texts { prefix, line } => {
            page.put(STREAMS + 2, &[1]);
            page.put_u16(KEYS, *prefix as u16);
            let place = page.place();
            page.bytes.extend_from_slice(packer.key(records.start).get(..*prefix).unwrap_or_default());
            page.put_u16(KEYS + 2, place);
            let lens = records.clone().map(|at| packer.key(at).len().saturating_sub(*prefix));
            let place = put_ends(page, ends_of(lens), line);
            page.put(KEYS + 6, &[line.bits]);
            page.put_u16(KEYS + 8, place);
            page.put(KEYS + 16, &line.slope.to_le_bytes());
            page.put(KEYS + 20, &line.base.to_le_bytes());
            let place = page.place();
            for at in records {
                page.bytes.extend_from_slice(packer.key(at).get(*prefix..).unwrap_or_default());
            }
            page.put_u16(KEYS + 14, place);
        }
    }
}

fn put_ends(page: &mut Page, ends: impl Iterator<Item = usize>, line: &Line) -> u16 {
    page.numbers(ends.enumerate().map(|(at, end)| line.number(at, end)), line.bits)
}

fn put_stream(page: &mut Page, head: usize, packer: &Packer, plan: &Plan, stream: &Gathered, form: &Form) {
    let records = plan.records.clone();
    let nulls = stream.nulls(records.clone());
    debug_assert!(
        nulls.is_empty() || nulls.len() == records.len(),
        "{} of {records:?} may be NULL",
        nulls.len()
    );
    let place = put_nulls(page, nulls);
    page.put(head, &[stream.width]);
    page.put_u16(head + 6, place);
    let (kind, bits, place) = match form {
        Form::Numbers { base, bits } => {
            page.put(head + 8, &base.to_le_bytes());
            let numbers = stream.numbers.get(records).unwrap_or_default().iter().enumerate();
            let number = |(at, number): (usize, &i64)| match nulls.get(at) {
                Some(true) => 0,
                _ => number.wrapping_sub(*base) as u64,
            };
            (NUMBERS, *bits, page.numbers(numbers.map(number), *bits))
        }
        Form::Values { values, bits } => {
            let place = page.place();
            values.iter().for_each(|value| page.bytes.extend_from_slice(&value.to_le_bytes()));
            page.put_u16(head + 16, place);
            page.put_u16(head + 18, values.len() as u16);
            let numbers = stream.numbers.get(records).unwrap_or_default().iter();
            let number = |number: &i64| {
                let found = values.binary_search(number);
                debug_assert!(found.is_ok(), "{number} is not in its dictionary");
                found.unwrap_or_default() as u64
            };
            (VALUES, *bits, page.numbers(numbers.map(number), *bits))
        }
        Form::Plain { line } => {
            let place = put_ends(page, ends_of(stream.lens(records.clone())), line);
            put_line(page, head, line);
            let heap = page.place();
            for at in records {
                page.bytes.extend_from_slice(packer.text(stream, at));
            }
            page.put_u16(head + 16, heap);
            (PLAIN, line.bits, place)
        }
        Form::Texts { firsts, numbers, bits } => {
            let (heap, mut ends) = (page.place(), Vec::with_capacity(firsts.len()));
            for at in firsts {
                page.bytes.extend_from_slice(packer.text(stream, *at));
                ends.push(page.place() - heap);
            }
            page.put_u16(head + 16, heap);
            page.put_u16(head + 18, firsts.len() as u16);
            let table = page.place();
            ends.iter().for_each(|end| page.bytes.extend_from_slice(&end.to_le_bytes()));
            page.put_u16(head + 20, table);
            (TEXTS, *bits, page.numbers(numbers.iter().map(|number| u64::from(*number)), *bits))
        }
        Form::Codes { used, line } => {
            let Some((found, codes, start, ends)) = stream.codes(records) else {
                debug_assert!(false, "codes were planned for texts that have none");
                return;
            };
            let place = put_ends(page, ends.iter().map(|end| *end as usize - start), line);
            put_line(page, head, line);
            let table = page.place();
            let new = found.write(used, &mut page.bytes);
            page.put_u16(head + 20, table);
            let heap = page.place();
            renumber(codes, &new, &mut page.bytes);
            page.put_u16(head + 16, heap);
            (CODES, line.bits, place)
        }
    };
    page.put(head + 1, &[kind, bits]);
    page.put_u16(head + 4, place);
}

fn put_line(page: &mut Page, head: usize, line: &Line) {
    page.put(head + 8, &line.slope.to_le_bytes());
    page.put(head + 12, &line.base.to_le_bytes());
}

/// Writes which values are NULL. Returns their place, or the value that says that none is, or all.
fn put_nulls(page: &mut Page, nulls: &[bool]) -> u16 {
    match (nulls.contains(&true), nulls.contains(&false)) {
        (false, _) => NO_NULLS,
        (true, false) => ALL_NULL,
        (true, true) => page.numbers(nulls.iter().map(|is_null| u64::from(*is_null)), 1),
    }
}
