//! Panics of DataFusion's planner.
//!
//! The planner is external code with assertions of its own. A failed assertion becomes an error of
//! the statement, so that neither the session nor the server ends. Execution runs in a task of the
//! runtime, whose panics `run/batches.rs` handles.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result};
use crate::sqlstate::INTERNAL_ERROR;

/// Runs a part of planning.
///
/// Errors: those of `plan`; XX000 with the panic's message if it panics. The statement then fails,
/// and the transaction with it, so that partial effects of `plan` are never seen.
pub(crate) fn caught<T>(plan: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(plan)).unwrap_or_else(|panic| {
        let message = message(&*panic);
        Err(Error::new(INTERNAL_ERROR, format!("the query planner failed: {message}")))
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a panic of the planner fails the statement and nothing else.
    /// Method: code that panics with each kind of message, and code that does not.
    #[test]
    fn a_panic_is_an_error() {
        let error = caught::<()>(|| panic!("a fault")).unwrap_err();
        assert_eq!(error.sqlstate(), INTERNAL_ERROR);
        assert!(error.to_string().contains("a fault"), "{error}");
        let error = caught::<()>(|| panic!("fault {}", 7)).unwrap_err();
        assert!(error.to_string().contains("fault 7"), "{error}");
        assert_eq!(caught(|| Ok(1)).unwrap(), 1);
    }
}
