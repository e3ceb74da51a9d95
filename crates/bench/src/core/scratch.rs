//! Temporary directories of a run, which are removed afterwards.

use std::path::{Path, PathBuf};
use std::process;

use cairn_vfs::{Fs, Rng, StdFs, SystemRng};

use crate::core::error::{Error, Result};

/// A directory that is removed with its content when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates a directory in `parent`, which is created if it does not exist. The name contains
    /// `label` and the id of this process.
    pub fn in_dir(parent: &Path, label: &str) -> Result<Scratch> {
        let mut rng = SystemRng::new().map_err(|error| Error::invalid(format!("no randomness: {error}")))?;
        let path = parent.join(format!("cairn-{label}-{}-{:016x}", process::id(), rng.next_u64()));
        StdFs::new().create_dir_all(&path)?;
        Ok(Scratch { path })
    }

    /// Creates a directory in the system's directory for temporary files.
    pub fn temporary(label: &str) -> Result<Scratch> {
        Scratch::in_dir(&std::env::temp_dir(), label)
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a directory inside, which is created if it does not exist.
    pub fn dir(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        StdFs::new().create_dir_all(&path)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Files that cannot be removed remain visible to the user; there is no way to report the
        // error.
        let _ = remove_tree(&self.path);
    }
}

/// Removes the directories with this label in `parent` whose processes no longer exist, because a
/// killed process does not remove its own. Directories of running processes stay. All of them stay
/// if the system does not show which processes run.
pub fn sweep(parent: &Path, label: &str) -> Result<()> {
    let (fs, processes) = (StdFs::new(), Path::new("/proc"));
    if !fs.exists(&processes.join("self"))? || !fs.exists(parent)? {
        return Ok(());
    }
    for path in fs.read_dir(parent)? {
        let Some(process) = path.file_name().and_then(|name| owner(name.to_str()?, label)) else { continue };
        if !fs.exists(&processes.join(process.to_string()))? {
            remove_tree(&path)?;
        }
    }
    Ok(())
}

/// Returns the id of the process from a name that [`Scratch::in_dir`] created.
fn owner(name: &str, label: &str) -> Option<u32> {
    let (process, random) =
        name.strip_prefix("cairn-")?.strip_prefix(label)?.strip_prefix('-')?.split_once('-')?;
    (random.len() == 16 && random.bytes().all(|c| c.is_ascii_hexdigit())).then(|| process.parse().ok())?
}

/// Removes a directory and its content. Succeeds if it does not exist.
pub fn remove_tree(path: &Path) -> Result<()> {
    let fs = StdFs::new();
    if !fs.exists(path)? {
        return Ok(());
    }
    for entry in fs.read_dir(path)? {
        if fs.metadata(&entry)?.is_dir {
            // BOUND: the depth of the stores' directories, which is two.
            remove_tree(&entry)?;
        } else {
            fs.remove(&entry)?;
        }
    }
    std::fs::remove_dir(path)
        .map_err(|source| cairn_vfs::Error::new(cairn_vfs::Operation::Remove, path, source).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a scratch directory is removed with its files and directories, and two have different
    /// names.
    #[test]
    fn removes_itself() {
        let (one, two) = (Scratch::temporary("test").unwrap(), Scratch::temporary("test").unwrap());
        assert_ne!(one.path(), two.path());
        let inner = one.dir("a").unwrap();
        let fs = StdFs::new();
        fs.open(&inner.join("file"), cairn_vfs::OpenOptions::create_new()).unwrap();
        let path = one.path().to_owned();
        drop(one);
        assert!(!fs.exists(&path).unwrap());
        remove_tree(&path).unwrap();
        assert!(fs.exists(two.path()).unwrap());
    }

    /// Goal: directories of killed processes are removed, and no others. Method: directories with
    /// the names of a process that has ended, of this one, of another label, and one of the user's.
    #[test]
    fn leftovers_are_swept() {
        let parent = Scratch::temporary("sweep").unwrap();
        let mut child = process::Command::new("true").spawn().unwrap();
        let gone = child.id();
        child.wait().unwrap();
        let name = |process: u32, label: &str| format!("cairn-{label}-{process}-0123456789abcdef");
        for name in [
            name(gone, "run"),
            name(process::id(), "run"),
            name(gone, "other"),
            "cairn-run-1-mine".to_owned(),
        ] {
            parent.dir(&name).unwrap();
        }
        sweep(parent.path(), "run").unwrap();
        let mut left: Vec<String> = StdFs::new()
            .read_dir(parent.path())
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        let mut expected =
            vec![name(process::id(), "run"), name(gone, "other"), "cairn-run-1-mine".to_owned()];
        left.sort();
        expected.sort();
        assert_eq!(left, expected);
        sweep(Path::new("/no/such/directory"), "run").unwrap();
    }
}
