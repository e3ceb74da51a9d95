//! The files of a store, without lock files and logs.

use std::path::{Path, PathBuf};

use cairn_vfs::{Fs, StdFs};

use crate::core::error::Result;

/// Returns the files directly in `dir`, without lock files and logs, which hold no data.
pub fn data_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let fs = StdFs::new();
    let mut files = Vec::new();
    for path in fs.read_dir(dir)? {
        if !fs.metadata(&path)?.is_dir && !is_lock_file(&path) {
            files.push(path);
        }
    }
    Ok(files)
}

/// Returns the total length of those files.
pub fn data_bytes(dir: &Path) -> Result<u64> {
    let fs = StdFs::new();
    data_files(dir)?.iter().map(|path| Ok(fs.metadata(path)?.len)).sum()
}

fn is_lock_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // LMDB's reader table; RocksDB's lock file and info log.
    matches!(name, "lock.mdb" | "LOCK") || name.starts_with("LOG")
}
