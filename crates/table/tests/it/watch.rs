//! Synchronization of threads at the points where one waits for another, without sleeping or luck.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;

use cairn_vfs::Clock;
use cairn_vfs::sync::{Condvar, Mutex, lock, wait};
use cairn_vfs::thread::JoinHandle;

use crate::Fixture;

/// A clock that stands still, and counts the threads that read it. A thread that waits for a lock
/// with a timeout reads it once before it waits, and then each time before it sleeps.
#[derive(Debug, Default)]
pub struct Watch {
    threads: Mutex<HashMap<ThreadId, Seen>>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    looks: u64,
    has_ended: bool,
}

impl Clock for Watch {
    fn now(&self) -> Duration {
        self.note(|seen| seen.looks += 1);
        Duration::ZERO
    }

    fn wall(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _duration: Duration) {}
}

impl Watch {
    /// Creates a database whose locks have a timeout that never expires.
    pub fn fixture() -> (Fixture, Arc<Watch>) {
        let watch = Arc::new(Watch::default());
        let fixture = Fixture::with(|options| {
            options.lock_timeout = Some(Duration::from_secs(1));
            options.clock = Arc::<Watch>::clone(&watch);
        });
        (fixture, watch)
    }

    fn note(&self, change: impl FnOnce(&mut Seen)) {
        change(lock(&self.threads).entry(std::thread::current().id()).or_default());
        self.changed.notify_all();
    }

    /// Runs `work` on a thread of its own. Returns when that thread waits for a lock, or has ended.
    pub fn start<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let watch = Arc::clone(self);
        let thread = cairn_vfs::thread::spawn("waits", move || {
            let _end = End(watch);
            work()
        });
        let thread = thread.unwrap();
        self.until_waits(thread.thread().id(), 0);
        thread
    }

    /// Returns how often a thread has read the clock.
    pub fn looks<T>(&self, thread: &JoinHandle<T>) -> u64 {
        lock(&self.threads).get(&thread.thread().id()).map_or(0, |seen| seen.looks)
    }

    /// Returns when a thread that had read the clock `before` times waits again, or has ended.
    pub fn until_waits(&self, thread: ThreadId, before: u64) {
        let mut threads = lock(&self.threads);
        loop {
            let seen = threads.get(&thread).copied().unwrap_or_default();
            if seen.has_ended || seen.looks >= before + 2 {
                return;
            }
            threads = wait(&self.changed, threads);
        }
    }
}

struct End(Arc<Watch>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.note(|seen| seen.has_ended = true);
    }
}
