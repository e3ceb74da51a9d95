//! Simulates the failure to start threads, for tests: system limits cannot be set for one test
//! alone.

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;

use rustix::io::Errno;

thread_local! {
    /// How many more threads this thread may start.
    static ALLOWED: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// See [`refuse_after`].
#[derive(Debug)]
#[must_use = "threads are refused until it is dropped"]
pub struct Refusal {
    before: usize,
    /// Not `Send`, since it belongs to the thread that made it.
    _not_send: PhantomData<*const ()>,
}

impl Drop for Refusal {
    fn drop(&mut self) {
        ALLOWED.set(self.before);
    }
}

/// Until the guard is dropped, lets the calling thread start `allowed` more threads and refuses all
/// others with `EAGAIN`, as a system without free threads does. Other threads are not affected,
/// except under a scheduler under test, where all threads are one.
pub fn refuse_after(allowed: usize) -> Refusal {
    Refusal { before: ALLOWED.replace(allowed), _not_send: PhantomData }
}

/// Fails with `EAGAIN` once the limit of a [`Refusal`] is used up.
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
