//! The pool itself: the state that all files share.

use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

use cairn_vfs::sync::atomic::{AtomicUsize, Ordering::*};
use cairn_vfs::sync::{Arc, CacheAligned, Mutex, RwLock, lock, read, write};
use cairn_vfs::{Clock, File, SystemClock};

use crate::arena::Arena;
use crate::background::Background;
use crate::error::{Error, Result};
use crate::file::{FileOptions, FileState, PoolFile};
use crate::hits::Stripes;
use crate::journal::Journal;
use crate::latch::Released;
use crate::options::{BackgroundWriter, Options, check_frames};
use crate::page::{Frame, PageId};
use crate::parking::Parking;
use crate::policy::{Hits, Policy, PolicyKind};
use crate::replacer::{PoolFrames, Replacer, Taken, latch_key};
use crate::stats::{Counters, Stats};
use crate::write_ahead::Lsn;
use crate::write_back::Staging;

/// A buffer pool for pages of files. Cheap to clone; clones share one pool.
#[derive(Clone)]
pub struct Pool {
    pub(crate) inner: Arc<Inner>,
    /// Stops the background writer when the last clone and the last file are gone.
    background: Option<Arc<Background>>,
}

/// Builds a pool: see [`Pool::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    options: Options,
    clock: StdArc<dyn Clock>,
}

/// The state shared by threads. The fields of the hit path come first; frequently changing fields
/// have cache lines of their own.
pub(crate) struct Inner {
    pub(crate) arena: Arena,
    /// The maximum value of marks; 0 when hits are logged.
    max_mark: u8,
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
    max_frames: usize,
    background_share: Option<f64>,
    files: RwLock<Files>,
    /// Serialises resizes.
    resizing: Mutex<()>,
    /// Recycled buffers for pages being written.
    pub(crate) staging: Mutex<Vec<Staging>>,
    pub(crate) signal: crate::background::Signal,
}

/// The files by number.
#[derive(Default)]
struct Files {
    open: Vec<Option<Arc<FileState>>>,
    /// Numbers of closed files without remaining references. A page's file is identified by the
    /// number alone, so a number must not be reused earlier.
    unused: Vec<u32>,
}

impl Builder {
    /// Sets the page size in bytes: a power of two from 4 to 64 KiB. Default 4 KiB.
    pub fn page_size(mut self, bytes: usize) -> Self {
        self.options.page_size = bytes;
        self
    }

    /// Sets the number of pages kept in memory. Default 16384.
    pub fn frames(mut self, frames: usize) -> Self {
        self.options.frames = frames;
        self
    }

    /// Sets the largest number of frames that a resize may set later. Default 16 times `frames`.
    pub fn max_frames(mut self, frames: usize) -> Self {
        self.options.max_frames = Some(frames);
        self
    }

    /// Sets the replacement policy.
    pub fn policy(mut self, policy: PolicyKind) -> Self {
        self.options.policy = policy;
        self
    }

    /// Sets how long a thread waits for a frame or a page held by others. Default 10 s.
    pub fn wait_limit(mut self, limit: Duration) -> Self {
        self.options.wait_limit = limit;
        self
    }

    /// Sets when dirty pages are written ahead of need.
    pub fn background_writer(mut self, writer: BackgroundWriter) -> Self {
        self.options.background_writer = writer;
        self
    }

    /// Sets the clock for measuring waits, for tests that control time.
    pub fn clock(mut self, clock: StdArc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Creates the pool and faults its memory in. Errors: [`Error::Invalid`] for a setting,
    /// [`Error::Memory`].
    pub fn build(self) -> Result<Pool> {
        let Builder { options, clock } = self;
        options.check()?;
        Pool::with_policy(options, clock, |kind, frames| kind.build(frames))
    }
}

impl Pool {
    /// Returns a builder with default settings.
    pub fn builder() -> Builder {
        Builder { options: Options::default(), clock: StdArc::new(SystemClock::new()) }
    }

    fn with_policy(
        options: Options,
        clock: StdArc<dyn Clock>,
        build: impl FnOnce(PolicyKind, usize) -> Box<dyn Policy>,
    ) -> Result<Pool> {
        let (frames, max_frames) = (options.frames, options.max_frames());
        let what = || format!("{frames} frames of {} bytes", options.page_size);
        // Before the policy, whose tables would be wasted if there is no memory for the frames.
        let arena = Arena::new(max_frames, options.page_size).map_err(Error::memory(what()))?;
        let policy = build(options.policy, frames);
        let max_mark = match policy.hits() {
            Hits::Marked { max } => max,
            Hits::Logged => 0,
        };
        let background_share = match options.background_writer {
            BackgroundWriter::Off => None,
            BackgroundWriter::Above(share) => Some(share),
        };
        let inner = Arc::new(Inner {
            arena,
            max_mark,
            stripes: Stripes::new(max_mark == 0),
            replacer: Replacer::new(policy),
            parking: Parking::new(),
            clock,
            wait_limit: options.wait_limit,
            counters: Counters::default(),
            dirty: CacheAligned::default(),
            dirty_high: AtomicUsize::new(usize::MAX),
            frames: AtomicUsize::new(0),
            max_frames,
            background_share,
            files: RwLock::default(),
            resizing: Mutex::new(()),
            staging: Mutex::new(Vec::new()),
            signal: crate::background::Signal::default(),
        });
        inner.grow(0, frames)?;
        let background = background_share.map(|_| Background::start(&inner)).transpose()?;
        Ok(Pool { inner, background: background.map(Arc::new) })
    }

    /// Adds a file to the pool. With a double write, pages torn by a power loss are restored first.
    ///
    /// The pool must have exclusive use of the file: changes made to it by others are not seen.
    /// Errors: [`Error::Vfs`]; [`Error::Invalid`] for a double write with another page size or
    /// owner.
    pub fn open(&self, file: Box<dyn File>, mut options: FileOptions) -> Result<PoolFile> {
        let (page_size, format, owner) = (self.page_size(), options.format, options.owner);
        // Before taking the lock, since this reads copies, writes them to their pages and syncs
        // them.
        let journal = options
            .double_write
            .take()
            .map(|journal| Journal::open(journal, &*file, page_size, format, owner))
            .transpose()?;
        let state = write(&self.inner.files).add(|number| {
            Arc::new(FileState::new(number, Arc::clone(&self.inner), file, journal, options))
        })?;
        Ok(PoolFile { state, _background: self.background.clone() })
    }

    /// Returns the page size in bytes.
    pub fn page_size(&self) -> usize {
        self.inner.arena.page_size()
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// Returns the replacement policy.
    pub fn policy(&self) -> PolicyKind {
        lock(&self.inner.replacer.state).policy.kind()
    }

    /// Writes every dirty page of every file. Errors: the first one of [`PoolFile::flush`]; the
    /// other files are written anyway.
    pub fn flush(&self) -> Result<()> {
        self.inner.open_files().iter().map(|file| file.flush()).fold(Ok(()), Result::and)
    }

    /// Returns the LSN at which recovery would have to begin: that of the oldest change that exists
    /// in memory only. `None` when all logged changes are written. For the log's checkpoint;
    /// written pages are durable after [`PoolFile::sync`].
    ///
    /// Changes made during this call may not be included. Read the log's end before the call, and
    /// take the smaller of the two.
    pub fn oldest_change(&self) -> Option<Lsn> {
        let frames = self.inner.frames.load(Acquire) as Frame;
        (0..frames).filter_map(|frame| self.inner.arena.header(frame).first_lsn()).min()
    }

    /// Changes the number of frames. To shrink, writes and drops the pages of the removed frames,
    /// and waits for guards of them.
    ///
    /// Errors: [`Error::Invalid`] above `max_frames`, [`Error::Memory`], [`Error::Timeout`] when a
    /// page to be dropped is held, and those of writing; the number of frames then stays as it was.
    pub fn resize(&self, frames: usize) -> Result<()> {
        check_frames("frames", frames)?;
        let inner = &self.inner;
        if frames > inner.max_frames {
            let most = inner.max_frames;
            return Err(Error::invalid(format!(
                "frames is {frames}, expected at most {most}, the max_frames that the pool was made with"
            )));
        }
        let _one = lock(&inner.resizing);
        let now = inner.frames.load(Acquire);
        if frames > now { inner.grow(now, frames) } else { inner.shrink(now, frames) }
    }
}

impl Files {
    /// Adds an open file with a number that no other file has. Errors: [`Error::Invalid`] when all
    /// numbers are in use.
    fn add(&mut self, make: impl FnOnce(u32) -> Arc<FileState>) -> Result<Arc<FileState>> {
        let number = match self.unused.pop() {
            Some(number) => number,
            None => {
                let number = u32::try_from(self.open.len())
                    .map_err(|_| Error::invalid("there are too many files in the pool"))?;
                self.open.push(None);
                number
            }
        };
        let file = make(number);
        if let Some(place) = self.open.get_mut(number as usize) {
            *place = Some(Arc::clone(&file));
        }
        Ok(file)
    }
}

impl Inner {
    /// Records that a page was found resident.
    #[inline]
    pub(crate) fn note_hit(&self, frame: Frame, page: PageId) {
        let stripe = self.stripes.own();
        stripe.count();
        if self.max_mark != 0 {
            let mark = &self.arena.header(frame).mark;
            // The mark of a page that was read ahead becomes 0.
            let next = mark.load(Relaxed).wrapping_add(1);
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
        self.dirty.fetch_sub(1, Relaxed);
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
        // Dropped outside the lock, because dropping the last reference to a file takes the lock.
        drop(forgotten);
    }

    /// Returns the number of a file that has no references left.
    pub(crate) fn recycle_number(&self, number: u32) {
        write(&self.files).unused.push(number);
    }

    /// Returns a frame for `incoming`, with its latch held and without a page. Waits when all
    /// frames are pinned.
    ///
    /// Errors: [`Error::Exhausted`]; those of writing, when the victims were dirty and no clean
    /// page could be evicted instead.
    pub(crate) fn take_frame(&self, file: &FileState, incoming: PageId) -> Result<Frame> {
        let mut failure = None;
        self.stripes.own().miss();
        loop {
            let taken = {
                let mut state = lock(&self.replacer.state);
                state.apply_hits(self.stripes.own(), &self.arena);
                state.take(incoming, &self.pool_frames(failure.is_some()))
            };
            let taken = match (taken, failure.take()) {
                (Some(taken), _) => taken,
                (None, Some(error)) => return Err(error),
                (None, None) => self.wait_for_frame(incoming)?,
            };
            match self.vacate(file, taken) {
                Ok(()) => return Ok(taken.frame),
                // The page that could not be written stays. A clean one may be evicted instead.
                Err(error) => failure = Some(error),
            }
        }
    }

    /// Like [`Inner::take_frame`], for reading ahead: takes only a frame that is available at once,
    /// and not from pages that will be used sooner. Also returns `None` when the victim could not
    /// be written.
    pub(crate) fn try_take_frame(&self, file: &FileState, incoming: PageId) -> Option<Frame> {
        let taken = {
            let mut state = lock(&self.replacer.state);
            state.apply_hits(self.stripes.own(), &self.arena);
            state.take(incoming, &PoolFrames { reads_ahead: true, ..self.pool_frames(false) })?
        };
        self.vacate(file, taken).is_ok().then_some(taken.frame)
    }

    /// Evicts the victim from a frame.
    fn vacate(&self, file: &FileState, taken: Taken) -> Result<()> {
        let Some(page) = taken.victim else { return Ok(()) };
        let evicted = if page.file() == file.number {
            file.evict(page.page(), taken.frame)
        } else {
            // If the file is gone, so are its pages: files leave the pool after their pages.
            self.file(page.file()).map_or(Ok(()), |file| file.evict(page.page(), taken.frame))
        };
        if evicted.is_err() {
            lock(&self.replacer.state).reinstate(taken.frame, page, &self.pool_frames(false));
            self.release_exclusive(taken.frame);
        }
        evicted
    }

    #[cold]
    fn wait_for_frame(&self, incoming: PageId) -> Result<Taken> {
        let start = self.clock.now();
        let mut state = lock(&self.replacer.state);
        let waiter = self.replacer.join_queue(&mut state);
        loop {
            let taken = state.take_in_turn(&waiter, incoming, &self.pool_frames(false));
            let waited = self.clock.now().saturating_sub(start);
            let left = self.wait_limit.saturating_sub(waited);
            if taken.is_some() || left.is_zero() {
                self.replacer.leave_queue(&mut state, &waiter);
                self.counters.waited_for_frame(waited);
                let frames = self.frames.load(Relaxed);
                return taken.ok_or(Error::Exhausted { frames, waited });
            }
            drop(state);
            waiter.wait(left);
            state = lock(&self.replacer.state);
        }
    }

    /// Releases a frame's exclusive latch and wakes threads that wait for it or for any frame.
    pub(crate) fn release_exclusive(&self, frame: Frame) {
        let header = self.arena.header(frame);
        if header.latch.release_exclusive() == Released::HasWaiters {
            self.parking.wake(latch_key(frame), || header.latch.forget_waiters());
        }
        if self.replacer.has_frame_waiters() {
            self.replacer.notify_next();
        }
    }

    /// Returns a frame into which no page could be read; its latch is held.
    pub(crate) fn return_frame(&self, frame: Frame) {
        let mut state = lock(&self.replacer.state);
        state.policy.remove(frame);
        drop(state);
        self.wake_latch_waiters(frame);
        self.replacer.return_frame(frame);
    }

    /// Wakes threads that wait for a frame's latch while it stays held, because their page has left
    /// the frame.
    pub(crate) fn wake_latch_waiters(&self, frame: Frame) {
        let header = self.arena.header(frame);
        if header.latch.has_waiters() {
            self.parking.wake(latch_key(frame), || header.latch.forget_waiters());
        }
    }

    fn set_frames(&self, frames: usize) {
        self.frames.store(frames, Release);
        let high = self.background_share.map_or(usize::MAX, |share| (share * frames as f64) as usize);
        self.dirty_high.store(high, Relaxed);
    }

    fn grow(&self, from: usize, to: usize) -> Result<()> {
        let what = || format!("{to} frames of {} bytes", self.arena.page_size());
        self.arena.populate(from..to).map_err(|error| Error::memory(what())(error))?;
        for frame in from..to {
            let header = self.arena.header(frame as Frame);
            header.set_page(PageId::NONE);
            // A frame without a page is latched by its current holder. Frames from an earlier,
            // larger size of the pool are latched already.
            header.latch.try_exclusive();
        }
        // Before any of them is handed out: a flush or checkpoint that visits all frames must not
        // miss a page in them.
        self.set_frames(to);
        let mut state = lock(&self.replacer.state);
        // Lower numbers are handed out first.
        state.free.splice(0..0, (from as Frame..to as Frame).rev());
        state.policy.resize(to);
        drop(state);
        self.replacer.notify_next();
        Ok(())
    }

    fn shrink(&self, from: usize, to: usize) -> Result<()> {
        let mut emptied = Vec::with_capacity(from - to);
        {
            let mut state = lock(&self.replacer.state);
            state.free.retain(|&frame| {
                let stays = (frame as usize) < to;
                if !stays {
                    emptied.push(frame);
                }
                stays
            });
        }
        let mut is_empty = vec![false; from - to];
        emptied.iter().for_each(|&frame| is_empty[frame as usize - to] = true);
        for frame in to as Frame..from as Frame {
            if is_empty[frame as usize - to] {
                continue;
            }
            if let Err(error) = self.empty_frame(frame) {
                let mut state = lock(&self.replacer.state);
                state.free.extend(emptied);
                drop(state);
                self.replacer.notify_next();
                return Err(error);
            }
            emptied.push(frame);
        }
        let mut state = lock(&self.replacer.state);
        emptied.iter().for_each(|&frame| state.policy.remove(frame));
        state.policy.resize(to);
        drop(state);
        self.set_frames(to);
        self.arena.release_latched(to..from);
        Ok(())
    }

    /// Empties a frame that is to be removed: evicts its page, or takes the frame from the free
    /// list if it has got there meanwhile. Its latch is held afterwards.
    fn empty_frame(&self, frame: Frame) -> Result<()> {
        loop {
            let page = self.arena.header(frame).page();
            let file = self.file(page.file());
            let Some(file) = file.filter(|_| page != PageId::NONE) else {
                // Between two pages: the thread that holds the frame will return it or publish a
                // page.
                let mut state = lock(&self.replacer.state);
                if let Some(at) = state.free.iter().position(|&free| free == frame) {
                    state.free.swap_remove(at);
                    return Ok(());
                }
                drop(state);
                cairn_vfs::thread::yield_now();
                continue;
            };
            if !file.latch_exclusive(page.page(), frame)? {
                // Another page is coming, or this one is not in the table yet.
                cairn_vfs::thread::yield_now();
                continue;
            }
            lock(&self.replacer.state).policy.remove(frame);
            let evicted = file.evict(page.page(), frame);
            if evicted.is_err() {
                lock(&self.replacer.state).policy.insert(frame, page, &self.pool_frames(false));
                self.release_exclusive(frame);
            }
            return evicted;
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

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("page_size", &self.page_size())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("arena", &self.arena).finish_non_exhaustive()
    }
}
