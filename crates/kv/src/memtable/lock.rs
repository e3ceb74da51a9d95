//! The version lock of a node: writers exclude each other, readers only check that nobody wrote.
//!
//! ```text
//! bit 0: a writer holds it      bits 1..64: how often it was changed
//! ```
//!
//! A reader takes the version, reads what the lock protects and validates the version. Everything protected is an
//! atomic, stored with Release and loaded with Acquire. That is enough, without fences: a reader that saw a store of
//! a writer synchronises with it, so its validation, which comes after, sees at least that the writer held the lock.
//! (Boehm, *Can seqlocks get along with programming language memory models?*, MSPC 2012; Leis et al., *The ART of
//! Practical Synchronization*, DaMoN 2016.)

use cairn_vfs::sync::atomic::{AtomicU64, Ordering};
use cairn_vfs::thread::yield_now;

const HELD: u64 = 1;

/// Spins before the rest of a time slice is given away: the holder may be waiting for this very processor.
const SPINS: u32 = 64;

/// What [`VersionLock::read`] saw: validate it, or take the lock if nobody has written since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen(u64);

/// An optimistic lock, one word.
#[derive(Debug, Default)]
pub(super) struct VersionLock(AtomicU64);

impl VersionLock {
    /// The version, as soon as no writer holds the lock.
    #[inline]
    pub(super) fn read(&self) -> Seen {
        match self.try_read() {
            Some(seen) => seen,
            None => self.wait(),
        }
    }

    /// The version, unless a writer holds the lock.
    #[inline]
    pub(super) fn try_read(&self) -> Option<Seen> {
        let version = self.0.load(Ordering::Acquire);
        (version & HELD == 0).then_some(Seen(version))
    }

    #[cold]
    fn wait(&self) -> Seen {
        let mut spins = 0;
        loop {
            if let Some(seen) = self.try_read() {
                return seen;
            }
            spins += 1;
            if spins % SPINS == 0 { yield_now() } else { std::hint::spin_loop() }
        }
    }

    /// True if nobody wrote since `seen`: what was read under it is consistent.
    #[inline]
    pub(super) fn unchanged(&self, seen: Seen) -> bool {
        self.0.load(Ordering::Acquire) == seen.0
    }

    /// Takes the lock for writing if nobody wrote since `seen`.
    #[inline]
    pub(super) fn upgrade(&self, seen: Seen) -> Option<Writing<'_>> {
        let taken = self.0.compare_exchange(seen.0, seen.0 | HELD, Ordering::Acquire, Ordering::Relaxed);
        // Not made before it is known to be true: its drop releases the lock.
        taken.is_ok().then(|| Writing { lock: self, seen })
    }
}

/// The lock held for writing. Dropping it releases the lock and tells readers that they may have read a mixture.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    lock: &'a VersionLock,
    seen: Seen,
}

impl Writing<'_> {
    /// Releases the lock of a node in which nothing was written: readers need not start again.
    pub(super) fn cancel(self) {
        self.lock.0.store(self.seen.0, Ordering::Release);
        std::mem::forget(self);
    }
}

impl Drop for Writing<'_> {
    #[inline]
    fn drop(&mut self) {
        // 63 bits of changes do not wrap in the life of a machine.
        self.lock.0.store(self.seen.0.wrapping_add(2), Ordering::Release);
    }
}
