//! Choice of the forms for the columns of a page: the smallest one for the values.

use std::collections::HashMap;
use std::ops::Range;

use super::bits;
use super::keys::MOST_POSITIONS;
use super::pack::{Gathered, Packer};
use super::symbols::mark;
use super::{BYTES, HEADER, STREAM};

/// Minimum width in bits at which numbers are considered for a dictionary.
const DICTIONARY: u8 = 10;
const _: () = assert!(DICTIONARY <= 56);

/// The encoding of the first pending records, and its size without fences.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) records: Range<usize>,
    pub(super) keys: Keys,
    pub(super) streams: Vec<Form>,
    pub(crate) size: usize,
}

/// The ends of consecutive values: a straight line plus packed deviations.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) slope: u32,
    pub(super) base: i32,
    pub(super) bits: u8,
}

#[derive(Debug)]
pub(super) enum Keys {
    Words { positions: Vec<u8>, low: Word, high: Word },
    Texts { prefix: usize, line: Line },
}

/// One word of each key.
#[derive(Debug, Default)]
pub(super) struct Word {
    pub(super) numbers: Vec<u64>,
    pub(super) base: u64,
    pub(super) bits: u8,
}

#[derive(Debug)]
pub(super) enum Form {
    Numbers { base: i64, bits: u8 },
    Values { values: Vec<i64>, bits: u8 },
    Plain { line: Line },
    Texts { firsts: Vec<usize>, numbers: Vec<u16>, bits: u8 },
    Codes { used: Box<[bool; 256]>, line: Line },
}

impl Line {
    /// Fits a line through the ends. The last end is `last`.
    pub(super) fn through(ends: impl Iterator<Item = usize> + Clone, last: usize, count: usize) -> Line {
        let slope = (last << 8) / count.max(1);
        debug_assert!(u32::try_from(slope).is_ok(), "{count} values end at {last}");
        let slope = slope as u32;
        let off = ends.enumerate().map(|(at, end)| Line::off(slope, at, end));
        let (base, most) = off.fold((i64::MAX, i64::MIN), |(low, high), off| (low.min(off), high.max(off)));
        if base > most {
            return Line::default();
        }
        debug_assert!(i32::try_from(base).is_ok(), "the ends deviate by {base} from a line");
        Line { slope, base: base as i32, bits: bits::width((most - base) as u64) }
    }

    fn off(slope: u32, at: usize, end: usize) -> i64 {
        end as i64 - (((at as u64 + 1) * u64::from(slope)) >> 8) as i64
    }

    /// Returns the packed number of an end.
    pub(super) fn number(&self, at: usize, end: usize) -> u64 {
        let off = Line::off(self.slope, at, end) - i64::from(self.base);
        debug_assert!(off >= 0, "end {at} is {off} below the line");
        off as u64
    }
}

/// Returns the running sums of lengths.
pub(super) fn ends_of(lens: impl Iterator<Item = usize> + Clone) -> impl Iterator<Item = usize> + Clone {
    lens.scan(0, |end, len| {
        *end += len;
        Some(*end)
    })
}

impl Plan {
    /// Chooses forms and computes the size.
    pub(super) fn new(packer: &Packer, records: Range<usize>) -> Plan {
        let count = records.len();
        let (keys, key_bytes) = keys(packer, records.clone());
        let mut size = HEADER + STREAM * packer.streams().len() + key_bytes;
        let mut streams = Vec::with_capacity(packer.streams().len());
        for stream in packer.streams() {
            let (form, bytes) = match stream.width {
                BYTES => texts(packer, stream, records.clone()),
                _ => numbers(stream, records.clone()),
            };
            let nulls = stream.nulls(records.clone());
            let is_mixed = nulls.contains(&true) && nulls.contains(&false);
            size += bytes + if is_mixed { count.div_ceil(8) } else { 0 };
            streams.push(form);
        }
        debug_assert!(
            streams.len() == packer.streams().len(),
            "{} of {} streams have a form",
            streams.len(),
            packer.streams().len()
        );
        Plan { records, keys, streams, size }
    }
}

/// Returns the smallest form for the keys, and its size.
fn keys(packer: &Packer, records: Range<usize>) -> (Keys, usize) {
    let count = records.len();
    let (first, last) = (packer.key(records.start), packer.key(records.end.saturating_sub(1)));
    let prefix = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    if let Some(positions) = positions(packer, records.clone(), prefix) {
        let (low, high) = words(packer, records, &positions);
        let bytes = first.len() + positions.len() + bits::len(count, low.bits) + bits::len(count, high.bits);
        return (Keys::Words { positions, low, high }, bytes);
    }
    // Keys of a damaged leaf need not be in order, so one between the two may be shorter.
    let lens = records.map(|at| packer.key(at).len().saturating_sub(prefix));
    let all: usize = lens.clone().sum();
    let line = Line::through(ends_of(lens), all, count);
    let bytes = prefix + all + bits::len(count, line.bits);
    (Keys::Texts { prefix, line }, bytes)
}

/// Returns the positions in which keys of one length differ. `None` if lengths vary, or if there
/// are too many positions.
fn positions(packer: &Packer, records: Range<usize>, prefix: usize) -> Option<Vec<u8>> {
    let first = packer.key(records.start);
    let mut differs = vec![0u8; first.len() - prefix];
    for at in records {
        let key = packer.key(at);
        if key.len() != first.len() {
            return None;
        }
        let bytes = key.iter().zip(first).skip(prefix).map(|(a, b)| a ^ b);
        differs.iter_mut().zip(bytes).for_each(|(all, byte)| *all |= byte);
    }
    let positions = (prefix..).zip(differs).filter(|(_, differs)| *differs != 0);
    let positions: Vec<u8> = positions.map(|(at, _)| at as u8).collect();
    debug_assert!(positions.is_sorted_by(|a, b| a < b), "the positions {positions:?} are not bytes");
    (positions.len() <= MOST_POSITIONS).then_some(positions)
}

fn words(packer: &Packer, records: Range<usize>, positions: &[u8]) -> (Word, Word) {
    debug_assert!(positions.len() <= MOST_POSITIONS, "{} positions make two words", positions.len());
    let (mut low, mut high) = (Word::default(), Word::default());
    let is_long = positions.len() > 8;
    low.numbers.reserve(records.len());
    for at in records {
        let key = packer.key(at);
        let byte = |position: &u8| u128::from(key.get(usize::from(*position)).copied().unwrap_or_default());
        let word = positions.iter().fold(0, |word, position| word << 8 | byte(position));
        low.numbers.push(word as u64);
        if is_long {
            high.numbers.push((word >> 64) as u64);
        }
    }
    (low.measured(), high.measured())
}

impl Word {
    fn measured(mut self) -> Word {
        self.base = self.numbers.iter().copied().min().unwrap_or_default();
        let most = self.numbers.iter().copied().max().unwrap_or_default();
        debug_assert!(most >= self.base, "the numbers from {} to {most} are measured", self.base);
        self.bits = bits::width(most - self.base);
        self
    }
}

/// Returns the smallest form for numbers, and its size. Numbers of NULL values are arbitrary.
fn numbers(stream: &Gathered, records: Range<usize>) -> (Form, usize) {
    let count = records.len();
    let nulls = stream.nulls(records.clone());
    let numbers = stream.numbers.get(records).unwrap_or_default();
    let (low, high) = match nulls.contains(&true) {
        false => numbers.iter().fold((i64::MAX, i64::MIN), |(a, b), &n| (a.min(n), b.max(n))),
        true => {
            let valid = numbers.iter().zip(nulls).filter(|(_, is_null)| !**is_null);
            valid.fold((i64::MAX, i64::MIN), |(a, b), (&n, _)| (a.min(n), b.max(n)))
        }
    };
    let (base, bits) = if low > high { (0, 0) } else { (low, bits::width(low.abs_diff(high))) };
    let bytes = bits::len(count, bits);
    if stream.may_have_dictionary && (bits >= DICTIONARY || stream.had_dictionary) {
        let mut values = numbers.to_vec();
        values.sort_unstable();
        values.dedup();
        let bits = bits::width(values.len().saturating_sub(1) as u64);
        let size = 8 * values.len() + bits::len(count, bits);
        debug_assert!(values.is_sorted_by(|a, b| a < b), "a dictionary has a number twice");
        if size < bytes && values.len() <= usize::from(u16::MAX) {
            return (Form::Values { values, bits }, size);
        }
    }
    (Form::Numbers { base, bits }, bytes)
}

/// Returns the smallest form for texts, and its size.
fn texts(packer: &Packer, stream: &Gathered, records: Range<usize>) -> (Form, usize) {
    let count = records.len();
    let lens = stream.lens(records.clone());
    let all: usize = lens.clone().sum();
    let line = Line::through(ends_of(lens), all, count);
    let mut best = (Form::Plain { line }, all + bits::len(count, line.bits));
    if let Some((found, codes, start, ends)) = stream.codes(records.clone()) {
        let mut used = Box::new([false; 256]);
        mark(codes, &mut used);
        let line = Line::through(ends.iter().map(|end| *end as usize - start), codes.len(), count);
        debug_assert!(ends.len() == count, "{} of {count} texts have codes", ends.len());
        let size = codes.len() + found.len(&used) + bits::len(count, line.bits);
        if size < best.1 {
            best = (Form::Codes { used, line }, size);
        }
    }
    if stream.may_have_dictionary {
        let mut seen: HashMap<&[u8], u16> = HashMap::new();
        let (mut firsts, mut numbers, mut size) = (Vec::new(), Vec::with_capacity(count), 0);
        for at in records {
            let text = packer.text(stream, at);
            debug_assert!(u16::try_from(seen.len()).is_ok(), "a dictionary has {} texts", seen.len());
            let next = seen.len() as u16;
            let number = *seen.entry(text).or_insert_with(|| {
                firsts.push(at);
                size += text.len() + 2;
                next
            });
            numbers.push(number);
            if size >= best.1 {
                return best;
            }
        }
        let bits = bits::width(firsts.len().saturating_sub(1) as u64);
        let size = size + bits::len(count, bits);
        debug_assert!(
            numbers.iter().all(|number| usize::from(*number) < firsts.len()),
            "a text is not in its dictionary"
        );
        if size < best.1 {
            best = (Form::Texts { firsts, numbers, bits }, size);
        }
    }
    best
}
