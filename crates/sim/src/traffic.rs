//! Models of write traffic over virtual time.

use cairn_vfs::SeededRng;
use cairn_workload::Draw;
use serde::{Deserialize, Serialize};

use crate::error::{Result, expect};
use crate::json::no_settings;

/// The rate of writes over time, in MB (10^6 bytes of keys and values) a second. A delete has no
/// value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Traffic {
    /// As fast as the store accepts writes: a closed loop.
    #[serde(deserialize_with = "no_settings")]
    Unlimited,
    /// A constant rate.
    Constant {
        /// MB a second.
        mb_per_sec: f64,
    },
    /// A sine over a day, from `low` to `high`.
    Diurnal {
        /// MB a second at the minimum.
        low: f64,
        /// MB a second at the maximum.
        high: f64,
        /// Seconds of a period; a day has 86400.
        period_secs: f64,
    },
    /// Bursts and pauses, both of exponentially distributed length.
    OnOff {
        /// MB a second in bursts.
        mb_per_sec: f64,
        /// Mean seconds of a burst.
        on_secs: f64,
        /// Mean seconds of a pause.
        off_secs: f64,
    },
    /// A new rate at regular times, lognormally distributed around a median.
    Lognormal {
        /// The median, MB a second.
        median: f64,
        /// The standard deviation of the logarithm.
        sigma: f64,
        /// Seconds until the next rate.
        every_secs: f64,
    },
    /// A base rate with spikes at exponentially distributed distances.
    Spikes {
        /// MB a second between spikes.
        base: f64,
        /// MB a second in a spike.
        spike: f64,
        /// Mean seconds from the end of a spike to the next one.
        every_secs: f64,
        /// Seconds that a spike lasts.
        length_secs: f64,
    },
    /// Recorded rates, repeated from the start after the last.
    Replay {
        /// Seconds of each rate.
        step_secs: f64,
        /// MB a second, in order.
        mb_per_sec: Vec<f64>,
    },
}

impl Default for Traffic {
    fn default() -> Self {
        Traffic::Constant { mb_per_sec: 20.0 }
    }
}

/// Steps of a sine period: the rate is constant within one.
const DIURNAL_STEPS: f64 = 96.0;

impl Traffic {
    /// Checks all rates and times. Errors: the first one out of range, by name.
    pub fn check(&self) -> Result<()> {
        let rate = |name: &str, value: f64| {
            let name = format!("workload.traffic.{name}");
            expect((0.0..=1e6).contains(&value), &name, value, "0 to 1000000 MB a second")
        };
        let secs = |name: &str, value: f64| {
            let name = format!("workload.traffic.{name}");
            expect((0.001..=1e9).contains(&value), &name, value, "0.001 to 10^9 seconds")
        };
        match self {
            Traffic::Unlimited => Ok(()),
            Traffic::Constant { mb_per_sec } => rate("mb_per_sec", *mb_per_sec),
            Traffic::Diurnal { low, high, period_secs } => {
                rate("low", *low)?;
                rate("high", *high)?;
                expect(low <= high, "workload.traffic.low", low, "at most high")?;
                secs("period_secs", *period_secs)
            }
            Traffic::OnOff { mb_per_sec, on_secs, off_secs } => {
                rate("mb_per_sec", *mb_per_sec)?;
                secs("on_secs", *on_secs)?;
                secs("off_secs", *off_secs)
            }
            Traffic::Lognormal { median, sigma, every_secs } => {
                rate("median", *median)?;
                expect((0.0..=5.0).contains(sigma), "workload.traffic.sigma", sigma, "0 to 5")?;
                secs("every_secs", *every_secs)
            }
            Traffic::Spikes { base, spike, every_secs, length_secs } => {
                rate("base", *base)?;
                rate("spike", *spike)?;
                secs("every_secs", *every_secs)?;
                secs("length_secs", *length_secs)
            }
            Traffic::Replay { step_secs, mb_per_sec } => {
                secs("step_secs", *step_secs)?;
                expect(!mb_per_sec.is_empty(), "workload.traffic.mb_per_sec", "empty", "at least one rate")?;
                mb_per_sec.iter().try_for_each(|value| rate("mb_per_sec", *value))
            }
        }
    }
}

/// Steps through a traffic model.
#[derive(Debug, Clone)]
pub struct TrafficClock {
    traffic: Traffic,
    rng: SeededRng,
    is_on: bool,
    /// The current rate in bytes a second; infinite for a closed loop.
    pub bytes_per_sec: f64,
    /// When the rate changes next, in virtual seconds; infinite for never.
    pub until: f64,
    steps: usize,
}

impl TrafficClock {
    /// Creates a clock at time 0.
    pub fn new(traffic: &Traffic, seed: u64) -> TrafficClock {
        let mut clock = TrafficClock {
            traffic: traffic.clone(),
            rng: SeededRng::new(seed ^ 0x7aff1c),
            is_on: false,
            bytes_per_sec: 0.0,
            until: 0.0,
            steps: 0,
        };
        clock.advance();
        clock
    }

    /// Advances to the next rate, which starts at the old `until`.
    pub fn advance(&mut self) {
        let now = self.until;
        let (rate, lasts) = match &self.traffic {
            Traffic::Unlimited => (f64::INFINITY, f64::INFINITY),
            Traffic::Constant { mb_per_sec } => (mb_per_sec * 1e6, f64::INFINITY),
            Traffic::Diurnal { low, high, period_secs } => {
                let step = period_secs / DIURNAL_STEPS;
                let phase = (self.steps as f64 + 0.5) / DIURNAL_STEPS * std::f64::consts::TAU;
                ((low + (high - low) * (1.0 - phase.cos()) / 2.0) * 1e6, step)
            }
            Traffic::OnOff { mb_per_sec, on_secs, off_secs } => {
                self.is_on = !self.is_on;
                let mean = if self.is_on { *on_secs } else { *off_secs };
                (if self.is_on { mb_per_sec * 1e6 } else { 0.0 }, self.rng.exponential(mean).max(1e-3))
            }
            Traffic::Lognormal { median, sigma, every_secs } => {
                (median * 1e6 * (sigma * self.rng.normal()).exp(), *every_secs)
            }
            Traffic::Spikes { base, spike, every_secs, length_secs } => {
                self.is_on = !self.is_on;
                // The first interval has no spike.
                if self.is_on {
                    (base * 1e6, self.rng.exponential(*every_secs).max(1e-3))
                } else {
                    (spike * 1e6, *length_secs)
                }
            }
            Traffic::Replay { step_secs, mb_per_sec } => {
                let at = self.steps % mb_per_sec.len().max(1);
                (mb_per_sec.get(at).copied().unwrap_or(0.0) * 1e6, *step_secs)
            }
        };
        self.steps += 1;
        debug_assert!(rate >= 0.0 && lasts > 0.0, "found a rate of {rate} for {lasts} s");
        self.bytes_per_sec = rate;
        self.until = now + lasts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a closed loop has no rate, so one in its settings is refused. Method: with one, and
    /// without.
    #[test]
    fn a_closed_loop_has_no_rate() {
        let read = serde_json::from_str::<Traffic>;
        assert_eq!(read(r#"{"kind":"unlimited"}"#).unwrap(), Traffic::Unlimited);
        let error = read(r#"{"kind":"unlimited","mb_per_sec":50}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field `mb_per_sec`"), "{error}");
    }

    /// Goal: the long-run mean of each model matches its parameters. Method: time-weighted means
    /// over many rate changes.
    #[test]
    fn means_are_right() {
        let cases = [
            (Traffic::Constant { mb_per_sec: 5.0 }, 5.0),
            (Traffic::Diurnal { low: 2.0, high: 10.0, period_secs: 86400.0 }, 6.0),
            (Traffic::OnOff { mb_per_sec: 40.0, on_secs: 10.0, off_secs: 30.0 }, 10.0),
            (Traffic::Lognormal { median: 10.0, sigma: 0.5, every_secs: 60.0 }, 10.0 * (0.125f64).exp()),
            (Traffic::Spikes { base: 5.0, spike: 50.0, every_secs: 90.0, length_secs: 10.0 }, 9.5),
            (Traffic::Replay { step_secs: 1.0, mb_per_sec: vec![1.0, 3.0] }, 2.0),
        ];
        for (traffic, expected) in cases {
            let mut clock = TrafficClock::new(&traffic, 4);
            let (mut bytes, mut from) = (0.0, 0.0);
            for _ in 0..9600 {
                if clock.until.is_infinite() {
                    bytes += clock.bytes_per_sec;
                    from += 1.0;
                    continue;
                }
                bytes += clock.bytes_per_sec * (clock.until - from);
                from = clock.until;
                clock.advance();
            }
            let mean = bytes / from / 1e6;
            assert!((mean - expected).abs() < 0.05 * expected, "{traffic:?}: {mean}, expected {expected}");
        }
    }
}
