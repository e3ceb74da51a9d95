//! Translates PostgreSQL's notation of regular expressions to that of the engine.
//!
//! Both have groups, branches and bounds. Differences are written out: the characters that `.`,
//! `\w` and classes stand for, the meaning of `^` and `$`, constraints at the edges of words,
//! character codes, and everything that has a meaning in the engine but not in PostgreSQL.

use std::iter::Peekable;
use std::str::Chars;

use super::{Options, invalid};
use crate::error::{Error, Result};

/// The largest number in a bound.
const MOST_REPEATED: u32 = 255;

/// Translates a pattern.
///
/// Errors: 2201B for an invalid pattern, 0A000 for features that the engine lacks.
pub(super) fn translate(pattern: &str, options: Options) -> Result<String> {
    let mut options = options;
    let taken = options.take_from(pattern)?;
    let rest = pattern.get(taken..).unwrap_or_default();
    let flags = if options.insensitive { "(?i)" } else { "" };
    if options.literal {
        return Ok(format!("{flags}{}", regex::escape(rest)));
    }
    let mut translator =
        Translator { rest: rest.chars().peekable(), out: flags.to_owned(), options, depth: 0 };
    translator.whole()?;
    Ok(translator.out)
}

struct Translator<'p> {
    rest: Peekable<Chars<'p>>,
    out: String,
    options: Options,
    /// The number of open groups.
    depth: usize,
}

/// The last element read, to which a quantifier would apply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Nothing yet in this branch.
    Start,
    Atom,
    /// A constraint, which cannot be repeated.
    Constraint,
    /// An atom with its quantifier.
    Repeated,
}

impl Translator<'_> {
    fn whole(&mut self) -> Result<()> {
        let mut last = Last::Start;
        while let Some(c) = self.rest.next() {
            last = match c {
                _ if self.options.expanded && c.is_ascii_whitespace() => last,
                '#' if self.options.expanded => {
                    while self.rest.next_if(|&c| c != '\n').is_some() {}
                    last
                }
                '(' => self.open(last)?,
                ')' if self.depth > 0 => {
                    self.depth -= 1;
                    self.out.push(')');
                    Last::Atom
                }
                ')' => return Err(invalid("parentheses () not balanced")),
                '|' => {
                    self.out.push('|');
                    Last::Start
                }
                '*' | '+' | '?' => self.repeated(c.to_string(), last)?,
                '{' if self.rest.peek().is_some_and(char::is_ascii_digit) => {
                    let bound = self.bound()?;
                    self.repeated(bound, last)?
                }
                '.' => {
                    self.out.push_str(if self.options.within_lines { "[^\\n]" } else { "(?s:.)" });
                    Last::Atom
                }
                '^' => {
                    self.out.push_str(if self.options.line_anchors { "(?m:^)" } else { "\\A" });
                    Last::Constraint
                }
                '$' => {
                    self.out.push_str(if self.options.line_anchors { "(?m:$)" } else { "\\z" });
                    Last::Constraint
                }
                '[' => self.bracket()?,
                '\\' => self.escape()?,
                other => {
                    literal(other, &mut self.out);
                    Last::Atom
                }
            };
        }
        if self.depth > 0 { Err(invalid("parentheses () not balanced")) } else { Ok(()) }
    }

    fn open(&mut self, last: Last) -> Result<Last> {
        if self.rest.next_if_eq(&'?').is_none() {
            self.depth += 1;
            self.out.push('(');
            return Ok(Last::Start);
        }
        match self.rest.next() {
            Some(':') => {
                self.depth += 1;
                self.out.push_str("(?:");
                Ok(Last::Start)
            }
            Some('#') => {
                while self.rest.next_if(|&c| c != ')').is_some() {}
                self.rest.next();
                Ok(last)
            }
            Some('=' | '!' | '<') => {
                Err(Error::unsupported("a regular expression that looks ahead or behind"))
            }
            _ => Err(invalid("quantifier operand invalid")),
        }
    }

    /// Parses `{m}`, `{m,}` or `{m,n}` after the brace.
    fn bound(&mut self) -> Result<String> {
        let least = self.number()?;
        let most = match self.rest.next_if_eq(&',') {
            None => Some(least),
            Some(_) if self.rest.peek().is_some_and(char::is_ascii_digit) => Some(self.number()?),
            Some(_) => None,
        };
        if self.rest.next_if_eq(&'}').is_none() {
            return Err(invalid("invalid repetition count(s)"));
        }
        match most {
            Some(most) if most < least => Err(invalid("invalid repetition count(s)")),
            Some(most) => Ok(format!("{{{least},{most}}}")),
            None => Ok(format!("{{{least},}}")),
        }
    }

    fn number(&mut self) -> Result<u32> {
        let mut number = 0_u32;
        while let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(10)) {
            self.rest.next();
            number = number.saturating_mul(10).saturating_add(digit);
        }
        if number > MOST_REPEATED { Err(invalid("invalid repetition count(s)")) } else { Ok(number) }
    }

    fn repeated(&mut self, quantifier: String, last: Last) -> Result<Last> {
        if last != Last::Atom {
            return Err(invalid("quantifier operand invalid"));
        }
        self.out.push_str(&quantifier);
        if self.rest.next_if_eq(&'?').is_some() {
            self.out.push('?');
        }
        Ok(Last::Repeated)
    }

    /// Translates an escape outside of brackets, after its backslash.
    fn escape(&mut self) -> Result<Last> {
        let Some(c) = self.rest.next() else { return Err(invalid("invalid escape \\ sequence")) };
        let constraint = match c {
            'A' => "\\A",
            'Z' => "\\z",
            'm' => "\\b{start}",
            'M' => "\\b{end}",
            'y' => "\\b",
            'Y' => "\\B",
            _ => "",
        };
        if !constraint.is_empty() {
            self.out.push_str(constraint);
            return Ok(Last::Constraint);
        }
        if let Some(class) = short_class(c) {
            self.out.push('[');
            self.out.push_str(if c.is_ascii_uppercase() { "^" } else { "" });
            self.out.push_str(class);
            // If lines are separate, negated classes exclude the newline, as `[^x]` does.
            self.out.push_str(if c.is_ascii_uppercase() && self.options.within_lines { "\\n]" } else { "]" });
            return Ok(Last::Atom);
        }
        if matches!(c, '1'..='9') {
            return Err(Error::unsupported("a back-reference in a regular expression"));
        }
        let character = self.character(c)?;
        literal(character, &mut self.out);
        Ok(Last::Atom)
    }

    /// Returns the character of an escape whose first letter has been read.
    fn character(&mut self, c: char) -> Result<char> {
        Ok(match c {
            'a' => '\x07',
            'b' => '\x08',
            'B' => '\\',
            'e' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'c' => {
                let control = self.rest.next().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
                char::from((control as u32 & 0x1f) as u8)
            }
            'u' => self.coded(4, 4)?,
            'U' => self.coded(8, 8)?,
            'x' => self.coded(1, 8)?,
            '0' => {
                let mut code = 0;
                for _ in 0..2 {
                    let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(8)) else { break };
                    self.rest.next();
                    code = code * 8 + digit;
                }
                char::from(code as u8)
            }
            c if c.is_ascii_alphanumeric() => return Err(invalid("invalid escape \\ sequence")),
            other => other,
        })
    }

    /// Parses a character code of `least` to `most` hexadecimal digits.
    fn coded(&mut self, least: usize, most: usize) -> Result<char> {
        let mut code = 0_u32;
        let mut digits = 0;
        while digits < most
            && let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(16))
        {
            self.rest.next();
            code = code << 4 | digit;
            digits += 1;
        }
        let character = char::from_u32(code).filter(|_| digits >= least);
        character.ok_or_else(|| invalid("invalid escape \\ sequence"))
    }

    /// Translates a bracket expression after its opening bracket.
    fn bracket(&mut self) -> Result<Last> {
        let unbalanced = || invalid("brackets [] not balanced");
        for (word, place) in [("[:<:]]", "\\b{start}"), ("[:>:]]", "\\b{end}")] {
            let mut ahead = self.rest.clone();
            if word.chars().all(|c| ahead.next() == Some(c)) {
                self.rest = ahead;
                self.out.push_str(place);
                return Ok(Last::Constraint);
            }
        }
        let is_negated = self.rest.next_if_eq(&'^').is_some();
        self.out.push_str(if is_negated { "[^" } else { "[" });
        if is_negated && self.options.within_lines {
            self.out.push_str("\\n");
        }
        let mut is_first = true;
        loop {
            let c = self.rest.next().ok_or_else(unbalanced)?;
            if c == ']' && !is_first {
                break;
            }
            is_first = false;
            let Some(from) = self.item(c)? else { continue };
            let mut ahead = self.rest.clone();
            if ahead.next() != Some('-') || ahead.peek().is_none_or(|&c| c == ']') {
                literal(from, &mut self.out);
                continue;
            }
            self.rest = ahead;
            let c = self.rest.next().ok_or_else(unbalanced)?;
            let to = self.item(c)?.ok_or_else(|| invalid("invalid character range"))?;
            if to < from {
                return Err(invalid("invalid character range"));
            }
            literal(from, &mut self.out);
            self.out.push('-');
            literal(to, &mut self.out);
        }
        self.out.push(']');
        Ok(Last::Atom)
    }

    /// Reads a character within brackets; `None` for a class, which is written.
    fn item(&mut self, c: char) -> Result<Option<char>> {
        match c {
            '\\' => {
                let c = self.rest.next().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
                if let Some(class) = short_class(c) {
                    let negated = if c.is_ascii_uppercase() { "^" } else { "" };
                    self.out.push_str(&format!("[{negated}{class}]"));
                    return Ok(None);
                }
                self.character(c).map(Some)
            }
            '[' => match self.rest.peek() {
                Some(':') => {
                    let name = self.named(':')?;
                    let class = class(&name).ok_or_else(|| invalid("invalid character class"))?;
                    self.out.push_str(class);
                    Ok(None)
                }
                Some(&kind @ ('.' | '=')) => {
                    let name = self.named(kind)?;
                    let mut characters = name.chars();
                    match (characters.next(), characters.next()) {
                        (Some(only), None) => Ok(Some(only)),
                        _ => Err(invalid("invalid collating element")),
                    }
                }
                _ => Ok(Some('[')),
            },
            other => Ok(Some(other)),
        }
    }

    /// Reads the name between `[:` and `:]`.
    fn named(&mut self, kind: char) -> Result<String> {
        self.rest.next();
        let mut name = String::new();
        while let Some(c) = self.rest.next() {
            if c == kind && self.rest.next_if_eq(&']').is_some() {
                return Ok(name);
            }
            name.push(c);
        }
        Err(invalid("brackets [] not balanced"))
    }
}

/// Writes a literal character.
fn literal(c: char, out: &mut String) {
    if c.is_ascii_alphanumeric() || !c.is_ascii() {
        out.push(c);
    } else {
        out.push_str(&format!("\\x{{{:x}}}", c as u32));
    }
}

const SPACE: &str =
    "\\t-\\r \\x{1680}\\x{2000}-\\x{2006}\\x{2008}-\\x{200a}\\x{2028}\\x{2029}\\x{205f}\\x{3000}";
const WORD: &str = "\\p{Alphabetic}\\p{Nd}_";

/// Returns the characters of `\d`, `\D` and the like, for use within brackets.
fn short_class(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' | 'D' => "0-9",
        's' | 'S' => SPACE,
        'w' | 'W' => WORD,
        _ => return None,
    })
}

/// Returns the characters of a class, for use within brackets.
fn class(name: &str) -> Option<&'static str> {
    Some(match name {
        "alnum" => "\\p{Alphabetic}\\p{Nd}",
        "alpha" => "\\p{Alphabetic}",
        "ascii" => "\\x{00}-\\x{7f}",
        "blank" => " \\t\\p{Zs}",
        "cntrl" => "\\p{Cc}",
        "digit" => "0-9",
        "graph" => "[^\\p{Z}\\p{C}]",
        "lower" => "\\p{Lowercase}",
        "print" => "[^\\p{Zl}\\p{Zp}\\p{C}]",
        "punct" => "[[:punct:]]\\p{P}\\p{S}",
        "space" => SPACE,
        "upper" => "\\p{Uppercase}",
        "word" => WORD,
        "xdigit" => "0-9A-Fa-f",
        _ => return None,
    })
}
