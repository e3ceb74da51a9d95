//! Storage for the slots of an index while it is built: in memory, or in its file with a few pages
//! in memory.

use std::sync::Arc;

use cairn_vfs::File;

use super::index_header::{INDEX_HEADER_BYTES, IndexHeader};
use super::slot::Slot;
use crate::prefetch::prefetch;
use crate::{Error, Result};

/// Slots with random access.
pub(super) trait SlotStore {
    /// Returns slot number `slot`, which is below the capacity.
    fn get(&mut self, slot: u64) -> Result<Slot>;

    /// Replaces slot number `slot`, which is below the capacity.
    fn set(&mut self, slot: u64, value: Slot) -> Result<()>;

    /// Hints that `slot` will be used soon.
    fn prefetch(&self, _slot: u64) {}

    /// Writes all slots to the index file that are not there yet.
    fn finish(&mut self, file: &Arc<dyn File>) -> Result<()>;
}

/// All slots in memory, encoded as in the file.
#[derive(Debug)]
pub(super) struct MemoryStore<const H: usize, const A: usize> {
    bytes: Vec<u8>,
}

impl<const H: usize, const A: usize> MemoryStore<H, A> {
    /// Creates empty slots. Errors: [`Error::Invalid`] if there is not enough memory.
    pub fn new(header: &IndexHeader) -> Result<Self> {
        debug_assert_eq!(header.slot_bytes(), (H + A) as u64, "the widths of the header");
        let len = header.file_bytes().map(|bytes| bytes - INDEX_HEADER_BYTES as u64);
        let len = len.and_then(|len| usize::try_from(len).ok());
        let no_memory = || {
            let detail =
                format!("no memory for an index of {} slots; build it by sorting instead", header.capacity);
            Error::invalid(detail)
        };
        let len = len.ok_or_else(no_memory)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| no_memory())?;
        bytes.resize(len, 0);
        Ok(MemoryStore { bytes })
    }
}

impl<const H: usize, const A: usize> SlotStore for MemoryStore<H, A> {
    #[inline(always)]
    fn get(&mut self, slot: u64) -> Result<Slot> {
        let at = slot as usize * (H + A);
        Ok(Slot::decode::<H, A>(&self.bytes[at..at + H + A]))
    }

    #[inline(always)]
    fn set(&mut self, slot: u64, value: Slot) -> Result<()> {
        let at = slot as usize * (H + A);
        value.encode::<H, A>(&mut self.bytes[at..at + H + A]);
        Ok(())
    }

    #[inline(always)]
    fn prefetch(&self, slot: u64) {
        let at = slot as usize * (H + A);
        prefetch(&self.bytes, at);
        // A probe moves upwards, on average over less than three slots.
        prefetch(&self.bytes, at + 3 * (H + A));
    }

    fn finish(&mut self, file: &Arc<dyn File>) -> Result<()> {
        Ok(file.write_all_at(&self.bytes, INDEX_HEADER_BYTES as u64)?)
    }
}

/// Slots per page. A page holds whole slots, so its size in bytes depends on their width.
const PAGE_SLOTS: u64 = 8192;
/// Number of pages in memory. Sorted input uses one page after the other, and at the end the first
/// one again.
const PAGES: usize = 4;
const _: () = assert!(PAGES >= 2, "the last page and the first one, at the end of sorted input");

/// Slots in the index file, with some pages in memory. Fast if slots are used in ascending order.
#[derive(Debug)]
pub(super) struct PagedStore<const H: usize, const A: usize> {
    file: Arc<dyn File>,
    capacity: u64,
    /// The most recently used page comes first.
    pages: Vec<Page>,
}

#[derive(Debug)]
struct Page {
    number: u64,
    bytes: Vec<u8>,
    dirty: bool,
}

impl<const H: usize, const A: usize> PagedStore<H, A> {
    /// Creates empty slots in `file`.
    pub fn new(header: &IndexHeader, file: Arc<dyn File>) -> Result<Self> {
        debug_assert_eq!(header.slot_bytes(), (H + A) as u64, "the widths of the header");
        let bytes = header.file_bytes().filter(|&bytes| bytes <= i64::MAX as u64);
        let bytes = bytes.ok_or_else(|| {
            Error::invalid(format!("an index of {} slots exceeds the maximum file size", header.capacity))
        })?;
        file.set_len(0)?;
        file.set_len(bytes)?;
        Ok(PagedStore { file, capacity: header.capacity.get(), pages: Vec::new() })
    }

    /// Returns the page of the slot, moved to the front of the list, and the slot's offset in it.
    #[inline]
    fn page(&mut self, slot: u64) -> Result<(&mut Page, usize)> {
        debug_assert!(slot < self.capacity, "slot {slot} of {}", self.capacity);
        let number = slot / PAGE_SLOTS;
        let at = (slot % PAGE_SLOTS) as usize * (H + A);
        if self.pages.first().is_none_or(|page| page.number != number) {
            self.bring_to_front(number)?;
        }
        Ok((&mut self.pages[0], at))
    }

    #[cold]
    fn bring_to_front(&mut self, number: u64) -> Result<()> {
        if let Some(found) = self.pages.iter().position(|page| page.number == number) {
            self.pages[..=found].rotate_right(1);
            return Ok(());
        }
        debug_assert!(number * PAGE_SLOTS < self.capacity, "page {number}");
        let mut page = Page { number, bytes: Vec::new(), dirty: false };
        if self.pages.len() >= PAGES
            && let Some(mut last) = self.pages.pop()
        {
            last.write::<H, A>(&self.file)?;
            page = last;
        }
        let slots = PAGE_SLOTS.min(self.capacity - number * PAGE_SLOTS);
        debug_assert!(!page.dirty, "a dirty page was written before it is reused");
        page.number = number;
        page.bytes.resize(slots as usize * (H + A), 0);
        self.file.read_exact_at(&mut page.bytes, Page::offset::<H, A>(number))?;
        self.pages.insert(0, page);
        debug_assert!(self.pages.len() <= PAGES, "{} pages in memory", self.pages.len());
        debug_assert!(self.pages.iter().skip(1).all(|page| page.number != number), "two copies of a page");
        Ok(())
    }
}

impl Page {
    fn offset<const H: usize, const A: usize>(number: u64) -> u64 {
        INDEX_HEADER_BYTES as u64 + number * PAGE_SLOTS * (H + A) as u64
    }

    fn write<const H: usize, const A: usize>(&mut self, file: &Arc<dyn File>) -> Result<()> {
        if self.dirty {
            file.write_all_at(&self.bytes, Page::offset::<H, A>(self.number))?;
            self.dirty = false;
        }
        Ok(())
    }
}

impl<const H: usize, const A: usize> SlotStore for PagedStore<H, A> {
    #[inline]
    fn get(&mut self, slot: u64) -> Result<Slot> {
        let (page, at) = self.page(slot)?;
        Ok(Slot::decode::<H, A>(&page.bytes[at..at + H + A]))
    }

    #[inline]
    fn set(&mut self, slot: u64, value: Slot) -> Result<()> {
        let (page, at) = self.page(slot)?;
        value.encode::<H, A>(&mut page.bytes[at..at + H + A]);
        page.dirty = true;
        Ok(())
    }

    fn finish(&mut self, _file: &Arc<dyn File>) -> Result<()> {
        for page in &mut self.pages {
            page.write::<H, A>(&self.file)?;
        }
        debug_assert!(self.pages.iter().all(|page| !page.dirty), "all slots are in the file");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;
    use std::path::Path;

    use cairn_vfs::{Fs, MemFs, OpenOptions, Rng, SeededRng};

    use super::*;

    /// Goal: both stores hold the same slots and write the same file, whatever the access order.
    /// Method: random reads and writes over more pages than fit into memory.
    #[test]
    fn stores_agree() {
        let fs = MemFs::new();
        let capacity = PAGE_SLOTS * 7 + 5;
        let header =
            IndexHeader { capacity: NonZeroU64::new(capacity).unwrap(), ..super::super::tests::header(8, 4) };
        let open = |name| Arc::from(fs.open(Path::new(name), OpenOptions::create()).unwrap());
        let (file_a, file_b): (Arc<dyn File>, Arc<dyn File>) = (open("a"), open("b"));
        let mut memory = MemoryStore::<8, 4>::new(&header).unwrap();
        let mut paged = PagedStore::<8, 4>::new(&header, Arc::clone(&file_b)).unwrap();
        let mut rng = SeededRng::new(1);
        for _ in 0..20_000 {
            let slot = rng.below(capacity);
            if rng.chance(0.5) {
                let value = Slot { hash: rng.next_u64(), address: rng.below(1 << 32) };
                memory.set(slot, value).unwrap();
                paged.set(slot, value).unwrap();
            }
            assert_eq!(memory.get(slot).unwrap(), paged.get(slot).unwrap());
        }
        memory.finish(&file_a).unwrap();
        paged.finish(&file_b).unwrap();
        let (a, b) = (file_a.map().unwrap(), file_b.map().unwrap());
        assert_eq!(Some(a.len() as u64), header.file_bytes());
        assert!(a[..] == b[..]);
    }
}
