//! Files that are read again and again, of which only so many are open at a time.
//!
//! A table or a blob file is opened when it is first read, and from then on its reader knows all
//! that it needs but the bytes. Beyond [`Options::open_files_max`](crate::Options::open_files_max)
//! the one that was not read for longest gives its descriptor up; when it is read again, it is
//! opened again. Whatever else the store opens, and meets the process's limit in doing so, takes
//! descriptors away from here and tries again.
//!
//! ```text
//! Table ──► SharedFile ──► Handle { file? } ◄──weak── OpenFiles   in the order of their turn, second chance for what was read
//! ```

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use cairn_vfs::sync::atomic::{AtomicBool, Ordering::*};
use cairn_vfs::sync::{Arc, Mutex, Weak, lock};
use cairn_vfs::{ErrorKind, File, FileId, Fs, Metadata, OpenOptions};

use crate::swap::SwapOption;
use crate::{Error, Result};

/// Fewer make no sense: a merge reads from as many at once.
pub(crate) const OPEN_FILES_MIN: usize = 8;

/// More than these are not kept open by default, whatever the process may have.
const OPEN_FILES_DEFAULT_MAX: usize = 1 << 16;

/// How many descriptors are given back at once where the process has no more.
const GIVE_BACK: usize = 8;

/// The files of a store that are open for reading.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    fs: Arc<dyn Fs>,
    max: usize,
    /// A writer beside us may remove what we read.
    read_only: bool,
    turn: Mutex<VecDeque<Weak<Handle>>>,
}

/// The descriptor of a file, while it has one.
#[derive(Debug)]
struct Handle {
    file: SwapOption<Box<dyn File>>,
    /// Since its last turn.
    was_read: AtomicBool,
}

/// How many descriptors tables and blob files have by default, in a process that may have `limit`:
/// three quarters, and enough left for log, manifest and what jobs write.
fn default_max(limit: Option<u64>) -> usize {
    let limit = limit.map_or(OPEN_FILES_DEFAULT_MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    limit.saturating_sub((limit / 4).max(24)).clamp(OPEN_FILES_MIN, OPEN_FILES_DEFAULT_MAX)
}

impl OpenFiles {
    /// At most `max` files of `fs`; by default, what suits the process.
    pub(crate) fn new(fs: Arc<dyn Fs>, max: Option<usize>, read_only: bool) -> Arc<Self> {
        let max = max.unwrap_or_else(|| default_max(cairn_vfs::open_files_limit()));
        Arc::new(OpenFiles { fs, max, read_only, turn: Mutex::default() })
    }

    /// The same file system, which takes descriptors from here where the process has no more.
    pub(crate) fn reclaiming(self: &Arc<Self>) -> Arc<dyn Fs> {
        Arc::new(Reclaiming { files: Arc::clone(self) })
    }

    /// How many have a descriptor.
    #[cfg(test)]
    fn open_count(&self) -> usize {
        let turn = lock(&self.turn);
        turn.iter().filter_map(Weak::upgrade).filter(|handle| handle.file.load().is_some()).count()
    }

    /// Runs `open`, which opens something; where the process has no descriptor for it, with ones
    /// that are given back here.
    fn with_room<T>(&self, open: impl Fn() -> cairn_vfs::Result<T>) -> cairn_vfs::Result<T> {
        // BOUND: each turn gives some back, until there are none.
        loop {
            match open() {
                Err(error) if error.is_out_of_files() && self.give_back(&mut lock(&self.turn)) => {}
                result => return result,
            }
        }
    }

    /// Closes some files; false when none is open.
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
        closed > 0
    }

    /// Makes room for one more.
    fn make_room(&self, turn: &mut VecDeque<Weak<Handle>>) {
        // BOUND: whatever gets a second chance has none the next time round.
        while turn.len() >= self.max
            && let Some(next) = turn.pop_front()
        {
            match next.upgrade() {
                Some(handle) if handle.was_read.swap(false, Relaxed) => turn.push_back(next),
                Some(handle) => handle.file.store(None),
                None => {}
            }
        }
    }

    /// Opens `path` and lets `handle` have it.
    fn open(
        &self,
        path: &Path,
        options: OpenOptions,
        handle: &Arc<Handle>,
    ) -> cairn_vfs::Result<Arc<Box<dyn File>>> {
        let mut turn = lock(&self.turn);
        // Another thread may have been here.
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
        Ok(file)
    }
}

/// A file that is open when it is read.
#[derive(Debug)]
pub(crate) struct SharedFile {
    /// Who closes it; without, it stays open.
    files: Option<Arc<OpenFiles>>,
    handle: Arc<Handle>,
    path: PathBuf,
    options: OpenOptions,
    id: FileId,
    len: u64,
    direct_alignment: u64,
}

impl SharedFile {
    /// Opens `path` for reading, as one of `files`.
    pub(crate) fn open(files: &Arc<OpenFiles>, path: &Path, options: OpenOptions) -> Result<Self> {
        let handle = Arc::new(Handle { file: SwapOption::empty(), was_read: AtomicBool::new(true) });
        let file = files.open(path, options, &handle)?;
        SharedFile::new(Some(Arc::clone(files)), handle, &**file, options)
    }

    /// A file that stays open.
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
        let (path, id, len) = (file.path().to_owned(), file.id(), file.len()?);
        let direct_alignment = if options.direct { file.direct_alignment() } else { 1 };
        Ok(SharedFile { files, handle, path, options, id, len, direct_alignment })
    }

    /// The path it was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its length when it was opened first.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// See [`File::direct_alignment`].
    pub(crate) fn direct_alignment(&self) -> u64 {
        self.direct_alignment
    }

    /// Hands the open file to `work`. Costs an open where it was closed.
    ///
    /// Errors: of `work`; of opening it again; [`Error::Corruption`] when another file has its name
    /// by then.
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
            return Err(Error::invalid(format!("{} is closed", self.path.display())));
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

/// A file system that takes descriptors from [`OpenFiles`] where there are no more.
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

    /// Goal: no more files are open than may be, all are read all the same, and those that are read
    /// often stay open. Method: a hundred files and room for ten; one of them read in between all
    /// others.
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

    /// Goal: a file that another one has replaced while it was closed is not taken for the first.
    /// Method: room for eight, and a copy with the same length; one that is gone is told of.
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
