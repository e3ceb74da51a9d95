//! Files whose pages are in a pool.

use std::fmt;
use std::path::Path;
use std::sync::Arc as StdArc;

use cairn_vfs::File;
use cairn_vfs::sync::atomic::{AtomicBool, Ordering::*};
use cairn_vfs::sync::{Arc, Mutex, lock};

use crate::background::Background;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::guard::{Exclusive, Shared};
use crate::journal::{Journal, Owner};
use crate::optimistic::{Changed, Optimistic};
use crate::page::PageId;
use crate::pool::Inner;
use crate::scan::Scan;
use crate::translation::Translation;
use crate::write_ahead::{Lsn, WriteAhead};

/// How a file's pages are kept.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct FileOptions {
    /// What is in its pages.
    pub format: Format,
    /// The log that its changes are described in. Pages are not written before it is durable up to
    /// their change.
    pub write_ahead: Option<StdArc<dyn WriteAhead>>,
    /// A file for copies of pages that are about to be written, so that a page torn by a power loss
    /// is mended when the file is opened. It is the file's own; without one, or full page images in
    /// the log, a torn page is found (by its check) and lost.
    pub double_write: Option<Box<dyn File>>,
    /// Whose file it is, for the double write. One that has copies of another owner's file is
    /// refused.
    pub owner: Owner,
}

impl FileOptions {
    /// Checked pages, no log, no double write.
    pub fn new() -> Self {
        FileOptions::default()
    }

    /// What is in its pages.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// The log that its changes are described in.
    #[must_use]
    pub fn write_ahead(mut self, log: StdArc<dyn WriteAhead>) -> Self {
        self.write_ahead = Some(log);
        self
    }

    /// Where pages are written before they are written in place: see
    /// [`FileOptions::double_write`](field@FileOptions::double_write).
    #[must_use]
    pub fn double_write(mut self, journal: Box<dyn File>) -> Self {
        self.double_write = Some(journal);
        self
    }

    /// Whose file it is: see [`FileOptions::owner`](field@FileOptions::owner).
    #[must_use]
    pub fn owner(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }
}

/// A file in a pool. Dropping it writes what is dirty, as far as it can; [`PoolFile::close`] also
/// says whether that went well.
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
    /// Ends with the last file and the last handle of the pool.
    pub(crate) _background: Option<Arc<Background>>,
}

/// What the pool knows of a file.
pub struct FileState {
    /// Its number in the pool. No other file has it before nobody has this one any more, closed or
    /// not.
    pub(crate) number: u32,
    pub(crate) pool: Arc<Inner>,
    pub(crate) translation: Translation,
    pub(crate) format: Format,
    pub(crate) file: Box<dyn File>,
    pub(crate) write_ahead: Option<StdArc<dyn WriteAhead>>,
    pub(crate) journal: Option<Mutex<Journal>>,
    /// One sync at a time, until it is known how it went: the kernel tells of a failure once, and a
    /// second sync beside the first would say that all is well.
    syncing: Mutex<()>,
    poison: Mutex<Option<Arc<Error>>>,
    is_poisoned: AtomicBool,
}

/// Attempts to read a page without holding it, before it is held.
const OPTIMISTIC_ATTEMPTS: u32 = 8;

impl PoolFile {
    /// A page to read, held with others. Read from the disk when it is not resident.
    ///
    /// Errors: [`Error::NotThere`] past the file's end, [`Error::Corruption`], [`Error::Vfs`],
    /// [`Error::Exhausted`] when every frame is pinned, [`Error::Timeout`] when somebody keeps the
    /// page; and those of writing, when no clean page could be evicted.
    #[inline]
    pub fn read(&self, page: u32) -> Result<Shared<'_>> {
        self.state.shared(page)
    }

    /// A page to change, held alone. Errors: as [`PoolFile::read`].
    #[inline]
    pub fn write(&self, page: u32) -> Result<Exclusive<'_>> {
        self.state.exclusive(page)
    }

    /// A page as new: of zeros, dirty, held alone. What was on the disk or in memory there is not
    /// read and is gone. May lie beyond the file's end, which grows when the page is written.
    ///
    /// Errors: as [`PoolFile::read`], but for those of reading it.
    pub fn create(&self, page: u32) -> Result<Exclusive<'_>> {
        self.state.create(page)
    }

    /// A page to look at without holding it: see [`Optimistic`]. Errors: as [`PoolFile::read`].
    #[inline]
    pub fn optimistic(&self, page: u32) -> Result<Optimistic<'_>> {
        self.state.optimistic(page)
    }

    /// Has the processor bring some bytes of a page's payload into its caches, if the page is in
    /// memory: for who is going to read them soon. Nothing is read from the disk, and no use of the
    /// page is noted. Cost: some nanoseconds.
    #[inline]
    pub fn hint(&self, page: u32, bytes: std::ops::Range<usize>) {
        self.state.hint(page, bytes);
    }

    /// Reads from a page without holding it, again when it was changed meanwhile, and with it held
    /// when that happens too often. `read` may be called several times, and what it returns is
    /// thrown away all but the last time; it must not believe what it reads for more than
    /// arithmetic.
    ///
    /// Errors: as [`PoolFile::read`]; [`Error::Corruption`] when `read` says [`Changed`] of a page
    /// that is held, because an offset lies outside.
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
        self.state.read_held(page, read)
    }

    /// Pages in order, read ahead in batches. See [`Scan`].
    pub fn scan(&self, pages: std::ops::Range<u32>) -> Scan<'_> {
        Scan::new(&self.state, pages)
    }

    /// Reads those pages in that are not resident, a batch at a time, without holding them. A hint:
    /// pages that cannot be read, or that there is no frame for without waiting, are left out, and
    /// whoever asks for them is told why. Says how many were read.
    pub fn prefetch(&self, pages: std::ops::Range<u32>) -> usize {
        self.state.prefetch(pages)
    }

    /// As [`PoolFile::prefetch`], for pages wherever they are: the leaves that an index is going to
    /// visit, say. They are read at the same time where the system can do that.
    pub fn prefetch_pages(&self, pages: &[u32]) -> usize {
        self.state.prefetch(pages.iter().copied())
    }

    /// True when the page is in memory now.
    pub fn is_resident(&self, page: u32) -> bool {
        self.state.translation.frame(page).is_some()
    }

    /// Writes every page that was dirty when this was called. Durable after [`PoolFile::sync`].
    ///
    /// Errors: the first of [`Error::Log`], [`Error::Vfs`], [`Error::Poisoned`]; pages that could
    /// not be written stay dirty.
    pub fn flush(&self) -> Result<()> {
        self.state.flush()
    }

    /// Takes room on the disk for pages that will be created, so that writing them does not meet a
    /// full disk. The file's length stays. Does nothing where the file system has no such thing.
    /// Errors: [`Error::Vfs`], of a full disk among others; then nothing was taken.
    pub fn reserve(&self, pages: std::ops::Range<u32>) -> Result<()> {
        let (start, end) = (self.state.offset(pages.start), self.state.offset(pages.end));
        match self.state.file.allocate(start, end.saturating_sub(start)) {
            Err(error) if error.kind() == cairn_vfs::ErrorKind::Unsupported => Ok(()),
            done => Ok(done?),
        }
    }

    /// Gives back the room that [`PoolFile::reserve`] took behind the file's end and that has no
    /// pages yet.
    ///
    /// Errors: [`Error::Vfs`].
    pub fn give_back_reserved(&self) -> Result<()> {
        Ok(self.state.file.set_len(self.state.file.len()?)?)
    }

    /// Writes a page if it is dirty. With a double write its copy is durable when this returns.
    /// Errors: as [`PoolFile::flush`].
    pub fn flush_page(&self, page: u32) -> Result<()> {
        self.state.flush_page(page)
    }

    /// Says from now on that what is written is another opening's, or another owner's: see
    /// [`Owner`].
    pub fn set_owner(&self, owner: Owner) {
        if let Some(journal) = &self.state.journal {
            lock(journal).set_owner(owner);
        }
    }

    /// Makes what was written durable (`fdatasync`). An error poisons the file: it is not written
    /// any more.
    pub fn sync(&self) -> Result<()> {
        self.state.sync()
    }

    /// Cuts the file to its first `pages` pages. Waits for guards of those beyond. What was dirty
    /// there is gone. Nobody should ask for those beyond meanwhile: they may get what was there.
    ///
    /// Errors: [`Error::Timeout`] when somebody keeps a page, [`Error::Vfs`].
    pub fn truncate(&self, pages: u32) -> Result<()> {
        // Before anything is dropped that could not be cut off then.
        self.state.check_poison()?;
        self.state.drop_pages(pages)?;
        if let Some(journal) = &self.state.journal {
            // Or opening the file would write pages back that are cut off now.
            let file = (&*self.state.file, self.state.format);
            lock(journal).clear(file, || self.state.sync())?;
        }
        Ok(self.state.file.set_len(u64::from(pages) * self.state.pool.arena.page_size() as u64)?)
    }

    /// Its length on the disk, in whole pages. Pages that were created beyond and not written yet
    /// are not in it.
    pub fn pages_on_disk(&self) -> Result<u32> {
        let pages = self.state.file.len()? / self.state.pool.arena.page_size() as u64;
        Ok(u32::try_from(pages).unwrap_or(u32::MAX))
    }

    /// How far the log was durable when pages were last written, as the double write remembers it:
    /// a log that ends before has lost something. [`Lsn::NONE`] without a double write, and where
    /// nothing is known.
    pub fn logged(&self) -> Lsn {
        self.state.journal.as_ref().map_or(Lsn::NONE, |journal| lock(journal).logged())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.state.file.path()
    }

    /// Its number: what [`PageId::file`] says of its pages.
    pub fn number(&self) -> u32 {
        self.state.number
    }

    /// Writes what is dirty, makes it durable, and closes the file. Errors: as [`PoolFile::flush`]
    /// and [`PoolFile::sync`]; the file is closed all the same.
    pub fn close(self) -> Result<()> {
        self.flush()?;
        self.sync()
    }
}

impl FileState {
    pub(crate) fn new(
        number: u32,
        pool: Arc<Inner>,
        file: Box<dyn File>,
        journal: Option<Journal>,
        options: FileOptions,
    ) -> Self {
        FileState {
            number,
            pool,
            translation: Translation::new(),
            format: options.format,
            file,
            write_ahead: options.write_ahead,
            journal: journal.map(Mutex::new),
            syncing: Mutex::new(()),
            poison: Mutex::new(None),
            is_poisoned: AtomicBool::new(false),
        }
    }

    pub(crate) fn id(&self, page: u32) -> PageId {
        PageId::new(self.number, page)
    }

    pub(crate) fn offset(&self, page: u32) -> u64 {
        u64::from(page) * self.pool.arena.page_size() as u64
    }

    /// Errors: [`Error::Poisoned`] after a failed sync.
    pub(crate) fn check_poison(&self) -> Result<()> {
        if !self.is_poisoned.load(Acquire) {
            return Ok(());
        }
        let cause = lock(&self.poison).clone();
        cause.map_or(Ok(()), |cause| Err(Error::Poisoned { file: self.file.path().to_owned(), cause }))
    }

    /// Remembers a failed sync: nothing is written any more.
    fn poison(&self, error: Error) -> Error {
        lock(&self.poison).get_or_insert_with(|| Arc::new(error.clone()));
        self.is_poisoned.store(true, Release);
        error
    }

    pub(crate) fn sync(&self) -> Result<()> {
        let _one = lock(&self.syncing);
        self.check_poison()?;
        self.file.sync_data().map_err(|error| self.poison(error.into()))
    }
}

impl Drop for PoolFile {
    fn drop(&mut self) {
        // Who wants to know calls `close`.
        let _ = self.state.flush();
        self.state.forget();
    }
}

impl Drop for FileState {
    fn drop(&mut self) {
        self.pool.give_back_number(self.number);
    }
}

impl fmt::Debug for PoolFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.state, f)
    }
}

impl fmt::Debug for FileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolFile")
            .field("number", &self.number)
            .field("path", &self.file.path())
            .finish_non_exhaustive()
    }
}
