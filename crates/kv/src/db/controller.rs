//! The write controller, which slows writers down before they would have to stop.
//!
//! Background work that falls behind is treated as a debt. While the debt is small, writers are not
//! limited. Between the soft and the hard limit, each written byte costs a delay that grows with
//! the debt, so that writers and compactions settle at a common speed. Writers stop only at the
//! hard limit. A delay is slept in small parts, before any lock is taken. A part that one writer
//! does not sleep is left to the next.

use std::time::Duration;

use cairn_vfs::Clock;
use cairn_vfs::sync::atomic::{AtomicU8, AtomicU64, Ordering::*};
use cairn_vfs::sync::{Condvar, Mutex, lock, wait};

use crate::events::StallCause;

#[cfg(all(test, cairn_shuttle))]
mod shuttle;
#[cfg(test)]
mod tests;

/// Maximum length of a single delay. It keeps each delay well below a stall, and a writer that owes
/// more rechecks between delays whether it still has to wait.
const DELAY_MAX: Duration = Duration::from_millis(5);

/// Maximum debt with which a writer may continue; later writers pay it. A large write pays its
/// share beyond this before it continues, otherwise large writes would not be limited at all.
const OWED_MAX: Duration = Duration::from_secs(1);

/// Debt from which writers start to pay: a thread cannot sleep for less anyway.
const DELAY_MIN: Duration = Duration::from_micros(200);

/// Slowest permitted speed in bytes per second, just below the hard limit.
const SPEED_MIN: f64 = 4.0 * 1024.0 * 1024.0;

/// Fastest limited speed, just above the soft limit.
const SPEED_MAX: f64 = 512.0 * 1024.0 * 1024.0;

const _: () =
    assert!(DELAY_MIN.as_nanos() <= DELAY_MAX.as_nanos() && DELAY_MAX.as_nanos() <= OWED_MAX.as_nanos());
const _: () = assert!(0.0 < SPEED_MIN && SPEED_MIN < SPEED_MAX);
const _: () = assert!(
    (1u64 << 20) as f64 / SPEED_MAX * 1e9 >= 1.0 && (1u64 << 20) as f64 / SPEED_MIN * 1e9 < STOPPED as f64,
    "a speed between the limits is stored neither as none nor as a stop"
);

/// The write speed that one kind of background work permits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pressure {
    pub cause: StallCause,
    /// Bytes per second: infinite for no limit, 0 to stop writers.
    speed: f64,
}

impl Pressure {
    /// Returns the pressure of `value` between `soft`, where writers start to slow down, and
    /// `hard`, where they stop. In between the speed falls geometrically: equal steps of debt
    /// reduce it by the same factor.
    pub(crate) fn between(cause: StallCause, value: f64, soft: f64, hard: f64) -> Pressure {
        debug_assert!(0.0 < soft && soft <= hard, "limits {soft} and {hard}");
        debug_assert!(value >= 0.0, "a debt of {value}");
        let speed = if value < soft {
            f64::INFINITY
        } else if value >= hard {
            0.0
        } else {
            SPEED_MAX * (SPEED_MIN / SPEED_MAX).powf((value - soft) / (hard - soft))
        };
        debug_assert!(speed == 0.0 || speed >= SPEED_MIN - 1.0, "a speed of {speed} bytes a second");
        Pressure { cause, speed }
    }

    /// Returns the pressure of `sealed` memtables, of which `allowed` may wait, if flushes process
    /// `flush_speed` bytes per second.
    ///
    /// One memtable being flushed is normal. With two places left, writers may be slightly faster
    /// than the flushes, and with one place left they must be slower. Thus they do not stop unless
    /// flushes become much slower.
    pub(crate) fn of_memtables(sealed: usize, allowed: usize, flush_speed: f64) -> Pressure {
        debug_assert!(allowed > 0, "writers would stop forever");
        debug_assert!(flush_speed > 0.0, "flushes of {flush_speed} bytes a second");
        let share = match allowed.saturating_sub(sealed) {
            0 => 0.0,
            _ if sealed < 2 => f64::INFINITY,
            1 => 0.7,
            2 => 1.3,
            _ => f64::INFINITY,
        };
        let speed = if share == 0.0 { 0.0 } else { (share * flush_speed).max(SPEED_MIN) };
        Pressure { cause: StallCause::Memtables, speed }
    }

    /// Returns true if writers must stop.
    pub(crate) fn stops(&self) -> bool {
        self.speed == 0.0
    }

    /// Replaces a stop by the slowest permitted speed.
    pub(crate) fn without_stop(self) -> Pressure {
        Pressure { speed: self.speed.max(SPEED_MIN), ..self }
    }
}

/// Admits or delays writes.
#[derive(Debug)]
pub(crate) struct Controller {
    /// Delay in nanoseconds per MiB written; 0 for none, `u64::MAX` for stopped. An unlimited
    /// writer only loads this value.
    nanos_a_mib: AtomicU64,
    /// The [`StallCause`] of the delay.
    cause: AtomicU8,
    /// Nanoseconds of delay that writers have incurred and not yet slept.
    owed: AtomicU64,
    /// Recent speed of flushes in bytes of keys and values per second; 0 before the first flush.
    flush_speed: AtomicU64,
    /// Held while the pressure is measured and the speed set from it. Without it, an older
    /// measurement could be set last and leave writers stopped with no work left to do.
    pub measuring: Mutex<()>,
    gate: Mutex<()>,
    open: Condvar,
    stats: StallStats,
}

/// Counters of write stalls.
#[derive(Debug, Default)]
struct StallStats {
    delays: AtomicU64,
    stops: AtomicU64,
    nanos: [AtomicU64; 3],
}

/// Write stalls by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stalls {
    /// Number of delays. Each takes a few milliseconds at most, except for writes of megabytes.
    pub delays: u64,
    /// Number of full stops.
    pub stops: u64,
    /// Time spent waiting for flushes, summed over all writers.
    pub memtables: Duration,
    /// Time spent waiting because of level 0.
    pub level_zero: Duration,
    /// Time spent waiting because of pending compactions.
    pub pending_compaction: Duration,
}

const CAUSES: [StallCause; 3] = [StallCause::Memtables, StallCause::LevelZero, StallCause::PendingCompaction];

const _: () = assert!(CAUSES.len() == 3, "a counter of nanoseconds for each cause");
const _: () = assert!(
    matches!(CAUSES, [StallCause::Memtables, StallCause::LevelZero, StallCause::PendingCompaction]),
    "Controller::stalls reads the counters in this order"
);

const STOPPED: u64 = u64::MAX;

impl Controller {
    pub(crate) fn new() -> Self {
        Controller {
            nanos_a_mib: AtomicU64::new(0),
            cause: AtomicU8::new(0),
            owed: AtomicU64::new(0),
            flush_speed: AtomicU64::new(0),
            measuring: Mutex::new(()),
            gate: Mutex::new(()),
            open: Condvar::new(),
            stats: StallStats::default(),
        }
    }

    /// Records the speed of a flush.
    pub(crate) fn flushed(&self, bytes: u64, took: Duration) {
        if took.is_zero() {
            return;
        }
        let speed = bytes as f64 / took.as_secs_f64();
        let before = self.flush_speed.load(Relaxed) as f64;
        // Averages over a few flushes, because one may have met a busy disk.
        let after = if before == 0.0 { speed } else { (3.0 * before + speed) / 4.0 };
        self.flush_speed.store(after as u64, Relaxed);
    }

    /// Returns the recent speed of flushes; infinite if unknown. See [`Controller::flushed`].
    pub(crate) fn flush_speed(&self) -> f64 {
        match self.flush_speed.load(Relaxed) {
            0 => f64::INFINITY,
            speed => speed as f64,
        }
    }

    /// Sets the speed to the lowest of `pressures`. Must be called whenever background work becomes
    /// due or is done.
    pub(crate) fn set(&self, pressures: &[Pressure]) {
        let worst = pressures.iter().copied().min_by(|a, b| a.speed.total_cmp(&b.speed));
        let Some(worst) = worst else { return };
        // For an infinite speed this is 0.
        let nanos = if worst.stops() { STOPPED } else { ((1u64 << 20) as f64 / worst.speed * 1e9) as u64 };
        debug_assert!(worst.stops() || nanos < STOPPED, "a speed of {} looks like a stop", worst.speed);
        debug_assert!(CAUSES.contains(&worst.cause), "{:?} is not counted", worst.cause);
        let cause = CAUSES.iter().position(|cause| *cause == worst.cause).unwrap_or(0);
        self.cause.store(cause as u8, Relaxed);
        let before = self.nanos_a_mib.swap(nanos, SeqCst);
        if before == STOPPED && nanos != STOPPED {
            drop(lock(&self.gate));
            self.open.notify_all();
        }
        if nanos == 0 {
            self.owed.store(0, Relaxed);
        }
    }

    /// Returns true if writers are stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.nanos_a_mib.load(Relaxed) == STOPPED
    }

    /// Admits a write of `bytes`, immediately or after a delay. Returns the cause and the duration
    /// if it had to wait. While stopped, the wait ends when `abandon` returns true.
    #[inline]
    pub(crate) fn admit(
        &self,
        bytes: usize,
        clock: &dyn Clock,
        abandon: impl Fn() -> bool,
    ) -> Option<(StallCause, Duration)> {
        let nanos = self.nanos_a_mib.load(Relaxed);
        if nanos == 0 {
            return None;
        }
        self.admit_slowly(bytes, clock, abandon)
    }

    #[cold]
    fn admit_slowly(
        &self,
        bytes: usize,
        clock: &dyn Clock,
        abandon: impl Fn() -> bool,
    ) -> Option<(StallCause, Duration)> {
        let start = clock.now();
        let cause = usize::from(self.cause.load(Relaxed)).min(CAUSES.len() - 1);
        if self.is_stopped() {
            self.stats.stops.fetch_add(1, Relaxed);
            let mut gate = lock(&self.gate);
            while self.nanos_a_mib.load(SeqCst) == STOPPED && !abandon() {
                gate = wait(&self.open, gate);
            }
        } else {
            let nanos = self.nanos_a_mib.load(Relaxed);
            let cost = (u128::from(nanos) * bytes as u128 / (1 << 20)) as u64;
            let owed = self.owed.fetch_add(cost, Relaxed).saturating_add(cost);
            if owed < DELAY_MIN.as_nanos() as u64 {
                return None;
            }
            self.stats.delays.fetch_add(1, Relaxed);
            let mut paid = 0;
            // BOUND: each writer pays at most for its own write, and a small write takes a single
            // delay.
            loop {
                let (owed, part) = self.pay(clock);
                paid += part;
                if owed <= OWED_MAX || paid >= cost || abandon() {
                    break;
                }
            }
        }
        let waited = clock.now().saturating_sub(start);
        self.stats.nanos[cause].fetch_add(waited.as_nanos() as u64, Relaxed);
        Some((CAUSES[cause], waited))
    }

    /// Pays a part of the debt. Returns the debt before the payment, and the part in nanoseconds.
    fn pay(&self, clock: &dyn Clock) -> (Duration, u64) {
        let part = |owed: u64| owed.min(DELAY_MAX.as_nanos() as u64);
        // Subtracts before the sleep, so that concurrent writers pay different parts.
        let before = self.owed.fetch_update(Relaxed, Relaxed, |owed| Some(owed - part(owed)));
        let (Ok(owed) | Err(owed)) = before;
        debug_assert!(part(owed) <= owed, "more is paid than owed");
        clock.sleep(Duration::from_nanos(part(owed)));
        (Duration::from_nanos(owed), part(owed))
    }

    /// Wakes stopped writers, so that they notice a failure or the closing of the store.
    pub(crate) fn wake(&self) {
        drop(lock(&self.gate));
        self.open.notify_all();
    }

    /// Returns the stalls so far.
    pub(crate) fn stalls(&self) -> Stalls {
        let time = |cause: usize| Duration::from_nanos(self.stats.nanos[cause].load(Relaxed));
        Stalls {
            delays: self.stats.delays.load(Relaxed),
            stops: self.stats.stops.load(Relaxed),
            memtables: time(0),
            level_zero: time(1),
            pending_compaction: time(2),
        }
    }
}
