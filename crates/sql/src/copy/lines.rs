//! Where rows of text and of CSV end.

use super::{Format, Options};

/// Finds ends of rows in bytes that come in pieces; never looks at a byte twice.
#[derive(Debug)]
pub(super) struct Finder {
    csv: bool,
    quote: u8,
    escape: u8,
    /// How many bytes of the row were looked at.
    seen: usize,
    in_quotes: bool,
    /// The byte before what is to be looked at was an escape that stands for itself so far.
    escaped: bool,
    /// Line ends within the row.
    inner: u64,
    /// Lines end with a carriage return and a line feed: the first did.
    crlf: Option<bool>,
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// Its bytes end here,
    pub end: usize,
    /// and the next one begins here.
    pub next: usize,
    /// How many lines it has.
    pub lines: u64,
    /// The input ended within quotes.
    pub is_unterminated: bool,
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
            crlf: None,
        }
    }

    /// The first row of the bytes, which begin where the last one ended. `last`: no more bytes come.
    pub fn next(&mut self, bytes: &[u8], last: bool) -> Option<Found> {
        let feed = if self.csv { self.feed_csv(bytes) } else { self.feed_text(bytes) };
        let Some(feed) = feed else {
            self.seen = bytes.len();
            if !last || bytes.is_empty() {
                return None;
            }
            return Some(self.row(bytes, bytes.len(), bytes.len()));
        };
        Some(self.row(bytes, feed, feed + 1))
    }

    fn row(&mut self, bytes: &[u8], end: usize, next: usize) -> Found {
        let returns =
            end > 0 && bytes.get(end - 1) == Some(&b'\r') && (self.csv || !is_escaped(bytes, end - 1));
        let crlf = *self.crlf.get_or_insert(returns);
        let end = if crlf && returns { end - 1 } else { end };
        let found = Found { end, next, lines: self.inner + 1, is_unterminated: self.in_quotes };
        (self.seen, self.in_quotes, self.escaped, self.inner) = (0, false, false, 0);
        found
    }

    fn feed_text(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = self.seen;
        loop {
            let feed = at + memchr::memchr(b'\n', bytes.get(at..)?)?;
            if !is_escaped(bytes, feed) {
                return Some(feed);
            }
            self.inner += 1;
            at = feed + 1;
        }
    }

    fn feed_csv(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = self.seen;
        loop {
            let rest = bytes.get(at..)?;
            let found = match (self.in_quotes, self.escape == self.quote) {
                // Two quotes that stand for one end the quotes and begin them again.
                (false, _) | (true, true) => memchr::memchr2(b'\n', self.quote, rest),
                (true, false) => memchr::memchr3(b'\n', self.quote, self.escape, rest),
            };
            if self.escaped && !rest.is_empty() {
                self.escaped = false;
                // What an escape stands before means nothing, if it is a quote or an escape.
                if rest.first().is_some_and(|byte| *byte == self.quote || *byte == self.escape) {
                    at += 1;
                    continue;
                }
            }
            let found = at + found?;
            let byte = *bytes.get(found)?;
            at = found + 1;
            if byte == self.quote {
                self.in_quotes = !self.in_quotes;
            } else if byte == b'\n' {
                if !self.in_quotes {
                    return Some(found);
                }
                self.inner += 1;
            } else {
                self.escaped = true;
            }
        }
    }
}

/// Whether an odd number of backslashes stands before a byte.
fn is_escaped(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(..at).unwrap_or_default();
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}
