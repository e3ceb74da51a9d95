//! Memory that is reserved at once and takes up space page by page, on first touch.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::{self, NonNull};

use rustix::mm::{self, MapFlags, ProtFlags};

use crate::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};

/// Size and alignment of a huge page on x86-64 and on arm64 with 4 KiB base pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;
const _: () = assert!(HUGE_PAGE_BYTES.is_power_of_two());

/// Anonymous memory from the kernel: zeroed, private to the process, released when dropped.
///
/// It only hands out addresses. As with memory from an allocator, its users coordinate which
/// threads may read and write through them.
pub struct Reservation {
    base: NonNull<u8>,
    mapped: usize,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread.
unsafe impl Send for Reservation {}
// SAFETY: shared access only returns addresses and advises the kernel, both of which are safe from
// several threads at once.
unsafe impl Sync for Reservation {}

impl Reservation {
    /// Reserves `len` bytes, aligned to 4 KiB, or to 2 MiB if `len` is at least that. Untouched
    /// memory only costs address space. Errors: `OutOfMemory` when the address space or a limit on
    /// it is exhausted.
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
        // SAFETY: `skip + len <= mapped`, so the address lies inside the mapping made above.
        let start = unsafe { base.add(skip) };
        debug_assert!(start.addr().get().is_multiple_of(if slack > 0 { HUGE_PAGE_BYTES } else { 4096 }));
        Ok(Reservation { base, mapped, start, len })
    }

    /// Requests huge pages, which reduce TLB misses. Has no effect where the kernel has none.
    pub fn prefer_huge_pages(&self) {
        // SAFETY: the advice changes how the range is backed, not its content.
        let _ = unsafe { mm::madvise(self.start.as_ptr().cast(), self.len, mm::Advice::LinuxHugepage) };
    }

    /// Returns the address of the first byte.
    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true for a reservation of length 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Faults the pages of a part in now, so that no later access waits for one. Their content does
    /// not change. Best effort: where the kernel cannot populate ahead, pages are faulted in on
    /// first touch.
    ///
    /// Errors: `OutOfMemory` when no memory is left.
    pub fn populate(&self, part: Range<usize>) -> io::Result<()> {
        let Some((start, len)) = self.whole_pages(part, true) else { return Ok(()) };
        // SAFETY: the range is part of the mapping, and populating pages does not change their
        // content.
        match unsafe { mm::madvise(start.as_ptr().cast(), len, mm::Advice::LinuxPopulateWrite) } {
            Err(rustix::io::Errno::NOMEM) => Err(io::ErrorKind::OutOfMemory.into()),
            _ => Ok(()),
        }
    }

    /// Returns the memory of a part to the system; the part reads as zeros from then on. Bytes that
    /// share a system page with memory outside the part keep their content.
    ///
    /// # Safety
    /// No reference to bytes of the part exists during the call.
    pub unsafe fn release(&self, part: Range<usize>) {
        let Some((start, len)) = self.whole_pages(part, false) else { return };
        // SAFETY: the range is part of the mapping, and the caller guarantees that no reference to
        // it exists.
        let _ = unsafe { mm::madvise(start.as_ptr().cast(), len, mm::Advice::LinuxDontNeed) };
    }

    /// Returns the system pages that a part touches, or those that lie entirely inside it.
    fn whole_pages(&self, part: Range<usize>, touched: bool) -> Option<(NonNull<u8>, usize)> {
        let page = rustix::param::page_size();
        let (from, to) = (part.start.min(self.len), part.end.min(self.len));
        let (from, to) = if touched {
            (from / page * page, to.next_multiple_of(page).min(self.len))
        } else {
            (from.next_multiple_of(page), if to == self.len { to } else { to / page * page })
        };
        debug_assert!(
            from >= to || (from.is_multiple_of(page) && to <= self.len),
            "{from}..{to} of {}",
            self.len
        );
        debug_assert!(
            touched || from >= to || (part.start <= from && to <= part.end),
            "{from}..{to} is released, of which only {part:?} may be"
        );
        // SAFETY: `from < to <= len`, so the address lies inside the mapping.
        (from < to).then(|| (unsafe { self.start.add(from) }, to - from))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        debug_assert!(
            self.start >= self.base
                && self.start.addr().get() - self.base.addr().get() + self.len <= self.mapped,
            "the {} bytes to unmap do not hold the reservation",
            self.mapped
        );
        // SAFETY: the mapping was made in `new` and is unmapped once; no address outlives its
        // owner.
        let _ = unsafe { mm::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("len", &self.len).finish()
    }
}

/// A zero-initialised buffer aligned for direct I/O. Dereferences to `[u8]`.
#[derive(Debug)]
pub struct Buffer(Reservation);

impl Buffer {
    /// Allocates `len` bytes, aligned to 4 KiB. Errors: `OutOfMemory`.
    pub fn new(len: usize) -> io::Result<Self> {
        let reservation = Reservation::new(len)?;
        debug_assert!(reservation.start().addr().get().is_multiple_of(4096), "direct I/O would refuse it");
        Ok(Buffer(reservation))
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the reservation belongs to this buffer alone, and no part of it is ever released.
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr(), self.0.len) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.0.start.as_ptr(), self.0.len) }
    }
}

/// Types for which all zero bits are a valid value.
///
/// # Safety
/// All zero bits must be a valid value and equal to the default, and dropping it must do nothing.
/// (In builds that explore schedules, the default value is used instead, since atomics hold more
/// than their bits there.)
pub unsafe trait ZeroIsValid: Default {}

macro_rules! zero_is_valid {
    ($($type:ty),*) => {
        $(
            // SAFETY: an integer, whose zero consists of zero bits.
            unsafe impl ZeroIsValid for $type {}
        )*
    };
}
zero_is_valid!(AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize);

/// A slice of zeros that takes up memory only where it was touched, for tables that are sized for
/// the largest case.
pub struct Zeroed<T> {
    #[cfg(not(cairn_shuttle))]
    memory: Reservation,
    #[cfg(cairn_shuttle)]
    memory: Box<[T]>,
    len: usize,
    values: PhantomData<T>,
}

impl<T: ZeroIsValid> Zeroed<T> {
    /// Creates a slice of `len` zeros. Errors: those of [`Reservation::new`].
    pub fn new(len: usize) -> io::Result<Self> {
        const { assert!(align_of::<T>() <= 4096) };
        let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        #[cfg(not(cairn_shuttle))]
        let memory = Reservation::new(bytes)?;
        #[cfg(cairn_shuttle)]
        let memory = (0..bytes / size_of::<T>()).map(|_| T::default()).collect();
        let zeroed = Zeroed { memory, len, values: PhantomData };
        debug_assert!((len == 0 || zeroed.first().is_aligned()) && bytes <= isize::MAX as usize);
        Ok(zeroed)
    }

    /// Returns the value at `index`.
    ///
    /// # Safety
    /// `index` is below the length.
    #[inline]
    pub unsafe fn at(&self, index: usize) -> &T {
        debug_assert!(index < self.len);
        // SAFETY: the index is within the memory, which is aligned and started as zeros, a valid
        // value of `T`. All later changes go through shared references to `T`.
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
        #[cfg(not(cairn_shuttle))]
        debug_assert!(
            self.len.saturating_mul(size_of::<T>()) <= self.memory.len(),
            "{} values are in {} bytes",
            self.len,
            self.memory.len()
        );
        // SAFETY: as in `at`, for all values.
        unsafe { std::slice::from_raw_parts(self.first().as_ptr(), self.len) }
    }
}

// SAFETY: it owns its values, as a `Vec` does.
unsafe impl<T: Send> Send for Zeroed<T> {}
// SAFETY: shared access only gives out shared references to the values.
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

    /// Goal: reserved memory is zeroed and aligned, and can be written, populated and released.
    /// Method: fill it and release all but the first bytes; bytes beside the released part keep
    /// their content.
    #[test]
    fn reserved_memory() {
        for len in [1, 4096, 10_000, 5 << 20] {
            let memory = Reservation::new(len).unwrap();
            let align = if len >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { 4096 };
            assert!((memory.start().as_ptr() as usize).is_multiple_of(align));
            memory.prefer_huge_pages();
            memory.populate(0..len).unwrap();
            memory.populate(len..2 * len).unwrap();
            // SAFETY: the bytes are within the reservation, to which nothing else refers.
            let bytes = unsafe { std::slice::from_raw_parts_mut(memory.start().as_ptr(), len) };
            assert!(bytes.iter().all(|&byte| byte == 0));
            bytes.fill(7);
            // SAFETY: the reference above is not used after this.
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
    /// Goal: a table of zeros far larger than memory can be allocated and stores values.
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
