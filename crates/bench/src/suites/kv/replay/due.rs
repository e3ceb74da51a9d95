//! The times at which operations are due at recorded speed, when many of them have the same time. A
//! recorder reads the clock only now and then, and some clocks count whole seconds.
//!
//! ```text
//!   recorded   0 0 0 0 . . . . . . . . . 80 80 . . . . . 120      a whole run with the same time
//!   due        0     20     40     60    80     100      120      spread evenly to the next time
//! ```
//!
//! With the recorded times, all operations of a run would be due at once, and each would be charged
//! for those before it. Runs are spread per lane. A batch is due as one operation. Before a pause
//! and at the end of the trace there is no useful next time, so the operations keep the pace of
//! those before them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use cairn_trace::{Event, Trace};

use crate::core::error::Result;

/// After this long without an operation, a recorder reads the clock for each one. A longer gap to
/// the next time is a pause, or one step of a coarse clock.
const PAUSE_NS: u64 = 1_000_000;

/// Consecutive operations of a lane with the same recorded time.
#[derive(Debug)]
struct Run {
    time_ns: u64,
    /// Time between two of its operations.
    each_ns: f64,
}

/// The position of a lane.
#[derive(Debug, Default)]
struct Lane {
    time_ns: u64,
    /// Number of operations with this time so far; a batch counts once.
    operations: u64,
    /// Time between two operations.
    each_ns: f64,
    /// The time at which the last operation is due.
    due_ns: u64,
}

/// Passes the first `most` operations of a trace to `add`, each with the time at which it is due,
/// in the order of these times.
///
/// Errors: records that are damaged although their checksum is correct; those of `add`.
pub(super) fn each<'t>(
    trace: &'t Trace,
    most: usize,
    mut add: impl FnMut(&Event<'t>) -> Result<()>,
) -> Result<()> {
    let mut runs = runs(trace, most)?;
    let mut lanes: HashMap<u32, Lane> = HashMap::new();
    // With several lanes, operations that are due later than the next time of another lane wait
    // here. The number is part of the key so that a batch stays together.
    let mut waiting: BTreeMap<(u64, usize), Event<'t>> = BTreeMap::new();
    let is_alone = trace.lanes() <= 1;
    for (number, event) in trace.events().take(most).enumerate() {
        let event = event?;
        let lane = lanes.entry(event.lane).or_default();
        if lane.is_new(&event) {
            lane.go_on(event.time_ns, runs.entry(event.lane).or_default());
            while let Some(first) = waiting.first_entry() {
                if first.key().0 > event.time_ns {
                    break;
                }
                add(&first.remove())?;
            }
        }
        let event = Event { time_ns: lane.due_ns, ..event };
        if is_alone {
            add(&event)?;
        } else {
            waiting.insert((event.time_ns, number), event);
        }
    }
    waiting.values().try_for_each(add)
}

/// Returns the runs of more than one operation, by lane.
fn runs(trace: &Trace, most: usize) -> Result<HashMap<u32, VecDeque<Run>>> {
    let step_ns = trace.step_ns();
    let mut lanes: HashMap<u32, (Lane, VecDeque<Run>)> = HashMap::new();
    for event in trace.events().take(most) {
        let event = event?;
        let (lane, runs) = lanes.entry(event.lane).or_default();
        if !lane.is_new(&event) {
            continue;
        }
        if lane.operations > 0 && event.time_ns != lane.time_ns {
            runs.extend(lane.end(Some(event.time_ns.saturating_sub(lane.time_ns)), step_ns));
        }
        lane.time_ns = event.time_ns;
        lane.operations += 1;
    }
    let ended = lanes.into_iter().map(|(number, (mut lane, mut runs))| {
        runs.extend(lane.end(None, step_ns));
        (number, runs)
    });
    Ok(ended.collect())
}

impl Lane {
    /// Returns true for an operation that is not part of the previous one's batch.
    fn is_new(&self, event: &Event<'_>) -> bool {
        !event.joined || self.operations == 0
    }

    /// Ends the run `gap_ns` before the lane's next time. Returns `None` for a run of one
    /// operation. After a pause, `each_ns` keeps its last value.
    fn end(&mut self, gap_ns: Option<u64>, step_ns: u64) -> Option<Run> {
        let operations = self.operations as f64;
        let each_ns = match gap_ns {
            Some(gap_ns) if gap_ns <= PAUSE_NS.max(step_ns) => {
                self.each_ns = gap_ns as f64 / operations;
                self.each_ns
            }
            // The operations happened at unknown moments within the step.
            _ if step_ns >= PAUSE_NS => step_ns as f64 / operations,
            _ => self.each_ns.min(PAUSE_NS as f64 / operations),
        };
        let is_run = self.operations > 1;
        self.operations = 0;
        is_run.then_some(Run { time_ns: self.time_ns, each_ns })
    }

    /// Advances to the next operation, recorded at `time_ns`, and computes when it is due.
    fn go_on(&mut self, time_ns: u64, runs: &mut VecDeque<Run>) {
        if self.operations == 0 || time_ns != self.time_ns {
            let run = runs.front().is_some_and(|run| run.time_ns == time_ns).then(|| runs.pop_front());
            let each_ns = run.flatten().map_or(0.0, |run| run.each_ns);
            (self.time_ns, self.operations, self.each_ns) = (time_ns, 0, each_ns);
        }
        self.due_ns = time_ns.saturating_add((self.operations as f64 * self.each_ns) as u64);
        self.operations += 1;
    }
}
