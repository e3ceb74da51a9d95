//! Maps values to places on an axis, and chooses round values to label it with.

/// One axis. Places are fractions of its length, with 0 at the low end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    ticks: Vec<f64>,
}

/// If the largest value exceeds the smallest by more than this factor, a linear axis hides the
/// small values.
const LOG_FROM: f64 = 30.0;

impl Scale {
    /// Creates a linear axis from zero to a round value at or above `max`, with about `count`
    /// steps. `base` is 1000 or 1024, the factor between the unit's prefixes, so that memory is
    /// divided at round MiB.
    pub(super) fn from_zero(max: f64, count: usize, base: f64) -> Scale {
        let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
        let unit = prefix(max, base);
        let step = round_up(max / unit / count.max(1) as f64, &[1.0, 2.0, 2.5, 5.0]) * unit;
        let steps = (max / step - 1e-9).ceil().max(1.0);
        let ticks = (0..=steps as usize).map(|index| index as f64 * step).collect();
        Scale { low: 0.0, high: steps * step, log: false, ticks }
    }

    /// Creates a logarithmic axis from a round value at or below `min` to one at or above `max`.
    /// Short axes are labelled at 1, 2 and 5 of each decade, long ones at decades only.
    pub(super) fn log(min: f64, max: f64) -> Scale {
        let good = |value: f64| value.is_finite() && value > 0.0;
        let (min, max) = match (good(min), good(max)) {
            (true, true) => (min.min(max), min.max(max)),
            (true, false) => (min, min),
            (false, true) => (max, max),
            (false, false) => (1.0, 1.0),
        };
        let low = round_down(min);
        let mut high = round_up(max, &[1.0, 2.0, 5.0]);
        if high <= low {
            high = low * 10.0;
        }
        let ticks = log_ticks(low, high);
        Scale { low, high, log: true, ticks }
    }

    /// Creates a logarithmic axis that reaches exactly from the first to the last of `values` and
    /// is labelled at each of them. It is for axes such as threads, where only the measured points
    /// have a meaning.
    pub(super) fn log_at(values: &[f64]) -> Scale {
        let mut ticks: Vec<f64> = values.iter().copied().filter(|v| v.is_finite() && *v > 0.0).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        let low = ticks.first().copied().unwrap_or(1.0);
        let high = ticks.last().copied().unwrap_or(1.0);
        Scale { low, high, log: true, ticks }
    }

    /// Creates a [`Scale::log`] if the values spread too far for a linear axis, and a
    /// [`Scale::from_zero`] otherwise.
    pub(super) fn fitting(values: &[f64], count: usize, base: f64) -> Scale {
        let (min, max) = positive_range(values);
        if max / min >= LOG_FROM { Scale::log(min, max) } else { Scale::from_zero(max, count, base) }
    }

    /// Returns the place of `value`, clamped to the axis.
    pub(super) fn place(&self, value: f64) -> f64 {
        let (low, high, value) = if self.log {
            (self.low.ln(), self.high.ln(), value.max(self.low).ln())
        } else {
            (self.low, self.high, value)
        };
        if high > low && value.is_finite() { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
    }

    /// Returns the values to label, ascending.
    pub(super) fn ticks(&self) -> &[f64] {
        &self.ticks
    }

    /// Returns true for a logarithmic axis, which a chart must point out.
    pub(super) fn is_log(&self) -> bool {
        self.log
    }
}

/// Returns the smallest and the largest value above zero, or 1 and 1 if there are none.
pub(super) fn positive_range(values: &[f64]) -> (f64, f64) {
    let good = values.iter().copied().filter(|value| value.is_finite() && *value > 0.0);
    let (min, max) = good.fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
    if max > 0.0 { (min, max) } else { (1.0, 1.0) }
}

/// Returns the factor between a unit's prefixes.
pub(super) fn prefix_base(unit: &str) -> f64 {
    if unit.starts_with('B') || unit == "bytes" { 1024.0 } else { 1000.0 }
}

fn prefix(max: f64, base: f64) -> f64 {
    let mut unit = 1.0;
    while max >= unit * base && unit < 1e15 {
        unit *= base;
    }
    unit
}

fn round_down(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let multiple = [5.0, 2.0, 1.0].into_iter().find(|m| m * power <= value * (1.0 + 1e-9));
    multiple.unwrap_or(1.0) * power
}

/// Returns the smallest value that is at least `value` among `multiples` and 10 times a power of
/// ten.
fn round_up(value: f64, multiples: &[f64]) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let multiple = multiples.iter().copied().find(|m| m * power >= value * (1.0 - 1e-9));
    multiple.unwrap_or(10.0) * power
}

fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = (high / low).log10();
    let multiples: &[f64] = if decades <= 2.0 {
        &[1.0, 2.0, 5.0]
    } else if decades <= 3.5 {
        &[1.0, 3.0]
    } else {
        &[1.0]
    };
    let every = if decades > 8.0 { (decades / 8.0).ceil() as i32 } else { 1 };
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    let inside = |value: &f64| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9);
    let powers = (first..=last).filter(|power| (power - first) % every == 0);
    powers.flat_map(|power| multiples.iter().map(move |m| m * 10_f64.powi(power))).filter(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::test_config::cases(256))]

        /// Goal: a linear axis always covers its values, from zero, with few, even, round steps.
        /// Method: any maximum over thirty decades, both prefix bases.
        #[test]
        fn straight_axes_cover_with_even_round_steps(exponent in -15.0..15.0_f64, count in 1_usize..9, binary: bool) {
            let max = 10_f64.powf(exponent);
            let base = if binary { 1024.0 } else { 1000.0 };
            let scale = Scale::from_zero(max, count, base);
            let ticks = scale.ticks();
            prop_assert_eq!(ticks.first().copied(), Some(0.0));
            prop_assert!(ticks.last().copied().unwrap() >= max * (1.0 - 1e-6));
            prop_assert!(ticks.len() >= 2 && ticks.len() <= count + 2);
            let step = ticks[1];
            for pair in ticks.windows(2) {
                prop_assert!(((pair[1] - pair[0]) / step - 1.0).abs() < 1e-6);
            }
            // At most one step of the axis is empty.
            prop_assert!(ticks.last().copied().unwrap() < max + step * (1.0 + 1e-6));
        }

        /// Goal: places ascend with values and stay on the axis, for both kinds of axis. Method:
        /// random pairs in random ranges.
        #[test]
        fn places_are_monotone(a in 1e-3..1e9_f64, b in 1e-3..1e9_f64, low in 1e-3..1e3_f64, span in 1.0..1e6_f64) {
            let (small, large) = (a.min(b), a.max(b));
            for scale in [Scale::log(low, low * span), Scale::from_zero(low * span, 5, 1000.0)] {
                let (p, q) = (scale.place(small), scale.place(large));
                prop_assert!((0.0..=1.0).contains(&p) && (0.0..=1.0).contains(&q) && p <= q);
            }
        }

        /// Goal: a logarithmic axis covers its values and has between 1 and 12 labels. Method:
        /// random ranges.
        #[test]
        fn log_axes_cover_with_few_labels(low in 1e-9..1e9_f64, span in 1.0..1e12_f64) {
            let scale = Scale::log(low, low * span);
            prop_assert!(scale.low <= low * (1.0 + 1e-6) && scale.high >= low * span * (1.0 - 1e-6));
            prop_assert!((1..=12).contains(&scale.ticks().len()), "{:?}", scale);
            prop_assert!(scale.ticks().windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    /// Goal: values that are not usable still give an axis. Method: every kind of them.
    #[test]
    fn unusable_values_still_give_an_axis() {
        for max in [f64::NAN, f64::INFINITY, 0.0, -3.0] {
            assert!(Scale::from_zero(max, 5, 1000.0).ticks().len() >= 2);
            assert!(!Scale::log(max, max).ticks().is_empty());
            assert!(Scale::fitting(&[max], 5, 1000.0).place(1.0).is_finite());
            assert!(Scale::log_at(&[max]).place(2.0).is_finite());
        }
        assert_eq!(Scale::log_at(&[]).place(4.0), 0.5);
        assert!(Scale::from_zero(10.0, 5, 1000.0).place(f64::NAN).is_finite());
    }

    /// Goal: the most familiar axes are the ones that a person would draw. Method: golden values.
    #[test]
    fn familiar_ranges_get_familiar_axes() {
        assert_eq!(Scale::from_zero(5.9e6, 5, 1000.0).ticks(), [0.0, 2e6, 4e6, 6e6]);
        let mib = 1_048_576.0;
        assert_eq!(
            Scale::from_zero(380.0 * mib, 4, 1024.0).ticks(),
            [0.0, 100.0 * mib, 200.0 * mib, 300.0 * mib, 400.0 * mib]
        );
        assert_eq!(Scale::log(120.0, 3_000.0).ticks(), [100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0]);
        assert_eq!(Scale::log_at(&[8.0, 1.0, 2.0, 2.0]).ticks(), [1.0, 2.0, 8.0]);
        assert_eq!(Scale::log_at(&[1.0, 4.0]).place(2.0), 0.5);
    }
}
