//! Sequential scans with read-ahead.
#![allow(unsafe_code)]

use std::fmt;
use std::io::IoSliceMut;
use std::ops::Range;

use cairn_vfs::ReadRequest;
use cairn_vfs::sync::atomic::Ordering::Relaxed;
use cairn_vfs::sync::lock;

use crate::arena::READ_AHEAD;
use crate::error::Result;
use crate::fetch::Mode;
use crate::guard::Shared;
use crate::page::Frame;
use crate::state::FileState;
use crate::stats::add;
use crate::translation::Resident;

/// Bytes that a scan reads at a time.
const WINDOW_BYTES: usize = 256 << 10;

/// Maximum number of pages read in one call.
const BATCH: usize = 64;

const _: () = assert!(WINDOW_BYTES >= crate::options::MAX_PAGE_SIZE);

/// An iterator over guards of the pages of a range. It reads ahead one window at a time. Hold only
/// a few of its guards at once.
///
/// The scan continues after an error, since the next page may be sound.
pub struct Scan<'p> {
    file: &'p FileState,
    pages: Range<u32>,
    /// Pages before this were read in.
    read_until: u32,
    window: u32,
}

impl<'p> Scan<'p> {
    pub(crate) fn new(file: &'p FileState, pages: Range<u32>) -> Self {
        let pool = &file.pool;
        let frames = pool.frames.load(Relaxed);
        // A small pool keeps room for its other pages, and pages that were read ahead must not be
        // evicted before their turn.
        let kept = lock(&pool.replacer.state).policy.ahead_max();
        let window = (WINDOW_BYTES / pool.arena.page_size()).min(frames / 4).min(kept).max(1) as u32;
        Scan { file, read_until: pages.start, pages, window }
    }

    /// Sets the window to `pages` pages, instead of 256 KiB or a quarter of the pool.
    #[must_use]
    pub fn window(mut self, pages: u32) -> Self {
        self.window = pages.max(1);
        self
    }
}

impl<'p> Iterator for Scan<'p> {
    type Item = Result<Shared<'p>>;

    fn next(&mut self) -> Option<Self::Item> {
        let page = self.pages.next()?;
        debug_assert!(page <= self.read_until, "page {page} was skipped by the read-ahead");
        debug_assert!(self.window > 0);
        if page >= self.read_until {
            self.read_until = page.saturating_add(self.window).min(self.pages.end);
            debug_assert!(self.read_until > page, "page {page} is not read ahead of itself");
            if self.window > 1 {
                self.file.prefetch(page..self.read_until);
            }
        }
        Some(self.file.shared(page))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.pages.size_hint()
    }
}

impl fmt::Debug for Scan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("file", &self.file).field("pages", &self.pages).finish_non_exhaustive()
    }
}

impl FileState {
    /// Reads non-resident pages in, as long as frames are available. Returns the number of pages
    /// read.
    pub(crate) fn prefetch(&self, pages: impl Iterator<Item = u32>) -> usize {
        // A later request for the page reports the error.
        if self.check_poison().is_err() {
            return 0;
        }
        let mut count = 0;
        let mut batch: Vec<(u32, Frame)> = Vec::with_capacity(BATCH);
        let (mut rest, mut has_frames) = (pages.peekable(), true);
        while has_frames && rest.peek().is_some() {
            while batch.len() < BATCH && has_frames {
                let Some(page) = rest.next() else { break };
                if self.translation.resident(page) == Resident::No {
                    match self.begin_prefetch(page) {
                        Some(Some(frame)) => batch.push((page, frame)),
                        // Another thread is reading it.
                        Some(None) => {}
                        None => has_frames = false,
                    }
                }
            }
            // Adjacent pages are read together, wherever they were in the list.
            batch.sort_unstable();
            count += self.read_pages(&batch);
            batch.clear();
        }
        add(&self.pool.counters.prefetched, count as u64);
        count
    }

    /// Begins to load a page and returns its frame. Returns `None` when no frame is available, and
    /// `Some(None)` when the page is resident or another thread loads it.
    fn begin_prefetch(&self, page: u32) -> Option<Option<Frame>> {
        if !self.translation.begin_loading(page).ok()? {
            return Some(None);
        }
        let frame = self.pool.try_take_frame(self, self.id(page));
        if frame.is_none() {
            self.end_loading(page, None);
        }
        frame.map(Some)
    }

    /// Reads pages, given in ascending order, into their frames. Adjacent pages form one read, and
    /// all reads run concurrently. Returns the number of pages read successfully.
    fn read_pages(&self, pages: &[(u32, Frame)]) -> usize {
        debug_assert!(pages.len() <= BATCH && pages.is_sorted_by(|a, b| a.0 < b.0), "not a batch: {pages:?}");
        // SAFETY: this thread has held the frames' exclusive latches since `try_take_frame`, each
        // frame occurs once, and the slices end with the requests.
        let buffer = |frame| IoSliceMut::new(unsafe { self.pool.arena.bytes_mut(frame) });
        let runs = || pages.chunk_by(|a, b| a.0 + 1 == b.0);
        let mut requests: Vec<ReadRequest<'_>> = runs()
            .filter_map(|run| {
                let (first, _) = run.first()?;
                Some(ReadRequest::new(
                    self.offset(*first),
                    run.iter().map(|&(_, frame)| buffer(frame)).collect(),
                ))
            })
            .collect();
        self.file.read_batch(&mut requests);
        debug_assert!(requests.iter().map(|request| request.buffers.len()).sum::<usize>() == pages.len());
        let mut read: Vec<usize> = requests.into_iter().map(|request| request.result.unwrap_or(0)).collect();
        if self.check_poison().is_err() {
            // A sync that failed during the reads may have lost the latest version of these pages.
            read.fill(0);
        }
        runs().zip(read).map(|(run, bytes)| self.end_run(run, bytes / self.pool.arena.page_size())).sum()
    }

    /// Publishes the pages of a run that were read completely. Returns the number of sound ones.
    fn end_run(&self, run: &[(u32, Frame)], whole: usize) -> usize {
        debug_assert!(whole <= run.len(), "{whole} pages read, asked for {}", run.len());
        let mut count = 0;
        for (at, &(page, frame)) in run.iter().enumerate() {
            // SAFETY: this thread has held the frame's exclusive latch since `try_take_frame`, and
            // no other slice of it exists.
            let bytes = unsafe { self.pool.arena.bytes(frame) };
            match self.verify_page(page, bytes) {
                Ok(lsn) if at < whole => {
                    // Before any thread can request the page.
                    self.pool.arena.header(frame).mark.store(READ_AHEAD, Relaxed);
                    self.publish(page, frame, lsn, Mode::Exclusive);
                    self.pool.release_exclusive(frame);
                    count += 1;
                }
                // A later request for the page reports the error.
                _ => self.abandon(page, frame),
            }
        }
        count
    }
}
