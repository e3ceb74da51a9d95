//! The real disk.

use std::fs;
use std::io::{self, IoSliceMut, Write};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation, OFlags};
use rustix::io::Errno;

use crate::append_map::Region;
use crate::checks::{DIRECT_ALIGNMENT, check_offset, check_open, check_writable, not_a_file};
use crate::{Access, Advice, Create, Error, File, FileId, Fs, Map, Metadata, OpenOptions, Operation};
use crate::{ReadRequest, Result, WriteRequest};

mod direct;
mod uring;

/// The maximum number of symbolic links to follow.
const LINKS_MAX: usize = 40;
/// Where the kernel shows the open files of processes as links.
const OPEN_FILES: &str = "/proc";

/// The machine's file system, accessed through `pread`, `pwrite`, `fdatasync` and related calls.
///
/// Calls interrupted by a signal (`EINTR`) are repeated. Relative paths are resolved against the
/// process's working directory.
#[derive(Debug, Clone, Copy, Default)]
pub struct StdFs;

impl StdFs {
    /// Returns the machine's file system.
    pub fn new() -> Self {
        StdFs
    }
}

impl Fs for StdFs {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn File>> {
        let wrap = |source| Error::new(Operation::Open, path, source);
        check_open(options).map_err(wrap)?;
        // Opening a pipe would block until its other end is opened.
        if fs::metadata(path).is_ok_and(|found| has_no_offsets(found.file_type())) {
            return Err(not_a_file(path));
        }
        let mut open = fs::OpenOptions::new();
        open.read(true).write(options.access == Access::ReadWrite);
        match options.create {
            Create::Never => {}
            Create::IfMissing => _ = open.create(true),
            Create::New => _ = open.create_new(true),
        }
        if options.direct {
            open.custom_flags(OFlags::DIRECT.bits() as i32);
        }
        let file = repeat(|| open.open(path)).map_err(|source| match source.raw_os_error() {
            // Here EINVAL can only mean that the file system does not support direct I/O.
            Some(errno) if options.direct && errno == Errno::INVAL.raw_os_error() => wrap(io::Error::new(
                io::ErrorKind::Unsupported,
                "the file system does not support direct I/O",
            )),
            _ if options.create != Create::Never => create_error(path, source),
            _ => wrap(source),
        })?;
        let metadata = file.metadata().map_err(wrap)?;
        if metadata.is_dir() {
            return Err(wrap(Errno::ISDIR.into()));
        }
        let (id, access, direct) = (id_of(&metadata), options.access, options.direct);
        Ok(Box::new(StdFile { file, path: path.to_owned(), id, access, direct, in_order: false }))
    }

    fn open_stream(&self, path: &Path) -> Result<Box<dyn File>> {
        let wrap = |source| Error::new(Operation::Open, path, source);
        let mut open = fs::OpenOptions::new();
        // Write-only: if we could also read the pipe, the open would not wait for a reader, and
        // data that nobody reads would be lost.
        open.write(true).truncate(true);
        let file = repeat(|| open.open(path)).map_err(|source| create_error(path, source))?;
        let metadata = file.metadata().map_err(wrap)?;
        let in_order = has_no_offsets(metadata.file_type());
        let (id, access, direct) = (id_of(&metadata), Access::ReadWrite, false);
        Ok(Box::new(StdFile { file, path: path.to_owned(), id, access, direct, in_order }))
    }

    fn follow(&self, path: &Path) -> Result<Option<PathBuf>> {
        let wrap = |source| Error::new(Operation::Stat, path, source);
        let mut target = path.to_owned();
        // BOUND: as many links as the kernel follows.
        for _ in 0..LINKS_MAX {
            match fs::symlink_metadata(&target) {
                Ok(metadata) if metadata.is_symlink() => {}
                Ok(_) => return Ok(Some(target)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(target)),
                Err(error) => return Err(wrap(error)),
            }
            let dir = target.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            // The text of such a link is either not a path, or the path of a file that its holder
            // continues to write.
            if fs::canonicalize(dir).map_err(wrap)?.starts_with(OPEN_FILES) {
                return Ok(None);
            }
            target = dir.join(fs::read_link(&target).map_err(wrap)?);
        }
        Err(wrap(Errno::LOOP.into()))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        let metadata = fs::metadata(path).map_err(|source| Error::new(Operation::Stat, path, source))?;
        let (is_dir, is_file) = (metadata.is_dir(), metadata.is_file());
        Ok(Metadata { len: if is_dir { 0 } else { metadata.len() }, is_dir, is_file, id: id_of(&metadata) })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|source| Error::new(Operation::Rename, from, source))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        fs::hard_link(from, to).map_err(|source| Error::new(Operation::Link, to, source))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|source| Error::new(Operation::Remove, path, source))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).map_err(|source| Error::new(Operation::Remove, path, source))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        fs::create_dir_all(path).map_err(|source| Error::new(Operation::CreateDir, path, source))
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let wrap = |source| Error::new(Operation::ReadDir, path, source);
        let entries = fs::read_dir(path).map_err(wrap)?;
        let mut paths =
            entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>().map_err(wrap)?;
        paths.sort();
        Ok(paths)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let mut open = fs::OpenOptions::new();
        // Without `O_DIRECTORY`, a regular file would open and sync as well, and prove nothing
        // about names.
        open.read(true).custom_flags(OFlags::DIRECTORY.bits() as i32);
        repeat(|| open.open(path))
            .and_then(|directory| directory.sync_all())
            .map_err(|source| Error::new(Operation::SyncDir, path, sync_dir_error(source)))
    }
}

/// Translates the error of a failed directory sync. Here EINVAL can only mean that the file system
/// does not support it, as with some network and user-space (FUSE) file systems.
fn sync_dir_error(source: io::Error) -> io::Error {
    match source.raw_os_error() {
        Some(errno) if errno == Errno::INVAL.raw_os_error() => io::Error::new(
            io::ErrorKind::Unsupported,
            "the file system does not sync directories, so names in them may not survive a power loss; use another file system",
        ),
        _ => source,
    }
}

/// Builds the error for a file that could not be created. It names the directory if that is
/// missing.
fn create_error(path: &Path, source: io::Error) -> Error {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    match dir {
        Some(dir) if source.kind() == io::ErrorKind::NotFound && !dir.exists() => {
            Error::new(Operation::Open, dir, source)
        }
        _ => Error::new(Operation::Open, path, source),
    }
}

/// Returns true for pipes, terminals and the like, which transfer bytes in order only.
fn has_no_offsets(kind: fs::FileType) -> bool {
    !kind.is_file() && !kind.is_dir() && !kind.is_block_device()
}

/// An open file descriptor.
#[derive(Debug)]
struct StdFile {
    file: fs::File,
    path: PathBuf,
    id: FileId,
    access: Access,
    direct: bool,
    /// True for pipes and the like, which take bytes in order and have no offsets.
    in_order: bool,
}

impl StdFile {
    fn wrap(&self, operation: Operation) -> impl Fn(io::Error) -> Error {
        move |source| Error::new(operation, &self.path, source)
    }
}

impl File for StdFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn id(&self) -> FileId {
        self.id
    }

    fn take_mode(&self, path: &Path) {
        if let Ok(other) = fs::metadata(path)
            && other.is_file()
        {
            // The owner keeps read and write access, because a later build has to open a leftover
            // file. Only permission bits are copied, not set-user-id and set-group-id.
            let mode = other.mode() & 0o777 | 0o600;
            let _ = self.file.set_permissions(fs::Permissions::from_mode(mode));
        }
    }

    fn len(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(self.wrap(Operation::Stat))?.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let wrap = |source| Error::new(Operation::Read, &self.path, source).at(offset);
        check_offset(offset, 0).map_err(wrap)?;
        repeat(|| self.file.read_at(buf, offset)).map_err(wrap)
    }

    fn read_vectored_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
        let wrap = |source| Error::new(Operation::Read, &self.path, source).at(offset);
        check_offset(offset, 0).map_err(wrap)?;
        repeat(|| rustix::io::preadv(&self.file, bufs, offset).map_err(io::Error::from)).map_err(wrap)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) {
        let wrap = |offset| move |source| Error::new(Operation::Read, &self.path, source).at(offset);
        // For a single part, a plain read is cheaper.
        if requests.len() > 1 && requests.iter().all(|request| check_offset(request.offset, 0).is_ok()) {
            let parts =
                requests.iter_mut().map(|request| (request.offset, &mut request.buffers[..])).collect();
            if let Some(results) = uring::read(self.file.as_fd(), parts) {
                debug_assert!(results.len() == requests.len());
                for (request, result) in requests.iter_mut().zip(results) {
                    request.result = result.map_err(wrap(request.offset));
                    debug_assert!(
                        request.result.as_ref().map_or(0, |count| *count)
                            <= request.buffers.iter().map(|buffer| buffer.len()).sum::<usize>(),
                        "the result is that of another read"
                    );
                }
                return;
            }
        }
        for request in requests {
            request.result = self.read_vectored_at(&mut request.buffers, request.offset);
        }
    }

    /// Buffered writes go one after the other: the kernel would hand each to a worker thread, which
    /// takes longer than the copy.
    fn write_batch(&self, requests: &mut [WriteRequest<'_>]) {
        let wrap = |offset| move |source| Error::new(Operation::Write, &self.path, source).at(offset);
        let may_overlap = self.direct && requests.len() > 1 && check_writable(self.access).is_ok();
        if may_overlap && requests.iter().all(|request| check_offset(request.offset, 0).is_ok()) {
            let parts = requests.iter().map(|request| (request.offset, request.bytes)).collect();
            if let Some(results) = uring::write(self.file.as_fd(), parts) {
                debug_assert!(results.len() == requests.len());
                for (request, result) in requests.iter_mut().zip(results) {
                    request.result = result.map_err(wrap(request.offset));
                    debug_assert!(
                        request.result.as_ref().map_or(0, |count| *count) <= request.bytes.len(),
                        "the result is that of another write"
                    );
                }
                return;
            }
        }
        for request in requests {
            request.result = self.write_at(request.bytes, request.offset);
        }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<usize> {
        let wrap = |source| Error::new(Operation::Write, &self.path, source).at(offset);
        check_writable(self.access).and_then(|()| check_offset(offset, 0)).map_err(wrap)?;
        debug_assert!(!(self.in_order && self.direct), "a file without offsets is open for direct I/O");
        if self.in_order {
            return repeat(|| (&self.file).write(buf)).map_err(wrap);
        }
        repeat(|| self.file.write_at(buf, offset)).map_err(wrap)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        check_writable(self.access)
            .and_then(|()| check_offset(len, 0))
            .and_then(|()| self.file.set_len(len))
            .map_err(self.wrap(Operation::SetLen))
    }

    /// Does nothing where the file system cannot reserve space (`EOPNOTSUPP`). The length does not
    /// change.
    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        let wrap = |source| Error::new(Operation::Allocate, &self.path, source).at(offset);
        check_writable(self.access).and_then(|()| check_offset(offset, len)).map_err(wrap)?;
        if len == 0 {
            return Ok(());
        }
        loop {
            match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, offset, len) {
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(wrap(errno.into())),
            }
        }
    }

    fn sync_data(&self) -> Result<()> {
        // A pipe has no medium, so the kernel would refuse to sync it.
        if self.in_order {
            return Ok(());
        }
        self.file.sync_data().map_err(self.wrap(Operation::SyncData))
    }

    fn try_lock(&self) -> Result<()> {
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(()),
            Err(errno) => Err(self.wrap(Operation::Lock)(errno.into())),
        }
    }

    fn direct_alignment(&self) -> u64 {
        let alignment = direct::alignment(self.file.as_fd(), self.id.device);
        debug_assert!(alignment.is_power_of_two() && alignment <= DIRECT_ALIGNMENT as u64, "{alignment}");
        alignment
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) {
        let advice = match advice {
            Advice::Normal => rustix::fs::Advice::Normal,
            Advice::Sequential => rustix::fs::Advice::Sequential,
            Advice::Random => rustix::fs::Advice::Random,
            Advice::WillNeed => rustix::fs::Advice::WillNeed,
            Advice::DontNeed => rustix::fs::Advice::DontNeed,
        };
        // The kernel takes a length of 0 as "to the end of the file"; here it means an empty range.
        if let Some(len) = NonZeroU64::new(len) {
            let _ = rustix::fs::fadvise(&self.file, offset, Some(len), advice);
        }
    }

    fn map(&self) -> Result<Map> {
        let len = self.len()?;
        Map::from_descriptor(self.file.as_fd(), len).map_err(self.wrap(Operation::Map))
    }

    /// Also returns `None` for direct I/O, which a mapping would bypass.
    fn append_region(&self, range: Range<u64>) -> Result<Option<Region>> {
        let wrap = |source| Error::new(Operation::Map, &self.path, source).at(range.start);
        check_writable(self.access).map_err(wrap)?;
        if self.direct {
            return Ok(None);
        }
        Region::from_descriptor(self.file.as_fd(), range.clone()).map_err(wrap)
    }
}

fn id_of(metadata: &fs::Metadata) -> FileId {
    FileId { device: metadata.dev(), inode: metadata.ino() }
}

/// Repeats a call that was interrupted by a signal before it did anything.
fn repeat<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests;
