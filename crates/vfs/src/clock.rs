//! Time, under the control of the code that runs the engine.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A source of time.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Returns the time since an arbitrary start. Never goes backwards.
    fn now(&self) -> Duration;

    /// Returns the wall-clock time since the Unix epoch. May jump either way.
    fn wall(&self) -> Duration;

    /// Blocks until `duration` has passed on [`Clock::now`].
    fn sleep(&self, duration: Duration);
}

/// The machine's clocks.
#[derive(Debug, Clone)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Creates a clock whose [`Clock::now`] starts at zero.
    pub fn new() -> Self {
        SystemClock { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns zero if the machine's clock is set before 1970.
    fn wall(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// A clock that advances only when told to. `sleep` advances it and returns at once.
#[derive(Debug)]
pub struct ManualClock {
    time: Mutex<ManualTime>,
}

#[derive(Debug, Clone, Copy)]
struct ManualTime {
    now: Duration,
    wall: Duration,
}

impl ManualClock {
    /// Creates a clock with `now` at zero and the wall clock at `wall` since the Unix epoch.
    pub fn new(wall: Duration) -> Self {
        ManualClock { time: Mutex::new(ManualTime { now: Duration::ZERO, wall }) }
    }

    /// Advances both clocks.
    pub fn advance(&self, duration: Duration) {
        self.change(|time| {
            time.now = time.now.saturating_add(duration);
            time.wall = time.wall.saturating_add(duration);
        });
    }

    /// Sets the wall clock forwards or backwards, as an operator or a time server does. `now` does
    /// not change.
    pub fn jump_to(&self, wall: Duration) {
        self.change(|time| time.wall = wall);
    }

    /// Moves the wall clock forwards without time passing.
    pub fn jump_ahead(&self, by: Duration) {
        self.change(|time| time.wall = time.wall.saturating_add(by));
    }

    /// Moves the wall clock backwards without time passing, but not before the Unix epoch.
    pub fn jump_back(&self, by: Duration) {
        self.change(|time| time.wall = time.wall.saturating_sub(by));
    }

    fn change<T>(&self, change: impl FnOnce(&mut ManualTime) -> T) -> T {
        let mut time = self.time.lock().unwrap_or_else(PoisonError::into_inner);
        let before = time.now;
        let result = change(&mut time);
        debug_assert!(time.now >= before, "the clock went back from {before:?} to {:?}", time.now);
        result
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        self.change(|time| time.now)
    }

    fn wall(&self) -> Duration {
        self.change(|time| time.wall)
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the system clock never runs backwards, and its wall clock is past the day this test
    /// was written.
    #[test]
    fn system_clock_moves_on() {
        let clock = SystemClock::new();
        let first = clock.now();
        clock.sleep(Duration::from_nanos(1));
        assert!(clock.now() > first);
        assert!(clock.wall() > Duration::from_secs(1_700_000_000));
    }

    /// Goal: time passes only on request, and a wall-clock jump leaves the monotonic clock alone.
    #[test]
    fn manual_clock_moves_only_on_request() {
        let year = Duration::from_secs(365 * 86_400);
        let clock = ManualClock::new(10 * year);
        clock.advance(Duration::from_secs(3));
        clock.sleep(Duration::from_secs(4));
        assert_eq!((clock.now(), clock.wall()), (Duration::from_secs(7), 10 * year + Duration::from_secs(7)));
        clock.jump_ahead(year);
        clock.jump_back(20 * year);
        assert_eq!((clock.now(), clock.wall()), (Duration::from_secs(7), Duration::ZERO));
        clock.jump_to(year);
        assert_eq!((clock.now(), clock.wall()), (Duration::from_secs(7), year));
    }
}
