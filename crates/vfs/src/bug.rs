//! Broken invariants: bugs of Cairn, as errors that say so.
//!
//! An invariant that code relies on is stated where it is relied on, in one of three ways:
//!
//! | the check | in a function that | when it fails |
//! |---|---|---|
//! | [`ensure!`](crate::ensure) | returns a `Result` | the function returns a [`Bug`] |
//! | `assert!` | cannot fail | a panic: going on would damage data or read out of bounds |
//! | `debug_assert!` | runs so often that the check costs more than 1 % | a panic in tests |
//!
//! None of them checks an argument of the caller's or bytes from a file: those are `Invalid` and
//! `Corruption`.

use std::fmt;
use std::panic::Location;

/// An invariant of Cairn that does not hold.
///
/// Every error type of the engines has a variant for it, of kind
/// [`ErrorKind::Bug`](crate::ErrorKind::Bug).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bug {
    file: &'static str,
    line: u32,
    invariant: Box<str>,
}

impl Bug {
    /// Creates the error for the caller's file and line. `invariant` states the value that was
    /// found and the one that must hold.
    #[track_caller]
    #[cold]
    pub fn new(invariant: impl Into<Box<str>>) -> Self {
        let location = Location::caller();
        Bug { file: location.file(), line: location.line(), invariant: invariant.into() }
    }

    /// Returns the source file that found the bug.
    pub fn file(&self) -> &'static str {
        self.file
    }

    /// Returns the line in [`file`](Bug::file).
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Returns the invariant: found and expected values.
    pub fn invariant(&self) -> &str {
        &self.invariant
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bug in Cairn at {}:{}: {}; please report it", self.file, self.line, self.invariant)
    }
}

impl std::error::Error for Bug {}

/// Returns a [`Bug`] from the function unless the invariant holds.
///
/// The arguments after the condition are those of `format!`, evaluated only on failure. The
/// function returns a `Result` whose error implements `From<Bug>`.
///
/// ```
/// use cairn_vfs::{Bug, ensure};
///
/// fn half(even: u32) -> Result<u32, Bug> {
///     ensure!(even % 2 == 0, "{even} is odd, expected an even number");
///     Ok(even / 2)
/// }
///
/// assert_eq!(half(8), Ok(4));
/// let text = half(7).unwrap_err().to_string();
/// assert!(text.starts_with("bug in Cairn at ") && text.contains("7 is odd"), "{text}");
/// ```
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return ::core::result::Result::Err($crate::Bug::new(::std::format!($($message)+)).into());
        }
    };
}
