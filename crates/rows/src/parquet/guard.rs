//! Turns panics of the Parquet library into errors.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use parquet::errors::{ParquetError, Result};

thread_local! {
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// Runs a step of the library, which panics on some damaged files. After an error, the object that
/// the step worked on must not be used.
///
/// Errors: those of the step, and [`ParquetError::General`] if it panics.
pub fn guarded<T>(step: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = WITHIN.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(step));
    WITHIN.set(before);
    done.unwrap_or_else(|_| Err(ParquetError::General("the file is damaged".to_owned())))
}

/// Suppresses the message of later panics within [`guarded`] on standard error, where it would look
/// like a bug of the program. For programs only: installing a panic hook is not a library's
/// decision.
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
