//! Guards for latched pages, shared or exclusive.
#![allow(unsafe_code)]

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;

use crate::arena::Header;
use crate::page::{Frame, PageId};
use crate::state::FileState;
use crate::write_ahead::Lsn;

/// A page latched in shared mode: it stays in memory and does not change. Dereferences to its
/// payload.
///
/// A thread that holds a page must not request the same page in exclusive mode. It would wait for
/// itself and get [`Error::Timeout`](crate::Error::Timeout).
///
/// A shared page cannot be changed:
///
/// ```compile_fail,E0599
/// # fn change(file: &cairn_pool::PoolFile) -> cairn_pool::Result<()> {
/// file.read(0)?.payload_mut(cairn_pool::Lsn::NONE)[0] = 1;
/// # Ok(()) }
/// ```
///
/// Its bytes cannot outlive the guard, and the guard cannot outlive the open file:
///
/// ```compile_fail,E0505
/// # fn keep(file: &cairn_pool::PoolFile) -> cairn_pool::Result<u8> {
/// let guard = file.read(0)?;
/// let bytes = &guard[..];
/// drop(guard);
/// # Ok(bytes[0]) }
/// ```
///
/// ```compile_fail,E0505
/// # fn close(file: cairn_pool::PoolFile) -> cairn_pool::Result<u8> {
/// let guard = file.read(0)?;
/// file.close()?;
/// # Ok(guard[0]) }
/// ```
#[must_use]
pub struct Shared<'p>(LatchedFrame<'p>);

/// A page latched in exclusive mode. Dereferences to its payload; [`Exclusive::payload_mut`]
/// changes it.
///
/// A change without an LSN does not compile, nor does one after a downgrade:
///
/// ```compile_fail,E0061
/// # fn change(file: &cairn_pool::PoolFile) -> cairn_pool::Result<()> {
/// file.write(0)?.payload_mut()[0] = 1;
/// # Ok(()) }
/// ```
///
/// ```compile_fail,E0382
/// # fn change(file: &cairn_pool::PoolFile) -> cairn_pool::Result<()> {
/// let mut alone = file.write(0)?;
/// let shared = alone.downgrade();
/// alone.payload_mut(cairn_pool::Lsn::NONE)[0] = 1;
/// # Ok(()) }
/// ```
#[must_use]
pub struct Exclusive<'p>(LatchedFrame<'p>);

/// A latched frame, in either mode, and the file of its page.
#[derive(Clone, Copy)]
struct LatchedFrame<'p> {
    file: &'p FileState,
    frame: Frame,
}

impl<'p> LatchedFrame<'p> {
    fn header(self) -> &'p Header {
        self.file.pool.arena.header(self.frame)
    }

    fn fmt(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = self.header();
        f.debug_struct(name).field("page", &header.page()).field("lsn", &header.lsn()).finish_non_exhaustive()
    }

    /// Returns the payload.
    ///
    /// # Safety
    /// The latch is held, shared or exclusive, for the lifetime of the slice.
    #[inline]
    unsafe fn payload(self) -> &'p [u8] {
        // SAFETY: guaranteed by the caller.
        let bytes = unsafe { self.file.pool.arena.bytes(self.frame) };
        debug_assert!(self.file.format.payload_offset() < bytes.len());
        // SAFETY: the header of a page is shorter than the page.
        unsafe { bytes.get_unchecked(self.file.format.payload_offset()..) }
    }
}

impl<'p> Shared<'p> {
    /// Creates a guard for a frame whose latch the caller holds in shared mode. The guard releases
    /// the latch.
    #[inline]
    pub(crate) fn new(file: &'p FileState, frame: Frame) -> Self {
        let latched = LatchedFrame { file, frame };
        debug_assert!(latched.header().latch.is_held(), "a guard of frame {frame} without its latch");
        Shared(latched)
    }

    #[inline]
    pub(crate) fn frame(&self) -> Frame {
        self.0.frame
    }

    /// Returns the page's id.
    pub fn id(&self) -> PageId {
        self.0.header().page()
    }

    /// Returns the LSN of the page's last change.
    pub fn lsn(&self) -> Lsn {
        self.0.header().lsn()
    }
}

impl Deref for Shared<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the guard holds the frame's shared latch, and the slice does not outlive a borrow
        // of the guard.
        unsafe { self.0.payload() }
    }
}

impl Drop for Shared<'_> {
    #[inline]
    fn drop(&mut self) {
        let left = self.0.header().latch.release_shared();
        self.0.file.pool.wake_after_release(self.0.frame, left);
    }
}

impl<'p> Exclusive<'p> {
    /// Creates a guard for a frame whose latch the caller holds in exclusive mode. The guard
    /// releases the latch.
    #[inline]
    pub(crate) fn new(file: &'p FileState, frame: Frame) -> Self {
        let latched = LatchedFrame { file, frame };
        debug_assert!(latched.header().latch.is_exclusive(), "a guard of frame {frame} without its latch");
        Exclusive(latched)
    }

    /// Returns the page's id.
    pub fn id(&self) -> PageId {
        self.0.header().page()
    }

    /// Returns the LSN of the page's last change.
    pub fn lsn(&self) -> Lsn {
        self.0.header().lsn()
    }

    /// Returns the payload for the change that the log record at `lsn` describes. The page is dirty
    /// from now on, and is not written before the log is durable up to `lsn`. Pass [`Lsn::NONE`]
    /// for changes that are not logged.
    #[inline]
    pub fn payload_mut(&mut self, lsn: Lsn) -> &mut [u8] {
        let LatchedFrame { file, frame } = self.0;
        if self.0.header().change(lsn) {
            file.pool.count_dirty();
        }
        // SAFETY: the guard holds the frame's exclusive latch, and is borrowed mutably for the
        // lifetime of the slice.
        let bytes = unsafe { file.pool.arena.bytes_mut(frame) };
        debug_assert!(file.format.payload_offset() < bytes.len());
        // SAFETY: the header of a page is shorter than the page.
        unsafe { bytes.get_unchecked_mut(file.format.payload_offset()..) }
    }

    /// Converts the guard to shared mode without releasing the page in between.
    pub fn downgrade(self) -> Shared<'p> {
        let held = ManuallyDrop::new(self).0;
        debug_assert!(held.header().page().file() == held.file.number);
        let left = held.header().latch.downgrade();
        held.file.pool.wake_after_release(held.frame, left);
        Shared(held)
    }
}

impl Deref for Exclusive<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the guard holds the frame's exclusive latch, and the slice does not outlive a
        // borrow of the guard.
        unsafe { self.0.payload() }
    }
}

impl Drop for Exclusive<'_> {
    #[inline]
    fn drop(&mut self) {
        let left = self.0.header().latch.release_exclusive();
        self.0.file.pool.wake_after_release(self.0.frame, left);
    }
}

impl fmt::Debug for Shared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt("Shared", f)
    }
}

impl fmt::Debug for Exclusive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt("Exclusive", f)
    }
}
