//! DKV's multi-threaded mode: each thread puts its own keys and then gets them, without waiting for
//! the others.

use serde::{Deserialize, Serialize};

use super::keys::{Order, Tape};
use super::outcome::{KvMetric, KvOutcome, OperationCase};
use super::turn::{Model, Span, Turn, add_spans, checked_get, rate};
use crate::core::error::Result;

/// Number of threads, and work of each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threads {
    /// The mode's name.
    pub mode: String,
    /// Number of threads.
    pub threads: u32,
    /// Number of puts, and of gets, of each thread.
    pub operations_each: u64,
}

const VERSION: u32 = 1;

pub(super) fn run(turn: &Turn<'_>, threads: &Threads) -> Result<KvOutcome> {
    let Threads { threads: count, operations_each: each, .. } = *threads;
    let total = u64::from(count) * each;
    let keys = turn.keys(total)?;
    let tapes: Vec<Tape> = (0..u64::from(count))
        .map(|thread| Tape::new(keys, Order::Sequential { first: thread * each }.numbers(each)))
        .collect();
    let values = turn.values()?;
    let done = |operation: &str, keys: &str| OperationCase {
        operation: operation.to_owned(),
        dataset: threads.mode.clone(),
        keys: keys.to_owned(),
        distribution: "sequential".to_owned(),
        entries: total,
        threads: count,
    };
    let (put, get, both) = (done("put", "new"), done("get", "present"), done("put and get", "present"));
    let open = turn.open()?;
    let timed = turn.setup.timed;
    let spans = open.run(count, timed, |index, client| {
        let (mut values, tape) = (values.clone(), &tapes[index]);
        let puts = client.span(|client| {
            for (number, key) in tape.iter() {
                client.op(|session| session.put(key, values.make(number, VERSION)))?;
            }
            Ok(tape.len() as u64)
        })?;
        let gets = client.span(|client| {
            for (number, key) in tape.iter() {
                checked_get(turn, client, &values, &get, (number, key, VERSION))?;
            }
            Ok(tape.len() as u64)
        })?;
        Ok((puts, gets))
    })?;
    let (puts, gets): (Vec<Span>, Vec<Span>) = spans.into_iter().unzip();
    let mut outcome = KvOutcome::default();
    for (done, spans) in [(&put, &puts), (&get, &gets)] {
        add_spans(&mut outcome, done, spans, timed);
        let slowest = spans.iter().map(Span::seconds).fold(0.0, f64::max);
        if !timed && slowest > 0.0 {
            outcome.add(done, KvMetric::WorstThread, each as f64 / slowest);
        }
    }
    if !timed {
        outcome.add(&both, KvMetric::Throughput, rate(&[puts, gets].concat()));
    }
    let mut model = Model::new(total);
    (0..total).for_each(|number| model.set(number, VERSION));
    model.check_all(turn, &mut *open.db.session()?, keys, &both)?;
    open.close(&both, &mut outcome)?;
    Ok(outcome)
}
