//! How fast a thread's operations are, and whether recording them costs too much.
//!
//! ```text
//!   look ─► operations and time since the look before ─► too fast: the time is added up ─► 50 ms: the recorder halves its share of keys
//!                                                        slow enough: the time is taken off, of a pause a millisecond
//! ```
//!
//! So a thread that is fast for most of its time is found within a tenth of a second, one that is
//! fast now and then never is, and what the scheduler does to a fast one delays that by little.

/// What it costs a thread to record an operation, of which most is that lines of memory go to the
/// helper's core and back: between operations of `kv` in memory, on four virtual machines of two
/// cores, 17 to 35 ns (`cargo bench -p cairn-trace --features kv --bench recorder`: what "all keys"
/// costs more than "no keys"). By itself, with nothing else in the caches, it is 10 to 17 ns.
const RECORD_NS: u64 = 32;
/// As much where it records one of several: then nobody expects it, the branch is guessed wrong,
/// and what records has gone from the caches. 50 to 65 ns.
const RECORD_SOME_NS: u64 = 56;
/// What it costs to tell whether an operation is to be recorded: the hash of its key.
const ASK_NS: u64 = 5;
/// Recording may take one part of a thread's time in so many, 1.1 %: the goal is 3 %, of which
/// hashes, the helper and the clock have some, and machines differ.
const PARTS: u64 = 90;
/// And so many, 2.5 %, hashes included. Of fast operations, below 360 ns, those take a part that
/// leaves less for what is recorded.
const PARTS_IN_ALL: u64 = 40;
/// Fewer keys than one in so many would leave the hash, and of many traces nothing.
const SAMPLE_MAX: u32 = 256;
/// A thread has been too fast for so long before there are fewer keys: a burst does not thin a
/// trace.
const FAST_NS: u64 = 50_000_000;
/// More of the time between two looks says nothing of the operations: the thread waited, or another
/// one had its core.
const PAUSE_NS: u64 = 1_000_000;

/// What a thread has seen of its operations while the share was the same.
#[derive(Debug)]
pub(super) struct Pace {
    sample: u32,
    /// The time of looks that were too fast, less that of slower ones.
    fast_ns: u64,
    /// Operations of the looks that were too fast, and their time.
    operations: u64,
    spent_ns: u64,
}

impl Pace {
    /// Of nothing yet.
    pub const fn new() -> Pace {
        Pace { sample: 0, fast_ns: 0, operations: 0, spent_ns: 0 }
    }

    /// Takes note that so many operations took so long, of which those of one key in `sample` were
    /// recorded. What one takes, where recording has cost too much for long enough; the pace begins
    /// anew then.
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

/// True where `operations` that took `elapsed_ns` have spent more than their part of it on being
/// recorded.
fn costs_too_much(sample: u32, operations: u64, elapsed_ns: u64) -> bool {
    let record_ns = if sample == 1 { RECORD_NS } else { RECORD_SOME_NS };
    // Multiplied out, so that there are no fractions: record_ns / sample > elapsed_ns / operations
    // / parts.
    let is_above = |record_ns: u64, parts: u64| {
        u128::from(operations) * u128::from(record_ns) * u128::from(parts)
            > u128::from(elapsed_ns) * u128::from(sample)
    };
    is_above(record_ns, PARTS) || is_above(record_ns + ASK_NS * u64::from(sample), PARTS_IN_ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks of 100 operations each at so many nanoseconds an operation, for so long; whether that
    /// was too much.
    fn run(pace: &mut Pace, sample: u32, operation_ns: u64, millis: u64) -> Option<u64> {
        let looks = millis * 1_000_000 / (operation_ns * 100);
        (0..looks).find_map(|_| pace.add(sample, 100, operation_ns * 100))
    }

    /// Goal: each share is kept by those that can afford it and given up by those that cannot.
    /// Method: paces on both sides of what the model says.
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

    /// Goal: only who is fast for most of the time is too fast. Method: bursts between slow
    /// operations and between pauses; a fast thread that loses its core now and then; a share that
    /// was lowered by another thread.
    #[test]
    fn bursts_and_pauses() {
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
