//! The time limits of parts, and estimates of the remaining time.

use super::options::SuiteName;

/// From this share of its steps on, a part's own pace replaces its estimate.
const TELLING_SHARE: f64 = 0.1;

/// Before a part may exceed its share, the other parts must be left this multiple of their expected
/// time.
const MARGIN: f64 = 1.25;

/// The remaining time of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeLeft {
    /// Remaining seconds.
    pub seconds: f64,
    /// False until a part has ended. Until then, the time is an estimate from the plan alone.
    pub measured: bool,
}

/// A part, as the schedule sees it.
#[derive(Debug, Clone, Copy)]
struct Planned {
    suite: SuiteName,
    estimate: f64,
    took: Option<f64>,
    /// Whether the part's duration allows conclusions about others: it was neither cut nor did it
    /// fail.
    telling: bool,
}

/// All parts of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Schedule {
    parts: Vec<Planned>,
    budget: Option<f64>,
}

impl Schedule {
    /// Creates a schedule without parts. `budget` is the time for all of them together.
    pub(super) fn new(budget: Option<f64>) -> Schedule {
        Schedule { parts: Vec::new(), budget }
    }

    /// Appends a part.
    pub(super) fn add(&mut self, suite: SuiteName, estimated_seconds: f64) {
        // An estimate of zero would get no share of the time.
        let estimate = if estimated_seconds.is_finite() { estimated_seconds.max(0.1) } else { 0.1 };
        self.parts.push(Planned { suite, estimate, took: None, telling: false });
    }

    /// Records that a part has ended.
    pub(super) fn ended(&mut self, index: usize, seconds: f64, telling: bool) {
        if let Some(part) = self.parts.get_mut(index) {
            (part.took, part.telling) = (Some(seconds.max(0.0)), telling);
        }
    }

    /// Returns the time limit of a part at its start: its share of the remaining budget, or
    /// everything that the parts after it are not expected to need, if that is more.
    pub(super) fn limit(&self, index: usize) -> Option<f64> {
        let budget = self.budget?;
        let taken: f64 = self.parts.iter().filter_map(|part| part.took).sum();
        let open: f64 = self.parts.iter().filter(|part| part.took.is_none()).map(|part| part.estimate).sum();
        let own = self.parts.get(index)?.estimate;
        let others = self.parts.iter().enumerate().filter(|(at, part)| *at != index && part.took.is_none());
        let needed: f64 = others.map(|(_, part)| part.estimate * self.pace(part.suite)).sum();
        let left = (budget - taken).max(0.0);
        Some((left * own / open.max(own)).max(left - MARGIN * needed))
    }

    /// Returns the remaining time while part `index` runs, which has completed a `share` of its
    /// steps after `seconds`.
    pub(super) fn left(&self, index: usize, share: f64, seconds: f64) -> TimeLeft {
        let measured = self.parts.iter().any(|part| part.telling);
        let mut sum = 0.0;
        for (at, part) in self.parts.iter().enumerate().filter(|(_, part)| part.took.is_none()) {
            let expected = part.estimate * self.pace(part.suite);
            sum += if at != index {
                expected
            } else if share >= TELLING_SHARE {
                seconds / share.min(1.0) * (1.0 - share.min(1.0))
            } else {
                (expected - seconds).max(0.0)
            };
        }
        let taken: f64 = self.parts.iter().filter_map(|part| part.took).sum();
        let most = self.budget.map_or(f64::INFINITY, |budget| (budget - taken - seconds).max(0.0));
        TimeLeft { seconds: sum.min(most), measured }
    }

    /// Returns the duration of a suite's parts as a multiple of their estimates, from the suite's
    /// own ended parts if there are any, else from all ended parts.
    fn pace(&self, suite: SuiteName) -> f64 {
        let of = |wanted: &dyn Fn(&Planned) -> bool| {
            let ended = || self.parts.iter().filter(|part| part.telling && wanted(part));
            let (took, estimate): (f64, f64) = ended().fold((0.0, 0.0), |(took, estimate), part| {
                (took + part.took.unwrap_or_default(), estimate + part.estimate)
            });
            (estimate > 0.0).then_some(took / estimate)
        };
        of(&|part| part.suite == suite).or_else(|| of(&|_| true)).unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn schedule(budget: Option<f64>, estimates: &[(SuiteName, f64)]) -> Schedule {
        let mut schedule = Schedule::new(budget);
        estimates.iter().for_each(|(suite, estimate)| schedule.add(*suite, *estimate));
        schedule
    }

    /// Goal: estimates follow the durations of this run: a suite's own pace if it has one,
    /// otherwise the pace of all, and a part's own steps once there are enough of them. Method: a
    /// machine that is twice as slow as estimated in one suite and three times in another.
    #[test]
    fn estimates_follow_the_run() {
        use SuiteName::{Hash, Kv, Pool};
        let mut it = schedule(None, &[(Hash, 10.0), (Hash, 20.0), (Kv, 30.0), (Kv, 10.0), (Pool, 5.0)]);
        assert_eq!(it.left(0, 0.0, 0.0), TimeLeft { seconds: 75.0, measured: false });
        it.ended(0, 20.0, true);
        assert_eq!(it.left(1, 0.0, 0.0), TimeLeft { seconds: 130.0, measured: true });
        it.ended(1, 40.0, true);
        it.ended(2, 90.0, true);
        // Kv by its own pace, the pool by that of all: 150 seconds for an estimate of 60.
        assert_eq!(it.left(3, 0.05, 1.0).seconds, 29.0 + 12.5);
        assert_eq!(it.left(3, 0.5, 40.0).seconds, 40.0 + 12.5);
        it.ended(3, 1.0, false);
        assert_eq!(it.left(4, 1.0, 12.0).seconds, 0.0);
    }

    /// Goal: a part may take the time that the parts after it are not expected to need, and its
    /// share if they need it all; no estimate exceeds the budget. Method: a budget of twice the
    /// estimates, and one of half of them.
    #[test]
    fn shares_of_the_budget() {
        use SuiteName::{Hash, Kv};
        let mut it = schedule(Some(120.0), &[(Hash, 10.0), (Kv, 20.0), (Kv, 30.0)]);
        assert_eq!(it.limit(0), Some(120.0 - 1.25 * 50.0));
        it.ended(0, 5.0, true);
        // The last part is also expected to take half of its estimate.
        assert_eq!(it.limit(1), Some(115.0 - 1.25 * 15.0));
        it.ended(1, 100.0, false);
        assert_eq!(it.limit(2), Some(15.0));
        assert!(it.left(2, 0.2, 10.0).seconds <= 5.0);
        let tight = schedule(Some(30.0), &[(Hash, 10.0), (Kv, 20.0), (Kv, 30.0)]);
        assert_eq!((tight.limit(0), tight.limit(2)), (Some(5.0), Some(15.0)));
        assert_eq!(schedule(None, &[(Hash, 1.0)]).limit(0), None);
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(256))]

        /// Goal: however bad the estimates are, parts that keep to their limits keep to the budget
        /// together.
        /// Method: any estimates, and parts that take any share of their limits.
        #[test]
        fn limits_keep_the_budget(parts in proptest::collection::vec((0.0..1e4_f64, 0.0..1.0_f64), 1..30)) {
            let mut it = schedule(Some(840.0), &parts.iter().map(|(estimate, _)| (SuiteName::Kv, *estimate)).collect::<Vec<_>>());
            let mut sum = 0.0;
            for (index, (_, share)) in parts.iter().enumerate() {
                let limit = it.limit(index).unwrap();
                prop_assert!(limit >= 0.0);
                let took = limit * if index % 3 == 0 { 1.0 } else { *share };
                it.ended(index, took, true);
                sum += took;
                prop_assert!(it.left(index + 1, 0.0, 0.0).seconds <= 840.0 - sum + 1e-6);
            }
            prop_assert!(sum <= 840.0 + 1e-6);
        }
    }
}
