//! The double write: copies of pages that are about to be written, from which a page torn by a
//! power loss is restored.
//!
//! ```text
//!   block, 4096 bytes                                          then the copies, one page size each
//!   | magic 8 | version 4 | page size 4 | count 4 | 0 4        | page | page | ...
//!   | count x (page 4, 0 4, check 8) | 0
//!   | owner 24 | logged 8 | check 8
//! ```
//!
//! Little endian. The checksum of a page is the XXH3 of its copy, seeded with its number. The last
//! eight bytes of the block are the XXH3 of everything before.
//!
//! A batch is written here and synced before any of its pages is written in place. The file is
//! synced before the next batch replaces this one. So at any moment, each page of the file is
//! either whole or has its copy here. `logged` is how far the log was durable at that time, which
//! is past the last change of any page ever written.
//!
//! Opening writes the sound copies over the pages and syncs them. The copies are the latest writes,
//! so writing them again changes nothing. They are written even where the pages read back equal:
//! after a killed process, the pages may be in the page cache only, and after a failed sync the
//! kernel may never write them on its own. When a page could not be written in place, the same is
//! done before the next batch, since a part of it may have been written.
//!
//! `owner` identifies the owner of the copies: the number of the file, and the numbers of this
//! opening and of the previous one.

use cairn_codec::checksum::{xxh3_64, xxh3_64_seeded};
use cairn_vfs::File;
use cairn_vfs::memory::Buffer;

use crate::error::{Error, Result};
use crate::format::{Format, verify};
use crate::staging::BATCH;
use crate::write_ahead::Lsn;

const MAGIC: &[u8; 8] = b"CAIRNDW\0";
/// The version of the double writes that this build writes and reads.
const VERSION: u32 = 2;
const BLOCK: usize = 4096;
const HEADER: usize = 24;
const ENTRY: usize = 16;

/// Offset of the log position.
const LOGGED: usize = BLOCK - 16;
/// Offset of the owner.
const OWNER: usize = LOGGED - 24;

const _: () = assert!(HEADER + ENTRY * BATCH <= OWNER);
const _: () = assert!(OWNER + size_of::<Owner>() == LOGGED && LOGGED + 16 == BLOCK);
const _: () = assert!(MAGIC.len() + 4 * 4 == HEADER);

/// Returns the maximum size of a double write for pages of `page_size` bytes, for callers that
/// reserve the space in advance.
pub fn double_write_bytes(page_size: usize) -> u64 {
    (BLOCK + BATCH * page_size) as u64
}

/// The owner of the copies in a double write. Zeros if unspecified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owner {
    /// The file's random number, constant for its whole life.
    pub file: u64,
    /// The random number of this opening of the file.
    pub session: u64,
    /// The number of the opening that the file itself recorded before this one. The file still
    /// belongs to that opening until the new number is written in place.
    pub before: u64,
}

/// The content of a double write, for readers that have not opened its file. Reading changes
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copies {
    /// The owner of the copies.
    pub owner: Owner,
    /// How far the log was durable when they were written.
    pub logged: Lsn,
    page_size: usize,
    /// Page numbers and checksums of the copies, in order.
    entries: Vec<(u32, u64)>,
}

impl Copies {
    /// Reads a double write. Returns `None` if it was never used, or was torn before any of its
    /// pages was written in place.
    ///
    /// Errors: file system errors; [`Error::Unsupported`] for another version; [`Error::Invalid`]
    /// for another page size.
    pub fn read(file: &dyn File, page_size: usize) -> Result<Option<Copies>> {
        if file.len()? < BLOCK as u64 {
            return Ok(None);
        }
        let mut block = vec![0; BLOCK];
        file.read_exact_at(&mut block, 0)?;
        let (content, check) = block.split_at(BLOCK - 8);
        if content.get(..8) != Some(MAGIC) || u64_at(check, 0) != xxh3_64(content) {
            return Ok(None);
        }
        match u32_at(content, 8) {
            2 => Copies::decode_2(file, content, page_size).map(Some),
            other => Err(Error::Unsupported {
                file: file.path().to_owned(),
                what: format!("it is a double write of version {other}; this build reads version {VERSION}"),
            }),
        }
    }

    /// Decodes the block of version 2, whose checksum matches.
    fn decode_2(file: &dyn File, content: &[u8], page_size: usize) -> Result<Copies> {
        let size = u32_at(content, 12);
        if size as usize != page_size {
            return Err(Error::invalid(format!(
                "{} is a double write for pages of {size} bytes, expected {page_size} bytes",
                file.path().display()
            )));
        }
        let entries = content.get(HEADER..OWNER).unwrap_or_default().chunks_exact(ENTRY);
        let entries = entries.take(u32_at(content, 16) as usize);
        Ok(Copies {
            owner: Owner {
                file: u64_at(content, OWNER),
                session: u64_at(content, OWNER + 8),
                before: u64_at(content, OWNER + 16),
            },
            logged: Lsn(u64_at(content, LOGGED)),
            page_size,
            entries: entries.map(|entry| (u32_at(entry, 0), u64_at(entry, 8))).collect(),
        })
    }

    /// Returns the copy of a page from `file`, from which `self` was read; `None` when there is no
    /// copy, or it is torn. Errors: file system errors.
    pub fn page(&self, file: &dyn File, page: u32) -> Result<Option<Vec<u8>>> {
        let Some(at) = self.entries.iter().position(|&(other, _)| other == page) else { return Ok(None) };
        let mut copy = vec![0; self.page_size];
        Ok(self.copy(file, at, &mut copy)?.then_some(copy))
    }

    /// Reads a copy. Returns false when it is torn or past the file's end.
    fn copy(&self, file: &dyn File, at: usize, copy: &mut [u8]) -> Result<bool> {
        let Some(&(number, check)) = self.entries.get(at) else { return Ok(false) };
        debug_assert!(copy.len() == self.page_size);
        let start = BLOCK as u64 + (at * self.page_size) as u64;
        if start + self.page_size as u64 > file.len()? {
            return Ok(false);
        }
        file.read_exact_at(copy, start)?;
        Ok(xxh3_64_seeded(copy, u64::from(number)) == check)
    }
}

/// The double-write journal of one file.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Box<dyn File>,
    page_size: usize,
    block: Buffer,
    /// True if pages were written in place since the file was last synced, so that the current
    /// batch is still needed.
    is_needed: bool,
    owner: Owner,
    logged: Lsn,
    /// True if some of these pages may be partly written.
    is_torn: bool,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    debug_assert!(at + value.len() <= bytes.len(), "{} bytes at {at} of {}", value.len(), bytes.len());
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

impl Journal {
    /// Opens a journal and restores the pages of its copies. Errors: those of either file;
    /// [`Error::Invalid`] for the journal of a file with another page size or another owner.
    pub(crate) fn open(
        journal: Box<dyn File>,
        file: &dyn File,
        page_size: usize,
        format: Format,
        owner: Owner,
    ) -> Result<Self> {
        let block = Buffer::new(BLOCK).map_err(Error::memory("the double write"))?;
        let mut journal = Journal {
            file: journal,
            page_size,
            block,
            is_needed: false,
            owner,
            logged: Lsn::NONE,
            is_torn: false,
        };
        if journal.restore(file, format)? {
            file.sync_data()?;
        }
        Ok(journal)
    }

    /// Writes the sound copies over their pages. Returns true when there were any; they are durable
    /// after a sync.
    fn restore(&mut self, file: &dyn File, format: Format) -> Result<bool> {
        let Some(copies) = Copies::read(&*self.file, self.page_size)? else { return Ok(false) };
        if copies.owner.file != self.owner.file {
            return Err(Error::invalid(format!(
                "{} is not the double write of {}: it belongs to file {:016x}, expected {:016x}",
                self.file.path().display(),
                file.path().display(),
                copies.owner.file,
                self.owner.file
            )));
        }
        self.logged = self.logged.max(copies.logged);
        self.write_copies(&copies, file, format)
    }

    /// Like [`Journal::restore`], for copies known to belong to this file.
    fn write_copies(&self, copies: &Copies, file: &dyn File, format: Format) -> Result<bool> {
        let page_size = self.page_size;
        let page = || Buffer::new(page_size).map_err(Error::memory("a page of the double write"));
        let (mut copy, mut there, mut has_written) = (page()?, page()?, false);
        let len = file.len()?;
        for (at, &(number, _)) in copies.entries.iter().enumerate() {
            if !copies.copy(&*self.file, at, &mut copy)? {
                continue;
            }
            let offset = u64::from(number) * page_size as u64;
            if format == Format::Checked {
                let Ok(lsn) = verify(&copy, number) else { continue };
                if offset + page_size as u64 <= len {
                    file.read_exact_at(&mut there, offset)?;
                    // The last batch holds the newest versions. A copy older than the page in place
                    // belongs to an earlier batch.
                    if verify(&there, number).is_ok_and(|there| there > lsn) {
                        continue;
                    }
                }
            }
            file.write_all_at(&copy, offset)?;
            has_written = true;
        }
        Ok(has_written)
    }

    /// Sets the owner to record from the next batch on.
    pub(crate) fn set_owner(&mut self, owner: Owner) {
        self.owner = owner;
    }

    /// Writes and syncs copies of `pages`, which are contiguous in `bytes`; the log is durable up
    /// to `logged`. Afterwards the caller may write the pages in place, and must keep the journal
    /// locked until that is done. `sync` makes `file` durable. Errors: those of either file;
    /// nothing may be written in place then.
    pub(crate) fn write(
        &mut self,
        pages: &[u32],
        bytes: &[u8],
        logged: Lsn,
        (file, format): (&dyn File, Format),
        sync: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        assert!(!pages.is_empty() && pages.len() <= BATCH, "a batch of {} pages", pages.len());
        assert!(
            bytes.len() == pages.len() * self.page_size,
            "{} bytes for {} pages",
            bytes.len(),
            pages.len()
        );
        if self.is_torn {
            self.restore(file, format)?;
            self.is_torn = false;
        }
        if self.is_needed {
            sync()?;
            self.is_needed = false;
        }
        debug_assert!(!self.is_needed && !self.is_torn, "copies are replaced that are still needed");
        self.logged = self.logged.max(logged);
        self.fill_block(pages, bytes);
        self.file.write_all_at(bytes, BLOCK as u64)?;
        self.file.write_all_at(&self.block, 0)?;
        self.file.sync_data()?;
        self.is_needed = true;
        Ok(())
    }

    /// Returns how far the log was durable when the last batch was written.
    pub(crate) fn logged(&self) -> Lsn {
        self.logged
    }

    /// Records that a page of the batch could not be written in place.
    pub(crate) fn note_failure(&mut self) {
        debug_assert!(self.is_needed, "a page was written in place without a copy");
        self.is_torn = true;
    }

    /// Clears the batch, so that its pages are not restored later. Makes the file durable first,
    /// using `sync`, because some of the pages may remain in use.
    pub(crate) fn clear(
        &mut self,
        (file, format): (&dyn File, Format),
        sync: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if self.is_torn {
            self.restore(file, format)?;
            self.is_torn = false;
        }
        sync()?;
        self.is_needed = false;
        self.fill_block(&[], &[]);
        self.file.write_all_at(&self.block, 0)?;
        Ok(self.file.sync_data()?)
    }

    fn fill_block(&mut self, pages: &[u32], bytes: &[u8]) {
        debug_assert!(bytes.len() == pages.len() * self.page_size, "a page without a copy, or the reverse");
        debug_assert!(pages.is_sorted_by(|a, b| a < b), "a page has two copies: {pages:?}");
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
        for (at, word) in [self.owner.file, self.owner.session, self.owner.before].into_iter().enumerate() {
            put(block, OWNER + 8 * at, &word.to_le_bytes());
        }
        put(block, LOGGED, &self.logged.0.to_le_bytes());
        let check = xxh3_64(&block[..BLOCK - 8]);
        put(block, BLOCK - 8, &check.to_le_bytes());
        debug_assert!(u64_at(block, LOGGED) == self.logged.0 && u64_at(block, OWNER) == self.owner.file);
        debug_assert!(u32_at(block, 16) as usize == pages.len() && u32_at(block, 8) == VERSION);
    }
}
