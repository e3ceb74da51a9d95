//! What a statement has to say without failing.

/// Something to be told to whoever is at the other end, without being an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// `NOTICE` or `WARNING`.
    pub severity: &'static str,
    /// The code: five characters.
    pub sqlstate: &'static str,
    /// What it says.
    pub message: String,
}
