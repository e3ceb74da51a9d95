//! The double write: copies of pages that are about to be written, so that a page torn by a power
//! loss is mended.
//!
//! ```text
//!   0                                                4096            4096 + page size
//!   | magic 8 | version 4 | page size 4 | count 4 | 0 4 | count x (page 4, 0 4, check 8) | 0 | owner 24 | logged 8 | check 8 |  page | page | ...
//! ```
//!
//! Little endian. The check of a page is XXH3 of its copy, seeded with its number; the block's last
//! eight bytes are XXH3 of all before.
//!
//! A batch is written here and synced before any of its pages is written in place, and the file is
//! synced before the next batch takes the place of this one. `logged` is how far the log was
//! durable then, which is beyond the last change of any page that was ever written. So at any
//! moment each page of the file is whole, or its copy here is. Opening writes the sound copies over
//! the pages and syncs them: they are the last that were written, and writing them again changes
//! nothing. It does so where the pages read back equal, too: after a process that was killed they
//! may be in the kernel's memory only, and after a sync that failed the kernel may never write them
//! by itself. The same is done before the next batch when a page could not be written in place: a
//! part of it may have been.
//!
//! `owner` says whose copies these are: the file's number, and the numbers of this opening and of
//! the one before.

use cairn_codec::checksum::{xxh3_64, xxh3_64_seeded};
use cairn_vfs::File;
use cairn_vfs::memory::Buffer;

use crate::error::{Error, Result};
use crate::format::{Format, verify};
use crate::write_ahead::Lsn;
use crate::write_back::BATCH;

const MAGIC: &[u8; 8] = b"CAIRNDW\0";
const VERSION: u32 = 2;
const BLOCK: usize = 4096;
const HEADER: usize = 24;
const ENTRY: usize = 16;

/// Where the log position is.
const LOGGED: usize = BLOCK - 16;
/// Where the owner is.
const OWNER: usize = LOGGED - 24;

const _: () = assert!(HEADER + ENTRY * BATCH <= OWNER);

/// The most bytes that the double write of a file with pages of `page_size` bytes takes, for
/// callers that reserve the space before they write.
pub fn double_write_bytes(page_size: usize) -> u64 {
    (BLOCK + BATCH * page_size) as u64
}

/// Whose copies a double write has. Zeros where nobody says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owner {
    /// The file's: random, the same for its whole life.
    pub file: u64,
    /// Of this opening of the file: random.
    pub session: u64,
    /// Of the opening that the file itself knew of before this one. Until the file says otherwise,
    /// in place, it is still of that.
    pub before: u64,
}

/// What a double write has, read by who has not opened its file. Changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copies {
    /// Whose they are.
    pub owner: Owner,
    /// How far the log was on stable storage when they were written.
    pub logged: Lsn,
    page_size: usize,
    /// Pages, and the checks of their copies, in the order of the copies.
    entries: Vec<(u32, u64)>,
}

impl Copies {
    /// Reads a double write; `None` for one that was never used, or torn before any of its pages
    /// was written in place.
    ///
    /// Errors: the file's; [`Error::Invalid`] for one of another version, or of pages of another
    /// size.
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
        let (version, size) = (u32_at(content, 8), u32_at(content, 12));
        if version != VERSION || size as usize != page_size {
            return Err(Error::invalid(format!(
                "{} is a double write of version {version} for pages of {size} bytes; expected version {VERSION} and {page_size} bytes",
                file.path().display()
            )));
        }
        let entries = content.get(HEADER..OWNER).unwrap_or_default().chunks_exact(ENTRY);
        let entries = entries.take(u32_at(content, 16) as usize);
        Ok(Some(Copies {
            owner: Owner {
                file: u64_at(content, OWNER),
                session: u64_at(content, OWNER + 8),
                before: u64_at(content, OWNER + 16),
            },
            logged: Lsn(u64_at(content, LOGGED)),
            page_size,
            entries: entries.map(|entry| (u32_at(entry, 0), u64_at(entry, 8))).collect(),
        }))
    }

    /// The copy of a page, as it is in `file`, which these were read from; `None` where there is
    /// none, or it is torn. Errors: the file's.
    pub fn page(&self, file: &dyn File, page: u32) -> Result<Option<Vec<u8>>> {
        let Some(at) = self.entries.iter().position(|&(other, _)| other == page) else { return Ok(None) };
        let mut copy = vec![0; self.page_size];
        Ok(self.copy(file, at, &mut copy)?.then_some(copy))
    }

    /// Reads a copy; false where it is torn, or behind the file's end.
    fn copy(&self, file: &dyn File, at: usize, copy: &mut [u8]) -> Result<bool> {
        let Some(&(number, check)) = self.entries.get(at) else { return Ok(false) };
        let start = BLOCK as u64 + (at * self.page_size) as u64;
        if start + self.page_size as u64 > file.len()? {
            return Ok(false);
        }
        file.read_exact_at(copy, start)?;
        Ok(xxh3_64_seeded(copy, u64::from(number)) == check)
    }
}

/// The journal of one file.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Box<dyn File>,
    page_size: usize,
    block: Buffer,
    /// Pages were written in place since the file was synced: the batch here is still needed.
    is_needed: bool,
    owner: Owner,
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
    /// Opens a journal and mends the pages that it has copies of. Errors: those of either file;
    /// [`Error::Invalid`] for the journal of a file with other pages, or of another owner's file.
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
        if journal.mend(file, format)? {
            file.sync_data()?;
        }
        Ok(journal)
    }

    /// Writes the sound copies over their pages. True when there were any: they are durable after a
    /// sync.
    fn mend(&mut self, file: &dyn File, format: Format) -> Result<bool> {
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

    /// As [`Journal::mend`], for copies that are this file's.
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
                    // The last batch has what is newest. Copies that are older than what is there
                    // are of an earlier one.
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

    /// Says from the next batch on that the copies are another opening's.
    pub(crate) fn set_owner(&mut self, owner: Owner) {
        self.owner = owner;
    }

    /// Writes and syncs copies of `pages`, which lie in `bytes` one after the other; the log is
    /// durable up to `logged`. They may be written in place afterwards, by who keeps the journal
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

    /// Forgets the batch: its pages are not to come back. The file is made durable first, by
    /// `sync`, since some of them may stay.
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
        for (at, word) in [self.owner.file, self.owner.session, self.owner.before].into_iter().enumerate() {
            put(block, OWNER + 8 * at, &word.to_le_bytes());
        }
        put(block, LOGGED, &self.logged.0.to_le_bytes());
        let check = xxh3_64(&block[..BLOCK - 8]);
        put(block, BLOCK - 8, &check.to_le_bytes());
    }
}
