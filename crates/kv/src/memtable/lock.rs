//! The version lock of a node: writers exclude each other, readers only check that nobody wrote.
//!
//! ```text
//! bit 0: a writer holds it      bits 1..64: how often it was changed
//! ```
//!
//! A reader takes the version, reads what the lock protects and validates the version. Everything
//! protected is an atomic, stored with Release and loaded with Acquire. That is enough, without
//! fences: a reader that saw a store of a writer synchronises with it, so its validation, which
//! comes after, sees at least that the writer held the lock. (Boehm, *Can seqlocks get along with
//! programming language memory models?*, MSPC 2012; Leis et al., *The ART of Practical
//! Synchronization*, DaMoN 2016.)

use cairn_vfs::sync::atomic::{AtomicU64, Ordering};
use cairn_vfs::thread::{spin_loop, yield_now};

const HELD: u64 = 1;

/// Spins before the rest of a time slice is given away: the holder may be waiting for this very
/// processor.
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
        shake();
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
            if spins % SPINS == 0 { yield_now() } else { spin_loop() }
        }
    }

    /// True if nobody wrote since `seen`: what was read under it is consistent.
    #[inline]
    pub(super) fn unchanged(&self, seen: Seen) -> bool {
        shake();
        self.0.load(Ordering::Acquire) == seen.0
    }

    /// Takes the lock for writing if nobody wrote since `seen`.
    #[inline]
    pub(super) fn upgrade(&self, seen: Seen) -> Option<Writing<'_>> {
        shake();
        let taken = self.0.compare_exchange(seen.0, seen.0 | HELD, Ordering::Acquire, Ordering::Relaxed);
        shake();
        // Not made before it is known to be true: its drop releases the lock.
        taken.is_ok().then(|| Writing { lock: self, seen })
    }
}

/// The lock held for writing. Dropping it releases the lock and tells readers that they may have
/// read a mixture.
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
        shake();
        // 63 bits of changes do not wrap in the life of a machine.
        self.lock.0.store(self.seen.0.wrapping_add(2), Ordering::Release);
    }
}

/// In tests, on threads that called [`tests::shake_this_thread`], gives the processor away now and
/// then.
#[inline]
fn shake() {
    #[cfg(test)]
    tests::shake();
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// The state of a generator; 0 is off.
        static STATE: Cell<u32> = const { Cell::new(0) };
    }

    /// Stops this thread at every two hundredth step or so that it takes with a lock, so that
    /// threads meet in every state of a node. Few processors hardly ever stop a thread between two
    /// given instructions otherwise.
    pub(in crate::memtable) fn shake_this_thread(seed: u64) {
        STATE.set(seed as u32 | 1);
    }

    #[inline]
    pub(super) fn shake() {
        let state = STATE.get();
        if state != 0 {
            let next = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            STATE.set(next.max(1));
            if next >> 16 < (1 << 16) / 200 {
                yield_now();
            }
        }
    }

    /// Goal: a version lock admits one writer, tells readers of every change, and of nothing else.
    #[test]
    fn version_lock() {
        let lock = VersionLock::default();
        let seen = lock.read();
        let writing = lock.upgrade(seen).unwrap();
        assert!(lock.try_read().is_none() && !lock.unchanged(seen) && lock.upgrade(seen).is_none());
        assert!(lock.try_read().is_none(), "a failed upgrade leaves the holder's lock alone");
        writing.cancel();
        assert!(lock.unchanged(seen));
        drop(lock.upgrade(seen).unwrap());
        assert!(!lock.unchanged(seen) && lock.upgrade(seen).is_none());
        assert_ne!(lock.read(), seen);
    }
}
