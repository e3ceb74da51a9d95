//! The rate limit for the output of compactions.

use std::time::Duration;

use cairn_vfs::Clock;
use cairn_vfs::sync::{Mutex, lock};

use crate::Result;

/// Shorter waits are accumulated, because no system can sleep that briefly.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// Interval at which a longer wait checks whether it should end early.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

const _: () = assert!(WAIT_MIN.as_nanos() < CHECK_INTERVAL.as_nanos());

/// Delays writes so that their total stays below a rate in bytes per second.
#[derive(Debug)]
pub(crate) struct Limiter {
    bytes_a_second: Option<u64>,
    /// The time, by the clock's `now`, at which all admitted bytes are paid for.
    paid_at: Mutex<Duration>,
}

impl Limiter {
    pub(crate) fn new(bytes_a_second: Option<u64>) -> Self {
        debug_assert!(bytes_a_second != Some(0), "a rate of 0 would wait forever");
        Limiter { bytes_a_second, paid_at: Mutex::new(Duration::ZERO) }
    }

    /// Returns when `bytes` more may be written. `interrupt` is called at least once, and
    /// repeatedly during a wait. Errors: those of `interrupt`, which end the wait.
    pub(crate) fn take(
        &self,
        bytes: u64,
        clock: &dyn Clock,
        interrupt: impl Fn() -> Result<()>,
    ) -> Result<()> {
        interrupt()?;
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
            clock.sleep(wait.min(CHECK_INTERVAL));
            interrupt()?;
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
    /// the third call of `interrupt` ends.
    #[test]
    fn a_wait_is_given_up() {
        let (clock, limiter) = (ManualClock::new(Duration::ZERO), Limiter::new(Some(64 << 10)));
        let checks = std::cell::Cell::new(0);
        let interrupt = || {
            checks.set(checks.get() + 1);
            if checks.get() < 3 { Ok(()) } else { Err(Error::invalid("closing")) }
        };
        assert!(limiter.take(64 << 20, &clock, interrupt).is_err());
        assert_eq!(clock.now(), 2 * CHECK_INTERVAL);
    }
}
