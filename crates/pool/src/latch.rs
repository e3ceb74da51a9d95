//! The latch of a frame: shared, exclusive, or by version, in one word.
//!
//! ```text
//!   63                              18   17        16      15            0
//!   | version (46 bits)               | waiters | exclusive | shared count |
//! ```
//!
//! Holding it keeps the page in its frame, so it is what others call a pin as well. The version
//! goes up whenever an exclusive holder leaves, and never back: who reads without holding anything
//! sees by it that nothing changed meanwhile (optimistic lock coupling: Leis, Haubenschild,
//! Neumann, "Optimistic Lock Coupling", IEEE Data Engineering Bulletin 2019).

#[cfg(not(cairn_loom))]
use cairn_vfs::sync::atomic::{AtomicU64, Ordering::*, fence};
#[cfg(cairn_loom)]
use loom::sync::atomic::{AtomicU64, Ordering::*, fence};

const SHARED: u64 = 1;
const SHARED_MASK: u64 = (1 << 16) - 1;
/// More holders than this are refused, long before the count would run over: some may have added
/// theirs and not yet taken it back.
const SHARED_MAX: u64 = 60_000;
const EXCLUSIVE: u64 = 1 << 16;
const WAITERS: u64 = 1 << 17;
const VERSION: u64 = 1 << 18;

/// One frame's latch. Of its own it only tries; [`Parking`](crate::parking::Parking) is where one
/// waits.
#[derive(Debug, Default)]
pub(crate) struct Latch(AtomicU64);

/// What leaving a latch asks of who left it.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing.
    Alone,
    /// Somebody sleeps until this: wake those who park at this latch.
    Awaited,
}

impl Latch {
    /// Takes it shared, unless it is held exclusively or somebody waits for it. `Err` says what the
    /// failed attempt asks for: it was visible for a moment, and a waiter may have gone to sleep
    /// because of it.
    #[inline]
    pub(crate) fn try_shared(&self) -> Result<(), Left> {
        let before = self.0.fetch_add(SHARED, Acquire);
        if before & (EXCLUSIVE | WAITERS) == 0 && before & SHARED_MASK < SHARED_MAX {
            return Ok(());
        }
        Err(self.leave_shared())
    }

    /// Takes it shared unless it is held exclusively, also when others wait: for who has waited as
    /// well.
    pub(crate) fn try_shared_in_turn(&self) -> bool {
        let mut word = self.0.load(Relaxed);
        // Never visible unless it succeeds, so that nobody goes to sleep because of it.
        while word & EXCLUSIVE == 0 && word & SHARED_MASK < SHARED_MAX {
            match self.0.compare_exchange_weak(word, word + SHARED, SeqCst, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Takes it exclusively if nobody holds it.
    #[inline]
    pub(crate) fn try_exclusive(&self) -> bool {
        let word = self.0.load(Relaxed);
        // ORDER: SeqCst, with `leave_*`, `Replacer`'s count of starving threads and their look at
        // this word: either they see that the frame is free, or who frees it sees that they starve.
        word & (SHARED_MASK | EXCLUSIVE) == 0 && self.make_exclusive(word)
    }

    #[inline]
    fn make_exclusive(&self, word: u64) -> bool {
        let is_held = self.0.compare_exchange(word, word | EXCLUSIVE, SeqCst, Relaxed).is_ok();
        // ORDER: what the holder changes comes after the word: an optimistic reader who sees a
        // change sees the word as well when it looks again, after a fence of its own. Costs nothing
        // on x86.
        fence(Release);
        is_held
    }

    /// Takes it exclusively if nobody holds it and nobody has since `version` was read.
    pub(crate) fn try_exclusive_at(&self, version: Version) -> bool {
        let word = self.0.load(Relaxed);
        word & !WAITERS == version.0 && self.make_exclusive(word)
    }

    /// Gives a shared hold back.
    #[inline]
    pub(crate) fn leave_shared(&self) -> Left {
        let before = self.0.fetch_sub(SHARED, SeqCst);
        if before & WAITERS != 0 && before & SHARED_MASK == 1 { Left::Awaited } else { Left::Alone }
    }

    /// Gives the exclusive hold back: the version goes up.
    #[inline]
    pub(crate) fn leave_exclusive(&self) -> Left {
        let before = self.0.fetch_add(VERSION - EXCLUSIVE, SeqCst);
        if before & WAITERS != 0 { Left::Awaited } else { Left::Alone }
    }

    /// Makes an exclusive hold a shared one, with nobody in between: the version goes up.
    #[inline]
    pub(crate) fn downgrade(&self) -> Left {
        let before = self.0.fetch_add(VERSION - EXCLUSIVE + SHARED, SeqCst);
        if before & WAITERS != 0 { Left::Awaited } else { Left::Alone }
    }

    /// The version, unless it is held exclusively. What is read after this is of that version if
    /// [`Latch::is_at`] says so afterwards.
    #[inline]
    pub(crate) fn version(&self) -> Option<Version> {
        let word = self.0.load(Acquire);
        (word & EXCLUSIVE == 0).then_some(Version(word & !(SHARED_MASK | WAITERS)))
    }

    /// True while nobody has held it exclusively since `version` was read.
    #[inline]
    pub(crate) fn is_at(&self, version: Version) -> bool {
        // ORDER: the reads of the page before come before this one of the word.
        fence(Acquire);
        self.0.load(Relaxed) & !(SHARED_MASK | WAITERS) == version.0
    }

    /// True when somebody sleeps, or may.
    ///
    /// What the caller changed before this, and a waiter looks for after
    /// [`Latch::announce_waiter`], is seen by one of the two.
    pub(crate) fn has_waiters(&self) -> bool {
        // ORDER: the caller's store before, an entry of the table say, must not be put off until
        // after this load.
        fence(SeqCst);
        self.0.load(SeqCst) & WAITERS != 0
    }

    /// Says that somebody is going to sleep here: leaving asks for waking from now on.
    pub(crate) fn announce_waiter(&self) {
        self.0.fetch_or(WAITERS, SeqCst);
        // ORDER: what the waiter looks at next is read after this: with the fence in `has_waiters`.
        fence(SeqCst);
    }

    /// Says that whoever waited was woken.
    pub(crate) fn forget_waiters(&self) {
        self.0.fetch_and(!WAITERS, SeqCst);
    }
}

/// A version of what a latch guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version(u64);

#[cfg(all(test, cairn_loom))]
mod models;

#[cfg(all(test, not(cairn_loom)))]
mod tests {
    use super::*;

    /// Goal: the holds exclude each other as they should, and the version tells of exclusive ones
    /// alone.
    #[test]
    fn holds() {
        let latch = Latch::default();
        let version = latch.version().unwrap();
        assert_eq!((latch.try_shared(), latch.try_shared()), (Ok(()), Ok(())));
        assert!(!latch.try_exclusive() && !latch.try_exclusive_at(version));
        assert!(latch.is_at(version));
        assert_eq!((latch.leave_shared(), latch.leave_shared()), (Left::Alone, Left::Alone));
        assert!(latch.is_at(version));
        assert!(latch.try_exclusive_at(version));
        assert_eq!(latch.try_shared(), Err(Left::Alone));
        assert!(
            !latch.try_shared_in_turn()
                && !latch.try_exclusive()
                && latch.version().is_none()
                && !latch.is_at(version)
        );
        assert_eq!(latch.leave_exclusive(), Left::Alone);
        assert!(!latch.is_at(version) && !latch.try_exclusive_at(version));
        assert!(latch.try_exclusive());
        assert_eq!(latch.downgrade(), Left::Alone);
        assert_eq!(
            (latch.try_shared(), latch.leave_shared(), latch.leave_shared()),
            (Ok(()), Left::Alone, Left::Alone)
        );
        assert!(latch.try_exclusive());
    }

    /// Goal: who leaves is told of those who wait, new readers give way to them, and readers who
    /// waited do not.
    #[test]
    fn waiters() {
        let latch = Latch::default();
        assert_eq!((latch.try_shared(), latch.try_shared()), (Ok(()), Ok(())));
        latch.announce_waiter();
        assert_eq!(latch.try_shared(), Err(Left::Alone));
        assert!(latch.try_shared_in_turn() && latch.has_waiters());
        assert_eq!((latch.leave_shared(), latch.leave_shared()), (Left::Alone, Left::Alone));
        assert_eq!(latch.leave_shared(), Left::Awaited);
        assert!(latch.try_exclusive());
        assert_eq!(latch.leave_exclusive(), Left::Awaited);
        latch.forget_waiters();
        assert!(latch.try_exclusive());
        assert_eq!(latch.leave_exclusive(), Left::Alone);
    }

    /// Goal: the count of holders never runs into the bits beside it.
    #[test]
    fn too_many_readers() {
        let latch = Latch::default();
        assert_eq!((0..SHARED_MAX).filter(|_| latch.try_shared().is_err()).count(), 0);
        assert!(latch.try_shared() == Err(Left::Alone) && !latch.try_shared_in_turn());
        assert!(latch.version().is_some());
    }
}
