//! Classifies SQL statements as reads or writes by their words, because a trace holds their texts
//! but no plans.

/// The effect of a statement on rows: `Neither` for statements such as those that change or show
/// the columns of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Read,
    Write,
    Neither,
}

/// Classifies a statement.
pub(super) fn of(text: &[u8]) -> Does {
    let mut words = Words { text, at: 0, depth: 0, after_as: None };
    let Some(first) = words.next() else { return Does::Neither };
    match &*first.name {
        "copy" => copied(words, first.depth),
        "with" => with(words, first.depth),
        name => verb(name).unwrap_or(Does::Neither),
    }
}

fn verb(name: &str) -> Option<Does> {
    match name {
        "select" | "values" | "table" => Some(Does::Read),
        "insert" | "update" | "delete" | "merge" | "truncate" => Some(Does::Write),
        _ => None,
    }
}

/// Classifies COPY: `COPY t FROM` writes, `COPY t TO` and `COPY (query) TO` read.
fn copied(mut words: Words<'_>, depth: usize) -> Does {
    match words.find(|word| word.depth == depth && matches!(&*word.name, "from" | "to")) {
        Some(word) if word.name == "from" => Does::Write,
        Some(_) => Does::Read,
        None => Does::Neither,
    }
}

/// Classifies a statement with common table expressions. It writes if one of these writes.
fn with(words: Words<'_>, depth: usize) -> Does {
    let mut writes = false;
    for word in words {
        let Some(does) = verb(&word.name) else { continue };
        if word.depth == depth {
            return if writes { Does::Write } else { does };
        }
        writes |= word.begins_query && does == Does::Write;
    }
    Does::Neither
}

struct Word {
    /// In lower case.
    name: String,
    /// The number of parentheses around it.
    depth: usize,
    /// True for the first word of a parenthesized query: after `AS (` or `AS MATERIALIZED (`.
    begins_query: bool,
}

/// Iterates over the words of a statement outside of quotes and comments.
struct Words<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
    /// The parenthesis depth of the last word if that was `AS`, ignoring `NOT` and `MATERIALIZED`
    /// after it.
    after_as: Option<usize>,
}

impl Words<'_> {
    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips `from` bytes, then everything up to and including `mark`; to the end if there is none.
    fn skip_past(&mut self, from: usize, mark: &[u8]) {
        let rest = self.text.get(self.at + from..).unwrap_or_default();
        let found = rest.windows(mark.len()).position(|at| at == mark);
        self.at = found.map_or(self.text.len(), |found| self.at + from + found + mark.len());
    }

    /// Skips a comment. Comments nest.
    fn skip_comment(&mut self) {
        let mut open = 0_u32;
        while self.at < self.text.len() {
            match self.rest() {
                [b'/', b'*', ..] => (open, self.at) = (open + 1, self.at + 2),
                [b'*', b'/', ..] => (open, self.at) = (open - 1, self.at + 2),
                _ => self.at += 1,
            }
            if open == 0 {
                return;
            }
        }
    }

    /// Skips a dollar-quoted string: `$$text$$` or `$tag$text$tag$`. A parameter such as `$1` is
    /// not one.
    fn skip_dollars(&mut self) {
        let rest = self.rest();
        let tag = rest.iter().skip(1).position(|byte| !is_word(*byte)).map(|at| at + 1);
        match tag.filter(|at| rest.get(*at) == Some(&b'$')) {
            Some(at) => {
                let mark = rest.get(..=at).unwrap_or_default().to_vec();
                self.skip_past(mark.len(), &mark);
            }
            None => self.at += 1,
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl Iterator for Words<'_> {
    type Item = Word;

    fn next(&mut self) -> Option<Word> {
        loop {
            match self.rest() {
                [] => return None,
                [b'-', b'-', ..] => self.skip_past(2, b"\n"),
                [b'/', b'*', ..] => self.skip_comment(),
                // A doubled quote ends one string and begins the next, with the same result.
                [quote @ (b'\'' | b'"'), ..] => self.skip_past(1, &[*quote]),
                [b'$', ..] => self.skip_dollars(),
                [b'(', ..] => (self.depth, self.at) = (self.depth + 1, self.at + 1),
                [b')', ..] => (self.depth, self.at) = (self.depth.saturating_sub(1), self.at + 1),
                [byte, ..] if is_word(*byte) => break,
                _ => self.at += 1,
            }
        }
        let rest = self.rest();
        let len = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
        let name = String::from_utf8_lossy(rest.get(..len).unwrap_or_default()).to_ascii_lowercase();
        self.at += len;
        let after_as = self.after_as.take();
        let begins_query = after_as.is_some_and(|depth| self.depth == depth + 1);
        self.after_as = match &*name {
            "as" => Some(self.depth),
            "not" | "materialized" => after_as,
            _ => None,
        };
        Some(Word { name, depth: self.depth, begins_query })
    }
}
