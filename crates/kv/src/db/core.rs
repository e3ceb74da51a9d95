//! The owner of an open store. Dropping the last handle closes the store.

use cairn_vfs::sync::Arc;

use crate::db::inner::Inner;

/// Shared by all handles, snapshots and iterators of a store.
#[derive(Debug)]
pub(crate) struct Core {
    pub inner: Arc<Inner>,
}

impl Drop for Core {
    /// Stops the background threads after their running jobs. The contents of the memtables are
    /// also in the log, so nothing is flushed.
    fn drop(&mut self) {
        self.inner.background.stop();
        // Removes the files that the last reader released.
        self.inner.remove_obsolete();
        self.inner.close_log();
        self.inner.leave_reserve();
    }
}
