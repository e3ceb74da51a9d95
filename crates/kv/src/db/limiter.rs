//! A limit on what compactions write.

use std::time::Duration;

use cairn_vfs::Clock;
use cairn_vfs::sync::{Mutex, lock};

/// Shorter waits are saved up: no system can sleep that little.
const WAIT_MIN: Duration = Duration::from_millis(1);

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

    /// Returns when `bytes` more may be written.
    pub(crate) fn take(&self, bytes: u64, clock: &dyn Clock) {
        let Some(rate) = self.bytes_a_second else { return };
        let cost = Duration::from_secs_f64(bytes as f64 / rate as f64);
        let wait = {
            let now = clock.now();
            let mut paid_at = lock(&self.paid_at);
            *paid_at = (*paid_at).max(now) + cost;
            paid_at.saturating_sub(now)
        };
        if wait >= WAIT_MIN {
            clock.sleep(wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::ManualClock;

    use super::*;

    /// Goal: bytes pass at the rate and no faster, and time in which nothing was written is not saved up. Method: a clock whose
    /// sleeps move it.
    #[test]
    fn bytes_take_their_time() {
        let clock = ManualClock::new(Duration::ZERO);
        let limiter = Limiter::new(Some(1 << 20));
        for _ in 0..64 {
            limiter.take(64 << 10, &clock);
        }
        assert_eq!(clock.now(), Duration::from_secs(4));
        clock.advance(Duration::from_secs(100));
        limiter.take(1 << 20, &clock);
        assert_eq!(clock.now(), Duration::from_secs(105));
        Limiter::new(None).take(u64::MAX, &clock);
        assert_eq!(clock.now(), Duration::from_secs(105));
    }
}
