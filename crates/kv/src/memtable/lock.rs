//! The version lock of a node: writers exclude each other, and readers only check that nobody
//! wrote.
//!
//! ```text
//! bit 0: held by a writer      bits 1..64: number of changes
//! ```
//!
//! A reader takes the version, reads the protected fields and then validates the version. All
//! protected fields are atomics, stored with Release and loaded with Acquire. No fences are needed:
//! a reader that saw a writer's store synchronizes with the writer, so its later validation sees at
//! least that the writer held the lock. (Boehm, *Can seqlocks get along with programming language
//! memory models?*, MSPC 2012; Leis et al., *The ART of Practical Synchronization*, DaMoN 2016.)

use cairn_vfs::sync::atomic::{AtomicU64, Ordering};
use cairn_vfs::thread::{spin_loop, yield_now};

const HELD: u64 = 1;

/// Number of spins after which a waiter yields the rest of its time slice: the holder may be
/// waiting for this very processor.
const SPINS: u32 = 64;

/// A version returned by [`VersionLock::read`]. Can be validated, or upgraded to the lock if nobody
/// has written since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen(u64);

/// An optimistic lock of one word.
#[derive(Debug, Default)]
pub(super) struct VersionLock(AtomicU64);

impl VersionLock {
    /// Returns the version, waiting until no writer holds the lock.
    #[inline]
    pub(super) fn read(&self) -> Seen {
        match self.try_read() {
            Some(seen) => seen,
            None => self.wait(),
        }
    }

    /// Returns the version, or `None` if a writer holds the lock.
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

    /// Returns true if nobody wrote since `seen`, so that everything read since then is consistent.
    #[inline]
    pub(super) fn unchanged(&self, seen: Seen) -> bool {
        debug_assert!(seen.0 & HELD == 0, "a version that was read while a writer held the lock");
        shake();
        self.0.load(Ordering::Acquire) == seen.0
    }

    /// Takes the lock for writing if nobody wrote since `seen`.
    #[inline]
    pub(super) fn upgrade(&self, seen: Seen) -> Option<Writing<'_>> {
        debug_assert!(seen.0 & HELD == 0, "a version that was read while a writer held the lock");
        shake();
        let taken = self.0.compare_exchange(seen.0, seen.0 | HELD, Ordering::Acquire, Ordering::Relaxed);
        shake();
        // Created lazily, because dropping a `Writing` releases the lock.
        taken.is_ok().then(|| Writing { lock: self, seen })
    }
}

/// The lock held for writing. Dropping it releases the lock and makes the validation of concurrent
/// readers fail.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    lock: &'a VersionLock,
    seen: Seen,
}

impl Writing<'_> {
    /// Releases the lock of a node that was not changed, so that readers need not restart.
    pub(super) fn cancel(self) {
        debug_assert_eq!(self.lock.0.load(Ordering::Relaxed), self.seen.0 | HELD, "the lock is not held");
        self.lock.0.store(self.seen.0, Ordering::Release);
        std::mem::forget(self);
    }
}

impl Drop for Writing<'_> {
    #[inline]
    fn drop(&mut self) {
        shake();
        debug_assert_eq!(self.lock.0.load(Ordering::Relaxed), self.seen.0 | HELD, "the lock is not held");
        // A count of 63 bits does not wrap in the lifetime of a machine.
        self.lock.0.store(self.seen.0.wrapping_add(2), Ordering::Release);
    }
}

/// In tests, yields the processor occasionally on threads that have called
/// [`tests::shake_this_thread`].
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
        /// The state of a random generator; 0 means off.
        static STATE: Cell<u32> = const { Cell::new(0) };
    }

    /// Makes this thread yield at about every two hundredth step on a lock, so that threads meet in
    /// every state of a node. On few processors, a thread is otherwise hardly ever preempted
    /// between two given instructions.
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

    /// Goal: a version lock admits one writer, and validation fails after every change and only
    /// then.
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
