//! The rate limit for the output of compactions.

use std::time::Duration;

use cairn_vfs::Clock;
use cairn_vfs::sync::{Mutex, lock};

use crate::Result;

/// Shorter waits are accumulated, because no system can sleep that briefly.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// Interval at which a longer wait checks whether it should end early.
const LOOK: Duration = Duration::from_millis(50);

/// Delays writes so that their total stays below a rate in bytes per second.
#[derive(Debug)]
pub(crate) struct Limiter {
    bytes_a_second: Option<u64>,
    /// The time, by the clock's `now`, at which all admitted bytes are paid for.
    paid_at: Mutex<Duration>,
}

impl Limiter {
    pub(crate) fn new(bytes_a_second: Option<u64>) -> Self {
        Limiter { bytes_a_second, paid_at: Mutex::new(Duration::ZERO) }
    }

    /// Returns when `bytes` more may be written. `look` is called at least once, and repeatedly
    /// during a wait. Errors: those of `look`, which end the wait.
    pub(crate) fn take(&self, bytes: u64, clock: &dyn Clock, look: impl Fn() -> Result<()>) -> Result<()> {
        look()?;
        let Some(rate) = self.bytes_a_second else { return Ok(()) };
        let cost = Duration::from_secs_f64(bytes as f64 / rate as f64);
        let paid_at = {
            let mut paid_at = lock(&self.paid_at);
            *paid_at = (*paid_at).max(clock.now()) + cost;
            *paid_at
        };
        loop {
            let wait = paid_at.saturating_sub(clock.now());
            if wait < WAIT_MIN {
                return Ok(());
            }
            clock.sleep(wait.min(LOOK));
            look()?;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use cairn_vfs::ManualClock;

    use super::*;
    use crate::Error;

    /// Goal: bytes pass at the rate and no faster, and idle time is not credited. Method: a clock
    /// that advances with each sleep.
    #[test]
    fn bytes_take_their_time() {
        let clock = ManualClock::new(Duration::ZERO);
        let limiter = Limiter::new(Some(1 << 20));
        for _ in 0..64 {
            limiter.take(64 << 10, &clock, || Ok(())).unwrap();
        }
        assert_eq!(clock.now(), Duration::from_secs(4));
        clock.advance(Duration::from_secs(100));
        limiter.take(1 << 20, &clock, || Ok(())).unwrap();
        assert_eq!(clock.now(), Duration::from_secs(105));
        Limiter::new(None).take(u64::MAX, &clock, || Ok(())).unwrap();
        assert_eq!(clock.now(), Duration::from_secs(105));
    }

    /// Goal: a wait that has become pointless ends. Method: a wait of a quarter of an hour, which
    /// the third call of `look` ends.
    #[test]
    fn a_wait_is_given_up() {
        let (clock, limiter) = (ManualClock::new(Duration::ZERO), Limiter::new(Some(64 << 10)));
        let looks = std::cell::Cell::new(0);
        let look = || {
            looks.set(looks.get() + 1);
            if looks.get() < 3 { Ok(()) } else { Err(Error::invalid("closing")) }
        };
        assert!(limiter.take(64 << 20, &clock, look).is_err());
        assert_eq!(clock.now(), 2 * LOOK);
    }
}
