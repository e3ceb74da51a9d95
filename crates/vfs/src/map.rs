//! A whole file as bytes, mapped by the kernel or held on the heap.
//!
//! A [`Map`] is a pointer, a length and a shared owner, so that a lookup costs no more than in a
//! slice. There are three kinds of owner:
//!
//! ```text
//!   kernel mapping of a file   PROT_READ, MAP_SHARED: pages of the page cache, shared by processes
//!   anonymous kernel mapping   private memory, on huge pages where possible: fewest TLB misses
//!   Vec<u8>                    bytes that the caller already has
//! ```

use std::fmt;
use std::io;
use std::ops::{Deref, Range};
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::mm::{self, MapFlags, ProtFlags};

use crate::{Advice, Error, File, Operation, Result};

mod load;

pub use load::{Load, LoadReport};

/// Size and alignment of a huge page on x86-64 and on arm64 with 4 KiB base pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;
const _: () = assert!(HUGE_PAGE_BYTES.is_power_of_two());

/// Files are copied to memory in pieces of this size.
const COPY_CHUNK_BYTES: usize = 8 << 20;

/// Immutable bytes of a file, shared between threads by cheap clones. Dereferences to `[u8]`.
///
/// A kernel mapping shows the current content of the file. The file must not be changed in place
/// while it is mapped, because the bytes would change under a `&[u8]`. Truncating it kills the
/// process with `SIGBUS` at the next access. Cairn replaces its files by rename and never rewrites
/// them, which keeps an old mapping intact.
#[derive(Clone)]
pub struct Map {
    start: *const u8,
    len: usize,
    region: Arc<Region>,
}

// SAFETY: `start` points to bytes that `region` keeps alive and that are never written after
// construction.
unsafe impl Send for Map {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Map {}

/// The owner of the bytes.
enum Region {
    /// `munmap`ped on drop.
    Kernel { base: *mut libc::c_void, bytes: usize, is_file: bool },
    /// Freed by the allocator. Ranges that were locked with `mlock` must be unlocked first, or the
    /// pages would stay locked after the allocator reuses them.
    Heap { bytes: Vec<u8>, locked: Mutex<Vec<(usize, usize)>> },
}

// SAFETY: a mapping belongs to the process, not to a thread; any thread may unmap it.
unsafe impl Send for Region {}
// SAFETY: shared access only reads plain fields and takes a mutex.
unsafe impl Sync for Region {}

impl Map {
    /// Wraps bytes that are on the heap already. Costs nothing.
    pub fn from_vec(bytes: Vec<u8>) -> Map {
        let (start, len) = (bytes.as_ptr(), bytes.len());
        Map { start, len, region: Arc::new(Region::Heap { bytes, locked: Mutex::new(Vec::new()) }) }
    }

    /// Copies a file to private memory, on huge pages where the kernel offers them.
    ///
    /// Costs one read of the file and as much memory. Lookups miss the TLB less often than in a
    /// mapping of the file, and later changes to the file have no effect. Errors: `Read` when the
    /// file is shorter than its reported length, `Map` when memory runs out.
    pub fn copy_of(file: &dyn File) -> Result<Map> {
        Map::copy_range(file, 0..file.len()?)
    }

    /// Like [`Map::copy_of`], for a part of a file.
    pub fn copy_range(file: &dyn File, range: Range<u64>) -> Result<Map> {
        let len = usize::try_from(range.end.saturating_sub(range.start))
            .map_err(|_| Error::new(Operation::Map, file.path(), io::ErrorKind::OutOfMemory.into()))?;
        let mut failure = None;
        let map = Map::filled(len, |bytes| {
            let mut offset = range.start;
            for chunk in bytes.chunks_mut(COPY_CHUNK_BYTES) {
                if let Err(error) = file.read_exact_at(chunk, offset) {
                    failure = Some(error);
                    return;
                }
                offset += chunk.len() as u64;
            }
            debug_assert!(offset == range.end.max(range.start), "{offset} is not the end of {range:?}");
        });
        debug_assert!(!map.as_ref().is_ok_and(|map| map.len != len), "the copy is not {len} bytes long");
        match failure {
            Some(error) => Err(error),
            None => map.map_err(|source| Error::new(Operation::Map, file.path(), source)),
        }
    }

    /// Allocates `len` zero bytes of anonymous memory and lets `fill` write them before they become
    /// immutable. Pages that `fill` does not touch cost no memory.
    pub(crate) fn filled(len: usize, fill: impl FnOnce(&mut [u8])) -> io::Result<Map> {
        if len == 0 {
            return Ok(Map::from_vec(Vec::new()));
        }
        // Room to move the start up to a huge-page boundary. Untouched pages only cost address
        // space.
        let slack = if len >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { 0 };
        let bytes = len.checked_add(slack).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new private mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe {
            mm::mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        let region = Region::Kernel { base, bytes, is_file: false };
        let skip = if slack > 0 { base.cast::<u8>().align_offset(HUGE_PAGE_BYTES) } else { 0 };
        debug_assert!(skip + len <= bytes);
        // SAFETY: `skip + len <= bytes`, so the range lies inside the mapping made above.
        let start = unsafe { base.cast::<u8>().add(skip) };
        debug_assert!(slack == 0 || start.addr().is_multiple_of(HUGE_PAGE_BYTES), "not on a huge page");
        // SAFETY: the advice changes how the range is backed, not its content. It fails where huge
        // pages are not available, which is harmless.
        let _ = unsafe { mm::madvise(start.cast(), len, mm::Advice::LinuxHugepage) };
        // SAFETY: the range is mapped, writable, zeroed by the kernel and not shared yet.
        fill(unsafe { std::slice::from_raw_parts_mut(start, len) });
        Ok(Map { start, len, region: Arc::new(region) })
    }

    /// Maps the first `len` bytes of an open file.
    pub(crate) fn from_descriptor(descriptor: BorrowedFd<'_>, len: u64) -> io::Result<Map> {
        let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        if len == 0 {
            return Ok(Map::from_vec(Vec::new())); // the kernel refuses empty mappings
        }
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing, and it is
        // only ever read.
        let base =
            unsafe { mm::mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, descriptor, 0)? };
        let region = Region::Kernel { base, bytes: len, is_file: true };
        Ok(Map { start: base.cast(), len, region: Arc::new(region) })
    }

    /// Returns a part of the map that shares its owner. Ranges past the end are cut off. Costs
    /// nothing.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Map {
        let end = range.end.min(self.len);
        let start = range.start.min(end);
        debug_assert!(start <= end && end <= self.len, "{start}..{end} of {} bytes", self.len);
        // The result stays within the bytes that `region` owns.
        Map { start: self.start.wrapping_add(start), len: end - start, region: self.region.clone() }
    }

    /// Passes the expected access pattern of a range to the kernel. Best effort; ranges past the
    /// end are cut off. Does nothing for memory that is not a kernel mapping, nor for `DontNeed` on
    /// memory that could not be read in again.
    pub fn advise(&self, range: Range<usize>, advice: Advice) {
        let Region::Kernel { is_file, .. } = *self.region else { return };
        let advice = match advice {
            Advice::Normal => mm::Advice::Normal,
            Advice::Sequential => mm::Advice::Sequential,
            Advice::Random => mm::Advice::Random,
            Advice::WillNeed => mm::Advice::WillNeed,
            // On private memory, this advice would discard the data instead of a cached copy.
            Advice::DontNeed if is_file => mm::Advice::LinuxDontNeed,
            Advice::DontNeed => return,
        };
        if let Some(pages) = self.pages(&range) {
            // SAFETY: `pages` lies in a kernel mapping that `self.region` keeps alive. None of
            // these hints changes the content: `DontNeed` is used on file mappings only, whose
            // pages are read in again.
            let _ = unsafe { mm::madvise(pages.start, pages.bytes, advice) };
        }
    }

    /// Returns the whole pages that cover `range`, clipped to the map; `None` when that is empty.
    fn pages(&self, range: &Range<usize>) -> Option<Pages> {
        let (from, to) = (range.start.min(self.len), range.end.min(self.len));
        if from >= to {
            return None;
        }
        let page = rustix::param::page_size();
        let head = self.start.wrapping_add(from).addr() % page;
        let bytes = (head + (to - from)).next_multiple_of(page);
        debug_assert!(head < page && head + (to - from) <= bytes);
        Some(Pages { start: self.start.wrapping_add(from).wrapping_sub(head).cast_mut().cast(), head, bytes })
    }

    /// Records the pages to unlock before the memory is freed. Unmapping a kernel mapping unlocks
    /// it anyway.
    fn remember_locked(&self, pages: &Pages) {
        if let Region::Heap { bytes, locked } = &*self.region {
            debug_assert!(
                bytes
                    .as_ptr_range()
                    .contains(&pages.start.cast_const().cast::<u8>().wrapping_add(pages.head)),
                "the locked pages hold no byte of the map"
            );
            let mut locked = locked.lock().unwrap_or_else(PoisonError::into_inner);
            debug_assert!(pages.start.addr().is_multiple_of(rustix::param::page_size()) && pages.bytes > 0);
            locked.push((pages.start.addr(), pages.bytes));
        }
    }
}

/// A page-aligned piece of memory around the requested bytes.
struct Pages {
    start: *mut libc::c_void,
    /// Bytes of the first page before the requested ones.
    head: usize,
    /// Length of the piece, a multiple of the page size.
    bytes: usize,
}

impl Drop for Region {
    fn drop(&mut self) {
        match self {
            Region::Kernel { base, bytes, .. } => {
                // SAFETY: this is exactly the mapping made at construction, and the last `Map` that
                // pointed into it is gone.
                let _ = unsafe { mm::munmap(*base, *bytes) };
            }
            Region::Heap { bytes, locked } => {
                for &(address, len) in locked.get_mut().unwrap_or_else(PoisonError::into_inner).iter() {
                    let start = ptr::with_exposed_provenance_mut(address);
                    // SAFETY: these pages surround `bytes`, which are still allocated here.
                    // Unlocking moves no data.
                    let _ = unsafe { mm::munlock(start, len) };
                }
                bytes.clear();
            }
        }
    }
}

impl Deref for Map {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `region` owns `len` initialised bytes at `start` for as long as `self` lives, and
        // they are never written.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &*self.region {
            Region::Kernel { is_file: true, .. } => "file",
            Region::Kernel { is_file: false, .. } => "anonymous",
            Region::Heap { .. } => "heap",
        };
        f.debug_struct("Map").field("kind", &kind).field("len", &self.len).finish()
    }
}

#[cfg(test)]
mod tests;
