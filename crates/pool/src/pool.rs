//! The pool itself: what all files share.

use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

use cairn_vfs::sync::atomic::{AtomicUsize, Ordering::*};
use cairn_vfs::sync::{Arc, Line, Mutex, RwLock, lock, read, write};
use cairn_vfs::{Clock, File, SystemClock};

use crate::arena::Arena;
use crate::background::Background;
use crate::error::{Error, Result};
use crate::file::{FileOptions, FileState, PoolFile};
use crate::hits::Stripes;
use crate::journal::Journal;
use crate::latch::Left;
use crate::options::{BackgroundWriter, Options, check_frames};
use crate::page::{Frame, PageId};
use crate::parking::Parking;
use crate::policy::{Hits, Policy, PolicyKind};
use crate::replacer::{Claims, Replacer, Taken, latch_key};
use crate::stats::{Counters, Stats};
use crate::write_ahead::Lsn;
use crate::write_back::Staging;

/// Pages of files in memory. Cheap to clone; the clones are one pool.
#[derive(Clone)]
pub struct Pool {
    pub(crate) inner: Arc<Inner>,
    /// Ends the background writer when the last clone and the last file are gone.
    background: Option<Arc<Background>>,
}

/// Sets a pool up: [`Pool::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    options: Options,
    clock: StdArc<dyn Clock>,
}

/// What threads share. The fields of the hit path come first; what changes often has lines of its
/// own.
pub(crate) struct Inner {
    pub(crate) arena: Arena,
    /// Where marks stop; 0 when hits are logged.
    max_mark: u8,
    pub(crate) stripes: Stripes,
    pub(crate) replacer: Replacer,
    pub(crate) parking: Parking,
    pub(crate) clock: StdArc<dyn Clock>,
    pub(crate) wait_limit: Duration,
    pub(crate) counters: Counters,
    /// Frames that need writing, or are being written.
    pub(crate) dirty: Line<AtomicUsize>,
    /// How many dirty frames wake the background writer.
    pub(crate) dirty_high: AtomicUsize,
    /// Frames of the pool; those of the arena beyond are not used.
    pub(crate) frames: AtomicUsize,
    max_frames: usize,
    background_share: Option<f64>,
    files: RwLock<Files>,
    /// One resize at a time.
    resizing: Mutex<()>,
    /// Buffers for pages on their way to the disk, for the next one who writes.
    pub(crate) staging: Mutex<Vec<Staging>>,
    pub(crate) signal: crate::background::Signal,
}

/// The files by number.
#[derive(Default)]
struct Files {
    open: Vec<Option<Arc<FileState>>>,
    /// Numbers of closed files that nobody has any more: a page is told to be of a file by the
    /// number alone.
    unused: Vec<u32>,
}

impl Builder {
    /// Bytes of a page: a power of two from 4 to 64 KiB. Default 4 KiB.
    pub fn page_size(mut self, bytes: usize) -> Self {
        self.options.page_size = bytes;
        self
    }

    /// How many pages are kept in memory. Default 16384.
    pub fn frames(mut self, frames: usize) -> Self {
        self.options.frames = frames;
        self
    }

    /// How many it may be told to keep later. Default 16 times `frames`.
    pub fn max_frames(mut self, frames: usize) -> Self {
        self.options.max_frames = Some(frames);
        self
    }

    /// Which page gives its frame up.
    pub fn policy(mut self, policy: PolicyKind) -> Self {
        self.options.policy = policy;
        self
    }

    /// How long a thread waits for a frame or a page that others hold. Default 10 s.
    pub fn wait_limit(mut self, limit: Duration) -> Self {
        self.options.wait_limit = limit;
        self
    }

    /// When dirty pages are written ahead of need.
    pub fn background_writer(mut self, writer: BackgroundWriter) -> Self {
        self.options.background_writer = writer;
        self
    }

    /// The clock that waits are measured by, for tests that own the time.
    pub fn clock(mut self, clock: StdArc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Makes the pool. Its memory is brought in now. Errors: [`Error::Invalid`] for a setting,
    /// [`Error::Memory`].
    pub fn build(self) -> Result<Pool> {
        let Builder { options, clock } = self;
        options.check()?;
        Pool::with_policy(options, clock, |kind, frames| kind.build(frames))
    }
}

impl Pool {
    /// Sets a pool up.
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
        // Before the policy, whose tables would come in vain when there is no room for the frames.
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
            dirty: Line::default(),
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

    /// Takes a file in. With a double write, pages that a power loss tore are mended first.
    ///
    /// The file is the pool's alone: pages that others change in it are not seen. Errors:
    /// [`Error::Vfs`]; [`Error::Invalid`] for a double write of other pages.
    pub fn open(&self, file: Box<dyn File>, mut options: FileOptions) -> Result<PoolFile> {
        let (page_size, format, owner) = (self.page_size(), options.format, options.owner);
        // Before the lock: copies are read, written to their pages and synced.
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

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.inner.arena.page_size()
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// The policy.
    pub fn policy(&self) -> PolicyKind {
        lock(&self.inner.replacer.state).policy.kind()
    }

    /// Writes every dirty page of every file. Errors: as [`PoolFile::flush`], the first; other
    /// files are written all the same.
    pub fn flush(&self) -> Result<()> {
        self.inner.open_files().iter().map(|file| file.flush()).fold(Ok(()), Result::and)
    }

    /// Where recovery would have to begin: the log record of the oldest change that is in memory
    /// only. `None` when all logged changes are written (for the log's checkpoint; what is written
    /// is durable after [`PoolFile::sync`]).
    ///
    /// Changes that are being made while this runs may not be in it: read the log's end before it
    /// is called, and take the smaller one.
    pub fn oldest_change(&self) -> Option<Lsn> {
        let frames = self.inner.frames.load(Acquire) as Frame;
        (0..frames).filter_map(|frame| self.inner.arena.header(frame).first_lsn()).min()
    }

    /// Gives the pool more frames or fewer. Fewer: their pages are written and dropped, and guards
    /// of them waited for.
    ///
    /// Errors: [`Error::Invalid`] above `max_frames`, [`Error::Memory`], [`Error::Timeout`] when a
    /// page that has to go is held, and those of writing; the pool then has the frames it had.
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
    /// Makes an open file that nobody else has the number of. Errors: [`Error::Invalid`] when there
    /// are no more numbers.
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
    /// Says that a page was found resident.
    #[inline]
    pub(crate) fn note_hit(&self, frame: Frame, page: PageId) {
        let stripe = self.stripes.own();
        stripe.count();
        if self.max_mark != 0 {
            let mark = &self.arena.header(frame).mark;
            // That of a page that was read ahead becomes 0.
            let next = mark.load(Relaxed).wrapping_add(1);
            // A mark that is at its maximum is not written: threads that share a hot page keep its
            // line.
            if next <= self.max_mark {
                mark.store(next, Relaxed);
            }
        } else if stripe.collect(frame, page) {
            self.hand_on_hits();
        }
    }

    #[cold]
    fn hand_on_hits(&self) {
        self.stripes.own().pace(self.replacer.admitted());
        if let Ok(mut state) = self.replacer.state.try_lock() {
            state.apply_hits(self.stripes.own(), &self.arena);
        }
    }

    pub(crate) fn claims(&self, only_clean: bool) -> Claims<'_> {
        Claims { arena: &self.arena, parking: &self.parking, only_clean, reads_ahead: false }
    }

    /// Counts a frame that needs writing now and did not before.
    #[inline]
    pub(crate) fn one_more_is_dirty(&self) {
        let before = self.dirty.fetch_add(1, Relaxed);
        if before == self.dirty_high.load(Relaxed) {
            self.signal.wake();
        }
    }

    pub(crate) fn one_less_is_dirty(&self) {
        self.dirty.fetch_sub(1, Relaxed);
    }

    /// An open file.
    pub(crate) fn file(&self, number: u32) -> Option<Arc<FileState>> {
        read(&self.files).open.get(number as usize).cloned().flatten()
    }

    pub(crate) fn open_files(&self) -> Vec<Arc<FileState>> {
        read(&self.files).open.iter().flatten().cloned().collect()
    }

    /// Nobody finds the file any more. Who has it still, a flush of all files say, goes on with it.
    pub(crate) fn forget_file(&self, number: u32) {
        let forgotten = write(&self.files).open.get_mut(number as usize).and_then(Option::take);
        // Not under the lock, which the last who has the file takes.
        drop(forgotten);
    }

    /// Nobody has the file any more.
    pub(crate) fn give_back_number(&self, number: u32) {
        write(&self.files).unused.push(number);
    }

    /// A frame for `incoming`, its latch held, without a page. Waits when all are pinned.
    ///
    /// Errors: [`Error::Exhausted`]; those of writing, when the victims were dirty and no clean one
    /// could be had instead.
    pub(crate) fn take_frame(&self, file: &FileState, incoming: PageId) -> Result<Frame> {
        let mut failure = None;
        self.stripes.own().miss();
        loop {
            let taken = {
                let mut state = lock(&self.replacer.state);
                state.apply_hits(self.stripes.own(), &self.arena);
                state.take(incoming, &self.claims(failure.is_some()))
            };
            let taken = match (taken, failure.take()) {
                (Some(taken), _) => taken,
                (None, Some(error)) => return Err(error),
                (None, None) => self.wait_for_frame(incoming)?,
            };
            match self.vacate(file, taken) {
                Ok(()) => return Ok(taken.frame),
                // The page that could not be written stays. One that need not be may go instead.
                Err(error) => failure = Some(error),
            }
        }
    }

    /// As [`Inner::take_frame`], to read ahead: only what is to be had at once, and not from pages
    /// that are going to be used sooner. `None` also when the victim could not be written.
    pub(crate) fn try_take_frame(&self, file: &FileState, incoming: PageId) -> Option<Frame> {
        let taken = {
            let mut state = lock(&self.replacer.state);
            state.apply_hits(self.stripes.own(), &self.arena);
            state.take(incoming, &Claims { reads_ahead: true, ..self.claims(false) })?
        };
        self.vacate(file, taken).is_ok().then_some(taken.frame)
    }

    /// Takes the victim out of a frame.
    fn vacate(&self, file: &FileState, taken: Taken) -> Result<()> {
        let Some(page) = taken.victim else { return Ok(()) };
        let evicted = if page.file() == file.number {
            file.evict(page.page(), taken.frame)
        } else {
            // Files leave the pool after their pages have.
            self.file(page.file()).map_or(Ok(()), |file| file.evict(page.page(), taken.frame))
        };
        if evicted.is_err() {
            lock(&self.replacer.state).reinstate(taken.frame, page, &self.claims(false));
            self.leave_exclusive(taken.frame);
        }
        evicted
    }

    #[cold]
    fn wait_for_frame(&self, incoming: PageId) -> Result<Taken> {
        let start = self.clock.now();
        let mut state = lock(&self.replacer.state);
        let hungry = self.replacer.queue_up(&mut state);
        loop {
            let taken = state.take_in_turn(&hungry, incoming, &self.claims(false));
            let waited = self.clock.now().saturating_sub(start);
            let left = self.wait_limit.saturating_sub(waited);
            if taken.is_some() || left.is_zero() {
                self.replacer.leave_queue(&mut state, &hungry);
                self.counters.waited_for_frame(waited);
                let frames = self.frames.load(Relaxed);
                return taken.ok_or(Error::Exhausted { frames, waited });
            }
            drop(state);
            hungry.wait(left);
            state = lock(&self.replacer.state);
        }
    }

    /// Leaves a frame's latch, which was held exclusively, and wakes who waits for it or for any
    /// frame.
    pub(crate) fn leave_exclusive(&self, frame: Frame) {
        let header = self.arena.header(frame);
        if header.latch.leave_exclusive() == Left::Awaited {
            self.parking.wake(latch_key(frame), || header.latch.forget_waiters());
        }
        if self.replacer.is_anybody_starving() {
            self.replacer.call_next();
        }
    }

    /// Gives a frame back that its page was not read into, latch held.
    pub(crate) fn give_back(&self, frame: Frame) {
        let mut state = lock(&self.replacer.state);
        state.policy.remove(frame);
        drop(state);
        self.wake_those_at(frame);
        self.replacer.give_back(frame);
    }

    /// Wakes those who wait for a frame's latch while it stays held: their page is not there any
    /// more.
    pub(crate) fn wake_those_at(&self, frame: Frame) {
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
            // Frames without a page are held by who has them. Those of an earlier, larger size of
            // the pool are held already.
            header.latch.try_exclusive();
        }
        // Before anybody gets one: who looks at all frames, a flush or a checkpoint, must not miss
        // a page in them.
        self.set_frames(to);
        let mut state = lock(&self.replacer.state);
        // Lower ones are handed out first.
        state.free.splice(0..0, (from as Frame..to as Frame).rev());
        state.policy.resize(to);
        drop(state);
        self.replacer.call_next();
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
            if let Err(error) = self.empty(frame) {
                let mut state = lock(&self.replacer.state);
                state.free.extend(emptied);
                drop(state);
                self.replacer.call_next();
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

    /// Takes a frame that has to go from its page, or from the list of free ones if it has come
    /// there meanwhile. Its latch is held then.
    fn empty(&self, frame: Frame) -> Result<()> {
        loop {
            let page = self.arena.header(frame).page();
            let file = self.file(page.file());
            let Some(file) = file.filter(|_| page != PageId::NONE) else {
                // Between two pages: whoever has it gives it back, or publishes a page.
                let mut state = lock(&self.replacer.state);
                if let Some(at) = state.free.iter().position(|&free| free == frame) {
                    state.free.swap_remove(at);
                    return Ok(());
                }
                drop(state);
                cairn_vfs::thread::yield_now();
                continue;
            };
            if !file.hold_exclusively(page.page(), frame)? {
                // Another page is coming, or this one is not in the table yet.
                cairn_vfs::thread::yield_now();
                continue;
            }
            lock(&self.replacer.state).policy.remove(frame);
            let evicted = file.evict(page.page(), frame);
            if evicted.is_err() {
                lock(&self.replacer.state).policy.insert(frame, page, &self.claims(false));
                self.leave_exclusive(frame);
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
