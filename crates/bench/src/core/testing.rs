//! Sample runs for tests.

use std::collections::BTreeMap;

use crate::core::progress::Progress;
use crate::core::results::{Case, Contender, Measurement, Run, SCHEMA_VERSION};
use crate::core::stats;

/// Records the messages to the user.
#[derive(Debug, Default)]
pub(crate) struct Notes(pub std::cell::RefCell<Vec<String>>);

impl Progress for Notes {
    fn group(&self, _: usize, _: usize, _: &str) {}
    fn step(&self, _: usize, _: usize, _: &str) {}
    fn note(&self, line: &str) {
        self.0.borrow_mut().push(line.to_owned());
    }
}

/// Builds a measurement of a contender, with the median computed from `samples`.
pub(crate) fn measurement(
    contender: &str,
    case: &Case,
    metric: (&str, &str, bool),
    samples: &[f64],
) -> Measurement {
    let estimate = stats::estimate(samples, 1);
    Measurement {
        contender: contender.to_owned(),
        case: case.clone(),
        metric: metric.0.to_owned(),
        unit: metric.1.to_owned(),
        higher_is_better: metric.2,
        samples: samples.to_vec(),
        one_turn: false,
        median: estimate.value,
        low: estimate.low,
        high: estimate.high,
        percentiles: BTreeMap::new(),
        verified: true,
    }
}

/// Builds a case of lookups, or of another operation if `keys` is empty.
pub(crate) fn case(operation: &str, keys: &str, threads: u32) -> Case {
    Case {
        operation: operation.to_owned(),
        dataset: "synthetic".to_owned(),
        entries: 1_000_000,
        value_bytes: 6,
        compression: "none".to_owned(),
        keys: keys.to_owned(),
        distribution: if keys.is_empty() { "" } else { "uniform" }.to_owned(),
        threads,
    }
}

pub(crate) const THROUGHPUT: (&str, &str, bool) = ("throughput", "ops/s", true);
pub(crate) const TIME: (&str, &str, bool) = ("time", "s", false);
pub(crate) const BYTES: (&str, &str, bool) = ("bytes per entry", "B", false);

/// Builds a run of Cairn, Sparkey's Java readers and LMDB: lookups, batches, build time, size;
/// SQLite was skipped.
pub(crate) fn sample_run() -> Run {
    let contender = |name: &str, family: &str, ours, skipped: Option<&str>| Contender {
        name: name.to_owned(),
        family: family.to_owned(),
        version: "1".to_owned(),
        ours,
        settings: BTreeMap::new(),
        skipped: skipped.map(str::to_owned),
    };
    let (get, many) = (case("get", "present", 1), case("get_many", "present", 1));
    let (build, size) = (case("build", "", 0), case("size", "", 0));
    let around = |center: f64| [0.98, 1.0, 1.01, 0.99, 1.02].map(|factor| factor * center);
    Run {
        schema: SCHEMA_VERSION,
        suite: "hash".to_owned(),
        started: "2026-11-21T05:01:00Z".to_owned(),
        mode: "quick".to_owned(),
        seed: 1,
        machine: vec![("cpu".to_owned(), "A | B".to_owned()), ("cores".to_owned(), "2".to_owned())],
        probes: Vec::new(),
        contenders: vec![
            contender("cairn", "cairn", true, None),
            contender("cairn mmap", "cairn", true, None),
            contender("sparkey-java SLOW (JDK 25)", "sparkey-java", false, None),
            contender("sparkey-java FAST (JDK 25)", "sparkey-java", false, None),
            contender("lmdb", "lmdb", false, None),
            contender("sqlite", "sqlite", false, Some("not here")),
        ],
        data: "Synthetic.".to_owned(),
        settings: BTreeMap::new(),
        stopped: false,
        measurements: vec![
            measurement("cairn mmap", &get, THROUGHPUT, &around(12e6)),
            measurement("cairn mmap", &many, THROUGHPUT, &around(30e6)),
            measurement("sparkey-java SLOW (JDK 25)", &get, THROUGHPUT, &around(2e6)),
            measurement("sparkey-java FAST (JDK 25)", &get, THROUGHPUT, &around(3e6)),
            measurement("lmdb", &get, THROUGHPUT, &around(6e6)),
            measurement("cairn", &build, TIME, &around(0.25)),
            measurement("lmdb", &build, TIME, &around(0.5)),
            measurement("cairn", &size, BYTES, &[20.0]),
            measurement("lmdb", &size, BYTES, &[30.0]),
        ],
    }
}
