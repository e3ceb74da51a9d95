//! The write controller: decides when writers run freely, are delayed, or are stopped.
//!
//! RocksDB's rules: three causes in a fixed order; a delayed rate that is cut by a fifth while the
//! debt grows, by two fifths near a stop, and raised by a quarter while the debt shrinks. Cairn's
//! rules: a rate that falls geometrically between a soft and a hard limit.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::options::{CompactionStyle, Engine, Options};

/// The cause of a stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Memtables wait for their flush.
    Memtables,
    /// Too many files in level 0.
    LevelZero,
    /// Too many bytes wait for compaction.
    PendingCompaction,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Memtables => "memtables wait for their flush",
            Cause::LevelZero => "level 0 has too many files",
            Cause::PendingCompaction => "too many pending compaction bytes",
        })
    }
}

impl Cause {
    /// Explains the cause and its remedies.
    pub fn explain(self) -> &'static str {
        match self {
            Cause::Memtables => {
                "Memtables fill faster than they are flushed. More of them (max_write_buffer_number) rides out a burst; a \
                 faster disk, or more flush jobs (max_background_jobs), helps for good."
            }
            Cause::LevelZero => {
                "Level 0 gets files faster than they are merged down. More max_background_jobs or max_subcompactions, a larger \
                 write_buffer_size, or fewer writes help; a higher level0_slowdown_writes_trigger only postpones it."
            }
            Cause::PendingCompaction => {
                "Compactions are behind by more than soft_pending_compaction_bytes_limit. The disk or the cores cannot \
                 keep up with this write amplification: more jobs, cheaper compression, or universal compaction."
            }
        }
    }
}

/// The state of writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "cause")]
pub enum Stall {
    /// Writers run freely.
    #[default]
    None,
    /// Writers run at the delayed rate.
    Delayed(Cause),
    /// Writers wait.
    Stopped(Cause),
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stall::None => f.write_str("none"),
            Stall::Delayed(cause) => write!(f, "delayed: {cause}"),
            Stall::Stopped(cause) => write!(f, "stopped: {cause}"),
        }
    }
}

impl Stall {
    /// Returns the cause, if writers are stalled.
    pub fn cause(self) -> Option<Cause> {
        match self {
            Stall::None => None,
            Stall::Delayed(cause) | Stall::Stopped(cause) => Some(cause),
        }
    }

    /// Whether writers wait.
    pub fn is_stopped(self) -> bool {
        matches!(self, Stall::Stopped(_))
    }
}

/// The inputs of the controller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signals {
    /// Memtables that wait for their flush or are being flushed.
    pub sealed: usize,
    /// Files, or runs, in level 0.
    pub level_zero: usize,
    /// The engine's estimate of pending compaction bytes.
    pub debt_bytes: u64,
    /// Bytes of the last level.
    pub last_level_bytes: u64,
    /// The speed of flushes, bytes a second; infinite before the first.
    pub flush_speed: f64,
    /// Whether no compaction runs and none is due.
    pub is_settled: bool,
}

const SLOWER: f64 = 0.8;
const FASTER: f64 = 1.25;
const NEAR_STOP: f64 = 0.6;
const RECOVERED: f64 = 1.4;
const RATE_MIN: f64 = 16.0 * 1024.0;

/// The lowest delayed rate of Cairn, bytes a second.
const CAIRN_SLOW: f64 = 4.0 * 1024.0 * 1024.0;

/// The state of the controller between two updates.
#[derive(Debug, Clone)]
pub struct Controller {
    /// The state of writers.
    pub stall: Stall,
    /// The rate of delayed writers, bytes a second.
    pub delayed_rate: f64,
    rate_max: f64,
    debt_before: u64,
    /// Whether several compactions may run in parallel.
    pub is_under_pressure: bool,
}

impl Controller {
    /// Creates a controller without pressure.
    pub fn new(options: &Options) -> Controller {
        let rate = options.delayed_rate();
        Controller {
            stall: Stall::None,
            delayed_rate: rate,
            rate_max: rate,
            debt_before: 0,
            is_under_pressure: false,
        }
    }

    /// Updates the state. Must be called whenever a memtable is sealed or a job ends.
    pub fn update(&mut self, options: &Options, signals: Signals) {
        match options.engine {
            Engine::Rocksdb => self.update_rocksdb(options, signals),
            Engine::CairnKv => self.update_cairn(options, signals),
        }
    }

    fn update_rocksdb(&mut self, options: &Options, signals: Signals) {
        let before = self.stall;
        // For FIFO, the simulation passes 0 files of level 0, because all its files are there.
        self.stall = rocksdb_stall(options, &signals);
        if let Stall::Delayed(cause) = self.stall {
            let near = match cause {
                Cause::Memtables => false,
                Cause::LevelZero => signals.level_zero + 2 >= options.level0_stop_writes_trigger,
                Cause::PendingCompaction => is_near_hard_limit(options, signals.debt_bytes),
            };
            if options.disable_auto_compactions {
                // A lower rate would not speed up any compaction.
                self.delayed_rate = self.rate_max;
            } else {
                self.adjust_rate(before, signals.debt_bytes, near);
            }
        } else if self.stall == Stall::None && matches!(before, Stall::Delayed(_)) {
            self.delayed_rate = (self.delayed_rate * RECOVERED).min(self.rate_max);
        }
        debug_assert!(
            self.delayed_rate <= self.rate_max.max(RATE_MIN),
            "found a delayed rate of {}, above {}",
            self.delayed_rate,
            self.rate_max
        );
        self.is_under_pressure = self.stall != Stall::None || needs_speed_up(options, &signals);
        self.debt_before = signals.debt_bytes;
    }

    fn adjust_rate(&mut self, before: Stall, debt: u64, near_stop: bool) {
        // The first delay, also one after a stop, starts at the rate left by the last one.
        if !matches!(before, Stall::Delayed(_)) || self.rate_max <= RATE_MIN {
            return;
        }
        let factor = if near_stop {
            NEAR_STOP
        } else if self.debt_before > 0 && self.debt_before <= debt {
            SLOWER
        } else if self.debt_before > debt {
            FASTER
        } else {
            1.0
        };
        self.delayed_rate = (self.delayed_rate * factor).clamp(RATE_MIN, self.rate_max);
    }

    fn update_cairn(&mut self, options: &Options, signals: Signals) {
        let mut worst = (f64::INFINITY, Cause::Memtables);
        let allowed = options.max_write_buffer_number - 1;
        let memtables = cairn_memtable_speed(signals.sealed, allowed, signals.flush_speed);
        let merges = options.compaction_style != CompactionStyle::Fifo;
        let (soft, hard) = (options.level0_slowdown_writes_trigger, options.level0_stop_writes_trigger);
        let zero = cairn_speed(signals.level_zero as f64, soft as f64, hard as f64);
        let limits =
            (options.soft_pending_compaction_bytes_limit, options.hard_pending_compaction_bytes_limit);
        let pending = cairn_speed(signals.debt_bytes as f64, limits.0 as f64, limits.1 as f64);
        let mut look = |speed: f64, cause: Cause| {
            if speed < worst.0 {
                worst = (speed, cause);
            }
        };
        look(memtables, Cause::Memtables);
        if merges {
            // If no compaction would end a stop, writers are only delayed: limits may be below the
            // thresholds at which compactions start.
            let least = if signals.is_settled { CAIRN_SLOW } else { 0.0 };
            look(zero.max(least), Cause::LevelZero);
            look(if limits.0 == 0 { f64::INFINITY } else { pending.max(least) }, Cause::PendingCompaction);
        }
        debug_assert!(worst.0 >= 0.0, "found a delayed rate of {}", worst.0);
        self.delayed_rate = worst.0;
        self.stall = match worst {
            (0.0, cause) => Stall::Stopped(cause),
            (speed, cause) if speed.is_finite() => Stall::Delayed(cause),
            _ => Stall::None,
        };
        // Cairn's compactions always run in parallel.
        self.is_under_pressure = true;
    }
}

fn rocksdb_stall(options: &Options, signals: &Signals) -> Stall {
    let compacts = !options.disable_auto_compactions;
    let debt = if compacts { signals.debt_bytes } else { 0 };
    let files = if compacts { signals.level_zero } else { 0 };
    let (soft, hard) =
        (options.soft_pending_compaction_bytes_limit, options.hard_pending_compaction_bytes_limit);
    let most = options.max_write_buffer_number;
    if signals.sealed >= most {
        Stall::Stopped(Cause::Memtables)
    } else if files >= options.level0_stop_writes_trigger {
        Stall::Stopped(Cause::LevelZero)
    } else if hard > 0 && debt >= hard {
        Stall::Stopped(Cause::PendingCompaction)
    } else if most > 3
        && signals.sealed >= most - 1
        && signals.sealed > options.min_write_buffer_number_to_merge
    {
        Stall::Delayed(Cause::Memtables)
    } else if files >= options.level0_slowdown_writes_trigger {
        Stall::Delayed(Cause::LevelZero)
    } else if soft > 0 && debt >= soft {
        Stall::Delayed(Cause::PendingCompaction)
    } else {
        Stall::None
    }
}

fn is_near_hard_limit(options: &Options, debt: u64) -> bool {
    let (soft, hard) =
        (options.soft_pending_compaction_bytes_limit, options.hard_pending_compaction_bytes_limit);
    hard > 0 && debt.saturating_sub(soft) as f64 > 0.75 * hard.saturating_sub(soft) as f64
}

/// Whether more than one compaction may run. RocksDB runs only one for as long as it suffices.
fn needs_speed_up(options: &Options, signals: &Signals) -> bool {
    let trigger = options.level0_file_num_compaction_trigger;
    let gap = options.level0_slowdown_writes_trigger.saturating_sub(trigger) / 4;
    if signals.level_zero >= (2 * trigger).min(trigger + gap) {
        return true;
    }
    // Without a soft limit the threshold is 0, so any debt is enough, even none.
    let mut limit = options.soft_pending_compaction_bytes_limit / 4;
    if options.rocksdb_version >= 8 && signals.last_level_bytes > 0 {
        let size = (signals.last_level_bytes / 8).max(2 * options.max_bytes_for_level_base);
        limit = limit.min(size);
    }
    signals.debt_bytes >= limit
}

/// Returns Cairn's rate: no limit below `soft`, zero at `hard`, and a geometric fall in between.
fn cairn_speed(value: f64, soft: f64, hard: f64) -> f64 {
    const FAST: f64 = 512.0 * 1024.0 * 1024.0;
    if value < soft {
        f64::INFINITY
    } else if value >= hard {
        0.0
    } else {
        let rate = FAST * (CAIRN_SLOW / FAST).powf((value - soft) / (hard - soft));
        debug_assert!(
            (CAIRN_SLOW..=FAST).contains(&rate),
            "found a rate of {rate} between {soft} and {hard}"
        );
        rate
    }
}

/// Returns Cairn's rate for memtables: with two free ones a little faster than flushes, with one
/// slower.
fn cairn_memtable_speed(sealed: usize, allowed: usize, flush_speed: f64) -> f64 {
    match allowed.saturating_sub(sealed) {
        0 => 0.0,
        1 if sealed >= 2 => (0.7 * flush_speed).max(CAIRN_SLOW),
        2 if sealed >= 2 => (1.3 * flush_speed).max(CAIRN_SLOW),
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signals(sealed: usize, level_zero: usize, debt_bytes: u64) -> Signals {
        Signals { sealed, level_zero, debt_bytes, last_level_bytes: 0, flush_speed: 1e8, is_settled: false }
    }

    /// Goal: causes come in RocksDB's order, and rates follow its rules. Method: a sequence of
    /// signals, with the rate computed by hand.
    #[test]
    fn rates_follow_the_rules() {
        let options = Options::default();
        let mut controller = Controller::new(&options);
        controller.update(&options, signals(0, 3, 0));
        assert_eq!((controller.stall, controller.is_under_pressure), (Stall::None, false));
        controller.update(&options, signals(0, 8, 50));
        assert!(controller.is_under_pressure, "level 0 is twice its trigger");
        controller.update(&options, signals(0, 20, 100));
        assert_eq!(controller.stall, Stall::Delayed(Cause::LevelZero));
        assert_eq!(controller.delayed_rate, options.delayed_rate(), "the first delay cuts nothing");
        let first = controller.delayed_rate;
        controller.update(&options, signals(0, 21, 200));
        assert_eq!(controller.delayed_rate, first * 0.8);
        controller.update(&options, signals(0, 34, 200));
        assert_eq!(controller.delayed_rate, first * 0.8 * 0.6);
        controller.update(&options, signals(0, 36, 200));
        assert_eq!(controller.stall, Stall::Stopped(Cause::LevelZero));
        controller.update(&options, signals(2, 36, 200));
        assert_eq!(controller.stall, Stall::Stopped(Cause::Memtables));
        controller.update(&options, signals(0, 0, 0));
        assert_eq!(controller.stall, Stall::None);
    }

    /// Goal: without automatic compactions, RocksDB's delayed rate stays as configured. Method:
    /// consecutive delays by memtables, with compactions and without.
    #[test]
    fn without_compactions_the_rate_stays() {
        for disable_auto_compactions in [true, false] {
            let options =
                Options { disable_auto_compactions, max_write_buffer_number: 5, ..Options::default() };
            let mut controller = Controller::new(&options);
            for _ in 0..3 {
                controller.update(&options, signals(4, 0, 100));
                assert_eq!(controller.stall, Stall::Delayed(Cause::Memtables));
            }
            assert_eq!(controller.delayed_rate == options.delayed_rate(), disable_auto_compactions);
        }
    }

    /// Goal: compactions run in parallel from RocksDB's debt thresholds on. Method: thresholds by
    /// hand for both families of versions: a quarter of the soft limit, an eighth of the last
    /// level, and 0 without a soft limit.
    #[test]
    fn debt_speeds_compactions_up() {
        let least = |rocksdb_version: u32, soft: u64, last_level_bytes: u64| {
            let options =
                Options { rocksdb_version, soft_pending_compaction_bytes_limit: soft, ..Options::default() };
            let is_enough =
                |debt: u64| needs_speed_up(&options, &Signals { last_level_bytes, ..signals(0, 0, debt) });
            [0, 512 << 20, 1 << 30, 16 << 30].into_iter().find(|&debt| is_enough(debt))
        };
        for version in [7, 8] {
            assert_eq!(least(version, 64 << 30, 0), Some(16 << 30));
            assert_eq!(least(version, 4 << 30, 1 << 40), Some(1 << 30));
            assert_eq!(least(version, 0, 1 << 40), Some(0));
        }
        assert_eq!(least(7, 64 << 30, 8 << 30), Some(16 << 30));
        assert_eq!(least(8, 64 << 30, 8 << 30), Some(1 << 30));
        assert_eq!(least(8, 64 << 30, 1 << 30), Some(512 << 20));
    }

    /// Goal: Cairn's rate falls monotonically between its limits. Method: steps of level 0.
    #[test]
    fn cairn_slows_down_geometrically() {
        let options = Options::cairn_kv();
        let mut controller = Controller::new(&options);
        let mut before = f64::INFINITY;
        for level_zero in 31..57 {
            controller.update(&options, signals(0, level_zero, 0));
            let speed = if controller.stall.is_stopped() { 0.0 } else { controller.delayed_rate };
            assert!(speed < before || speed.is_infinite());
            before = speed;
        }
        assert!(controller.stall.is_stopped());
    }
}
