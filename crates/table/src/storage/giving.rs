//! Work that gives room back, told by the thread that does it.
//!
//! On a full disk the log takes the records of such work out of the reserve (`reserve.rs`), and no
//! others. A record does not say which it is: the split of a leaf is the same whether a row comes
//! or one that was deleted comes back. And the trees do not know either on whose behalf they are
//! changed. So whoever deletes, undoes or cleans up says so, for as long as it does.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// How many of them there are in this thread, one within the other; and those that undo.
    static DEPTH: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Says so until it is dropped, in the thread that made it.
#[derive(Debug)]
pub(crate) struct Giving {
    undoes: bool,
    /// It belongs to the thread.
    _here: PhantomData<*const ()>,
}

impl Giving {
    /// For deleting and cleaning up.
    #[inline]
    pub(crate) fn back() -> Giving {
        Giving::begin(false)
    }

    /// For undoing changes: space for that was set aside before they were made.
    #[inline]
    pub(crate) fn undo() -> Giving {
        Giving::begin(true)
    }

    #[inline]
    fn begin(undoes: bool) -> Giving {
        DEPTH.with(|depth| {
            let (all, undo) = depth.get();
            depth.set((all + 1, undo + u32::from(undoes)));
        });
        Giving { undoes, _here: PhantomData }
    }
}

impl Drop for Giving {
    #[inline]
    fn drop(&mut self) {
        DEPTH.with(|depth| {
            let (all, undo) = depth.get();
            depth.set((all.saturating_sub(1), undo.saturating_sub(u32::from(self.undoes))));
        });
    }
}

/// Whether this thread gives room back.
#[inline]
pub(crate) fn is_giving() -> bool {
    DEPTH.with(|depth| depth.get().0 > 0)
}

/// Whether this thread undoes something.
#[inline]
pub(crate) fn is_undoing() -> bool {
    DEPTH.with(|depth| depth.get().1 > 0)
}
