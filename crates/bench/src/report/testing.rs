//! Small runs for the tests of this module.

use std::collections::BTreeMap;

use crate::core::results::{Case, Contender, Measurement, Run, SCHEMA_VERSION};

/// Returns the plainest kind of case.
pub(crate) fn case(operation: &str) -> Case {
    Case {
        operation: operation.to_owned(),
        dataset: "synthetic".to_owned(),
        entries: 1_000_000,
        value_bytes: 6,
        compression: "none".to_owned(),
        keys: "present".to_owned(),
        distribution: "uniform".to_owned(),
        threads: 1,
    }
}

/// Returns a verified measurement whose interval reaches from the smallest to the largest sample.
pub(crate) fn measurement(contender: &str, operation: &str, metric: &str, samples: &[f64]) -> Measurement {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    let unit = match metric {
        "throughput" => "ops/s",
        "latency" | "mean latency" => "ns",
        "time" => "s",
        _ => "B",
    };
    Measurement {
        contender: contender.to_owned(),
        case: case(operation),
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        higher_is_better: metric == "throughput",
        samples: samples.to_vec(),
        one_turn: false,
        median: at(sorted.len() / 2),
        low: at(0),
        high: at(sorted.len().saturating_sub(1)),
        percentiles: BTreeMap::new(),
        verified: true,
    }
}

/// Returns a contender that ran with its defaults.
pub(crate) fn contender(name: &str, family: &str, ours: bool) -> Contender {
    Contender {
        name: name.to_owned(),
        family: family.to_owned(),
        version: "1.0".to_owned(),
        ours,
        settings: BTreeMap::new(),
        skipped: None,
    }
}

/// Returns a run of these contenders and measurements.
pub(crate) fn run(contenders: Vec<Contender>, measurements: Vec<Measurement>) -> Run {
    Run {
        settings: BTreeMap::new(),
        stopped: false,
        schema: SCHEMA_VERSION,
        suite: "hash".to_owned(),
        started: "2026-03-01T12:34:56Z".to_owned(),
        mode: "full".to_owned(),
        seed: 42,
        machine: vec![("cpu".to_owned(), "Test CPU".to_owned()), ("cores".to_owned(), "2".to_owned())],
        probes: Vec::new(),
        contenders,
        data: "Synthetic keys of the tests.".to_owned(),
        measurements,
    }
}
