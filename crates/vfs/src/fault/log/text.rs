//! The words in the lines of an operation log.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::crash::CrashImage;
use super::super::options::{Fault, Rule, When};
use crate::{Access, Create, OpenOptions, Operation};

/// The error for a line that is not a logged operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, word {word}: expected {expected}, found {found:?}")]
pub struct ParseLogError {
    line: usize,
    word: usize,
    expected: &'static str,
    found: String,
}

impl ParseLogError {
    pub(super) fn on_line(mut self, line: usize) -> Self {
        self.line = line;
        self
    }
}

/// Formats a path as one word.
pub(super) struct Name<'a>(pub(super) &'a Path);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.as_os_str().as_bytes();
        if bytes.is_empty() {
            return f.write_str("%"); // the empty path: elsewhere, `%` is followed by hex digits
        }
        for &byte in bytes {
            if byte.is_ascii_graphic() && byte != b'%' {
                write!(f, "{}", char::from(byte))?;
            } else {
                write!(f, "%{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Formats bytes as one word.
pub(super) struct Hex<'a>(pub(super) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

pub(super) fn options(options: OpenOptions) -> String {
    let access = match options.access {
        Access::Read => "r",
        Access::ReadWrite => "rw",
    };
    let create = match options.create {
        Create::Never => "never",
        Create::IfMissing => "if-missing",
        Create::New => "new",
    };
    format!("{access} {create} {}", if options.direct { "direct" } else { "buffered" })
}

const OPERATIONS: [(&str, Operation); 15] = [
    ("open", Operation::Open),
    ("read", Operation::Read),
    ("write", Operation::Write),
    ("set-len", Operation::SetLen),
    ("allocate", Operation::Allocate),
    ("sync-data", Operation::SyncData),
    ("sync-dir", Operation::SyncDir),
    ("rename", Operation::Rename),
    ("remove", Operation::Remove),
    ("link", Operation::Link),
    ("create-dir", Operation::CreateDir),
    ("read-dir", Operation::ReadDir),
    ("stat", Operation::Stat),
    ("map", Operation::Map),
    ("lock", Operation::Lock),
];

// Every kind that a rule can name, which is all but the last.
const _: () = assert!(OPERATIONS.len() == Operation::StartThread as usize);
// Each of them once, in the order of the kinds.
const _: () = {
    let mut index = 0;
    while index < OPERATIONS.len() {
        assert!(OPERATIONS[index].1 as usize == index);
        index += 1;
    }
};

/// Formats a rule as `<index> <fault> <once|always>`. The index is written as `17` or `write:3`, a
/// misdirection as `misdirected:-512`.
pub(super) fn rule(rule: Rule) -> String {
    let when = match rule.when {
        When::Index(index) => index.to_string(),
        When::Nth(operation, n) => {
            let name = OPERATIONS.iter().find(|(_, kind)| *kind == operation).map_or("?", |(name, _)| name);
            format!("{name}:{n}")
        }
    };
    let fault = match rule.fault {
        Fault::Io => "io",
        Fault::Full => "full",
        Fault::Interrupted => "interrupted",
        Fault::Short => "short",
        Fault::Lost => "lost",
        Fault::Misdirected { by } => &format!("misdirected:{by}"),
        Fault::ZeroTail => "zero-tail",
        Fault::BitFlip => "bit-flip",
        Fault::DuplicatedRead => "duplicated-read",
    };
    format!("{when} {fault} {}", if rule.persistent { "always" } else { "once" })
}

/// Parses a line word by word.
pub(super) struct Words<'a> {
    words: std::str::SplitWhitespace<'a>,
    /// The last word taken and its number, from 1.
    last: &'a str,
    count: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Words { words: line.split_whitespace(), last: "", count: 0 }
    }

    pub(super) fn unexpected(&self, expected: &'static str) -> ParseLogError {
        ParseLogError { line: 1, word: self.count, expected, found: self.last.to_owned() }
    }

    pub(super) fn word(&mut self, expected: &'static str) -> Result<&'a str, ParseLogError> {
        self.count += 1;
        self.last = self.words.next().unwrap_or_default();
        if self.last.is_empty() { Err(self.unexpected(expected)) } else { Ok(self.last) }
    }

    pub(super) fn end(&mut self) -> Result<(), ParseLogError> {
        match self.word("") {
            Ok(_) => Err(self.unexpected("the end of the line")),
            Err(_) => Ok(()),
        }
    }

    pub(super) fn number(&mut self) -> Result<u64, ParseLogError> {
        let word = self.word("a number")?;
        word.parse().map_err(|_| self.unexpected("a number"))
    }

    pub(super) fn small(&mut self) -> Result<u8, ParseLogError> {
        let word = self.word("a number under 8")?;
        word.parse().ok().filter(|&bit| bit < 8).ok_or_else(|| self.unexpected("a number under 8"))
    }

    pub(super) fn optional_number(&mut self) -> Result<Option<u64>, ParseLogError> {
        match self.word("a number or none")? {
            "none" => Ok(None),
            word => Ok(Some(word.parse().map_err(|_| self.unexpected("a number or none"))?)),
        }
    }

    pub(super) fn path(&mut self) -> Result<PathBuf, ParseLogError> {
        let word = self.word("a path")?;
        if word == "%" {
            return Ok(PathBuf::new());
        }
        let mut bytes = Vec::with_capacity(word.len());
        let mut rest = word.as_bytes();
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            if byte != b'%' {
                bytes.push(byte);
                continue;
            }
            let decoded = rest.split_at_checked(2).and_then(|(digits, tail)| Some((hex(digits)?, tail)));
            let (decoded, tail) = decoded.ok_or_else(|| self.unexpected("two hex digits after %"))?;
            bytes.push(decoded);
            rest = tail;
        }
        debug_assert!(bytes.len() <= word.len(), "{word} stands for {} bytes", bytes.len());
        Ok(PathBuf::from(OsString::from_vec(bytes)))
    }

    pub(super) fn bytes(&mut self) -> Result<Arc<[u8]>, ParseLogError> {
        let word = self.word("bytes in hex")?;
        if word == "-" {
            return Ok(Arc::default());
        }
        let decoded: Option<Vec<u8>> = word.as_bytes().chunks(2).map(hex).collect();
        debug_assert!(
            decoded.as_ref().is_none_or(|bytes| 2 * bytes.len() == word.len()),
            "{} digits are not two for each byte",
            word.len()
        );
        decoded.map(Arc::from).ok_or_else(|| self.unexpected("bytes in hex"))
    }

    pub(super) fn options(&mut self) -> Result<OpenOptions, ParseLogError> {
        let access = match self.word("r or rw")? {
            "r" => Access::Read,
            "rw" => Access::ReadWrite,
            _ => return Err(self.unexpected("r or rw")),
        };
        let create = match self.word("never, if-missing or new")? {
            "never" => Create::Never,
            "if-missing" => Create::IfMissing,
            "new" => Create::New,
            _ => return Err(self.unexpected("never, if-missing or new")),
        };
        let direct = self.either("direct", "buffered", "direct or buffered")?;
        Ok(OpenOptions { access, create, direct })
    }

    pub(super) fn image(&mut self) -> Result<CrashImage, ParseLogError> {
        const EXPECTED: &str = "none, all or random:<seed>";
        match self.word(EXPECTED)? {
            "none" => Ok(CrashImage::None),
            "all" => Ok(CrashImage::All),
            word => {
                let seed = word.strip_prefix("random:").and_then(|seed| seed.parse().ok());
                Ok(CrashImage::Random(seed.ok_or_else(|| self.unexpected(EXPECTED))?))
            }
        }
    }

    pub(super) fn rule(&mut self) -> Result<Rule, ParseLogError> {
        const WHEN: &str = "an index or <operation>:<count>";
        let word = self.word(WHEN)?;
        let when = match word.split_once(':') {
            None => word.parse().ok().map(When::Index),
            Some((name, n)) => {
                let kind = OPERATIONS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
                kind.zip(n.parse().ok()).map(|(kind, n)| When::Nth(kind, n))
            }
        };
        let when = when.ok_or_else(|| self.unexpected(WHEN))?;
        let fault = match self.word("a fault")? {
            "io" => Fault::Io,
            "full" => Fault::Full,
            "interrupted" => Fault::Interrupted,
            "short" => Fault::Short,
            "lost" => Fault::Lost,
            "zero-tail" => Fault::ZeroTail,
            "bit-flip" => Fault::BitFlip,
            "duplicated-read" => Fault::DuplicatedRead,
            word => {
                let by = word.strip_prefix("misdirected:").and_then(|by| by.parse().ok());
                Fault::Misdirected { by: by.ok_or_else(|| self.unexpected("a fault"))? }
            }
        };
        let persistent = self.either("always", "once", "once or always")?;
        Ok(Rule { when, fault, persistent })
    }

    fn either(&mut self, yes: &str, no: &str, expected: &'static str) -> Result<bool, ParseLogError> {
        let word = self.word(expected)?;
        if word == yes || word == no { Ok(word == yes) } else { Err(self.unexpected(expected)) }
    }
}

/// Parses two hex digits.
fn hex(digits: &[u8]) -> Option<u8> {
    let [high, low] = digits else { return None };
    let value = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(value(*high)? << 4 | value(*low)?).ok()
}
