//! The thread that prepares memory and segments ahead of need.
//!
//! If the helper is late, the appender does the same work itself when it needs the result.

use cairn_vfs::AppendProgress;
use cairn_vfs::sync::{Arc, lock, wait};

use crate::shared::Shared;
use crate::{Error, Result};

/// Written memory is released in pieces of this size.
pub(crate) const RELEASE_MEMORY_BYTES: u64 = 1 << 20;

/// Requests to the helper.
#[derive(Debug, Default)]
pub(crate) struct HelperRequests {
    /// Memory of the current segment, up to an offset.
    window: Option<(AppendProgress, u64)>,
    /// The next segment.
    segment: bool,
    stop: bool,
}

impl Shared {
    /// Requests memory of the current segment.
    pub(crate) fn want_window(&self, progress: AppendProgress, to: u64) {
        lock(&self.requests).window = Some((progress, to));
        self.requested.notify_one();
    }

    /// Requests the next segment.
    pub(crate) fn want_segment(&self) {
        lock(&self.requests).segment = true;
        self.requested.notify_one();
    }

    /// Stops the helper after its current work.
    pub(crate) fn stop_helper(&self) {
        lock(&self.requests).stop = true;
        self.requested.notify_one();
    }

    /// Prepares memory of a segment. A full disk, on a file system that does not keep its
    /// allocations, is harmless: the affected range holds no record yet. Other errors poison the
    /// log.
    pub(crate) fn prepare_window(&self, progress: &AppendProgress, to: u64) -> Result<()> {
        if progress.ready() >= to {
            return Ok(());
        }
        debug_assert!(progress.reserved() <= progress.ready(), "memory was handed out that is not ready");
        progress.prepare(to, self.zeros()).map_err(|error| {
            let error = Error::from(error);
            if error.is_full() { error } else { self.poison(error) }
        })
    }
}

/// The main loop of the helper.
pub(crate) fn run(shared: &Arc<Shared>) {
    let mut wanted = lock(&shared.requests);
    while !wanted.stop {
        // Memory first, since the appender needs it sooner.
        if let Some((progress, to)) = wanted.window.take() {
            drop(wanted);
            // An error has poisoned the log, so later calls report it; or the disk is full.
            let _ = shared.prepare_window(&progress, to);
            // If releasing fails, the only cost is memory.
            let _ = progress.release_memory(RELEASE_MEMORY_BYTES);
            drop(progress);
        } else if wanted.segment {
            wanted.segment = false;
            drop(wanted);
            // As above. On a full disk, the appender meets the error when it needs the segment.
            let _ = shared.prepare_ahead();
        } else {
            wanted = wait(&shared.requested, wanted);
            continue;
        }
        wanted = lock(&shared.requests);
    }
}
