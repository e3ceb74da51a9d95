//! Who it is, going by what was measured: a winner only where the lead is more than noise.

use serde::{Deserialize, Serialize};

use super::verify::Verified;
use crate::stats::{self, Estimate};

/// A candidate whose median is within this of the best one's cannot be told from it in practice, whatever the interval says.
const ALIKE: f64 = 1.03;

/// Who it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// One candidate is ahead of all others that were run.
    Winner {
        /// Its name.
        name: String,
        /// The next one, and how many times as fast the winner is, with the interval; `None` where nobody else that was run keeps to the constraints.
        ahead_of: Option<(String, f64, f64, f64)>,
    },
    /// These cannot be told apart; the first had the best median.
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

    fn names(&self) -> Vec<String> {
        match self {
            Choice::NoClearWinner { names } => names.clone(),
            other => other.name().map(str::to_owned).into_iter().collect(),
        }
    }
}

/// The winner among those who were run, the fastest first. Where they were run on less than the workload's entries, it must be the same one at the full size,
/// by what predictions say of the way there.
pub(super) fn choose(verified: &[Verified], seed: u64) -> Choice {
    let measured = leader(verified, seed);
    if verified.iter().all(|one| one.growth == 1.0) {
        return measured;
    }
    let mut grown: Vec<Verified> = verified.to_vec();
    for one in &mut grown {
        one.median *= one.growth;
        one.samples.iter_mut().for_each(|sample| *sample *= one.growth);
    }
    grown.sort_by(|a, b| b.median.total_cmp(&a.median));
    let grown = leader(&grown, seed);
    match (&measured, &grown) {
        (Choice::Winner { name: a, .. }, Choice::Winner { name: b, .. }) if a == b => measured,
        (Choice::Nobody, _) | (_, Choice::Nobody) => measured,
        _ => {
            let mut names = measured.names();
            let others: Vec<String> =
                grown.names().into_iter().filter(|name| !names.contains(name)).collect();
            names.extend(others);
            Choice::NoClearWinner { names }
        }
    }
}

/// The winner by the samples: whose lead over everybody is more than the noise.
fn leader(verified: &[Verified], seed: u64) -> Choice {
    let Some((best, others)) = verified.split_first() else { return Choice::Nobody };
    let enough = best.samples.len() >= stats::PAIRS_MIN;
    let ratio = |other: &Verified| stats::paired_ratio(&best.samples, &other.samples, seed);
    let is_behind = |other: &&Verified| {
        let ratio = ratio(other).filter(|_| enough);
        ratio.is_some_and(|ratio: Estimate| ratio.low > 1.0 && ratio.value >= ALIKE)
    };
    let alike: Vec<&Verified> = others.iter().filter(|other| !is_behind(other)).collect();
    if !alike.is_empty() {
        let names = std::iter::once(best).chain(alike).map(|one| one.name.clone()).collect();
        return Choice::NoClearWinner { names };
    }
    let ahead_of = others.first().and_then(|second| {
        let ratio = ratio(second)?;
        Some((second.name.clone(), ratio.value, ratio.low, ratio.high))
    });
    Choice::Winner { name: best.name.clone(), ahead_of }
}
