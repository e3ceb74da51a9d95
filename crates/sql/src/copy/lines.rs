//! Finds the ends of rows in text and CSV as PostgreSQL does: the first row sets the line ending
//! for all of them.

use super::decode::bad;
use super::{Format, Options};
use crate::Result;

/// The line ending. Any other line break is rejected: in text, which would escape it, and in CSV
/// outside of quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Eol {
    Unknown,
    Feed,
    Return,
    ReturnAndFeed,
}

/// Finds the ends of rows in bytes that arrive in pieces. A byte is examined twice only where the
/// next one decides its meaning.
#[derive(Debug)]
pub(super) struct Finder {
    csv: bool,
    quote: u8,
    escape: u8,
    /// The number of bytes of the row examined so far.
    seen: usize,
    in_quotes: bool,
    /// The last byte examined was an escape that has escaped nothing yet.
    escaped: bool,
    /// Line breaks within the row.
    inner: u64,
    eol: Eol,
}

/// The extent of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// The end of its bytes.
    pub end: usize,
    /// The start of the next row.
    pub next: usize,
    /// The number of its lines.
    pub lines: u64,
    /// The input ended within quotes.
    pub is_unterminated: bool,
    /// It is the end-of-data marker, not a row. No rows follow.
    pub is_last: bool,
}

impl Finder {
    pub fn new(options: &Options) -> Self {
        let (quote, escape) = (options.quote, options.escape);
        Finder {
            csv: options.format == Format::Csv,
            quote,
            escape,
            seen: 0,
            in_quotes: false,
            escaped: false,
            inner: 0,
            eol: Eol::Unknown,
        }
    }

    /// Finds the first row of `bytes`, which begin where the last row ended. `last` says that no
    /// more bytes follow.
    ///
    /// Errors: 22P04 for a line break that differs from the first one, and for a malformed
    /// end-of-data marker.
    pub fn next(&mut self, bytes: &[u8], last: bool) -> Result<Option<Found>> {
        if let Some((end, next, is_last)) =
            if self.csv { self.csv(bytes, last)? } else { self.text(bytes, last)? }
        {
            return Ok(Some(self.row(end, next, is_last)));
        }
        if !last || bytes.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.row(bytes.len(), bytes.len(), false)))
    }

    fn row(&mut self, end: usize, next: usize, is_last: bool) -> Found {
        let found = Found { end, next, lines: self.inner + 1, is_unterminated: self.in_quotes, is_last };
        (self.seen, self.in_quotes, self.escaped, self.inner) = (0, false, false, 0);
        found
    }

    /// Returns the end of a row with a line break at `at`, and the start of the next row; `None` if
    /// the answer depends on a byte that has not arrived.
    fn line_break(&mut self, bytes: &[u8], at: usize, last: bool) -> Result<Option<(usize, usize, bool)>> {
        let next = bytes.get(at + 1).copied();
        let (eol, length) = match (bytes.get(at), self.eol, next) {
            (Some(b'\n'), Eol::Unknown | Eol::Feed, _) => (Eol::Feed, 1),
            (Some(b'\n'), ..) => return Err(self.stray("newline", "\\n")),
            (_, Eol::Return, _) => (Eol::Return, 1),
            (_, Eol::Unknown | Eol::ReturnAndFeed, Some(b'\n')) => (Eol::ReturnAndFeed, 2),
            (_, Eol::Unknown | Eol::ReturnAndFeed, None) if !last => {
                self.seen = at;
                return Ok(None);
            }
            (_, Eol::Unknown, _) => (Eol::Return, 1),
            _ => return Err(self.stray("carriage return", "\\r")),
        };
        self.eol = eol;
        // In CSV the end-of-data marker must be alone in its line.
        let is_last = self.csv && bytes.get(..at) == Some(b"\\.");
        Ok(Some((if is_last { 0 } else { at }, at + length, is_last)))
    }

    fn stray(&self, name: &str, escape: &str) -> crate::Error {
        match self.csv {
            true => bad(format!("unquoted {name} found in data"))
                .with_hint(format!("Use quoted CSV field to represent {name}.")),
            false => bad(format!("literal {name} found in data"))
                .with_hint(format!("Use \"{escape}\" to represent {name}.")),
        }
    }

    fn text(&mut self, bytes: &[u8], last: bool) -> Result<Option<(usize, usize, bool)>> {
        let mut at = self.seen;
        loop {
            let found = bytes.get(at..).and_then(|rest| memchr::memchr3(b'\n', b'\r', b'\\', rest));
            let Some(found) = found else {
                self.seen = bytes.len();
                return Ok(None);
            };
            at += found;
            if bytes.get(at) != Some(&b'\\') {
                return self.line_break(bytes, at, last);
            }
            match bytes.get(at + 1) {
                // The escaped character may arrive with the next piece. At the end of the input
                // there is none.
                None => {
                    self.seen = at;
                    return Ok(None);
                }
                Some(b'.') => return self.end_mark(bytes, at, last),
                Some(b'\n') => self.inner += 1,
                Some(_) => {}
            }
            at += 2;
        }
    }

    /// Handles a backslash and a dot at `at`, which end the input if they are alone in their line.
    fn end_mark(&mut self, bytes: &[u8], at: usize, last: bool) -> Result<Option<(usize, usize, bool)>> {
        let corrupt = || bad("end-of-copy marker corrupt");
        let mismatch = || bad("end-of-copy marker does not match previous newline style");
        let behind = bytes.get(at + 2..).unwrap_or_default();
        let needed = if self.eol == Eol::ReturnAndFeed { 2 } else { 1 };
        if behind.len() < needed && !last {
            self.seen = at;
            return Ok(None);
        }
        match (self.eol, behind.first(), behind.get(1)) {
            (Eol::ReturnAndFeed, Some(b'\r'), Some(b'\n'))
            | (Eol::Unknown | Eol::Feed, Some(b'\n'), _)
            | (Eol::Unknown | Eol::Return, Some(b'\r'), _) => {
                // After other bytes of a row it only ends the row: PostgreSQL 15 goes on reading.
                Ok(Some((at, at + 2 + needed, at == 0)))
            }
            (Eol::ReturnAndFeed, Some(b'\n'), _) => Err(mismatch()),
            (_, Some(b'\n' | b'\r'), second) if self.eol != Eol::ReturnAndFeed || second.is_some() => {
                Err(mismatch())
            }
            _ => Err(corrupt()),
        }
    }

    fn csv(&mut self, bytes: &[u8], last: bool) -> Result<Option<(usize, usize, bool)>> {
        let mut at = self.seen;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            if self.escaped && !rest.is_empty() {
                self.escaped = false;
                // A quote or an escape that is escaped has no special meaning.
                if rest.first().is_some_and(|byte| *byte == self.quote || *byte == self.escape) {
                    at += 1;
                    continue;
                }
            }
            let found = match (self.in_quotes, self.escape == self.quote) {
                (false, _) => memchr::memchr3(b'\n', b'\r', self.quote, rest),
                // A doubled quote needs no special case: it ends the quotes and begins them again.
                (true, true) => memchr::memchr2(b'\n', self.quote, rest),
                (true, false) => memchr::memchr3(b'\n', self.quote, self.escape, rest),
            };
            let Some(found) = found else {
                self.seen = bytes.len();
                return Ok(None);
            };
            let byte = rest.get(found).copied().unwrap_or_default();
            at += found + 1;
            if byte == self.quote {
                self.in_quotes = !self.in_quotes;
            } else if !self.in_quotes {
                return self.line_break(bytes, at - 1, last);
            } else if byte == b'\n' {
                self.inner += 1;
            } else {
                self.escaped = true;
            }
        }
    }
}
