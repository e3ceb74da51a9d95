//! The history of writes and acknowledgements, and the states that a crash may leave.
//!
//! Commits are numbered in order. Three numbers describe a recovered store. It contains all
//! *logged* commits (`Buffered`, `Sync`) up to the *cut* and none after it. Of the `Memory`
//! commits, which are not in the log, each keyspace contains those up to its own *flush point*. No
//! flush point is after the cut.

use cairn_kv::Durability;

use super::{Change, State};

/// One write: an operation or a batch.
#[derive(Debug, Clone)]
pub struct Commit {
    /// Keyspaces and the changes to them.
    pub changes: Vec<(usize, Change)>,
    pub durability: Durability,
    /// The disk's operation count when the commit began.
    pub begun: u64,
    /// For each keyspace: the disk's operation count when its part was lost with the memory of a
    /// process.
    lost: [u64; 2],
}

/// A flush of a keyspace: its writes before commit `upto` are in tables.
#[derive(Debug, Clone, Copy)]
struct Flush {
    begun: u64,
    done: u64,
    upto: usize,
}

/// All commits since a known state.
#[derive(Debug, Clone, Default)]
pub struct History {
    base: State,
    pub commits: Vec<Commit>,
    /// From this operation count of the disk on, the logged commits below a number are durable.
    durable: Vec<(u64, usize)>,
    flushes: [Vec<Flush>; 2],
}

/// The possible ranges of the three numbers after a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bounds {
    cuts: (usize, usize),
    flushes: [Vec<usize>; 2],
    /// How many commits were lost with their process's memory, which distinguishes the lives of the
    /// process.
    lives: u64,
}

/// The states that a crash may leave.
#[derive(Debug, Clone)]
pub struct Accepted {
    bounds: Bounds,
    digests: Vec<[u64; 2]>,
}

impl History {
    /// Creates a history that begins with `base`, which is durable.
    pub fn new(base: State) -> History {
        History { base, ..History::default() }
    }

    /// Records a commit that is about to be attempted.
    pub fn begin(&mut self, changes: Vec<(usize, Change)>, durability: Durability, now: u64) {
        self.commits.push(Commit { changes, durability, begun: now, lost: [u64::MAX; 2] });
    }

    /// Records that everything logged so far is durable.
    pub fn synced(&mut self, now: u64) {
        self.durable.push((now, self.commits.len()));
    }

    /// Records that a keyspace was flushed, with all its writes, in a step that began at `begun`.
    pub fn flushed(&mut self, keyspace: usize, begun: u64, now: u64) {
        let upto = self.commits.len();
        self.flushes[keyspace].push(Flush { begun, done: now, upto });
        self.durable.push((now, upto));
    }

    /// Records that a step that began at `begun` has failed. Either keyspace may have been flushed
    /// in it.
    pub fn failed(&mut self, begun: u64) {
        let upto = self.commits.len();
        self.flushes.iter_mut().for_each(|flushes| flushes.push(Flush { begun, done: u64::MAX, upto }));
    }

    /// Removes the last commit, which failed without any effect and must never appear.
    pub fn forget_last(&mut self) {
        self.commits.pop();
        let count = self.commits.len();
        let all = self.durable.iter_mut().map(|(_, upto)| upto);
        all.chain(self.flushes.iter_mut().flatten().map(|flush| &mut flush.upto))
            .for_each(|upto| *upto = count.min(*upto));
    }

    /// Records that the process ended without a power loss. Writes that were only in its memory are
    /// lost.
    pub fn process_ended(&mut self, now: u64) {
        for keyspace in 0..2 {
            let kept = self.flushes[keyspace].last().map_or(0, |flush| flush.upto);
            for commit in self.commits.iter_mut().skip(kept) {
                if commit.durability == Durability::Memory && commit.lost[keyspace] == u64::MAX {
                    commit.lost[keyspace] = now;
                }
            }
        }
    }

    /// Returns the state that a reader sees now.
    pub fn state(&self) -> State {
        let mut state = self.base.clone();
        for commit in &self.commits {
            for (keyspace, change) in &commit.changes {
                if commit.lost[*keyspace] == u64::MAX {
                    state[*keyspace].apply(change);
                }
            }
        }
        state
    }

    fn bounds(&self, at: u64) -> Bounds {
        let least =
            self.durable.iter().filter(|(since, _)| *since <= at).map(|(_, upto)| *upto).max().unwrap_or(0);
        let most = self.commits.iter().take_while(|commit| commit.begun < at).count();
        let flushes = std::array::from_fn(|keyspace: usize| {
            let all = &self.flushes[keyspace];
            let sure = all.iter().rfind(|flush| flush.done <= at).map_or(0, |flush| flush.upto);
            let mut points = vec![sure];
            points.extend(
                all.iter().filter(|flush| flush.begun < at && flush.done > at).map(|flush| flush.upto),
            );
            points
        });
        let lost = self.commits.iter().flat_map(|commit| commit.lost).filter(|lost| *lost <= at).max();
        Bounds { cuts: (least, most.max(least)), flushes, lives: lost.unwrap_or(0) }
    }

    /// Returns the states that a crash at operation count `at` of the disk may leave. `known` is
    /// reused if nothing has changed since.
    pub fn accepted(&self, at: u64, known: Option<Accepted>) -> Accepted {
        let bounds = self.bounds(at);
        if let Some(known) = known.filter(|known| known.bounds == bounds) {
            return known;
        }
        // For each keyspace alone: its digest at each cut, for each flush point.
        let by_cut = |keyspace: usize, flush: usize| -> Vec<u64> {
            let mut model = self.base[keyspace].clone();
            let mut digests = Vec::new();
            for (index, commit) in self.commits.iter().enumerate().take(bounds.cuts.1) {
                if index >= bounds.cuts.0 {
                    digests.push(model.digest());
                }
                if commit.durability == Durability::Memory && (index >= flush || commit.lost[keyspace] <= at)
                {
                    continue;
                }
                let changes = commit.changes.iter().filter(|(to, _)| *to == keyspace);
                changes.for_each(|(_, change)| model.apply(change));
            }
            digests.push(model.digest());
            digests
        };
        let ways = [0, 1].map(|keyspace: usize| {
            bounds.flushes[keyspace].iter().map(|&flush| by_cut(keyspace, flush)).collect::<Vec<_>>()
        });
        let mut digests = Vec::new();
        for first in &ways[0] {
            for second in &ways[1] {
                digests.extend(first.iter().zip(second).map(|(first, second)| [*first, *second]));
            }
        }
        Accepted { bounds, digests }
    }

    /// Describes how a state differs from the accepted ones.
    pub fn explain(&self, accepted: &Accepted, found: &State) -> String {
        let (least, most) = accepted.bounds.cuts;
        let mut best = String::new();
        for cut in least..=most {
            let mut state = self.base.clone();
            for (index, commit) in self.commits.iter().enumerate() {
                for (keyspace, change) in &commit.changes {
                    let flush = accepted.bounds.flushes[*keyspace].iter().max().copied().unwrap_or(0);
                    let there = match commit.durability {
                        Durability::Memory => index < flush && commit.lost[*keyspace] == u64::MAX,
                        _ => index < cut,
                    };
                    if there {
                        state[*keyspace].apply(change);
                    }
                }
            }
            let difference = format!(
                "at cut {cut}: default {} other {}",
                state[0].difference(&found[0]),
                state[1].difference(&found[1])
            );
            if best.is_empty() || difference.len() < best.len() {
                best = difference;
            }
        }
        format!("{:?}; expected != found, {best}", accepted.bounds)
    }
}

impl Accepted {
    pub fn contains(&self, state: &State) -> bool {
        self.digests.contains(&[state[0].digest(), state[1].digest()])
    }
}
