//! The byte order mark of UTF-8, which some editors and spreadsheets put before a text. It is not
//! part of the text.

use std::io::{self, BufRead};

/// The byte order mark.
pub const MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns a text without a leading byte order mark.
pub fn without(text: &[u8]) -> &[u8] {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// Skips the byte order mark at the start of an input and returns `None`. If there is no complete
/// mark, returns the bytes that matched the beginning of one. They are consumed as well, and belong
/// to the text.
///
/// Errors: those of the input.
pub fn skip(input: &mut impl BufRead) -> io::Result<Option<&'static [u8]>> {
    for (at, expected) in MARK.iter().enumerate() {
        let next = loop {
            match input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                filled => break filled?.first().copied(),
            }
        };
        if next != Some(*expected) {
            return Ok(Some(MARK.get(..at).unwrap_or_default()));
        }
        input.consume(1);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    /// Goal: the mark is skipped, however the bytes arrive, and nothing else is. Method: inputs
    /// with the mark, without it, and with parts of it, through buffers of every small size.
    #[test]
    fn marks_are_skipped() {
        for (input, head, rest) in [
            (&b"\xef\xbb\xbfid"[..], None, &b"id"[..]),
            (b"\xef\xbb\xbf", None, b""),
            (b"id", Some(&b""[..]), b"id"),
            (b"", Some(b""), b""),
            (b"\xef\xbbx", Some(b"\xef\xbb"), b"x"),
            (b"\xef", Some(b"\xef"), b""),
            (b"\xef\xbb\xbf\xef\xbb\xbf", None, b"\xef\xbb\xbf"),
        ] {
            for capacity in 1..5 {
                let mut reader = BufReader::with_capacity(capacity, input);
                assert_eq!(skip(&mut reader).unwrap(), head);
                let mut left = Vec::new();
                reader.read_to_end(&mut left).unwrap();
                assert_eq!(left, rest);
            }
            assert_eq!(without(input), if head.is_none() { rest } else { input });
        }
    }
}
