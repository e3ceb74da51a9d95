//! The skew of key use, and whether it follows a zipf law.

use serde::Serialize;

/// Ranks up to this one are considered individually, later ones in groups 1 % wide.
const SINGLE_RANKS: usize = 1_000;
const GROUP_SHARE: f64 = 0.01;
/// The largest exponent that is tried.
const THETA_MAX: f64 = 5.0;
/// The number of bisections of that range.
const STEPS: usize = 50;
/// A law fits if its distance is at most this share of all uses.
const FITS: f64 = 0.05;
/// With a lower mean number of uses per key, the order of ranks is random.
const USES_MIN: f64 = 3.0;
/// Points of the curve of shares.
const POINTS: usize = 30;

/// A zipf law of popularity: the key of rank `r` is used in proportion to `r^-theta`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Zipf {
    /// The exponent, by maximum likelihood over the observed ranks. 0 means uniform use; YCSB uses
    /// 0.99.
    pub theta: f64,
    /// The largest difference between the law's and the observed share of the hottest keys
    /// (Kolmogorov-Smirnov distance).
    pub distance: f64,
    /// True if the distance is at most 5 % and keys were used three times or more on average. With
    /// fewer uses, the order of ranks is random.
    pub fits: bool,
}

/// A point of the curve of shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankPoint {
    /// A share of the keys, counted from the hottest.
    pub keys_share: f64,
    /// The share of all uses that those keys get.
    pub uses_share: f64,
}

/// The skew of key use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Skew {
    /// The share of keys that was tracked. The other fields describe these keys.
    pub rate: f64,
    /// Mean number of uses of a key.
    pub uses_mean: f64,
    /// The hottest key's share of the uses of all keys.
    pub hottest_key: f64,
    /// The share of uses that the hottest 1 % of the keys get.
    pub hottest_1_percent: f64,
    /// The share of uses that the hottest 10 % of the keys get.
    pub hottest_10_percent: f64,
    /// The share of keys that were used exactly once.
    pub once_share: f64,
    /// Cumulative uses by keys, hottest first.
    pub curve: Vec<RankPoint>,
    /// The best-fitting zipf law.
    pub zipf: Zipf,
}

/// A group of adjacent ranks.
#[derive(Debug, Clone, Copy)]
struct Group {
    ln_rank: f64,
    ranks: f64,
    uses: f64,
}

/// Computes the skew from the use counts of a share of `rate` of the keys. `all` is the number of
/// uses of all keys. Returns `None` if there are no counts.
pub(super) fn of(mut counts: Vec<u32>, all: f64, rate: f64) -> Option<Skew> {
    if counts.is_empty() {
        return None;
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let total: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let mut running = 0.0;
    let sums: Vec<f64> = counts
        .iter()
        .map(|count| {
            running += f64::from(*count);
            running
        })
        .collect();
    let keys = counts.len();
    let share_of = |share: f64| {
        let count = ((keys as f64 * share).round() as usize).clamp(1, keys);
        sums.get(count - 1).copied().unwrap_or(0.0) / total
    };
    let mut curve: Vec<RankPoint> = (0..POINTS)
        .map(|at| (keys as f64).powf(at as f64 / (POINTS - 1) as f64 - 1.0))
        .map(|share| RankPoint { keys_share: share, uses_share: share_of(share) })
        .collect();
    curve.dedup_by(|a, b| a.keys_share == b.keys_share);
    let once = counts.iter().filter(|count| **count == 1).count();
    let uses_mean = total / keys as f64;
    Some(Skew {
        rate,
        uses_mean,
        hottest_key: counts.first().map_or(0.0, |uses| f64::from(*uses) / all.max(1.0)),
        hottest_1_percent: share_of(0.01),
        hottest_10_percent: share_of(0.1),
        once_share: once as f64 / keys as f64,
        curve,
        zipf: fit(&groups(&counts, rate), uses_mean),
    })
}

/// Groups the ranks, hottest first. In a sample, each key represents the ranks up to the next one.
fn groups(counts: &[u32], rate: f64) -> Vec<Group> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < counts.len() {
        let width = if at < SINGLE_RANKS { 1 } else { ((at as f64 * GROUP_SHARE) as usize).max(1) };
        let end = (at + width).min(counts.len());
        let uses = counts.get(at..end).unwrap_or_default().iter().map(|count| f64::from(*count)).sum();
        let middle = ((at + end - 1) as f64 / 2.0 + 0.5) / rate + 0.5;
        out.push(Group { ln_rank: middle.ln(), ranks: (end - at) as f64, uses });
        at = end;
    }
    out
}

/// Fits the exponent by maximum likelihood: under it, the expected logarithm of the rank equals the
/// observed mean.
fn fit(groups: &[Group], uses_mean: f64) -> Zipf {
    let total: f64 = groups.iter().map(|group| group.uses).sum();
    let seen = groups.iter().map(|group| group.uses * group.ln_rank).sum::<f64>() / total;
    let expected = |theta: f64| {
        let weights =
            groups.iter().map(|group| (group.ranks * (-theta * group.ln_rank).exp(), group.ln_rank));
        let (sum, logs) =
            weights.fold((0.0, 0.0), |(sum, logs), (weight, ln)| (sum + weight, logs + weight * ln));
        logs / sum
    };
    // The larger the exponent, the hotter the head and the smaller the mean rank.
    let (mut low, mut high) = (0.0, THETA_MAX);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if expected(middle) > seen {
            low = middle;
        } else {
            high = middle;
        }
    }
    let theta = (low + high) / 2.0;
    let weight = |group: &Group| group.ranks * (-theta * group.ln_rank).exp();
    let all: f64 = groups.iter().map(weight).sum();
    let (mut real, mut law, mut distance) = (0.0, 0.0, 0.0_f64);
    for group in groups {
        real += group.uses / total;
        law += weight(group) / all;
        distance = distance.max((real - law).abs());
    }
    Zipf { theta, distance, fits: distance <= FITS && uses_mean >= USES_MIN }
}
