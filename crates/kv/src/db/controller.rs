//! The write controller: slows writers down before they would have to stop.
//!
//! Background work that falls behind is a debt. While it is small, writers run free. Between the
//! soft and the hard limit each written byte costs a delay that grows with the debt, so that
//! writers and compactions meet at a common speed instead of running into a wall; only at the hard
//! limit do writers stop. Delays are taken in small pieces, before any lock; what is not paid by
//! one writer is by the next.

use std::time::Duration;

use cairn_vfs::Clock;
use cairn_vfs::sync::atomic::{AtomicU8, AtomicU64, Ordering::*};
use cairn_vfs::sync::{Condvar, Mutex, lock, wait};

use crate::events::StallCause;

#[cfg(all(test, cairn_shuttle))]
mod shuttle;
#[cfg(test)]
mod tests;

/// No single delay is longer: what a writer feels stays well below a stall, and one that owes more
/// sees in between whether it still has to pay.
const DELAY_MAX: Duration = Duration::from_millis(5);

/// Writers may owe this much and go on; later ones pay it. What a large write owes beyond it is
/// paid before it goes on, or large writes would pass at any speed.
const OWED_MAX: Duration = Duration::from_secs(1);

/// Writers' debt is settled when it is worth at least this: sleeping less is not possible anyway.
const DELAY_MIN: Duration = Duration::from_micros(200);

/// Slowest admitted speed, in bytes a second, right below the hard limit.
const SPEED_MIN: f64 = 4.0 * 1024.0 * 1024.0;

/// Fastest limited speed, right above the soft limit.
const SPEED_MAX: f64 = 512.0 * 1024.0 * 1024.0;

/// How fast writers may write, in view of one kind of background work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pressure {
    pub cause: StallCause,
    /// Bytes a second: infinite without a limit, 0 when writers are to stop.
    speed: f64,
}

impl Pressure {
    /// The pressure of `value` between `soft`, where writers begin to slow down, and `hard`, where
    /// they stop. In between the speed falls geometrically: each step of the debt costs the same
    /// factor.
    pub(crate) fn between(cause: StallCause, value: f64, soft: f64, hard: f64) -> Pressure {
        let speed = if value < soft {
            f64::INFINITY
        } else if value >= hard {
            0.0
        } else {
            SPEED_MAX * (SPEED_MIN / SPEED_MAX).powf((value - soft) / (hard - soft))
        };
        Pressure { cause, speed }
    }

    /// The pressure of `sealed` memtables of which `allowed` may wait, when flushes make
    /// `flush_speed` bytes a second.
    ///
    /// One that is being flushed is normal. With more, writers run a little faster than the
    /// flushes, and with one place left slower, so that they meet no stop unless flushes become
    /// much slower.
    pub(crate) fn of_memtables(sealed: usize, allowed: usize, flush_speed: f64) -> Pressure {
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

    /// True when writers are to stop.
    pub(crate) fn stops(&self) -> bool {
        self.speed == 0.0
    }

    /// As slow as can be instead of a stop.
    pub(crate) fn without_stop(self) -> Pressure {
        Pressure { speed: self.speed.max(SPEED_MIN), ..self }
    }
}

/// Admits writes.
#[derive(Debug)]
pub(crate) struct Controller {
    /// Nanoseconds that 1 MiB costs; 0 is free, `u64::MAX` is stopped. One load on a free writer's
    /// way.
    nanos_a_mib: AtomicU64,
    /// [`StallCause`] of that.
    cause: AtomicU8,
    /// Nanoseconds of delay that writers have run up and not yet slept.
    owed: AtomicU64,
    /// Bytes of keys and values that flushes make in a second, of late; 0 before the first.
    flush_speed: AtomicU64,
    /// Held from looking at what is due to setting the speed by it: of two who do so, the one who
    /// looked last must set it last, or writers could stay stopped with nothing left to do.
    pub measuring: Mutex<()>,
    gate: Mutex<()>,
    open: Condvar,
    stats: StallStats,
}

/// What writers have waited.
#[derive(Debug, Default)]
struct StallStats {
    delays: AtomicU64,
    stops: AtomicU64,
    nanos: [AtomicU64; 3],
}

/// What writers have waited, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stalls {
    /// Delays: of some milliseconds at most, but for writes of megabytes.
    pub delays: u64,
    /// Full stops.
    pub stops: u64,
    /// Time waited for flushes, all writers together.
    pub memtables: Duration,
    /// Time waited because of level 0.
    pub level_zero: Duration,
    /// Time waited because of pending compactions.
    pub pending_compaction: Duration,
}

const CAUSES: [StallCause; 3] = [StallCause::Memtables, StallCause::LevelZero, StallCause::PendingCompaction];

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

    /// Learns how fast flushes are.
    pub(crate) fn flushed(&self, bytes: u64, took: Duration) {
        if took.is_zero() {
            return;
        }
        let speed = bytes as f64 / took.as_secs_f64();
        let before = self.flush_speed.load(Relaxed) as f64;
        // Of a few flushes: one may have met a busy disk.
        let after = if before == 0.0 { speed } else { (3.0 * before + speed) / 4.0 };
        self.flush_speed.store(after as u64, Relaxed);
    }

    /// See [`Controller::flushed`]; infinite while nothing is known.
    pub(crate) fn flush_speed(&self) -> f64 {
        match self.flush_speed.load(Relaxed) {
            0 => f64::INFINITY,
            speed => speed as f64,
        }
    }

    /// Sets the speed by the worst of `pressures`. To be called whenever background work begins to
    /// be due, or is done.
    pub(crate) fn set(&self, pressures: &[Pressure]) {
        let worst = pressures.iter().copied().min_by(|a, b| a.speed.total_cmp(&b.speed));
        let Some(worst) = worst else { return };
        // Without a limit this is 0.
        let nanos = if worst.stops() { STOPPED } else { ((1u64 << 20) as f64 / worst.speed * 1e9) as u64 };
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

    /// True when writers are stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.nanos_a_mib.load(Relaxed) == STOPPED
    }

    /// Lets a write of `bytes` pass, now or after its delay. Returns the cause and the time when it
    /// had to wait. `abandon` is asked while stopped: true ends the wait.
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
            // BOUND: each pays for its own write, and small ones no more than one delay.
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

    /// Pays a part of what is owed. Says how much it was before, and the part in nanoseconds.
    fn pay(&self, clock: &dyn Clock) -> (Duration, u64) {
        let part = |owed: u64| owed.min(DELAY_MAX.as_nanos() as u64);
        // Before the sleep: of writers who pay beside each other, each pays a part of its own.
        let before = self.owed.fetch_update(Relaxed, Relaxed, |owed| Some(owed - part(owed)));
        let (Ok(owed) | Err(owed)) = before;
        clock.sleep(Duration::from_nanos(part(owed)));
        (Duration::from_nanos(owed), part(owed))
    }

    /// Wakes stopped writers, so that they see a failure or the store's end.
    pub(crate) fn wake(&self) {
        drop(lock(&self.gate));
        self.open.notify_all();
    }

    /// What writers have waited so far.
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
