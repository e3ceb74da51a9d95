//! The thread that writes dirty pages before their frames are needed.

use std::time::Duration;

use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{Arc, Condvar, Mutex, lock};
use cairn_vfs::thread::{self, JoinHandle};

use crate::error::{Error, Result};
use crate::pool::Inner;

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

/// The background writer thread. Dropping it stops the thread.
#[derive(Debug)]
pub(crate) struct Background {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Signal {
    /// Signals that there is work.
    #[cold]
    pub(crate) fn wake(&self) {
        lock(&self.state).wake = true;
        self.changed.notify_one();
    }

    /// Waits for work. Returns false when the thread is to stop.
    fn wait(&self) -> bool {
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

    fn is_stopped(&self) -> bool {
        lock(&self.state).stop
    }
}

impl Background {
    /// Starts the thread. Errors: [`Error::Memory`] when the system cannot start another thread.
    pub(crate) fn start(inner: &Arc<Inner>) -> Result<Background> {
        let own = Arc::clone(inner);
        let thread = thread::spawn("pool-writer", move || run(&own))
            .map_err(Error::memory("the background writer"))?;
        Ok(Background { inner: Arc::clone(inner), thread: Mutex::new(Some(thread)) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        lock(&self.inner.signal.state).stop = true;
        self.inner.signal.changed.notify_one();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

fn run(pool: &Inner) {
    let mut hand = 0;
    while pool.signal.wait() {
        let high = pool.dirty_high.load(Relaxed);
        if pool.dirty.load(Relaxed) > high {
            let enough = || pool.dirty.load(Relaxed) <= high / 2 || pool.signal.is_stopped();
            hand = pool.write_in_background(hand, enough);
        }
    }
}
