//! A long overwrite: a store of a given size is filled, then overwritten several times in random
//! order. Measures the bytes written for that, the final size of the store relative to its data,
//! and how steady the rate is.
//!
//! The clock is read around every put. Puts take microseconds here, and the longest of them
//! matters.

use cairn_vfs::{Rng, SeededRng};
use serde::{Deserialize, Serialize};

use super::keys::KeyMaker;
use super::outcome::{Figure, KvMetric, KvOutcome, OperationCase};
use super::turn::{Client, Model, Span, Turn, add_spans};
use super::values::Values;
use crate::core::error::Result;
use crate::core::stats;
use crate::core::workload::Permutation;

/// The number of records, and the number of overwrites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overwrite {
    /// Number of records in the store.
    pub records: u64,
    /// Number of puts of random records after the fill.
    pub operations: u64,
}

/// The name of the mode.
pub const NAME: &str = "overwrite-long";

/// A second with less than this share of the median second's work counts as stalled.
const STALLED_SHARE: f64 = 0.1;

/// The elapsed seconds are checked after this many puts.
const PUTS_PER_LOOK: u64 = 64;

pub(super) fn run(turn: &Turn<'_>, overwrite: &Overwrite) -> Result<KvOutcome> {
    let keys = turn.keys(overwrite.records)?;
    let values = turn.values()?;
    let mut model = Model::new(overwrite.records);
    let open = turn.open()?;
    let order = Permutation::new(overwrite.records, turn.setup.seed);
    open.run(1, false, |_, client| {
        let (mut values, mut key) = (values.clone(), keys.blank());
        for place in 0..overwrite.records {
            let number = order.apply(place);
            keys.write(number, &mut key);
            client.session.put(&key, values.make(number, 1))?;
        }
        Ok(())
    })?;
    (0..overwrite.records).for_each(|number| model.set(number, 1));
    open.settle()?;
    let before = open.written_bytes();

    let mut seconds = Vec::new();
    let model_and_seconds = std::sync::Mutex::new((&mut model, &mut seconds));
    let spans = open.run(1, true, |_, client| {
        let mut guard = model_and_seconds.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (model, seconds) = &mut *guard;
        overwrite_all(client, turn, overwrite, keys, values.clone(), model, seconds)
    })?;
    let settled = open.settle()?;

    let mut outcome = KvOutcome::default();
    let done = done(overwrite);
    add_spans(&mut outcome, &done, &spans, false);
    add_spans(&mut outcome, &done, &spans, true);
    let user = overwrite.operations * turn.shape().record_bytes();
    if let (Some(before), Some(after)) = (before, open.written_bytes()) {
        outcome.add(&done, KvMetric::WriteAmplification, (after - before) as f64 / user as f64);
    }
    let live = overwrite.records * turn.shape().record_bytes();
    outcome.add(&done, KvMetric::SpaceAmplification, open.disk_bytes()? as f64 / live as f64);
    outcome.add(&OperationCase { operation: "settle".to_owned(), ..done.clone() }, KvMetric::Time, settled);
    evenness(&done, &spans, seconds, &mut outcome);
    model.check_all(turn, &mut *open.db.session()?, keys, &done)?;
    open.close(&done, &mut outcome)?;
    Ok(outcome)
}

fn done(overwrite: &Overwrite) -> OperationCase {
    OperationCase {
        operation: "put".to_owned(),
        dataset: NAME.to_owned(),
        keys: "present".to_owned(),
        distribution: "uniform".to_owned(),
        entries: overwrite.records,
        threads: 1,
    }
}

/// Performs all puts, and adds the number of puts in each second to `seconds`.
fn overwrite_all(
    client: &mut Client<'_>,
    turn: &Turn<'_>,
    overwrite: &Overwrite,
    keys: KeyMaker,
    mut values: Values,
    model: &mut Model,
    seconds: &mut Vec<f64>,
) -> Result<Span> {
    let mut rng = SeededRng::new(turn.setup.seed ^ 0x00e4_1234);
    let mut key = keys.blank();
    let start = client.now();
    let mut counted = 0;
    client.span(|client| {
        for place in 0..overwrite.operations {
            let number = rng.below(overwrite.records);
            let version = model.version(number) + 1;
            model.set(number, version);
            keys.write(number, &mut key);
            client.op(|session| session.put(&key, values.make(number, version)))?;
            if place % PUTS_PER_LOOK == 0 {
                let second = (client.now() - start).as_secs() as usize;
                while seconds.len() < second {
                    // A put that took several seconds leaves some seconds with zero puts.
                    seconds.push((place - counted) as f64);
                    counted = place;
                }
            }
        }
        Ok(overwrite.operations)
    })
}

/// Records the longest put, the seconds with almost no puts, and the rate of every second.
fn evenness(done: &OperationCase, spans: &[Span], seconds: Vec<f64>, outcome: &mut KvOutcome) {
    let longest = spans.iter().map(|span| span.latencies.quantile(1.0)).fold(0.0, f64::max);
    outcome.add(done, KvMetric::Longest, longest);
    let usual = stats::median(&seconds);
    let stalled = seconds.iter().filter(|rate| **rate < STALLED_SHARE * usual).count();
    outcome.add(done, KvMetric::StalledSeconds, stalled as f64);
    if !seconds.is_empty() {
        let metric = KvMetric::ThroughputOverTime;
        outcome.figures.push(Figure { done: done.clone(), metric, values: seconds, buckets: Vec::new() });
    }
}
