//! Distributions of the keys that a workload accesses.

use std::fmt;
use std::str::FromStr;

use cairn_vfs::{Rng, SeededRng};
use serde::{Deserialize, Serialize};

use super::{Permutation, Zipf};
use crate::core::error::{Error, Result};

/// The largest skew, as in fits of traces. At this value one key receives 96 % of all accesses, so
/// a larger one would measure only that key.
const THETA_MAX: f64 = 5.0;

/// The distribution from which the next key is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// All keys with equal probability. The hardest for caches.
    #[default]
    Uniform,
    /// Few keys often, many rarely.
    Zipfian {
        /// The skew: 0.99 is YCSB's.
        theta: f64,
        /// True if popular keys are scattered over the key space rather than adjacent.
        scrambled: bool,
    },
    /// In the order of insertion, repeatedly.
    Sequential,
    /// Zipfian from the newest key backwards.
    Latest {
        /// The skew.
        theta: f64,
    },
    /// A part of the keys receives most of the operations.
    HotSet {
        /// Fraction of the keys that is hot.
        fraction: f64,
        /// Fraction of the operations that go to hot keys.
        probability: f64,
    },
}

impl Distribution {
    /// Checks the parameters.
    ///
    /// Errors: [`Error::Invalid`] naming the one that is out of range.
    pub fn check(&self) -> Result<()> {
        let skew = |theta: f64| {
            if theta > 0.0 && theta <= THETA_MAX {
                return Ok(());
            }
            Err(Error::invalid(format!("zipfian theta {theta}: expected over 0 and at most {THETA_MAX}")))
        };
        let share = |name: &str, share: f64| {
            if share > 0.0 && share <= 1.0 {
                return Ok(());
            }
            Err(Error::invalid(format!("hot set {name} {share}: expected over 0 and at most 1")))
        };
        match *self {
            Distribution::Uniform | Distribution::Sequential => Ok(()),
            Distribution::Zipfian { theta, .. } | Distribution::Latest { theta } => skew(theta),
            Distribution::HotSet { fraction, probability } => {
                share("fraction", fraction)?;
                share("probability", probability)
            }
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Zipfian { theta, scrambled: true } => write!(f, "zipfian {theta}"),
            Distribution::Zipfian { theta, scrambled: false } => write!(f, "zipfian {theta} clustered"),
            Distribution::Sequential => f.write_str("sequential"),
            Distribution::Latest { theta } => write!(f, "latest {theta}"),
            Distribution::HotSet { fraction, probability } => write!(f, "hot set {fraction} {probability}"),
        }
    }
}

impl FromStr for Distribution {
    type Err = Error;

    /// Parses the format of `Display`; omitted parameters have YCSB's values.
    fn from_str(text: &str) -> Result<Self> {
        let refuse = || {
            Error::invalid(format!(
                "distribution {text:?}: expected uniform, sequential, zipfian [THETA] [clustered], latest [THETA] or \
                 hot set [FRACTION] [PROBABILITY]"
            ))
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |word: Option<&&str>, otherwise: f64| match word {
            None => Ok(otherwise),
            Some(word) => word.parse().map_err(|_| refuse()),
        };
        let parsed = match words.as_slice() {
            ["uniform"] => Distribution::Uniform,
            ["sequential"] => Distribution::Sequential,
            ["latest", rest @ ..] if rest.len() <= 1 => {
                Distribution::Latest { theta: number(rest.first(), 0.99)? }
            }
            ["zipfian", rest @ .., "clustered"] if rest.len() <= 1 => {
                Distribution::Zipfian { theta: number(rest.first(), 0.99)?, scrambled: false }
            }
            ["zipfian", rest @ ..] if rest.len() <= 1 => {
                Distribution::Zipfian { theta: number(rest.first(), 0.99)?, scrambled: true }
            }
            ["hot", "set", rest @ ..] if rest.len() <= 2 => Distribution::HotSet {
                fraction: number(rest.first(), 0.2)?,
                probability: number(rest.get(1), 0.8)?,
            },
            _ => return Err(refuse()),
        };
        parsed.check()?;
        Ok(parsed)
    }
}

/// Draws key numbers from a [`Distribution`].
#[derive(Debug, Clone)]
pub struct Sampler {
    len: u64,
    rng: SeededRng,
    law: Law,
}

#[derive(Debug, Clone)]
enum Law {
    Uniform,
    Zipfian { zipf: Zipf, scatter: Option<Permutation> },
    Sequential { next: u64 },
    Latest { zipf: Zipf },
    HotSet { hot: u64, probability: f64, scatter: Permutation },
}

impl Sampler {
    /// Creates a sampler of keys `0..len` (at least one). The sequence depends only on `seed`.
    pub fn new(distribution: Distribution, len: u64, seed: u64) -> Self {
        let scatter = || Permutation::new(len, seed ^ 0x5ca7_7e12);
        let law = match distribution {
            Distribution::Uniform => Law::Uniform,
            Distribution::Sequential => Law::Sequential { next: 0 },
            Distribution::Zipfian { theta, scrambled } => {
                Law::Zipfian { zipf: Zipf::new(len, theta), scatter: scrambled.then(scatter) }
            }
            Distribution::Latest { theta } => Law::Latest { zipf: Zipf::new(len, theta) },
            Distribution::HotSet { fraction, probability } => {
                let hot = ((len as f64 * fraction).round() as u64).clamp(1, len);
                Law::HotSet { hot, probability, scatter: scatter() }
            }
        };
        Sampler { len, rng: SeededRng::new(seed), law }
    }

    /// Draws the next key number, below `len`.
    pub fn draw(&mut self) -> u64 {
        let rng = &mut self.rng;
        match &mut self.law {
            Law::Uniform => rng.below(self.len),
            Law::Zipfian { zipf, scatter: None } => zipf.draw(rng),
            Law::Zipfian { zipf, scatter: Some(scatter) } => scatter.apply(zipf.draw(rng)),
            Law::Latest { zipf } => self.len - 1 - zipf.draw(rng),
            Law::Sequential { next } => {
                let drawn = *next;
                *next = if drawn + 1 == self.len { 0 } else { drawn + 1 };
                drawn
            }
            Law::HotSet { hot, probability, scatter } => {
                let cold = self.len - *hot;
                let rank = if cold == 0 || rng.chance(*probability) {
                    rng.below(*hot)
                } else {
                    *hot + rng.below(cold)
                };
                scatter.apply(rank)
            }
        }
    }
}
