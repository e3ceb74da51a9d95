//! Writes dirty pages back to disk.
//!
//! ```text
//!   dirty --copy under the latch--> writing --written--> clean
//!     ^                                |
//!     +------------ error -------------+      a change meanwhile: writing and dirty, then dirty
//! ```
//!
//! The order is: the log, then (with a double write) the journal, then the pages in file order,
//! with adjacent pages in one call.
#![allow(unsafe_code)]

use std::sync::Arc as StdArc;

use cairn_vfs::WriteRequest;
use cairn_vfs::memory::Buffer;
use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{MutexGuard, lock};

use crate::arena::{DIRTY, WRITING};
use crate::error::{Error, Result};
use crate::fetch::Mode;
use crate::format::{Format, stamp};
use crate::journal::Journal;
use crate::page::{Frame, PageId};
use crate::replacer::latch_key;
use crate::staging::{BATCH, Staged, Staging};
use crate::state::{FileState, PoolState};
use crate::stats::add;
use crate::write_ahead::Lsn;

/// How to treat pages latched by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfLatched {
    Wait,
    Skip,
}

impl FileState {
    /// Writes all pages that are dirty now. Errors: those of
    /// [`PoolFile::flush`](crate::PoolFile::flush).
    pub(crate) fn flush(&self) -> Result<()> {
        let arena = &self.pool.arena;
        let dirty = self.frames_with(|_, frame| arena.header(frame).state() != 0);
        let mut staging = self.pool.take_staging()?;
        let result = dirty.chunks(BATCH).try_for_each(|chunk| self.write_all(chunk, &mut staging));
        self.pool.return_staging(staging);
        result
    }

    /// Writes a page if it is dirty. A page that is not resident has been written already.
    pub(crate) fn flush_page(&self, page: u32) -> Result<()> {
        let Some(frame) = self.translation.frame(page) else { return Ok(()) };
        let mut staging = self.pool.take_staging()?;
        let result = self.write_all(&[(page, frame)], &mut staging);
        self.pool.return_staging(staging);
        result
    }

    /// Writes some pages, and waits for those that other threads are writing.
    fn write_all(&self, pages: &[(u32, Frame)], staging: &mut Staging) -> Result<()> {
        let mut pages = pages.to_vec();
        while !pages.is_empty() {
            let busy = self.write_some(&pages, None, IfLatched::Wait, staging)?;
            for &(_, frame) in &busy {
                self.wait_for_write(frame)?;
            }
            // The other threads may have written versions older than the ones this call has to
            // write.
            debug_assert!(busy.len() <= pages.len());
            pages = busy;
        }
        Ok(())
    }

    /// Writes the dirty ones among some pages, given in ascending order. Returns those that another
    /// thread was writing.
    ///
    /// `held` is a frame whose latch the caller holds.
    pub(crate) fn write_some(
        &self,
        pages: &[(u32, Frame)],
        held: Option<Frame>,
        busy: IfLatched,
        staging: &mut Staging,
    ) -> Result<Vec<(u32, Frame)>> {
        debug_assert!(staging.pages.is_empty(), "{} pages are staged already", staging.pages.len());
        debug_assert!(pages.len() <= BATCH, "{} pages, expected at most {BATCH}", pages.len());
        debug_assert!(pages.is_sorted(), "pages are not ascending: {pages:?}");
        self.check_poison()?;
        let mut others = Vec::new();
        let mut failure = Ok(());
        for &(page, frame) in pages {
            let is_held = held == Some(frame);
            if !is_held {
                match self.latch_for_copy(page, frame, busy, staging) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        failure = Err(error);
                        break;
                    }
                }
            }
            let header = self.pool.arena.header(frame);
            if header.begin_write() {
                // SAFETY: the latch is held at least in shared mode.
                let bytes = unsafe { self.pool.arena.bytes(frame) };
                staging.push(Staged { page, frame, lsn: header.lsn() }, bytes);
            } else if header.state() & WRITING != 0 {
                others.push((page, frame));
            }
            if !is_held {
                self.pool.wake_after_release(frame, header.latch.release_shared());
            }
        }
        self.write_staged(staging).and(failure).map(|()| others)
    }

    /// Latches a page in shared mode for a moment. Returns false when the page has left the frame,
    /// or is not to be waited for. Writes the staged pages before it waits.
    fn latch_for_copy(
        &self,
        page: u32,
        frame: Frame,
        busy: IfLatched,
        staging: &mut Staging,
    ) -> Result<bool> {
        let header = self.pool.arena.header(frame);
        if header.latch.try_shared_in_turn() {
            let is_there = header.page() == self.id(page);
            if !is_there {
                self.pool.wake_after_release(frame, header.latch.release_shared());
            }
            return Ok(is_there);
        }
        if busy == IfLatched::Skip {
            return Ok(false);
        }
        // The holder of the page may be waiting for a frame itself, and staged pages cannot be
        // evicted before they are written.
        self.write_staged(staging)?;
        self.latch(page, frame, Mode::Shared)
    }

    /// Writes a page whose frame the caller holds exclusively. With a double write, other dirty
    /// pages are written along with it.
    pub(crate) fn write_latched(&self, page: u32, frame: Frame) -> Result<()> {
        debug_assert!(self.pool.arena.header(frame).latch.is_exclusive(), "page {page} is not latched");
        self.wait_for_write(frame)?;
        if self.journal.is_none() {
            return self.write_in_place(page, frame);
        }
        let arena = &self.pool.arena;
        let mut pages = self.frames_with(|_, other| arena.header(other).state() == DIRTY);
        // Take the dirty pages that follow it, and wrap around to the start of the file if there
        // are too few.
        let at = pages.partition_point(|&(other, _)| other < page);
        pages.rotate_left(at);
        pages.truncate(BATCH);
        pages.sort_unstable();
        debug_assert!(
            arena.header(frame).state() == 0 || pages.contains(&(page, frame)),
            "{page} is left out"
        );
        let mut staging = self.pool.take_staging()?;
        let result = self.write_some(&pages, Some(frame), IfLatched::Skip, &mut staging).map(|_| ());
        debug_assert!(result.is_err() || arena.header(frame).state() == 0, "page {page} stays dirty");
        self.pool.return_staging(staging);
        result
    }

    /// Writes one page directly from its frame.
    fn write_in_place(&self, page: u32, frame: Frame) -> Result<()> {
        self.check_poison()?;
        let header = self.pool.arena.header(frame);
        if !header.begin_write() {
            return Ok(());
        }
        let lsn = header.lsn();
        let result = self.make_log_durable(lsn).and_then(|()| {
            // SAFETY: the caller holds the frame's exclusive latch, and the slice ends here.
            let bytes = unsafe { self.pool.arena.bytes_mut(frame) };
            if self.format == Format::Checked {
                stamp(bytes, page, lsn);
            }
            Ok(self.file.write_all_at(bytes, self.offset(page))?)
        });
        self.end_write(frame, result.is_ok());
        if result.is_ok() {
            self.count_writes(1);
        }
        result
    }

    fn count_writes(&self, pages: usize) {
        add(&self.pool.counters.pages_written, pages as u64);
        add(&self.pool.counters.writes, 1);
    }

    /// Makes the log durable up to `lsn`. Errors: [`Error::Log`].
    fn make_log_durable(&self, lsn: Lsn) -> Result<()> {
        match &self.write_ahead {
            Some(log) if lsn != Lsn::NONE => {
                log.make_durable(lsn).map_err(|cause| Error::Log { lsn, cause: StdArc::from(cause) })?;
                debug_assert!(log.end_before(lsn).is_none(), "the durable log does not reach {lsn}");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Writes the staged pages and clears the staging. Pages that could not be written are dirty
    /// again. Errors: the first one.
    fn write_staged(&self, staging: &mut Staging) -> Result<()> {
        if staging.pages.is_empty() {
            return Ok(());
        }
        let pages = std::mem::take(&mut staging.pages);
        debug_assert!(pages.iter().all(|page| self.pool.arena.header(page.frame).state() & WRITING != 0));
        let prepared =
            self.prepare(&pages, &mut staging.bytes).and_then(|()| self.write_copies(&pages, &staging.bytes));
        let result = match prepared {
            // Keep the journal locked until the pages are in place, so that no other batch replaces
            // these copies.
            Ok(journal) => {
                let written = self.write_runs(&pages, &staging.bytes);
                if let (Some(mut journal), Err(_)) = (journal, &written) {
                    journal.note_failure();
                }
                written
            }
            Err(error) => {
                pages.iter().for_each(|page| self.end_write(page.frame, false));
                Err(error)
            }
        };
        staging.pages = pages;
        staging.pages.clear();
        result
    }

    /// Writes pages in place, adjacent pages in one request, and all requests concurrently where
    /// the system can and it helps.
    fn write_runs(&self, pages: &[Staged], bytes: &[u8]) -> Result<()> {
        let page_size = self.pool.arena.page_size();
        let runs = || pages.chunk_by(|a, b| a.page + 1 == b.page);
        let mut rest = bytes;
        let mut requests: Vec<WriteRequest<'_>> = runs()
            .filter_map(|run| {
                let (own, others) = rest.split_at_checked(run.len() * page_size)?;
                rest = others;
                Some(WriteRequest::new(self.offset(run.first()?.page), own))
            })
            .collect();
        debug_assert!(rest.len() + pages.len() * page_size == bytes.len(), "not one copy for each page");
        // A page without a request would count as being written forever.
        assert!(
            requests.len() == runs().count(),
            "{} of {} runs are written",
            requests.len(),
            runs().count()
        );
        self.file.write_batch(&mut requests);
        let mut result = Ok(());
        for (run, request) in runs().zip(requests) {
            let written = request.result.or_else(|error| match error.source.kind() {
                std::io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            });
            // After a short write, write the rest, which fails on its own if it has to.
            let written = written.and_then(|count| {
                self.file.write_all_at(
                    request.bytes.get(count..).unwrap_or_default(),
                    request.offset + count as u64,
                )
            });
            run.iter().for_each(|page| self.end_write(page.frame, written.is_ok()));
            match written {
                Ok(()) => self.count_writes(run.len()),
                Err(error) => result = result.and(Err(error.into())),
            }
        }
        result
    }

    /// Makes the log durable up to the last change of some pages, and stamps their copies.
    fn prepare(&self, pages: &[Staged], bytes: &mut [u8]) -> Result<()> {
        let last = pages.iter().map(|page| page.lsn).max().unwrap_or_default();
        self.make_log_durable(last)?;
        let page_size = self.pool.arena.page_size();
        debug_assert!(bytes.len() >= pages.len() * page_size);
        debug_assert!(pages.iter().all(|page| page.lsn <= last));
        let copies = bytes.chunks_exact_mut(page_size);
        if self.format == Format::Checked {
            copies.zip(pages).for_each(|(copy, page)| stamp(copy, page.page, page.lsn));
        }
        Ok(())
    }

    /// Writes copies to the journal, if there is one. Returns its lock, to be held while the pages
    /// are written in place.
    fn write_copies(&self, pages: &[Staged], bytes: &[u8]) -> Result<Option<MutexGuard<'_, Journal>>> {
        let Some(journal) = &self.journal else { return Ok(None) };
        let numbers: Vec<u32> = pages.iter().map(|page| page.page).collect();
        let copies = bytes.get(..pages.len() * self.pool.arena.page_size()).unwrap_or_default();
        let mut journal = lock(journal);
        let logged = self.write_ahead.as_ref().map_or(Lsn::NONE, |log| log.durable());
        journal.write(&numbers, copies, logged, (&*self.file, self.format), || self.sync())?;
        Ok(Some(journal))
    }

    fn end_write(&self, frame: Frame, is_written: bool) {
        if self.pool.arena.header(frame).end_write(is_written) {
            self.pool.count_clean();
        }
        self.pool.wake_latch_waiters(frame);
        if self.pool.replacer.has_frame_waiters() {
            self.pool.replacer.notify_next();
        }
    }

    /// Waits until no thread writes the frame's page.
    pub(crate) fn wait_for_write(&self, frame: Frame) -> Result<()> {
        let header = self.pool.arena.header(frame);
        let attempt = || (header.state() & WRITING == 0).then_some(());
        if attempt().is_some() {
            return Ok(());
        }
        let announce = || header.latch.announce_waiter();
        let (pool, page) = (&*self.pool, header.page());
        let waited = pool.parking.wait(latch_key(frame), &*pool.clock, pool.wait_limit, announce, attempt);
        let file = || self.file.path().to_owned();
        waited.map_err(|elapsed| Error::Timeout { file: file(), page: page.page(), waited: elapsed.0 })
    }
}

impl PoolState {
    /// Returns a buffer for a batch. Errors: [`Error::Memory`].
    pub(crate) fn take_staging(&self) -> Result<Staging> {
        if let Some(staging) = lock(&self.staging).pop() {
            return Ok(staging);
        }
        let len = BATCH * self.arena.page_size();
        let bytes = Buffer::new(len).map_err(Error::memory("a batch of pages to write"))?;
        Ok(Staging { bytes, pages: Vec::with_capacity(BATCH) })
    }

    /// Keeps a buffer for reuse.
    pub(crate) fn return_staging(&self, staging: Staging) {
        debug_assert!(staging.pages.is_empty(), "{} pages are staged still", staging.pages.len());
        debug_assert!(staging.bytes.len() == BATCH * self.arena.page_size());
        let mut kept = lock(&self.staging);
        // One for the background writer, one for another thread.
        if kept.len() < 2 {
            kept.push(staging);
        }
    }

    /// Writes dirty pages in frame order from `hand` on, until `enough` returns true. Returns the
    /// frame at which it stopped.
    pub(crate) fn write_in_background(&self, hand: Frame, enough: impl Fn() -> bool) -> Frame {
        let frames = self.frames.load(Acquire) as Frame;
        let (mut at, mut seen) = (hand, 0);
        while seen < frames && !enough() {
            let mut batch: Vec<(PageId, Frame)> = Vec::with_capacity(BATCH);
            while seen < frames && batch.len() < BATCH {
                at = if at + 1 < frames { at + 1 } else { 0 };
                seen += 1;
                let header = self.arena.header(at);
                if header.state() == DIRTY {
                    batch.push((header.page(), at));
                }
            }
            debug_assert!(batch.len() <= BATCH && (at < frames || frames == 0));
            batch.sort_unstable();
            for pages in batch.chunk_by(|a, b| a.0.file() == b.0.file()) {
                let Some(file) = pages.first().and_then(|(page, _)| self.file(page.file())) else { continue };
                let pages: Vec<(u32, Frame)> =
                    pages.iter().map(|&(page, frame)| (page.page(), frame)).collect();
                let Ok(mut staging) = self.take_staging() else { return at };
                // Pages that fail stay dirty; a later eviction or flush reports the error.
                let written = file.write_some(&pages, None, IfLatched::Skip, &mut staging);
                self.return_staging(staging);
                if written.is_err() {
                    return at;
                }
            }
        }
        at
    }
}
