//! Reading a page without holding it.
//!
//! What is read may be changed while it is read. So it is copied out, value by value, each loaded
//! once (volatile), and believed only after [`Optimistic::validate`] has said that nobody had the
//! page exclusively meanwhile. Nothing here makes a reference to the page's bytes. By the letter of
//! the language's memory model a load that races with a plain store has no value; as in other
//! sequence locks, the volatile load gives some bytes, and the version check throws them away.
#![allow(unsafe_code)]

use std::cmp::Ordering;
use std::fmt;
use std::ptr::NonNull;

use crate::error::Result;
use crate::file::FileState;
use crate::guard::{Exclusive, Shared};
use crate::latch::Version;
use crate::page::{Frame, PageId};
use crate::write_ahead::Lsn;

/// The page was changed, or left its frame, while it was read: what was read means nothing. Start
/// over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the page was changed while it was read")]
pub struct Changed;

/// A page that may change while it is read. Cost: a few loads; nothing is written that other
/// threads read.
///
/// Offsets count from the payload's start. One beyond its end is an error of the page, not of the
/// program: it may have come from bytes that were being changed, so it reads as [`Changed`].
#[derive(Clone, Copy)]
pub struct Optimistic<'p> {
    file: &'p FileState,
    place: Place,
    version: Version,
    /// The payload.
    start: NonNull<u8>,
    len: usize,
}

/// A frame, and behind it the page. One word, since two halves of a word are copied together, and a
/// processor cannot forward two stores to one load: each copy would wait for the cache, a fifth of
/// what a look at a page costs.
#[derive(Clone, Copy)]
struct Place(u64);

impl Place {
    #[inline]
    fn new(frame: Frame, page: u32) -> Self {
        Place(u64::from(frame) << 32 | u64::from(page))
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

/// A page as it was seen: who looks at it again can tell whether it is what it was, also if it has
/// left memory meanwhile, or its number is another page's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    frame: Frame,
    version: Version,
}

/// A value as it lies in a page, at any address.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned<T>(T);

impl<'p> Optimistic<'p> {
    #[inline]
    pub(crate) fn new(file: &'p FileState, frame: Frame, page: u32, version: Version) -> Self {
        let (arena, skip) = (&file.pool.arena, file.format.payload_offset());
        // SAFETY: the header of a page is shorter than the page.
        let start = unsafe { arena.start(frame).add(skip) };
        Optimistic { file, place: Place::new(frame, page), version, start, len: arena.page_size() - skip }
    }

    /// The page.
    pub fn id(&self) -> PageId {
        PageId::new(self.file.number, self.place.page())
    }

    /// What tells it from the same page after a change. A page that comes back into memory is
    /// another one, though it may be unchanged.
    #[inline]
    pub fn seen(&self) -> Seen {
        Seen { frame: self.place.frame(), version: self.version }
    }

    /// The log record that changed the page last: of this page, if [`Optimistic::validate`] says so
    /// afterwards.
    #[inline]
    pub fn lsn(&self) -> Lsn {
        self.file.pool.arena.header(self.place.frame()).lsn()
    }

    /// Bytes of the payload.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// False: pages have bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Says whether all that was read through this is true: nobody had the page exclusively since.
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
        // SAFETY: the bytes lie within the frame by the check above, and the arena lives as long as
        // the pool. Any bytes are a value of the integers that this is called for. For who writes
        // meanwhile: see the head of this file.
        let value = unsafe { self.start.add(offset).cast::<Unaligned<T>>().read_volatile() };
        Ok(value.0)
    }

    /// The byte at `offset`.
    #[inline]
    pub fn u8(&self, offset: usize) -> Result<u8, Changed> {
        self.load::<u8>(offset)
    }

    /// The two bytes at `offset`, little endian.
    #[inline]
    pub fn u16(&self, offset: usize) -> Result<u16, Changed> {
        self.load::<u16>(offset).map(u16::from_le)
    }

    /// The four bytes at `offset`, little endian.
    #[inline]
    pub fn u32(&self, offset: usize) -> Result<u32, Changed> {
        self.load::<u32>(offset).map(u32::from_le)
    }

    /// The eight bytes at `offset`, little endian.
    #[inline]
    pub fn u64(&self, offset: usize) -> Result<u64, Changed> {
        self.load::<u64>(offset).map(u64::from_le)
    }

    /// Copies the bytes from `offset` on.
    pub fn copy_to(&self, offset: usize, to: &mut [u8]) -> Result<(), Changed> {
        if offset > self.len || self.len - offset < to.len() {
            return Err(Changed);
        }
        let (words, rest) = to.as_chunks_mut::<8>();
        let tail = offset + 8 * words.len();
        for (at, word) in words.iter_mut().enumerate() {
            *word = self.load::<u64>(offset + 8 * at)?.to_ne_bytes();
        }
        for (at, byte) in rest.iter_mut().enumerate() {
            *byte = self.load::<u8>(tail + at)?;
        }
        Ok(())
    }

    /// How the `len` bytes at `offset` compare with `other`, byte by byte.
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
        for (at, byte) in rest.iter().enumerate() {
            let own = self.load::<u8>(tail + at)?;
            if own != *byte {
                return Ok(own.cmp(byte));
            }
        }
        Ok(len.cmp(&other.len()))
    }

    /// Holds the page from now on, if it has not changed since.
    pub fn upgrade_shared(&self) -> Result<Shared<'p>, Changed> {
        let latch = &self.file.pool.arena.header(self.place.frame()).latch;
        if !latch.try_shared_in_turn() {
            return Err(Changed);
        }
        let guard = Shared::new(self.file, self.place.frame());
        self.validate().map(|()| guard)
    }

    /// Holds the page exclusively from now on, if nobody else does and it has not changed since.
    pub fn upgrade_exclusive(&self) -> Result<Exclusive<'p>, Changed> {
        let latch = &self.file.pool.arena.header(self.place.frame()).latch;
        if !latch.try_exclusive_at(self.version) {
            return Err(Changed);
        }
        Ok(Exclusive::new(self.file, self.place.frame()))
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
