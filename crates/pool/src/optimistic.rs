//! Reads a page without holding its latch.
//!
//! The page may change while it is read. So values are copied out one by one, each with a single
//! volatile load, and are trusted only after [`Optimistic::validate`] confirms that nobody held the
//! page exclusively meanwhile. This module never creates a reference to the page's bytes. Strictly
//! speaking, a load that races with a plain store is undefined in the language's memory model. As
//! in other sequence locks, the volatile load returns some bytes, and the version check discards
//! them.
#![allow(unsafe_code)]

use std::cmp::Ordering;
use std::fmt;
use std::ptr::NonNull;

use crate::error::Result;
use crate::guard::{Exclusive, Shared};
use crate::latch::Version;
use crate::page::{Frame, PageId};
use crate::state::FileState;
use crate::write_ahead::Lsn;

/// The page changed or left its frame while it was read, so the values read are meaningless. The
/// caller starts over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the page was changed while it was read")]
pub struct Changed;

/// A view of a page that may change while it is read. Creating one costs a few loads, and writes
/// nothing that other threads read.
///
/// Offsets count from the start of the payload. An out-of-range offset may have come from bytes
/// that were being changed, so it returns [`Changed`] instead of panicking.
#[derive(Clone, Copy)]
pub struct Optimistic<'p> {
    file: &'p FileState,
    place: FramePage,
    version: Version,
    /// Start of the payload.
    start: NonNull<u8>,
    len: usize,
}

/// A frame and its page number in one word. Two separate halves would be copied together by a
/// single load, to which a processor cannot forward two stores. Each copy would then wait for the
/// cache, which took a fifth of the cost of an optimistic read.
#[derive(Clone, Copy)]
struct FramePage(u64);

impl FramePage {
    #[inline]
    fn new(frame: Frame, page: u32) -> Self {
        FramePage(u64::from(frame) << 32 | u64::from(page))
    }

    #[inline]
    fn frame(self) -> Frame {
        (self.0 >> 32) as Frame
    }

    #[inline]
    fn page(self) -> u32 {
        self.0 as u32
    }
}

/// The identity of a page's content at one moment. A later comparison shows whether the page is
/// unchanged, even if it has left memory meanwhile, or if its frame holds another page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageVersion {
    frame: Frame,
    version: Version,
}

/// A value in a page, at any alignment.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned<T>(T);

impl<'p> Optimistic<'p> {
    #[inline]
    pub(crate) fn new(file: &'p FileState, frame: Frame, page: u32, version: Version) -> Self {
        let (arena, skip) = (&file.pool.arena, file.format.payload_offset());
        debug_assert!(skip < arena.page_size());
        debug_assert!(
            FramePage::new(frame, page).frame() == frame && FramePage::new(frame, page).page() == page
        );
        // SAFETY: the header of a page is shorter than the page.
        let start = unsafe { arena.start(frame).add(skip) };
        Optimistic { file, place: FramePage::new(frame, page), version, start, len: arena.page_size() - skip }
    }

    /// Returns the page's id.
    pub fn id(&self) -> PageId {
        PageId::new(self.file.number, self.place.page())
    }

    /// Returns the identity of the current content. A page that was evicted and read again counts
    /// as different, even if it did not change.
    #[inline]
    pub fn version(&self) -> PageVersion {
        PageVersion { frame: self.place.frame(), version: self.version }
    }

    /// Returns the LSN of the page's last change. Valid if [`Optimistic::validate`] succeeds
    /// afterwards.
    #[inline]
    pub fn lsn(&self) -> Lsn {
        self.file.pool.arena.header(self.place.frame()).lsn()
    }

    /// Returns the length of the payload.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns false: pages are never empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Confirms that everything read through this view is consistent: nobody held the page
    /// exclusively since.
    #[inline]
    pub fn validate(&self) -> Result<(), Changed> {
        let latch = &self.file.pool.arena.header(self.place.frame()).latch;
        if latch.is_at(self.version) { Ok(()) } else { Err(Changed) }
    }

    #[inline]
    fn load<T: Copy>(&self, offset: usize) -> Result<T, Changed> {
        if offset > self.len || self.len - offset < size_of::<T>() {
            return Err(Changed);
        }
        // SAFETY: by the check above, the bytes lie within the frame, and the arena lives as long
        // as the pool. Any bytes are a valid value of the integer types that `T` stands for.
        // Concurrent writers are discussed at the top of this file.
        let value = unsafe { self.start.add(offset).cast::<Unaligned<T>>().read_volatile() };
        Ok(value.0)
    }

    /// Returns the byte at `offset`.
    #[inline]
    pub fn u8(&self, offset: usize) -> Result<u8, Changed> {
        self.load::<u8>(offset)
    }

    /// Returns the two bytes at `offset`, little endian.
    #[inline]
    pub fn u16(&self, offset: usize) -> Result<u16, Changed> {
        self.load::<u16>(offset).map(u16::from_le)
    }

    /// Returns the four bytes at `offset`, little endian.
    #[inline]
    pub fn u32(&self, offset: usize) -> Result<u32, Changed> {
        self.load::<u32>(offset).map(u32::from_le)
    }

    /// Returns the eight bytes at `offset`, little endian.
    #[inline]
    pub fn u64(&self, offset: usize) -> Result<u64, Changed> {
        self.load::<u64>(offset).map(u64::from_le)
    }

    /// Copies bytes from `offset` on.
    pub fn copy_to(&self, offset: usize, to: &mut [u8]) -> Result<(), Changed> {
        if offset > self.len || self.len - offset < to.len() {
            return Err(Changed);
        }
        let (words, rest) = to.as_chunks_mut::<8>();
        let tail = offset + 8 * words.len();
        debug_assert!(tail + rest.len() <= self.len);
        for (at, word) in words.iter_mut().enumerate() {
            *word = self.load::<u64>(offset + 8 * at)?.to_ne_bytes();
        }
        for (at, byte) in rest.iter_mut().enumerate() {
            *byte = self.load::<u8>(tail + at)?;
        }
        Ok(())
    }

    /// Compares the `len` bytes at `offset` with `other`, byte by byte.
    pub fn compare(&self, offset: usize, len: usize, other: &[u8]) -> Result<Ordering, Changed> {
        if offset > self.len || self.len - offset < len {
            return Err(Changed);
        }
        let (words, rest) = other[..len.min(other.len())].as_chunks::<8>();
        for (at, word) in words.iter().enumerate() {
            let (own, word) = (u64::from_be(self.load::<u64>(offset + 8 * at)?), u64::from_be_bytes(*word));
            if own != word {
                return Ok(own.cmp(&word));
            }
        }
        let tail = offset + 8 * words.len();
        debug_assert!(tail + rest.len() <= offset + len);
        for (at, byte) in rest.iter().enumerate() {
            let own = self.load::<u8>(tail + at)?;
            if own != *byte {
                return Ok(own.cmp(byte));
            }
        }
        Ok(len.cmp(&other.len()))
    }

    /// Latches the page in shared mode if it has not changed since.
    pub fn upgrade_shared(&self) -> Result<Shared<'p>, Changed> {
        let latch = &self.file.pool.arena.header(self.place.frame()).latch;
        if !latch.try_shared_in_turn() {
            return Err(Changed);
        }
        let guard = Shared::new(self.file, self.place.frame());
        self.validate()?;
        debug_assert!(guard.id() == self.id(), "{} is in the frame of {}", guard.id(), self.id());
        Ok(guard)
    }

    /// Latches the page in exclusive mode if nobody else holds it and it has not changed since.
    pub fn upgrade_exclusive(&self) -> Result<Exclusive<'p>, Changed> {
        let latch = &self.file.pool.arena.header(self.place.frame()).latch;
        if !latch.try_exclusive_at(self.version) {
            return Err(Changed);
        }
        let guard = Exclusive::new(self.file, self.place.frame());
        debug_assert!(guard.id() == self.id(), "{} is in the frame of {}", guard.id(), self.id());
        Ok(guard)
    }
}

impl fmt::Debug for Optimistic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Optimistic")
            .field("page", &self.id())
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
