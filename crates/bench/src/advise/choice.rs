//! Who it is, going by what was measured: a winner only where the lead is more than noise.

use serde::{Deserialize, Serialize};

use super::verify::Verified;
use crate::stats::{self, Estimate};

/// A candidate whose median is within this of the best one's cannot be told from it in practice,
/// whatever the interval says.
const ALIKE: f64 = 1.03;

/// Who it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// One store is ahead of all others that were run.
    Winner {
        /// The candidate to take: the store with the settings that are ahead, or with the usual
        /// ones where those cannot be told from them.
        name: String,
        /// The settings of the store that cannot be told apart, the one to take first; empty where
        /// none are like it.
        #[serde(default)]
        alike: Vec<String>,
        /// The best candidate of another store, and how many times as fast the winner is with all
        /// of the workload's entries, with the interval; where no other store that was run keeps to
        /// the constraints the next settings, and `None` where there are no such either.
        ahead_of: Option<(String, f64, f64, f64)>,
    },
    /// These cannot be told apart, and they are not all of one store; the first had the best
    /// median.
    NoClearWinner {
        /// Their names.
        names: Vec<String>,
    },
    /// Everybody breaks a constraint.
    Nobody,
}

impl Choice {
    /// The one to take: the winner, or of several the one with the best median.
    pub fn name(&self) -> Option<&str> {
        match self {
            Choice::Winner { name, .. } => Some(name),
            Choice::NoClearWinner { names } => names.first().map(String::as_str),
            Choice::Nobody => None,
        }
    }

    /// Settings of the winner that cannot be told from it.
    pub(super) fn alike(&self) -> &[String] {
        match self {
            Choice::Winner { alike, .. } => alike,
            _ => &[],
        }
    }
}

/// The winner among those who were run, the fastest first. Where they were run on less than the
/// workload's entries, it must be the same one at the full size, by what predictions say of the way
/// there; `doubt` is the factor that they may be off by on it, 1 where there is no way to go.
pub(super) fn choose(verified: &[Verified], seed: u64, doubt: f64) -> Choice {
    let measured = Ranked::new(verified.to_vec(), seed, 1.0);
    let grown = Ranked::new(verified.iter().map(grown).collect(), seed, doubt);
    let mut names = measured.best();
    let others: Vec<&str> = grown.best().into_iter().filter(|name| !names.contains(name)).collect();
    names.extend(others);
    let of = |name: &str| verified.iter().find(|one| one.name == name);
    let Some(first) = names.first().and_then(|name| of(name)) else { return Choice::Nobody };
    let is_one_store = names.iter().all(|name| of(name).is_some_and(|one| one.store == first.store));
    let unclear = |name: &str| [measured.not_behind(name), grown.not_behind(name)].concat();
    // The usual settings are known best; but a lead over other stores is not given up for them.
    let usual = names.iter().copied().find(|name| *name == first.store);
    let clear = usual.into_iter().chain(names.iter().copied()).find(|name| unclear(name).is_empty());
    let Some(taken) = clear.filter(|_| is_one_store).and_then(of) else {
        // Settings that are ahead of the other stores only here or only at the full size: by whom
        // they are not is part of it.
        for name in if is_one_store { unclear(&first.name) } else { Vec::new() } {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        return Choice::NoClearWinner { names: names.into_iter().map(str::to_owned).collect() };
    };
    names.sort_by_key(|name| *name != taken.name);
    // Of the size that was asked for.
    let rival = grown.all.iter().find(|one| one.store != taken.store);
    let next = || grown.all.iter().find(|one| !names.contains(&one.name.as_str()));
    let own = grown.all.iter().find(|one| one.name == taken.name);
    let ahead_of = rival.or_else(next).zip(own).and_then(|(second, own)| {
        let Estimate { value, low, high } = stats::paired_ratio(&own.samples, &second.samples, seed)?;
        Some((second.name.clone(), value, low / doubt, high * doubt))
    });
    let name = taken.name.clone();
    let alike = if names.len() > 1 { names.into_iter().map(str::to_owned).collect() } else { Vec::new() };
    Choice::Winner { name, alike, ahead_of }
}

/// What a candidate would do with all of the workload's entries.
fn grown(one: &Verified) -> Verified {
    let samples = one.samples.iter().map(|sample| sample * one.growth).collect();
    Verified { median: one.median * one.growth, samples, ..one.clone() }
}

/// Those who were run, the fastest first.
struct Ranked {
    all: Vec<Verified>,
    seed: u64,
    /// A lead has to be more than this.
    doubt: f64,
}

impl Ranked {
    fn new(mut all: Vec<Verified>, seed: u64, doubt: f64) -> Ranked {
        all.sort_by(|a, b| b.median.total_cmp(&a.median));
        Ranked { all, seed, doubt }
    }

    /// The first one, and who cannot be told from it.
    fn best(&self) -> Vec<&str> {
        let Some((best, others)) = self.all.split_first() else { return Vec::new() };
        let alike = others.iter().filter(|other| !self.is_behind(other, best));
        std::iter::once(best).chain(alike).map(|one| one.name.as_str()).collect()
    }

    /// Those of other stores that a candidate is not ahead of.
    fn not_behind(&self, name: &str) -> Vec<&str> {
        let Some(own) = self.all.iter().find(|one| one.name == name) else { return Vec::new() };
        let rivals = self.all.iter().filter(|one| one.store != own.store && !self.is_behind(one, own));
        rivals.map(|one| one.name.as_str()).collect()
    }

    /// Whether the lead over `other` is more than the noise.
    fn is_behind(&self, other: &Verified, own: &Verified) -> bool {
        let ratio = stats::paired_ratio(&own.samples, &other.samples, self.seed);
        let ratio = ratio.filter(|_| own.samples.len() >= stats::PAIRS_MIN);
        ratio.is_some_and(|ratio| ratio.low > self.doubt && ratio.value >= ALIKE)
    }
}
