//! Keys in messages.

/// Formats a key for messages: non-printable bytes are escaped, and long keys are cut.
pub(crate) fn printable(key: &[u8]) -> String {
    const SHOWN_BYTES: usize = 64;
    let shown = key.get(..SHOWN_BYTES).unwrap_or(key).escape_ascii();
    if key.len() > SHOWN_BYTES {
        format!("\"{shown}\"... ({} bytes)", key.len())
    } else {
        format!("\"{shown}\"")
    }
}
