//! The names of the files that belong to a table.
//!
//! ```text
//! words.cairn                         a table, or the base of a store
//! words.cairn.delta.000004            a delta over it
//! words.cairn.manifest                the manifest: lists the generations; from the first delta on
//! words.cairn.lock                    locked by the writer of the store
//! words.cairn.tmp                     a build in progress, until it is renamed (see `AtomicFile`)
//! words.cairn.cairn-spill             exists briefly: records that exceed the memory of a build
//! words.cairn.delta.000005.tmp        the same two files for the build of a delta
//! ```
//! These files lie in the directory of the table itself, not in that of a symbolic link to it: see
//! [`resolve_links`].

use std::path::{Path, PathBuf};

use cairn_vfs::{ErrorKind, Fs};

use crate::Result;

/// Separates the name of the store from the number of a delta. Six digits alone could be a date
/// that a user appended to the name of a copy.
const DELTA: &str = ".delta.";
/// Minimum number of digits of a generation number in a file name. Larger numbers use more.
const DIGITS: usize = 6;
const MANIFEST: &str = ".manifest";
const LOCK: &str = ".lock";
const BUILDING: &str = ".tmp";
/// A build removes any file with this name, so the name is one that no user is likely to choose.
const SPILL: &str = ".cairn-spill";

/// Resolves the symbolic links of `path` and returns the path of the store itself.
///
/// A build replaces the target of a link. If deltas and the lock were named after the link, a
/// process that opens the store by another name would not see them. All names in this module are
/// therefore derived from the resolved path.
pub(crate) fn resolve_links(fs: &dyn Fs, path: &Path) -> Result<PathBuf> {
    // `follow` returns `None` for a link to an open file that may have no name, such as
    // `/dev/stdout`. No files can exist beside such a file.
    Ok(fs.follow(path)?.unwrap_or_else(|| path.to_owned()))
}

/// Returns the path of delta `number` of the store at `path`.
pub(crate) fn delta(path: &Path, number: u64) -> PathBuf {
    let suffix = delta_suffix(number);
    debug_assert_eq!(self::number(&suffix), Some(number), "a delta is found by its name");
    with_suffix(path, &suffix)
}

/// Returns the path of the manifest of the store at `path`.
pub(crate) fn manifest(path: &Path) -> PathBuf {
    with_suffix(path, MANIFEST)
}

/// Returns the path of the file that writers of the store at `path` lock.
pub(crate) fn lock(path: &Path) -> PathBuf {
    with_suffix(path, LOCK)
}

/// Returns the path of the file that is renamed to `path` when its build is complete.
pub(crate) fn building(path: &Path) -> PathBuf {
    with_suffix(path, BUILDING)
}

/// Returns the path of the spill file of a build of `path`.
pub(crate) fn spill(path: &Path) -> PathBuf {
    with_suffix(path, SPILL)
}

/// Returns the numbers of the existing delta files of the store at `path`, in ascending order.
pub(crate) fn deltas(fs: &dyn Fs, path: &Path) -> Result<Vec<u64>> {
    let files = siblings(fs, path)?;
    let mut numbers: Vec<u64> = files.iter().filter_map(|(_, suffix)| number(suffix)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Returns the temporary files of delta builds of the store at `path`, both those in use and those
/// left by an interrupted build.
pub(crate) fn delta_builds(fs: &dyn Fs, path: &Path) -> Result<Vec<PathBuf>> {
    let is_build = |suffix: &str| {
        let delta = suffix.strip_suffix(BUILDING).or_else(|| suffix.strip_suffix(SPILL));
        delta.and_then(number).is_some()
    };
    let files = siblings(fs, path)?.into_iter();
    Ok(files.filter(|(_, suffix)| is_build(suffix)).map(|(file, _)| file).collect())
}

/// Removes `file`. A file that does not exist is not an error.
pub(crate) fn remove(fs: &dyn Fs, file: &Path) -> Result<()> {
    match fs.remove(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns `path` with `suffix` appended to its file name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn delta_suffix(number: u64) -> String {
    let suffix = format!("{DELTA}{number:0DIGITS$}");
    debug_assert!(suffix.len() >= DELTA.len() + DIGITS);
    suffix
}

/// Parses the number of a delta from the suffix of its file name. Returns `None` unless the number
/// is spelled exactly as [`delta_suffix`] spells it.
fn number(suffix: &str) -> Option<u64> {
    let number = suffix.strip_prefix(DELTA)?.parse().ok()?;
    (delta_suffix(number) == suffix).then_some(number)
}

/// Returns the files in the directory of `path` whose names begin with the file name of `path`,
/// each with the rest of its name.
fn siblings(fs: &dyn Fs, path: &Path) -> Result<Vec<(PathBuf, String)>> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // The name of the store need not be UTF-8, but our suffixes are.
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let suffix = |file: &Path| {
        let suffix = file.file_name()?.as_encoded_bytes().strip_prefix(name)?;
        std::str::from_utf8(suffix).ok().map(str::to_owned)
    };
    let files = fs.read_dir(parent)?.into_iter();
    Ok(files.filter_map(|file| suffix(&file).map(|suffix| (file, suffix))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only the exact spelling of a delta name is recognized. Method: numbers of all lengths,
    /// and strings that nearly match.
    #[test]
    fn delta_names_round_trip() {
        for number_of in [0, 4, 999_999, 1_000_000, u64::MAX] {
            assert_eq!(number(&delta_suffix(number_of)), Some(number_of));
        }
        let others = [
            "",
            ".000004",
            ".20240101",
            ".delta.4",
            ".delta.0000004",
            ".delta.+00004",
            ".delta.00000a",
            ".delta.",
            ".delta.18446744073709551616",
            "delta.000004",
            ".delta.000004.tmp",
            ".DELTA.000004",
            ".delta.000004 ",
        ];
        for suffix in others {
            assert_eq!(number(suffix), None, "{suffix}");
        }
        assert_eq!(delta(Path::new("a/words.cairn"), 4), Path::new("a/words.cairn.delta.000004"));
    }
}
