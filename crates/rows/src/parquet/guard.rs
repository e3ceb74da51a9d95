//! Panics of the Parquet library, as errors.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use parquet::errors::{ParquetError, Result};

thread_local! {
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// Runs a step of the library, which panics on some damaged files. What the step worked on is of no
/// use after an error.
///
/// Errors: those of the step, and [`ParquetError::General`] where it panics.
pub fn guarded<T>(step: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = WITHIN.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(step));
    WITHIN.set(before);
    done.unwrap_or_else(|_| Err(ParquetError::General("the file is damaged".to_owned())))
}

/// From here on a panic within [`guarded`] says nothing on standard error, where it would look like
/// a fault of the program. For programs: a library leaves the hook to those who use it.
pub fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !WITHIN.get() {
                before(info);
            }
        }));
    });
}
