//! The two traits through which every engine reaches a disk.

use std::fmt::Debug;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::append_map::Region;
use crate::{Error, Map, Operation, Result};

/// What may be done with an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Reads only.
    #[default]
    Read,
    /// Reads and writes.
    ReadWrite,
}

/// What `open` does about a file that is not there, or is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Create {
    /// Fails with `NotFound` when the file is missing.
    #[default]
    Never,
    /// Creates an empty file when it is missing.
    IfMissing,
    /// Creates an empty file, fails with `Conflict` when there is one.
    New,
}

/// How to open a file. The default opens an existing file for reading through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    /// Reads only, or reads and writes.
    pub access: Access,
    /// Whether a missing file is made.
    pub create: Create,
    /// Bypasses the page cache (`O_DIRECT`). Offsets, lengths and buffers must then be aligned to
    /// 4096 bytes, or to what [`File::direct_alignment`] says. File systems that refuse it (tmpfs)
    /// fail the open with `Unsupported`.
    pub direct: bool,
}

impl OpenOptions {
    /// An existing file, for reading.
    pub fn read() -> Self {
        OpenOptions::default()
    }

    /// An existing file, for reading and writing.
    pub fn write() -> Self {
        OpenOptions { access: Access::ReadWrite, ..OpenOptions::default() }
    }

    /// For reading and writing, made when missing; never truncated.
    pub fn create() -> Self {
        OpenOptions { access: Access::ReadWrite, create: Create::IfMissing, direct: false }
    }

    /// For reading and writing; fails when the file is there already.
    pub fn create_new() -> Self {
        OpenOptions { access: Access::ReadWrite, create: Create::New, direct: false }
    }
}

/// Names a file by what it is, not by what it is called: equal ids are the same file, renames
/// included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// The device.
    pub device: u64,
    /// The inode on it.
    pub inode: u64,
}

/// What `stat` says of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// Length in bytes; 0 for a directory.
    pub len: u64,
    /// True for a directory.
    pub is_dir: bool,
    /// True for a regular file; false for a directory, and for pipes, terminals and other devices.
    pub is_file: bool,
    /// The identity behind the name.
    pub id: FileId,
}

/// How a range of a file is going to be read, as a hint to the kernel (`posix_fadvise`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// No particular order.
    Normal,
    /// In ascending order: read ahead.
    Sequential,
    /// At random: do not read ahead.
    Random,
    /// Soon: read it in now.
    WillNeed,
    /// Not again: the page cache may drop it.
    DontNeed,
}

/// A file system. Cheap to clone behind an [`Arc`](std::sync::Arc); safe to use from many threads.
pub trait Fs: Debug + Send + Sync + 'static {
    /// Opens a file. Never waits. `Invalid` for a pipe, a terminal and the like, which have no
    /// offsets: see [`Fs::open_stream`].
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn File>>;

    /// Opens what stands behind `path` to write through it from its beginning: a pipe, a terminal,
    /// another device. Waits until a pipe has a reader. What is written must come in order, since
    /// most of these know no offsets; a sync of them does nothing. `Unsupported`, which is what
    /// this does, where a system has none of them.
    fn open_stream(&self, path: &Path) -> Result<Box<dyn File>> {
        Err(Error::new(Operation::Open, path, io::ErrorKind::Unsupported.into()))
    }

    /// The name that is meant by `path`: where its symbolic links lead, there or not. `path`
    /// itself, which is what this says, where it is no link. `None` for a link to a file that
    /// somebody has open and that may have no name, as `/dev/stdout` is one.
    fn follow(&self, path: &Path) -> Result<Option<PathBuf>> {
        Ok(Some(path.to_owned()))
    }

    /// What stands behind `path`. `NotFound` when there is nothing.
    fn metadata(&self, path: &Path) -> Result<Metadata>;

    /// Gives `from` the name `to`, replacing what was there. Atomic for readers at once; durable
    /// after [`Fs::sync_dir`] of both directories.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Adds the name `to` to the file `from` (a hard link). Fails with `Conflict` when `to` exists.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a name. The file lives on while it is open.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory. The default has no such operation and says `Unsupported`: who
    /// calls it must be able to do without.
    fn remove_dir(&self, path: &Path) -> Result<()> {
        Err(Error::new(Operation::Remove, path, io::ErrorKind::Unsupported.into()))
    }

    /// Creates a directory and its missing parents. Existing ones are fine.
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// [`Fs::create_dir_all`], with the names of `path` and of the parents that were missing made
    /// durable. Costs a sync of a directory for each; of one that is there already, the sync of its
    /// parent.
    fn create_dir_all_durably(&self, path: &Path) -> Result<()> {
        let mut missing = vec![path];
        // BOUND: a path has so many parents.
        for parent in path.ancestors().skip(1) {
            if parent.as_os_str().is_empty() || self.exists(parent)? {
                break;
            }
            missing.push(parent);
        }
        // ORDER: from the top down, each name before what is made behind it: a directory that is
        // durable in one that is not is lost with it.
        for directory in missing.into_iter().rev() {
            self.create_dir_all(directory)?;
            self.sync_parent(directory)?;
        }
        Ok(())
    }

    /// The paths directly inside a directory, sorted.
    fn read_dir(&self, path: &Path) -> Result<Vec<PathBuf>>;

    /// Makes the names in a directory durable: what was created, renamed or removed in it before
    /// this call.
    fn sync_dir(&self, path: &Path) -> Result<()>;

    /// True when something stands behind `path`.
    fn exists(&self, path: &Path) -> Result<bool> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// [`Fs::sync_dir`] of the directory that holds `path`.
    fn sync_parent(&self, path: &Path) -> Result<()> {
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.sync_dir(parent),
            _ => self.sync_dir(Path::new(".")),
        }
    }
}

/// A part of a file to be read into buffers, one after the other, as one of several: see
/// [`File::read_batch`].
#[derive(Debug)]
pub struct ReadRequest<'a> {
    /// Where in the file.
    pub offset: u64,
    /// Where to.
    pub buffers: Vec<IoSliceMut<'a>>,
    /// How many bytes came; as [`File::read_vectored_at`] says it. 0 before.
    pub result: Result<usize>,
}

impl<'a> ReadRequest<'a> {
    /// A part that has not been read yet.
    pub fn new(offset: u64, buffers: Vec<IoSliceMut<'a>>) -> Self {
        ReadRequest { offset, buffers, result: Ok(0) }
    }
}

/// Bytes to be written to a file, as one of several: see [`File::write_batch`].
#[derive(Debug)]
pub struct WriteRequest<'a> {
    /// Where in the file.
    pub offset: u64,
    /// What.
    pub bytes: &'a [u8],
    /// How many bytes went; as [`File::write_at`] says it. 0 before.
    pub result: Result<usize>,
}

impl<'a> WriteRequest<'a> {
    /// Bytes that have not been written yet.
    pub fn new(offset: u64, bytes: &'a [u8]) -> Self {
        WriteRequest { offset, bytes, result: Ok(0) }
    }
}

/// An open file. Positional: there is no cursor, so `&self` serves any number of threads.
pub trait File: Debug + Send + Sync + 'static {
    /// The path it was opened by, for messages.
    fn path(&self) -> &Path;

    /// Its identity, to tell whether a name still means this file.
    fn id(&self) -> FileId;

    /// Lets the others do with it what they may do with the regular file at `path`, as far as this
    /// process can; its owner may read and write it in any case. What this does, where there are no
    /// such rights: nothing.
    fn take_mode(&self, _path: &Path) {}

    /// Its length in bytes.
    fn len(&self) -> Result<u64>;

    /// True when it has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads up to `buf.len()` bytes at `offset`; fewer at the end of the file or when interrupted,
    /// 0 past the end.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;

    /// As [`File::read_at`], into several buffers one after the other (`preadv`). What this does,
    /// where a system knows no such call: one read for each buffer, until one falls short.
    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
        let mut done = 0;
        for buf in bufs {
            match self.read_at(buf, offset + done as u64) {
                Ok(count) => {
                    done += count;
                    if count < buf.len() {
                        break;
                    }
                }
                Err(error) if done == 0 => return Err(error),
                // What was read before counts; whoever reads on meets the error again.
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Reads several parts, at the same time where the system can (`io_uring`), and returns when
    /// all have ended. Each says for itself how it went; as with the other calls, that may be less
    /// than was asked for.
    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) {
        for request in requests {
            request.result = self.read_vectored_at(&mut request.buffers, request.offset);
        }
    }

    /// Writes several parts, at the same time where the system can and it helps, in no particular
    /// order, and returns when all have ended. Each says for itself how it went. Parts must not
    /// overlap.
    fn write_batch(&self, requests: &mut [WriteRequest<'_>]) {
        for request in requests {
            request.result = self.write_at(request.bytes, request.offset);
        }
    }

    /// Writes up to `buf.len()` bytes at `offset`, growing the file; says how many. Not durable
    /// before a sync.
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize>;

    /// Cuts the file or extends it with zeros.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Reserves disk space for `len` bytes from `offset`, so that later writes there do not meet a
    /// full disk.
    fn allocate(&self, offset: u64, len: u64) -> Result<()>;

    /// Makes written bytes and the length durable (`fdatasync`). Says nothing about names.
    ///
    /// After an error the state of the unsynced bytes is unknown; a second call that succeeds
    /// proves nothing (the kernel may have dropped them), so callers must treat the file as lost.
    fn sync_data(&self) -> Result<()>;

    /// What offsets, lengths and buffers must be multiples of where the file is open for direct
    /// I/O: a power of two, at most 4096, which this says and which always does.
    fn direct_alignment(&self) -> u64 {
        4096
    }

    /// Takes an exclusive advisory lock against other openers, held until this handle is dropped.
    /// `Busy` when somebody has it.
    fn try_lock(&self) -> Result<()>;

    /// Hints how a range will be read. Best effort.
    fn advise(&self, offset: u64, len: u64, advice: Advice);

    /// The whole file as bytes, without copying where the system can. Only for files that nobody
    /// changes in place: a mapped file that is cut short under its reader ends the process.
    fn map(&self) -> Result<Map>;

    /// Maps a range for writing, for [`AppendMap`](crate::append_map::AppendMap). `None`, which is
    /// what this does, where there are no mappings, or where a store into one could meet a full
    /// disk.
    fn append_region(&self, range: Range<u64>) -> Result<Option<Region>> {
        let _ = range;
        Ok(None)
    }

    /// Fills `buf` from `offset`. `UnexpectedEof` when the file ends first.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
                Ok(0) => {
                    let source = io::Error::from(io::ErrorKind::UnexpectedEof);
                    return Err(Error::new(Operation::Read, self.path(), source).at(offset));
                }
                Ok(count) => {
                    buf = &mut buf[count..];
                    offset += count as u64;
                }
                Err(error) if error.source.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `buf` at `offset`, however many short writes that takes.
    fn write_all_at(&self, mut buf: &[u8], mut offset: u64) -> Result<()> {
        while !buf.is_empty() {
            match self.write_at(buf, offset) {
                Ok(0) => {
                    let source = io::Error::from(io::ErrorKind::WriteZero);
                    return Err(Error::new(Operation::Write, self.path(), source).at(offset));
                }
                Ok(count) => {
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
