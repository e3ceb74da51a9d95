//! Evicts files from the page cache, and verifies that they are cold.

use std::path::Path;

use cairn_vfs::{Advice, Fs, Load, OpenOptions, StdFs};

use crate::core::data_files::data_files;
use crate::core::error::{Error, Result};

/// The fraction of a store that may remain in memory for it to count as cold.
const COLD_SHARE: f64 = 0.01;

/// Returns the bytes of a file that are in memory (`mincore`).
pub fn resident_bytes(path: &Path) -> Result<u64> {
    let file = StdFs::new().open(path, OpenOptions::read())?;
    if file.is_empty()? {
        return Ok(0);
    }
    let map = file.map()?;
    Ok(map.load(0..map.len(), Load::None).resident_bytes as u64)
}

/// Drops the files in `dir` from the page cache.
///
/// Dirty pages are written first, because the kernel does not drop them. Errors: [`Error::Invalid`]
/// if more than a percent remains, because another mapping holds the files or the file system is in
/// memory. Reads would then not be cold.
pub fn make_cold(dir: &Path) -> Result<()> {
    let fs = StdFs::new();
    let (mut total, mut resident) = (0, 0);
    for path in data_files(dir)? {
        let file = fs.open(&path, OpenOptions::write())?;
        file.sync_data()?;
        file.advise(0, file.len()?, Advice::DontNeed);
        total += file.len()?;
        resident += resident_bytes(&path)?;
    }
    if resident as f64 > COLD_SHARE * total as f64 {
        return Err(Error::invalid(format!(
            "{} cannot be made cold: {resident} of {total} bytes stay in memory",
            dir.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::scratch::Scratch;

    /// Goal: a written file is warm and is cold after `make_cold`; a mapped file, or a file system
    /// in memory, makes `make_cold` fail.
    #[test]
    fn files_become_cold() {
        let scratch = Scratch::in_dir(&std::env::current_dir().unwrap(), "cold-test").unwrap();
        let path = scratch.path().join("file");
        let file = StdFs::new().open(&path, OpenOptions::create_new()).unwrap();
        file.write_all_at(&vec![7; 1 << 20], 0).unwrap();
        assert_eq!(resident_bytes(&path).unwrap(), 1 << 20);
        match make_cold(scratch.path()) {
            Ok(()) => assert!(resident_bytes(&path).unwrap() <= 10_486),
            Err(error) => assert!(error.to_string().contains("stay in memory"), "{error}"),
        }
        let map = file.map().unwrap();
        assert_eq!(map.iter().map(|&byte| u64::from(byte)).sum::<u64>(), 7 << 20);
        assert!(make_cold(scratch.path()).unwrap_err().to_string().contains("stay in memory"));
    }
}
