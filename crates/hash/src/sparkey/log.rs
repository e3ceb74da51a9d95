//! An open log: its header and access to its bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_codec::compress::Format;
use cairn_vfs::{Advice, File, Load, LoadReport, Map};

use super::block_cache::BlockCache;
use super::log_header::{LOG_HEADER_BYTES, LogHeader};
use super::options::Mode;
use crate::{Error, Result};

/// The committed bytes of a log. Records appended later are not visible.
#[derive(Debug)]
pub(super) struct Log {
    pub path: PathBuf,
    pub header: LogHeader,
    /// End of the visible bytes: the log's `data_end`, or that of the index through which it is
    /// read.
    pub end: u64,
    /// Number of PUT records up to `end`, from the header of the log or of the index through which
    /// it is read.
    pub puts: u64,
    pub blocks: BlockCache,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    /// The records, from the end of the header to `end`. Not more, because a writer changes the
    /// header in place and truncates the bytes beyond `data_end`.
    Map(Map),
    File(Arc<dyn File>),
}

/// The source of the bytes of a log.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'a> {
    /// The records in memory. The first byte is the one at [`LOG_HEADER_BYTES`] in the file.
    Memory(&'a [u8]),
    /// A file to read from.
    File(&'a dyn File),
}

impl Log {
    /// Reads and validates the header of `file`, and maps or loads the file according to `mode`.
    pub fn open(file: Arc<dyn File>, mode: Mode, block_cache_bytes: u64) -> Result<Log> {
        let header = LogHeader::read(&*file)?;
        let path = file.path().to_owned();
        let records = LOG_HEADER_BYTES as u64..header.data_end;
        let bytes = match mode {
            Mode::Mmap => {
                let map = file.map()?;
                if (map.len() as u64) < header.data_end {
                    let detail = format!("the file shrank to {} bytes while it was opened", map.len());
                    return Err(Error::corruption(&path, map.len() as u64, detail));
                }
                Bytes::Map(map.slice(records.start as usize..records.end as usize))
            }
            Mode::Heap => Bytes::Map(Map::copy_range(&*file, records)?),
            Mode::Pread => Bytes::File(file),
        };
        let blocks = BlockCache::new(&header, block_cache_bytes);
        Ok(Log { path, header, end: header.data_end, puts: header.puts, blocks, bytes })
    }

    /// Hides the records after the first `end` bytes, which hold `puts` PUT records. `end` must lie
    /// within the log.
    pub fn limit_to(&mut self, end: u64, puts: u64) {
        debug_assert!((LOG_HEADER_BYTES as u64..=self.end).contains(&end), "{end} of {}", self.end);
        debug_assert!(puts <= self.puts, "{puts} puts of {}", self.puts);
        (self.end, self.puts) = (end, puts);
        if let Bytes::Map(map) = &mut self.bytes {
            *map = map.slice(0..end.saturating_sub(LOG_HEADER_BYTES as u64) as usize);
            debug_assert_eq!((LOG_HEADER_BYTES + map.len()) as u64, end, "all visible records are mapped");
        }
    }

    #[inline]
    pub fn source(&self) -> Source<'_> {
        match &self.bytes {
            Bytes::Map(map) => Source::Memory(map),
            Bytes::File(file) => Source::File(&**file),
        }
    }

    /// Returns the records of an uncompressed log in memory, from [`LOG_HEADER_BYTES`] on, for the
    /// fast path.
    #[inline]
    pub fn uncompressed_in_memory(&self) -> Option<&[u8]> {
        match &self.bytes {
            Bytes::Map(map) if self.header.compression == Format::None => Some(map),
            _ => None,
        }
    }

    pub fn is_compressed(&self) -> bool {
        self.header.compression != Format::None
    }

    /// Loads the log into memory and reports how much was achieved.
    pub fn load(&self, load: Load) -> LoadReport {
        match &self.bytes {
            Bytes::Map(map) => map.load(0..map.len(), load),
            Bytes::File(_) => not_in_memory(self.end, load),
        }
    }

    pub fn advise(&self, advice: Advice) {
        match &self.bytes {
            Bytes::Map(map) => map.advise(0..map.len(), advice),
            Bytes::File(file) => file.advise(0, self.end, advice),
        }
    }

    #[cold]
    pub fn corruption(&self, offset: u64, detail: impl Into<String>) -> Error {
        Error::corruption(&self.path, offset, detail)
    }
}

/// Returns the report for loading a file that is read positionally: it has no memory to load into.
pub(super) fn not_in_memory(bytes: u64, load: Load) -> LoadReport {
    let problem =
        (load != Load::None).then(|| "files read positionally have no memory to load into".to_owned());
    LoadReport { requested_bytes: bytes as usize, problem, ..LoadReport::default() }
}

/// Checks that the index covers the log at `path` up to its end. Errors: the log ends at `end`, but
/// its index covers it only up to `indexed`.
pub(super) fn check_indexed(path: &Path, end: u64, indexed: u64) -> Result<()> {
    if end <= indexed {
        return Ok(());
    }
    let path = path.display();
    Err(Error::invalid(format!(
        "{path} ends at {end}, but its index covers it up to {indexed}: build the index first (`cairn hash index`)"
    )))
}

/// Opens a file for reading.
pub(super) fn open_file(fs: &Arc<dyn cairn_vfs::Fs>, path: &Path) -> Result<Arc<dyn File>> {
    Ok(Arc::from(fs.open(path, cairn_vfs::OpenOptions::read())?))
}
