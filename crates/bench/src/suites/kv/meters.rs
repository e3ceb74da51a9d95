//! The files of a turn: their length, and their pages in memory.

use std::path::Path;

use cairn_vfs::{Advice, Fs, OpenOptions, StdFs};

use crate::core::error::Result;

/// Returns the total length of all files in a directory tree.
pub(super) fn tree_bytes(dir: &Path) -> Result<u64> {
    let fs = StdFs::new();
    let mut bytes = 0;
    for path in fs.read_dir(dir)? {
        // Background threads may remove files at any time.
        let Ok(metadata) = fs.metadata(&path) else { continue };
        // BOUND: the nesting depth of the stores' directories, which is three.
        bytes += if metadata.is_dir { tree_bytes(&path)? } else { metadata.len };
    }
    Ok(bytes)
}

/// Asks the kernel to drop its cached pages of all files in a directory tree. Mapped pages stay.
pub(super) fn drop_from_memory(dir: &Path) -> Result<()> {
    let fs = StdFs::new();
    for path in fs.read_dir(dir)? {
        let Ok(metadata) = fs.metadata(&path) else { continue };
        if metadata.is_dir {
            drop_from_memory(&path)?;
        } else if let Ok(file) = fs.open(&path, OpenOptions::read()) {
            // Only clean pages can be dropped.
            file.sync_data()?;
            file.advise(0, file.len()?, Advice::DontNeed);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::procfs::Io;
    use crate::core::scratch::Scratch;

    /// Goal: both meters see writes. Method: a file of 8 MiB in a subdirectory.
    #[test]
    fn writes_are_seen() {
        let scratch = Scratch::in_dir(&std::env::current_dir().unwrap(), "meters").unwrap();
        let before = Io::now().unwrap();
        let path = scratch.dir("below").unwrap().join("file");
        let file = StdFs::new().open(&path, OpenOptions::create_new()).unwrap();
        file.write_all_at(&vec![1; 8 << 20], 0).unwrap();
        let after = Io::now().unwrap();
        assert!(after.write_call_bytes - before.write_call_bytes >= 8 << 20);
        assert!(after.written_bytes - before.written_bytes >= 8 << 20);
        assert_eq!(tree_bytes(scratch.path()).unwrap(), 8 << 20);
    }
}
