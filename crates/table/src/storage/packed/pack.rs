//! Splitting records into columns, and determining how many of them fill a page.

use std::fmt;
use std::ops::Range;

use super::plan::Plan;
use super::symbols::Found;
use super::{BYTES, HIGH, LOW, SLACK};
use crate::storage::node::{Bounds, SLOT};

/// The longest key that is packed, because key positions are stored as bytes, and fences are keys.
const LONGEST_KEY: usize = 255;

/// Maximum number of records per page, because changing one of them rewrites all.
const MOST_RECORDS: usize = 4096;
const _: () = assert!(LONGEST_KEY <= u8::MAX as usize && MOST_RECORDS <= u16::MAX as usize);

/// Maximum number of attempts to find the number of records that fill a page.
const FIT_ATTEMPTS: usize = 5;

/// Number of values sampled before dictionaries are considered, and the maximum number of distinct
/// ones among them.
const SAMPLE: usize = 256;
const MAX_DISTINCT: usize = 96;
const _: () = assert!(MAX_DISTINCT < SAMPLE);

/// Pages between two trainings of a symbol table.
const PAGES_PER_TRAINING: u32 = 48;

/// The lead: the part of a record between its flags and its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lead {
    /// None, as in rows.
    Nothing,
    /// The length of the primary key, which is the end of the record's key: index entries.
    Length,
    /// The length of the primary key, and that key: entries of unique indexes.
    Bytes,
}

/// How records are split into columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) lead: Lead,
    /// The width of each column; 0 for variable width.
    pub(crate) widths: Vec<u8>,
}

/// The location of a record in the gathered bytes.
#[derive(Debug, Clone, Copy)]
struct Place {
    key: u32,
    value: u32,
    end: u32,
}

/// The gathered values of a stream.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) width: u8,
    pub(super) numbers: Vec<i64>,
    /// Offsets and lengths of texts in the gathered bytes.
    texts: Vec<(u32, u32)>,
    /// Empty until a value is NULL.
    nulls: Vec<bool>,
    /// Whether there may be few distinct values.
    pub(super) may_have_dictionary: bool,
    /// Whether the values come from a page on which they have a dictionary. A subset of them is
    /// then considered for a dictionary however narrow its numbers are. The values that made them
    /// wide may be in the other part, and without a dictionary they might take more bytes than
    /// before.
    pub(super) had_dictionary: bool,
    symbols: Option<Trained>,
    /// Number of pages written since symbols were last trained.
    pages: u32,
    /// The encoded texts and their ends, for the texts encoded so far. A page that is repacked
    /// supplies its existing codes.
    codes: Vec<u8>,
    code_ends: Vec<u64>,
}

struct Trained {
    found: Found,
    /// Encodes texts. `None` if the codes were taken from an existing page.
    compressor: Option<Box<fsst::Compressor>>,
    /// Code bytes per text byte when the table was new.
    ratio: f64,
}

impl fmt::Debug for Trained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trained")
            .field("found", &self.found)
            .field("ratio", &self.ratio)
            .finish_non_exhaustive()
    }
}

/// Records in key order, split into columns.
#[derive(Debug)]
pub(crate) struct Packer {
    layout: Layout,
    payload: usize,
    bytes: Vec<u8>,
    places: Vec<Place>,
    streams: Vec<Gathered>,
    /// Number of records on the last page.
    last: usize,
}

impl Packer {
    /// Creates a packer for pages with this payload.
    pub(crate) fn new(layout: Layout, payload: usize) -> Packer {
        debug_assert!(
            layout.widths.iter().all(|width| matches!(width, 0 | 1 | 2 | 4 | 8 | 16)),
            "there is no column of such a width: {layout:?}"
        );
        let lead = match layout.lead {
            Lead::Nothing => None,
            Lead::Length => Some(2),
            Lead::Bytes => Some(BYTES),
        };
        let columns = layout.widths.iter().flat_map(|&width| match width {
            16 => vec![LOW, HIGH],
            width => vec![width],
        });
        let streams = lead.into_iter().chain(columns);
        let streams = streams.map(|width| Gathered { width, ..Gathered::default() }).collect();
        Packer { layout, payload, bytes: Vec::new(), places: Vec::new(), streams, last: 64 }
    }

    pub(super) fn payload(&self) -> usize {
        self.payload
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) fn streams(&self) -> &[Gathered] {
        &self.streams
    }

    /// Returns the number of pending records.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns their size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns a pending record.
    pub(crate) fn record(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let place = self.places.get(at)?;
        debug_assert!(place.key <= place.value && place.value <= place.end, "a record is at {place:?}");
        let (key, value, end) = (place.key as usize, place.value as usize, place.end as usize);
        Some((self.bytes.get(key..value)?, self.bytes.get(value..end)?))
    }

    /// Returns the key of a pending record.
    pub(crate) fn key(&self, at: usize) -> &[u8] {
        self.record(at).map(|(key, _)| key).unwrap_or_default()
    }

    /// Returns the number of bytes that some records take in an ordinary leaf, without its header
    /// and fences.
    pub(crate) fn ordinary(&self, range: Range<usize>) -> usize {
        let (Some(first), Some(last)) = (self.places.get(range.start), range.end.checked_sub(1)) else {
            return 0;
        };
        let end = self.places.get(last).map_or(first.key, |place| place.end);
        let (first, last) = (self.key(range.start), self.key(last));
        let prefix = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let start = self.places.get(range.start).map_or(0, |place| place.key);
        debug_assert!(
            end >= start && (end - start) as usize >= range.len() * prefix,
            "{} records take {start}..{end}, and share {prefix} bytes",
            range.len()
        );
        (end - start) as usize + range.len() * SLOT - range.len() * prefix
    }

    /// Adds a record, whose key must come after those of the pending ones. Returns false, and adds
    /// nothing, if the record cannot be split.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        if key.len() > LONGEST_KEY || u32::try_from(self.bytes.len() + key.len() + value.len()).is_err() {
            return false;
        }
        let start = self.bytes.len();
        let middle = start + key.len();
        let count = self.places.len();
        if self.split(value, middle, count).is_none() {
            self.streams.iter_mut().for_each(|stream| stream.truncate(count));
            debug_assert!(
                self.streams.iter().all(|stream| stream.has(count)),
                "parts of a record that cannot be split are left"
            );
            return false;
        }
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        let end = self.bytes.len();
        self.places.push(Place { key: start as u32, value: middle as u32, end: end as u32 });
        debug_assert!(
            self.streams.iter().all(|stream| stream.has(count + 1)),
            "a record of {} columns was split into streams of other lengths",
            self.layout.widths.len()
        );
        true
    }

    /// Splits a value that will be stored at `base`, as number `count`. Refuses values that could
    /// not be reconstructed exactly.
    fn split(&mut self, value: &[u8], base: usize, count: usize) -> Option<()> {
        let (&flags, mut rest) = value.split_first().filter(|(flags, _)| **flags == 0)?;
        debug_assert_eq!(flags, 0);
        let place = |rest: &[u8]| base + value.len() - rest.len();
        let mut streams = self.streams.iter_mut();
        if self.layout.lead != Lead::Nothing {
            let (len, after) = rest.split_first_chunk::<2>()?;
            let len = u16::from_le_bytes(*len);
            rest = after;
            let stream = streams.next()?;
            if self.layout.lead == Lead::Length {
                stream.numbers.push(len.into());
            } else {
                let (_, after) = rest.split_at_checked(len.into())?;
                stream.text(place(rest), len.into());
                rest = after;
            }
        }
        let columns = self.layout.widths.len();
        let (nulls, mut fixed) = rest.split_at_checked(columns.div_ceil(8))?;
        // Bits after the last column must be zero, because packing does not preserve them.
        let unused = 8 * nulls.len() - columns;
        if nulls.last().is_some_and(|last| unused > 0 && last >> (8 - unused) != 0) {
            return None;
        }
        let is_null = |column: usize| nulls.get(column / 8).is_some_and(|bits| bits >> (column % 8) & 1 == 1);
        let widths = self.layout.widths.iter().map(|width| usize::from(*width));
        let all: usize = widths.clone().sum();
        let variable = widths.clone().filter(|width| *width == 0).count();
        let mut ends = fixed.get(all..)?;
        let body = ends.get(2 * variable..)?;
        let body_place = place(body);
        let mut start = 0;
        for (column, width) in widths.enumerate() {
            let (stream, is_null) = (streams.next()?, is_null(column));
            stream.null(is_null, count);
            if width == 0 {
                let (end, after) = ends.split_first_chunk::<2>()?;
                let end = usize::from(u16::from_le_bytes(*end));
                let len = end.checked_sub(start).filter(|len| *len == 0 || !is_null)?;
                stream.text(body_place + start, len);
                (ends, start) = (after, end);
                continue;
            }
            let (number, after) = fixed.split_at_checked(width)?;
            fixed = after;
            if is_null && number.iter().any(|byte| *byte != 0) {
                return None;
            }
            stream.numbers.push(number_of(number.get(..width.min(8))?)?);
            if width == 16 {
                streams.next()?.numbers.push(number_of(number.get(8..)?)?);
            }
        }
        (start == body.len()).then_some(())
    }

    /// Encodes the texts that have no codes yet, with the existing symbols or with better ones.
    pub(crate) fn prepare(&mut self) {
        let Packer { streams, bytes, .. } = self;
        for stream in streams {
            stream.prepare(bytes);
        }
    }

    /// Returns how many of the first records fill a page whose lower fence has the given length,
    /// and their plan. `None` if not even two can be packed.
    pub(crate) fn fit(&mut self, lower: usize, most: usize) -> Option<(usize, Plan)> {
        let most = most.min(self.len()).min(MOST_RECORDS);
        if most < 2 {
            return None;
        }
        // Fences are keys or shorter. Splitting this page later creates other fences.
        let fences = lower + 3 * self.places.first().map_or(0, |place| (place.value - place.key) as usize);
        let room = self.payload.checked_sub(fences + SLACK)?;
        let mut best: Option<(usize, Plan)> = None;
        let (mut low, mut high) = (0, most + 1);
        // Starts with slightly fewer than last time, so that most pages fit at the first attempt.
        let mut guess = (self.last - self.last / 100).clamp(1, most);
        for _ in 0..FIT_ATTEMPTS {
            debug_assert!(low < guess && guess < high, "{guess} records are tried between {low} and {high}");
            let plan = Plan::new(self, 0..guess);
            let size = plan.size.max(1);
            if size <= room {
                low = guess;
                best = Some((guess, plan));
                if guess == most || size >= room / 100 * 96 {
                    break;
                }
            } else {
                high = guess;
            }
            // Aims slightly below the estimate: one page more costs less than one attempt more.
            guess = (guess * room / size * 995 / 1000).clamp(low + 1, high.saturating_sub(1).max(low + 1));
            if guess >= high {
                break;
            }
        }
        let (count, plan) = best.filter(|(count, _)| *count > 1)?;
        debug_assert!(
            count <= most && plan.size <= room,
            "{count} of {most} records take {} of {room} bytes",
            plan.size
        );
        self.last = count;
        Some((count, plan))
    }

    /// Writes the first records as a page. Returns `None` if they do not fit.
    pub(crate) fn page(&self, plan: &Plan, bounds: Bounds<'_>) -> Option<Vec<u8>> {
        super::write::page(self, plan, bounds)
    }

    /// Returns whether the records of a page are those that were packed. For assertions.
    pub(crate) fn is_read_back(&self, plan: &Plan, page: &[u8]) -> bool {
        super::write::is_read_back(self, plan, page)
    }

    /// Drops the first records.
    pub(crate) fn forget(&mut self, count: usize) {
        debug_assert!(count <= self.places.len(), "{count} of {} records are dropped", self.places.len());
        self.places.drain(..count.min(self.places.len()));
        let start = self.places.first().map_or(self.bytes.len() as u32, |place| place.key);
        self.bytes.drain(..start as usize);
        for place in &mut self.places {
            (place.key, place.value, place.end) = (place.key - start, place.value - start, place.end - start);
        }
        self.streams.iter_mut().for_each(|stream| stream.forget(count, start));
        debug_assert!(
            self.streams.iter().all(|stream| stream.has(self.places.len())),
            "the streams do not have the {} records that are left",
            self.places.len()
        );
        debug_assert!(
            self.places.first().is_none_or(|place| place.key == 0),
            "the first record that is left begins at {:?}",
            self.places.first()
        );
    }

    /// Notes that a page was written, which ages the symbols.
    pub(crate) fn wrote(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.pages += 1);
    }

    /// Returns a text of a stream.
    pub(super) fn text(&self, stream: &Gathered, at: usize) -> &[u8] {
        stream.own_text(at, &self.bytes)
    }

    /// Records whether a stream had few distinct values on a page.
    pub(super) fn had_dictionary(&mut self, nth: usize, had_dictionary: bool) {
        if let Some(stream) = self.streams.get_mut(nth) {
            (stream.may_have_dictionary, stream.had_dictionary) = (had_dictionary, had_dictionary);
        }
    }

    /// Gives a stream the codes that its texts have on a page, back to back, instead of encoding
    /// them again.
    pub(super) fn set_codes(&mut self, nth: usize, found: Found, codes: Vec<u8>, ends: Vec<u64>) {
        if let Some(stream) = self.streams.get_mut(nth) {
            stream.symbols = Some(Trained { found, compressor: None, ratio: 1.0 });
            debug_assert!(
                ends.len() == stream.texts.len()
                    && ends.last().copied().unwrap_or_default() == codes.len() as u64,
                "{} bytes of codes are given to {} texts",
                codes.len(),
                stream.texts.len()
            );
            (stream.codes, stream.code_ends) = (codes, ends);
        }
    }
}

/// Reads a signed number of up to 8 bytes.
fn number_of(bytes: &[u8]) -> Option<i64> {
    Some(match bytes.len() {
        1 => i64::from(*bytes.first()?),
        2 => i16::from_le_bytes(*bytes.first_chunk()?).into(),
        4 => i32::from_le_bytes(*bytes.first_chunk()?).into(),
        8 => i64::from_le_bytes(*bytes.first_chunk()?),
        _ => return None,
    })
}

impl Gathered {
    /// Returns whether the stream has values of this many records, and codes of no others.
    fn has(&self, count: usize) -> bool {
        let own = if self.width == BYTES { self.texts.len() } else { self.numbers.len() };
        own == count
            && (self.nulls.is_empty() || self.nulls.len() == count)
            && self.code_ends.len() <= self.texts.len()
            && self.code_ends.last().copied().unwrap_or_default() == self.codes.len() as u64
    }

    fn text(&mut self, place: usize, len: usize) {
        self.texts.push((place as u32, len as u32));
    }

    fn null(&mut self, is_null: bool, count: usize) {
        if is_null && self.nulls.is_empty() {
            self.nulls.resize(count, false);
        }
        if is_null || !self.nulls.is_empty() {
            debug_assert!(self.nulls.len() == count, "{} of {count} values may be NULL", self.nulls.len());
            self.nulls.push(is_null);
        }
    }

    fn truncate(&mut self, count: usize) {
        self.numbers.truncate(count);
        self.texts.truncate(count);
        self.nulls.truncate(count);
    }

    fn forget(&mut self, count: usize, bytes: u32) {
        self.numbers.drain(..count.min(self.numbers.len()));
        self.texts.drain(..count.min(self.texts.len()));
        self.texts.iter_mut().for_each(|(place, _)| *place = place.saturating_sub(bytes));
        self.nulls.drain(..count.min(self.nulls.len()));
        if !self.nulls.contains(&true) {
            self.nulls.clear();
        }
        let gone = count.checked_sub(1).and_then(|last| self.code_ends.get(last)).copied();
        let gone = gone.unwrap_or_else(|| self.code_ends.last().copied().unwrap_or_default());
        self.code_ends.drain(..count.min(self.code_ends.len()));
        self.codes.drain(..gone as usize);
        self.code_ends.iter_mut().for_each(|end| *end -= gone);
    }

    fn own_text<'b>(&self, at: usize, bytes: &'b [u8]) -> &'b [u8] {
        let text = self.texts.get(at).and_then(|(place, len)| {
            let place = *place as usize;
            bytes.get(place..place + *len as usize)
        });
        debug_assert!(text.is_some(), "text {at} of {} was not gathered", self.texts.len());
        text.unwrap_or_default()
    }

    /// Returns the lengths of texts.
    pub(super) fn lens(&self, range: Range<usize>) -> impl Iterator<Item = usize> + Clone {
        self.texts.get(range).unwrap_or_default().iter().map(|(_, len)| *len as usize)
    }

    /// Returns which values are NULL; empty if none is.
    pub(super) fn nulls(&self, range: Range<usize>) -> &[bool] {
        self.nulls.get(range).unwrap_or_default()
    }

    /// Returns the symbols, and the codes of some texts with their start and ends.
    pub(super) fn codes(&self, range: Range<usize>) -> Option<(&Found, &[u8], usize, &[u64])> {
        let ends = self.code_ends.get(range.clone())?;
        let start = range.start.checked_sub(1).map_or(Some(0), |at| self.code_ends.get(at).copied())?;
        let end = ends.last().copied().unwrap_or(start);
        debug_assert!(start <= end, "the codes from {start} on end at {end}");
        let codes = self.codes.get(start as usize..end as usize)?;
        Some((&self.symbols.as_ref()?.found, codes, start as usize, ends))
    }

    fn prepare(&mut self, bytes: &[u8]) {
        self.may_have_dictionary = match self.width {
            BYTES => {
                let texts = (0..self.texts.len().min(SAMPLE)).map(|at| self.own_text(at, bytes));
                texts.collect::<std::collections::HashSet<_>>().len() <= MAX_DISTINCT
            }
            _ => {
                let numbers = self.numbers.iter().take(SAMPLE);
                numbers.collect::<std::collections::HashSet<_>>().len() <= MAX_DISTINCT
            }
        };
        let new = self.code_ends.len()..self.texts.len();
        if self.width != BYTES || new.is_empty() {
            return;
        }
        let all: usize = self.lens(new.clone()).sum();
        let is_old = self.pages >= PAGES_PER_TRAINING;
        if self.symbols.is_none() && (is_old || self.pages == 0) && all >= 4 * new.len().max(SAMPLE) {
            self.train(bytes);
            return;
        }
        let Some(ratio) = self.encode(bytes) else { return };
        let was = self.symbols.as_ref().map_or(1.0, |trained| trained.ratio);
        if is_old && ratio > was * 1.1 {
            self.train(bytes);
        }
    }

    /// Trains symbols on the current texts.
    fn train(&mut self, bytes: &[u8]) {
        self.pages = 1;
        let texts: Vec<&[u8]> = (0..self.texts.len()).map(|at| self.own_text(at, bytes)).collect();
        let compressor = fsst::Compressor::train(&texts);
        let symbols = compressor.symbol_table().iter().zip(compressor.symbol_lengths());
        let symbols = symbols.map(|(symbol, len)| (symbol.to_u64(), *len)).collect();
        self.symbols =
            Some(Trained { found: Found { symbols }, compressor: Some(Box::new(compressor)), ratio: 1.0 });
        self.codes.clear();
        self.code_ends.clear();
        let ratio = self.encode(bytes).unwrap_or(1.0);
        if ratio > 0.9 {
            self.symbols = None;
            self.codes.clear();
            self.code_ends.clear();
        } else if let Some(trained) = &mut self.symbols {
            trained.ratio = ratio;
        }
        debug_assert!(
            self.symbols.is_none() || self.code_ends.len() == self.texts.len(),
            "{} of {} texts have codes of the new symbols",
            self.code_ends.len(),
            self.texts.len()
        );
    }

    /// Encodes the texts that have no codes yet. Returns the number of code bytes per text byte.
    fn encode(&mut self, bytes: &[u8]) -> Option<f64> {
        let compressor = self.symbols.as_ref()?.compressor.as_ref()?;
        let new = self.code_ends.len()..self.texts.len();
        let texts: Vec<&[u8]> = new.clone().map(|at| self.own_text(at, bytes)).collect();
        let all: usize = texts.iter().map(|text| text.len()).sum();
        let before = self.codes.len();
        compressor.compress_bulk_into::<4>(&texts, &mut self.codes, &mut self.code_ends);
        debug_assert!(
            self.code_ends.len() == self.texts.len() && self.code_ends.is_sorted(),
            "{} of {} texts have codes",
            self.code_ends.len(),
            self.texts.len()
        );
        Some((self.codes.len() - before) as f64 / all.max(1) as f64)
    }
}
