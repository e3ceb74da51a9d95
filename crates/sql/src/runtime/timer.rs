//! The timeout of a statement.

use std::time::Duration;

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicBool, Ordering};

use super::Shared;
use crate::error::Result;

/// The running timeout of a statement.
#[derive(Debug)]
pub(crate) struct Timer {
    fired: Arc<AtomicBool>,
    task: tokio::task::AbortHandle,
}

impl Timer {
    /// Cancels the statement after this time.
    pub fn start(shared: &Shared, after: Duration, canceller: &cairn_table::Canceller) -> Result<Timer> {
        let fired = Arc::new(AtomicBool::new(false));
        let (flag, canceller) = (Arc::clone(&fired), canceller.clone());
        let task = shared.timers()?.spawn(async move {
            tokio::time::sleep(after).await;
            flag.store(true, Ordering::SeqCst);
            canceller.cancel();
        });
        Ok(Timer { fired, task: task.abort_handle() })
    }

    pub fn has_fired(&self) -> bool {
        self.fired.load(Ordering::SeqCst)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
