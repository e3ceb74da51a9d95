//! More data than the cache holds: filled in random order, settled, dropped from the page cache,
//! then read.
//!
//! The compared cache is each store's own. The kernel's page cache is behind all of them and is not
//! limited. Stores that read through a mapping (LMDB) have no other cache, so nothing can limit
//! theirs.

use serde::{Deserialize, Serialize};

use super::keys::{KeyMaker, Tape};
use super::meters;
use super::outcome::{KvMetric, KvOutcome, OperationCase};
use super::turn::{Model, Open, Turn, add_spans, checked_get};
use crate::core::error::Result;
use crate::core::workload::{Distribution, Permutation, Sampler};

/// Number of records, and number of reads of each kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Large {
    /// Number of records in the store.
    pub records: u64,
    /// Number of gets of each distribution.
    pub reads: u64,
    /// Number of scans, each over a hundred entries.
    pub scans: u64,
}

/// The name of the mode.
pub const NAME: &str = "larger-than-cache";

const VERSION: u32 = 1;
const SCAN_ENTRIES: u64 = 100;

pub(super) fn run(turn: &Turn<'_>, large: &Large) -> Result<KvOutcome> {
    let keys = turn.keys(large.records)?;
    let mut outcome = KvOutcome::default();
    let mut model = Model::new(large.records);
    let open = turn.open()?;
    fill(turn, &open, large, keys, &mut outcome)?;
    (0..large.records).for_each(|number| model.set(number, VERSION));
    let settled = open.settle()?;
    outcome.add(&done(large, "settle", "uniform"), KvMetric::Time, settled);
    let user = large.records * turn.shape().record_bytes();
    if let Some(written) = open.written_bytes() {
        outcome.add(
            &done(large, "put", "uniform"),
            KvMetric::WriteAmplification,
            written as f64 / user as f64,
        );
    }
    let disk = open.disk_bytes()?;
    outcome.add(&done(large, "size", "uniform"), KvMetric::SpaceAmplification, disk as f64 / user as f64);
    // Mapped pages stay in memory; everything else begins cold.
    meters::drop_from_memory(&turn.setup.dir)?;
    for distribution in [Distribution::Uniform, Distribution::Zipfian { theta: 0.99, scrambled: true }] {
        read(turn, &open, large, keys, distribution, &mut outcome)?;
    }
    scan(turn, &open, large, keys, &mut outcome)?;
    let last = done(large, "scan 100", "uniform");
    model.check_all(turn, &mut *open.db.session()?, keys, &last)?;
    open.close(&last, &mut outcome)?;
    Ok(outcome)
}

fn done(large: &Large, operation: &str, distribution: &str) -> OperationCase {
    OperationCase {
        operation: operation.to_owned(),
        dataset: NAME.to_owned(),
        keys: if operation == "put" { "new" } else { "present" }.to_owned(),
        distribution: distribution.to_owned(),
        entries: large.records,
        threads: 1,
    }
}

fn fill(
    turn: &Turn<'_>,
    open: &Open<'_>,
    large: &Large,
    keys: KeyMaker,
    outcome: &mut KvOutcome,
) -> Result<()> {
    let order = Permutation::new(large.records, turn.setup.seed);
    let values = turn.values()?;
    let spans = open.run(1, false, |_, client| {
        let (mut values, mut key) = (values.clone(), keys.blank());
        client.span(|client| {
            for place in 0..large.records {
                let number = order.apply(place);
                keys.write(number, &mut key);
                client.session.put(&key, values.make(number, VERSION))?;
            }
            Ok(large.records)
        })
    })?;
    add_spans(outcome, &done(large, "put", "uniform"), &spans, false);
    Ok(())
}

/// Measures gets. They take long enough here that the clock around each adds nothing noticeable, so
/// throughput and latency come from one pass.
fn read(
    turn: &Turn<'_>,
    open: &Open<'_>,
    large: &Large,
    keys: KeyMaker,
    distribution: Distribution,
    outcome: &mut KvOutcome,
) -> Result<()> {
    let mut sampler = Sampler::new(distribution, large.records, turn.setup.seed ^ 0x1a46e);
    let tape = Tape::new(keys, (0..large.reads).map(|_| sampler.draw()).collect());
    let values = turn.values()?;
    let done = done(large, "get", &distribution.to_string());
    let spans = open.run(1, true, |_, client| {
        client.span(|client| {
            for (number, key) in tape.iter() {
                checked_get(turn, client, &values, &done, (number, key, VERSION))?;
            }
            Ok(tape.len() as u64)
        })
    })?;
    add_spans(outcome, &done, &spans, false);
    add_spans(outcome, &done, &spans, true);
    Ok(())
}

fn scan(
    turn: &Turn<'_>,
    open: &Open<'_>,
    large: &Large,
    keys: KeyMaker,
    outcome: &mut KvOutcome,
) -> Result<()> {
    let mut sampler = Sampler::new(Distribution::Uniform, large.records, turn.setup.seed ^ 0x5ca4);
    let tape = Tape::new(keys, (0..large.scans).map(|_| sampler.draw()).collect());
    let values = turn.values()?;
    let done = done(large, "scan 100", "uniform");
    let spans = open.run(1, true, |_, client| {
        client.span(|client| {
            for (number, key) in tape.iter() {
                let (mut next, mut right) = (number, true);
                let end = (number + SCAN_ENTRIES).min(large.records);
                client.op(|session| {
                    session.scan(key, &mut |key, value| {
                        right = keys.number(key) == Some(next) && values.is(next, VERSION, value);
                        next += 1;
                        right && next < end
                    })
                })?;
                if !right || next != end {
                    return Err(turn.wrong(&done, next, Some(values.clone().make(next, VERSION)), None));
                }
            }
            Ok(tape.len() as u64)
        })
    })?;
    add_spans(outcome, &done, &spans, false);
    add_spans(outcome, &done, &spans, true);
    Ok(())
}
