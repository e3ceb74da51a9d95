//! The signal that wakes and stops the background writer.

use std::time::Duration;

use cairn_vfs::sync::{Condvar, Mutex, lock};

/// The interval at which the thread wakes on its own, to retry failed writes.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// The signal that wakes or stops the thread.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    state: Mutex<Requests>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Requests {
    wake: bool,
    stop: bool,
}

impl Signal {
    /// Signals that there is work.
    #[cold]
    pub(crate) fn wake(&self) {
        lock(&self.state).wake = true;
        self.changed.notify_one();
    }

    /// Waits for work. Returns false when the thread is to stop.
    pub(crate) fn wait(&self) -> bool {
        let mut requests = lock(&self.state);
        if !requests.wake && !requests.stop {
            requests = match self.changed.wait_timeout(requests, RETRY_INTERVAL) {
                Ok((requests, _)) => requests,
                Err(panicked) => panicked.into_inner().0,
            };
        }
        requests.wake = false;
        !requests.stop
    }

    /// Signals that the thread is to stop.
    pub(crate) fn stop(&self) {
        lock(&self.state).stop = true;
        self.changed.notify_one();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        lock(&self.state).stop
    }
}
