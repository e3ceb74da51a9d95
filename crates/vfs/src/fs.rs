//! The two traits through which every engine reaches a disk.

use std::fmt::Debug;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::append_map::Region;
use crate::{Error, Map, Operation, Result};

/// The operations allowed on an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Reads only.
    #[default]
    Read,
    /// Reads and writes.
    ReadWrite,
}

/// How `open` treats a missing or an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Create {
    /// Fails with `NotFound` when the file is missing.
    #[default]
    Never,
    /// Creates an empty file when it is missing.
    IfMissing,
    /// Creates an empty file, or fails with `Conflict` when the file exists.
    New,
}

/// How to open a file. The default opens an existing file for reading through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    /// Reads only, or reads and writes.
    pub access: Access,
    /// Whether a missing file is created.
    pub create: Create,
    /// Bypasses the page cache (`O_DIRECT`). Offsets, lengths and buffers must then be aligned to
    /// 4096 bytes, or to the smaller alignment that [`File::direct_alignment`] returns. On file
    /// systems without direct I/O (tmpfs), the open fails with `Unsupported`.
    pub direct: bool,
}

impl OpenOptions {
    /// Opens an existing file for reading.
    pub fn read() -> Self {
        OpenOptions::default()
    }

    /// Opens an existing file for reading and writing.
    pub fn write() -> Self {
        OpenOptions { access: Access::ReadWrite, ..OpenOptions::default() }
    }

    /// Opens a file for reading and writing and creates it if it is missing. Never truncates.
    pub fn create() -> Self {
        OpenOptions { access: Access::ReadWrite, create: Create::IfMissing, direct: false }
    }

    /// Creates a file for reading and writing. Fails when the file exists already.
    pub fn create_new() -> Self {
        OpenOptions { access: Access::ReadWrite, create: Create::New, direct: false }
    }
}

/// The identity of a file, independent of its name: equal ids mean the same file, even after a
/// rename.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// The device.
    pub device: u64,
    /// The inode on it.
    pub inode: u64,
}

/// The result of `stat` on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// Length in bytes; 0 for a directory.
    pub len: u64,
    /// True for a directory.
    pub is_dir: bool,
    /// True for a regular file; false for a directory, and for pipes, terminals and other devices.
    pub is_file: bool,
    /// The identity of the file that the path refers to.
    pub id: FileId,
}

/// The expected access pattern for a range of a file, passed to the kernel as a hint
/// (`posix_fadvise`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// No particular order.
    Normal,
    /// Ascending order: read ahead.
    Sequential,
    /// Random order: do not read ahead.
    Random,
    /// Needed soon: read it in now.
    WillNeed,
    /// Not needed again: the page cache may drop it.
    DontNeed,
}

/// A file system. Cheap to clone behind an [`Arc`](std::sync::Arc); safe to use from many threads.
pub trait Fs: Debug + Send + Sync + 'static {
    /// Opens a file. Never blocks. Fails with `Invalid` for pipes, terminals and other files
    /// without offsets; see [`Fs::open_stream`] for those.
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn File>>;

    /// Opens the pipe, terminal or other device at `path` for writing from its beginning.
    ///
    /// Blocks until a pipe has a reader. Bytes must be written in order, since most devices have no
    /// offsets, and a sync does nothing. The default implementation, for file systems without
    /// devices, returns `Unsupported`.
    fn open_stream(&self, path: &Path) -> Result<Box<dyn File>> {
        Err(Error::new(Operation::Open, path, io::ErrorKind::Unsupported.into()))
    }

    /// Resolves the symbolic links of `path`; the target need not exist. Returns `path` itself when
    /// it is not a link. Returns `None` for a link to an open file that may have no name, such as
    /// `/dev/stdout`. The default implementation, for file systems without symbolic links, returns
    /// `path`.
    fn follow(&self, path: &Path) -> Result<Option<PathBuf>> {
        Ok(Some(path.to_owned()))
    }

    /// Returns the metadata of `path`. Fails with `NotFound` when nothing exists there.
    fn metadata(&self, path: &Path) -> Result<Metadata>;

    /// Renames `from` to `to`, replacing any existing file. Readers see the change atomically and
    /// at once. It is durable after [`Fs::sync_dir`] of both directories.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Adds the name `to` to the file `from` (a hard link). Fails with `Conflict` when `to` exists.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a name. The file itself lives on while it is open.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory. The default implementation returns `Unsupported`, so callers
    /// must be able to do without it.
    fn remove_dir(&self, path: &Path) -> Result<()> {
        Err(Error::new(Operation::Remove, path, io::ErrorKind::Unsupported.into()))
    }

    /// Creates a directory and its missing parents. Succeeds when they exist already.
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// Like [`Fs::create_dir_all`], and makes the names of `path` and of every parent that was
    /// missing durable. Costs one directory sync for each of them. If `path` exists already, its
    /// parent is synced once.
    fn create_dir_all_durably(&self, path: &Path) -> Result<()> {
        let mut missing = vec![path];
        // BOUND: the number of parents in the path.
        for parent in path.ancestors().skip(1) {
            if parent.as_os_str().is_empty() || self.exists(parent)? {
                break;
            }
            missing.push(parent);
        }
        debug_assert!(missing.is_sorted_by(|child, parent| child.starts_with(parent)), "{missing:?}");
        // ORDER: from the top down, each directory is durable before anything is created in it. A
        // durable directory inside one that is not durable would be lost with its parent.
        for directory in missing.into_iter().rev() {
            self.create_dir_all(directory)?;
            self.sync_parent(directory)?;
        }
        Ok(())
    }

    /// Returns the paths directly inside a directory, sorted.
    fn read_dir(&self, path: &Path) -> Result<Vec<PathBuf>>;

    /// Makes all earlier creations, renames and removals of names in a directory durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;

    /// Returns true when `path` exists.
    fn exists(&self, path: &Path) -> Result<bool> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Calls [`Fs::sync_dir`] on the directory that holds `path`.
    fn sync_parent(&self, path: &Path) -> Result<()> {
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.sync_dir(parent),
            _ => self.sync_dir(Path::new(".")),
        }
    }
}

/// One read of a batch: a contiguous part of a file, read into consecutive buffers. See
/// [`File::read_batch`].
#[derive(Debug)]
pub struct ReadRequest<'a> {
    /// Offset in the file.
    pub offset: u64,
    /// The buffers to fill, in order.
    pub buffers: Vec<IoSliceMut<'a>>,
    /// The number of bytes read, with the meaning of [`File::read_vectored_at`]; 0 before the read.
    pub result: Result<usize>,
}

impl<'a> ReadRequest<'a> {
    /// Creates a request that has not been executed yet.
    pub fn new(offset: u64, buffers: Vec<IoSliceMut<'a>>) -> Self {
        ReadRequest { offset, buffers, result: Ok(0) }
    }
}

/// One write of a batch. See [`File::write_batch`].
#[derive(Debug)]
pub struct WriteRequest<'a> {
    /// Offset in the file.
    pub offset: u64,
    /// The bytes to write.
    pub bytes: &'a [u8],
    /// The number of bytes written, with the meaning of [`File::write_at`]; 0 before the write.
    pub result: Result<usize>,
}

impl<'a> WriteRequest<'a> {
    /// Creates a request that has not been executed yet.
    pub fn new(offset: u64, bytes: &'a [u8]) -> Self {
        WriteRequest { offset, bytes, result: Ok(0) }
    }
}

/// An open file. I/O is positional: there is no cursor, so `&self` serves any number of threads.
pub trait File: Debug + Send + Sync + 'static {
    /// Returns the path the file was opened with, for messages.
    fn path(&self) -> &Path;

    /// Returns the identity of the file, to check whether a name still refers to it.
    fn id(&self) -> FileId;

    /// Copies the access permissions of the regular file at `path` for group and others, as far as
    /// this process may set them. The owner keeps read and write access in any case. The default
    /// implementation, for file systems without permissions, does nothing.
    fn take_mode(&self, _path: &Path) {}

    /// Returns the length in bytes.
    fn len(&self) -> Result<u64>;

    /// Returns true when the file is empty.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads up to `buf.len()` bytes at `offset`. Returns fewer at the end of the file or when
    /// interrupted, and 0 past the end.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;

    /// Like [`File::read_at`], but fills several buffers in order (`preadv`). The default
    /// implementation issues one read per buffer and stops at the first short one.
    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
        let mut done = 0;
        for buf in bufs {
            match self.read_at(buf, offset + done as u64) {
                Ok(count) => {
                    debug_assert!(count <= buf.len(), "{count} bytes were read into {}", buf.len());
                    done += count;
                    if count < buf.len() {
                        break;
                    }
                }
                Err(error) if done == 0 => return Err(error),
                // The bytes read so far count. The next read meets the error again.
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Executes several reads, concurrently where the system can (`io_uring`), and returns when all
    /// are complete. Each request holds its own result. As with the other calls, a read may return
    /// fewer bytes than requested.
    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) {
        for request in requests {
            request.result = self.read_vectored_at(&mut request.buffers, request.offset);
            debug_assert!(
                request.result.as_ref().map_or(0, |count| *count)
                    <= request.buffers.iter().map(|buffer| buffer.len()).sum::<usize>(),
                "more was read than the buffers take"
            );
        }
    }

    /// Executes several writes in no particular order, concurrently where the system can and it
    /// helps, and returns when all are complete. Each request holds its own result. The ranges must
    /// not overlap.
    fn write_batch(&self, requests: &mut [WriteRequest<'_>]) {
        for request in requests {
            request.result = self.write_at(request.bytes, request.offset);
            debug_assert!(
                request.result.as_ref().map_or(0, |count| *count) <= request.bytes.len(),
                "more was written than there is"
            );
        }
    }

    /// Writes up to `buf.len()` bytes at `offset`, growing the file if needed, and returns the
    /// number written. Not durable before a sync.
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize>;

    /// Truncates the file, or extends it with zeros.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Reserves disk space for `len` bytes from `offset`, so that later writes to the range do not
    /// fail on a full disk.
    fn allocate(&self, offset: u64, len: u64) -> Result<()>;

    /// Makes written bytes and the length durable (`fdatasync`). Does not cover names.
    ///
    /// After an error the state of the unsynced bytes is unknown. A second call that succeeds
    /// proves nothing, since the kernel may have dropped them. Callers must treat the file as lost.
    fn sync_data(&self) -> Result<()>;

    /// Returns the alignment that direct I/O requires of offsets, lengths and buffers: a power of
    /// two, at most 4096. The default implementation returns 4096, which always suffices.
    fn direct_alignment(&self) -> u64 {
        4096
    }

    /// Takes an exclusive advisory lock against other openers, held until this handle is dropped.
    /// Fails with `Busy` when another handle holds it.
    fn try_lock(&self) -> Result<()>;

    /// Passes the expected access pattern of a range to the kernel. Best effort.
    fn advise(&self, offset: u64, len: u64, advice: Advice);

    /// Returns the whole file as bytes, without copying where the system supports it. Use it only
    /// for files that are never modified in place: truncating a mapped file terminates its readers
    /// with `SIGBUS`.
    fn map(&self) -> Result<Map>;

    /// Maps a range for writing, for [`AppendMap`](crate::append_map::AppendMap). Returns `None`
    /// where mappings are not supported, or where a store into one could fail on a full disk. The
    /// default implementation returns `None`.
    fn append_region(&self, range: Range<u64>) -> Result<Option<Region>> {
        let _ = range;
        Ok(None)
    }

    /// Fills `buf` from `offset`. Fails with `UnexpectedEof` when the file ends first.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
                Ok(0) => {
                    let source = io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Err(Error::new(Operation::Read, self.path(), source).at(offset));
                }
                Ok(count) => {
                    debug_assert!(count <= buf.len(), "{count} bytes were read into {}", buf.len());
                    buf = &mut buf[count..];
                    offset += count as u64;
                }
                Err(error) if error.source.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `buf` at `offset`, retrying after short writes.
    fn write_all_at(&self, mut buf: &[u8], mut offset: u64) -> Result<()> {
        while !buf.is_empty() {
            match self.write_at(buf, offset) {
                Ok(0) => {
                    let source = io::Error::from(io::ErrorKind::WriteZero);
                    return Err(Error::new(Operation::Write, self.path(), source).at(offset));
                }
                Ok(count) => {
                    debug_assert!(count <= buf.len(), "{count} bytes were written of {}", buf.len());
                    buf = &buf[count..];
                    offset += count as u64;
                }
                Err(error) if error.source.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
