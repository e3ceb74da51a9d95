//! Damage in the bytes of a page.

/// A page that no writer of this version writes. Does not name the file, which the reader of the
/// page knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset} of the page: expected {what}")]
pub struct Damage {
    /// Offset in the page, in bytes, of the part that was being read.
    pub offset: u32,
    /// The content that was expected there.
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
