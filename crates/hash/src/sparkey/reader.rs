//! Looks up keys in an index and its log.
//!
//! A reader is `Send` and `Sync` and all methods take `&self`: any number of threads share one
//! without a pool or a lock. A lookup in an uncompressed log costs two dependent cache misses, one
//! in the index and one in the log. For an absent key it nearly always costs one.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::{Advice, File, Fs, Load, LoadReport, StdFs};

use super::cursor::Cursor;
use super::fast_path::{Answer, InMemory};
use super::index::Index;
use super::index_header::INDEX_HEADER_BYTES;
use super::index_header::IndexHeader;
use super::live_scan::LiveScan;
use super::log::{Log, check_indexed, open_file};
use super::log_header::{LOG_HEADER_BYTES, LogHeader};
use super::log_scan::LogScan;
use super::options::ReaderOptions;
use super::paths::{index_path, log_path};
use super::record::RecordKind;
use super::record_lookup::{FoundValue, ValueLocation, match_anywhere, match_cached};
use super::slot::Slot;
use super::value_reader::ValueReader;
use crate::{Error, Result};

/// Number of slots that are inspected when a pair is opened: one positional read.
const FIRST_SLOTS: u64 = 64;
/// Maximum number of entries among them that are compared with their records.
const FIRST_ENTRIES: u32 = 4;

/// An index and its log, opened for lookups.
///
/// The reader shows the log as it was when the index was built, even if records were appended
/// since. Sparkey files carry no checksums, so damage to the bytes of a key or a value cannot be
/// detected. Invalid lengths and positions are detected, and cause an
/// [`Error::Corruption`](crate::Error::Corruption).
#[derive(Debug)]
pub struct SparkeyReader {
    pub(super) index: Index,
    pub(super) log: Log,
    pub(super) check_absent: bool,
    load: LoadSummary,
}

/// The result of the loads at open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadSummary {
    /// The report for the index.
    pub index: LoadReport,
    /// The report for the part of the log that the index covers.
    pub log: LoadReport,
}

/// The headers of both files, and the resources of the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SparkeyInfo {
    /// Path of the index.
    pub index_path: PathBuf,
    /// Path of the log.
    pub log_path: PathBuf,
    /// The header of the index.
    pub index: IndexHeader,
    /// The header of the log.
    pub log: LogHeader,
    /// Length of the index in bytes.
    pub index_bytes: u64,
    /// Memory of the blocks that are currently cached.
    pub block_cache_bytes: u64,
}

impl SparkeyReader {
    /// Opens the index and the log at `path` (the name of either file, or their common name) on the
    /// real file system.
    ///
    /// Cost: reads the two headers; with [`Mode::Heap`](super::Mode::Heap) the whole files; with a
    /// load option the pages to load. Errors: [`Error::Corruption`](crate::Error::Corruption) and
    /// [`Error::Unsupported`](crate::Error::Unsupported) state the offending value and its
    /// location; [`Error::Mismatch`](crate::Error::Mismatch) if the files do not belong together.
    pub fn open(path: impl AsRef<Path>, options: &ReaderOptions) -> Result<SparkeyReader> {
        SparkeyReader::open_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path, options)
    }

    /// Does the same as [`SparkeyReader::open`] on any file system.
    pub fn open_in(
        fs: &Arc<dyn Fs>,
        path: impl AsRef<Path>,
        options: &ReaderOptions,
    ) -> Result<SparkeyReader> {
        SparkeyReader::open_pair_in(fs, index_path(&path), log_path(&path), options)
    }

    /// Does the same as [`SparkeyReader::open_in`] for files with unrelated names.
    pub fn open_pair_in(
        fs: &Arc<dyn Fs>,
        index: impl AsRef<Path>,
        log: impl AsRef<Path>,
        options: &ReaderOptions,
    ) -> Result<SparkeyReader> {
        // ORDER: the index first. In the other order, the index could have been built after the log
        // was read, and cover more of the log than was seen.
        let index = open_file(fs, index.as_ref())?;
        SparkeyReader::from_files(index, open_file(fs, log.as_ref())?, options)
    }

    pub(super) fn from_files(
        index: Arc<dyn File>,
        log: Arc<dyn File>,
        options: &ReaderOptions,
    ) -> Result<Self> {
        let index = Index::open(index, options.index_mode)?;
        let mut log = Log::open(log, options.log_mode, options.block_cache_bytes)?;
        index.header.check_log(&index.path, &log.header, &log.path)?;
        log.limit_to(index.header.data_end, index.header.puts);
        debug_assert_eq!((log.end, log.puts), (index.header.data_end, index.header.puts));
        index.advise(Advice::Random);
        log.advise(Advice::Random);
        let check_absent = options.check_absent;
        let mut reader = SparkeyReader { index, log, check_absent, load: LoadSummary::default() };
        reader.check_first_entries()?;
        reader.load = reader.load(options.index_load, options.log_load);
        Ok(reader)
    }

    /// Compares the first entries of the index with their records. With a wrong seed, or a wrong
    /// split of addresses, all keys would seem absent. If none of the entries is right, the header
    /// is wrong. If at least one is right, the others are damaged individually.
    fn check_first_entries(&self) -> Result<()> {
        let mut cursor = Cursor::for_check(&self.log);
        let mut wrong = None;
        let mut checked = 0;
        self.index.for_first_slots(FIRST_SLOTS, |found| {
            if found.is_empty() || checked == FIRST_ENTRIES {
                return Ok(());
            }
            checked += 1;
            match self.check_hash(&mut cursor, found.address, found.hash) {
                // One correct entry is enough.
                Ok(()) => (checked, wrong) = (FIRST_ENTRIES, None),
                Err(error @ Error::Vfs(_)) => return Err(error),
                Err(error) => _ = wrong.get_or_insert(error),
            }
            Ok(())
        })?;
        wrong.map_or(Ok(()), Err)
    }

    /// Checks that the key of the record at `address` has `hash`, under which the index stores it.
    pub(super) fn check_hash(&self, cursor: &mut Cursor<'_>, address: u64, hash: u64) -> Result<()> {
        let (position, entry) = self.index.header.split(address);
        let head = cursor.seek(position, entry)?;
        let mut key = Vec::new();
        cursor.append_to(head.key_bytes, &mut key)?;
        let found = self.index.hash(&key);
        if found == hash && head.kind == RecordKind::Put {
            return Ok(());
        }
        let detail = format!(
            "the index has the record at {position} under hash {hash:#x}, expected a PUT of a key with this hash, found {found:#x}"
        );
        Err(Error::corruption(&self.index.path, INDEX_HEADER_BYTES as u64, detail))
    }

    /// Returns the value of `key`. It is borrowed if the log is in memory and uncompressed, or if
    /// its block is cached.
    ///
    /// Cost: two dependent cache misses and no allocation if the value is borrowed; otherwise up to
    /// one read of the index, one read of the log and the decompression of a block.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        match self.answer(key) {
            Answer::Found(value) => Ok(Some(Cow::Borrowed(value))),
            Answer::Absent => Ok(None),
            Answer::Unsure => self.find(key)?.map(FoundValue::into_cow).transpose(),
        }
    }

    /// Replaces the content of `value` with the value of `key`. Returns false if the key is absent.
    /// Does not allocate once `value` is large enough.
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        match self.answer(key) {
            Answer::Found(found) => {
                value.extend_from_slice(found);
                Ok(true)
            }
            Answer::Absent => Ok(false),
            Answer::Unsure => match self.find(key)? {
                None => Ok(false),
                Some(hit) => hit.append_to(value).map(|()| true),
            },
        }
    }

    /// Returns true if `key` has a value. Costs as much as [`SparkeyReader::get`], but never reads
    /// the value.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        match self.answer(key) {
            Answer::Found(_) => Ok(true),
            Answer::Absent => Ok(false),
            Answer::Unsure => Ok(self.find(key)?.is_some()),
        }
    }

    /// Returns a stream over the value of `key`, for values that should not be in memory as a
    /// whole.
    pub fn value_reader(&self, key: &[u8]) -> Result<Option<ValueReader<'_>>> {
        let mut cursor = Cursor::for_lookup(&self.log);
        let hash = self.index.hash(key);
        let found = self.index.walk(hash, |slot| {
            if slot.hash != hash {
                return self.check_passed(&mut cursor, slot).map(|()| None);
            }
            let (position, entry) = self.index.header.split(slot.address);
            let found = match_anywhere(&mut cursor, position, entry, key)?;
            if found.is_none() {
                self.check_hash(&mut cursor, slot.address, hash)?;
            }
            Ok(found)
        })?;
        Ok(found.map(|located| match located {
            ValueLocation::Borrowed(value) => ValueReader::new(cursor, value.len() as u64),
            ValueLocation::AtCursor(value_bytes) => ValueReader::new(cursor, value_bytes),
        }))
    }

    /// Looks up `key` by the fast path, if it is available.
    #[inline(always)]
    fn answer(&self, key: &[u8]) -> Answer<'_> {
        match self.in_memory().map(|in_memory| in_memory.get(key)) {
            Some(Answer::Absent) if self.check_absent => Answer::Unsure,
            Some(answer) => answer,
            None => Answer::Unsure,
        }
    }

    /// Returns both files as bytes, if they are in memory and the log is not compressed.
    #[inline(always)]
    pub(super) fn in_memory(&self) -> Option<InMemory<'_>> {
        let (slots, log) = (self.index.memory()?, self.log.uncompressed_in_memory()?);
        debug_assert_eq!(slots.len() as u64, self.index.ring.capacity * self.index.header.slot_bytes());
        debug_assert_eq!((LOG_HEADER_BYTES + log.len()) as u64, self.log.end);
        Some(InMemory { header: &self.index.header, ring: &self.index.ring, slots, log })
    }

    /// Finds `key` by the general path, which works in every mode and reports damage.
    #[inline(never)]
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<FoundValue<'_>>> {
        let mut cursor = None;
        let hash = self.index.hash(key);
        let found = self.index.walk(hash, |slot| match slot.hash == hash {
            true => self.check_anywhere(&mut cursor, slot.address, key, hash),
            false if self.check_absent => {
                let cursor = cursor.get_or_insert_with(|| Cursor::for_lookup(&self.log));
                self.check_passed(cursor, slot).map(|()| None)
            }
            false => Ok(None),
        })?;
        debug_assert!(
            cursor.is_some() || !matches!(found, Some(ValueLocation::AtCursor(_))),
            "a value without a cursor would seem absent"
        );
        Ok(match (found, cursor) {
            (Some(ValueLocation::Borrowed(value)), _) => Some(FoundValue::Borrowed(value)),
            (Some(ValueLocation::AtCursor(value_bytes)), Some(cursor)) => {
                Some(FoundValue::Stream(cursor, value_bytes))
            }
            _ => None,
        })
    }

    /// Compares a slot that a lookup passed with its record, if the options ask for that.
    fn check_passed(&self, cursor: &mut Cursor<'_>, slot: Slot) -> Result<()> {
        if self.check_absent { self.check_hash(cursor, slot.address, slot.hash) } else { Ok(()) }
    }

    /// Compares the record at `address` with `key`, whose hash is `hash`. The cursor is created
    /// when it is needed. A record of another key must have the same hash; otherwise the address is
    /// damaged.
    #[inline]
    pub(super) fn check_anywhere<'a>(
        &'a self,
        cursor: &mut Option<Cursor<'a>>,
        address: u64,
        key: &[u8],
        hash: u64,
    ) -> Result<Option<ValueLocation<'a>>> {
        let (position, entry) = self.index.header.split(address);
        if let Some(Some(value)) = match_cached(&self.log, position, entry, key) {
            return Ok(Some(ValueLocation::Borrowed(value)));
        }
        let cursor = cursor.get_or_insert_with(|| Cursor::for_lookup(&self.log));
        let found = match_anywhere(cursor, position, entry, key)?;
        if found.is_none() {
            self.check_hash(cursor, address, hash)?;
        }
        Ok(found)
    }

    /// Iterates over all records of the part of the log that the index covers, in the order of
    /// writing, dead ones included.
    pub fn scan_log(&self) -> LogScan<'_> {
        LogScan::new(&self.log)
    }

    /// Iterates over the live entries in the order in which they were written.
    pub fn scan(&self) -> LiveScan<'_> {
        LiveScan::new(self)
    }

    /// Returns the number of keys that have a value.
    pub fn len(&self) -> u64 {
        self.index.header.entries
    }

    /// Returns true if no key has a value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks that the index covers the whole log. Errors:
    /// [`Error::Invalid`](crate::Error::Invalid) if the log has records beyond its index, which
    /// this reader does not show. For callers that would lose these records.
    pub fn check_indexed(&self) -> Result<()> {
        check_indexed(&self.log.path, self.log.header.data_end, self.index.header.data_end)
    }

    /// Returns the headers of both files and the resources of the reader.
    pub fn info(&self) -> SparkeyInfo {
        SparkeyInfo {
            index_path: self.index.path.clone(),
            log_path: self.log.path.clone(),
            index: self.index.header,
            log: self.log.header,
            index_bytes: self.index.header.file_bytes().unwrap_or(u64::MAX),
            block_cache_bytes: self.log.blocks.used_bytes(),
        }
    }

    /// Returns the result of the loads that the options asked for.
    pub fn load_summary(&self) -> &LoadSummary {
        &self.load
    }

    /// Loads the files into memory, or pins them there, now. Never fails: the summary tells how
    /// much was achieved.
    pub fn load(&self, index: Load, log: Load) -> LoadSummary {
        LoadSummary { index: self.index.load(index), log: self.log.load(log) }
    }
}
