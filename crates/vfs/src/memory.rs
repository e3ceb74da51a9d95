//! Memory that is reserved at once and takes up room page by page, when it is first touched.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::{self, NonNull};

use rustix::mm::{self, MapFlags, ProtFlags};

use crate::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

/// Size and alignment of a huge page on x86-64 and on arm64 with 4 KiB base pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Anonymous memory of the kernel: zeros, private to the process, given back when dropped.
///
/// It only hands out addresses. Who reads and writes through them settles among its threads who
/// may, as for memory from an allocator.
pub struct Reservation {
    base: NonNull<u8>,
    mapped: usize,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread.
unsafe impl Send for Reservation {}
// SAFETY: shared access gives out addresses and advises the kernel, which threads may do side by
// side.
unsafe impl Sync for Reservation {}

impl Reservation {
    /// Reserves `len` bytes, aligned to 4 KiB, and to 2 MiB from that size on. Costs address space
    /// until it is touched.
    /// Errors: `OutOfMemory` when there is no such address space, or a limit on it.
    pub fn new(len: usize) -> io::Result<Reservation> {
        let slack = if len >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { 0 };
        // The kernel refuses empty mappings.
        let mapped = len.max(1).checked_add(slack).ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new private mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe {
            mm::mmap_anonymous(ptr::null_mut(), mapped, ProtFlags::READ | ProtFlags::WRITE, flags)?
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let skip = if slack > 0 { base.as_ptr().align_offset(HUGE_PAGE_BYTES) } else { 0 };
        debug_assert!(skip + len <= mapped);
        // SAFETY: skip + len <= mapped, so the address lies inside the mapping made above.
        let start = unsafe { base.add(skip) };
        Ok(Reservation { base, mapped, start, len })
    }

    /// Asks for huge pages, which cost fewer misses of the address translation. Without them
    /// nothing changes.
    pub fn prefer_huge_pages(&self) {
        // SAFETY: the advice changes how the range is backed, not what it holds.
        let _ = unsafe { mm::madvise(self.start.as_ptr().cast(), self.len, mm::Advice::LinuxHugepage) };
    }

    /// The first byte.
    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True for a reservation of nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Brings the pages of a part in now, so that no later access has to wait for one. What they
    /// hold stays. Best effort: where the kernel cannot do that ahead, they come when they are
    /// touched.
    ///
    /// Errors: `OutOfMemory` when there is none left.
    pub fn populate(&self, part: Range<usize>) -> io::Result<()> {
        let Some((start, len)) = self.whole_pages(part, true) else { return Ok(()) };
        // SAFETY: the range is part of the mapping; bringing pages in does not change what they
        // hold.
        match unsafe { mm::madvise(start.as_ptr().cast(), len, mm::Advice::LinuxPopulateWrite) } {
            Err(rustix::io::Errno::NOMEM) => Err(io::ErrorKind::OutOfMemory.into()),
            _ => Ok(()),
        }
    }

    /// Gives the memory of a part back to the system: it holds zeros from then on. Bytes on the
    /// same page of the system as what lies beside the part stay.
    ///
    /// # Safety
    /// Nobody refers to bytes of the part meanwhile.
    pub unsafe fn release(&self, part: Range<usize>) {
        let Some((start, len)) = self.whole_pages(part, false) else { return };
        // SAFETY: the range is part of the mapping, and by the caller's word nobody refers to it.
        let _ = unsafe { mm::madvise(start.as_ptr().cast(), len, mm::Advice::LinuxDontNeed) };
    }

    /// The pages of the system that a part touches, or those that lie inside it.
    fn whole_pages(&self, part: Range<usize>, touched: bool) -> Option<(NonNull<u8>, usize)> {
        let page = rustix::param::page_size();
        let (from, to) = (part.start.min(self.len), part.end.min(self.len));
        let (from, to) = if touched {
            (from / page * page, to.next_multiple_of(page).min(self.len))
        } else {
            (from.next_multiple_of(page), if to == self.len { to } else { to / page * page })
        };
        // SAFETY: from < to <= len, so the address lies inside the mapping.
        (from < to).then(|| (unsafe { self.start.add(from) }, to - from))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new`, is unmapped once, and nothing outlives its owner.
        let _ = unsafe { mm::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("len", &self.len).finish()
    }
}

/// Bytes at an address that direct I/O takes, all zero at first. Dereferences to `[u8]`.
#[derive(Debug)]
pub struct Buffer(Reservation);

impl Buffer {
    /// `len` bytes, aligned to 4 KiB. Errors: `OutOfMemory`.
    pub fn new(len: usize) -> io::Result<Self> {
        Reservation::new(len).map(Buffer)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the reservation is this buffer's alone, and never given back in part.
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr(), self.0.len) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.0.start.as_ptr(), self.0.len) }
    }
}

/// Types whose value of all zero bits is one of theirs.
///
/// # Safety
/// All zero bits must be a valid value, the same as the default one, and dropping it must do
/// nothing. (Not where schedules are explored: there it is the default that counts, since atomics
/// are more than their bits.)
pub unsafe trait ZeroIsValid: Default {}

macro_rules! zero_is_valid {
    ($($type:ty),*) => {
        $(
            // SAFETY: an integer, whose zero is all zero bits.
            unsafe impl ZeroIsValid for $type {}
        )*
    };
}
zero_is_valid!(AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize);

/// A slice of zeros that takes up memory where it was touched. For tables that are sized for the
/// largest case.
pub struct Zeroed<T> {
    #[cfg(not(cairn_shuttle))]
    memory: Reservation,
    #[cfg(cairn_shuttle)]
    memory: Box<[T]>,
    len: usize,
    values: PhantomData<T>,
}

impl<T: ZeroIsValid> Zeroed<T> {
    /// `len` zeros. Errors: as [`Reservation::new`].
    pub fn new(len: usize) -> io::Result<Self> {
        const { assert!(align_of::<T>() <= 4096) };
        let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        #[cfg(not(cairn_shuttle))]
        let memory = Reservation::new(bytes)?;
        #[cfg(cairn_shuttle)]
        let memory = (0..bytes / size_of::<T>()).map(|_| T::default()).collect();
        Ok(Zeroed { memory, len, values: PhantomData })
    }

    /// The value at `index`.
    ///
    /// # Safety
    /// `index` is below the length.
    #[inline]
    pub unsafe fn at(&self, index: usize) -> &T {
        debug_assert!(index < self.len);
        // SAFETY: the caller's index is within the memory, which is aligned and was zeros, a value
        // of T; what changes it since goes through shared references to T.
        unsafe { self.first().add(index).as_ref() }
    }
}

impl<T> Zeroed<T> {
    #[inline]
    fn first(&self) -> NonNull<T> {
        #[cfg(not(cairn_shuttle))]
        return self.memory.start().cast::<T>();
        #[cfg(cairn_shuttle)]
        NonNull::from(&*self.memory).cast::<T>()
    }
}

impl<T: ZeroIsValid> Deref for Zeroed<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: as in `at`, for all of them.
        unsafe { std::slice::from_raw_parts(self.first().as_ptr(), self.len) }
    }
}

// SAFETY: it owns its values, as a vector does.
unsafe impl<T: Send> Send for Zeroed<T> {}
// SAFETY: shared access gives shared references to them.
unsafe impl<T: Sync> Sync for Zeroed<T> {}

impl<T> fmt::Debug for Zeroed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zeroed").field("len", &self.len).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::atomic::Ordering::Relaxed;

    /// Goal: reserved memory is zeros, aligned, can be written, brought in and given back. Method:
    /// a byte on each page; what lies beside a released part stays.
    #[test]
    fn reserved_memory() {
        for len in [1, 4096, 10_000, 5 << 20] {
            let memory = Reservation::new(len).unwrap();
            let align = if len >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { 4096 };
            assert!((memory.start().as_ptr() as usize).is_multiple_of(align));
            memory.prefer_huge_pages();
            memory.populate(0..len).unwrap();
            memory.populate(len..2 * len).unwrap();
            // SAFETY: the bytes are within the reservation, which nobody else has.
            let bytes = unsafe { std::slice::from_raw_parts_mut(memory.start().as_ptr(), len) };
            assert!(bytes.iter().all(|&byte| byte == 0));
            bytes.fill(7);
            // SAFETY: the reference above is not used until after.
            unsafe { memory.release(100..len) };
            // SAFETY: as above.
            let bytes = unsafe { std::slice::from_raw_parts(memory.start().as_ptr(), len) };
            let page = rustix::param::page_size();
            assert!(bytes[..len.min(page)].iter().all(|&byte| byte == 7));
            assert!(bytes[len.min(page)..].iter().all(|&byte| byte == 0));
            assert!(!memory.is_empty() && memory.len() == len && format!("{memory:?}").contains("len"));
        }
        let mut buffer = Buffer::new(5000).unwrap();
        buffer[4999] = 1;
        assert_eq!((buffer.len(), buffer.iter().map(|&byte| usize::from(byte)).sum::<usize>()), (5000, 1));
        assert!(Reservation::new(0).unwrap().is_empty());
        assert_eq!(Reservation::new(usize::MAX).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
    }

    #[cfg(not(cairn_shuttle))]
    /// Goal: a table of zeros far larger than the memory can be had, and holds what is put into it.
    #[test]
    fn zeros_are_cheap() {
        let table: Zeroed<AtomicU32> = Zeroed::new(1 << 34).unwrap();
        table[1 << 33].store(9, Relaxed);
        assert_eq!((table.len(), table[0].load(Relaxed), table[1 << 33].load(Relaxed)), (1 << 34, 0, 9));
        // SAFETY: the index is below the length.
        assert_eq!(unsafe { table.at(1 << 33) }.load(Relaxed), 9);
        assert!(Zeroed::<AtomicU64>::new(usize::MAX).is_err());
    }
}
