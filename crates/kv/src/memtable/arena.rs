//! The memory of one memtable: allocated from chunks and freed all at once.
//!
//! Threads allocate from stripes, each with a chunk of its own, and also count their writes there.
//! An entry costs one atomic exchange, on a cache line that threads rarely share. Tree nodes have
//! chunks of their own, so that they stay aligned to cache lines and close together.
//!
//! ```text
//! stripes  [ busy | next | left | entries … ] x 8      nodes  Mutex [ next | left ]
//!                   │                                                 │
//!                   ▼                                                 ▼
//! chunks   [ record record …      ] [ record …     ]            [ node node …   ]
//! ```
//!
//! A thread in a stripe owns it exclusively (`busy`); a thread that finds a stripe busy tries the
//! next one. Chunks start small, for the many keyspaces with little data, and grow with the arena
//! up to [`CHUNK_BYTES_MAX`].
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};

use cairn_vfs::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use cairn_vfs::sync::{Mutex, lock};
use cairn_vfs::thread::{self, yield_now};

use crate::kind::{Kind, SEQNO_MAX, Seqno};

/// Number of threads that can allocate at once without waiting.
const STRIPES: usize = 8;
/// The smallest chunk.
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// The largest chunk, unless one entry needs more.
pub(super) const CHUNK_BYTES_MAX: usize = 1 << 20;
/// A chunk is at most this fraction of the arena's size so far, so that little memory lies idle.
const CHUNK_PART: usize = 8;
/// Chunks start at a cache line.
const CHUNK_ALIGN: usize = 64;
/// Alignment of records.
const RECORD_ALIGN: usize = 8;

const _: () = assert!(CHUNK_BYTES_MIN <= CHUNK_BYTES_MAX && CHUNK_BYTES_MIN.is_multiple_of(CHUNK_ALIGN));
const _: () = assert!(CHUNK_ALIGN.is_multiple_of(RECORD_ALIGN) && RECORD_ALIGN.is_power_of_two());
const _: () = assert!(CHUNK_BYTES_MAX.is_multiple_of(CHUNK_ALIGN), "a chunk ends with a cache line");

/// A reference to an object in an arena.
///
/// Only the arena and [`Link`]s create them. Nothing in an arena is freed or moved before the arena
/// is dropped, so everything reachable from an object in it lives as long. A memtable has one arena
/// and no module here handles two, so links never cross arenas.
pub(super) struct Held<'a, T>(NonNull<T>, PhantomData<&'a T>);

impl<'a, T> Held<'a, T> {
    /// # Safety
    /// `target` must be a `T` in an arena that lives for `'a`, valid for shared use, and its
    /// provenance must cover all bytes that trail it.
    pub(super) unsafe fn new(target: NonNull<T>) -> Self {
        Held(target, PhantomData)
    }

    /// Returns the same reference, no longer tied to a borrow of the arena.
    ///
    /// # Safety
    /// Neither the result nor anything reached from it may be used after the arena is dropped.
    #[inline]
    pub(super) unsafe fn detached(self) -> Held<'static, T>
    where
        T: 'static,
    {
        Held(self.0, PhantomData)
    }

    /// Returns the pointer, with the provenance of its allocation.
    #[inline]
    pub(super) fn as_ptr(self) -> NonNull<T> {
        self.0
    }

    /// Returns the target, for as long as the arena lives.
    #[inline]
    pub(super) fn get(self) -> &'a T {
        // SAFETY: `new` requires a `T` that lives and is shared for `'a`.
        unsafe { self.0.as_ref() }
    }
}

// SAFETY: a `Held` gives no more than a shared reference, and `&T` may be sent to other threads if
// `T` is `Sync`.
unsafe impl<T: Sync> Send for Held<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Held<'_, T> {}

impl<T> Clone for Held<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Held<'_, T> {}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.get()
    }
}

impl<T> PartialEq for Held<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// A location in an arena that leads to an object in the same arena, or nowhere.
///
/// Setting a link publishes the contents of its target; loading it makes them visible.
#[derive(Debug)]
pub(super) struct Link<T>(AtomicPtr<T>);

impl<T> Link<T> {
    /// Creates a link that leads nowhere.
    pub(super) const fn empty() -> Self {
        Link(AtomicPtr::new(ptr::null_mut()))
    }

    /// Creates a link to `target`.
    pub(super) fn to(target: Option<Held<'_, T>>) -> Self {
        Link(AtomicPtr::new(raw(target)))
    }

    /// Returns the target. The link itself is in the arena, so its target lives at least as long.
    #[inline]
    pub(super) fn get(&self) -> Option<Held<'_, T>> {
        NonNull::new(self.0.load(Ordering::Acquire)).map(|target| Held(target, PhantomData))
    }

    /// Sets the target.
    #[inline]
    pub(super) fn set(&self, target: Option<Held<'_, T>>) {
        self.0.store(raw(target), Ordering::Release);
    }

    /// Sets the target if it is still `seen`. Returns true on success.
    #[inline]
    pub(super) fn replace(&self, seen: Option<Held<'_, T>>, target: Held<'_, T>) -> bool {
        self.0.compare_exchange(raw(seen), target.0.as_ptr(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[inline]
fn raw<T>(target: Option<Held<'_, T>>) -> *mut T {
    target.map_or(ptr::null_mut(), |target| target.0.as_ptr())
}

/// Statistics of the inserted entries, for the memtable as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    /// Number of versions of keys.
    pub(super) entries: u64,
    /// Number of versions that are tombstones.
    pub(super) tombstones: u64,
    /// Bytes of keys and values.
    pub(super) raw_bytes: u64,
    /// The lowest sequence number; `u64::MAX` without entries.
    pub(super) smallest: Seqno,
    /// The highest sequence number; 0 without entries.
    pub(super) largest: Seqno,
}

/// Memory that grows until it is dropped.
#[derive(Debug)]
pub(super) struct Arena {
    stripes: [Stripe; STRIPES],
    nodes: Mutex<Region>,
    chunks: Mutex<Vec<Chunk>>,
    allocated: AtomicUsize,
}

/// A chunk with the counters of its users. Only the owner of the stripe accesses the fields other
/// than `busy`, except to read them as statistics.
#[derive(Debug)]
#[repr(align(128))] // processors fetch cache lines in pairs
struct Stripe {
    busy: AtomicBool,
    next: AtomicPtr<u8>,
    left: AtomicUsize,
    entries: AtomicU64,
    tombstones: AtomicU64,
    raw_bytes: AtomicU64,
    smallest: AtomicU64,
    largest: AtomicU64,
}

/// The unused rest of a chunk.
#[derive(Debug)]
struct Region {
    next: *mut u8,
    left: usize,
}

// SAFETY: a region is plain memory from which only its owner allocates.
unsafe impl Send for Region {}

#[derive(Debug)]
struct Chunk {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a chunk is plain memory, which is freed once, by the thread that drops the arena.
unsafe impl Send for Chunk {}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc` with this layout, and a chunk is dropped once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

impl Arena {
    /// Creates an arena without memory.
    pub(super) fn new() -> Self {
        Arena {
            stripes: std::array::from_fn(|_| Stripe::new()),
            nodes: Mutex::new(Region { next: ptr::null_mut(), left: 0 }),
            chunks: Mutex::new(Vec::new()),
            allocated: AtomicUsize::new(0),
        }
    }

    /// Returns the bytes of all chunks, including their unused rests. Cost: one load of a word that
    /// changes once per chunk.
    #[inline]
    pub(super) fn allocated_bytes(&self) -> usize {
        self.allocated.load(Ordering::Relaxed)
    }

    /// Counts memory that belongs to the memtable but is allocated elsewhere.
    pub(super) fn charge(&self, bytes: usize) {
        self.allocated.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the counts made by [`Arena::entry`].
    pub(super) fn counts(&self) -> Counts {
        let mut all = Counts { entries: 0, tombstones: 0, raw_bytes: 0, smallest: u64::MAX, largest: 0 };
        for stripe in &self.stripes {
            all.entries = all.entries.wrapping_add(stripe.entries.load(Ordering::Relaxed));
            all.tombstones = all.tombstones.wrapping_add(stripe.tombstones.load(Ordering::Relaxed));
            all.raw_bytes = all.raw_bytes.wrapping_add(stripe.raw_bytes.load(Ordering::Relaxed));
            all.smallest = all.smallest.min(stripe.smallest.load(Ordering::Relaxed));
            all.largest = all.largest.max(stripe.largest.load(Ordering::Relaxed));
        }
        all
    }

    /// Allocates memory for an entry, aligned to 8 bytes and uninitialized, and counts the entry.
    #[inline]
    pub(super) fn entry(&self, bytes: usize, seqno: Seqno, kind: Kind, raw_bytes: usize) -> NonNull<u8> {
        let stripe = self.stripe();
        stripe.count(seqno, kind, raw_bytes);
        self.take(stripe, bytes)
    }

    /// Reverts the counting of [`Arena::entry`]. The memory stays allocated.
    #[cold]
    pub(super) fn uncount(&self, kind: Kind, raw_bytes: usize) {
        let stripe = self.stripe();
        // This may be a different stripe from the one that counted the entry. A stripe's sum may
        // then wrap below zero, but the total wraps back.
        stripe.add(
            1_u64.wrapping_neg(),
            u64::from(kind == Kind::Delete).wrapping_neg(),
            (raw_bytes as u64).wrapping_neg(),
        );
        stripe.leave();
    }

    /// Allocates memory for bytes that are not an entry, like [`Arena::entry`].
    pub(super) fn bytes(&self, bytes: usize) -> NonNull<u8> {
        self.take(self.stripe(), bytes)
    }

    /// Moves `node` into the arena. Its alignment may be up to that of a cache line.
    pub(super) fn node<T>(&self, node: T) -> Held<'_, T> {
        const { assert!(align_of::<T>() <= CHUNK_ALIGN && !std::mem::needs_drop::<T>()) };
        let bytes = size_of::<T>().next_multiple_of(CHUNK_ALIGN);
        let mut region = lock(&self.nodes);
        if region.left < bytes {
            *region = self.chunk(bytes);
        }
        let start = region.next;
        assert!(
            !start.is_null() && region.left >= bytes,
            "a chunk with {} bytes left of {bytes}",
            region.left
        );
        debug_assert!(start.addr().is_multiple_of(CHUNK_ALIGN), "a node that is not aligned");
        region.next = start.wrapping_add(bytes);
        region.left -= bytes;
        drop(region);
        // SAFETY: `start` has `bytes` bytes, aligned to CHUNK_ALIGN, that are given to nobody else
        // and live as long as the arena. The chunk is not null.
        unsafe {
            start.cast::<T>().write(node);
            Held::new(NonNull::new_unchecked(start.cast()))
        }
    }

    /// Returns a stripe that this thread owns exclusively.
    #[inline]
    fn stripe(&self) -> &Stripe {
        let first = thread::number();
        if let Some(stripe) = self.stripes.get(first % STRIPES)
            && stripe.enter()
        {
            return stripe;
        }
        self.next_stripe(first)
    }

    #[cold]
    fn next_stripe(&self, first: usize) -> &Stripe {
        loop {
            let start = first % STRIPES;
            let (before, from) = self.stripes.split_at(start);
            if let Some(stripe) = from.iter().chain(before).find(|stripe| stripe.enter()) {
                return stripe;
            }
            yield_now();
        }
    }

    /// Allocates `bytes` from the stripe's chunk and leaves the stripe.
    #[inline]
    fn take(&self, stripe: &Stripe, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(RECORD_ALIGN);
        let left = stripe.left.load(Ordering::Relaxed);
        let start = if bytes <= left {
            let start = stripe.next.load(Ordering::Relaxed);
            stripe.next.store(start.wrapping_add(bytes), Ordering::Relaxed);
            stripe.left.store(left - bytes, Ordering::Relaxed);
            start
        } else {
            self.refill(stripe, bytes, left)
        };
        debug_assert!(!start.is_null() && start.addr().is_multiple_of(RECORD_ALIGN), "memory at {start:?}");
        stripe.leave();
        // SAFETY: chunks are not null.
        unsafe { NonNull::new_unchecked(start) }
    }

    /// Allocates `bytes` from a new chunk. The new chunk replaces the stripe's old one if it has
    /// more memory left.
    #[cold]
    fn refill(&self, stripe: &Stripe, bytes: usize, left: usize) -> *mut u8 {
        debug_assert!(bytes > left, "{bytes} bytes fit into the {left} left of the stripe's chunk");
        let region = self.chunk(bytes);
        assert!(region.left >= bytes, "a chunk of {} bytes for {bytes}", region.left);
        if region.left - bytes > left {
            stripe.next.store(region.next.wrapping_add(bytes), Ordering::Relaxed);
            stripe.left.store(region.left - bytes, Ordering::Relaxed);
        }
        region.next
    }

    /// Allocates a chunk of at least `bytes`, not null and aligned to a cache line.
    fn chunk(&self, bytes: usize) -> Region {
        let part = 1 << ((self.allocated_bytes() / CHUNK_PART) | 1).ilog2();
        let bytes = bytes.next_multiple_of(CHUNK_ALIGN).max(part.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX));
        debug_assert!(bytes.is_multiple_of(CHUNK_ALIGN), "a chunk of {bytes} bytes ends within a cache line");
        // A slice has at most isize::MAX bytes, and far smaller entries are already refused
        // (`record::Entry::new`), so the layout is always valid. If it were not, out of memory
        // would be the right error.
        let Ok(layout) = Layout::from_size_align(bytes, CHUNK_ALIGN) else {
            handle_alloc_error(Layout::new::<Chunk>())
        };
        // SAFETY: the layout is not empty.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        lock(&self.chunks).push(Chunk { start, layout });
        self.allocated.fetch_add(bytes, Ordering::Relaxed);
        Region { next: start.as_ptr(), left: bytes }
    }
}

impl Stripe {
    fn new() -> Self {
        Stripe {
            busy: AtomicBool::new(false),
            next: AtomicPtr::new(ptr::null_mut()),
            left: AtomicUsize::new(0),
            entries: AtomicU64::new(0),
            tombstones: AtomicU64::new(0),
            raw_bytes: AtomicU64::new(0),
            smallest: AtomicU64::new(u64::MAX),
            largest: AtomicU64::new(0),
        }
    }

    #[inline]
    fn enter(&self) -> bool {
        !self.busy.swap(true, Ordering::Acquire)
    }

    #[inline]
    fn leave(&self) {
        debug_assert!(self.busy.load(Ordering::Relaxed), "a stripe is left by a thread that does not own it");
        self.busy.store(false, Ordering::Release);
    }

    #[inline]
    fn add(&self, entries: u64, tombstones: u64, raw_bytes: u64) {
        let add = |sum: &AtomicU64, more: u64| {
            sum.store(sum.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        };
        add(&self.entries, entries);
        add(&self.tombstones, tombstones);
        add(&self.raw_bytes, raw_bytes);
    }

    /// Counts an entry. Only the stripe's owner calls this, so plain loads and stores suffice.
    #[inline]
    fn count(&self, seqno: Seqno, kind: Kind, raw_bytes: usize) {
        debug_assert!(seqno <= SEQNO_MAX, "sequence number {seqno}");
        self.add(1, u64::from(kind == Kind::Delete), raw_bytes as u64);
        if seqno < self.smallest.load(Ordering::Relaxed) {
            self.smallest.store(seqno, Ordering::Relaxed);
        }
        if seqno > self.largest.load(Ordering::Relaxed) {
            self.largest.store(seqno, Ordering::Relaxed);
        }
    }
}
