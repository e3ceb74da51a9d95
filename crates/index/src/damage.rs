//! What is wrong with the bytes of a page.

/// A page that no writer of this version writes. It names no file: whoever read the page knows
/// which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset} of the page: expected {what}")]
pub struct Damage {
    /// Where in the page, in bytes; the start of the part that was being read.
    pub offset: u32,
    /// What was expected there.
    pub what: &'static str,
}

impl Damage {
    #[cold]
    pub(crate) fn at(offset: usize, what: &'static str) -> Damage {
        Damage { offset: u32::try_from(offset).unwrap_or(u32::MAX), what }
    }
}

/// The result of reading a page.
pub type Checked<T> = Result<T, Damage>;
