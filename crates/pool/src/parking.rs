//! Where threads sleep until a latch is released or a page is loaded.

use std::sync::PoisonError;
use std::time::Duration;

use cairn_vfs::Clock;
use cairn_vfs::sync::CacheAligned;
#[cfg(not(cairn_loom))]
use cairn_vfs::sync::{Condvar, Mutex, MutexGuard};
use cairn_vfs::thread;
#[cfg(cairn_loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};

/// The number of parking places. Keys are spread over them, so that threads with different keys
/// rarely wake each other.
const PLACES: usize = if cfg!(cairn_shuttle) {
    2
} else if cfg!(cairn_loom) {
    1
} else {
    64
};

/// Number of times a waiter spins before it yields, and yields before it sleeps. None where
/// schedules are explored, because those tests look for missed wake-ups.
const SPINS: u32 = if cfg!(any(cairn_shuttle, cairn_loom)) { 0 } else { 60 };
const YIELDS: u32 = if cfg!(any(cairn_shuttle, cairn_loom)) { 0 } else { 4 };

/// Parking places, selected by key.
#[derive(Debug)]
pub(crate) struct Parking {
    places: Box<[CacheAligned<Place>]>,
}

#[derive(Debug, Default)]
struct Place {
    /// Held while a waiter announces itself and checks a last time, and while sleepers are woken.
    mutex: Mutex<()>,
    woken: Condvar,
}

/// A wait that exceeded its limit.
#[derive(Debug)]
pub(crate) struct Elapsed(pub(crate) Duration);

impl Place {
    /// Ignores a panic of another holder, since the mutex protects no data.
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parking {
    pub(crate) fn new() -> Self {
        Parking { places: (0..PLACES).map(|_| CacheAligned::default()).collect() }
    }

    fn place(&self, key: u64) -> &Place {
        // Adjacent keys go to different places.
        let index = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % PLACES;
        &self.places[index]
    }

    /// Wakes the threads that sleep at `key`, after `forget` has withdrawn their announcement.
    #[cold]
    pub(crate) fn wake(&self, key: u64, forget: impl FnOnce()) {
        let place = self.place(key);
        let _held = place.lock();
        forget();
        place.woken.notify_all();
    }

    /// Retries until `attempt` returns a value: first spinning and yielding, then sleeping at `key`
    /// until [`Parking::wake`]. Before each sleep it calls `announce` and then `attempt` once more,
    /// both under the place's mutex, so `attempt` must not block.
    ///
    /// Errors: [`Elapsed`] after `limit`.
    #[cold]
    pub(crate) fn wait<T>(
        &self,
        key: u64,
        clock: &dyn Clock,
        limit: Duration,
        announce: impl Fn(),
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Result<T, Elapsed> {
        for turn in 0..SPINS + YIELDS {
            if let Some(value) = attempt() {
                return Ok(value);
            }
            if turn < SPINS { thread::spin_loop() } else { thread::yield_now() }
        }
        let (start, place) = (clock.now(), self.place(key));
        let mut held = place.lock();
        loop {
            announce();
            if let Some(value) = attempt() {
                return Ok(value);
            }
            let waited = clock.now().saturating_sub(start);
            let Some(left) = limit.checked_sub(waited).filter(|left| !left.is_zero()) else {
                return Err(Elapsed(waited));
            };
            held = match place.woken.wait_timeout(held, left) {
                Ok((held, _)) => held,
                Err(panicked) => panicked.into_inner().0,
            };
        }
    }
}
