//! The latch of a frame, with shared, exclusive and optimistic access, in one word.
//!
//! ```text
//!   63                              18   17        16      15            0
//!   | version (46 bits)               | waiters | exclusive | shared count |
//! ```
//!
//! Holding the latch also keeps the page in its frame, so it serves as the pin. The version
//! increases whenever an exclusive holder releases the latch, and never decreases. An optimistic
//! reader uses it to detect changes (optimistic lock coupling: Leis, Haubenschild, Neumann,
//! "Optimistic Lock Coupling", IEEE Data Engineering Bulletin 2019).

#[cfg(not(cairn_loom))]
use cairn_vfs::sync::atomic::{AtomicU64, Ordering::*, fence};
#[cfg(cairn_loom)]
use loom::sync::atomic::{AtomicU64, Ordering::*, fence};

const SHARED: u64 = 1;
const SHARED_MASK: u64 = (1 << 16) - 1;
/// The maximum number of shared holders. Far below the overflow of the count, since refused threads
/// add themselves briefly before they subtract themselves again.
const SHARED_MAX: u64 = 60_000;
const EXCLUSIVE: u64 = 1 << 16;
const WAITERS: u64 = 1 << 17;
const VERSION: u64 = 1 << 18;
/// The bits beside the version.
const HOLDERS: u64 = SHARED_MASK | EXCLUSIVE | WAITERS;

// The fields are adjacent: the carry of one would change the next.
const _: () = assert!(SHARED_MASK + SHARED == EXCLUSIVE && EXCLUSIVE << 1 == WAITERS);
const _: () = assert!(WAITERS << 1 == VERSION && HOLDERS + 1 == VERSION);
// Refused threads add themselves for a moment, so the count needs room above its limit.
const _: () = assert!(SHARED_MAX + 4096 < SHARED_MASK);

/// The latch of one frame. It only has try operations; [`Parking`](crate::parking::Parking) does
/// the waiting.
#[derive(Debug, Default)]
pub(crate) struct Latch(AtomicU64);

/// The action required after a latch was released.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Released {
    /// Nothing.
    NoWaiters,
    /// A thread may be asleep at this latch: wake all that are parked there.
    HasWaiters,
}

impl Latch {
    /// Takes the latch in shared mode, unless it is held exclusively or a thread waits for it. A
    /// failed attempt is visible to others for a moment, and a waiter may have gone to sleep
    /// because of it. `Err` holds the action required for that.
    #[inline]
    pub(crate) fn try_shared(&self) -> Result<(), Released> {
        let before = self.0.fetch_add(SHARED, Acquire);
        debug_assert!(before & SHARED_MASK < SHARED_MASK, "the shared count overflows into {before:#x}");
        if before & (EXCLUSIVE | WAITERS) == 0 && before & SHARED_MASK < SHARED_MAX {
            return Ok(());
        }
        Err(self.release_shared())
    }

    /// Takes the latch in shared mode unless it is held exclusively, even if others wait. For
    /// threads that have waited themselves.
    pub(crate) fn try_shared_in_turn(&self) -> bool {
        let mut word = self.0.load(Relaxed);
        // The attempt is visible only if it succeeds, so no thread goes to sleep because of a
        // failed one.
        while word & EXCLUSIVE == 0 && word & SHARED_MASK < SHARED_MAX {
            match self.0.compare_exchange_weak(word, word + SHARED, SeqCst, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Takes the latch in exclusive mode if nobody holds it.
    #[inline]
    pub(crate) fn try_exclusive(&self) -> bool {
        let word = self.0.load(Relaxed);
        // ORDER: SeqCst, together with `release_*`, `Replacer`'s count of threads waiting for a
        // frame and their reads of this word. Either a thread waiting for a frame sees the free
        // frame, or the thread that frees it sees the count.
        word & (SHARED_MASK | EXCLUSIVE) == 0 && self.make_exclusive(word)
    }

    #[inline]
    fn make_exclusive(&self, word: u64) -> bool {
        debug_assert!(word & (SHARED_MASK | EXCLUSIVE) == 0, "taking a latch that is held: {word:#x}");
        let is_held = self.0.compare_exchange(word, word | EXCLUSIVE, SeqCst, Relaxed).is_ok();
        // ORDER: the holder's changes come after the change of the word. An optimistic reader that
        // sees such a change also sees the changed word when it checks again after its own fence.
        // Costs nothing on x86.
        fence(Release);
        is_held
    }

    /// Takes the latch in exclusive mode if nobody holds it, and nobody has held it exclusively
    /// since `version` was read.
    pub(crate) fn try_exclusive_at(&self, version: Version) -> bool {
        debug_assert!(version.0 & HOLDERS == 0, "{version:?} is not the version of a free latch");
        let word = self.0.load(Relaxed);
        word & !WAITERS == version.0 && self.make_exclusive(word)
    }

    /// Releases a shared hold.
    #[inline]
    pub(crate) fn release_shared(&self) -> Released {
        let before = self.0.fetch_sub(SHARED, SeqCst);
        debug_assert!(before & SHARED_MASK != 0, "a shared hold is released that nobody has: {before:#x}");
        if before & WAITERS != 0 && before & SHARED_MASK == 1 {
            Released::HasWaiters
        } else {
            Released::NoWaiters
        }
    }

    /// Releases the exclusive hold and increases the version.
    #[inline]
    pub(crate) fn release_exclusive(&self) -> Released {
        let before = self.0.fetch_add(VERSION - EXCLUSIVE, SeqCst);
        debug_assert!(before & EXCLUSIVE != 0, "an exclusive hold is released that nobody has: {before:#x}");
        if before & WAITERS != 0 { Released::HasWaiters } else { Released::NoWaiters }
    }

    /// Converts an exclusive hold into a shared one without releasing it in between, and increases
    /// the version.
    #[inline]
    pub(crate) fn downgrade(&self) -> Released {
        let before = self.0.fetch_add(VERSION - EXCLUSIVE + SHARED, SeqCst);
        debug_assert!(before & EXCLUSIVE != 0, "a hold is downgraded that nobody has: {before:#x}");
        debug_assert!(before & SHARED_MASK < SHARED_MASK, "the shared count overflows into {before:#x}");
        if before & WAITERS != 0 { Released::HasWaiters } else { Released::NoWaiters }
    }

    /// Returns the version, unless the latch is held exclusively. Data read after this call belongs
    /// to that version if [`Latch::is_at`] confirms it afterwards.
    #[inline]
    pub(crate) fn version(&self) -> Option<Version> {
        let word = self.0.load(Acquire);
        (word & EXCLUSIVE == 0).then_some(Version(word & !(SHARED_MASK | WAITERS)))
    }

    /// Returns true while nobody has held the latch exclusively since `version` was read.
    #[inline]
    pub(crate) fn is_at(&self, version: Version) -> bool {
        debug_assert!(version.0 & HOLDERS == 0, "{version:?} is not the version of a free latch");
        // ORDER: the preceding reads of the page come before this read of the word.
        fence(Acquire);
        self.0.load(Relaxed) & !(SHARED_MASK | WAITERS) == version.0
    }

    /// Returns true while the latch is held exclusively. For assertions of the holder: others may
    /// take and release the latch meanwhile.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.0.load(Relaxed) & EXCLUSIVE != 0
    }

    /// Returns true while the latch is held in either mode. For assertions of the holder.
    pub(crate) fn is_held(&self) -> bool {
        self.0.load(Relaxed) & (SHARED_MASK | EXCLUSIVE) != 0
    }

    /// Returns true when a thread sleeps here, or may be about to.
    ///
    /// If the caller changed something before this call that a waiter checks after
    /// [`Latch::announce_waiter`], then at least one of them sees the other.
    pub(crate) fn has_waiters(&self) -> bool {
        // ORDER: the caller's preceding store, such as a table entry, must not be delayed past this
        // load.
        fence(SeqCst);
        self.0.load(SeqCst) & WAITERS != 0
    }

    /// Announces that a thread is going to sleep here. From now on, releasing the latch requires a
    /// wake-up.
    pub(crate) fn announce_waiter(&self) {
        self.0.fetch_or(WAITERS, SeqCst);
        // ORDER: the waiter's following checks are read after this store; pairs with the fence in
        // `has_waiters`.
        fence(SeqCst);
    }

    /// Records that all waiters were woken.
    pub(crate) fn forget_waiters(&self) {
        self.0.fetch_and(!WAITERS, SeqCst);
    }
}

/// A version of the data that a latch protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(u64);

#[cfg(all(test, cairn_loom))]
mod models;

#[cfg(all(test, not(cairn_loom)))]
mod tests {
    use super::*;

    /// Goal: holders exclude each other correctly, and only exclusive holders change the version.
    #[test]
    fn holds() {
        let latch = Latch::default();
        let version = latch.version().unwrap();
        assert_eq!((latch.try_shared(), latch.try_shared()), (Ok(()), Ok(())));
        assert!(!latch.try_exclusive() && !latch.try_exclusive_at(version));
        assert!(latch.is_at(version));
        assert_eq!(
            (latch.release_shared(), latch.release_shared()),
            (Released::NoWaiters, Released::NoWaiters)
        );
        assert!(latch.is_at(version));
        assert!(latch.try_exclusive_at(version));
        assert_eq!(latch.try_shared(), Err(Released::NoWaiters));
        assert!(
            !latch.try_shared_in_turn()
                && !latch.try_exclusive()
                && latch.version().is_none()
                && !latch.is_at(version)
        );
        assert_eq!(latch.release_exclusive(), Released::NoWaiters);
        assert!(!latch.is_at(version) && !latch.try_exclusive_at(version));
        assert!(latch.try_exclusive());
        assert_eq!(latch.downgrade(), Released::NoWaiters);
        assert_eq!(
            (latch.try_shared(), latch.release_shared(), latch.release_shared()),
            (Ok(()), Released::NoWaiters, Released::NoWaiters)
        );
        assert!(latch.try_exclusive());
    }

    /// Goal: releasing the latch reports waiters, new readers yield to them, and readers that have
    /// waited do not.
    #[test]
    fn waiters() {
        let latch = Latch::default();
        assert_eq!((latch.try_shared(), latch.try_shared()), (Ok(()), Ok(())));
        latch.announce_waiter();
        assert_eq!(latch.try_shared(), Err(Released::NoWaiters));
        assert!(latch.try_shared_in_turn() && latch.has_waiters());
        assert_eq!(
            (latch.release_shared(), latch.release_shared()),
            (Released::NoWaiters, Released::NoWaiters)
        );
        assert_eq!(latch.release_shared(), Released::HasWaiters);
        assert!(latch.try_exclusive());
        assert_eq!(latch.release_exclusive(), Released::HasWaiters);
        latch.forget_waiters();
        assert!(latch.try_exclusive());
        assert_eq!(latch.release_exclusive(), Released::NoWaiters);
    }

    /// Goal: the shared count never overflows into the bits beside it.
    #[test]
    fn too_many_readers() {
        let latch = Latch::default();
        assert_eq!((0..SHARED_MAX).filter(|_| latch.try_shared().is_err()).count(), 0);
        assert!(latch.try_shared() == Err(Released::NoWaiters) && !latch.try_shared_in_turn());
        assert!(latch.version().is_some());
    }
}
