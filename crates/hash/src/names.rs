//! The names of the files beside a table.
//!
//! ```text
//! words.cairn                         a table, or the base of a store
//! words.cairn.delta.000004            a delta over it
//! words.cairn.manifest                which generations there are, once there was a delta
//! words.cairn.lock                    locked by whoever writes the store
//! words.cairn.tmp                     what is being built, until it has its name (see `AtomicFile`)
//! words.cairn.cairn-spill             for a moment, what did not fit the memory of a build
//! words.cairn.delta.000005.tmp        and the same two of a delta
//! ```
//! They stand beside the table itself, not beside a symbolic link that leads to it: see
//! [`followed`].

use std::path::{Path, PathBuf};

use cairn_vfs::{ErrorKind, Fs};

use crate::Result;

/// Stands between the store's name and the number of a delta. Six digits alone could be a date that
/// somebody put behind the name of a copy.
const DELTA: &str = ".delta.";
/// Digits of a generation's number in its file's name; larger numbers just take more.
const DIGITS: usize = 6;
const MANIFEST: &str = ".manifest";
const LOCK: &str = ".lock";
const BUILDING: &str = ".tmp";
/// A build removes what has this name, so it is one that nobody chooses.
const SPILL: &str = ".cairn-spill";

/// Where the store that is called `path` stands: the end of the symbolic links there.
///
/// A build replaces what a link leads to, so deltas and the lock beside the link would be those of
/// another store for whoever comes by another name. The names in this module are made from what
/// this says.
pub(crate) fn followed(fs: &dyn Fs, path: &Path) -> Result<PathBuf> {
    // A link to a file that somebody has open, which may have no name, has nothing beside it.
    Ok(fs.follow(path)?.unwrap_or_else(|| path.to_owned()))
}

/// The file of delta `number` of the store at `path`.
pub(crate) fn delta(path: &Path, number: u64) -> PathBuf {
    with_suffix(path, &delta_suffix(number))
}

/// The file that lists the generations of the store at `path`.
pub(crate) fn manifest(path: &Path) -> PathBuf {
    with_suffix(path, MANIFEST)
}

/// The file that writers of the store at `path` lock.
pub(crate) fn lock(path: &Path) -> PathBuf {
    with_suffix(path, LOCK)
}

/// The file that becomes `path` when its build is done.
pub(crate) fn building(path: &Path) -> PathBuf {
    with_suffix(path, BUILDING)
}

/// The temporary file of a build of `path`.
pub(crate) fn spill(path: &Path) -> PathBuf {
    with_suffix(path, SPILL)
}

/// The numbers of the delta files of the store at `path` that are there, ascending.
pub(crate) fn deltas(fs: &dyn Fs, path: &Path) -> Result<Vec<u64>> {
    let files = siblings(fs, path)?;
    let mut numbers: Vec<u64> = files.iter().filter_map(|(_, suffix)| number(suffix)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The files that builds of deltas of the store at `path` work on, or have left behind.
pub(crate) fn delta_builds(fs: &dyn Fs, path: &Path) -> Result<Vec<PathBuf>> {
    let is_build = |suffix: &str| {
        let delta = suffix.strip_suffix(BUILDING).or_else(|| suffix.strip_suffix(SPILL));
        delta.and_then(number).is_some()
    };
    let files = siblings(fs, path)?.into_iter();
    Ok(files.filter(|(_, suffix)| is_build(suffix)).map(|(file, _)| file).collect())
}

/// Removes a name that may be gone already.
pub(crate) fn remove(fs: &dyn Fs, file: &Path) -> Result<()> {
    match fs.remove(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// `path` with `suffix` behind its name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn delta_suffix(number: u64) -> String {
    format!("{DELTA}{number:0DIGITS$}")
}

/// The number of a delta whose file has the store's name and this suffix, which must be spelled as
/// we spell it.
fn number(suffix: &str) -> Option<u64> {
    let number = suffix.strip_prefix(DELTA)?.parse().ok()?;
    (delta_suffix(number) == suffix).then_some(number)
}

/// The files beside `path` whose names begin with its own, and what follows it.
fn siblings(fs: &dyn Fs, path: &Path) -> Result<Vec<(PathBuf, String)>> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Names need not be UTF-8; what we put behind them is.
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

    /// Goal: only names that we give are deltas. Method: numbers of all lengths, and everything
    /// near them.
    #[test]
    fn names_of_deltas() {
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
