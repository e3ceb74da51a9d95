//! The double write: copies of pages that are about to be written, so that a page torn by a power loss is mended.
//!
//! ```text
//!   0                                                4096            4096 + page size
//!   | magic 8 | version 4 | page size 4 | count 4 | 0 4 | count x (page 4, 0 4, check 8) | 0 | logged 8 | check 8 |  page | page | ...
//! ```
//!
//! Little endian. The check of a page is XXH3 of its copy, seeded with its number; the block's last eight bytes are XXH3 of all before.
//!
//! A batch is written here and synced before any of its pages is written in place, and the file is synced before the next batch takes the
//! place of this one. `logged` is how far the log was durable then, which is beyond the last change of any page that was ever written. So at any moment each page of the file is whole, or its copy here is. Opening writes the sound copies over the
//! pages and syncs them: they are the last that were written, and writing them again changes nothing. It does so where the pages read back equal, too: after a process
//! that was killed they may be in the kernel's memory only, and after a sync that failed the kernel may never write them by itself. The same is done before the next batch
//! when a page could not be written in place: a part of it may have been.

use cairn_codec::checksum::{xxh3_64, xxh3_64_seeded};
use cairn_vfs::File;
use cairn_vfs::memory::Buffer;

use crate::error::{Error, Result};
use crate::format::{Format, verify};
use crate::write_ahead::Lsn;
use crate::write_back::BATCH;

const MAGIC: &[u8; 8] = b"CAIRNDW\0";
const VERSION: u32 = 1;
const BLOCK: usize = 4096;
const HEADER: usize = 24;
const ENTRY: usize = 16;

/// Where the log position is.
const LOGGED: usize = BLOCK - 16;

const _: () = assert!(HEADER + ENTRY * BATCH <= LOGGED);

/// The journal of one file.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Box<dyn File>,
    page_size: usize,
    block: Buffer,
    /// Pages were written in place since the file was synced: the batch here is still needed.
    is_needed: bool,
    logged: Lsn,
    /// Some of them may be there in part.
    is_torn: bool,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

impl Journal {
    /// Opens a journal and mends the pages that it has copies of. Errors: those of either file; [`Error::Invalid`] for the journal of a file with other
    /// pages.
    pub(crate) fn open(
        journal: Box<dyn File>,
        file: &dyn File,
        page_size: usize,
        format: Format,
    ) -> Result<Self> {
        let block = Buffer::new(BLOCK).map_err(Error::memory("the double write"))?;
        let mut journal =
            Journal { file: journal, page_size, block, is_needed: false, logged: Lsn::NONE, is_torn: false };
        if journal.mend(file, format)? {
            file.sync_data()?;
        }
        Ok(journal)
    }

    /// Writes the sound copies over their pages. True when there were any: they are durable after a sync.
    fn mend(&mut self, file: &dyn File, format: Format) -> Result<bool> {
        if self.file.len()? < BLOCK as u64 {
            return Ok(false);
        }
        self.file.read_exact_at(&mut self.block, 0)?;
        let (content, check) = self.block.split_at(BLOCK - 8);
        if content.get(..8) != Some(MAGIC) || u64_at(check, 0) != xxh3_64(content) {
            // Torn before anything was written in place, or never used.
            return Ok(false);
        }
        let (version, page_size) = (u32_at(content, 8), u32_at(content, 12));
        if version != VERSION || page_size as usize != self.page_size {
            return Err(Error::invalid(format!(
                "{} is a double write of version {version} for pages of {page_size} bytes; version {VERSION} and {} were expected",
                self.file.path().display(),
                self.page_size
            )));
        }
        self.logged = self.logged.max(Lsn(u64_at(content, LOGGED)));
        let entries: Vec<(u32, u64)> = content[HEADER..]
            .chunks_exact(ENTRY)
            .take(u32_at(content, 16) as usize)
            .map(|entry| (u32_at(entry, 0), u64_at(entry, 8)))
            .collect();
        self.write_copies(&entries, file, format)
    }

    /// As [`Journal::mend`], for the copies that the block names.
    fn write_copies(&self, entries: &[(u32, u64)], file: &dyn File, format: Format) -> Result<bool> {
        let page_size = self.page_size;
        let memory = Error::memory("a page of the double write");
        let mut copy = Buffer::new(page_size).map_err(memory)?;
        let (len, mut has_written) = (self.file.len()?, false);
        for (at, &(number, check)) in entries.iter().enumerate() {
            let start = BLOCK as u64 + (at * page_size) as u64;
            if start + page_size as u64 > len {
                break;
            }
            self.file.read_exact_at(&mut copy, start)?;
            let is_sound = xxh3_64_seeded(&copy, u64::from(number)) == check
                && (format == Format::Raw || verify(&copy, number).is_ok());
            if is_sound {
                file.write_all_at(&copy, u64::from(number) * page_size as u64)?;
                has_written = true;
            }
        }
        Ok(has_written)
    }

    /// Writes and syncs copies of `pages`, which lie in `bytes` one after the other; the log is durable up to `logged`. They may be written in place afterwards, by who keeps the journal
    /// locked until that is done. `sync` makes `file` durable. Errors: those of either file; nothing may be written in place then.
    pub(crate) fn write(
        &mut self,
        pages: &[u32],
        bytes: &[u8],
        logged: Lsn,
        (file, format): (&dyn File, Format),
        sync: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if self.is_torn {
            self.mend(file, format)?;
            self.is_torn = false;
        }
        if self.is_needed {
            sync()?;
            self.is_needed = false;
        }
        self.logged = self.logged.max(logged);
        self.fill_block(pages, bytes);
        self.file.write_all_at(bytes, BLOCK as u64)?;
        self.file.write_all_at(&self.block, 0)?;
        self.file.sync_data()?;
        self.is_needed = true;
        Ok(())
    }

    /// How far the log was durable when the last batch was written.
    pub(crate) fn logged(&self) -> Lsn {
        self.logged
    }

    /// A page of the batch could not be written in place.
    pub(crate) fn note_failure(&mut self) {
        self.is_torn = true;
    }

    /// Forgets the batch: its pages are not to come back. The file is made durable first, by `sync`, since some of them may stay.
    pub(crate) fn clear(
        &mut self,
        (file, format): (&dyn File, Format),
        sync: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if self.is_torn {
            self.mend(file, format)?;
            self.is_torn = false;
        }
        sync()?;
        self.is_needed = false;
        self.fill_block(&[], &[]);
        self.file.write_all_at(&self.block, 0)?;
        Ok(self.file.sync_data()?)
    }

    fn fill_block(&mut self, pages: &[u32], bytes: &[u8]) {
        let block = &mut self.block[..];
        block.fill(0);
        put(block, 0, MAGIC);
        put(block, 8, &VERSION.to_le_bytes());
        put(block, 12, &(self.page_size as u32).to_le_bytes());
        put(block, 16, &(pages.len() as u32).to_le_bytes());
        for ((at, &page), copy) in pages.iter().enumerate().zip(bytes.chunks_exact(self.page_size)) {
            put(block, HEADER + at * ENTRY, &page.to_le_bytes());
            put(block, HEADER + at * ENTRY + 8, &xxh3_64_seeded(copy, u64::from(page)).to_le_bytes());
        }
        put(block, LOGGED, &self.logged.0.to_le_bytes());
        let check = xxh3_64(&block[..BLOCK - 8]);
        put(block, BLOCK - 8, &check.to_le_bytes());
    }
}
