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
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut numbers: Vec<u64> = fs
        .read_dir(parent)?
        .iter()
        .filter_map(|file| {
            let suffix =
                file.file_name()?.to_str()?.strip_prefix(path.file_name()?.to_str()?)?.strip_prefix('.')?;
            let is_number = suffix.len() >= DIGITS && suffix.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| suffix.parse().ok())?
        })
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}
