//! The names of a store's files.

use std::path::{Path, PathBuf};

use cairn_vfs::Fs;

use crate::Result;

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
    with_suffix(path, &format!(".{number:0DIGITS$}"))
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

/// Temporary files of deltas that lost their machine while they were built. The next build of the same number would
/// take them over, but a compaction or a new base may make that number one that never comes again.
pub(super) fn strays(fs: &dyn Fs, path: &Path) -> Result<Vec<PathBuf>> {
    let is_stray = |suffix: &str| {
        let number_of = suffix.strip_suffix(".tmp").or_else(|| suffix.strip_suffix(".spill"));
        number_of.and_then(number).is_some()
    };
    let files = siblings(fs, path)?.into_iter();
    Ok(files.filter(|(_, suffix)| is_stray(suffix)).map(|(file, _)| file).collect())
}

/// The number that a delta's suffix is.
fn number(suffix: &str) -> Option<u64> {
    let is_number = suffix.len() >= DIGITS && suffix.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| suffix.parse().ok())?
}

/// The files beside `path` whose names begin with its own and a dot, and what follows the dot.
fn siblings(fs: &dyn Fs, path: &Path) -> Result<Vec<(PathBuf, String)>> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let suffix = |file: &Path| {
        let (file, path) = (file.file_name()?.to_str()?, path.file_name()?.to_str()?);
        file.strip_prefix(path)?.strip_prefix('.').map(str::to_owned)
    };
    let files = fs.read_dir(parent)?.into_iter();
    Ok(files.filter_map(|file| suffix(&file).map(|suffix| (file, suffix))).collect())
}
