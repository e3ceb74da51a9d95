//! The owner of an open store: dropping the last handle closes it.

use cairn_vfs::sync::Arc;

use crate::db::inner::Inner;

/// Shared by all handles, snapshots and iterators of a store.
#[derive(Debug)]
pub(crate) struct Core {
    pub inner: Arc<Inner>,
}

impl Drop for Core {
    /// Ends the background threads after their running jobs. What is in memtables is in the log as
    /// well, so nothing is flushed.
    fn drop(&mut self) {
        self.inner.background.stop();
        // What the last reader let go of.
        self.inner.remove_obsolete();
        self.inner.close_log();
        self.inner.leave_reserve();
    }
}
