//! Files for repeated reading, of which only a limited number is open at a time.
//!
//! A table or blob file is opened at its first read. From then on its reader keeps everything in
//! memory but the data itself. Beyond [`Options::open_files_max`](crate::Options::open_files_max)
//! the descriptor of the least recently read file is closed; the next read of that file opens it
//! again. When any other open of the store hits the process's limit, it closes descriptors here and
//! retries.
//!
//! ```text
//! Table ──► SharedFile ──► Handle { file? } ◄──weak── OpenFiles
//!                                                     a queue with a second chance for files read
//! ```

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use cairn_vfs::sync::atomic::{AtomicBool, Ordering::*};
use cairn_vfs::sync::{Arc, Mutex, Weak, lock};
use cairn_vfs::{Bug, ErrorKind, File, FileId, Fs, Metadata, OpenOptions};

use crate::swap::SwapOption;
use crate::{Error, Result};

/// The smallest limit: a merge reads from this many files at once.
pub(crate) const OPEN_FILES_MIN: usize = 8;

/// The highest default limit, however many files the process may open.
const OPEN_FILES_DEFAULT_MAX: usize = 1 << 16;

const _: () = assert!(0 < OPEN_FILES_MIN && OPEN_FILES_MIN <= OPEN_FILES_DEFAULT_MAX);

/// Number of descriptors to close when the process has none left.
const GIVE_BACK: usize = 8;

const _: () = assert!(0 < GIVE_BACK && GIVE_BACK <= OPEN_FILES_MIN, "the lowest limit lets as many be open");

/// The files that a store has open for reading.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    fs: Arc<dyn Fs>,
    max: usize,
    /// True for a reader, whose files a concurrent writer may remove.
    read_only: bool,
    turn: Mutex<VecDeque<Weak<Handle>>>,
}

/// A file's descriptor, while it is open.
#[derive(Debug)]
struct Handle {
    file: SwapOption<Box<dyn File>>,
    /// Set by a read, cleared when the file is passed over for eviction.
    was_read: AtomicBool,
}

/// Returns the default limit of descriptors for tables and blob files in a process that may open
/// `limit` files: three quarters of them, leaving enough for the log, the manifest and the output
/// of jobs.
fn default_max(limit: Option<u64>) -> usize {
    let limit = limit.map_or(OPEN_FILES_DEFAULT_MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let max = limit.saturating_sub((limit / 4).max(24)).clamp(OPEN_FILES_MIN, OPEN_FILES_DEFAULT_MAX);
    debug_assert!(
        max == OPEN_FILES_MIN || max <= limit - limit / 4,
        "{max} of {limit} files are for tables, which leaves too few for the log and for jobs"
    );
    max
}

impl OpenFiles {
    /// Allows at most `max` open files of `fs`. With `None`, the limit derives from that of the
    /// process.
    pub(crate) fn new(fs: Arc<dyn Fs>, max: Option<usize>, read_only: bool) -> Arc<Self> {
        let max = max.unwrap_or_else(|| default_max(cairn_vfs::open_files_limit()));
        debug_assert!(max >= OPEN_FILES_MIN, "at most {max} open files");
        Arc::new(OpenFiles { fs, max, read_only, turn: Mutex::default() })
    }

    /// Returns the same file system, wrapped so that it closes descriptors here when the process
    /// has none left.
    pub(crate) fn reclaiming(self: &Arc<Self>) -> Arc<dyn Fs> {
        Arc::new(Reclaiming { files: Arc::clone(self) })
    }

    /// Returns the number of open files.
    #[cfg(test)]
    fn open_count(&self) -> usize {
        let turn = lock(&self.turn);
        turn.iter().filter_map(Weak::upgrade).filter(|handle| handle.file.load().is_some()).count()
    }

    /// Runs `open`, which opens some file or directory. When the process has no descriptor left,
    /// closes files here and retries.
    fn with_room<T>(&self, open: impl Fn() -> cairn_vfs::Result<T>) -> cairn_vfs::Result<T> {
        // BOUND: each iteration closes some files, until none is open.
        loop {
            match open() {
                Err(error) if error.is_out_of_files() && self.give_back(&mut lock(&self.turn)) => {}
                result => return result,
            }
        }
    }

    /// Closes some files. Returns false if none was open.
    fn give_back(&self, turn: &mut VecDeque<Weak<Handle>>) -> bool {
        let mut closed = 0;
        while closed < GIVE_BACK
            && let Some(handle) = turn.pop_front()
        {
            if let Some(handle) = handle.upgrade() {
                handle.file.store(None);
                closed += 1;
            }
        }
        debug_assert!(
            closed == GIVE_BACK || turn.is_empty(),
            "only {closed} files were closed, but {} are left",
            turn.len()
        );
        closed > 0
    }

    /// Closes files until one more may be opened.
    fn make_room(&self, turn: &mut VecDeque<Weak<Handle>>) {
        debug_assert!(turn.len() <= self.max, "{} files were open, at most {}", turn.len(), self.max);
        // BOUND: a file gets a second chance only once, since `was_read` is then cleared.
        while turn.len() >= self.max
            && let Some(next) = turn.pop_front()
        {
            match next.upgrade() {
                Some(handle) if handle.was_read.swap(false, Relaxed) => turn.push_back(next),
                Some(handle) => handle.file.store(None),
                None => {}
            }
        }
        debug_assert!(turn.len() < self.max, "{} files are open, at most {}", turn.len(), self.max);
    }

    /// Opens `path` and stores the descriptor in `handle`.
    fn open(
        &self,
        path: &Path,
        options: OpenOptions,
        handle: &Arc<Handle>,
    ) -> cairn_vfs::Result<Arc<Box<dyn File>>> {
        let mut turn = lock(&self.turn);
        // Another thread may have opened it before this one got the lock.
        if let Some(file) = handle.file.load_full() {
            return Ok(file);
        }
        self.make_room(&mut turn);
        let file = loop {
            match self.fs.open(path, options) {
                Err(error) if error.is_out_of_files() && self.give_back(&mut turn) => {}
                result => break Arc::new(result?),
            }
        };
        handle.file.store(Some(Arc::clone(&file)));
        turn.push_back(Arc::downgrade(handle));
        debug_assert!(turn.len() <= self.max, "{} files are open, at most {}", turn.len(), self.max);
        Ok(file)
    }
}

/// A file that is opened on demand when it is read.
#[derive(Debug)]
pub(crate) struct SharedFile {
    /// Limits the open files and may close this one. `None` if the file stays open.
    files: Option<Arc<OpenFiles>>,
    handle: Arc<Handle>,
    path: PathBuf,
    options: OpenOptions,
    id: FileId,
    len: u64,
    direct_alignment: u64,
}

impl SharedFile {
    /// Opens `path` for reading, subject to the limit of `files`.
    pub(crate) fn open(files: &Arc<OpenFiles>, path: &Path, options: OpenOptions) -> Result<Self> {
        let handle = Arc::new(Handle { file: SwapOption::empty(), was_read: AtomicBool::new(true) });
        let file = files.open(path, options, &handle)?;
        SharedFile::new(Some(Arc::clone(files)), handle, &**file, options)
    }

    /// Wraps a file that stays open.
    pub(crate) fn owned(file: Box<dyn File>, options: OpenOptions) -> Result<Self> {
        let file = Arc::new(file);
        let handle = Arc::new(Handle { file: SwapOption::empty(), was_read: AtomicBool::new(true) });
        handle.file.store(Some(Arc::clone(&file)));
        SharedFile::new(None, handle, &**file, options)
    }

    fn new(
        files: Option<Arc<OpenFiles>>,
        handle: Arc<Handle>,
        file: &dyn File,
        options: OpenOptions,
    ) -> Result<Self> {
        debug_assert!(
            files.is_some() || handle.file.load().is_some(),
            "{} would be closed for good: nobody opens it again",
            file.path().display()
        );
        let (path, id, len) = (file.path().to_owned(), file.id(), file.len()?);
        let direct_alignment = if options.direct { file.direct_alignment() } else { 1 };
        Ok(SharedFile { files, handle, path, options, id, len, direct_alignment })
    }

    /// Returns the path by which the file was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length that the file had when it was first opened.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// See [`File::direct_alignment`].
    pub(crate) fn direct_alignment(&self) -> u64 {
        self.direct_alignment
    }

    /// Calls `work` with the open file. If the file was closed, this costs an open.
    ///
    /// Errors: those of `work` and of reopening; [`Error::Corruption`] if the path now names
    /// another file.
    #[inline]
    pub(crate) fn with<T>(&self, work: impl FnOnce(&dyn File) -> Result<T>) -> Result<T> {
        let open = self.handle.file.load();
        match &*open {
            Some(file) => {
                if !self.handle.was_read.load(Relaxed) {
                    self.handle.was_read.store(true, Relaxed);
                }
                work(&***file)
            }
            None => {
                drop(open);
                work(&**self.reopen()?)
            }
        }
    }

    #[cold]
    fn reopen(&self) -> Result<Arc<Box<dyn File>>> {
        let Some(files) = &self.files else {
            return Err(Bug::new(format!("{} was closed, but stays open", self.path.display())).into());
        };
        let file = files.open(&self.path, self.options, &self.handle).map_err(|error| match error.kind() {
            ErrorKind::NotFound if files.read_only => Error::Busy {
                what: format!(
                    "{} was removed by the writer of the store after this reader had opened and closed it; the reader closes files \
                     because the process may not open as many as the store has: refresh the reader, or raise the limit",
                    self.path.display()
                ),
            },
            _ => error.into(),
        })?;
        self.handle.was_read.store(true, Relaxed);
        if file.id() != self.id || file.len()? != self.len {
            self.handle.file.store(None);
            let what = "it was replaced by another file since it was first opened";
            return Err(Error::corruption(&self.path, 0, what));
        }
        Ok(file)
    }
}

/// A file system that closes descriptors of [`OpenFiles`] when the process has none left.
#[derive(Debug)]
struct Reclaiming {
    files: Arc<OpenFiles>,
}

impl Fs for Reclaiming {
    fn open(&self, path: &Path, options: OpenOptions) -> cairn_vfs::Result<Box<dyn File>> {
        self.files.with_room(|| self.files.fs.open(path, options))
    }

    fn open_stream(&self, path: &Path) -> cairn_vfs::Result<Box<dyn File>> {
        self.files.fs.open_stream(path)
    }

    fn follow(&self, path: &Path) -> cairn_vfs::Result<Option<PathBuf>> {
        self.files.fs.follow(path)
    }

    fn metadata(&self, path: &Path) -> cairn_vfs::Result<Metadata> {
        self.files.fs.metadata(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> cairn_vfs::Result<()> {
        self.files.fs.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> cairn_vfs::Result<()> {
        self.files.fs.hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> cairn_vfs::Result<()> {
        self.files.fs.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> cairn_vfs::Result<()> {
        self.files.fs.remove_dir(path)
    }

    fn create_dir_all(&self, path: &Path) -> cairn_vfs::Result<()> {
        self.files.fs.create_dir_all(path)
    }

    fn read_dir(&self, path: &Path) -> cairn_vfs::Result<Vec<PathBuf>> {
        self.files.with_room(|| self.files.fs.read_dir(path))
    }

    fn sync_dir(&self, path: &Path) -> cairn_vfs::Result<()> {
        self.files.with_room(|| self.files.fs.sync_dir(path))
    }

    fn exists(&self, path: &Path) -> cairn_vfs::Result<bool> {
        self.files.fs.exists(path)
    }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::MemFs;

    use super::*;

    fn made(fs: &MemFs, count: usize) -> Vec<PathBuf> {
        let paths: Vec<_> = (0..count).map(|number| PathBuf::from(format!("file{number}"))).collect();
        for (number, path) in paths.iter().enumerate() {
            fs.open(path, OpenOptions::create_new()).unwrap().write_all_at(&[number as u8; 10], 0).unwrap();
        }
        paths
    }

    fn first_byte(file: &SharedFile) -> Result<u8> {
        file.with(|file| {
            let mut byte = [0];
            file.read_exact_at(&mut byte, 0)?;
            Ok(byte[0])
        })
    }

    /// Goal: the number of open files stays within the limit, every file can still be read, and
    /// frequently read files stay open. Method: a hundred files with a limit of ten; one file is
    /// read between the reads of all others.
    #[test]
    fn only_so_many_are_open() {
        let fs = MemFs::new();
        let paths = made(&fs, 100);
        let files = OpenFiles::new(Arc::new(fs), Some(10), false);
        let all: Vec<_> =
            paths.iter().map(|path| SharedFile::open(&files, path, OpenOptions::read()).unwrap()).collect();
        for round in 0..3 {
            for (number, file) in all.iter().enumerate() {
                assert_eq!(first_byte(file).unwrap(), number as u8, "round {round}");
                assert_eq!(first_byte(&all[7]).unwrap(), 7);
                assert!(files.open_count() <= 10);
                assert!(all[7].handle.file.load().is_some());
            }
        }
        drop(all);
        assert_eq!(files.open_count(), 0);
    }

    /// Goal: a file that was replaced while it was closed is not mistaken for the original. Method:
    /// a limit of eight; one file is replaced by another of the same length, and one is removed,
    /// which is reported as well.
    #[test]
    fn a_replaced_file_is_noticed() {
        for read_only in [false, true] {
            let fs = MemFs::new();
            let paths = made(&fs, 10);
            let files = OpenFiles::new(Arc::new(fs.clone()), Some(8), read_only);
            let all: Vec<_> = paths
                .iter()
                .map(|path| SharedFile::open(&files, path, OpenOptions::read()).unwrap())
                .collect();
            all[0].handle.file.store(None);
            all[1].handle.file.store(None);
            fs.rename(&paths[5], &paths[0]).unwrap();
            fs.remove(&paths[1]).unwrap();
            assert_eq!(first_byte(&all[0]).unwrap_err().kind(), ErrorKind::Corruption);
            let kind = if read_only { ErrorKind::Busy } else { ErrorKind::NotFound };
            assert_eq!(first_byte(&all[1]).unwrap_err().kind(), kind);
            assert_eq!(first_byte(&all[5]).unwrap(), 5, "it is open");
        }
    }

    /// Goal: the default leaves room for the rest of the store, whatever the limit.
    #[test]
    fn defaults() {
        let of = |limit| default_max(Some(limit));
        assert_eq!([of(16), of(64), of(1024), of(u64::MAX)], [8, 40, 768, OPEN_FILES_DEFAULT_MAX]);
    }
}
