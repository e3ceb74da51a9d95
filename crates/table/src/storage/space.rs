//! The file: which pages there are, and which of them are free.
//!
//! ```text
//!   page 0    "CAIRNSQL" | version u32 | page size u32 | pages u32 | first free page u32, 0 for none
//!   free      3 u8 | 0 x 3 | next free page u32
//! ```

use std::path::Path;
use std::sync::Arc;

use cairn_pool::{Changed, Exclusive, Lsn, PAGE_HEADER_LEN, PoolFile, stamp};
use cairn_vfs::File;

use super::change::Change;
use super::log::Log;
use super::ops::Op;
use super::source::Source;
use crate::{Error, Result, hook};

const MAGIC: &[u8; 8] = b"CAIRNSQL";
const VERSION: u32 = 1;
const PAGES: usize = 16;
const FREE: usize = 20;
const META_LEN: usize = 24;
const FREE_PAGE: u8 = 3;
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
fn put_first(payload: &mut [u8], page_size: usize) {
    for (at, bytes) in [(0, &MAGIC[..]), (8, &VERSION.to_le_bytes()), (12, &(page_size as u32).to_le_bytes())]
    {
        if let Some(place) = payload.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
    let _ = put_meta(payload, Meta { pages: 1, free: 0 });
}

/// Page 0 of an empty database, as it is in the file.
pub(crate) fn first_page(page_size: usize) -> Vec<u8> {
    let mut page = vec![0; page_size];
    put_first(page.get_mut(PAGE_HEADER_LEN..).unwrap_or_default(), page_size);
    stamp(&mut page, 0, Lsn::NONE);
    page
}

/// Bytes of a page by what page 0 of a file says; `None` when it is not one of a database. It is not checked: whoever opens the file does that.
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

/// The pages of a database file, and the log of their changes.
#[derive(Debug)]
pub struct Space {
    pub(crate) file: PoolFile,
    pub(crate) log: Arc<dyn Log>,
    page_size: usize,
    /// Bytes of a page that trees have.
    pub(crate) payload: usize,
    /// Keeps others out as long as anybody has the pages. Let go of after the file is closed, whose field comes first.
    _lock: Option<Box<dyn File>>,
}

impl Space {
    /// Makes an empty database in an empty file. Errors: the pool's.
    pub fn create(file: PoolFile, page_size: usize, log: Arc<dyn Log>) -> Result<Space> {
        let mut page = file.create(0)?;
        let payload = page.payload_mut(Lsn::NONE);
        let len = payload.len();
        put_first(payload, page_size);
        drop(page);
        Ok(Space { file, log, page_size, payload: len, _lock: None })
    }

    /// Opens a database. Errors: [`Error::Corruption`] when page 0 is not one of a database with such pages; the pool's.
    pub fn open(file: PoolFile, page_size: usize, log: Arc<dyn Log>) -> Result<Space> {
        let page = file.read(0)?;
        let found = (page.get(..8), Source::u32(&*page, 8), Source::u32(&*page, 12));
        if found != (Some(MAGIC), Ok(VERSION), Ok(page_size as u32)) {
            let what =
                format!("it does not begin a database of version {VERSION} with pages of {page_size} bytes");
            return Err(Error::Corruption { file: file.path().to_owned(), page: 0, what });
        }
        let payload = page.len();
        drop(page);
        Ok(Space { file, log, page_size, payload, _lock: None })
    }

    /// Keeps a lock for as long as there is anybody who can change the pages.
    pub(crate) fn keep(self, lock: Box<dyn File>) -> Space {
        Space { _lock: Some(lock), ..self }
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
                Err(self.damaged(number, format!("it is on the list of free pages, and of kind {kind:?}")))
            }
        }
    }

    /// Takes pages for a change, free ones first, each held alone. Page 0 is held until the change is done; whoever holds it waits for no other
    /// page that somebody may hold for long.
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
        Ok((number, self.file.create(number)?))
    }

    /// Says anew which pages are free: those of `free`, which are taken in this order; and how many the file has. Nobody else allocates meanwhile. Until it is done
    /// no page is free, so what a crash leaves is found by the next vacuum. Errors: the pool's and the log's.
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

    /// Cuts the file off, once its pages beyond are neither used nor free and all that says so is durable. Errors: the pool's.
    pub(crate) fn truncate(&self, pages: u32) -> Result<()> {
        Ok(self.file.truncate(pages)?)
    }

    /// The free pages, in the order in which they are taken. Others may take some and give some back meanwhile: then it is looked through again, and in the end with page 0 held. Errors: the pool's,
    /// [`Error::Corruption`].
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
        // ORDER: as for who takes pages: page 0 first. Whoever gives one back holds that before, and it is not on the list yet.
        let first = self.file.write(0)?;
        self.list_from(self.meta(&first)?)
    }

    fn list_from(&self, meta: Meta) -> Result<Vec<u32>> {
        let (mut next, mut list) = (meta.free, Vec::new());
        while next != 0 {
            hook::at("looks at a free page");
            list.push(next);
            if list.len() > meta.pages as usize {
                return Err(self.damaged(0, "the list of free pages has no end"));
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
