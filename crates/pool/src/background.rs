//! The thread that writes dirty pages before their frames are needed.

use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{Arc, Mutex, lock};
use cairn_vfs::thread::{self, JoinHandle};

use crate::error::{Error, Result};
use crate::state::PoolState;

/// The background writer thread. Dropping it stops the thread.
#[derive(Debug)]
pub(crate) struct Background {
    pool: Arc<PoolState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Background {
    /// Starts the thread. Errors: [`Error::Memory`] when the system cannot start another thread.
    pub(crate) fn start(pool: &Arc<PoolState>) -> Result<Background> {
        let own = Arc::clone(pool);
        let thread = thread::spawn("pool-writer", move || run(&own))
            .map_err(Error::memory("the background writer"))?;
        Ok(Background { pool: Arc::clone(pool), thread: Mutex::new(Some(thread)) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.pool.signal.stop();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

fn run(pool: &PoolState) {
    let mut hand = 0;
    while pool.signal.wait() {
        let high = pool.dirty_high.load(Relaxed);
        debug_assert!(high <= pool.max_frames, "more than {high} frames are never dirty");
        if pool.dirty.load(Relaxed) > high {
            let enough = || pool.dirty.load(Relaxed) <= high / 2 || pool.signal.is_stopped();
            hand = pool.write_in_background(hand, enough);
        }
    }
}
