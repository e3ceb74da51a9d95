//! External sorting of records by key: in memory up to a limit, and in a file beyond that.
//!
//! ```text
//!   push ... push | full: sort, write a run | push ... | full: sort, write a run | ...
//!   then merge all runs, the least key first
//!
//!   run:     block | block | ...
//!   block:   length u32 | hash u64 | records
//!   record:  lengths of key and value u32, key, value
//! ```
//!
//! The file is unlinked before anything is written, so nothing of it outlives the process. Its
//! blocks are hashed, so reads return exactly the data written, or an error.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;
use std::mem::take;
use std::ops::Range;
use std::path::PathBuf;

use cairn_vfs::sync::Arc;
use cairn_vfs::{File, Fs, OpenOptions};
use hashbrown::DefaultHashBuilder;

use crate::{Error, Result};

/// Block size if memory allows.
const BLOCK: usize = 64 << 10;
/// Maximum number of runs merged at once.
const RUNS: usize = 256;
const HEADER: usize = 12;
const _: () = assert!(HEADER == size_of::<u32>() + size_of::<u64>() && BLOCK > HEADER && RUNS >= 2);

/// The file and memory that a sorter may use.
#[derive(Debug, Clone)]
pub(crate) struct Scratch {
    pub(crate) fs: Arc<dyn Fs>,
    /// A name that is not in use.
    pub(crate) path: PathBuf,
    /// Bytes for records in memory, including the metadata of each.
    pub(crate) memory: usize,
}

/// A sorter that collects records.
#[derive(Debug)]
pub(crate) struct Sorter {
    scratch: Scratch,
    bytes: Vec<u8>,
    places: Vec<Place>,
    spilled: Option<Spilled>,
    /// Whether every key so far is greater than the one before it.
    is_ordered: bool,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    /// The first bytes of the key, as a number that sorts as they do.
    head: u64,
    start: usize,
    key: u32,
    value: u32,
}

/// Runs spilled to a file.
#[derive(Debug)]
pub(crate) struct Spilled {
    file: Box<dyn File>,
    hash: DefaultHashBuilder,
    block: usize,
    end: u64,
    runs: Vec<Range<u64>>,
}

fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes)
}

impl Sorter {
    pub(crate) fn new(scratch: Scratch) -> Self {
        Sorter { scratch, bytes: Vec::new(), places: Vec::new(), spilled: None, is_ordered: true }
    }

    /// Adds a record. Errors: the file system's, if memory was full.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.has_room(key.len() + value.len()) {
            self.is_ordered = false;
            self.spill()?;
        }
        self.is_ordered &= self.places.last().is_none_or(|last| self.key(last) < key);
        let start = self.bytes.len();
        self.bytes.extend(key);
        self.bytes.extend(value);
        // Records are parts of a page, so their lengths fit.
        debug_assert!(
            u32::try_from(key.len()).is_ok() && u32::try_from(value.len()).is_ok(),
            "a record of {} + {} bytes is sorted",
            key.len(),
            value.len()
        );
        self.places.push(Place { head: head(key), start, key: key.len() as u32, value: value.len() as u32 });
        Ok(())
    }

    /// Returns whether a record of this size fits in memory with the existing ones.
    pub(crate) fn has_room(&self, len: usize) -> bool {
        let used = self.bytes.len() + self.places.len() * size_of::<Place>();
        used + len + size_of::<Place>() <= self.scratch.memory || self.places.is_empty()
    }

    /// Returns whether all records are in memory and arrived in key order without duplicates.
    pub(crate) fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// Passes the records in memory to `each`, in order of arrival, and removes them. Errors: those
    /// of `each`.
    pub(crate) fn take_all(&mut self, mut each: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        debug_assert!(self.spilled.is_none(), "the records in memory are taken as all of them");
        let mut all = Sorter {
            bytes: take(&mut self.bytes),
            places: take(&mut self.places),
            ..Sorter::new(self.scratch.clone())
        };
        for place in take(&mut all.places) {
            let (key, value) = all.record(&place);
            each(key, value)?;
        }
        Ok(())
    }

    fn key(&self, place: &Place) -> &[u8] {
        debug_assert!(
            place.start + place.key as usize + place.value as usize <= self.bytes.len(),
            "a record at {place:?} is not among {} bytes",
            self.bytes.len()
        );
        self.bytes.get(place.start..place.start + place.key as usize).unwrap_or_default()
    }

    fn record(&self, place: &Place) -> (&[u8], &[u8]) {
        let end = place.start + place.key as usize;
        (self.key(place), self.bytes.get(end..end + place.value as usize).unwrap_or_default())
    }

    fn sort(&mut self) {
        let mut places = take(&mut self.places);
        places.sort_unstable_by(|a, b| a.head.cmp(&b.head).then_with(|| self.key(a).cmp(self.key(b))));
        debug_assert!(
            places.is_sorted_by(|a, b| self.key(a) <= self.key(b)),
            "the first bytes of keys sort differently from the keys"
        );
        self.places = places;
    }

    /// Writes the records in memory as a run.
    fn spill(&mut self) -> Result<()> {
        self.sort();
        let mut spilled = match self.spilled.take() {
            Some(spilled) => spilled,
            None => Spilled::new(&self.scratch)?,
        };
        let mut run = spilled.begin();
        debug_assert!(run.start == spilled.end, "a run begins at {}, before {}", run.start, spilled.end);
        for place in &self.places {
            let (key, value) = self.record(place);
            spilled.write(&mut run, key, value)?;
        }
        spilled.finish(run)?;
        self.spilled = Some(spilled);
        self.bytes.clear();
        self.places.clear();
        Ok(())
    }

    /// Sorts everything. Errors: the file system's.
    pub(crate) fn finish(mut self) -> Result<Sorted> {
        if self.spilled.is_none() {
            self.sort();
            return Ok(Sorted::Memory { sorter: self, next: 0 });
        }
        self.spill()?;
        let Some(mut spilled) = self.spilled.take() else {
            return Ok(Sorted::Memory { sorter: self, next: 0 });
        };
        // The blocks use this memory from now on.
        (self.bytes, self.places) = (Vec::new(), Vec::new());
        let most = (self.scratch.memory / spilled.block).clamp(2, RUNS);
        debug_assert!(!spilled.runs.is_empty(), "records were spilled, and there is no run");
        while spilled.runs.len() > most {
            let runs = spilled.runs.drain(..most).collect();
            let mut merge = Merge::of(&spilled, runs)?;
            let mut run = spilled.begin();
            while merge.advance(&spilled)? {
                spilled.write(&mut run, merge.key(), merge.value())?;
            }
            spilled.finish(run)?;
        }
        debug_assert!(spilled.runs.len() <= most, "{} runs are merged at once", spilled.runs.len());
        let runs = take(&mut spilled.runs);
        let merge = Merge::of(&spilled, runs)?;
        Ok(Sorted::Runs { spilled, merge })
    }
}

/// Sorted records.
#[derive(Debug)]
pub(crate) enum Sorted {
    Memory { sorter: Sorter, next: usize },
    Runs { spilled: Spilled, merge: Merge },
}

impl Sorted {
    /// Returns the next key and value. Errors: the file system's; [`Error::Corruption`] if the file
    /// does not contain the data that was written.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        match self {
            Sorted::Memory { sorter, next } => {
                let place = sorter.places.get(*next);
                *next += 1;
                Ok(place.map(|place| sorter.record(place)))
            }
            Sorted::Runs { spilled, merge } => {
                Ok(if merge.advance(spilled)? { Some((merge.key(), merge.value())) } else { None })
            }
        }
    }
}

/// A run that is being written.
#[derive(Debug)]
struct Run {
    start: u64,
    block: Vec<u8>,
}

impl Spilled {
    fn new(scratch: &Scratch) -> Result<Spilled> {
        let file = scratch.fs.open(&scratch.path, OpenOptions::create())?;
        // An existing file of this name was left by a crash between these two lines.
        scratch.fs.remove(&scratch.path)?;
        file.set_len(0)?;
        let block = (scratch.memory / 8).clamp(512, BLOCK);
        Ok(Spilled { file, hash: DefaultHashBuilder::default(), block, end: 0, runs: Vec::new() })
    }

    fn begin(&self) -> Run {
        debug_assert!(
            self.runs.last().is_none_or(|last| last.end <= self.end),
            "a run ends at {:?}, behind all of them",
            self.runs.last()
        );
        Run { start: self.end, block: vec![0; HEADER] }
    }

    fn write(&mut self, run: &mut Run, key: &[u8], value: &[u8]) -> Result<()> {
        debug_assert!(run.block.len() >= HEADER, "a record is written to a block without a header");
        let len = |bytes: &[u8]| (bytes.len() as u32).to_le_bytes();
        run.block.extend(len(key));
        run.block.extend(len(value));
        run.block.extend(key);
        run.block.extend(value);
        if run.block.len() >= self.block { self.write_block(run) } else { Ok(()) }
    }

    fn write_block(&mut self, run: &mut Run) -> Result<()> {
        debug_assert!(run.block.len() >= HEADER, "a block has {} bytes", run.block.len());
        debug_assert!(u32::try_from(run.block.len()).is_ok(), "a block has {} bytes", run.block.len());
        let Some((header, records)) = run.block.split_at_mut_checked(HEADER) else { return Ok(()) };
        let (len, hash) = header.split_at_mut(4);
        len.copy_from_slice(&(records.len() as u32).to_le_bytes());
        hash.copy_from_slice(&self.hash.hash_one(&*records).to_le_bytes());
        self.file.write_all_at(&run.block, self.end)?;
        self.end += run.block.len() as u64;
        run.block.truncate(HEADER);
        Ok(())
    }

    fn finish(&mut self, mut run: Run) -> Result<()> {
        if run.block.len() > HEADER {
            self.write_block(&mut run)?;
        }
        debug_assert!(run.start <= self.end, "a run from {} ends at {}", run.start, self.end);
        debug_assert!(
            self.runs.last().is_none_or(|last| last.end <= run.start),
            "a run begins at {}, within another one",
            run.start
        );
        self.runs.push(run.start..self.end);
        Ok(())
    }

    fn damaged(&self) -> Error {
        let what = "records that were spilled for sorting do not read as they were written";
        Error::Corruption { file: self.file.path().to_owned(), page: 0, what: what.to_owned() }
    }

    /// Reads the block at offset `at` of a run. Returns the offset of the next one.
    fn read_block(&self, at: u64, to: &mut Vec<u8>) -> Result<u64> {
        debug_assert!(at < self.end, "a block is read at {at}, and the last one ends at {}", self.end);
        let mut header = [0; HEADER];
        self.file.read_exact_at(&mut header, at)?;
        let (len, hash) = header.split_at(4);
        let len = len.try_into().map_or(0, u32::from_le_bytes);
        let end = at + HEADER as u64 + u64::from(len);
        if end > self.end {
            return Err(self.damaged());
        }
        to.resize(len as usize, 0);
        self.file.read_exact_at(to, at + HEADER as u64)?;
        match hash.try_into().map(u64::from_le_bytes) {
            Ok(hash) if hash == self.hash.hash_one(&**to) => Ok(end),
            _ => Err(self.damaged()),
        }
    }
}

/// A merge of several runs.
#[derive(Debug)]
pub(crate) struct Merge {
    sources: Vec<Source>,
    /// The next key of each source that is not exhausted.
    heads: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    /// The record returned last.
    current: Option<(Vec<u8>, usize)>,
    /// Its key, in tests.
    last: Option<Vec<u8>>,
}

/// A run that is being read.
#[derive(Debug)]
struct Source {
    left: Range<u64>,
    block: Vec<u8>,
    /// Offset of the next record in the block, and location of the last record's value.
    at: usize,
    value: Range<usize>,
}

impl Source {
    /// Moves to the next record and reads its key into a buffer. Returns false after the last one.
    fn advance(&mut self, spilled: &Spilled, key: &mut Vec<u8>) -> Result<bool> {
        debug_assert!(self.at <= self.block.len(), "a record begins behind its block, at {}", self.at);
        if self.at == self.block.len() {
            if self.left.is_empty() {
                return Ok(false);
            }
            self.left.start = spilled.read_block(self.left.start, &mut self.block)?;
            self.at = 0;
        }
        let read = || {
            let rest = self.block.get(self.at..)?;
            let (key, rest) = rest.split_first_chunk::<4>()?;
            let (value, rest) = rest.split_first_chunk::<4>()?;
            let (key, value) = (u32::from_le_bytes(*key) as usize, u32::from_le_bytes(*value) as usize);
            let start = self.at + 8 + key;
            rest.get(..key + value)?;
            Some((self.at + 8..start, start..start + value))
        };
        let (place, value) = read().ok_or_else(|| spilled.damaged())?;
        key.clear();
        key.extend(self.block.get(place).unwrap_or_default());
        self.at = value.end;
        self.value = value;
        Ok(true)
    }
}

impl Merge {
    fn of(spilled: &Spilled, runs: Vec<Range<u64>>) -> Result<Merge> {
        let source = |left| Source { left, block: Vec::new(), at: 0, value: 0..0 };
        let mut merge = Merge {
            sources: runs.into_iter().map(source).collect(),
            heads: BinaryHeap::new(),
            current: None,
            last: None,
        };
        for at in 0..merge.sources.len() {
            merge.refill(spilled, Vec::new(), at)?;
        }
        Ok(merge)
    }

    fn refill(&mut self, spilled: &Spilled, mut key: Vec<u8>, at: usize) -> Result<()> {
        debug_assert!(at < self.sources.len(), "run {at} of {} is read", self.sources.len());
        if let Some(source) = self.sources.get_mut(at)
            && source.advance(spilled, &mut key)?
        {
            self.heads.push(Reverse((key, at)));
        }
        debug_assert!(
            self.heads.len() <= self.sources.len(),
            "{} runs have {} next records",
            self.sources.len(),
            self.heads.len()
        );
        Ok(())
    }

    fn advance(&mut self, spilled: &Spilled) -> Result<bool> {
        if let Some((key, at)) = self.current.take() {
            self.refill(spilled, key, at)?;
        }
        let next = self.heads.pop().map(|Reverse(head)| head);
        debug_assert!(
            next.as_ref().is_none_or(|(key, _)| self.last.as_ref().is_none_or(|last| last <= key)),
            "merged records are out of order"
        );
        if cfg!(debug_assertions) {
            self.last = next.as_ref().map(|(key, _)| key.clone());
        }
        self.current = next;
        Ok(self.current.is_some())
    }

    fn key(&self) -> &[u8] {
        debug_assert!(self.current.is_some(), "the key of no record is read");
        self.current.as_ref().map_or(&[], |(key, _)| key)
    }

    fn value(&self) -> &[u8] {
        debug_assert!(self.current.is_some(), "the value of no record is read");
        let source = self.current.as_ref().and_then(|(_, at)| self.sources.get(*at));
        source.and_then(|source| source.block.get(source.value.clone())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
