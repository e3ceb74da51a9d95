//! The engine's name, and its failures.

use crate::core::error::Error;

/// Name of the engine.
pub const NAME: &str = "postgres";

/// Returns an error of the engine.
pub(super) fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}
