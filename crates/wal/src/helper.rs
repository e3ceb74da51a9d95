//! The thread that prepares memory and segments ahead of need.
//!
//! It does nothing that the appender would not do itself, at the time of need, if the thread were late.

use cairn_vfs::AppendProgress;
use cairn_vfs::sync::{Arc, lock, wait};

use crate::Result;
use crate::shared::Shared;

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

    fn prepare_window(&self, progress: &AppendProgress, to: u64) -> Result<()> {
        if progress.ready() < to {
            progress.prepare(to, self.zeros()).map_err(|error| self.poison(error.into()))?;
        }
        Ok(())
    }
}

/// The helper's life.
pub(crate) fn run(shared: &Arc<Shared>) {
    let mut wanted = lock(&shared.wanted);
    while !wanted.stop {
        // Memory first: the appender needs it sooner.
        if let Some((progress, to)) = wanted.window.take() {
            drop(wanted);
            // An error has poisoned the log, which tells everybody who comes.
            let _ = shared.prepare_window(&progress, to);
            drop(progress);
        } else if wanted.segment {
            wanted.segment = false;
            drop(wanted);
            // So here, or the disk is full: then the appender finds out for itself when it needs the segment.
            let _ = shared.prepare_ahead();
        } else {
            wanted = wait(&shared.wanted_changed, wanted);
            continue;
        }
        wanted = lock(&shared.wanted);
    }
}
