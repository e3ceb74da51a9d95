//! Calls of code that the store was given: merge operators, compaction filters, listeners.
//!
//! A panic in such code is caught where it is called, so that what it says is told of the key that
//! it met, and neither a thread of the store nor the store itself ends by it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::iter::resolve::printable;
use crate::{Error, Result};

/// What a panic has said.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

/// Runs `code`, which belongs to `keyspace` and looks at `key`; `what` it is, for the message.
///
/// Errors: [`Error::Panicked`].
#[inline]
pub(crate) fn call<T>(keyspace: &str, key: &[u8], what: &'static str, code: impl FnOnce() -> T) -> Result<T> {
    // The code gets shared references, and what it has half done inside is its own.
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| Error::Panicked {
        keyspace: keyspace.to_owned(),
        key: printable(key),
        what,
        message: message(&*panic),
    })
}

/// Runs `code`, whose failure is nobody's business but its own.
pub(crate) fn call_quietly(code: impl FnOnce()) {
    // The panic's hook has said what there is to say.
    let _ = catch_unwind(AssertUnwindSafe(code));
}
