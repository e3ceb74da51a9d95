//! Names of the files that the version set manages.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::file::FileNumber;

/// A file of the store's directory.
///
/// ```text
/// 000042.table   000043.blob   MANIFEST-000044   CURRENT   CURRENT.tmp
/// ```
///
/// Numbers have at least six digits. Files with any other spelling are foreign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum FileName {
    /// A sorted table.
    Table(FileNumber),
    /// Values stored apart from their keys.
    Blob(FileNumber),
    /// A log of version edits.
    Manifest(FileNumber),
    /// Names the valid manifest.
    Current,
    /// `CURRENT` while it is being replaced.
    CurrentTemporary,
}

impl FileName {
    /// Parses the last component of `path`. Returns `None` for foreign files.
    pub(crate) fn parse(path: &Path) -> Option<FileName> {
        let text = path.file_name()?.to_str()?;
        let name = match text.split_once('.') {
            None if text == "CURRENT" => FileName::Current,
            None => FileName::Manifest(text.strip_prefix("MANIFEST-")?.parse().ok()?),
            Some(("CURRENT", "tmp")) => FileName::CurrentTemporary,
            Some((number, "table")) => FileName::Table(number.parse().ok()?),
            Some((number, "blob")) => FileName::Blob(number.parse().ok()?),
            Some(_) => return None,
        };
        // Parsing a number is lenient (`+7`, missing zeros); only the canonical spelling is
        // accepted.
        (name.to_string() == text).then_some(name)
    }

    /// Returns the path in the store's directory.
    pub(crate) fn path(self, dir: &Path) -> PathBuf {
        let path = dir.join(self.to_string());
        debug_assert_eq!(FileName::parse(&path), Some(self), "a name that would be foreign");
        path
    }

    /// Returns the number in the name.
    pub(crate) fn number(self) -> Option<FileNumber> {
        match self {
            FileName::Table(number) | FileName::Blob(number) | FileName::Manifest(number) => Some(number),
            FileName::Current | FileName::CurrentTemporary => None,
        }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileName::Table(number) => write!(f, "{number:06}.table"),
            FileName::Blob(number) => write!(f, "{number:06}.blob"),
            FileName::Manifest(number) => write!(f, "MANIFEST-{number:06}"),
            FileName::Current => f.write_str("CURRENT"),
            FileName::CurrentTemporary => f.write_str("CURRENT.tmp"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: names survive the round trip, and no others are accepted.
    /// Method: both directions, and similar names.
    #[test]
    fn names_round_trip() {
        let numbers = [0, 1, 42, 999_999, 1_000_000, u64::MAX];
        let numbered = [FileName::Table, FileName::Blob, FileName::Manifest];
        let mut names: Vec<FileName> = numbers.iter().flat_map(|&n| numbered.map(|make| make(n))).collect();
        names.extend([FileName::Current, FileName::CurrentTemporary]);
        for name in names {
            assert_eq!(FileName::parse(&name.path(Path::new("some/dir"))), Some(name), "{name}");
        }
        for other in
            ["42.table", "+00042.table", "000042.tables", "000042", "MANIFEST-1", "MANIFEST-", "current"]
        {
            assert_eq!(FileName::parse(Path::new(other)), None, "{other}");
        }
        for other in ["000042.table.tmp", "CURRENT.old", "LOCK", "0000042.blob", "", "MANIFEST-000001.tmp"] {
            assert_eq!(FileName::parse(Path::new(other)), None, "{other}");
        }
    }
}
