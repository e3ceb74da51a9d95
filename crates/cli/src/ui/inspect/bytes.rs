//! Formats keys and values for the page, truncated.

use serde_json::{Value, json};

use crate::output::to_hex;

/// The maximum number of bytes shown.
const BYTES_MAX: usize = 120;

/// Formats bytes as text if they are readable, else in hexadecimal, with their number and whether
/// they are truncated.
pub fn shown(bytes: &[u8]) -> Value {
    let some = bytes.get(..BYTES_MAX).unwrap_or(bytes);
    let is_cut = some.len() < bytes.len();
    // A character that truncation has cut does not make the text invalid.
    let text = match std::str::from_utf8(some) {
        Ok(text) => Some(text),
        Err(error) if is_cut && error.error_len().is_none() => {
            some.get(..error.valid_up_to()).and_then(|some| std::str::from_utf8(some).ok())
        }
        Err(_) => None,
    };
    match text.filter(|text| !text.chars().any(|char| char.is_control() && !"\n\t\r".contains(char))) {
        Some(text) => json!({ "text": text, "bytes": bytes.len(), "cut": is_cut }),
        None => json!({ "hex": to_hex(some), "bytes": bytes.len(), "cut": is_cut }),
    }
}

/// Truncates text for the page.
pub fn shown_text(text: &str) -> String {
    match text.char_indices().nth(BYTES_MAX) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: text is recognized even if it is cut within a character, everything else is
    /// hexadecimal, and lengths are those of the whole.
    #[test]
    fn text_or_hexadecimal() {
        assert_eq!(shown(b"key"), json!({ "text": "key", "bytes": 3, "cut": false }));
        assert_eq!(shown(b"\x00\xff"), json!({ "hex": "00ff", "bytes": 2, "cut": false }));
        assert_eq!(shown(b"\x01\x02")["hex"], "0102", "control characters are no text");
        let long = "é".repeat(100);
        for text in [long.clone(), format!("a{long}")] {
            let found = shown(text.as_bytes());
            assert_eq!(
                (found["bytes"].as_u64(), &found["cut"]),
                (Some(text.len() as u64), &Value::Bool(true))
            );
            assert!(text.starts_with(found["text"].as_str().unwrap()));
        }
        assert_eq!(shown(&[0xff; 500])["hex"].as_str().unwrap().len(), 2 * BYTES_MAX);
        assert_eq!(shown_text("short"), "short");
        assert_eq!(shown_text(&long), long);
        assert_eq!(shown_text(&"é".repeat(121)), "é".repeat(120) + "…");
    }
}
