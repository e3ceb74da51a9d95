//! The pool: building it, opening files in it, and changing its size.

use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

use cairn_vfs::sync::atomic::{AtomicUsize, Ordering::*};
use cairn_vfs::sync::{Arc, CacheAligned, Mutex, RwLock, lock, write};
use cairn_vfs::{Clock, File, SystemClock};

use crate::arena::Arena;
use crate::background::Background;
use crate::error::{Error, Result};
use crate::file::{FileOptions, PoolFile};
use crate::hits::Stripes;
use crate::journal::Journal;
use crate::options::{BackgroundWriter, Options, check_frames};
use crate::page::Frame;
use crate::parking::Parking;
use crate::policy::{Hits, Policy, PolicyKind};
use crate::replacer::Replacer;
use crate::signal::Signal;
use crate::state::{FileState, PoolState};
use crate::stats::{Counters, Stats};
use crate::write_ahead::Lsn;

/// A buffer pool for pages of files. Cheap to clone; clones share one pool.
#[derive(Clone)]
pub struct Pool {
    pub(crate) state: Arc<PoolState>,
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
        debug_assert!(frames > 0 && frames <= max_frames, "{frames} of {max_frames} frames");
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
        let state = Arc::new(PoolState {
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
            signal: Signal::default(),
        });
        state.grow(0, frames)?;
        debug_assert!(state.frames.load(Acquire) == frames);
        let background = background_share.map(|_| Background::start(&state)).transpose()?;
        Ok(Pool { state, background: background.map(Arc::new) })
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
        let state = write(&self.state.files).add(|number| {
            let FileOptions { format, write_ahead, .. } = options;
            let pool = Arc::clone(&self.state);
            Arc::new(FileState::new(number, pool, file, format, write_ahead, journal))
        })?;
        Ok(PoolFile { state, _background: self.background.clone() })
    }

    /// Returns the page size in bytes.
    pub fn page_size(&self) -> usize {
        self.state.arena.page_size()
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> Stats {
        self.state.stats()
    }

    /// Returns the replacement policy.
    pub fn policy(&self) -> PolicyKind {
        lock(&self.state.replacer.state).policy.kind()
    }

    /// Writes every dirty page of every file. Errors: the first one of [`PoolFile::flush`]; the
    /// other files are written anyway.
    pub fn flush(&self) -> Result<()> {
        self.state.open_files().iter().map(|file| file.flush()).fold(Ok(()), Result::and)
    }

    /// Returns the LSN at which recovery would have to begin: that of the oldest change that exists
    /// in memory only. `None` when all logged changes are written. For the log's checkpoint;
    /// written pages are durable after [`PoolFile::sync`].
    ///
    /// Changes made during this call may not be included. Read the log's end before the call, and
    /// take the smaller of the two.
    pub fn oldest_change(&self) -> Option<Lsn> {
        let frames = self.state.frames.load(Acquire) as Frame;
        (0..frames).filter_map(|frame| self.state.arena.header(frame).first_lsn()).min()
    }

    /// Changes the number of frames. To shrink, writes and drops the pages of the removed frames,
    /// and waits for guards of them.
    ///
    /// Errors: [`Error::Invalid`] above `max_frames`, [`Error::Memory`], [`Error::Timeout`] when a
    /// page to be dropped is held, and those of writing; the number of frames then stays as it was.
    pub fn resize(&self, frames: usize) -> Result<()> {
        check_frames("frames", frames)?;
        let state = &self.state;
        if frames > state.max_frames {
            let most = state.max_frames;
            return Err(Error::invalid(format!(
                "frames is {frames}, expected at most {most}, the max_frames that the pool was made with"
            )));
        }
        let _one = lock(&state.resizing);
        let now = state.frames.load(Acquire);
        debug_assert!(now > 0 && now <= state.max_frames, "{now} of {} frames", state.max_frames);
        let result = if frames > now { state.grow(now, frames) } else { state.shrink(now, frames) };
        debug_assert!(state.frames.load(Acquire) == if result.is_ok() { frames } else { now });
        result
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
