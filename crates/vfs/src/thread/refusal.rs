//! Threads that cannot be had, for tests: no limit of the system's can be set for one test alone.

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;

use rustix::io::Errno;

thread_local! {
    /// How many more threads this one may start.
    static ALLOWED: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// See [`refuse_after`].
#[derive(Debug)]
#[must_use = "threads are refused until it is dropped"]
pub struct Refusal {
    before: usize,
    /// It belongs to the thread that made it.
    _not_send: PhantomData<*const ()>,
}

impl Drop for Refusal {
    fn drop(&mut self) {
        ALLOWED.set(self.before);
    }
}

/// Until the guard is dropped, the calling thread can start `allowed` more threads, and is refused
/// all others as by a system that has none left (`EAGAIN`). Other threads are not affected; under a
/// scheduler under test all are, being one.
pub fn refuse_after(allowed: usize) -> Refusal {
    Refusal { before: ALLOWED.replace(allowed), _not_send: PhantomData }
}

/// Errors: `EAGAIN` once a [`Refusal`] is used up.
pub(super) fn check() -> io::Result<()> {
    match ALLOWED.get() {
        usize::MAX => Ok(()),
        0 => Err(Errno::AGAIN.into()),
        left => {
            ALLOWED.set(left - 1);
            Ok(())
        }
    }
}
