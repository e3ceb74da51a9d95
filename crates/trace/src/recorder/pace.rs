//! Measures how fast a thread's operations are, and decides whether recording them costs too much.
//!
//! ```text
//!   look ─► operations and time since the look before
//!        ─► too fast: the time is added up ─► at 50 ms the recorder halves its share of keys
//!           slow enough: the time is taken off, at most a millisecond of a pause
//! ```
//!
//! A thread that is fast most of the time is thus detected within a tenth of a second. A thread
//! that is fast now and then never is. Preemption by the scheduler delays detection only a little.

/// The cost to a thread of recording an operation. Most of it is the transfer of cache lines to the
/// helper's core and back. Between operations of `kv` in memory, on four virtual machines of two
/// cores, it is 17 to 35 ns: the difference between "all keys" and "no keys" in `cargo bench -p
/// cairn-trace --features kv --bench recorder`. In isolation, with nothing else in the caches, it
/// is 10 to 17 ns.
const RECORD_NS: u64 = 32;
/// The same cost when only some operations are recorded: the branch is mispredicted, and the
/// recording code is no longer in the caches. 50 to 65 ns.
const RECORD_SOME_NS: u64 = 56;
/// The cost of deciding whether to record an operation: the hash of its key.
const ASK_NS: u64 = 5;
/// Recording may take one part in this many of a thread's time, 1.1 %. The goal is 3 %, but hashes,
/// the helper and clock reads need a part of that, and machines differ.
const PARTS: u64 = 90;
/// Recording and hashing together may take one part in this many, 2.5 %. For operations below 360
/// ns, hashing takes so much of this that less is left for recording.
const PARTS_IN_ALL: u64 = 40;
/// The smallest share is one key in this many. A smaller one would not save the hash, and would
/// leave nothing of many traces.
const SAMPLE_MAX: u32 = 256;
/// The share falls only after a thread has been too fast for this long, so that a burst does not
/// thin out a trace.
const FAST_NS: u64 = 50_000_000;
/// A longer time between two clock reads says nothing about the operations: the thread waited or
/// was preempted.
const PAUSE_NS: u64 = 1_000_000;

/// The speed of a thread's operations since the share last changed.
#[derive(Debug)]
pub(super) struct Pace {
    sample: u32,
    /// The time of intervals that were too fast, minus the time of slower ones.
    fast_ns: u64,
    /// The operations of intervals that were too fast, and their time.
    operations: u64,
    spent_ns: u64,
}

impl Pace {
    /// Creates the state before any operation.
    pub const fn new() -> Pace {
        Pace { sample: 0, fast_ns: 0, operations: 0, spent_ns: 0 }
    }

    /// Adds `operations` that took `elapsed_ns`, with one key in `sample` recorded. If recording
    /// has cost too much for long enough, returns the time of one operation and starts anew.
    pub fn add(&mut self, sample: u32, operations: u64, elapsed_ns: u64) -> Option<u64> {
        if self.sample != sample {
            *self = Pace { sample, ..Pace::new() };
        }
        if operations == 0 || sample >= SAMPLE_MAX {
            return None;
        }
        if !costs_too_much(sample, operations, elapsed_ns) {
            self.fast_ns = self.fast_ns.saturating_sub(elapsed_ns.min(PAUSE_NS));
            return None;
        }
        if self.fast_ns == 0 {
            (self.operations, self.spent_ns) = (0, 0);
        }
        self.fast_ns = self.fast_ns.saturating_add(elapsed_ns);
        self.operations = self.operations.saturating_add(operations);
        self.spent_ns = self.spent_ns.saturating_add(elapsed_ns);
        if self.fast_ns < FAST_NS {
            return None;
        }
        let operation_ns = self.spent_ns / self.operations;
        *self = Pace { sample, ..Pace::new() };
        Some(operation_ns)
    }
}

/// Returns true if recording takes more than its budget of the time of these operations.
fn costs_too_much(sample: u32, operations: u64, elapsed_ns: u64) -> bool {
    let record_ns = if sample == 1 { RECORD_NS } else { RECORD_SOME_NS };
    // This is record_ns / sample > elapsed_ns / operations / parts, multiplied out to avoid
    // fractions.
    let is_above = |record_ns: u64, parts: u64| {
        u128::from(operations) * u128::from(record_ns) * u128::from(parts)
            > u128::from(elapsed_ns) * u128::from(sample)
    };
    is_above(record_ns, PARTS) || is_above(record_ns + ASK_NS * u64::from(sample), PARTS_IN_ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds intervals of 100 operations at this speed for `millis`. Returns the operation time if
    /// that was too much.
    fn run(pace: &mut Pace, sample: u32, operation_ns: u64, millis: u64) -> Option<u64> {
        let looks = millis * 1_000_000 / (operation_ns * 100);
        (0..looks).find_map(|_| pace.add(sample, 100, operation_ns * 100))
    }

    /// Goal: each share is kept by threads that can afford it and lowered by those that cannot.
    /// Method: speeds on both sides of the model's limits.
    #[test]
    fn the_cost_decides() {
        for (sample, fast, slow) in [
            (1, 2_879, 2_880),
            (2, 2_519, 2_520),
            (4, 1_259, 1_260),
            (16, 339, 340),
            (32, 269, 270),
            (128, 217, 218),
        ] {
            assert_eq!(run(&mut Pace::new(), sample, fast, 60), Some(fast), "one in {sample}");
            assert_eq!(run(&mut Pace::new(), sample, slow, 1_000), None, "one in {sample}");
        }
        assert_eq!(run(&mut Pace::new(), SAMPLE_MAX, 1, 1_000), None, "the least share stays");
    }

    /// Goal: only a thread that is fast most of the time lowers the share. Method: bursts between
    /// slow operations and between pauses; a fast thread that loses its core now and then; a share
    /// that another thread has lowered.
    #[test]
    fn bursts_and_pauses_do_not_mislead_the_pace() {
        let mut pace = Pace::new();
        for _ in 0..100 {
            assert_eq!(run(&mut pace, 1, 100, 40), None);
            assert_eq!(run(&mut pace, 1, 3_000, 40), None);
        }
        for _ in 0..10_000 {
            assert_eq!(pace.add(1, 100, 20_000), None);
            assert_eq!(pace.add(1, 1, 5_000_000), None, "short bursts in a thread that waits");
        }
        let mut pace = Pace::new();
        let found = (0..60).find_map(|_| run(&mut pace, 1, 200, 2).or_else(|| pace.add(1, 100, 30_000_000)));
        assert_eq!(found, Some(200), "the time that the thread waited is not the time of its operations");
        let mut pace = Pace::new();
        assert_eq!(run(&mut pace, 1, 100, 45), None);
        assert_eq!(run(&mut pace, 2, 100, 45), None, "times at another share do not count");
        assert_eq!(run(&mut pace, 2, 100, 10), Some(100));
        assert_eq!(pace.add(1, u64::MAX, u64::MAX), Some(1), "no number is too large");
    }
}
