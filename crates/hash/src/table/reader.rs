//! Opens a table and looks up keys in it.
//!
//! A reader is `Send` and `Sync` and all methods take `&self`: any number of threads share one
//! without a pool or a lock. A lookup touches the partition entry (in the L1 cache), one index line
//! (`line.rs` tells when it needs a second) and one record. That is two dependent cache misses for
//! a present key and one for an absent key.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_codec::checksum::xxh3_64_seeded;
use cairn_codec::compress::{DecompressionDictionary, Dictionary};
use cairn_vfs::{Advice, File, Fs, Load, LoadReport, Map, OpenOptions, StdFs};

use super::fast_path::{Kind, Stored, for_kind};
use super::format::{Header, LINE_BYTES, MAGIC, PAGE_BYTES, PARTITION_BYTES};
use super::line::LineBytes;
use super::options::{Mode, ReaderOptions, Trust};
use super::pages::{PageChecker, Window};
use super::place::Partitions;
use super::probe::Probe;
use super::record::{RecordHead, Tag};
use super::source::{self, Scratch};
use super::stats::TableInfo;
use crate::{Error, Result};

/// Larger files are mapped without read-ahead. In a smaller file, the read-ahead of the first cold
/// lookups soon brings the whole file into memory with few device reads. In a larger one the pages
/// read ahead would only evict each other.
const READ_AHEAD_BYTES_MAX: u64 = 1 << 30;

/// An open table.
#[derive(Debug)]
pub struct Reader {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    pub(crate) partitions: Partitions,
    pub(crate) checker: PageChecker,
    /// The whole file; with `Mode::Pread` only the part after the data.
    map: Map,
    map_start: u64,
    pub(crate) kind: Kind,
    /// The index lines in `map`.
    index: Map,
    /// The page on which the index begins.
    pub(crate) index_page: u64,
    /// `map` up to the end of the data, empty for `Mode::Pread`. Bounds the records that the fast
    /// path may return.
    up_to_data_end: Map,
    /// Set for `Mode::Pread`.
    pub(crate) file: Option<Box<dyn File>>,
    pub(crate) dictionary: Option<DecompressionDictionary>,
    pub(crate) options: ReaderOptions,
    load_report: Option<LoadReport>,
}

/// A record that was found: the tag of its stored value, and its location in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub tag: Tag,
    pub start: u64,
    pub bytes: u64,
}

/// Reads the header of the table at `path`.
pub(crate) fn read_header(fs: &Arc<dyn Fs>, path: &Path) -> Result<Header> {
    header_of(&*fs.open(path, OpenOptions::read())?, path)
}

/// Returns whether the file at `path` begins with the magic number of a table. It may still be
/// damaged. Errors: those of the file system.
pub fn is_table(fs: &dyn Fs, path: &Path) -> Result<bool> {
    let file = fs.open(path, OpenOptions::read())?;
    let mut magic = [0; MAGIC.len()];
    Ok(file.len()? >= magic.len() as u64 && file.read_exact_at(&mut magic, 0).map(|()| magic == MAGIC)?)
}

fn header_of(file: &dyn File, path: &Path) -> Result<Header> {
    let file_bytes = file.len()?;
    let mut page = vec![0; file_bytes.min(PAGE_BYTES) as usize];
    file.read_exact_at(&mut page, 0)?;
    Header::decode(path, &page, file_bytes)
}

impl Reader {
    /// Opens the table at `path` on the real file system.
    ///
    /// Cost: reads the header, the partition table (at most 8 KiB) and the dictionary, if there is
    /// one. [`Mode::Heap`] copies the whole file and, unless it is trusted, verifies every page, so
    /// that damage anywhere makes the open fail. [`Mode::Pread`] copies the part after the records:
    /// index, dictionary and checksums. If the options ask for a load, the rest is loaded too.
    /// Errors: [`Error::Corruption`] and [`Error::Unsupported`] state the offending value and its
    /// location.
    pub fn open(path: impl AsRef<Path>, options: ReaderOptions) -> Result<Reader> {
        Reader::open_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path.as_ref(), options)
    }

    /// Does the same as [`Reader::open`] on any file system.
    pub fn open_in(fs: &Arc<dyn Fs>, path: &Path, options: ReaderOptions) -> Result<Reader> {
        let file = fs.open(path, OpenOptions::read())?;
        let header = header_of(&*file, path)?;
        let file_bytes = header.file_bytes;
        let (map, map_start) = match options.mode {
            Mode::Mmap => (file.map()?, 0),
            Mode::Heap => (Map::copy_of(&*file)?, 0),
            Mode::Pread => (source::read_tail(&*file, &header)?, header.index_offset),
        };
        if map.len() as u64 != file_bytes - map_start {
            let detail =
                format!("the length of the file changed while it was opened, from {file_bytes} bytes");
            return Err(Error::corruption(path, file_bytes, detail));
        }
        // ORDER: a file that cannot be mapped is refused before memory is allocated for its pages.
        let checker = PageChecker::new(path, &header, options.trust == Trust::Unchecked)?;
        if options.mode == Mode::Mmap && file_bytes >= READ_AHEAD_BYTES_MAX {
            map.advise(0..map.len(), Advice::Random);
        }
        let load_report = match options.load {
            // Without a load there is no report: counting the resident pages takes longer than the
            // rest of the open.
            Load::None => None,
            load => Some(map.load(0..map.len(), load)),
        };
        debug_assert!(header.index_offset >= map_start, "the index is in memory in every mode");
        let index_start = (header.index_offset - map_start) as usize;
        let index = map.slice(index_start..index_start + (header.index_lines * LINE_BYTES) as usize);
        let data_end = if map_start == 0 { header.data_offset + header.data_bytes } else { 0 };
        let up_to_data_end = map.slice(0..data_end as usize);
        let mut reader = Reader {
            path: path.to_owned(),
            index_page: header.index_offset / PAGE_BYTES,
            kind: Kind::Read,
            header,
            partitions: Partitions::default(),
            checker,
            map,
            map_start,
            index,
            up_to_data_end,
            file: (options.mode == Mode::Pread).then_some(file),
            dictionary: None,
            options,
            load_report,
        };
        reader.read_partitions()?;
        reader.read_dictionary()?;
        if options.mode == Mode::Heap {
            reader.check_all_pages()?;
        }
        reader.kind = match options.mode {
            Mode::Pread => Kind::Read,
            _ if reader.header.is_fixed() => Kind::Fixed,
            _ if reader.header.is_tagged() => Kind::Tagged,
            Mode::Heap => Kind::PlainTrusted,
            Mode::Mmap if options.trust == Trust::Unchecked => Kind::PlainTrusted,
            Mode::Mmap => Kind::Plain,
        };
        debug_assert_eq!(reader.kind == Kind::Read, reader.file.is_some());
        debug_assert_eq!(reader.lines().len() as u64, reader.header.index_lines);
        Ok(reader)
    }

    /// Verifies every page. This takes less time than the copy of the file into memory that
    /// preceded it.
    fn check_all_pages(&self) -> Result<()> {
        (1..self.header.file_bytes / PAGE_BYTES)
            .try_for_each(|page| self.checker.ensure(&self.path, self.window(), page))
    }

    fn read_partitions(&mut self) -> Result<()> {
        let bytes = self.header.partitions() * PARTITION_BYTES;
        let bytes = self.checked_range(self.header.partitions_offset, bytes)?;
        self.partitions = Partitions::decode(&self.path, &self.header, bytes)?;
        debug_assert_eq!(self.partitions.as_slice().len() as u64, self.header.partitions());
        Ok(())
    }

    fn read_dictionary(&mut self) -> Result<()> {
        if self.header.dictionary_bytes == 0 {
            return Ok(());
        }
        let at = self.header.dictionary_offset;
        let bytes = self.checked_range(at, self.header.dictionary_bytes)?;
        let prepared = Dictionary::from_bytes(bytes).for_decompression();
        self.dictionary =
            Some(prepared.map_err(|error| Error::corruption(&self.path, at, error.to_string()))?);
        Ok(())
    }

    /// Returns the value of `key`, borrowed if the file is mapped and the value is not compressed.
    ///
    /// Cost of a mapped or copied table: two dependent cache misses, and the verification of each
    /// page that was not touched before. No allocation if the value is borrowed.
    ///
    /// Cost with [`Mode::Pread`]: a positional read of the pages that hold the record, the
    /// verification of these pages each time, and an allocation for the value, which
    /// [`Reader::get_into`] avoids. A second read follows if the record is longer than 64 KiB or
    /// than the index says. A value of 32 KiB or more is read separately, in pieces of up to 256
    /// KiB. An absent key needs no read, except for one in fifty, which shares a fingerprint with a
    /// record.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        let value = match self.kind {
            Kind::PlainTrusted => self.try_get_plain::<false>(key),
            Kind::Plain => self.try_get_plain::<true>(key),
            _ => return self.get_other(key),
        };
        match value {
            Some(value) => Ok(value.map(Cow::Borrowed)),
            None => self.get_completely(key),
        }
    }

    /// Handles the less common kinds, outside of `get` so that their code is not inlined into every
    /// caller.
    #[inline(never)]
    fn get_other(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        let stored = match self.kind {
            Kind::Tagged => self.try_stored::<false, true, true>(key, self.hash(key)),
            Kind::Fixed => self.try_stored::<true, false, true>(key, self.hash(key)),
            _ => None,
        };
        match stored {
            Some(None) => Ok(None),
            Some(Some(stored)) => self.value(stored),
            None => self.get_completely(key),
        }
    }

    #[inline(never)]
    fn get_completely(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        if self.file.is_some() {
            let mut value = Vec::new();
            return Ok(self.get_into(key, &mut value)?.then_some(Cow::Owned(value)));
        }
        match self.find_stored(key, self.hash(key))? {
            None => Ok(None),
            Some(stored) => self.value(stored),
        }
    }

    /// Replaces the content of `value` with the value of `key`. Returns false if the key is absent.
    /// Does not allocate once `value` is large enough.
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let hash = self.hash(key);
        if let Some(file) = &self.file {
            return Scratch::local(|scratch| match self.find_by_reading(&**file, key, hash, scratch)? {
                Some(found) => self.append_read(&**file, found, scratch, value),
                None => Ok(false),
            });
        }
        let stored = match for_kind!(self.try_stored(key, hash), or None) {
            Some(stored) => stored,
            None => self.find_stored(key, hash)?,
        };
        match stored {
            Some(stored) => self.append_value(stored, value),
            None => Ok(false),
        }
    }

    /// Returns true if the table has `key`.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.find_any(key, self.hash(key))?.is_some_and(|found| found.tag != Tag::Tombstone))
    }

    /// Returns the number of keys that a lookup finds. Tombstones of a delta do not count.
    pub fn len(&self) -> u64 {
        debug_assert!(self.header.tombstones <= self.header.entries, "checked at open");
        self.header.entries - self.header.tombstones
    }

    /// Returns true if no lookup finds anything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the information in the header.
    pub fn info(&self) -> TableInfo {
        TableInfo::new(&self.path, &self.header)
    }

    /// Returns the result of the load that the options asked for. If they asked for none, returns
    /// how much is in memory now.
    ///
    /// Cost: one `mincore` over the file if no load was asked for.
    pub fn load_report(&self) -> LoadReport {
        self.load_report.clone().unwrap_or_else(|| self.map.load(0..self.map.len(), Load::None))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if values can be borrowed.
    pub(crate) fn is_mapped(&self) -> bool {
        self.file.is_none()
    }

    /// Returns the hash by which this table places `key`.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        xxh3_64_seeded(key, self.header.seed)
    }

    /// Returns the bytes of the file that are in memory.
    #[inline]
    pub(crate) fn window(&self) -> Window<'_> {
        Window { bytes: &self.map, start: self.map_start }
    }

    /// Returns the bytes of a mapped table from the start of the file to the end of its data.
    #[inline(always)]
    pub(crate) fn records_to_data_end(&self) -> &[u8] {
        &self.up_to_data_end
    }

    /// Returns the index lines, unverified.
    #[inline(always)]
    pub(crate) fn lines(&self) -> &[LineBytes] {
        self.index.as_chunks().0
    }

    /// Verifies the pages of a range in the window and returns its bytes.
    pub(crate) fn checked_range(&self, offset: u64, bytes: u64) -> Result<&[u8]> {
        let window = self.window();
        let Some(range) = window.range(offset, bytes) else {
            let detail = format!("{bytes} bytes expected here, but the file has {}", self.header.file_bytes);
            return Err(Error::corruption(&self.path, offset, detail));
        };
        debug_assert_eq!(range.len() as u64, bytes);
        if bytes > 0 {
            for page in offset / PAGE_BYTES..=(offset + bytes - 1) / PAGE_BYTES {
                self.checker.ensure(&self.path, window, page)?;
            }
        }
        Ok(range)
    }

    /// Finds `key`, whether records are mapped or read.
    pub(crate) fn find_any(&self, key: &[u8], hash: u64) -> Result<Option<Found>> {
        match &self.file {
            None => self.find(key, hash),
            Some(file) => Scratch::local(|scratch| self.find_by_reading(&**file, key, hash, scratch)),
        }
    }

    /// Finds `key` in a mapped table.
    #[inline]
    pub(crate) fn find(&self, key: &[u8], hash: u64) -> Result<Option<Found>> {
        match for_kind!(self.try_stored(key, hash), or None) {
            Some(stored) => Ok(stored.map(|Stored { tag, bytes, start }| {
                let bytes = bytes.len() as u64;
                Found { tag, start, bytes }
            })),
            None => self.find_completely(key, hash),
        }
    }

    /// Does the complete search in a mapped table and returns the stored value.
    pub(crate) fn find_stored(&self, key: &[u8], hash: u64) -> Result<Option<Stored<'_>>> {
        self.find_completely(key, hash)?.map(|found| self.stored_at(found)).transpose()
    }

    #[inline(never)]
    fn find_completely(&self, key: &[u8], hash: u64) -> Result<Option<Found>> {
        debug_assert!(self.is_mapped());
        if self.header.is_fixed() {
            if key.len() as u64 != self.header.key_bytes_max {
                return Ok(None);
            }
            self.find_in::<true>(key, Probe::new(self, hash)?)
        } else {
            self.find_in::<false>(key, Probe::new(self, hash)?)
        }
    }

    /// Compares the candidates of `probe` with `key`, in a mapped table.
    #[inline]
    pub(crate) fn find_in<'a, const FIXED: bool>(
        &'a self,
        key: &[u8],
        mut probe: Probe<'a, FIXED>,
    ) -> Result<Option<Found>> {
        // BOUND: a probe ends at the end of its partition at the latest.
        while let Some(record) = probe.next(self)? {
            if let Some(found) = self.match_mapped::<FIXED>(record, key)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Compares the key of the record at the file offset `start` with `key`.
    #[inline]
    pub(crate) fn match_mapped<const FIXED: bool>(&self, start: u64, key: &[u8]) -> Result<Option<Found>> {
        let (window, path) = (self.window(), &self.path);
        let (page, data_end) = (start / PAGE_BYTES, self.header.data_offset + self.header.data_bytes);
        debug_assert!((self.header.data_offset..data_end).contains(&start), "a probe checks {start}");
        self.checker.ensure(path, window, page)?;
        let head = if FIXED {
            let (key_bytes, stored_bytes) = (self.header.key_bytes_max, self.header.value_bytes_max);
            RecordHead { key_bytes, stored_bytes, tag: Tag::Raw, head_bytes: 0 }
        } else {
            // A head that crosses into the next page is rare. The last page of the data is followed
            // by the index, so the next page exists.
            if start % PAGE_BYTES > PAGE_BYTES - RecordHead::BYTES_MAX as u64 {
                self.checker.ensure(path, window, page + 1)?;
            }
            let bytes = window.bytes.get((start - window.start) as usize..).unwrap_or_default();
            RecordHead::decode(bytes, self.header.is_tagged()).ok_or_else(|| self.bad_record(start))?
        };
        let end = head.record_bytes().and_then(|bytes| start.checked_add(bytes));
        let end = end.filter(|&end| end <= data_end).ok_or_else(|| self.bad_record(start))?;
        if head.key_bytes != key.len() as u64 {
            return Ok(None);
        }
        for page in page + 1..=end.saturating_sub(1) / PAGE_BYTES {
            self.checker.ensure(path, window, page)?;
        }
        let key_start = start + head.head_bytes as u64;
        let stored = Found { tag: head.tag, start: key_start + head.key_bytes, bytes: head.stored_bytes };
        Ok((window.range(key_start, head.key_bytes) == Some(key)).then_some(stored))
    }

    #[cold]
    pub(crate) fn bad_record(&self, start: u64) -> Error {
        Error::corruption(&self.path, start, "the record here is invalid or reaches beyond the data")
    }
}
