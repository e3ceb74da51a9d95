//! The thread that takes recorded operations out of the rings and writes them: hashes, encoding,
//! checksums and the file's pages cost the program nothing but a place on another core.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cairn_vfs::sync::{Condvar, Mutex, PoisonError, lock};
use cairn_vfs::thread;

use super::ring::WORDS;
use super::shared::Shared;

/// Between two looks: while much comes, while anything comes, and while nothing has come for a
/// while.
const NAP_SHORT: Duration = Duration::from_micros(500);
const NAP_USUAL: Duration = Duration::from_millis(8);
const NAP_LONG: Duration = Duration::from_millis(128);
/// Short naps after much has come, until they become longer: programs come back to their work
/// within milliseconds.
const BUSY_NAPS: u32 = 64;
/// Usual naps without anything, until they become long.
const QUIET_NAPS: u32 = 128;

/// How the helper is woken and ended.
#[derive(Debug, Default)]
pub(super) struct Bell {
    said: Mutex<Said>,
    changed: Condvar,
    is_asleep: AtomicBool,
    /// There is a helper.
    pub is_there: AtomicBool,
}

#[derive(Debug, Default)]
struct Said {
    is_called: bool,
    is_over: bool,
}

impl Bell {
    /// Wakes the helper if it sleeps.
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

    /// The helper ends.
    pub fn end(&self) {
        lock(&self.said).is_over = true;
        self.changed.notify_one();
    }

    /// Sleeps so long, or until it is called. False when it is over.
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

/// Starts the helper of a recorder. Without one, threads write what they have recorded themselves.
///
/// Errors: the operating system has no more threads.
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
