//! Errors of the operating system, with the file and the operation they belong to.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// A classification of errors by the action a caller can take. Every Cairn crate maps its errors to
/// these kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another process or thread holds the resource: try again later.
    Busy,
    /// A concurrent change came first: redo the operation on fresh state.
    Conflict,
    /// An argument, option or input record is wrong: correct it.
    Invalid,
    /// The file, key or name does not exist.
    NotFound,
    /// Stored bytes differ from the bytes that were written: restore from a copy. Reading on is not
    /// safe.
    Corruption,
    /// The device or the operating system failed: look at the source.
    Io,
    /// An earlier failed write left the handle unusable: reopen.
    Poisoned,
    /// The operation is not available for this file, version or system.
    Unsupported,
    /// An invariant of Cairn does not hold: report it. The error is a [`Bug`](crate::Bug).
    Bug,
}

/// The file-system operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Operation {
    Open,
    Read,
    Write,
    SetLen,
    Allocate,
    SyncData,
    SyncDir,
    Rename,
    Remove,
    Link,
    CreateDir,
    ReadDir,
    Stat,
    Map,
    Lock,
    /// Not a file-system operation: starting a thread that works on files failed. The path is the
    /// directory of those files.
    StartThread,
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Operation::Open => "open",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::SetLen => "set the length of",
            Operation::Allocate => "allocate space for",
            Operation::SyncData => "sync",
            Operation::SyncDir => "sync the directory",
            Operation::Rename => "rename",
            Operation::Remove => "remove",
            Operation::Link => "link",
            Operation::CreateDir => "create the directory",
            Operation::ReadDir => "list the directory",
            Operation::Stat => "look up",
            Operation::Map => "map",
            Operation::Lock => "lock",
            Operation::StartThread => "start a thread for",
        })
    }
}

/// A failed file-system operation.
#[derive(Debug, thiserror::Error)]
#[error("{}", message(*operation, path, *offset, source))]
pub struct Error {
    /// The operation that failed.
    pub operation: Operation,
    /// The file or directory it was applied to.
    pub path: PathBuf,
    /// The byte offset, for operations that have one.
    pub offset: Option<u64>,
    /// The error of the operating system.
    pub source: io::Error,
}

fn message(operation: Operation, path: &Path, offset: Option<u64>, source: &io::Error) -> String {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    let is_named = !path.as_os_str().is_empty();
    let path = path.display();
    // Users type these names. Their mistakes get the same wording, whichever operation detects
    // them.
    match (operation, source.kind()) {
        (Operation::Open | Operation::Stat | Operation::ReadDir, NotFound) if is_named => {
            return format!("{path} does not exist");
        }
        (Operation::Open, IsADirectory) => return format!("{path} is a directory, expected a file"),
        (Operation::ReadDir, NotADirectory) => return format!("{path} is a file, expected a directory"),
        _ => {}
    }
    // The system's text for a held lock, "temporarily unavailable", does not help the user.
    if operation == Operation::Lock
        && source.kind() == io::ErrorKind::WouldBlock
        && source.raw_os_error().is_some()
    {
        return format!("{path} is already open in this or another process");
    }
    format!("cannot {operation} {path}{}: {source}", at(offset))
}

fn at(offset: Option<u64>) -> String {
    offset.map(|offset| format!(" at offset {offset}")).unwrap_or_default()
}

impl Error {
    /// Wraps `source`, the error that `operation` on `path` returned.
    pub fn new(operation: Operation, path: &Path, source: io::Error) -> Self {
        Error { operation, path: path.to_owned(), offset: None, source }
    }

    /// Adds the byte offset of the operation.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    /// Returns the kind of the error: the action a caller can take.
    pub fn kind(&self) -> ErrorKind {
        if self.operation == Operation::StartThread {
            // This includes `EAGAIN`: no other holder will release the missing resource.
            return ErrorKind::Io;
        }
        match self.source.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::WouldBlock => ErrorKind::Busy,
            io::ErrorKind::AlreadyExists => ErrorKind::Conflict,
            io::ErrorKind::Unsupported => ErrorKind::Unsupported,
            io::ErrorKind::InvalidInput => ErrorKind::Invalid,
            _ => ErrorKind::Io,
        }
    }

    /// Returns true when the process or the system has reached its limit of open files (`EMFILE`,
    /// `ENFILE`). Nothing was done, and the operation can be retried after some files are closed.
    pub fn is_out_of_files(&self) -> bool {
        let errno = self.source.raw_os_error();
        errno.is_some() && [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error).map(Some).contains(&errno)
    }

    /// Returns true when the device or the quota is full (`ENOSPC`, `EDQUOT`, `EFBIG`).
    pub fn is_full(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    }
}

/// The result of a file-system operation.
pub type Result<T> = std::result::Result<T, Error>;
