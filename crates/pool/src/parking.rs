//! Where threads sleep until a latch is left or a page is there.

use std::sync::PoisonError;
use std::time::Duration;

use cairn_vfs::Clock;
use cairn_vfs::sync::Line;
#[cfg(not(cairn_loom))]
use cairn_vfs::sync::{Condvar, Mutex, MutexGuard};
use cairn_vfs::thread;
#[cfg(cairn_loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};

/// Places; what threads wait for is spread over them, so that few who wait for different things
/// wake each other.
const PLACES: usize = if cfg!(cairn_shuttle) {
    2
} else if cfg!(cairn_loom) {
    1
} else {
    64
};

/// Turns of the processor before a waiter gives it up, and of the scheduler before it sleeps. None
/// where schedules are explored: it is the sleep that somebody could miss the end of.
const SPINS: u32 = if cfg!(any(cairn_shuttle, cairn_loom)) { 0 } else { 60 };
const YIELDS: u32 = if cfg!(any(cairn_shuttle, cairn_loom)) { 0 } else { 4 };

/// Parking places, by key.
#[derive(Debug)]
pub(crate) struct Parking {
    places: Box<[Line<Place>]>,
}

#[derive(Debug, Default)]
struct Place {
    /// Held while somebody announces itself and looks a last time, and while those who sleep are
    /// woken.
    mutex: Mutex<()>,
    woken: Condvar,
}

/// A wait that has lasted as long as it may.
#[derive(Debug)]
pub(crate) struct Elapsed(pub(crate) Duration);

impl Place {
    /// Also after a panic of another holder: there is nothing to be left half done.
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parking {
    pub(crate) fn new() -> Self {
        Parking { places: (0..PLACES).map(|_| Line::default()).collect() }
    }

    fn place(&self, key: u64) -> &Place {
        // Neighbours go to different places.
        let index = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % PLACES;
        &self.places[index]
    }

    /// Wakes those who sleep at `key`, after `forget` has taken their announcement back.
    #[cold]
    pub(crate) fn wake(&self, key: u64, forget: impl FnOnce()) {
        let place = self.place(key);
        let _held = place.lock();
        forget();
        place.woken.notify_all();
    }

    /// Tries until `attempt` gives something: in turns first, then asleep at `key`, woken by
    /// [`Parking::wake`]. Before each sleep `announce` is called and then `attempt` once more, both
    /// with the place's mutex held: `attempt` must not wait.
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
