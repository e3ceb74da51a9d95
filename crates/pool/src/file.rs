//! Files whose pages are cached in a pool.

use std::fmt;
use std::path::Path;
use std::sync::Arc as StdArc;

use cairn_vfs::File;
use cairn_vfs::sync::{Arc, lock};

use crate::background::Background;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::format::Format;
use crate::guard::{Exclusive, Shared};
use crate::journal::Owner;
use crate::optimistic::{Changed, Optimistic};
#[cfg(doc)]
use crate::page::PageId;
use crate::scan::Scan;
use crate::state::FileState;
use crate::write_ahead::{Lsn, WriteAhead};

/// Options of a file in a pool.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct FileOptions {
    /// The page format.
    pub format: Format,
    /// The log that describes the file's changes. A page is written only after the log is durable
    /// up to its last change.
    pub write_ahead: Option<StdArc<dyn WriteAhead>>,
    /// A file for copies of pages that are about to be written, so that a page torn by a power loss
    /// can be restored when the file is opened. Each file needs its own. Without a double write or
    /// full page images in the log, a torn page is detected by its checksum but lost.
    pub double_write: Option<Box<dyn File>>,
    /// The owner of the file, recorded in the double write. A double write with copies of another
    /// owner's file is refused.
    pub owner: Owner,
}

impl FileOptions {
    /// The default: checked pages, no log, no double write.
    pub fn new() -> Self {
        FileOptions::default()
    }

    /// Sets the page format.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Sets the log that describes the file's changes.
    #[must_use]
    pub fn write_ahead(mut self, log: StdArc<dyn WriteAhead>) -> Self {
        self.write_ahead = Some(log);
        self
    }

    /// Sets the file for the double write: see
    /// [`FileOptions::double_write`](field@FileOptions::double_write).
    #[must_use]
    pub fn double_write(mut self, journal: Box<dyn File>) -> Self {
        self.double_write = Some(journal);
        self
    }

    /// Sets the owner: see [`FileOptions::owner`](field@FileOptions::owner).
    #[must_use]
    pub fn owner(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }
}

/// A file in a pool. Dropping it writes dirty pages on a best-effort basis. [`PoolFile::close`]
/// also reports errors.
///
/// ```
/// use cairn_pool::{FileOptions, Lsn, Pool};
/// use cairn_vfs::{Fs, MemFs, OpenOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::builder().frames(64).build()?;
/// let file = MemFs::new().open("table".as_ref(), OpenOptions::create())?;
/// let file = pool.open(file, FileOptions::new())?;
/// file.create(0)?.payload_mut(Lsn::NONE)[..5].copy_from_slice(b"hello");
/// assert_eq!(&file.read(0)?[..5], b"hello");
/// assert_eq!(file.read_with(0, |page| page.u8(1))?, b'e');
/// file.close()?;
/// # Ok(()) }
/// ```
pub struct PoolFile {
    pub(crate) state: Arc<FileState>,
    /// Stops the background writer with the last file and the last handle of the pool.
    pub(crate) _background: Option<Arc<Background>>,
}

/// Optimistic attempts to read a page before it is latched.
const OPTIMISTIC_ATTEMPTS: u32 = 8;

impl PoolFile {
    /// Returns a page for reading, latched in shared mode. Reads it from disk if it is not
    /// resident.
    ///
    /// Errors: [`Error::BeyondEnd`] past the file's end, [`Error::Corruption`], [`Error::Vfs`],
    /// [`Error::Exhausted`] when every frame is pinned, [`Error::Timeout`] when another thread
    /// keeps the page latched; and those of writing, when no clean page can be evicted.
    #[inline]
    pub fn read(&self, page: u32) -> Result<Shared<'_>> {
        self.state.shared(page)
    }

    /// Returns a page for writing, latched in exclusive mode. Errors: those of [`PoolFile::read`].
    #[inline]
    pub fn write(&self, page: u32) -> Result<Exclusive<'_>> {
        self.state.exclusive(page)
    }

    /// Returns a new page of zeros, dirty and latched in exclusive mode. Existing content of the
    /// page on disk or in memory is not read and is lost. The page may lie beyond the file's end;
    /// the file grows when the page is written.
    ///
    /// Errors: those of [`PoolFile::read`], except for those of reading the page.
    pub fn create(&self, page: u32) -> Result<Exclusive<'_>> {
        self.state.create(page)
    }

    /// Returns a view of a page for reading without a latch: see [`Optimistic`]. Errors: those of
    /// [`PoolFile::read`].
    #[inline]
    pub fn optimistic(&self, page: u32) -> Result<Optimistic<'_>> {
        self.state.optimistic(page)
    }

    /// Prefetches some bytes of a page's payload into the processor cache if the page is resident,
    /// for callers that are about to read them. Never reads from disk, and does not count as a use
    /// of the page. Costs a few nanoseconds.
    #[inline]
    pub fn hint(&self, page: u32, bytes: std::ops::Range<usize>) {
        self.state.hint(page, bytes);
    }

    /// Reads from a page optimistically. Retries when the page changed meanwhile, and latches it
    /// when that happens too often. `read` may be called several times, and only its last result is
    /// used. It must tolerate inconsistent values and use them for nothing but arithmetic.
    ///
    /// Errors: those of [`PoolFile::read`]; [`Error::Corruption`] when `read` returns [`Changed`]
    /// for a latched page, because an offset is out of range.
    #[inline]
    pub fn read_with<R>(
        &self,
        page: u32,
        mut read: impl FnMut(&Optimistic<'_>) -> Result<R, Changed>,
    ) -> Result<R> {
        for _ in 0..OPTIMISTIC_ATTEMPTS {
            let view = self.state.optimistic(page)?;
            if let Ok(value) = read(&view)
                && view.validate().is_ok()
            {
                return Ok(value);
            }
        }
        self.state.read_latched(page, read)
    }

    /// Iterates over pages in order, reading ahead in batches. See [`Scan`].
    pub fn scan(&self, pages: std::ops::Range<u32>) -> Scan<'_> {
        Scan::new(&self.state, pages)
    }

    /// Reads non-resident pages in, a batch at a time, without latching them afterwards. A hint:
    /// pages that cannot be read, or for which no frame is free without waiting, are skipped, and a
    /// later request for them reports the error. Returns the number of pages read.
    pub fn prefetch(&self, pages: std::ops::Range<u32>) -> usize {
        self.state.prefetch(pages)
    }

    /// Like [`PoolFile::prefetch`], for pages in any places, such as the leaves that an index is
    /// about to visit. Reads them concurrently where the system can.
    pub fn prefetch_pages(&self, pages: &[u32]) -> usize {
        self.state.prefetch(pages.iter().copied())
    }

    /// Returns true when the page is in memory.
    pub fn is_resident(&self, page: u32) -> bool {
        self.state.translation.frame(page).is_some()
    }

    /// Writes every page that is dirty at the time of the call. They are durable after
    /// [`PoolFile::sync`].
    ///
    /// Errors: the first of [`Error::Log`], [`Error::Vfs`], [`Error::Poisoned`]. Pages that could
    /// not be written stay dirty.
    pub fn flush(&self) -> Result<()> {
        self.state.flush()
    }

    /// Reserves disk space for pages that will be created, so that writing them does not fail on a
    /// full disk. The file's length does not change. Does nothing where the file system does not
    /// support it. Errors: [`Error::Vfs`], for example on a full disk; nothing is reserved then.
    pub fn reserve(&self, pages: std::ops::Range<u32>) -> Result<()> {
        let (start, end) = (self.state.offset(pages.start), self.state.offset(pages.end));
        match self.state.file.allocate(start, end.saturating_sub(start)) {
            Err(error) if error.kind() == cairn_vfs::ErrorKind::Unsupported => Ok(()),
            done => Ok(done?),
        }
    }

    /// Releases space that [`PoolFile::reserve`] reserved past the file's end and that holds no
    /// pages yet.
    ///
    /// Errors: [`Error::Vfs`].
    pub fn release_reserved(&self) -> Result<()> {
        Ok(self.state.file.set_len(self.state.file.len()?)?)
    }

    /// Writes a page if it is dirty. With a double write, its copy is durable on return. Errors:
    /// those of [`PoolFile::flush`].
    pub fn flush_page(&self, page: u32) -> Result<()> {
        self.state.flush_page(page)
    }

    /// Sets the owner to record with later writes: another opening, or another owner. See
    /// [`Owner`].
    pub fn set_owner(&self, owner: Owner) {
        if let Some(journal) = &self.state.journal {
            lock(journal).set_owner(owner);
        }
    }

    /// Makes written pages durable (`fdatasync`). An error poisons the file: its pages are not
    /// written any more, nor read from disk. Resident pages stay readable.
    pub fn sync(&self) -> Result<()> {
        self.state.sync()
    }

    /// Truncates the file to its first `pages` pages. Waits for guards of later pages and discards
    /// their unwritten changes. Callers should not request later pages meanwhile, since they may
    /// get the old content.
    ///
    /// Errors: [`Error::Timeout`] when another thread keeps a page latched, [`Error::Vfs`].
    pub fn truncate(&self, pages: u32) -> Result<()> {
        // Check before dropping pages that could not be truncated afterwards.
        self.state.check_poison()?;
        self.state.drop_pages(pages)?;
        if let Some(journal) = &self.state.journal {
            // Otherwise, opening the file would write truncated pages back from the journal.
            let file = (&*self.state.file, self.state.format);
            lock(journal).clear(file, || self.state.sync())?;
        }
        Ok(self.state.file.set_len(u64::from(pages) * self.state.pool.arena.page_size() as u64)?)
    }

    /// Returns the file's length on disk in whole pages. Pages that were created past the end and
    /// not written yet do not count.
    pub fn pages_on_disk(&self) -> Result<u32> {
        let pages = self.state.file.len()? / self.state.pool.arena.page_size() as u64;
        Ok(u32::try_from(pages).unwrap_or(u32::MAX))
    }

    /// Returns how far the log was durable when pages were last written, as recorded in the double
    /// write. A log that ends earlier has lost records. [`Lsn::NONE`] without a double write, and
    /// where nothing is recorded.
    pub fn logged(&self) -> Lsn {
        self.state.journal.as_ref().map_or(Lsn::NONE, |journal| lock(journal).logged())
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.state.file.path()
    }

    /// Returns the number of the file, which is the [`PageId::file`] of its pages.
    pub fn number(&self) -> u32 {
        self.state.number
    }

    /// Writes dirty pages, makes them durable, and closes the file. Errors: those of
    /// [`PoolFile::flush`] and [`PoolFile::sync`]; the file is closed anyway.
    pub fn close(self) -> Result<()> {
        self.flush()?;
        self.sync()
    }
}

impl Drop for PoolFile {
    fn drop(&mut self) {
        // Callers that need the result call `close`.
        let _ = self.state.flush();
        self.state.remove_from_pool();
    }
}

impl fmt::Debug for PoolFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.state, f)
    }
}
