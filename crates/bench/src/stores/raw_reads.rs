//! No pool: a positional read for each page. It is the lower bound for the cost of a miss.

use cairn_vfs::{File, OpenOptions};

use super::page_buffer::Buffer;
use super::page_file::{STAMP_AT, WRITES_AT, word};
use super::pages::{Access, PageStore, Pages, Session, Setup};
use crate::core::error::Result;
use crate::core::settings::{Settings, settings};

/// The family of all these contenders.
pub const FAMILY: &str = "raw read";

/// Reads of one size.
#[derive(Debug)]
pub struct RawReads {
    name: String,
    /// Number of bytes of a read in a scan.
    scan_bytes: usize,
}

impl RawReads {
    /// Creates a contender that reads single pages.
    pub fn pages() -> Self {
        RawReads { name: FAMILY.to_owned(), scan_bytes: 0 }
    }

    /// Creates a contender only for scans, which reads this many bytes at a time.
    pub fn scanning(bytes: usize) -> Self {
        RawReads { name: format!("{FAMILY} of {} KiB", bytes >> 10), scan_bytes: bytes }
    }
}

impl PageStore for RawReads {
    fn name(&self) -> &str {
        &self.name
    }

    fn family(&self) -> &str {
        &self.name
    }

    fn version(&self) -> String {
        String::new()
    }

    fn settings(&self, setup: &Setup<'_>) -> Settings {
        settings([
            ("what it is", "no pool: a positional read (and a write) of each page, into one aligned buffer"),
            ("page cache of the kernel", if setup.file.direct { "bypassed" } else { "used" }),
        ])
    }

    fn can(&self, access: Access, threads: u32) -> bool {
        match access {
            Access::Scan => threads == 1,
            Access::Shared | Access::Dirty => self.scan_bytes == 0,
            _ => false,
        }
    }

    fn open(&self, setup: &Setup<'_>) -> Result<Box<dyn Pages>> {
        let access = if setup.writes { OpenOptions::write() } else { OpenOptions::read() };
        let page_size = setup.file.page_size;
        let bytes = self.scan_bytes.max(page_size) / page_size * page_size;
        Ok(Box::new(Open { file: setup.file.open(access)?, page_size, bytes }))
    }
}

struct Open {
    file: Box<dyn File>,
    page_size: usize,
    bytes: usize,
}

impl Pages for Open {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Reader { open: self, buffer: Buffer::new(self.bytes) }))
    }

    fn misses(&self) -> Option<u64> {
        None
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.file.sync_data()?)
    }
}

struct Reader<'a> {
    open: &'a Open,
    buffer: Buffer,
}

impl Session for Reader<'_> {
    fn run(&mut self, access: Access, order: &[u32]) -> Result<u64> {
        let Reader { open: Open { file, page_size, bytes }, buffer } = self;
        let at_once = if access == Access::Scan { bytes / page_size } else { 1 };
        let mut sum = 0_u64;
        for run in order.chunk_by(|a, b| at_once > 1 && a + 1 == *b).flat_map(|run| run.chunks(at_once)) {
            let Some(&first) = run.first() else { continue };
            let offset = u64::from(first) * *page_size as u64;
            let bytes = buffer.bytes_mut(run.len() * page_size);
            file.read_exact_at(bytes, offset)?;
            for page in bytes.chunks_exact(*page_size) {
                sum = sum.wrapping_add(word(page, STAMP_AT));
            }
            if access == Access::Dirty {
                let writes = word(bytes, WRITES_AT) + 1;
                if let Some(place) = bytes.get_mut(WRITES_AT..WRITES_AT + 8) {
                    place.copy_from_slice(&writes.to_le_bytes());
                }
                file.write_all_at(bytes, offset)?;
            }
        }
        Ok(sum)
    }
}
