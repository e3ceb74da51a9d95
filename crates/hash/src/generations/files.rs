//! The names of a store's files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::Fs;

use crate::Result;
use crate::table::{SPILL_SUFFIX, remove_leftovers};

/// Stands between the store's name and the number of a delta. Six digits alone could be a date that somebody put
/// behind the name of a copy.
const DELTA: &str = ".delta.";
/// Digits of a generation's number in its file's name; larger numbers just take more.
const DIGITS: usize = 6;

/// `path` with `suffix` behind its name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// The file of delta `number` of the store at `path`.
pub(super) fn delta(path: &Path, number: u64) -> PathBuf {
    with_suffix(path, &delta_suffix(number))
}

fn delta_suffix(number: u64) -> String {
    format!("{DELTA}{number:0DIGITS$}")
}

/// The file that writers of the store lock.
pub(super) fn lock(path: &Path) -> PathBuf {
    with_suffix(path, ".lock")
}

/// The numbers of the delta files that are there, ascending.
pub(super) fn numbers(fs: &dyn Fs, path: &Path) -> Result<Vec<u64>> {
    let files = siblings(fs, path)?;
    let mut numbers: Vec<u64> = files.iter().filter_map(|(_, suffix)| number(suffix)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Removes temporary files of builds that lost their machine: those of deltas, whose numbers may never come again
/// after a compaction or a new base, and those of a base. The caller holds the store's lock, so no delta is being
/// built; a base may be, by a plain [`crate::table::Builder`].
pub(super) fn remove_strays(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    for (file, suffix) in siblings(&**fs, path)? {
        let number_of = suffix.strip_suffix(".tmp").or_else(|| suffix.strip_suffix(SPILL_SUFFIX));
        if number_of.and_then(number).is_some() {
            super::remove(fs, &file)?;
        }
    }
    remove_leftovers(fs, path)
}

/// The number of a delta whose file has the store's name and this suffix, which must be spelled as we spell it.
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

    /// Goal: only names that we give are deltas. Method: numbers of all lengths, and everything near them.
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
