//! A limit on what compactions write.

use std::time::Duration;

use cairn_vfs::Clock;
use cairn_vfs::sync::{Mutex, lock};

use crate::Result;

/// Shorter waits are saved up: no system can sleep that little.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// In longer waits it is looked that often whether they are still of use.
const LOOK: Duration = Duration::from_millis(50);

/// Spaces writes so that their sum stays below so many bytes a second.
#[derive(Debug)]
pub(crate) struct Limiter {
    bytes_a_second: Option<u64>,
    /// When everything that was let pass is paid for, by the clock's `now`.
    paid_at: Mutex<Duration>,
}

impl Limiter {
    pub(crate) fn new(bytes_a_second: Option<u64>) -> Self {
        Limiter { bytes_a_second, paid_at: Mutex::new(Duration::ZERO) }
    }

    /// Returns when `bytes` more may be written. Errors: those of `look`, which is asked at least
    /// once and while this waits: they end the wait.
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

    /// Goal: bytes pass at the rate and no faster, and time in which nothing was written is not
    /// saved up. Method: a clock whose sleeps move it.
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

    /// Goal: a wait that is of no use any more ends. Method: one of a quarter of an hour; the third
    /// look says so.
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
