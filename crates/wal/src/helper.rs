//! The thread that prepares memory and segments ahead of need.
//!
//! It does nothing that the appender would not do itself, at the time of need, if the thread were
//! late.

use cairn_vfs::AppendProgress;
use cairn_vfs::sync::{Arc, lock, wait};

use crate::shared::Shared;
use crate::{Error, Result};

/// Written memory is let go of in pieces of this size.
pub(crate) const LET_GO_BYTES: u64 = 1 << 20;

/// What the helper is asked to do.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Memory of the segment being written, up to an offset.
    window: Option<(AppendProgress, u64)>,
    /// The segment after that.
    segment: bool,
    stop: bool,
}

impl Shared {
    /// Asks for memory.
    pub(crate) fn want_window(&self, progress: AppendProgress, to: u64) {
        lock(&self.wanted).window = Some((progress, to));
        self.wanted_changed.notify_one();
    }

    /// Asks for a segment.
    pub(crate) fn want_segment(&self) {
        lock(&self.wanted).segment = true;
        self.wanted_changed.notify_one();
    }

    /// Ends the helper, after what it is doing.
    pub(crate) fn stop_helper(&self) {
        lock(&self.wanted).stop = true;
        self.wanted_changed.notify_one();
    }

    /// Brings memory of a segment in. A full disk, where the file system does not keep what was
    /// allocated, costs nothing but the attempt: no record stands there yet. Other errors poison.
    pub(crate) fn prepare_window(&self, progress: &AppendProgress, to: u64) -> Result<()> {
        if progress.ready() >= to {
            return Ok(());
        }
        progress.prepare(to, self.zeros()).map_err(|error| {
            let error = Error::from(error);
            if error.is_full() { error } else { self.poison(error) }
        })
    }
}

/// The helper's life.
pub(crate) fn run(shared: &Arc<Shared>) {
    let mut wanted = lock(&shared.wanted);
    while !wanted.stop {
        // Memory first: the appender needs it sooner.
        if let Some((progress, to)) = wanted.window.take() {
            drop(wanted);
            // An error has poisoned the log, which tells everybody who comes; or the disk is full.
            let _ = shared.prepare_window(&progress, to);
            // What cannot be let go of costs memory and nothing else.
            let _ = progress.let_go(LET_GO_BYTES);
            drop(progress);
        } else if wanted.segment {
            wanted.segment = false;
            drop(wanted);
            // So here, or the disk is full: then the appender finds out for itself when it needs
            // the segment.
            let _ = shared.prepare_ahead();
        } else {
            wanted = wait(&shared.wanted_changed, wanted);
            continue;
        }
        wanted = lock(&shared.wanted);
    }
}
