//! Finds the ends of statements as text arrives line by line. Semicolons within quotes, dollar
//! quotes and comments do not count.

/// The construct that contains the current position.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Within {
    Nothing,
    /// `'...'`; with escapes for `E'...'`.
    String {
        has_escapes: bool,
    },
    /// `"..."`
    Name,
    /// `-- ...`
    Line,
    /// `/* ... */`, nested to this depth.
    Block(u32),
    /// `$tag$ ... $tag$`: the tag, including its dollar signs.
    Dollar(String),
}

/// Splits text into statements.
#[derive(Debug)]
pub struct Splitter {
    text: String,
    /// The position up to which the text was scanned, and the construct around it.
    at: usize,
    within: Within,
}

impl Splitter {
    /// Creates a splitter without text.
    pub fn new() -> Self {
        Splitter { text: String::new(), at: 0, within: Within::Nothing }
    }

    /// Appends text. A quote or comment may continue in the next piece, but its delimiters must not
    /// be split.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Returns true if only blanks are pending.
    pub fn is_empty(&self) -> bool {
        self.within == Within::Nothing && self.text.trim().is_empty()
    }

    /// Returns the prompt character for the next line, which shows the open construct.
    pub fn mark(&self) -> char {
        match self.within {
            _ if self.is_empty() => '=',
            Within::Nothing | Within::Line => '-',
            Within::String { .. } => '\'',
            Within::Name => '"',
            Within::Block(_) => '*',
            Within::Dollar(_) => '$',
        }
    }

    /// Discards the pending text.
    pub fn clear(&mut self) {
        *self = Splitter::new();
    }

    /// Returns the next complete statement, without its semicolon.
    pub fn next(&mut self) -> Option<String> {
        while let Some(byte) = self.text.as_bytes().get(self.at).copied() {
            if self.within == Within::Nothing && byte == b';' {
                let rest = self.text.split_off(self.at + 1);
                let mut statement = std::mem::replace(&mut self.text, rest);
                statement.pop();
                self.at = 0;
                return Some(statement);
            }
            self.step(byte);
        }
        None
    }

    /// Returns the rest of the text, if it is more than blanks and comments.
    pub fn rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.text);
        self.clear();
        let mut bare = Splitter::new();
        bare.push(&rest);
        let mut has_more = false;
        while let Some(byte) = rest.as_bytes().get(bare.at).copied() {
            let before = bare.within.clone();
            bare.step(byte);
            let is_comment = |within: &Within| matches!(within, Within::Line | Within::Block(_));
            has_more |= !byte.is_ascii_whitespace() && !is_comment(&before) && !is_comment(&bare.within);
        }
        has_more.then_some(rest)
    }

    /// Advances by one token or byte.
    fn step(&mut self, byte: u8) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let (length, within) = match &self.within {
            Within::Nothing => self.begin(byte, rest),
            Within::String { has_escapes: true } if byte == b'\\' => (2, None),
            Within::String { .. } if rest.starts_with("''") => (2, None),
            Within::String { .. } if byte == b'\'' => (1, Some(Within::Nothing)),
            Within::Name if byte == b'"' => (1, Some(Within::Nothing)),
            Within::Line if byte == b'\n' => (1, Some(Within::Nothing)),
            Within::Block(depth) if rest.starts_with("/*") => (2, Some(Within::Block(depth + 1))),
            Within::Block(1) if rest.starts_with("*/") => (2, Some(Within::Nothing)),
            Within::Block(depth) if rest.starts_with("*/") => (2, Some(Within::Block(depth - 1))),
            Within::Dollar(tag) if rest.starts_with(tag.as_str()) => (tag.len(), Some(Within::Nothing)),
            _ => (1, None),
        };
        self.at += length;
        // Advance to a character boundary; only ASCII bytes are delimiters.
        while self.at < self.text.len() && !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        if let Some(within) = within {
            self.within = within;
        }
    }

    /// Returns the length of the token at a byte outside of any construct, and the construct that
    /// it begins.
    fn begin(&self, byte: u8, rest: &str) -> (usize, Option<Within>) {
        let before = self.text.as_bytes().get(..self.at).unwrap_or_default();
        let is_word =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || *byte >= 0x80;
        match byte {
            b'\'' => {
                let has_escapes = matches!(before, [.., previous, b'e' | b'E'] if !is_word(previous))
                    || matches!(before, [b'e' | b'E']);
                (1, Some(Within::String { has_escapes }))
            }
            b'"' => (1, Some(Within::Name)),
            b'-' if rest.starts_with("--") => (2, Some(Within::Line)),
            b'/' if rest.starts_with("/*") => (2, Some(Within::Block(1))),
            b'$' if !before.last().is_some_and(is_word) => match dollar_tag(rest) {
                Some(tag) => (tag.len(), Some(Within::Dollar(tag.to_owned()))),
                None => (1, None),
            },
            _ => (1, None),
        }
    }
}

/// Returns the `$$` or `$tag$` at the start of a text. `$1` is a parameter.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text.get(1..)?.find('$')? + 1;
    let tag = text.get(1..end)?;
    let is_name = tag.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !tag.starts_with(|c: char| c.is_ascii_digit());
    is_name.then(|| text.get(..=end)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(lines: &[&str]) -> (Vec<String>, Option<String>) {
        let mut splitter = Splitter::new();
        let mut statements = Vec::new();
        for line in lines {
            splitter.push(line);
            splitter.push("\n");
            while let Some(statement) = splitter.next() {
                statements.push(statement.trim().to_owned());
            }
        }
        (statements, splitter.rest().map(|rest| rest.trim().to_owned()))
    }

    /// Goal: only semicolons that end a statement split the text.
    #[test]
    fn statements_are_cut_where_they_end() {
        for (lines, expected) in [
            (&["a; b;c"][..], &["a", "b"][..]),
            (&["a';", "''x;';"], &["a';\n''x;'"]),
            (&[r"select E'\';', 'x\'; y"], &[r"select E'\';', 'x\'"]),
            (&["select e';'; name';';"], &["select e';'", "name';'"]),
            (&["a -- b; c", "; d;"], &["a -- b; c", "d"]),
            (&["a /* ; /* ; */ ; */ ; b;"], &["a /* ; /* ; */ ; */", "b"]),
            (&["do $$ a; $x$ ; $$; $x$ ;$$; $x$; $1;"], &["do $$ a; $x$ ; $$", "$x$ ;$$; $x$", "$1"]),
            (&["a$b$;c$b$;"], &["a$b$", "c$b$"]),
            (&["\"a;\"\"b\" 'é;';"], &["\"a;\"\"b\" 'é;'"]),
        ] {
            assert_eq!(split(lines).0, expected, "{lines:?}");
        }
    }

    /// Goal: the rest is returned if it is more than comments; the prompt character shows the open
    /// construct.
    #[test]
    fn unfinished_statements_are_returned() {
        assert_eq!(split(&["a; b"]).1.as_deref(), Some("b"));
        assert_eq!(split(&["a; -- b", " /* c */ "]).1, None);
        for (text, mark) in
            [("", '='), (" ", '='), ("a", '-'), ("'a", '\''), ("\"a", '"'), ("/* a", '*'), ("$$ a", '$')]
        {
            let mut splitter = Splitter::new();
            splitter.push(text);
            assert_eq!(splitter.next(), None);
            assert_eq!(splitter.mark(), mark, "{text}");
        }
    }
}
