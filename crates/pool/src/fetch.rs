//! Fetches pages by number: the hit path, and the handling of misses.
#![allow(unsafe_code)]

use cairn_vfs::Bug;
use cairn_vfs::sync::lock;

use crate::error::{Error, Result};
use crate::format::{Format, verify};
use crate::guard::{Exclusive, Shared};
use crate::latch::Released;
use crate::optimistic::{Changed, Optimistic};
use crate::page::{Frame, PageId};
use crate::replacer::latch_key;
use crate::state::FileState;
use crate::stats::add;
use crate::translation::Resident;
use crate::write_ahead::Lsn;

/// The latch mode for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Shared,
    Exclusive,
}

/// The invariant that a version of a latched page relies on.
const HELD_TWICE: &str = "a page that is latched in shared mode is also latched in exclusive mode";

/// The source of a page that is not resident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Disk,
    /// No source: a new page of zeros.
    Nothing,
}

impl FileState {
    #[inline]
    pub(crate) fn shared(&self, page: u32) -> Result<Shared<'_>> {
        if let Some(frame) = self.translation.frame(page) {
            let header = self.pool.arena.header(frame);
            match header.latch.try_shared() {
                Ok(()) => {
                    let guard = Shared::new(self, frame);
                    // The frame may have been given to another page since the table was read.
                    if header.page() == self.id(page) {
                        self.pool.note_hit(frame, self.id(page));
                        return Ok(guard);
                    }
                }
                Err(left) => self.pool.wake_after_release(frame, left),
            }
        }
        let frame = self.fetch(page, Mode::Shared, Origin::Disk)?;
        Ok(Shared::new(self, frame))
    }

    #[inline]
    pub(crate) fn exclusive(&self, page: u32) -> Result<Exclusive<'_>> {
        if let Some(frame) = self.translation.frame(page) {
            let header = self.pool.arena.header(frame);
            if header.latch.try_exclusive() {
                let guard = Exclusive::new(self, frame);
                if header.page() == self.id(page) {
                    self.pool.note_hit(frame, self.id(page));
                    return Ok(guard);
                }
            }
        }
        let frame = self.fetch(page, Mode::Exclusive, Origin::Disk)?;
        Ok(Exclusive::new(self, frame))
    }

    pub(crate) fn create(&self, page: u32) -> Result<Exclusive<'_>> {
        let frame = self.fetch(page, Mode::Exclusive, Origin::Nothing)?;
        let mut guard = Exclusive::new(self, frame);
        guard.payload_mut(Lsn::NONE).fill(0);
        Ok(guard)
    }

    #[inline]
    pub(crate) fn optimistic(&self, page: u32) -> Result<Optimistic<'_>> {
        if let Some(frame) = self.translation.frame(page) {
            self.pool.arena.prefetch(frame);
            let header = self.pool.arena.header(frame);
            if let Some(version) = header.latch.version()
                // The page changes only together with the version, so it is this page as long as
                // the version is the same.
                && header.page() == self.id(page)
            {
                self.pool.note_hit(frame, self.id(page));
                return Ok(Optimistic::new(self, frame, page, version));
            }
        }
        self.optimistic_slow(page)
    }

    #[inline]
    pub(crate) fn hint(&self, page: u32, bytes: std::ops::Range<usize>) {
        if let Some(frame) = self.translation.frame(page) {
            self.pool.arena.prefetch_header(frame);
            let skip = self.format.payload_offset();
            let end = bytes.end.saturating_add(skip).min(self.pool.arena.page_size());
            self.pool.arena.prefetch_range(frame, bytes.start.saturating_add(skip).min(end)..end);
        }
    }

    #[cold]
    fn optimistic_slow(&self, page: u32) -> Result<Optimistic<'_>> {
        let frame = self.fetch(page, Mode::Shared, Origin::Disk)?;
        let guard = Shared::new(self, frame);
        let version = self.pool.arena.header(frame).latch.version();
        let Some(version) = version else { return Err(Bug::new(HELD_TWICE).into()) };
        drop(guard);
        Ok(Optimistic::new(self, frame, page, version))
    }

    /// Like [`PoolFile::read_with`](crate::PoolFile::read_with), with the page latched.
    #[cold]
    pub(crate) fn read_latched<R>(
        &self,
        page: u32,
        mut read: impl FnMut(&Optimistic<'_>) -> Result<R, Changed>,
    ) -> Result<R> {
        let guard = self.shared(page)?;
        let version = self.pool.arena.header(guard.frame()).latch.version();
        let Some(version) = version else { return Err(Bug::new(HELD_TWICE).into()) };
        let view = Optimistic::new(self, guard.frame(), page, version);
        let value = read(&view);
        debug_assert!(view.validate().is_ok(), "page {page} changed under a shared latch");
        value.map_err(|Changed| {
            let what = "a read requested bytes outside the page".to_owned();
            Error::corruption(self.file.path(), page, self.offset(page), what)
        })
    }

    /// The slow path. Returns the frame with its latch held in the given mode.
    #[cold]
    fn fetch(&self, page: u32, mode: Mode, origin: Origin) -> Result<Frame> {
        loop {
            match self.translation.resident(page) {
                Resident::In(frame) => {
                    if self.latch(page, frame, mode)? {
                        debug_assert!(self.pool.arena.header(frame).page() == self.id(page));
                        self.pool.note_hit(frame, self.id(page));
                        return Ok(frame);
                    }
                }
                Resident::Loading => self.wait_for_load(page)?,
                Resident::No => {
                    let what = || format!("the table of pages of {}", self.file.path().display());
                    let is_ours =
                        self.translation.begin_loading(page).map_err(|error| Error::memory(what())(error))?;
                    if is_ours {
                        return self.load(page, mode, origin);
                    }
                }
            }
        }
    }

    /// Waits for the latch of a frame that held the page a moment ago. Returns false when the page
    /// has left the frame.
    pub(crate) fn latch(&self, page: u32, frame: Frame, mode: Mode) -> Result<bool> {
        let (pool, id) = (&*self.pool, self.id(page));
        let header = pool.arena.header(frame);
        let attempt = || {
            let is_held = match mode {
                Mode::Shared => header.latch.try_shared_in_turn(),
                Mode::Exclusive => header.latch.try_exclusive(),
            };
            if is_held {
                return Some(true);
            }
            (self.translation.frame(page) != Some(frame)).then_some(false)
        };
        let is_held = match attempt() {
            Some(is_held) => is_held,
            None => {
                let start = pool.clock.now();
                let announce = || header.latch.announce_waiter();
                let waited =
                    pool.parking.wait(latch_key(frame), &*pool.clock, pool.wait_limit, announce, attempt);
                pool.counters.waited_for_latch(pool.clock.now().saturating_sub(start));
                let file = || self.file.path().to_owned();
                waited.map_err(|elapsed| Error::Timeout { file: file(), page, waited: elapsed.0 })?
            }
        };
        if is_held && header.page() != id {
            self.release(frame, mode);
            return Ok(false);
        }
        Ok(is_held)
    }

    fn release(&self, frame: Frame, mode: Mode) {
        let latch = &self.pool.arena.header(frame).latch;
        let left = match mode {
            Mode::Shared => latch.release_shared(),
            Mode::Exclusive => latch.release_exclusive(),
        };
        self.pool.wake_after_release(frame, left);
    }

    /// Like [`FileState::latch`], in exclusive mode.
    pub(crate) fn latch_exclusive(&self, page: u32, frame: Frame) -> Result<bool> {
        self.latch(page, frame, Mode::Exclusive)
    }

    /// Waits while another thread loads the page.
    fn wait_for_load(&self, page: u32) -> Result<()> {
        let (pool, start) = (&*self.pool, self.pool.clock.now());
        let attempt = || (!self.translation.is_loading_awaited(page)).then_some(());
        let key = self.id(page).as_u64();
        let waited = pool.parking.wait(key, &*pool.clock, pool.wait_limit, || {}, attempt);
        pool.counters.waited_for_latch(pool.clock.now().saturating_sub(start));
        let file = || self.file.path().to_owned();
        waited.map_err(|elapsed| Error::Timeout { file: file(), page, waited: elapsed.0 })
    }

    /// Ends the loading of a page, with or without a frame, and wakes waiting threads.
    pub(crate) fn end_loading(&self, page: u32, frame: Option<Frame>) {
        if self.translation.end_loading(page, frame) {
            self.pool.parking.wake(self.id(page).as_u64(), || {});
        }
    }

    /// Loads a page into a frame. The caller has called `begin_loading`; this call ends the
    /// loading.
    fn load(&self, page: u32, mode: Mode, origin: Origin) -> Result<Frame> {
        debug_assert!(
            self.translation.resident(page) == Resident::Loading,
            "page {page} is not being loaded"
        );
        let is_allowed = match origin {
            // The disk content is unknown after a failed sync: a stale version of a page would read
            // back as sound.
            Origin::Disk => self.check_poison(),
            Origin::Nothing => Ok(()),
        };
        let frame = match is_allowed.and_then(|()| self.pool.take_frame(self, self.id(page))) {
            Ok(frame) => frame,
            Err(error) => {
                self.end_loading(page, None);
                return Err(error);
            }
        };
        let lsn = match origin {
            // Check again: a sync that failed during the read may have lost the page's latest
            // version.
            Origin::Disk => self.read_in(page, frame).and_then(|lsn| self.check_poison().map(|()| lsn)),
            Origin::Nothing => Ok(Lsn::NONE),
        };
        match lsn {
            Ok(lsn) => {
                self.publish(page, frame, lsn, mode);
                Ok(frame)
            }
            Err(error) => {
                self.abandon(page, frame);
                Err(error)
            }
        }
    }

    /// Publishes a loaded page, so that other threads can find it.
    pub(crate) fn publish(&self, page: u32, frame: Frame, lsn: Lsn, mode: Mode) {
        debug_assert!(
            self.translation.resident(page) == Resident::Loading,
            "page {page} is not being loaded"
        );
        let header = self.pool.arena.header(frame);
        header.set_page_and_lsn(self.id(page), lsn);
        self.end_loading(page, Some(frame));
        if mode == Mode::Shared && header.latch.downgrade() == Released::HasWaiters {
            self.pool.wake_after_release(frame, Released::HasWaiters);
        }
    }

    /// Returns the frame of a page that could not be read.
    pub(crate) fn abandon(&self, page: u32, frame: Frame) {
        debug_assert!(
            self.translation.resident(page) == Resident::Loading,
            "page {page} is not being loaded"
        );
        self.pool.return_frame(frame);
        self.end_loading(page, None);
    }

    /// Reads a page from disk and verifies it.
    fn read_in(&self, page: u32, frame: Frame) -> Result<Lsn> {
        // SAFETY: `take_frame` gave this thread the frame's exclusive latch, and the slice ends
        // with this call.
        let bytes = unsafe { self.pool.arena.bytes_mut(frame) };
        debug_assert!(bytes.len() == self.pool.arena.page_size());
        let offset = self.offset(page);
        if let Err(error) = self.file.read_exact_at(bytes, offset) {
            return Err(match error.source.kind() {
                std::io::ErrorKind::UnexpectedEof => self.beyond_end(page),
                _ => error.into(),
            });
        }
        self.verify_page(page, bytes)
    }

    fn beyond_end(&self, page: u32) -> Error {
        let len = self.file.len().unwrap_or_default();
        Error::BeyondEnd { file: self.file.path().to_owned(), page, len }
    }

    /// Verifies a page's bytes and returns its LSN.
    pub(crate) fn verify_page(&self, page: u32, bytes: &[u8]) -> Result<Lsn> {
        match self.format {
            Format::Raw => Ok(Lsn::NONE),
            Format::Checked => verify(bytes, page)
                .and_then(|lsn| self.check_lsn(lsn).map(|()| lsn))
                .map_err(|what| Error::corruption(self.file.path(), page, self.offset(page), what)),
        }
    }

    /// Checks a page's LSN against the end of the log. Pages are written only after the log is
    /// durable up to their last change, so a page with a later LSN does not belong to this log.
    /// Errors: a description of the problem.
    fn check_lsn(&self, lsn: Lsn) -> Result<(), String> {
        match self.write_ahead.as_ref().and_then(|log| log.end_before(lsn)) {
            None => Ok(()),
            Some(end) => Err(format!(
                "its last change is at {lsn}, but the log ends at {end}: a part of the log was lost, or it is a different log"
            )),
        }
    }

    /// Evicts a page from its frame, which the caller has latched exclusively. Writes the page
    /// first if it is dirty. Errors: those of writing; the page then stays.
    pub(crate) fn evict(&self, page: u32, frame: Frame) -> Result<()> {
        let header = self.pool.arena.header(frame);
        debug_assert!(header.latch.is_exclusive(), "page {page} is evicted without its latch");
        let is_dirty = header.state() != 0;
        if is_dirty {
            self.write_latched(page, frame)?;
            add(&self.pool.counters.dirty_evictions, 1);
        }
        self.vacate(page, frame);
        Ok(())
    }

    /// Removes a clean page from its frame.
    fn vacate(&self, page: u32, frame: Frame) {
        let header = self.pool.arena.header(frame);
        // Changes that exist only in this frame would be lost, and a page in two frames would be
        // changed in one of them.
        assert!(header.page() == self.id(page), "frame {frame} holds {}, not page {page}", header.page());
        assert!(header.state() == 0, "page {page} leaves its frame in state {}", header.state());
        assert!(self.translation.frame(page) == Some(frame), "page {page} is not known to be in {frame}");
        header.set_page(PageId::NONE);
        self.translation.clear(page);
        self.pool.wake_latch_waiters(frame);
    }

    /// Drops the pages from `from` on, dirty or not. Errors: [`Error::Timeout`].
    pub(crate) fn drop_pages(&self, from: u32) -> Result<()> {
        for (page, frame) in self.frames_with(|page, _| page >= from) {
            loop {
                if !self.latch_exclusive(page, frame)? {
                    break;
                }
                if self.drop_latched(page, frame) {
                    break;
                }
                // The page is being written. No other write of it can begin before this thread
                // releases the latch.
                self.pool.release_exclusive(frame);
                self.wait_for_write(frame)?;
            }
        }
        Ok(())
    }

    /// Drops a latched page. Returns false while it is being written.
    fn drop_latched(&self, page: u32, frame: Frame) -> bool {
        let header = self.pool.arena.header(frame);
        debug_assert!(header.latch.is_exclusive(), "page {page} is dropped without its latch");
        if header.state() & crate::arena::WRITING != 0 {
            return false;
        }
        if header.discard() {
            self.pool.count_clean();
        }
        lock(&self.pool.replacer.state).policy.remove(frame);
        self.vacate(page, frame);
        self.pool.replacer.return_frame(frame);
        true
    }

    /// Removes the file from the pool, discarding unwritten changes. No guard of the file exists
    /// any more.
    pub(crate) fn remove_from_pool(&self) {
        // The background writer or an eviction may hold a page for a moment.
        while self.drop_pages(0).is_err() {}
        self.pool.remove_file(self.number);
    }

    /// Returns the resident pages of this file, with their frames, for which `wanted` returns true,
    /// in ascending order.
    pub(crate) fn frames_with(&self, wanted: impl Fn(u32, Frame) -> bool) -> Vec<(u32, Frame)> {
        let frames = self.pool.frames.load(cairn_vfs::sync::atomic::Ordering::Acquire) as Frame;
        let page_in = |frame| {
            let page = self.pool.arena.header(frame).page();
            let is_own = page != PageId::NONE && page.file() == self.number;
            (is_own && wanted(page.page(), frame)).then_some((page.page(), frame))
        };
        let mut pages: Vec<(u32, Frame)> = (0..frames).filter_map(page_in).collect();
        pages.sort_unstable();
        // A page that moves to another frame during the search may be in both.
        debug_assert!(pages.iter().all(|&(_, frame)| (frame as usize) < self.pool.max_frames));
        pages
    }
}
