//! Durable puts by several concurrent writers: how well a store uses one device.

use serde::{Deserialize, Serialize};

use super::keys::{Order, Tape};
use super::outcome::{KvOutcome, OperationCase};
use super::turn::{Model, Turn, add_spans};
use crate::core::error::Result;
use crate::stores::bare_device;

/// Number of writers, and of the puts that they share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writers {
    /// The mode's name.
    pub mode: String,
    /// Number of writers.
    pub writers: u32,
    /// Number of puts of all writers together.
    pub operations: u64,
}

const VERSION: u32 = 1;

pub(super) fn run(turn: &Turn<'_>, writers: &Writers) -> Result<KvOutcome> {
    let each = (writers.operations / u64::from(writers.writers)).max(1);
    let total = each * u64::from(writers.writers);
    let keys = turn.keys(total)?;
    let done = OperationCase {
        operation: "put".to_owned(),
        dataset: writers.mode.clone(),
        keys: "new".to_owned(),
        distribution: "sequential".to_owned(),
        entries: total,
        threads: writers.writers,
    };
    let values = turn.values()?;
    let open = turn.open()?;
    let timed = turn.setup.timed;
    let spans = open.run(writers.writers, timed, |index, client| {
        let tape = Tape::new(keys, Order::Sequential { first: index as u64 * each }.numbers(each));
        let mut values = values.clone();
        client.span(|client| {
            for (number, key) in tape.iter() {
                client.op(|session| session.put(key, values.make(number, VERSION)))?;
            }
            Ok(each)
        })
    })?;
    let mut outcome = KvOutcome::default();
    add_spans(&mut outcome, &done, &spans, timed);
    // The bare device keeps no records that could be read.
    if turn.store.name() != bare_device::NAME {
        let mut model = Model::new(total);
        (0..total).for_each(|number| model.set(number, VERSION));
        model.check_all(turn, &mut *open.db.session()?, keys, &done)?;
    }
    open.close(&done, &mut outcome)?;
    Ok(outcome)
}
