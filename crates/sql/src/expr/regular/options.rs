//! Options of regular expressions: the flags of functions, and what patterns begin with.

use super::invalid;
use crate::error::{Error, Result};
use crate::sqlstate::INVALID_PARAMETER_VALUE;

/// How a pattern is read and matched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Upper and lower case are one.
    pub insensitive: bool,
    /// `.` and `[^x]` match no end of a line.
    pub within_lines: bool,
    /// `^` and `$` are also the beginning and the end of a line.
    pub line_anchors: bool,
    /// Blanks and comments in the pattern count for nothing.
    pub expanded: bool,
    /// The pattern is a plain text.
    pub literal: bool,
    /// Every match counts, and not only the first.
    pub global: bool,
}

impl Options {
    pub fn insensitive(insensitive: bool) -> Options {
        Options { insensitive, ..Options::default() }
    }

    /// Those that a function's flags say.
    ///
    /// Errors: 22023 for a letter that is none.
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

    /// `None` for a letter that is no option.
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

    /// Takes the director (`***=`) and the options (`(?i)`) from the beginning of a pattern.
    ///
    /// Errors: 2201B for options that are none.
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
