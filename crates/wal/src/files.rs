//! The file names in a log's directory.
//!
//! ```text
//!   000007.wal     a segment: its number, at least six digits
//!   000005.free    a released segment, kept to be written again under a new name
//!   000007.wal.tmp a segment being copied when it was cut off; removed when the log is opened
//! ```
//!
//! Files with other names are ignored.

use std::path::{Path, PathBuf};

use cairn_vfs::Fs;

use crate::Result;

/// The content of a log's directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    /// Ascending by number.
    pub(crate) segments: Vec<(u32, PathBuf)>,
    pub(crate) free: Vec<(u32, PathBuf)>,
    /// Leftover temporary files.
    pub(crate) stray: Vec<PathBuf>,
}

impl Listing {
    /// Reads the directory. A missing directory counts as empty.
    pub(crate) fn read(fs: &dyn Fs, dir: &Path) -> Result<Listing> {
        let mut listing = Listing::default();
        if !fs.exists(dir)? {
            return Ok(listing);
        }
        for path in fs.read_dir(dir)? {
            if let Some(number) = number_of(&path, "wal") {
                listing.segments.push((number, path));
            } else if let Some(number) = number_of(&path, "free") {
                listing.free.push((number, path));
            } else if is_log_leftover(&path) {
                listing.stray.push(path);
            }
        }
        // Sort by number, because names with more than six digits do not sort as text.
        listing.segments.sort_unstable();
        listing.free.sort_unstable();
        Ok(listing)
    }

    /// Returns the highest number used in any name, or 0.
    pub(crate) fn highest(&self) -> u32 {
        self.segments.iter().chain(&self.free).map(|(number, _)| *number).max().unwrap_or(0)
    }
}

pub(crate) fn segment_path(dir: &Path, number: u32) -> PathBuf {
    let path = dir.join(format!("{number:06}.wal"));
    debug_assert!(number == 0 || number_of(&path, "wal") == Some(number), "{} is no segment", path.display());
    path
}

pub(crate) fn free_path(dir: &Path, number: u32) -> PathBuf {
    let path = dir.join(format!("{number:06}.free"));
    debug_assert!(number_of(&path, "free") == Some(number), "{} is not a free file", path.display());
    path
}

/// Returns true if the path is named like a file of a log: a segment, or a released one.
pub fn is_log_file(path: &Path) -> bool {
    number_of(path, "wal").is_some() || number_of(path, "free").is_some()
}

/// Returns true if the path is named like an interrupted copy of a segment. The segment itself
/// still exists or was released, so nothing is lost with such a file, and on its own it does not
/// indicate a log. Code that removes a log's files removes these as well.
pub fn is_log_leftover(path: &Path) -> bool {
    number_of(path, "wal.tmp").is_some()
}

/// Parses the number in a file name. Accepts only the exact spelling that this module writes.
fn number_of(path: &Path, extension: &str) -> Option<u32> {
    let stem = path.file_name()?.to_str()?.strip_suffix(extension)?.strip_suffix('.')?;
    let number: u32 = stem.parse().ok()?;
    (number > 0 && format!("{number:06}") == stem).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the names of this module are recognised, ordered by number, and no others are.
    #[test]
    fn names() {
        let fs = cairn_vfs::MemFs::new();
        let dir = Path::new("log");
        assert_eq!(Listing::read(&fs, dir).unwrap().highest(), 0);
        fs.create_dir_all(dir).unwrap();
        let others =
            ["000000.wal", "00001.wal", "0000001.wal", "+00001.wal", "x.wal.tmp", "wal", "4294967296.wal"];
        let stray = dir.join("000001.wal.tmp");
        let ours = [segment_path(dir, 1_234_567), segment_path(dir, 999_999), free_path(dir, 3), stray];
        for path in others.iter().map(|name| dir.join(name)).chain(ours.clone()) {
            fs.open(&path, cairn_vfs::OpenOptions::create()).unwrap();
        }
        let listing = Listing::read(&fs, dir).unwrap();
        assert_eq!(listing.segments, [(999_999, ours[1].clone()), (1_234_567, ours[0].clone())]);
        assert_eq!((listing.free, listing.segments[1].0), (vec![(3, ours[2].clone())], 1_234_567));
        assert_eq!(listing.stray, ours[3..]);
        let paths: Vec<PathBuf> = fs.read_dir(dir).unwrap();
        let (mut files, mut leftovers) = (Vec::new(), Vec::new());
        files.extend(paths.iter().filter(|path| is_log_file(path)).cloned());
        leftovers.extend(paths.iter().filter(|path| is_log_leftover(path)).cloned());
        files.sort();
        let mut expected = ours[..3].to_vec();
        expected.sort();
        assert_eq!((files, leftovers), (expected, ours[3..].to_vec()));
    }
}
