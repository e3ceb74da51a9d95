//! Hands out frames and takes them back, and changes their number.

use cairn_vfs::Bug;
use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::lock;

use crate::error::{Error, Result};
use crate::page::{Frame, PageId};
use crate::replacer::{PoolFrames, Taken, latch_key};
use crate::state::{FileState, PoolState};

impl PoolState {
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

    /// Like [`PoolState::take_frame`], for reading ahead: takes only a frame that is available at
    /// once, and not from pages that will be used sooner. Also returns `None` when the victim could
    /// not be written.
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
        let header = self.arena.header(taken.frame);
        debug_assert!(header.latch.is_exclusive(), "frame {} was taken without its latch", taken.frame);
        let Some(page) = taken.victim else {
            debug_assert!(header.page() == PageId::NONE, "a free frame holds {}", header.page());
            return Ok(());
        };
        debug_assert!(header.page() == page, "the victim {page} is not in its frame, but {}", header.page());
        let evicted = if page.file() == file.number {
            file.evict(page.page(), taken.frame)
        } else {
            match self.file(page.file()) {
                Some(file) => file.evict(page.page(), taken.frame),
                // Files leave the pool after their pages.
                None => Err(Bug::new(format!("{page} is in memory, but its file has left the pool")).into()),
            }
        };
        debug_assert!(evicted.is_err() || header.page() == PageId::NONE, "{page} stays after its eviction");
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
        self.wake_after_release(frame, self.arena.header(frame).latch.release_exclusive());
    }

    /// Returns a frame into which no page could be read; its latch is held.
    pub(crate) fn return_frame(&self, frame: Frame) {
        debug_assert!(self.arena.header(frame).page() == PageId::NONE, "frame {frame} still holds a page");
        debug_assert!(
            self.arena.header(frame).latch.is_exclusive(),
            "frame {frame} is returned without its latch"
        );
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
        assert!(frames <= self.max_frames, "{frames} frames, expected at most {}", self.max_frames);
        self.frames.store(frames, Release);
        let high = self.background_share.map_or(usize::MAX, |share| (share * frames as f64) as usize);
        debug_assert!(
            self.background_share.is_none() || high <= frames,
            "{high} of {frames} frames are dirty"
        );
        self.dirty_high.store(high, Relaxed);
    }

    pub(crate) fn grow(&self, from: usize, to: usize) -> Result<()> {
        debug_assert!(from <= to && to <= self.max_frames, "growing from {from} to {to} frames");
        let what = || format!("{to} frames of {} bytes", self.arena.page_size());
        self.arena.populate(from..to).map_err(|error| Error::memory(what())(error))?;
        for frame in from..to {
            let header = self.arena.header(frame as Frame);
            // A frame without a page is latched by its current holder. Frames from an earlier,
            // larger size of the pool are latched already.
            header.latch.try_exclusive();
            assert!(header.latch.is_exclusive(), "frame {frame} is in use before it belongs to the pool");
            header.set_page(PageId::NONE);
        }
        // Before any of them is handed out: a flush or checkpoint that visits all frames must not
        // miss a page in them.
        self.set_frames(to);
        let mut state = lock(&self.replacer.state);
        // Lower numbers are handed out first.
        debug_assert!(state.free.iter().all(|&frame| (frame as usize) < from), "a new frame is free already");
        state.free.splice(0..0, (from as Frame..to as Frame).rev());
        state.policy.resize(to);
        drop(state);
        self.replacer.notify_next();
        Ok(())
    }

    pub(crate) fn shrink(&self, from: usize, to: usize) -> Result<()> {
        debug_assert!(to <= from, "shrinking from {from} to {to} frames");
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
        assert!(emptied.len() == from - to, "{} frames were emptied, expected {}", emptied.len(), from - to);
        let mut state = lock(&self.replacer.state);
        emptied.iter().for_each(|&frame| state.policy.remove(frame));
        debug_assert!(state.free.len() + state.policy.len() <= to, "removed frames are still in use");
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
                    debug_assert!(
                        self.arena.header(frame).latch.is_exclusive(),
                        "the free frame {frame} is not held"
                    );
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
}
