//! Compares predictions with measurements.

use cairn_sim::options::CompactionStyle;
use cairn_sim::{Config, Distribution, Results};
use serde::{Deserialize, Serialize};

use super::Case;
use super::drive::Measured;

/// A compared quantity, which decides how far a prediction of it may be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// (flushed + compacted) / flushed.
    WriteAmplification,
    /// The same while the store was filled.
    PreloadWriteAmplification,
    /// Bytes of files / bytes of live keys and values.
    SpaceAmplification,
    /// Bytes of a level, averaged over settled moments.
    Level(usize),
    /// Filters per lookup that report the key as absent.
    FiltersSkipping,
    /// Data blocks per lookup.
    Blocks,
    /// The share of these blocks that is in the cache.
    CacheHit,
    /// Accepted MB per second.
    Throughput,
    /// The share of time that writers waited.
    StallShare,
}

impl Quantity {
    /// Returns the name for tables.
    pub fn name(self) -> String {
        match self {
            Quantity::WriteAmplification => "write amp".to_owned(),
            Quantity::PreloadWriteAmplification => "write amp, preload".to_owned(),
            Quantity::SpaceAmplification => "space amp".to_owned(),
            Quantity::Level(level) => format!("level {level}, MB"),
            Quantity::FiltersSkipping => "filters a get".to_owned(),
            Quantity::Blocks => "blocks a get".to_owned(),
            Quantity::CacheHit => "cache hit".to_owned(),
            Quantity::Throughput => "MB/s".to_owned(),
            Quantity::StallShare => "stalled".to_owned(),
        }
    }

    /// Returns whether its error is a difference of shares instead of a relative error.
    pub fn is_share(self) -> bool {
        matches!(self, Quantity::CacheHit | Quantity::StallShare)
    }
}

/// The comparison of one quantity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The quantity.
    pub quantity: Quantity,
    /// The model's prediction.
    pub predicted: f64,
    /// The store's measurement.
    pub measured: f64,
    /// The error, relative or as a difference of shares.
    pub error: f64,
    /// The maximum error; none if the quantity is shown for information only.
    pub limit: Option<f64>,
}

impl Verdict {
    fn new(quantity: Quantity, predicted: f64, measured: f64, limit: Option<f64>) -> Verdict {
        let error = match (quantity.is_share(), measured.abs() > 1e-9) {
            (true, _) => predicted - measured,
            (false, true) => predicted / measured - 1.0,
            (false, false) => predicted,
        };
        Verdict { quantity, predicted, measured, error, limit }
    }

    /// Returns whether the error is within its limit.
    pub fn holds(&self) -> bool {
        self.limit.is_none_or(|limit| self.error.abs() <= limit)
    }
}

/// The comparison of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Name of the case.
    pub case: String,
    /// The case from which it differs in one setting.
    pub base: Option<String>,
    /// True if no rule of the model was developed with this case.
    #[serde(default)]
    pub held_out: bool,
    /// Name and version of the real store.
    pub version: String,
    /// The compared quantities.
    pub verdicts: Vec<Verdict>,
    /// Relative standard deviation of the predicted write amplification over several seeds.
    #[serde(default)]
    pub spread: f64,
    /// The configuration of a timed prediction, including the measured properties of this machine.
    /// The simulator can run it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Box<Config>>,
}

impl Comparison {
    /// Creates a comparison without quantities.
    fn of(case: &Case, version: &str) -> Comparison {
        Comparison {
            case: case.name.clone(),
            base: case.base.clone(),
            held_out: case.is_held_out,
            version: version.to_owned(),
            verdicts: Vec::new(),
            spread: 0.0,
            config: None,
        }
    }

    /// Returns the comparison of one quantity.
    pub fn verdict(&self, quantity: Quantity) -> Option<&Verdict> {
        self.verdicts.iter().find(|verdict| verdict.quantity == quantity)
    }

    /// Returns whether all quantities are within their limits.
    pub fn holds(&self) -> bool {
        self.verdicts.iter().all(Verdict::holds)
    }
}

/// The effect of one changed setting on write amplification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sign {
    /// The case with the change.
    pub case: String,
    /// The case without the change.
    pub base: String,
    /// Relative change in the model.
    pub predicted: f64,
    /// Relative change in the store.
    pub measured: f64,
    /// Changes below this have no sign, because other seeds cause such changes too.
    pub noise: f64,
}

impl Sign {
    /// Minimum noise.
    const NOISE: f64 = 0.01;

    /// Returns whether both changes have the same direction.
    pub fn holds(&self) -> bool {
        self.measured.abs() < self.noise || self.predicted * self.measured > 0.0
    }
}

/// The quality of the predictions of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of comparisons.
    pub count: usize,
    /// Number of comparisons within the limit.
    pub within: usize,
    /// Mean absolute error.
    pub mean: f64,
    /// Largest absolute error.
    pub worst: f64,
}

impl Summary {
    /// Summarizes the chosen quantities over all cases.
    pub fn of(comparisons: &[Comparison], chosen: impl Fn(Quantity) -> bool) -> Option<Summary> {
        let all: Vec<&Verdict> = comparisons
            .iter()
            .flat_map(|comparison| &comparison.verdicts)
            .filter(|verdict| chosen(verdict.quantity) && verdict.limit.is_some())
            .collect();
        let worst = all.iter().map(|verdict| verdict.error.abs()).fold(0.0, f64::max);
        let sum: f64 = all.iter().map(|verdict| verdict.error.abs()).sum();
        let within = all.iter().filter(|verdict| verdict.holds()).count();
        (!all.is_empty()).then(|| Summary { count: all.len(), within, mean: sum / all.len() as f64, worst })
    }
}

/// The size of a level below this fluctuates like a saw-tooth, so it is shown without a limit.
const LEVEL_BYTES_MIN: f64 = 100e6;

/// Returns the relative standard deviation.
pub(super) fn spread(values: &[f64]) -> f64 {
    let count = values.len().max(2) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (count - 1.0)).sqrt() / mean.max(1e-12)
}

pub(super) fn paced(
    case: &Case,
    version: &str,
    measured: &Measured,
    predicted: &Results,
    spread: f64,
) -> Comparison {
    let config = &case.config;
    let is_sequential = config.workload.distribution == Distribution::Sequential;
    let write_limit = if is_sequential { 0.05 } else { 0.03 };
    let amplification = |totals: crate::stores::measured::Totals| {
        (totals.flush_bytes + totals.compact_write_bytes) / totals.flush_bytes.max(1.0)
    };
    let live = measured.live_keys as f64 * config.entry_bytes() as f64;
    let bytes: u64 = measured.levels.iter().map(|level| level.bytes).sum();
    let is_fifo = config.options.compaction_style == CompactionStyle::Fifo;
    let mut verdicts = vec![
        Verdict::new(
            Quantity::WriteAmplification,
            predicted.write_amplification,
            amplification(measured.run),
            Some(write_limit),
        ),
        Verdict::new(
            Quantity::PreloadWriteAmplification,
            predicted.preload.write_amplification(),
            amplification(measured.preload),
            None,
        ),
    ];
    if !is_fifo {
        let space = bytes as f64 / live.max(1.0);
        verdicts.push(Verdict::new(
            Quantity::SpaceAmplification,
            predicted.space_amplification,
            space,
            Some(0.02),
        ));
    }
    for level in &predicted.levels {
        let real = measured.mean_levels.get(level.level).copied().unwrap_or(0.0);
        let largest = real.max(level.mean_bytes);
        if largest < LEVEL_BYTES_MIN / 50.0 {
            continue;
        }
        let limit = (largest >= LEVEL_BYTES_MIN).then_some(0.05);
        verdicts.push(Verdict::new(Quantity::Level(level.level), level.mean_bytes / 1e6, real / 1e6, limit));
    }
    if let (Some((filters, blocks, hit)), Some(costs)) = (measured.lookups, &predicted.reads) {
        let limit = (config.options.bloom_bits_per_key > 0.0).then_some(0.03);
        verdicts.push(Verdict::new(Quantity::FiltersSkipping, costs.filters_skipping, filters, limit));
        verdicts.push(Verdict::new(Quantity::Blocks, costs.blocks, blocks, Some(0.03)));
        verdicts.push(Verdict::new(Quantity::CacheHit, costs.cache_hit, hit, Some(0.03)));
    }
    Comparison { verdicts, spread, ..Comparison::of(case, version) }
}

pub(super) fn timed(
    case: &Case,
    version: &str,
    config: Config,
    figures: [(f64, f64); 2],
    amplification: (f64, f64),
) -> Comparison {
    let [throughput, stalls] = figures;
    let verdicts = vec![
        Verdict::new(Quantity::Throughput, throughput.0, throughput.1, Some(0.2)),
        Verdict::new(Quantity::StallShare, stalls.0, stalls.1, Some(0.05)),
        Verdict::new(Quantity::WriteAmplification, amplification.0, amplification.1, None),
    ];
    Comparison { verdicts, config: Some(Box::new(config)), ..Comparison::of(case, version) }
}

/// Returns the change of write amplification of each case relative to its base.
pub(super) fn signs(comparisons: &[Comparison]) -> Vec<Sign> {
    let sign = |comparison: &Comparison| {
        let base_name = comparison.base.as_ref()?;
        let other = comparisons.iter().find(|comparison| comparison.case == *base_name)?;
        let amplification = Quantity::WriteAmplification;
        let (this, base) = (comparison.verdict(amplification)?, other.verdict(amplification)?);
        // Two standard deviations of the difference between two runs.
        let noise = 2.0 * comparison.spread.hypot(other.spread);
        Some(Sign {
            case: comparison.case.clone(),
            base: base_name.clone(),
            predicted: this.predicted / base.predicted - 1.0,
            measured: this.measured / base.measured - 1.0,
            noise: noise.max(Sign::NOISE),
        })
    };
    comparisons.iter().filter_map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: errors and limits are computed correctly. Method: a relative error, a difference of
    /// shares, and a quantity without a limit.
    #[test]
    fn errors_are_relative_or_differences() {
        let verdict = Verdict::new(Quantity::WriteAmplification, 10.4, 10.0, Some(0.03));
        assert!((verdict.error - 0.04).abs() < 1e-9 && !verdict.holds());
        let verdict = Verdict::new(Quantity::CacheHit, 0.50, 0.52, Some(0.03));
        assert!((verdict.error + 0.02).abs() < 1e-9 && verdict.holds());
        assert!(Verdict::new(Quantity::Level(1), 1.0, 3.0, None).holds());
    }

    /// Goal: signs belong to changes of one setting, and small changes have none. Method: four
    /// cases, one of which other seeds change by 4 %.
    #[test]
    fn signs_compare_with_the_base() {
        let case = |name: &str, base: Option<&str>, predicted: f64, measured: f64| Comparison {
            case: name.to_owned(),
            base: base.map(str::to_owned),
            held_out: false,
            version: String::new(),
            verdicts: vec![Verdict::new(Quantity::WriteAmplification, predicted, measured, None)],
            spread: if name == "e" { 0.04 } else { 0.0 },
            config: None,
        };
        let all = [
            case("a", None, 10.0, 10.0),
            case("b", Some("a"), 9.0, 8.0),
            case("c", Some("a"), 11.0, 9.0),
            case("d", Some("a"), 10.5, 9.95),
            case("e", Some("a"), 10.5, 9.3),
        ];
        let held: Vec<bool> = signs(&all).iter().map(Sign::holds).collect();
        assert_eq!(held, [true, false, true, true]);
        assert!((spread(&[9.0, 10.0, 11.0]) - 0.1).abs() < 1e-12);
    }
}
