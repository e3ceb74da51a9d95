//! Options of regular expressions: the flags of functions, and options embedded in patterns.

use super::invalid;
use crate::error::{Error, Result};
use crate::sqlstate::INVALID_PARAMETER_VALUE;

/// The options for parsing and matching a pattern.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Case is ignored.
    pub insensitive: bool,
    /// `.` and `[^x]` do not match a newline.
    pub within_lines: bool,
    /// `^` and `$` also match at the beginning and the end of a line.
    pub line_anchors: bool,
    /// Blanks and comments in the pattern are ignored.
    pub expanded: bool,
    /// The pattern is a literal text.
    pub literal: bool,
    /// All matches count, not only the first one.
    pub global: bool,
}

impl Options {
    pub fn insensitive(insensitive: bool) -> Options {
        Options { insensitive, ..Options::default() }
    }

    /// Parses the flags of a function.
    ///
    /// Errors: 22023 for an unknown letter.
    pub fn of_flags(flags: &str) -> Result<Options> {
        let mut options = Options::default();
        for flag in flags.chars() {
            match flag {
                'g' => options.global = true,
                other => options.set(other).ok_or_else(|| {
                    let what = format!("invalid regular expression option: \"{other}\"");
                    Error::new(INVALID_PARAMETER_VALUE, what)
                })??,
            }
        }
        Ok(options)
    }

    /// `None` for a letter that is not an option.
    fn set(&mut self, letter: char) -> Option<Result<()>> {
        match letter {
            'c' => self.insensitive = false,
            'i' => self.insensitive = true,
            'm' | 'n' => (self.within_lines, self.line_anchors) = (true, true),
            'p' => (self.within_lines, self.line_anchors) = (true, false),
            's' => (self.within_lines, self.line_anchors) = (false, false),
            'w' => (self.within_lines, self.line_anchors) = (false, true),
            'q' => self.literal = true,
            't' => self.expanded = false,
            'x' => self.expanded = true,
            'b' => return Some(Err(Error::unsupported("basic regular expressions"))),
            'e' => {}
            _ => return None,
        }
        Some(Ok(()))
    }

    /// Parses the director (`***=`) and the options (`(?i)`) at the beginning of a pattern.
    ///
    /// Errors: 2201B for unknown options.
    pub fn take_from(&mut self, pattern: &str) -> Result<usize> {
        if self.literal {
            return Ok(0);
        }
        let mut taken = 0;
        if let Some(rest) = pattern.strip_prefix("***") {
            match rest.chars().next() {
                Some('=') => {
                    self.literal = true;
                    return Ok(4);
                }
                Some(':') => taken = 4,
                _ => return Err(invalid("quantifier operand invalid")),
            }
        }
        let rest = pattern.get(taken..).unwrap_or_default();
        let Some(letters) = rest.strip_prefix("(?") else { return Ok(taken) };
        if !letters.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Ok(taken);
        }
        let (letters, _) = letters.split_once(')').ok_or_else(|| invalid("invalid embedded option"))?;
        for letter in letters.chars() {
            self.set(letter).ok_or_else(|| invalid("invalid embedded option"))??;
        }
        Ok(taken + letters.len() + 3)
    }
}
