//! Replays a trace of page requests through a policy, and through Belady's optimum.
//!
//! Single-threaded, with nothing pinned and no I/O. The result is exactly the hits and misses of a
//! pool with that number of frames. The lab prints tables of them (`cairn bench pool --trace
//! FILE`), and the tests compare the policies with each other.
//!
//! ```
//! use cairn_pool::PolicyKind;
//! use cairn_pool::replay::{Trace, optimum, replay};
//!
//! let trace = Trace::from_pages([1, 2, 3, 1, 2, 3]);
//! assert_eq!(replay(&trace, PolicyKind::Lru, 2).hits, 0); // a loop that does not fit
//! assert_eq!(optimum(&trace, 2).hits, 2);
//! ```

use std::cell::Cell;
use std::collections::{BinaryHeap, HashMap};

use crate::page::{Frame, PageId};
use crate::policy::{Frames, Hits, Policy, PolicyKind};

#[cfg(test)]
mod tests;

/// A sequence of page requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Each request, as an index into `pages`.
    requests: Vec<u32>,
    /// The distinct pages, in order of first appearance.
    pages: Vec<PageId>,
}

impl Trace {
    /// Creates a trace of these page numbers. At most 2^32 - 1 distinct ones.
    pub fn from_pages(pages: impl IntoIterator<Item = u64>) -> Self {
        let mut trace = Trace::default();
        let mut known = HashMap::new();
        for page in pages {
            let next = trace.pages.len() as u32;
            let index = *known.entry(page).or_insert(next);
            if index == next {
                trace.pages.push(PageId::from_u64(page));
            }
            trace.requests.push(index);
        }
        trace
    }

    /// Parses decimal page numbers, one per line. Ignores anything after the number and white
    /// space, as well as empty lines and lines that begin with `#`.
    ///
    /// # Errors
    /// [`BadLine`] at the first line that does not begin with a number below 2^64.
    pub fn parse(text: &str) -> Result<Self, BadLine> {
        let mut pages = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let Some(word) = line.split_whitespace().next() else { continue };
            if word.starts_with('#') {
                continue;
            }
            let page = word.parse();
            pages.push(page.map_err(|_| BadLine { line: index + 1, found: word.to_owned() })?);
        }
        Ok(Trace::from_pages(pages))
    }

    /// Returns the number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Returns true when there are no requests.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns the number of distinct pages.
    pub fn distinct(&self) -> usize {
        self.pages.len()
    }

    /// Returns `percent` of the number of distinct pages, rounded, but at least one frame: the
    /// capacity at which tables show this trace.
    pub fn frames_at(&self, percent: f64) -> usize {
        ((self.distinct() as f64 * percent / 100.0).round() as usize).max(1)
    }
}

/// A line of a trace that does not begin with a page number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the trace: expected a page number from 0 to 2^64 - 1, found {found:?}")]
pub struct BadLine {
    /// The line number, from 1.
    pub line: usize,
    /// The word found instead.
    pub found: String,
}

/// The hits and misses of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Requests for pages that were resident.
    pub hits: u64,
    /// Requests for pages that had to be read.
    pub misses: u64,
}

impl Outcome {
    /// Returns the share of hits among all requests, from 0 to 1; 0 without requests.
    pub fn hit_ratio(self) -> f64 {
        match self.hits + self.misses {
            0 => 0.0,
            requests => self.hits as f64 / requests as f64,
        }
    }

    fn count(&mut self, hit: bool) {
        self.hits += u64::from(hit);
        self.misses += u64::from(!hit);
    }
}

/// The results of one trace at one capacity: a row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Number of frames.
    pub capacity: usize,
    /// The outcome of each policy, in the requested order.
    pub policies: Vec<(PolicyKind, Outcome)>,
    /// The best possible outcome: [`optimum`].
    pub optimum: Outcome,
}

/// Replays a trace through each policy at each capacity (in frames), in the given order.
pub fn table(trace: &Trace, kinds: &[PolicyKind], capacities: &[usize]) -> Vec<Row> {
    let row = |&capacity: &usize| Row {
        capacity,
        policies: kinds.iter().map(|&kind| (kind, replay(trace, kind, capacity))).collect(),
        optimum: optimum(trace, capacity),
    };
    capacities.iter().map(row).collect()
}

/// Replays a trace through a policy with `capacity` initially empty frames. With no frames, every
/// request misses.
pub fn replay(trace: &Trace, kind: PolicyKind, capacity: usize) -> Outcome {
    replay_through(trace, kind.build(capacity).as_mut(), capacity)
}

/// Like [`replay`], through a policy created for `capacity` frames that has none of them yet.
fn replay_through(trace: &Trace, policy: &mut dyn Policy, capacity: usize) -> Outcome {
    let mut outcome = Outcome::default();
    let mark_max = match policy.hits() {
        Hits::Marked { max } => Some(max),
        Hits::Logged => None,
    };
    let marks = Marks(vec![Cell::new(0); capacity.min(trace.distinct())]);
    let mut frame_of: Vec<Option<Frame>> = vec![None; trace.pages.len()];
    let mut held: Vec<u32> = Vec::with_capacity(marks.0.len());
    for &page in &trace.requests {
        let resident = frame_of[page as usize];
        debug_assert!(resident.is_none_or(|frame| held[frame as usize] == page));
        outcome.count(resident.is_some());
        match (resident, mark_max) {
            (Some(frame), Some(max)) => marks.set_mark(frame, (marks.mark(frame) + 1).min(max)),
            (Some(frame), None) => policy.hit(frame),
            (None, _) => {
                let name = trace.pages[page as usize];
                let frame = if held.len() < capacity {
                    held.push(page);
                    held.len() as Frame - 1
                } else if let Some(frame) = policy.evict(Some(name), &marks) {
                    frame_of[held[frame as usize] as usize] = None;
                    held[frame as usize] = page;
                    frame
                } else {
                    continue; // No frames at all: nothing is ever pinned here.
                };
                marks.set_mark(frame, 0);
                policy.insert(frame, name, &marks);
                frame_of[page as usize] = Some(frame);
            }
        }
    }
    debug_assert!(outcome.hits + outcome.misses == trace.len() as u64);
    debug_assert!(held.len() <= capacity && policy.len() == held.len());
    outcome
}

/// Returns the maximum number of hits with `capacity` frames when every missed page is brought in,
/// as a pool does. The victim is the page whose next request is farthest in the future (Belady, "A
/// study of replacement algorithms for a virtual-storage computer", 1966). O(n log n).
pub fn optimum(trace: &Trace, capacity: usize) -> Outcome {
    const NEVER: usize = usize::MAX;
    let mut outcome = Outcome::default();
    if capacity == 0 {
        outcome.misses = trace.len() as u64;
        return outcome;
    }
    let mut next = vec![NEVER; trace.requests.len()];
    let mut seen = vec![NEVER; trace.pages.len()];
    for (at, &page) in trace.requests.iter().enumerate().rev() {
        next[at] = seen[page as usize];
        seen[page as usize] = at;
    }
    let mut resident = vec![false; trace.pages.len()];
    let mut frames = 0;
    // Next request and page. A hit leaves its old entry in the heap. The time of that entry has
    // passed, so it is below all current ones. There are always as many current entries as frames,
    // so an old one is never popped.
    let mut farthest: BinaryHeap<(usize, u32)> = BinaryHeap::new();
    for (at, &page) in trace.requests.iter().enumerate() {
        let hit = resident[page as usize];
        outcome.count(hit);
        if !hit {
            if frames < capacity {
                frames += 1;
            } else if let Some((_, victim)) = farthest.pop() {
                resident[victim as usize] = false;
            }
            resident[page as usize] = true;
        }
        debug_assert!(next[at] > at && frames <= capacity);
        farthest.push((next[at], page));
    }
    debug_assert!(outcome.hits + outcome.misses == trace.len() as u64);
    outcome
}

/// Marks without a pool: every frame is available.
struct Marks(Vec<Cell<u8>>);

impl Frames for Marks {
    fn mark(&self, frame: Frame) -> u8 {
        self.0.get(frame as usize).map_or(0, Cell::get)
    }

    fn set_mark(&self, frame: Frame, mark: u8) {
        if let Some(cell) = self.0.get(frame as usize) {
            cell.set(mark);
        }
    }

    fn claim(&self, _frame: Frame) -> bool {
        true
    }
}
