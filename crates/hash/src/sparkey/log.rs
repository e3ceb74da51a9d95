//! An open log: its header and a way to its bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_codec::compress::Format;
use cairn_vfs::{Advice, File, Load, LoadReport, Map};

use super::block_cache::BlockCache;
use super::log_header::{LOG_HEADER_BYTES, LogHeader};
use super::options::Mode;
use crate::{Error, Result};

/// The committed bytes of a log. What is appended later is not seen.
#[derive(Debug)]
pub(super) struct Log {
    pub path: PathBuf,
    pub header: LogHeader,
    /// Bytes from here on do not exist: the log's `data_end`, or that of the index it is read
    /// through.
    pub end: u64,
    /// PUT records up to there, by the header of the log, or of the index it is read through.
    pub puts: u64,
    pub blocks: BlockCache,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    /// The records, from the end of the header to `end`. Not a byte more: a writer changes the
    /// header in place, and cuts off what lies beyond `data_end`.
    Map(Map),
    File(Arc<dyn File>),
}

/// Where the bytes of a log come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'a> {
    /// The records in memory; the first byte is the one at [`LOG_HEADER_BYTES`] in the file.
    Memory(&'a [u8]),
    /// To be read.
    File(&'a dyn File),
}

impl Log {
    /// Reads and checks the header of `file`, and maps or loads the file as `mode` says.
    pub fn open(file: Arc<dyn File>, mode: Mode, block_cache_bytes: u64) -> Result<Log> {
        let header = LogHeader::read(&*file)?;
        let path = file.path().to_owned();
        let records = LOG_HEADER_BYTES as u64..header.data_end;
        let bytes = match mode {
            Mode::Mmap => {
                let map = file.map()?;
                if (map.len() as u64) < header.data_end {
                    let what = format!("the file was cut to {} bytes while it was opened", map.len());
                    return Err(Error::corruption(&path, map.len() as u64, what));
                }
                Bytes::Map(map.slice(records.start as usize..records.end as usize))
            }
            Mode::Heap => Bytes::Map(Map::copy_range(&*file, records)?),
            Mode::Pread => Bytes::File(file),
        };
        let blocks = BlockCache::new(&header, block_cache_bytes);
        Ok(Log { path, header, end: header.data_end, puts: header.puts, blocks, bytes })
    }

    /// Hides what was appended after the first `end` bytes, which hold `puts` PUT records. `end` is
    /// within the log.
    pub fn cut(&mut self, end: u64, puts: u64) {
        debug_assert!((LOG_HEADER_BYTES as u64..=self.end).contains(&end));
        (self.end, self.puts) = (end, puts);
        if let Bytes::Map(map) = &mut self.bytes {
            *map = map.slice(0..end.saturating_sub(LOG_HEADER_BYTES as u64) as usize);
        }
    }

    #[inline]
    pub fn source(&self) -> Source<'_> {
        match &self.bytes {
            Bytes::Map(map) => Source::Memory(map),
            Bytes::File(file) => Source::File(&**file),
        }
    }

    /// The records of an uncompressed log in memory, from [`LOG_HEADER_BYTES`] on: what the fastest
    /// lookups work on.
    #[inline]
    pub fn flat(&self) -> Option<&[u8]> {
        match &self.bytes {
            Bytes::Map(map) if self.header.compression == Format::None => Some(map),
            _ => None,
        }
    }

    pub fn is_compressed(&self) -> bool {
        self.header.compression != Format::None
    }

    /// Brings the log into memory and says how far that went.
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
    pub fn corruption(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::corruption(&self.path, offset, what)
    }
}

/// The report on loading a file that is read positionally: nothing to load it into.
pub(super) fn not_in_memory(bytes: u64, load: Load) -> LoadReport {
    let problem =
        (load != Load::None).then(|| "files read positionally have no memory to load into".to_owned());
    LoadReport { requested_bytes: bytes as usize, problem, ..LoadReport::default() }
}

/// Errors: the log at `path` goes on to `end`, and its index only to `indexed`.
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
