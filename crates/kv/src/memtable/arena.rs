//! The memory of one memtable: handed out from chunks, given back all at once.
//!
//! Threads take memory from stripes, each with a chunk of its own, and count there what they write:
//! one atomic exchange for an entry, on a cache line that threads rarely share. Tree nodes have
//! chunks of their own, so that they stay aligned to cache lines and close to each other.
//!
//! ```text
//! stripes  [ busy | next | left | entries … ] x 8      nodes  Mutex [ next | left ]
//!                   │                                                 │
//!                   ▼                                                 ▼
//! chunks   [ record record …      ] [ record …     ]            [ node node …   ]
//! ```
//!
//! Whoever is in a stripe owns it alone (`busy`); who finds it busy goes to the next one. Chunks
//! start small, for the many keyspaces that hold little, and grow with the arena to
//! [`CHUNK_BYTES_MAX`].
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};

use cairn_vfs::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use cairn_vfs::sync::{Mutex, lock};
use cairn_vfs::thread::{self, yield_now};

use crate::kind::{Kind, Seqno};

/// Threads that can take memory at the same moment without waiting.
const STRIPES: usize = 8;
/// The smallest chunk.
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// The largest chunk, unless one entry needs more.
pub(super) const CHUNK_BYTES_MAX: usize = 1 << 20;
/// A chunk is at most this part of what the arena has already, so that little of it lies idle.
const CHUNK_PART: usize = 8;
/// Chunks start at a cache line.
const CHUNK_ALIGN: usize = 64;
/// Alignment of records.
const RECORD_ALIGN: usize = 8;

/// A reference to something in an arena.
///
/// Only the arena and [`Link`]s make them. Nothing in an arena is freed or moved before the arena
/// goes, so everything reached from something in it lives as long. A memtable has one arena and no
/// module here sees two: links never lead from one to another.
pub(super) struct Held<'a, T>(NonNull<T>, PhantomData<&'a T>);

impl<'a, T> Held<'a, T> {
    /// # Safety
    /// `target` must be a `T` in an arena that lives for `'a`, valid for shared use, and its
    /// provenance must cover whatever trails it.
    pub(super) unsafe fn new(target: NonNull<T>) -> Self {
        Held(target, PhantomData)
    }

    /// The same, no longer tied to a borrow of the arena.
    ///
    /// # Safety
    /// The result and whatever is reached from it must not be used after the arena is gone.
    #[inline]
    pub(super) unsafe fn detached(self) -> Held<'static, T>
    where
        T: 'static,
    {
        Held(self.0, PhantomData)
    }

    /// The pointer, with the provenance that its allocation gave it.
    #[inline]
    pub(super) fn as_ptr(self) -> NonNull<T> {
        self.0
    }

    /// The target, for as long as the arena lives.
    #[inline]
    pub(super) fn get(self) -> &'a T {
        // SAFETY: `new` demands a T that lives and is shared for 'a.
        unsafe { self.0.as_ref() }
    }
}

// SAFETY: a `Held` gives what a shared reference gives, and `&T` may go to other threads if T is
// Sync.
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

/// A place in an arena that leads to something in the same arena, or nowhere.
///
/// Setting it publishes what its target holds; loading it makes that visible.
#[derive(Debug)]
pub(super) struct Link<T>(AtomicPtr<T>);

impl<T> Link<T> {
    /// A link that leads nowhere.
    pub(super) const fn empty() -> Self {
        Link(AtomicPtr::new(ptr::null_mut()))
    }

    /// A link to `target`.
    pub(super) fn to(target: Option<Held<'_, T>>) -> Self {
        Link(AtomicPtr::new(raw(target)))
    }

    /// Where it leads. The link itself lies in the arena, so what it leads to lives at least as
    /// long.
    #[inline]
    pub(super) fn get(&self) -> Option<Held<'_, T>> {
        NonNull::new(self.0.load(Ordering::Acquire)).map(|target| Held(target, PhantomData))
    }

    /// Leads to `target` from now on.
    #[inline]
    pub(super) fn set(&self, target: Option<Held<'_, T>>) {
        self.0.store(raw(target), Ordering::Release);
    }

    /// Leads to `target` if it led to `seen` until now.
    #[inline]
    pub(super) fn replace(&self, seen: Option<Held<'_, T>>, target: Held<'_, T>) -> bool {
        self.0.compare_exchange(raw(seen), target.0.as_ptr(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[inline]
fn raw<T>(target: Option<Held<'_, T>>) -> *mut T {
    target.map_or(ptr::null_mut(), |target| target.0.as_ptr())
}

/// What was inserted, so far as a memtable has to know it as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    /// Versions of keys.
    pub(super) entries: u64,
    /// Of these, tombstones.
    pub(super) tombstones: u64,
    /// Bytes of their keys and values.
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

/// A chunk and who may take from it. Everything but `busy` is touched by its owner alone, or read
/// as a statistic.
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

// SAFETY: a region is plain memory that its owner alone takes from.
unsafe impl Send for Region {}

#[derive(Debug)]
struct Chunk {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a chunk is plain memory; it is freed once, by whoever drops the arena.
unsafe impl Send for Chunk {}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc` with this layout, and a chunk is dropped once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

impl Arena {
    /// An arena without memory.
    pub(super) fn new() -> Self {
        Arena {
            stripes: std::array::from_fn(|_| Stripe::new()),
            nodes: Mutex::new(Region { next: ptr::null_mut(), left: 0 }),
            chunks: Mutex::new(Vec::new()),
            allocated: AtomicUsize::new(0),
        }
    }

    /// Bytes of all chunks, their unused rests counted. One load of a word that changes once in a
    /// chunk.
    #[inline]
    pub(super) fn allocated_bytes(&self) -> usize {
        self.allocated.load(Ordering::Relaxed)
    }

    /// Counts memory that belongs to the memtable but lies elsewhere.
    pub(super) fn charge(&self, bytes: usize) {
        self.allocated.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What was counted by [`Arena::entry`].
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

    /// Memory for an entry, aligned to 8 bytes and not initialised, and counts the entry.
    #[inline]
    pub(super) fn entry(&self, bytes: usize, seqno: Seqno, kind: Kind, raw_bytes: usize) -> NonNull<u8> {
        let stripe = self.stripe();
        stripe.count(seqno, kind, raw_bytes);
        self.take(stripe, bytes)
    }

    /// Takes back what [`Arena::entry`] counted. The memory stays taken.
    #[cold]
    pub(super) fn uncount(&self, kind: Kind, raw_bytes: usize) {
        let stripe = self.stripe();
        // In another stripe than it was counted in, maybe: sums wrap, and so does the sum of all.
        stripe.add(
            1_u64.wrapping_neg(),
            u64::from(kind == Kind::Delete).wrapping_neg(),
            (raw_bytes as u64).wrapping_neg(),
        );
        stripe.leave();
    }

    /// Memory for bytes that are no entry, as [`Arena::entry`].
    pub(super) fn bytes(&self, bytes: usize) -> NonNull<u8> {
        self.take(self.stripe(), bytes)
    }

    /// Moves `node` into the arena. Its alignment may be up to a cache line's.
    pub(super) fn node<T>(&self, node: T) -> Held<'_, T> {
        const { assert!(align_of::<T>() <= CHUNK_ALIGN && !std::mem::needs_drop::<T>()) };
        let bytes = size_of::<T>().next_multiple_of(CHUNK_ALIGN);
        let mut region = lock(&self.nodes);
        if region.left < bytes {
            *region = self.chunk(bytes);
        }
        let start = region.next;
        region.next = start.wrapping_add(bytes);
        region.left -= bytes;
        drop(region);
        // SAFETY: `start` has `bytes` bytes, aligned to CHUNK_ALIGN, that nobody else was or will
        // be given; they live as long as the arena. The chunk is not null.
        unsafe {
            start.cast::<T>().write(node);
            Held::new(NonNull::new_unchecked(start.cast()))
        }
    }

    /// A stripe for this thread alone.
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

    /// Takes `bytes` from the stripe's chunk and leaves the stripe.
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
        stripe.leave();
        // SAFETY: chunks are not null.
        unsafe { NonNull::new_unchecked(start) }
    }

    /// Takes `bytes` from a new chunk, which becomes the stripe's if it leaves more than the old
    /// one does.
    #[cold]
    fn refill(&self, stripe: &Stripe, bytes: usize, left: usize) -> *mut u8 {
        let region = self.chunk(bytes);
        if region.left - bytes > left {
            stripe.next.store(region.next.wrapping_add(bytes), Ordering::Relaxed);
            stripe.left.store(region.left - bytes, Ordering::Relaxed);
        }
        region.next
    }

    /// A new chunk of at least `bytes`, not null and aligned to a cache line.
    fn chunk(&self, bytes: usize) -> Region {
        let part = 1 << ((self.allocated_bytes() / CHUNK_PART) | 1).ilog2();
        let bytes = bytes.next_multiple_of(CHUNK_ALIGN).max(part.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX));
        // A slice is at most isize::MAX bytes long; an entry is refused long before
        // (`record::Sizes`), so the layout is always sound. Were it not, memory would be what is
        // missing.
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

    /// Counts an entry. Called by the stripe's owner, so that loads and stores suffice.
    #[inline]
    fn count(&self, seqno: Seqno, kind: Kind, raw_bytes: usize) {
        self.add(1, u64::from(kind == Kind::Delete), raw_bytes as u64);
        if seqno < self.smallest.load(Ordering::Relaxed) {
            self.smallest.store(seqno, Ordering::Relaxed);
        }
        if seqno > self.largest.load(Ordering::Relaxed) {
            self.largest.store(seqno, Ordering::Relaxed);
        }
    }
}
