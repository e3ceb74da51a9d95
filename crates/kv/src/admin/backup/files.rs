//! The files of a backup directory: their names, and the removal of those that are no longer
//! needed.

use std::path::{Path, PathBuf};

use crate::admin::transfer::Content;
use crate::version::FileName;

/// Returns the path of a backup's record.
pub(super) fn backup_path(dir: &Path, id: u64) -> PathBuf {
    let path = dir.join(format!("{id:06}.backup"));
    debug_assert!(
        FileName::parse(&path).is_none() && !is_shared(&path),
        "{} would be removed as a file that no backup refers to",
        path.display()
    );
    path
}

/// Returns the number of a backup record, or `None` for any name that [`backup_path`] does not
/// produce.
pub(super) fn backup_number(path: &Path) -> Option<u64> {
    let id = path.file_name()?.to_str()?.strip_suffix(".backup")?.parse().ok()?;
    (backup_path(Path::new(""), id).as_os_str() == path.file_name()?).then_some(id)
}

/// Returns the path of a table or blob file shared by backups. The name contains the checksum
/// because a store that was restored and then written to can have different content under the same
/// number.
pub(super) fn shared_path(dir: &Path, name: FileName, content: Content) -> PathBuf {
    debug_assert!(matches!(name, FileName::Table(_) | FileName::Blob(_)), "{name} is not shared");
    let (number, ending) = match name {
        FileName::Blob(number) => (number, "blob"),
        other => (other.number().unwrap_or(0), "table"),
    };
    let path = dir.join(format!("{number:06}-{:016x}.{ending}", content.checksum));
    debug_assert!(is_shared(&path), "{} would never be removed", path.display());
    debug_assert!(FileName::parse(&path).is_none(), "{} would be removed as unfinished", path.display());
    path
}

/// Returns true for a name that [`shared_path`] produces.
pub(super) fn is_shared(path: &Path) -> bool {
    let stem = path.file_name().and_then(|name| name.to_str()).and_then(|name| {
        name.strip_suffix(".table")
            .or_else(|| name.strip_suffix(".blob"))
            .and_then(|stem| stem.split_once('-'))
    });
    stem.is_some_and(|(number, checksum)| {
        let is_number = number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number && checksum.len() == 16 && checksum.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: our names are recognized and no others are.
    #[test]
    fn names() {
        let content = Content { bytes: 1, checksum: 0xab };
        for name in [FileName::Table(7), FileName::Blob(1_234_567)] {
            let path = shared_path(Path::new("/b"), name, content);
            assert!(is_shared(&path) && backup_number(&path).is_none() && FileName::parse(&path).is_none());
        }
        for other in ["000007.table", "000007-ab.table", "7-00000000000000ab.blob", "LOCK", "a-b.table"] {
            assert!(!is_shared(Path::new(other)), "{other}");
        }
        assert_eq!(backup_number(&backup_path(Path::new("/b"), 12)), Some(12));
        for other in ["12.backup", "000012.backup.tmp", "+00012.backup", "0000012.backup"] {
            assert_eq!(backup_number(Path::new(other)), None, "{other}");
        }
    }
}
