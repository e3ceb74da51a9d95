//! A writable shared mapping of a part of a file.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::mm::{self, MapFlags, ProtFlags};

/// File systems on which allocated space is still available when a page in it is written.
///
/// On others (btrfs, ZFS, F2FS and other copy-on-write, overlay and network file systems), a store
/// can meet a full disk, which kills the process. The same can happen on XFS if the file is cloned
/// while it is mapped; `docs/src/durability.md` warns users of that.
const KEEPS_ALLOCATIONS: [u64; 3] = [
    0xef53,      // ext4; ext2 and ext3 share the number, but cannot allocate
    0x5846_5342, // XFS
    0x0102_1994, // tmpfs
];

/// How pages are brought in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Present {
    /// The first store into each page takes a fault that makes the page writable. A write-back
    /// before that store does not interrupt the other processors, since it has no write access to
    /// revoke.
    Readable,
    /// Stores take no fault.
    Writable,
}

/// Memory backed by a part of a file. Only [`AppendMap`](super::AppendMap) gives access to it.
#[derive(Debug)]
pub struct Region {
    range: Range<u64>,
    /// The first byte of the range.
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread.
unsafe impl Send for Region {}
// SAFETY: shared access only returns addresses and populates pages, both of which are safe from
// several threads at once.
unsafe impl Sync for Region {}

impl Region {
    /// Maps a page-aligned range of a file. Returns `None` where a store into it could fail.
    pub(crate) fn from_descriptor(file: BorrowedFd<'_>, range: Range<u64>) -> io::Result<Option<Region>> {
        let kind = rustix::fs::fstatfs(file)?.f_type as u64;
        if !KEEPS_ALLOCATIONS.contains(&kind) {
            return Ok(None);
        }
        debug_assert!(range.start.is_multiple_of(4096) && range.start < range.end);
        let len = range.end.saturating_sub(range.start);
        loop {
            match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, range.start, len) {
                Ok(()) => break,
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        let bytes = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let base =
            unsafe { mm::mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, range.start)? };
        let start = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        debug_assert!(bytes as u64 == range.end - range.start);
        Ok(Some(Region { range, start, bytes }))
    }

    pub(super) fn range(&self) -> &Range<u64> {
        &self.range
    }

    /// Returns the address of the byte at `offset`, a file offset within the range.
    #[inline]
    pub(super) fn at(&self, offset: u64) -> NonNull<u8> {
        debug_assert!(self.range.contains(&offset));
        let inside = (offset - self.range.start) as usize;
        // SAFETY: `AppendMap` only passes offsets within the range, and the whole range is mapped.
        unsafe { self.start.add(inside) }
    }

    /// Returns the file offset of the start of the page that holds `offset`.
    pub(super) fn page_start(&self, offset: u64) -> u64 {
        debug_assert!(offset >= self.range.start && offset <= self.range.end, "{offset} is not mapped");
        let page = rustix::param::page_size() as u64;
        let start = self.range.start + (offset - self.range.start) / page * page;
        debug_assert!(start <= offset && offset - start < page, "{offset} is not on the page at {start}");
        start
    }

    /// Makes the pages of a part of the range present and, with [`Present::Writable`], writable,
    /// without changing them. A page that cannot be had is an error here, where a store would raise
    /// a signal.
    pub(super) fn populate(&self, part: Range<u64>, present: Present) -> io::Result<()> {
        debug_assert!(part.start >= self.range.start && part.end <= self.range.end, "{part:?} is not mapped");
        let page = rustix::param::page_size();
        let from = (part.start - self.range.start) as usize / page * page;
        let to = ((part.end - self.range.start) as usize)
            .next_multiple_of(page)
            .min(self.bytes.next_multiple_of(page));
        debug_assert!(from < to);
        debug_assert!(
            part.start >= self.range.start + from as u64 && part.end <= self.range.start + to as u64,
            "the pages {from}..{to} do not cover {part:?}"
        );
        // SAFETY: `from` lies in the mapping.
        let start = unsafe { self.start.add(from) };
        let advice = match present {
            Present::Readable => mm::Advice::LinuxPopulateRead,
            Present::Writable => mm::Advice::LinuxPopulateWrite,
        };
        loop {
            // SAFETY: the pages are mapped writable, and populating changes no byte of them.
            match unsafe { mm::madvise(start.as_ptr().cast(), to - from, advice) } {
                Ok(()) => return Ok(()),
                Err(Errno::INTR | Errno::AGAIN) => {}
                // Kernels before 5.14 do not support this advice.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    self.touch(part, present);
                    return Ok(());
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Removes pages from the process's memory. They stay in the page cache, dirty ones included.
    /// `part` must begin and end on a page boundary or at the bounds of the range.
    pub(super) fn release_memory(&self, part: Range<u64>) -> io::Result<()> {
        // Otherwise, pages beside the part would be released as well.
        assert!(part.start >= self.range.start && part.end <= self.range.end, "{part:?} is not mapped");
        assert!(
            part.start < part.end && part.start == self.page_start(part.start),
            "{part:?} is not of pages"
        );
        let len = (part.end - part.start) as usize;
        // SAFETY: the pages lie in a shared file mapping, where a later access faults the same
        // bytes in again. The only visible effect is the time that takes.
        unsafe { mm::madvise(self.at(part.start).as_ptr().cast(), len, mm::Advice::LinuxDontNeed)? };
        Ok(())
    }

    /// Makes each page present by reading one byte of it. For [`Present::Writable`], also writes
    /// the byte back.
    fn touch(&self, part: Range<u64>, present: Present) {
        let page = rustix::param::page_size() as u64;
        let mut at = part.start;
        while at < part.end {
            let byte = self.at(at).as_ptr();
            // SAFETY: the byte is mapped, and no other thread has access to it, since `AppendMap`
            // hands out memory only after it was populated. Volatile, so that the compiler does not
            // remove the access.
            unsafe {
                let value = byte.read_volatile();
                if present == Present::Writable {
                    byte.write_volatile(value);
                }
            }
            at = (at + 1).next_multiple_of(page);
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        debug_assert!(self.bytes as u64 == self.range.end - self.range.start, "not all is unmapped");
        // SAFETY: this is exactly the mapping made at construction. `AppendMap` drops it only when
        // no slot is left.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    /// Goal: kernels without `MADV_POPULATE_WRITE` get the pages too, unchanged. Method: call the
    /// fallback on existing bytes, from the middle of a page to the middle of another, and also
    /// call `populate`.
    #[test]
    fn touch_changes_nothing() {
        let shared = tempfile::tempfile_in("/dev/shm").ok();
        for file in std::iter::once(tempfile::tempfile().unwrap()).chain(shared) {
            let bytes: Vec<u8> = (0..20_000_u32).map(|n| n as u8).collect();
            std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
            let Some(region) = Region::from_descriptor(file.as_fd(), 0..20_000).unwrap() else { continue };
            for present in [Present::Readable, Present::Writable] {
                region.touch(100..19_000, present);
                region.populate(4096..20_000, present).unwrap();
                let mut after = vec![0; 20_000];
                std::os::unix::fs::FileExt::read_exact_at(&file, &mut after, 0).unwrap();
                assert!(after == bytes);
            }
        }
    }
}
