//! The state that threads share: that of the pool, and that of each open file.
//!
//! The two refer to each other. An eviction finds the file of its victim through the pool, and a
//! file takes frames from the pool.

use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

use cairn_vfs::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use cairn_vfs::sync::{Arc, CacheAligned, Mutex, RwLock, lock, read, write};
use cairn_vfs::{Bug, Clock, File};

use crate::arena::Arena;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::hits::Stripes;
use crate::journal::Journal;
use crate::latch::Released;
use crate::page::{Frame, PageId};
use crate::parking::Parking;
use crate::replacer::{PoolFrames, Replacer, latch_key};
use crate::signal::Signal;
use crate::staging::Staging;
use crate::stats::{Counters, Stats};
use crate::translation::Translation;
use crate::write_ahead::WriteAhead;

/// The state shared by threads. The fields of the hit path come first; frequently changing fields
/// have cache lines of their own.
pub(crate) struct PoolState {
    pub(crate) arena: Arena,
    /// The maximum value of marks; 0 when hits are logged.
    pub(crate) max_mark: u8,
    pub(crate) stripes: Stripes,
    pub(crate) replacer: Replacer,
    pub(crate) parking: Parking,
    pub(crate) clock: StdArc<dyn Clock>,
    pub(crate) wait_limit: Duration,
    pub(crate) counters: Counters,
    /// Number of frames that are dirty or being written.
    pub(crate) dirty: CacheAligned<AtomicUsize>,
    /// The number of dirty frames that wakes the background writer.
    pub(crate) dirty_high: AtomicUsize,
    /// Number of frames of the pool; later frames of the arena are unused.
    pub(crate) frames: AtomicUsize,
    pub(crate) max_frames: usize,
    pub(crate) background_share: Option<f64>,
    pub(crate) files: RwLock<Files>,
    /// Serialises resizes.
    pub(crate) resizing: Mutex<()>,
    /// Recycled buffers for pages being written.
    pub(crate) staging: Mutex<Vec<Staging>>,
    pub(crate) signal: Signal,
}

/// The files by number.
#[derive(Default)]
pub(crate) struct Files {
    open: Vec<Option<Arc<FileState>>>,
    /// Numbers of closed files without remaining references. A page's file is identified by the
    /// number alone, so a number must not be reused earlier.
    unused: Vec<u32>,
}

/// The pool's state of a file.
pub struct FileState {
    /// The file's number in the pool. It is not reused while any reference to this file exists,
    /// whether the file is closed or not.
    pub(crate) number: u32,
    pub(crate) pool: Arc<PoolState>,
    pub(crate) translation: Translation,
    pub(crate) format: Format,
    pub(crate) file: Box<dyn File>,
    pub(crate) write_ahead: Option<StdArc<dyn WriteAhead>>,
    pub(crate) journal: Option<Mutex<Journal>>,
    /// Serialises syncs until their result is known. The kernel reports a failure only once, so a
    /// second sync beside a failing one would succeed.
    syncing: Mutex<()>,
    poison: Mutex<Option<Arc<Error>>>,
    is_poisoned: AtomicBool,
}

impl Files {
    /// Adds an open file with a number that no other file has. Errors: [`Error::Invalid`] when all
    /// numbers are in use.
    pub(crate) fn add(&mut self, make: impl FnOnce(u32) -> Arc<FileState>) -> Result<Arc<FileState>> {
        let number = match self.unused.pop() {
            Some(number) => number,
            None => {
                let number = u32::try_from(self.open.len())
                    .map_err(|_| Error::invalid("there are too many files in the pool"))?;
                debug_assert!(PageId::new(number, u32::MAX) != PageId::NONE);
                self.open.push(None);
                number
            }
        };
        // Before the file is made: dropping it takes the lock that the caller holds.
        let Some(place) = self.open.get_mut(number as usize).filter(|place| place.is_none()) else {
            return Err(Bug::new(format!("file number {number} is in use, expected a free one")).into());
        };
        let file = make(number);
        debug_assert!(file.number == number);
        *place = Some(Arc::clone(&file));
        Ok(file)
    }
}

impl PoolState {
    /// Records that a page was found resident.
    #[inline]
    pub(crate) fn note_hit(&self, frame: Frame, page: PageId) {
        let stripe = self.stripes.own();
        stripe.count();
        if self.max_mark != 0 {
            let mark = &self.arena.header(frame).mark;
            // The mark of a page that was read ahead becomes 0.
            let next = mark.load(Relaxed).wrapping_add(1);
            debug_assert!(next <= self.max_mark.saturating_add(1), "a mark of {}", next.wrapping_sub(1));
            // A mark at its maximum is not written, so that threads sharing a hot page keep its
            // cache line.
            if next <= self.max_mark {
                mark.store(next, Relaxed);
            }
        } else if stripe.collect(frame, page) {
            self.apply_own_hits();
        }
    }

    #[cold]
    fn apply_own_hits(&self) {
        self.stripes.own().pace(self.replacer.admitted());
        if let Ok(mut state) = self.replacer.state.try_lock() {
            state.apply_hits(self.stripes.own(), &self.arena);
        }
    }

    pub(crate) fn pool_frames(&self, only_clean: bool) -> PoolFrames<'_> {
        PoolFrames { arena: &self.arena, parking: &self.parking, only_clean, reads_ahead: false }
    }

    /// Counts a frame that has become dirty.
    #[inline]
    pub(crate) fn count_dirty(&self) {
        let before = self.dirty.fetch_add(1, Relaxed);
        if before == self.dirty_high.load(Relaxed) {
            self.signal.wake();
        }
    }

    pub(crate) fn count_clean(&self) {
        // A frame is counted as dirty before its latch is released, and no write begins earlier.
        let before = self.dirty.fetch_sub(1, Relaxed);
        assert!(before != 0, "more frames become clean than have become dirty");
    }

    /// Returns an open file.
    pub(crate) fn file(&self, number: u32) -> Option<Arc<FileState>> {
        read(&self.files).open.get(number as usize).cloned().flatten()
    }

    pub(crate) fn open_files(&self) -> Vec<Arc<FileState>> {
        read(&self.files).open.iter().flatten().cloned().collect()
    }

    /// Removes the file from the table. Threads that still hold it, such as a flush of all files,
    /// continue with it.
    pub(crate) fn remove_file(&self, number: u32) {
        let forgotten = write(&self.files).open.get_mut(number as usize).and_then(Option::take);
        debug_assert!(forgotten.is_some(), "file {number} leaves the pool twice");
        // Dropped outside the lock, because dropping the last reference to a file takes the lock.
        drop(forgotten);
    }

    /// Returns the number of a file that has no references left.
    pub(crate) fn recycle_number(&self, number: u32) {
        let mut files = write(&self.files);
        debug_assert!(!files.unused.contains(&number), "file number {number} is free already");
        debug_assert!(matches!(files.open.get(number as usize), Some(None)), "file {number} is open");
        files.unused.push(number);
    }

    /// Wakes threads that wait for the frame's latch or for any frame.
    #[inline]
    pub(crate) fn wake_after_release(&self, frame: Frame, released: Released) {
        if released == Released::HasWaiters {
            let latch = &self.arena.header(frame).latch;
            self.parking.wake(latch_key(frame), || latch.forget_waiters());
        }
        if self.replacer.has_frame_waiters() {
            self.replacer.notify_next();
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let frames = self.frames.load(Relaxed);
        let state = lock(&self.replacer.state);
        let resident = state.policy.len();
        drop(state);
        let dirty = self.dirty.load(Relaxed);
        let (hits, misses, evictions) = (self.stripes.hits(), self.stripes.misses(), self.replacer.evicted());
        Stats { hits, misses, evictions, frames, resident, dirty, ..self.counters.stats() }
    }
}

impl FileState {
    pub(crate) fn new(
        number: u32,
        pool: Arc<PoolState>,
        file: Box<dyn File>,
        format: Format,
        write_ahead: Option<StdArc<dyn WriteAhead>>,
        journal: Option<Journal>,
    ) -> Self {
        FileState {
            number,
            pool,
            translation: Translation::new(),
            format,
            file,
            write_ahead,
            journal: journal.map(Mutex::new),
            syncing: Mutex::new(()),
            poison: Mutex::new(None),
            is_poisoned: AtomicBool::new(false),
        }
    }

    pub(crate) fn id(&self, page: u32) -> PageId {
        PageId::new(self.number, page)
    }

    pub(crate) fn offset(&self, page: u32) -> u64 {
        u64::from(page) * self.pool.arena.page_size() as u64
    }

    /// Fails with [`Error::Poisoned`] after a failed sync.
    pub(crate) fn check_poison(&self) -> Result<()> {
        if !self.is_poisoned.load(Acquire) {
            return Ok(());
        }
        match lock(&self.poison).clone() {
            Some(cause) => Err(Error::Poisoned { file: self.file.path().to_owned(), cause }),
            None => Err(Bug::new("the file is poisoned without a cause").into()),
        }
    }

    /// Records a failed sync. From now on, no page is written or read from disk.
    fn poison(&self, error: Error) -> Error {
        lock(&self.poison).get_or_insert_with(|| Arc::new(error.clone()));
        self.is_poisoned.store(true, Release);
        error
    }

    pub(crate) fn sync(&self) -> Result<()> {
        let _one = lock(&self.syncing);
        self.check_poison()?;
        self.file.sync_data().map_err(|error| self.poison(error.into()))
    }
}

impl Drop for FileState {
    fn drop(&mut self) {
        self.pool.recycle_number(self.number);
    }
}

impl fmt::Debug for PoolState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolState").field("arena", &self.arena).finish_non_exhaustive()
    }
}

impl fmt::Debug for FileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolFile")
            .field("number", &self.number)
            .field("path", &self.file.path())
            .finish_non_exhaustive()
    }
}
