//! Holding a page: shared or exclusively.
#![allow(unsafe_code)]

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;

use crate::arena::Header;
use crate::file::FileState;
use crate::latch::Left;
use crate::page::{Frame, PageId};
use crate::replacer::latch_key;
use crate::write_ahead::Lsn;

/// A page held with others: it stays in memory and nobody changes it. Dereferences to its payload.
///
/// A thread that holds a page must not ask for the same page exclusively: it would wait for itself, and get
/// [`Error::Timeout`](crate::Error::Timeout).
#[must_use]
pub struct Shared<'p> {
    pub(crate) file: &'p FileState,
    pub(crate) frame: Frame,
}

/// A page held alone. Dereferences to its payload; changed through [`Exclusive::payload_mut`].
#[must_use]
pub struct Exclusive<'p> {
    pub(crate) file: &'p FileState,
    pub(crate) frame: Frame,
}

impl<'p> Shared<'p> {
    fn header(&self) -> &'p Header {
        self.file.pool.arena.header(self.frame)
    }

    /// The page.
    pub fn id(&self) -> PageId {
        self.header().page()
    }

    /// The log record that changed the page last.
    pub fn lsn(&self) -> Lsn {
        self.header().lsn()
    }
}

impl Deref for Shared<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the guard holds the frame's latch shared, and the slice lives no longer than a borrow of the guard.
        let bytes = unsafe { self.file.pool.arena.bytes(self.frame) };
        // SAFETY: the header of a page is shorter than the page.
        unsafe { bytes.get_unchecked(self.file.format.payload_offset()..) }
    }
}

impl Drop for Shared<'_> {
    #[inline]
    fn drop(&mut self) {
        let left = self.header().latch.leave_shared();
        after_leaving(self.file, self.frame, left);
    }
}

impl<'p> Exclusive<'p> {
    fn header(&self) -> &'p Header {
        self.file.pool.arena.header(self.frame)
    }

    /// The page.
    pub fn id(&self) -> PageId {
        self.header().page()
    }

    /// The log record that changed the page last.
    pub fn lsn(&self) -> Lsn {
        self.header().lsn()
    }

    /// The payload, to be changed as the log record at `lsn` says. The page is dirty from now on, and is not written before the log is durable up to
    /// `lsn`. With [`Lsn::NONE`] for changes that are not logged.
    #[inline]
    pub fn payload_mut(&mut self, lsn: Lsn) -> &mut [u8] {
        if self.header().change(lsn) {
            self.file.pool.one_more_is_dirty();
        }
        // SAFETY: the guard holds the frame's latch exclusively, and is borrowed mutably as long as the slice lives.
        let bytes = unsafe { self.file.pool.arena.bytes_mut(self.frame) };
        // SAFETY: the header of a page is shorter than the page.
        unsafe { bytes.get_unchecked_mut(self.file.format.payload_offset()..) }
    }

    /// Holds the page with others from now on; nobody has it in between.
    pub fn downgrade(self) -> Shared<'p> {
        let guard = ManuallyDrop::new(self);
        let left = guard.header().latch.downgrade();
        after_leaving(guard.file, guard.frame, left);
        Shared { file: guard.file, frame: guard.frame }
    }
}

impl Deref for Exclusive<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the guard holds the frame's latch exclusively, and the slice lives no longer than a borrow of the guard.
        let bytes = unsafe { self.file.pool.arena.bytes(self.frame) };
        // SAFETY: the header of a page is shorter than the page.
        unsafe { bytes.get_unchecked(self.file.format.payload_offset()..) }
    }
}

impl Drop for Exclusive<'_> {
    #[inline]
    fn drop(&mut self) {
        let left = self.header().latch.leave_exclusive();
        after_leaving(self.file, self.frame, left);
    }
}

/// Wakes who waited for the frame's latch, and who waits for any frame.
#[inline]
pub(crate) fn after_leaving(file: &FileState, frame: Frame, left: Left) {
    if left == Left::Awaited {
        let latch = &file.pool.arena.header(frame).latch;
        file.pool.parking.wake(latch_key(frame), || latch.forget_waiters());
    }
    if file.pool.replacer.is_anybody_starving() {
        file.pool.replacer.call_next();
    }
}

impl fmt::Debug for Shared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("page", &self.id()).field("lsn", &self.lsn()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Exclusive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exclusive")
            .field("page", &self.id())
            .field("lsn", &self.lsn())
            .finish_non_exhaustive()
    }
}
