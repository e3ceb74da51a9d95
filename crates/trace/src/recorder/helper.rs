//! The helper thread, which takes recorded operations out of the rings and writes them to the file.
//! It encodes them, computes checksums and writes pages on another core, so that the program does
//! not pay for that.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cairn_vfs::sync::{Condvar, Mutex, PoisonError, lock};
use cairn_vfs::thread;

use super::ring::WORDS;
use super::shared::Shared;

/// The time between two passes: while many operations arrive, while some arrive, and after a while
/// without any.
const NAP_SHORT: Duration = Duration::from_micros(500);
const NAP_USUAL: Duration = Duration::from_millis(8);
const NAP_LONG: Duration = Duration::from_millis(128);
/// The number of short naps after a pass with many operations, before naps become longer: programs
/// resume their work within milliseconds.
const BUSY_NAPS: u32 = 64;
/// The number of usual naps without any operation before naps become long.
const QUIET_NAPS: u32 = 128;

/// Wakes and stops the helper.
#[derive(Debug, Default)]
pub(super) struct Bell {
    said: Mutex<Said>,
    changed: Condvar,
    is_asleep: AtomicBool,
    /// True if a helper is running.
    pub is_there: AtomicBool,
}

#[derive(Debug, Default)]
struct Said {
    is_called: bool,
    is_over: bool,
}

impl Bell {
    /// Wakes the helper if it is asleep.
    #[inline]
    pub fn ring(&self) {
        if self.is_asleep.load(Ordering::Relaxed) {
            self.call();
        }
    }

    #[cold]
    fn call(&self) {
        if self.is_asleep.swap(false, Ordering::AcqRel) {
            lock(&self.said).is_called = true;
            self.changed.notify_one();
        }
    }

    /// Tells the helper to stop.
    pub fn end(&self) {
        lock(&self.said).is_over = true;
        self.changed.notify_one();
    }

    /// Sleeps for `nap`, or until it is woken. Returns false if the helper should stop.
    fn sleep(&self, nap: Duration) -> bool {
        let mut said = lock(&self.said);
        if !said.is_called && !said.is_over {
            self.is_asleep.store(true, Ordering::Release);
            said = self.changed.wait_timeout(said, nap).unwrap_or_else(PoisonError::into_inner).0;
            self.is_asleep.store(false, Ordering::Release);
        }
        said.is_called = false;
        !said.is_over
    }
}

/// Starts the helper of a recorder. Without a helper, threads write their own operations.
///
/// Errors: the operating system cannot start a thread.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<thread::JoinHandle<()>> {
    let of_helper = Arc::clone(shared);
    let handle = thread::spawn("cairn-trace", move || run(&of_helper))?;
    shared.bell.is_there.store(true, Ordering::Release);
    Ok(handle)
}

fn run(shared: &Shared) {
    let (mut nap, mut quiet, mut busy) = (NAP_USUAL, 0, 0_u32);
    while shared.bell.sleep(nap) && shared.on.load(Ordering::Relaxed) {
        let most = shared.tend(shared.now_ns());
        quiet = if most == 0 { quiet + 1 } else { 0 };
        busy = if most > WORDS as u64 / 4 { BUSY_NAPS } else { busy.saturating_sub(1) };
        nap = match quiet {
            _ if busy > 0 => NAP_SHORT,
            _ if quiet > QUIET_NAPS => NAP_LONG,
            _ => (nap * 2).min(NAP_USUAL),
        };
    }
}
