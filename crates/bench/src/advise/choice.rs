//! Chooses from measured candidates: there is a winner only if its lead is more than noise.

use serde::{Deserialize, Serialize};

use super::verify::Verified;
use crate::core::stats::{self, Estimate};

/// A candidate whose median is within this factor of the best counts as indistinguishable from it
/// in practice, whatever the interval says.
const ALIKE: f64 = 1.03;

/// The outcome of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// One store is ahead of all others that were run.
    Winner {
        /// The candidate to take: the store with its fastest settings, or with its default settings
        /// if those are indistinguishable from the fastest.
        name: String,
        /// Settings of the winning store that are indistinguishable, the recommended ones first.
        /// Empty if there are no others.
        #[serde(default)]
        alike: Vec<String>,
        /// The best candidate of another store, the factor by which the winner is faster at the
        /// workload's full size, and the interval of that factor. If no other store that was run
        /// meets the constraints, the best other settings of the same store; `None` if there are
        /// none.
        ahead_of: Option<(String, f64, f64, f64)>,
    },
    /// These candidates are indistinguishable and belong to more than one store. The first has the
    /// best median.
    NoClearWinner {
        /// Names of the candidates.
        names: Vec<String>,
    },
    /// Every candidate breaks a constraint.
    #[serde(rename = "nobody")]
    NoStore,
}

impl Choice {
    /// Returns the candidate to take: the winner, or without a clear one the candidate with the
    /// best median.
    pub fn name(&self) -> Option<&str> {
        match self {
            Choice::Winner { name, .. } => Some(name),
            Choice::NoClearWinner { names } => names.first().map(String::as_str),
            Choice::NoStore => None,
        }
    }

    /// Returns the settings of the winning store that are indistinguishable from the winner's.
    pub(super) fn alike(&self) -> &[String] {
        match self {
            Choice::Winner { alike, .. } => alike,
            _ => &[],
        }
    }
}

/// Chooses the winner among `verified`, which is ordered from the fastest.
///
/// If the stores that were run are smaller than the workload, the winner must also lead at the full
/// size, according to the predicted growth. `doubt` is the factor by which that growth may be
/// wrong; 1 if the stores had the full size.
pub(super) fn choose(verified: &[Verified], seed: u64, doubt: f64) -> Choice {
    let measured = Ranked::new(verified.to_vec(), seed, 1.0);
    let grown = Ranked::new(verified.iter().map(grown).collect(), seed, doubt);
    let mut names = measured.best();
    let others: Vec<&str> = grown.best().into_iter().filter(|name| !names.contains(name)).collect();
    names.extend(others);
    let of = |name: &str| verified.iter().find(|one| one.name == name);
    let Some(first) = names.first().and_then(|name| of(name)) else { return Choice::NoStore };
    let is_one_store = names.iter().all(|name| of(name).is_some_and(|one| one.store == first.store));
    let unclear = |name: &str| [measured.not_behind(name), grown.not_behind(name)].concat();
    // Default settings are preferred because they are the best known, but not at the price of a
    // clear lead over other stores.
    let usual = names.iter().copied().find(|name| *name == first.store);
    let clear = usual.into_iter().chain(names.iter().copied()).find(|name| unclear(name).is_empty());
    let Some(taken) = clear.filter(|_| is_one_store).and_then(of) else {
        // These settings lead the other stores only at the measured size or only at the full size.
        // The answer includes the candidates that they do not lead.
        for name in if is_one_store { unclear(&first.name) } else { Vec::new() } {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        return Choice::NoClearWinner { names: names.into_iter().map(str::to_owned).collect() };
    };
    names.sort_by_key(|name| *name != taken.name);
    // The comparison is at the size that was asked for.
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

/// Returns the candidate scaled to the workload's full size.
fn grown(one: &Verified) -> Verified {
    let samples = one.samples.iter().map(|sample| sample * one.growth).collect();
    Verified { median: one.median * one.growth, samples, ..one.clone() }
}

/// Measured candidates, ordered from the fastest.
struct Ranked {
    all: Vec<Verified>,
    seed: u64,
    /// A lead must exceed this factor.
    doubt: f64,
}

impl Ranked {
    fn new(mut all: Vec<Verified>, seed: u64, doubt: f64) -> Ranked {
        all.sort_by(|a, b| b.median.total_cmp(&a.median));
        Ranked { all, seed, doubt }
    }

    /// Returns the fastest candidate and all that are indistinguishable from it.
    fn best(&self) -> Vec<&str> {
        let Some((best, others)) = self.all.split_first() else { return Vec::new() };
        let alike = others.iter().filter(|other| !self.is_behind(other, best));
        std::iter::once(best).chain(alike).map(|one| one.name.as_str()).collect()
    }

    /// Returns the candidates of other stores over which `name` has no clear lead.
    fn not_behind(&self, name: &str) -> Vec<&str> {
        let Some(own) = self.all.iter().find(|one| one.name == name) else { return Vec::new() };
        let rivals = self.all.iter().filter(|one| one.store != own.store && !self.is_behind(one, own));
        rivals.map(|one| one.name.as_str()).collect()
    }

    /// Returns whether the lead of `own` over `other` is more than noise.
    fn is_behind(&self, other: &Verified, own: &Verified) -> bool {
        let ratio = stats::paired_ratio(&own.samples, &other.samples, self.seed);
        let ratio = ratio.filter(|_| own.samples.len() >= stats::PAIRS_MIN);
        ratio.is_some_and(|ratio| ratio.low > self.doubt && ratio.value >= ALIKE)
    }
}
