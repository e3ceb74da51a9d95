//! Sorts index entries by home slot and address under a memory limit.
//!
//! Entries are collected in memory. When the memory is full, they are sorted and written to a
//! temporary file as a run; at the end the runs are merged. The name of the temporary file is
//! removed immediately after its creation. Only a crash in that moment leaves a file behind, and
//! the next build of the index removes it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::{ErrorKind, File, Fs, OpenOptions, ensure};

use super::bytes::u64_at;
use crate::Result;

/// Removes the temporary file that a crash may have left of an earlier build of `index`. The caller
/// must hold the lock on the index that is being built, which excludes other builders.
pub(super) fn clean_up(fs: &Arc<dyn Fs>, index: &Path) -> Result<()> {
    remove_stray(fs, &temporary_path(index))
}

fn temporary_path(index: &Path) -> PathBuf {
    let mut temporary = index.as_os_str().to_owned();
    temporary.push(".sort.tmp");
    temporary.into()
}

fn remove_stray(fs: &Arc<dyn Fs>, temporary: &Path) -> Result<()> {
    match fs.remove(temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Size of an entry on disk: three integers.
const ENTRY_BYTES: usize = 24;

/// The effect of one log record on the index. Ordered by home slot, then by position in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SortEntry {
    pub home: u64,
    /// The address, and in the lowest bit whether the record is a PUT.
    pub address_and_kind: u64,
    pub hash: u64,
}

const _: () = assert!(size_of::<SortEntry>() == ENTRY_BYTES, "the memory of a sorter is counted so");

impl SortEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        for field in [self.home, self.address_and_kind, self.hash] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        debug_assert_eq!(SortEntry::decode(&out[start..]), *self, "decoded as it is encoded");
    }

    fn decode(bytes: &[u8]) -> Self {
        SortEntry { home: u64_at(bytes, 0), address_and_kind: u64_at(bytes, 8), hash: u64_at(bytes, 16) }
    }
}

/// Collects entries in any order.
#[derive(Debug)]
pub(super) struct Sorter {
    fs: Arc<dyn Fs>,
    temporary: PathBuf,
    file: Option<Arc<dyn File>>,
    entries: Vec<SortEntry>,
    entries_max: usize,
    /// End offset of each run in the file.
    run_ends: Vec<u64>,
}

impl Sorter {
    /// Creates a sorter that uses about `memory_bytes`, and a temporary file named after `index` if
    /// that is not enough.
    pub fn new(fs: &Arc<dyn Fs>, index: &Path, memory_bytes: u64) -> Self {
        let temporary = temporary_path(index);
        let entries_max = (memory_bytes / size_of::<SortEntry>() as u64).max(2);
        Sorter {
            fs: Arc::clone(fs),
            temporary,
            file: None,
            entries: Vec::new(),
            entries_max: usize::try_from(entries_max).unwrap_or(usize::MAX),
            run_ends: Vec::new(),
        }
    }

    pub fn push(&mut self, entry: SortEntry) -> Result<()> {
        if self.entries.len() >= self.entries_max {
            self.write_run()?;
        }
        if self.entries.len() == self.entries.capacity() {
            // Doubling the capacity would exceed the limit by up to half during the copy.
            let more = self.entries.len().clamp(1024, self.entries_max.max(1024) / 4 + 1024);
            self.entries.reserve_exact(more.min(self.entries_max - self.entries.len()));
        }
        debug_assert!(self.entries.len() < self.entries_max, "{} entries wait", self.entries.len());
        self.entries.push(entry);
        Ok(())
    }

    fn write_run(&mut self) -> Result<()> {
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => {
                let file = self.create_temporary()?;
                self.file = Some(Arc::clone(&file));
                file
            }
        };
        debug_assert!(!self.entries.is_empty(), "a run has a first entry");
        self.entries.sort_unstable();
        let start = self.run_ends.last().copied().unwrap_or(0);
        let mut offset = start;
        let mut bytes = Vec::new();
        for chunk in self.entries.chunks(4096) {
            bytes.clear();
            chunk.iter().for_each(|entry| entry.encode(&mut bytes));
            file.write_all_at(&bytes, offset)?;
            offset += bytes.len() as u64;
        }
        let expected = (self.entries.len() * ENTRY_BYTES) as u64;
        ensure!(offset - start == expected, "a run of {expected} bytes takes {start}..{offset}");
        self.run_ends.push(offset);
        self.entries.clear();
        Ok(())
    }

    fn create_temporary(&self) -> Result<Arc<dyn File>> {
        remove_stray(&self.fs, &self.temporary)?;
        let file = self.fs.open(&self.temporary, OpenOptions::create_new())?;
        self.fs.remove(&self.temporary)?;
        Ok(Arc::from(file))
    }

    /// Ends the input and returns the entries in order.
    pub fn finish(mut self) -> Result<Sorted> {
        if let Some(file) = self.file.clone() {
            if !self.entries.is_empty() {
                self.write_run()?;
            }
            let memory_entries = self.entries_max / 2;
            drop(std::mem::take(&mut self.entries));
            debug_assert!(!self.run_ends.is_empty(), "a file has a run");
            return Ok(Sorted::Merge(Merge::new(file, &self.run_ends, memory_entries)?));
        }
        self.entries.sort_unstable();
        Ok(Sorted::Memory(self.entries.into_iter()))
    }
}

/// The sorted entries.
#[derive(Debug)]
pub(super) enum Sorted {
    Memory(std::vec::IntoIter<SortEntry>),
    Merge(Merge),
}

impl Sorted {
    pub fn next(&mut self) -> Result<Option<SortEntry>> {
        match self {
            Sorted::Memory(entries) => Ok(entries.next()),
            Sorted::Merge(merge) => merge.next(),
        }
    }
}

/// Merges the runs.
#[derive(Debug)]
pub(super) struct Merge {
    file: Arc<dyn File>,
    runs: Vec<Run>,
    /// The first entry of each run that is not exhausted.
    heads: BinaryHeap<Reverse<(SortEntry, usize)>>,
}

/// The rest of a run.
#[derive(Debug)]
struct Run {
    /// The range of the file that was not read yet.
    unread: std::ops::Range<u64>,
    buffer: Vec<u8>,
    at: usize,
    buffer_bytes: u64,
}

impl Merge {
    fn new(file: Arc<dyn File>, run_ends: &[u64], memory_entries: usize) -> Result<Self> {
        let buffer_entries = (memory_entries / run_ends.len().max(1)).max(1);
        let buffer_bytes = (buffer_entries * ENTRY_BYTES) as u64;
        let mut start = 0;
        let mut merge = Merge { file, runs: Vec::new(), heads: BinaryHeap::new() };
        for (number, &end) in run_ends.iter().enumerate() {
            ensure!(end > start && (end - start).is_multiple_of(ENTRY_BYTES as u64), "run {start}..{end}");
            let mut run = Run { unread: start..end, buffer: Vec::new(), at: 0, buffer_bytes };
            if let Some(head) = run.next(&*merge.file)? {
                merge.heads.push(Reverse((head, number)));
            }
            merge.runs.push(run);
            start = end;
        }
        debug_assert_eq!(merge.heads.len(), merge.runs.len(), "every run has a first entry");
        Ok(merge)
    }

    fn next(&mut self) -> Result<Option<SortEntry>> {
        let Some(mut top) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((entry, number)) = *top;
        match self.runs[number].next(&*self.file)? {
            Some(next) => *top = Reverse((next, number)),
            None => _ = std::collections::binary_heap::PeekMut::pop(top),
        }
        Ok(Some(entry))
    }
}

impl Run {
    fn next(&mut self, file: &dyn File) -> Result<Option<SortEntry>> {
        if self.at == self.buffer.len() {
            let count = self.buffer_bytes.min(self.unread.end - self.unread.start);
            if count == 0 {
                return Ok(None);
            }
            self.buffer.resize(count as usize, 0);
            file.read_exact_at(&mut self.buffer, self.unread.start)?;
            self.unread.start += count;
            self.at = 0;
            debug_assert!(count.is_multiple_of(ENTRY_BYTES as u64), "{count} bytes of whole entries");
        }
        debug_assert!(self.at + ENTRY_BYTES <= self.buffer.len(), "a part of an entry at {}", self.at);
        let entry = SortEntry::decode(&self.buffer[self.at..]);
        self.at += ENTRY_BYTES;
        Ok(Some(entry))
    }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::{MemFs, Rng, SeededRng};

    use super::*;

    /// Goal: all entries are returned in order, with and without spilling, and no file is left
    /// behind. Method: limits from far too little to plenty, with duplicate homes.
    #[test]
    fn sorts_under_any_limit() {
        for memory_bytes in [0, 24 * 7, 24 * 100, 24 * 999, 24 * 1000, 1 << 20] {
            let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
            let mut sorter = Sorter::new(&fs, Path::new("x.spi"), memory_bytes);
            let mut rng = SeededRng::new(memory_bytes);
            let mut expected: Vec<SortEntry> = (0..1000)
                .map(|n| SortEntry { home: rng.below(300), address_and_kind: n, hash: rng.next_u64() })
                .collect();
            for &entry in &expected {
                sorter.push(entry).unwrap();
            }
            expected.sort_unstable();
            let mut sorted = sorter.finish().unwrap();
            let mut found = Vec::new();
            while let Some(entry) = sorted.next().unwrap() {
                found.push(entry);
            }
            assert_eq!(found, expected);
            assert!(
                fs.read_dir(Path::new(".")).is_ok_and(|names| names.is_empty())
                    || !fs.exists(Path::new("x.spi.sort.tmp")).unwrap()
            );
        }
    }

    /// Goal: the memory limit is kept. Method: check the capacity after many entries.
    #[test]
    fn memory_is_bounded() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let mut sorter = Sorter::new(&fs, Path::new("x.spi"), 240_000);
        for n in 0..100_000 {
            sorter.push(SortEntry { home: n % 7, address_and_kind: n, hash: n }).unwrap();
            assert!(sorter.entries.capacity() <= 10_000);
        }
        assert_eq!(sorter.run_ends.len(), 9);
    }
}
