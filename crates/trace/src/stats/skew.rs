//! How unevenly keys are used, and whether a zipf law says it.

use serde::Serialize;

/// Ranks up to here are looked at one by one, later ones in groups 1 % wide.
const SINGLE_RANKS: usize = 1_000;
const GROUP_SHARE: f64 = 0.01;
/// The largest exponent that is tried.
const THETA_MAX: f64 = 5.0;
/// Halvings of that range.
const STEPS: usize = 50;
/// A law that is nowhere farther off than this share of all uses is said to fit.
const FITS: f64 = 0.05;
/// With fewer uses of a key than this, on average, ranks are chance.
const USES_MIN: f64 = 3.0;
/// Points of the curve of shares.
const POINTS: usize = 30;

/// A law of popularity: the key of rank `r` is used in proportion to `r^-theta`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Zipf {
    /// The exponent, by maximum likelihood over the ranks that were seen. 0 is even use; YCSB has
    /// 0.99.
    pub theta: f64,
    /// How far the law's share of the hottest keys is from the real one, where that is farthest
    /// (Kolmogorov and Smirnov).
    pub distance: f64,
    /// True where the distance is at most 5 % and keys were used three times or more on average:
    /// with fewer uses ranks are chance.
    pub fits: bool,
}

/// A point of the curve of shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankPoint {
    /// So large a share of the keys, the hottest first,
    pub keys_share: f64,
    /// gets so large a share of the uses.
    pub uses_share: f64,
}

/// How unevenly keys are used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Skew {
    /// The share of keys that was followed; all that follows is of these.
    pub rate: f64,
    /// Uses of a key, on average.
    pub uses_mean: f64,
    /// The share of the uses of all keys that the hottest one gets.
    pub hottest_key: f64,
    /// The share of uses that the hottest hundredth of the keys gets.
    pub hottest_1_percent: f64,
    /// The share that the hottest tenth of them gets.
    pub hottest_10_percent: f64,
    /// The share of keys that were used once.
    pub once_share: f64,
    /// Uses by keys, from the hottest to all.
    pub curve: Vec<RankPoint>,
    /// The law nearest to it.
    pub zipf: Zipf,
}

/// Neighbouring ranks.
#[derive(Debug, Clone, Copy)]
struct Group {
    ln_rank: f64,
    ranks: f64,
    uses: f64,
}

/// The skew of the uses of keys, of which a share of `rate` was counted; `all` are the uses of all
/// keys. `None` of nothing.
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

/// Ranks in groups, hottest first. In a sample each key stands for the ranks up to the next one.
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

/// The exponent under which the mean logarithm of the rank is what it was: where the likelihood is
/// largest.
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
    // The larger the exponent, the hotter the head, the smaller the mean rank.
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
