//! The main file: its pages, and the list of free ones.
//!
//! ```text
//!   page 0    "CAIRNSQL" | version u32 | page size u32 | pages u32
//!             | first free page u32, 0 for none | the files that belong to it (`file_identity.rs`)
//!   free      3 u8 | 0 x 3 | next free page u32
//! ```

use std::path::Path;
use std::sync::Arc;

use cairn_pool::{Changed, Exclusive, Lsn, PAGE_HEADER_LEN, PoolFile, stamp};
use cairn_vfs::sync::atomic::{AtomicU32, Ordering};
use cairn_vfs::sync::{Mutex, lock};
use cairn_vfs::{File, Operation, ensure};

use super::change::Change;
use super::file_identity::{self, FileIdentity};
use super::log::Log;
use super::node::{INNER, LEAF};
use super::ops::Op;
use super::packed::PACKED;
use super::reclaiming::is_reclaiming;
use super::source::Source;
use super::version::{self, Header, MAGIC, PAGE_SIZE_AT, VERSION, VERSION_AT};
use crate::{Error, Result, hook};

const PAGES: usize = 16;
const FREE: usize = 20;
const META_LEN: usize = 24;
const FREE_PAGE: u8 = 3;
/// The fields of page 0 follow one another.
const _: () = assert!(PAGES == PAGE_SIZE_AT + size_of::<u32>() && FREE == PAGES + size_of::<u32>());
const _: () = assert!(META_LEN == FREE + size_of::<u32>() && META_LEN == file_identity::AT);
/// No page of a free list is taken for a node, or for a part of a long value.
const _: () = assert!(FREE_PAGE != LEAF && FREE_PAGE != INNER && FREE_PAGE != PACKED);
/// Number of pages for which disk space is allocated at a time.
const RESERVED: u32 = 16;
const _: () = assert!(RESERVED > 0);
/// Number of attempts to read the list of free pages while others change it.
const FREE_LIST_ATTEMPTS: usize = 8;

/// The fields of page 0 that change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Number of pages of the file, including this one.
    pub(crate) pages: u32,
    /// The first free page; 0 for none.
    pub(crate) free: u32,
}

pub(crate) fn put_meta(payload: &mut [u8], meta: Meta) -> Result<(), Changed> {
    let place = payload.get_mut(PAGES..META_LEN).ok_or(Changed)?;
    let (pages, free) = place.split_at_mut(4);
    pages.copy_from_slice(&meta.pages.to_le_bytes());
    free.copy_from_slice(&meta.free.to_le_bytes());
    debug_assert!(
        payload.u32(PAGES) == Ok(meta.pages) && payload.u32(FREE) == Ok(meta.free),
        "{meta:?} is not read as it was written"
    );
    Ok(())
}

pub(crate) fn put_free(payload: &mut [u8], next: u32) -> Result<(), Changed> {
    debug_assert!(payload.len() >= META_LEN, "a page has {} bytes", payload.len());
    payload.fill(0);
    *payload.first_mut().ok_or(Changed)? = FREE_PAGE;
    payload.get_mut(4..8).ok_or(Changed)?.copy_from_slice(&next.to_le_bytes());
    Ok(())
}

/// Writes page 0 of an empty database. It fits, because pages have at least 4 KiB.
fn put_first_page(payload: &mut [u8], page_size: usize, identity: &FileIdentity) {
    for (at, bytes) in [
        (0, &MAGIC[..]),
        (VERSION_AT, &VERSION.to_le_bytes()),
        (PAGE_SIZE_AT, &(page_size as u32).to_le_bytes()),
    ] {
        if let Some(place) = payload.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
    let _ = put_meta(payload, Meta { pages: 1, free: 0 });
    let _ = identity.encode(payload);
}

/// Returns page 0 of an empty database as it is stored in the file.
pub(crate) fn first_page(page_size: usize) -> Vec<u8> {
    let mut page = vec![0; page_size];
    put_first_page(page.get_mut(PAGE_HEADER_LEN..).unwrap_or_default(), page_size, &FileIdentity::default());
    stamp(&mut page, 0, Lsn::NONE);
    debug_assert!(
        begins_database(Path::new(""), page.get(PAGE_HEADER_LEN..).unwrap_or_default(), page_size).is_ok(),
        "page 0 of a new database does not begin one"
    );
    page
}

/// Reads the payload of page 0 of a database with pages of this size. Errors:
/// [`Error::Unsupported`] for another version, [`Error::Corruption`] for other bytes.
pub(crate) fn begins_database(path: &Path, payload: &[u8], page_size: usize) -> Result<FileIdentity> {
    if let Some(Header { page_size: found, identity }) = version::read(path, payload)?
        && found as usize == page_size
    {
        return Ok(identity);
    }
    let what = format!(
        "it is not the first page of a database of version {VERSION} with pages of {page_size} bytes"
    );
    Err(Error::Corruption { file: path.to_owned(), page: 0, what })
}

/// Returns the page size stated in page 0 of a file, or `None` if the file is not a database. The
/// value is not verified; opening the file does that.
pub(crate) fn page_size_of(file: &dyn File) -> Result<Option<u32>> {
    let mut bytes = [0; 16];
    let at = PAGE_HEADER_LEN as u64;
    if file.len()? < at + bytes.len() as u64 {
        return Ok(None);
    }
    file.read_exact_at(&mut bytes, at)?;
    let size = Source::u32(&bytes[..], PAGE_SIZE_AT).ok();
    Ok(size.filter(|_| bytes.starts_with(MAGIC)))
}

/// The fields of page 0 that tie the files together.
#[derive(Debug, Default)]
struct IdentityState {
    identity: FileIdentity,
    /// Whether page 0 contains exactly these, durably.
    is_durable: bool,
}

/// The pages of a database file, and the log of their changes.
#[derive(Debug)]
pub struct Space {
    pub(crate) file: PoolFile,
    pub(crate) log: Arc<dyn Log>,
    page_size: usize,
    /// Bytes of a page available to trees.
    pub(crate) payload: usize,
    /// The fields of page 0 that tie the files together, as they are there or will be at its next
    /// write.
    identity: Mutex<IdentityState>,
    /// Number of pages for which the file has disk space. Changed only while holding page 0.
    reserved: AtomicU32,
    /// Excludes other processes for as long as the pages are in use. Released after the file is
    /// closed, because the file's field comes first.
    _lock: Option<Box<dyn File>>,
}

impl Space {
    /// Creates an empty database in an empty file. Errors: the pool's.
    pub fn create(file: PoolFile, page_size: usize, log: Arc<dyn Log>) -> Result<Space> {
        Space::create_as(file, page_size, log, FileIdentity::default())
    }

    /// Like [`Space::create`], for a database with a log and a double write.
    pub(crate) fn create_as(
        file: PoolFile,
        page_size: usize,
        log: Arc<dyn Log>,
        identity: FileIdentity,
    ) -> Result<Space> {
        let mut page = file.create(0)?;
        let payload = page.payload_mut(Lsn::NONE);
        let len = payload.len();
        put_first_page(payload, page_size, &identity);
        drop(page);
        Ok(Space {
            file,
            log,
            page_size,
            payload: len,
            identity: Mutex::new(IdentityState { identity, is_durable: false }),
            reserved: AtomicU32::new(1),
            _lock: None,
        })
    }

    /// Opens a database. Errors: [`Error::Corruption`] if page 0 does not belong to a database with
    /// pages of this size; the pool's.
    pub fn open(file: PoolFile, page_size: usize, log: Arc<dyn Log>) -> Result<Space> {
        let page = file.read(0)?;
        let identity = begins_database(file.path(), &page, page_size)?;
        let payload = page.len();
        let identity = Mutex::new(IdentityState { identity, is_durable: false });
        drop(page);
        let reserved = AtomicU32::new(file.pages_on_disk()?);
        Ok(Space { file, log, page_size, payload, identity, reserved, _lock: None })
    }

    /// Updates the fields of page 0 that tie the files together, and makes them durable; everything
    /// they state must be durable before. Errors: the pool's. The new values then stay in memory
    /// and are written next time.
    pub(crate) fn update_identity(&self, change: impl FnOnce(&mut FileIdentity)) -> Result<()> {
        let mut state = lock(&self.identity);
        let before = state.identity;
        let mut next = before;
        change(&mut next);
        ensure!(
            next.checkpoint >= before.checkpoint,
            "page 0 goes back in the log, from {before:?} to {next:?}"
        );
        debug_assert!(
            next.reached >= before.reached,
            "page 0 knows less of the log, from {before:?} to {next:?}"
        );
        ensure!(
            next.database == before.database && next.log == before.log,
            "the identity of the database changes from {before:?} to {next:?}"
        );
        if state.is_durable && next == before {
            return Ok(());
        }
        state.identity = next;
        state.is_durable = false;
        let mut page = self.file.write(0)?;
        state.identity.encode(page.payload_mut(Lsn::NONE)).map_err(|_| self.damaged(0, "it is too short"))?;
        drop(page);
        self.file.flush_page(0)?;
        self.file.sync()?;
        state.is_durable = true;
        Ok(())
    }

    /// Sets the owner of the double write from now on, and page 0 at its next write.
    pub(crate) fn begin_session(&self, session: u64) {
        let mut state = lock(&self.identity);
        let identity = &mut state.identity;
        (identity.before, identity.session) = (identity.session, session);
        let owner = identity.owner();
        state.is_durable = false;
        self.file.set_owner(owner);
    }

    /// Returns the number of pages of the file on disk. Errors: the pool's.
    pub(crate) fn pages_on_disk(&self) -> Result<u32> {
        Ok(self.file.pages_on_disk()?)
    }

    /// Keeps a lock for as long as the pages can be changed.
    pub(crate) fn with_lock(self, lock: Box<dyn File>) -> Space {
        let mut space = self;
        space._lock = Some(lock);
        space
    }

    /// Returns the page size in bytes.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// Returns the path of the database file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the number of pages of the file, including free ones.
    pub fn pages(&self) -> Result<u32> {
        let page = self.file.read(0)?;
        self.meta(&page).map(|meta| meta.pages)
    }

    /// Returns the number of free pages. Cost: reads each of them.
    pub fn free_pages(&self) -> Result<u32> {
        Ok(self.free_list()?.len() as u32)
    }

    /// Writes all dirty pages and makes them durable. Errors: the pool's.
    pub fn flush(&self) -> Result<()> {
        self.file.flush()?;
        Ok(self.file.sync()?)
    }

    pub(crate) fn damaged(&self, page: u32, what: impl Into<String>) -> Error {
        Error::Corruption { file: self.file.path().to_owned(), page, what: what.into() }
    }

    fn meta(&self, page: &[u8]) -> Result<Meta> {
        match (Source::u32(page, PAGES), Source::u32(page, FREE)) {
            (Ok(0), Ok(_)) => Err(self.damaged(0, "it says that the file has no pages")),
            (Ok(pages), Ok(free)) => Ok(Meta { pages, free }),
            _ => Err(self.damaged(0, "it is too short")),
        }
    }

    fn next_free(&self, number: u32, page: &[u8]) -> Result<u32> {
        match (page.first(), Source::u32(page, 4)) {
            (Some(&FREE_PAGE), Ok(next)) => Ok(next),
            (kind, _) => {
                Err(self.damaged(number, format!("it is on the list of free pages, but of kind {kind:?}")))
            }
        }
    }

    /// Allocates pages for a change, free ones first, and holds each exclusively. Page 0 is held
    /// until the change is done. A thread that holds it must not wait for other pages that may be
    /// held for long.
    ///
    /// Errors: [`Error::NoPages`]; the pool's.
    pub(crate) fn allocate<'p>(&'p self, change: &mut Change<'p>, count: usize) -> Result<Vec<(u32, usize)>> {
        let first = self.file.write(0)?;
        let mut meta = self.meta(&first)?;
        let mut pages = Vec::with_capacity(count);
        for _ in 0..count {
            let (number, guard) = self.take_page(&mut meta)?;
            pages.push((number, change.hold(guard)));
        }
        debug_assert!(
            pages.iter().all(|(page, _)| *page != 0 && *page < meta.pages),
            "of {} pages, {pages:?} were allocated",
            meta.pages
        );
        debug_assert!(pages.len() == count, "{} of {count} pages were allocated", pages.len());
        let at = change.hold(first);
        change.plan(at, Op::Meta(meta));
        Ok(pages)
    }

    fn take_page(&self, meta: &mut Meta) -> Result<(u32, Exclusive<'_>)> {
        let number = meta.free;
        if number != 0 {
            // The list is read from the file.
            if number >= meta.pages {
                let pages = meta.pages;
                return Err(self.damaged(0, format!("its first free page is {number} of {pages} pages")));
            }
            let guard = self.file.write(number)?;
            meta.free = self.next_free(number, &guard)?;
            return Ok((number, guard));
        }
        let number = meta.pages;
        meta.pages = number.checked_add(1).ok_or(Error::NoPages)?;
        self.reserve(number)?;
        Ok((number, self.file.create(number)?))
    }

    /// Allocates disk space for a new page and some that follow. A full disk is thus reported
    /// before anything is changed, and writing the page later, in an eviction or a checkpoint that
    /// frees space, needs no more space. Page 0 must be held. Errors: the pool's.
    fn reserve(&self, page: u32) -> Result<()> {
        if page < self.reserved.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Allocates twice as many, so that some always remain: the next opening frees them and so
        // has space for its log.
        let end = page.saturating_add(RESERVED);
        debug_assert!(end > page, "space is allocated for pages {page} to {end}");
        if !self.log.is_short() {
            match self.file.reserve(page..end.saturating_add(RESERVED)) {
                Err(error) if error.is_full() && is_reclaiming() => {}
                taken => {
                    taken?;
                    self.reserved.store(end, Ordering::Relaxed);
                    return Ok(());
                }
            }
        }
        self.reserve_one(page)
    }

    /// Allocates disk space for one page, if necessary from the reserve, for work that frees space:
    /// unpacking a leaf before its first row is deleted needs pages. Errors: the pool's; a full
    /// disk's.
    #[cold]
    fn reserve_one(&self, page: u32) -> Result<()> {
        if !self.log.may_grow(self.page_size as u64) {
            let full = std::io::ErrorKind::StorageFull.into();
            return Err(cairn_vfs::Error::new(Operation::Allocate, self.path(), full).into());
        }
        let end = page.saturating_add(1);
        debug_assert!(end > page, "space is allocated for page {page}, and there can be none behind it");
        let mut taken = self.file.reserve(page..end);
        while taken.as_ref().is_err_and(cairn_pool::Error::is_full) && self.log.give_up_reserve() {
            taken = self.file.reserve(page..end);
        }
        taken?;
        self.reserved.store(end, Ordering::Relaxed);
        Ok(())
    }

    /// Rewrites the list of free pages as `free`, in order of allocation, and the number of pages
    /// of the file. Nothing else may allocate meanwhile. Until this is done no page is free, so the
    /// next vacuum finds the pages that a crash leaves. Errors: the pool's and the log's.
    pub(crate) fn set_free(&self, pages: u32, free: &[u32]) -> Result<()> {
        ensure!(
            free.is_sorted_by(|a, b| a < b),
            "the list of free pages would have pages twice, or in another order than that of the file"
        );
        ensure!(
            free.first() != Some(&0) && free.last().is_none_or(|last| *last < pages),
            "pages up to {:?} of {pages} would be free",
            free.last()
        );
        self.set_meta(Meta { pages, free: 0 })?;
        let mut next = 0;
        for &page in free.iter().rev() {
            let mut change = Change::default();
            // The page is not read, because it may be damaged.
            let at = change.hold(self.file.create(page)?);
            change.plan(at, Op::Free { next });
            change.commit(&*self.log, self.path())?;
            next = page;
        }
        self.set_meta(Meta { pages, free: next })
    }

    fn set_meta(&self, meta: Meta) -> Result<()> {
        let mut change = Change::default();
        let at = change.hold(self.file.write(0)?);
        change.plan(at, Op::Meta(meta));
        change.commit(&*self.log, self.path())
    }

    /// Truncates the file, once the pages beyond are neither used nor free, durably. Errors: the
    /// pool's.
    pub(crate) fn truncate(&self, pages: u32) -> Result<()> {
        debug_assert!(pages > 0, "page 0 would be cut off");
        debug_assert!(
            self.pages().map_or(true, |counted| counted == pages),
            "the file is truncated to {pages} pages, and page 0 has another number"
        );
        // ORDER: page 0 must not require more pages than the file has.
        self.update_identity(|identity| identity.pages = identity.pages.min(pages))?;
        self.reserved.store(pages, Ordering::Relaxed);
        Ok(self.file.truncate(pages)?)
    }

    /// Returns the free pages in order of allocation. If others allocate or free pages meanwhile,
    /// reads the list again, finally while holding page 0. Errors: the pool's,
    /// [`Error::Corruption`].
    pub(crate) fn free_list(&self) -> Result<Vec<u32>> {
        for _ in 0..FREE_LIST_ATTEMPTS {
            let (meta, lsn) = {
                let first = self.file.read(0)?;
                (self.meta(&first)?, first.lsn())
            };
            let list = self.list_from(meta);
            // Allocating or freeing a page changes page 0.
            if self.file.read(0)?.lsn() == lsn {
                return list;
            }
        }
        // ORDER: page 0 first, as for allocation. A thread that frees a page holds that page before
        // page 0, but the page is not on the list yet.
        let first = self.file.write(0)?;
        self.list_from(self.meta(&first)?)
    }

    fn list_from(&self, meta: Meta) -> Result<Vec<u32>> {
        let (mut next, mut list) = (meta.free, Vec::new());
        while next != 0 {
            hook::at("looks at a free page");
            list.push(next);
            if list.len() > meta.pages as usize {
                return Err(self.damaged(0, "the list of free pages has a cycle"));
            }
            next = self.next_free(next, &self.file.read(next)?)?;
        }
        Ok(list)
    }

    /// Frees a page, which the change holds at `at`. Errors: the pool's.
    pub(crate) fn release<'p>(&'p self, change: &mut Change<'p>, page: u32, at: usize) -> Result<()> {
        let first = self.file.write(0)?;
        let meta = self.meta(&first)?;
        ensure!(page != 0, "page 0 would be freed");
        if page == meta.free {
            return Err(self.damaged(page, "it is in use, and on the list of free pages"));
        }
        change.plan(at, Op::Free { next: meta.free });
        let at = change.hold(first);
        change.plan(at, Op::Meta(Meta { free: page, ..meta }));
        Ok(())
    }
}

impl Drop for Space {
    /// Records how far the log was when the database was closed, so that a later loss of its end is
    /// detected.
    fn drop(&mut self) {
        // Errors cannot be reported here, and the previous contents of page 0 remain valid.
        let Ok(()) = self.file.flush() else { return };
        let Some((reached, salt)) = self.log.settle() else { return };
        if reached <= lock(&self.identity).identity.reached {
            return;
        }
        // ORDER: the file's length is durable before page 0 states it.
        let (Ok(()), Ok(pages)) = (self.file.sync(), self.file.pages_on_disk()) else { return };
        let _ = self.update_identity(|identity| {
            (identity.reached, identity.salt, identity.pages) = (reached, salt, pages)
        });
    }
}
