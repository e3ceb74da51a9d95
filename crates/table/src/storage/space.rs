//! The file: which pages there are, and which of them are free.
//!
//! ```text
//!   page 0    "CAIRNSQL" | version u32 | page size u32 | pages u32 | first free page u32, 0 for none | which files belong to it (`first.rs`)
//!   free      3 u8 | 0 x 3 | next free page u32
//! ```

use std::path::Path;
use std::sync::Arc;

use cairn_pool::{Changed, Exclusive, Lsn, PAGE_HEADER_LEN, PoolFile, stamp};
use cairn_vfs::sync::atomic::{AtomicU32, Ordering};
use cairn_vfs::sync::{Mutex, lock};
use cairn_vfs::{File, Operation};

use super::change::Change;
use super::first::First;
use super::giving::is_giving;
use super::log::Log;
use super::ops::Op;
use super::source::Source;
use crate::{Error, Result, hook};

pub(super) const MAGIC: &[u8; 8] = b"CAIRNSQL";
const VERSION: u32 = 2;
const PAGES: usize = 16;
const FREE: usize = 20;
const META_LEN: usize = 24;
const FREE_PAGE: u8 = 3;
/// So many pages are taken room for at a time.
const RESERVED: u32 = 16;
/// As often the list of free pages is looked through while others change it.
const LOOKS: usize = 8;

/// What page 0 says that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Pages of the file, this one included.
    pub(crate) pages: u32,
    /// The first free page; 0 for none.
    pub(crate) free: u32,
}

pub(crate) fn put_meta(payload: &mut [u8], meta: Meta) -> Result<(), Changed> {
    let place = payload.get_mut(PAGES..META_LEN).ok_or(Changed)?;
    let (pages, free) = place.split_at_mut(4);
    pages.copy_from_slice(&meta.pages.to_le_bytes());
    free.copy_from_slice(&meta.free.to_le_bytes());
    Ok(())
}

pub(crate) fn put_free(payload: &mut [u8], next: u32) -> Result<(), Changed> {
    payload.fill(0);
    *payload.first_mut().ok_or(Changed)? = FREE_PAGE;
    payload.get_mut(4..8).ok_or(Changed)?.copy_from_slice(&next.to_le_bytes());
    Ok(())
}

/// What page 0 of an empty database has. There is room: pages have 4 KiB at least.
fn put_first(payload: &mut [u8], page_size: usize, first: &First) {
    for (at, bytes) in [(0, &MAGIC[..]), (8, &VERSION.to_le_bytes()), (12, &(page_size as u32).to_le_bytes())]
    {
        if let Some(place) = payload.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
    let _ = put_meta(payload, Meta { pages: 1, free: 0 });
    let _ = first.put(payload);
}

/// Page 0 of an empty database, as it is in the file.
pub(crate) fn first_page(page_size: usize) -> Vec<u8> {
    let mut page = vec![0; page_size];
    put_first(page.get_mut(PAGE_HEADER_LEN..).unwrap_or_default(), page_size, &First::default());
    stamp(&mut page, 0, Lsn::NONE);
    page
}

/// Sees that a payload of page 0 begins a database with such pages. Errors: [`Error::Corruption`].
pub(crate) fn begins_database(path: &Path, payload: &[u8], page_size: usize) -> Result<()> {
    let found = (payload.get(..8), Source::u32(payload, 8), Source::u32(payload, 12));
    if found == (Some(MAGIC), Ok(VERSION), Ok(page_size as u32)) {
        return Ok(());
    }
    let what = format!("it does not begin a database of version {VERSION} with pages of {page_size} bytes");
    Err(Error::Corruption { file: path.to_owned(), page: 0, what })
}

/// Bytes of a page by what page 0 of a file says; `None` when it is not one of a database. It is
/// not checked: whoever opens the file does that.
pub(crate) fn page_size_of(file: &dyn File) -> Result<Option<u32>> {
    let mut bytes = [0; 16];
    let at = PAGE_HEADER_LEN as u64;
    if file.len()? < at + bytes.len() as u64 {
        return Ok(None);
    }
    file.read_exact_at(&mut bytes, at)?;
    let size = Source::u32(&bytes[..], 12).ok();
    Ok(size.filter(|_| bytes.starts_with(MAGIC)))
}

/// What page 0 says of other files.
#[derive(Debug, Default)]
struct Said {
    first: First,
    /// Whether that is what page 0 has, on stable storage.
    is_there: bool,
}

/// The pages of a database file, and the log of their changes.
#[derive(Debug)]
pub struct Space {
    pub(crate) file: PoolFile,
    pub(crate) log: Arc<dyn Log>,
    page_size: usize,
    /// Bytes of a page that trees have.
    pub(crate) payload: usize,
    /// What page 0 says of the files that belong together, or will say when it is written the next
    /// time.
    first: Mutex<Said>,
    /// The file has room on the disk for so many pages. Changed by who holds page 0.
    reserved: AtomicU32,
    /// Keeps others out as long as anybody has the pages. Let go of after the file is closed, whose
    /// field comes first.
    _lock: Option<Box<dyn File>>,
}

impl Space {
    /// Makes an empty database in an empty file. Errors: the pool's.
    pub fn create(file: PoolFile, page_size: usize, log: Arc<dyn Log>) -> Result<Space> {
        Space::create_as(file, page_size, log, First::default())
    }

    /// As [`Space::create`], of one that has a log and a double write.
    pub(crate) fn create_as(
        file: PoolFile,
        page_size: usize,
        log: Arc<dyn Log>,
        first: First,
    ) -> Result<Space> {
        let mut page = file.create(0)?;
        let payload = page.payload_mut(Lsn::NONE);
        let len = payload.len();
        put_first(payload, page_size, &first);
        drop(page);
        Ok(Space {
            file,
            log,
            page_size,
            payload: len,
            first: Mutex::new(Said { first, is_there: false }),
            reserved: AtomicU32::new(1),
            _lock: None,
        })
    }

    /// Opens a database. Errors: [`Error::Corruption`] when page 0 is not one of a database with
    /// such pages; the pool's.
    pub fn open(file: PoolFile, page_size: usize, log: Arc<dyn Log>) -> Result<Space> {
        let page = file.read(0)?;
        begins_database(file.path(), &page, page_size)?;
        let payload = page.len();
        let first = First::of(&page).unwrap_or_default();
        let first = Mutex::new(Said { first, is_there: false });
        drop(page);
        let reserved = AtomicU32::new(file.pages_on_disk()?);
        Ok(Space { file, log, page_size, payload, first, reserved, _lock: None })
    }

    /// Says in page 0 what has changed of the files that belong together, and makes that durable,
    /// behind all that it says. Errors: the pool's; what is in memory stays, and is said the next
    /// time.
    pub(crate) fn note(&self, change: impl FnOnce(&mut First)) -> Result<()> {
        let mut said = lock(&self.first);
        let before = said.first;
        change(&mut said.first);
        if said.is_there && said.first == before {
            return Ok(());
        }
        said.is_there = false;
        let mut page = self.file.write(0)?;
        said.first.put(page.payload_mut(Lsn::NONE)).map_err(|_| self.damaged(0, "it is too short"))?;
        drop(page);
        self.file.flush_page(0)?;
        self.file.sync()?;
        said.is_there = true;
        Ok(())
    }

    /// Says whose the double write is from now on, and page 0 when it is written the next time.
    pub(crate) fn begin_session(&self, session: u64) {
        let mut said = lock(&self.first);
        let first = &mut said.first;
        (first.before, first.session) = (first.session, session);
        let owner = first.owner();
        said.is_there = false;
        self.file.set_owner(owner);
    }

    /// Pages of the file as it is on the disk. Errors: the pool's.
    pub(crate) fn pages_on_disk(&self) -> Result<u32> {
        Ok(self.file.pages_on_disk()?)
    }

    /// Keeps a lock for as long as there is anybody who can change the pages.
    pub(crate) fn keep(self, lock: Box<dyn File>) -> Space {
        let mut space = self;
        space._lock = Some(lock);
        space
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// How many pages the file has, free ones included.
    pub fn pages(&self) -> Result<u32> {
        let page = self.file.read(0)?;
        self.meta(&page).map(|meta| meta.pages)
    }

    /// How many of them are free. Cost: reads each.
    pub fn free_pages(&self) -> Result<u32> {
        Ok(self.free_list()?.len() as u32)
    }

    /// Writes everything that is in memory only, and makes it durable. Errors: the pool's.
    pub fn flush(&self) -> Result<()> {
        self.file.flush()?;
        Ok(self.file.sync()?)
    }

    pub(crate) fn damaged(&self, page: u32, what: impl Into<String>) -> Error {
        Error::Corruption { file: self.file.path().to_owned(), page, what: what.into() }
    }

    fn meta(&self, page: &[u8]) -> Result<Meta> {
        match (Source::u32(page, PAGES), Source::u32(page, FREE)) {
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

    /// Takes pages for a change, free ones first, each held alone. Page 0 is held until the change
    /// is done; whoever holds it waits for no other page that somebody may hold for long.
    ///
    /// Errors: [`Error::NoPages`]; the pool's.
    pub(crate) fn allocate<'p>(&'p self, change: &mut Change<'p>, count: usize) -> Result<Vec<(u32, usize)>> {
        let first = self.file.write(0)?;
        let mut meta = self.meta(&first)?;
        let mut pages = Vec::with_capacity(count);
        for _ in 0..count {
            let (number, guard) = self.take(&mut meta)?;
            pages.push((number, change.hold(guard)));
        }
        let at = change.hold(first);
        change.plan(at, Op::Meta(meta));
        Ok(pages)
    }

    fn take(&self, meta: &mut Meta) -> Result<(u32, Exclusive<'_>)> {
        let number = meta.free;
        if number != 0 {
            let guard = self.file.write(number)?;
            meta.free = self.next_free(number, &guard)?;
            return Ok((number, guard));
        }
        let number = meta.pages;
        meta.pages = number.checked_add(1).ok_or(Error::NoPages)?;
        self.reserve(number)?;
        Ok((number, self.file.create(number)?))
    }

    /// Takes room on the disk for a new page, and for some that follow. Whoever wants the page is
    /// told of a full disk before anything is changed; that it is written later, in an eviction or
    /// a checkpoint that gives room back, needs none. Page 0 is held. Errors: the pool's.
    fn reserve(&self, page: u32) -> Result<()> {
        if page < self.reserved.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Twice as many, so that some are always left: the next opening gives them back, and has
        // room for its log.
        let end = page.saturating_add(RESERVED);
        if !self.log.is_short() {
            match self.file.reserve(page..end.saturating_add(RESERVED)) {
                Err(error) if error.is_full() && is_giving() => {}
                taken => {
                    taken?;
                    self.reserved.store(end, Ordering::Relaxed);
                    return Ok(());
                }
            }
        }
        self.reserve_one(page)
    }

    /// Takes room for one page, out of what is kept for who gives room back where there is no
    /// other: one that was packed is taken apart before its first row goes. Errors: the pool's;
    /// that the disk is full.
    #[cold]
    fn reserve_one(&self, page: u32) -> Result<()> {
        if !self.log.lets_grow(self.page_size as u64) {
            let full = std::io::ErrorKind::StorageFull.into();
            return Err(cairn_vfs::Error::new(Operation::Allocate, self.path(), full).into());
        }
        let end = page.saturating_add(1);
        let mut taken = self.file.reserve(page..end);
        while taken.as_ref().is_err_and(cairn_pool::Error::is_full) && self.log.give_up_reserve() {
            taken = self.file.reserve(page..end);
        }
        taken?;
        self.reserved.store(end, Ordering::Relaxed);
        Ok(())
    }

    /// Says anew which pages are free: those of `free`, which are taken in this order; and how many
    /// the file has. Nobody else allocates meanwhile. Until it is done no page is free, so what a
    /// crash leaves is found by the next vacuum. Errors: the pool's and the log's.
    pub(crate) fn set_free(&self, pages: u32, free: &[u32]) -> Result<()> {
        self.set_meta(Meta { pages, free: 0 })?;
        let mut next = 0;
        for &page in free.iter().rev() {
            let mut change = Change::default();
            // What is on it is not read: it may be damaged.
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

    /// Cuts the file off, once its pages beyond are neither used nor free and all that says so is
    /// durable. Errors: the pool's.
    pub(crate) fn truncate(&self, pages: u32) -> Result<()> {
        // ORDER: page 0 expects no more when there are fewer.
        self.note(|first| first.pages = first.pages.min(pages))?;
        self.reserved.store(pages, Ordering::Relaxed);
        Ok(self.file.truncate(pages)?)
    }

    /// The free pages, in the order in which they are taken. Others may take some and give some
    /// back meanwhile: then it is looked through again, and in the end with page 0 held. Errors:
    /// the pool's, [`Error::Corruption`].
    pub(crate) fn free_list(&self) -> Result<Vec<u32>> {
        for _ in 0..LOOKS {
            let (meta, lsn) = {
                let first = self.file.read(0)?;
                (self.meta(&first)?, first.lsn())
            };
            let list = self.list_from(meta);
            // Whoever takes a page or gives one back changes page 0.
            if self.file.read(0)?.lsn() == lsn {
                return list;
            }
        }
        // ORDER: as for who takes pages: page 0 first. Whoever gives one back holds that before,
        // and it is not on the list yet.
        let first = self.file.write(0)?;
        self.list_from(self.meta(&first)?)
    }

    fn list_from(&self, meta: Meta) -> Result<Vec<u32>> {
        let (mut next, mut list) = (meta.free, Vec::new());
        while next != 0 {
            hook::at("looks at a free page");
            list.push(next);
            if list.len() > meta.pages as usize {
                return Err(self.damaged(0, "the list of free pages does not end"));
            }
            next = self.next_free(next, &self.file.read(next)?)?;
        }
        Ok(list)
    }

    /// Gives a page of a change back, which the change holds at `at`. Errors: the pool's.
    pub(crate) fn release<'p>(&'p self, change: &mut Change<'p>, page: u32, at: usize) -> Result<()> {
        let first = self.file.write(0)?;
        let meta = self.meta(&first)?;
        change.plan(at, Op::Free { next: meta.free });
        let at = change.hold(first);
        change.plan(at, Op::Meta(Meta { free: page, ..meta }));
        Ok(())
    }
}

impl Drop for Space {
    /// Says how far the log was when the database was closed, so that one which lost its end is
    /// missed.
    fn drop(&mut self) {
        // Whoever has closed it is not told of errors; what page 0 said before is still so.
        let Ok(()) = self.file.flush() else { return };
        let Some((reached, salt)) = self.log.settle() else { return };
        if reached <= lock(&self.first).first.reached {
            return;
        }
        // ORDER: the length is durable before page 0 says it.
        let (Ok(()), Ok(pages)) = (self.file.sync(), self.file.pages_on_disk()) else { return };
        let _ = self.note(|first| (first.reached, first.salt, first.pages) = (reached, salt, pages));
    }
}
