//! Splits a row of text or CSV into its values.

use super::decode::{Source, bad, utf8};
use super::{Format, Options};
use crate::Result;

/// The position of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    /// It is NULL.
    Null,
    /// In the row.
    Row(usize, usize),
    /// In the buffer of unescaped values.
    Unescaped(usize, usize),
}

/// The values of a row, and a buffer for values with escapes. Reused from row to row.
#[derive(Debug, Default)]
pub(super) struct Split {
    pub spans: Vec<Span>,
    unescaped: Vec<u8>,
}

impl Span {
    #[inline]
    pub fn text(self, source: Source<'_>) -> Option<&str> {
        match (self, source) {
            (Span::Row(from, to), Source::Text { line, .. }) => line.get(from..to),
            (Span::Unescaped(from, to), Source::Text { unescaped, .. }) => unescaped.get(from..to),
            _ => None,
        }
    }

    pub fn bytes(self, source: Source<'_>) -> Option<&[u8]> {
        match (self, source) {
            (Span::Row(from, to), Source::Binary(bytes)) => bytes.get(from..to),
            _ => None,
        }
    }
}

impl Split {
    /// Locates the values of a row, at most `most` of them.
    pub fn split(&mut self, row: &str, options: &Options, most: usize) -> Result<()> {
        self.spans.clear();
        self.unescaped.clear();
        match options.format {
            Format::Csv => self.csv(row.as_bytes(), options, most),
            _ => {
                self.text(row.as_bytes(), options, most);
                Ok(())
            }
        }
    }

    /// Returns the buffer of unescaped values. Errors: 22021, because escapes can produce any byte.
    pub fn unescaped(&self) -> Result<&str> {
        let text = utf8(&self.unescaped)?;
        let is_whole = |span: &Span| match span {
            Span::Unescaped(from, to) => text.is_char_boundary(*from) && text.is_char_boundary(*to),
            _ => true,
        };
        if text.is_empty() || self.spans.iter().all(is_whole) {
            Ok(text)
        } else {
            Err(bad("a multibyte character spans two values"))
        }
    }

    fn text(&mut self, row: &[u8], options: &Options, most: usize) {
        let null = options.null.as_bytes();
        let mut from = 0;
        while self.spans.len() < most {
            let rest = row.get(from..).unwrap_or_default();
            let mut escapes = false;
            let mut at = 0;
            let end = loop {
                let Some(found) =
                    rest.get(at..).and_then(|rest| memchr::memchr2(options.delimiter, b'\\', rest))
                else {
                    break rest.len();
                };
                at += found;
                if rest.get(at) == Some(&options.delimiter) {
                    break at;
                }
                // A backslash and the character that it escapes.
                escapes = true;
                at = (at + 2).min(rest.len());
            };
            let value = rest.get(..end).unwrap_or_default();
            let span = match (value == null, escapes) {
                (true, _) => Span::Null,
                (false, true) => self.unescape(value),
                (false, false) => Span::Row(from, from + end),
            };
            self.spans.push(span);
            if end == rest.len() {
                break;
            }
            from += end + 1;
        }
    }

    fn unescape(&mut self, value: &[u8]) -> Span {
        let start = self.unescaped.len();
        let mut rest = value;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            if byte != b'\\' {
                self.unescaped.push(byte);
                continue;
            }
            let Some((&escape, after)) = rest.split_first() else {
                // A backslash at the end escapes nothing. PostgreSQL drops it.
                break;
            };
            rest = after;
            let (byte, digits) = match escape {
                b'b' => (8, 0),
                b'f' => (12, 0),
                b'n' => (b'\n', 0),
                b'r' => (b'\r', 0),
                b't' => (b'\t', 0),
                b'v' => (11, 0),
                b'0'..=b'7' => {
                    let (value, more) = digits_of(rest, 8, 2);
                    ((u32::from(escape - b'0') << (3 * more) | value) as u8, more)
                }
                b'x' if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
                    let (value, digits) = digits_of(rest, 16, 2);
                    (value as u8, digits)
                }
                other => (other, 0),
            };
            self.unescaped.push(byte);
            rest = rest.get(digits..).unwrap_or_default();
        }
        Span::Unescaped(start, self.unescaped.len())
    }

    fn csv(&mut self, row: &[u8], options: &Options, most: usize) -> Result<()> {
        let null = options.null.as_bytes();
        let mut from = 0;
        while self.spans.len() < most {
            let place = self.spans.len();
            let forced = |flags: &[bool]| flags.get(place).copied().unwrap_or_default();
            let rest = row.get(from..).unwrap_or_default();
            // BOUND: each turn consumes a part of the row, up to a quote or the end of the value.
            let end = memchr::memchr2(options.delimiter, options.quote, rest).unwrap_or(rest.len());
            let (span, end) = if rest.get(end) == Some(&options.quote) {
                self.quoted(rest, end, options)?
            } else {
                (Span::Row(from, from + end), end)
            };
            let is_null = match span {
                Span::Unescaped(from, to) => {
                    self.unescaped.get(from..to) == Some(null) && forced(&options.force_null)
                }
                _ => rest.get(..end) == Some(null) && !forced(&options.force_not_null),
            };
            self.spans.push(if is_null { Span::Null } else { span });
            if end >= rest.len() {
                break;
            }
            from += end + 1;
        }
        Ok(())
    }

    /// Decodes a value with quotes, the first of them at `quote`. Also returns the end of the
    /// value.
    fn quoted(&mut self, rest: &[u8], quote: usize, options: &Options) -> Result<(Span, usize)> {
        let start = self.unescaped.len();
        self.unescaped.extend_from_slice(rest.get(..quote).unwrap_or_default());
        let mut at = quote + 1;
        let mut in_quotes = true;
        loop {
            let tail = rest.get(at..).unwrap_or_default();
            let found = match in_quotes {
                true => memchr::memchr2(options.quote, options.escape, tail),
                false => memchr::memchr2(options.delimiter, options.quote, tail),
            };
            let Some(found) = found else {
                if in_quotes {
                    return Err(bad("unterminated CSV quoted field"));
                }
                self.unescaped.extend_from_slice(tail);
                return Ok((Span::Unescaped(start, self.unescaped.len()), rest.len()));
            };
            self.unescaped.extend_from_slice(tail.get(..found).unwrap_or_default());
            at += found;
            let byte = rest.get(at).copied().unwrap_or_default();
            let next = rest.get(at + 1).copied();
            if !in_quotes {
                if byte == options.delimiter {
                    return Ok((Span::Unescaped(start, self.unescaped.len()), at));
                }
                in_quotes = true;
            } else if byte == options.escape
                && next.is_some_and(|next| next == options.quote || next == options.escape)
            {
                self.unescaped.extend(next);
                at += 1;
            } else if byte == options.quote {
                in_quotes = false;
            } else {
                self.unescaped.push(byte);
            }
            at += 1;
        }
    }
}

/// Parses up to `most` digits. Returns their value and their count.
fn digits_of(bytes: &[u8], radix: u32, most: usize) -> (u32, usize) {
    let digits = bytes.iter().take(most).map_while(|byte| (*byte as char).to_digit(radix));
    digits.fold((0, 0), |(value, count), digit| (value * radix + digit, count + 1))
}
