//! Marking of work that frees space, by the thread that does it.
//!
//! On a full disk, the log accepts only the records of such work, using the reserve (`reserve.rs`).
//! A record does not tell: splitting a leaf looks the same whether a row is inserted or a deleted
//! one is restored. The trees do not know either on whose behalf they change. So code that deletes,
//! undoes or cleans up marks its thread for as long as it runs.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// Nesting depth of marks in this thread: of all, and of those that undo.
    static DEPTH: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Marks the thread that created it until it is dropped.
#[derive(Debug)]
pub(crate) struct Reclaiming {
    undoes: bool,
    /// It must stay in its thread.
    _here: PhantomData<*const ()>,
}

impl Reclaiming {
    /// Marks deleting and cleaning up.
    #[inline]
    pub(crate) fn free_space() -> Reclaiming {
        Reclaiming::mark(false)
    }

    /// Marks undoing of changes, for which space was reserved before the changes were made.
    #[inline]
    pub(crate) fn undo() -> Reclaiming {
        Reclaiming::mark(true)
    }

    #[inline]
    fn mark(undoes: bool) -> Reclaiming {
        DEPTH.with(|depth| {
            let (all, undo) = depth.get();
            debug_assert!(undo <= all, "of {all} marks, {undo} are for undoing");
            depth.set((all + 1, undo + u32::from(undoes)));
        });
        Reclaiming { undoes, _here: PhantomData }
    }
}

impl Drop for Reclaiming {
    #[inline]
    fn drop(&mut self) {
        DEPTH.with(|depth| {
            let (all, undo) = depth.get();
            debug_assert!(
                all > 0 && undo >= u32::from(self.undoes) && undo <= all,
                "a mark ends in a thread with {all} marks, {undo} of them for undoing"
            );
            depth.set((all.saturating_sub(1), undo.saturating_sub(u32::from(self.undoes))));
        });
    }
}

/// Returns whether this thread does work that frees space.
#[inline]
pub(crate) fn is_reclaiming() -> bool {
    DEPTH.with(|depth| depth.get().0 > 0)
}

/// Returns whether this thread is undoing changes.
#[inline]
pub(crate) fn is_undoing() -> bool {
    DEPTH.with(|depth| depth.get().1 > 0)
}
