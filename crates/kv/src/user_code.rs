//! Calls into user code: merge operators, compaction filters and listeners.
//!
//! A panic in user code is caught at the call. Its message is reported together with the key, and
//! neither a thread of the store nor the store itself is lost.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::escape::printable;
use crate::{Error, Result};

/// Returns the message of a panic.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

/// Runs `code`, which belongs to `keyspace` and processes `key`. `what` names the code in the error
/// message.
///
/// Errors: [`Error::Panicked`].
#[inline]
pub(crate) fn call<T>(keyspace: &str, key: &[u8], what: &'static str, code: impl FnOnce() -> T) -> Result<T> {
    // `AssertUnwindSafe` holds: the code gets shared references only, and any half-updated state
    // inside it is its own.
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| Error::Panicked {
        keyspace: keyspace.to_owned(),
        key: printable(key),
        what,
        message: message(&*panic),
    })
}

/// Runs `code` and ignores a panic in it.
pub(crate) fn call_quietly(code: impl FnOnce()) {
    // The panic hook has already reported the panic.
    let _ = catch_unwind(AssertUnwindSafe(code));
}
