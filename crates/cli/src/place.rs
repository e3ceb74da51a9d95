//! Checks of the paths that a user gives, before any work starts. Messages use the wording of the
//! file system's errors: `X does not exist`, `X is a directory, expected a file`, `X is a file,
//! expected a directory`. For an occupied path the message is `X already exists: choose another
//! name, or remove it`.

use std::io;
use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{ErrorKind, Fs, Operation};

use crate::error::{Error, Result};

/// Errors: `path` does not exist or is a directory.
pub fn expect_file(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    match fs.metadata(path)?.is_dir {
        true => Err(is_not(Operation::Open, path, io::ErrorKind::IsADirectory)),
        false => Ok(()),
    }
}

/// Errors: `path` does not exist or is a file.
pub fn expect_directory(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    match fs.metadata(path)?.is_dir {
        true => Ok(()),
        false => Err(is_not(Operation::ReadDir, path, io::ErrorKind::NotADirectory)),
    }
}

/// Errors: `path`, where a directory may be created, is a file.
pub fn expect_room_for_directory(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    match expect_directory(fs, path) {
        Err(Error::Vfs(error)) if error.kind() == ErrorKind::NotFound => Ok(()),
        checked => checked,
    }
}

/// Errors: `path`, where something will be created, exists.
pub fn expect_nothing(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    match fs.exists(path)? {
        true => {
            Err(Error::usage(format!("{} already exists: choose another name, or remove it", path.display())))
        }
        false => Ok(()),
    }
}

/// Errors: like [`expect_nothing`], but a pipe, a terminal or another device is allowed, because it
/// is written through.
pub fn expect_no_file(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    let is_device = fs.exists(path)? && fs.metadata(path).is_ok_and(|it| !it.is_dir && !it.is_file);
    if is_device { Ok(()) } else { expect_nothing(fs, path) }
}

fn is_not(operation: Operation, path: &Path, kind: io::ErrorKind) -> Error {
    cairn_vfs::Error::new(operation, path, kind.into()).into()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use cairn_vfs::{MemFs, OpenOptions};

    use super::*;

    /// Goal: each check accepts its own kind and rejects all others by name. Method: a file, a
    /// directory and a missing path, with each check.
    #[test]
    fn names_are_checked() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        drop(fs.open(Path::new("file"), OpenOptions::create()).unwrap());
        fs.create_dir_all(Path::new("dir")).unwrap();
        type Check = fn(&Arc<dyn Fs>, &Path) -> Result<()>;
        let cases: [(Check, [&str; 3]); 5] = [
            (expect_file, ["", "dir is a directory, expected a file", "no does not exist"]),
            (expect_directory, ["file is a file, expected a directory", "", "no does not exist"]),
            (expect_room_for_directory, ["file is a file, expected a directory", "", ""]),
            (
                expect_no_file,
                [
                    "file already exists: choose another name, or remove it",
                    "dir already exists: choose another name, or remove it",
                    "",
                ],
            ),
            (
                expect_nothing,
                [
                    "file already exists: choose another name, or remove it",
                    "dir already exists: choose another name, or remove it",
                    "",
                ],
            ),
        ];
        for (check, expected) in cases {
            let told = ["file", "dir", "no"].map(|name| {
                check(&fs, &PathBuf::from(name)).map_or_else(|error| error.to_string(), |()| String::new())
            });
            assert_eq!(told, expected);
        }
    }
}
