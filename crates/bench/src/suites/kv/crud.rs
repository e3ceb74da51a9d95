//! DKV's single-threaded modes: put, get, update and delete, each over all keys, one at a time or
//! in batches.
//!
//! As in DKV's driver, each phase draws its random keys anew and independently. Of a million draws
//! from a million numbers, about 63 % of the keys exist, gets miss the rest, and updates add some.
//! A model tracks the expected contents of the store. Every get is compared with it, and so is the
//! whole store at the end.
//!
//! Unlike that driver, the suite prepares every store in the same way before the gets: buffers are
//! written out, background work comes to rest, and one pass over the same gets precedes the timed
//! one.

use serde::{Deserialize, Serialize};

use super::keys::{KeyMaker, Order, Tape};
use super::outcome::{KvMetric, KvOutcome, OperationCase};
use super::turn::{Client, Model, Open, Span, Turn, add_spans, checked_get};
use super::values::Values;
use crate::core::error::Result;

/// One of the modes, and its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crud {
    /// The mode's name.
    pub mode: String,
    /// Number of operations in each phase.
    pub operations: u64,
    /// Number of writes in a batch; `None` for single writes.
    pub batch: Option<u64>,
    /// Whether keys are drawn at random.
    pub random: bool,
}

const PUT: u32 = 1;
const UPDATE: u32 = 2;

/// The write that a phase performs on each key.
#[derive(Clone, Copy)]
enum Write {
    Put(u32),
    Delete,
}

pub(super) fn run(turn: &Turn<'_>, crud: &Crud) -> Result<KvOutcome> {
    let open = turn.open()?;
    let phases = Phases { turn, crud, open: &open, keys: turn.keys(crud.operations)? };
    let mut model = Model::new(crud.operations);
    let mut outcome = KvOutcome::default();
    phases.write("put", &mut model, Write::Put(PUT), &mut outcome)?;
    let done = phases.done("put");
    let settled = open.settle()?;
    if !turn.setup.timed {
        let settle = OperationCase { operation: "settle".to_owned(), ..done.clone() };
        outcome.add(&settle, KvMetric::Time, settled);
        if let Some(written) = open.written_bytes() {
            let user = crud.operations * turn.shape().record_bytes();
            outcome.add(&done, KvMetric::WriteAmplification, written as f64 / user as f64);
        }
        let size = OperationCase { operation: "size".to_owned(), ..done.clone() };
        outcome.add(&size, KvMetric::BytesPerEntry, open.disk_bytes()? as f64 / model.entries() as f64);
    }
    phases.read(&model, &mut outcome)?;
    phases.write("update", &mut model, Write::Put(UPDATE), &mut outcome)?;
    phases.write("delete", &mut model, Write::Delete, &mut outcome)?;
    model.check_all(turn, &mut *open.db.session()?, phases.keys, &phases.done("delete"))?;
    let done = phases.done("");
    open.close(&done, &mut outcome)?;
    Ok(outcome)
}

struct Phases<'a> {
    turn: &'a Turn<'a>,
    crud: &'a Crud,
    open: &'a Open<'a>,
    keys: KeyMaker,
}

impl Phases<'_> {
    fn done(&self, operation: &str) -> OperationCase {
        let Crud { mode, operations, random, .. } = self.crud;
        let keys = match (operation, random) {
            ("put", _) => "new",
            (_, true) => "mixed",
            (_, false) => "present",
        };
        OperationCase {
            operation: operation.to_owned(),
            dataset: mode.clone(),
            keys: keys.to_owned(),
            distribution: if *random { "uniform" } else { "sequential" }.to_owned(),
            entries: *operations,
            threads: 1,
        }
    }

    /// Returns the keys of one phase, drawn anew for each.
    fn tape(&self, phase: u64) -> Tape {
        let count = self.crud.operations;
        let order = if self.crud.random {
            Order::Drawn { below: count, seed: self.turn.setup.seed.wrapping_mul(31).wrapping_add(phase) }
        } else {
            Order::Sequential { first: 0 }
        };
        Tape::new(self.keys, order.numbers(count))
    }

    fn write(&self, name: &str, model: &mut Model, write: Write, outcome: &mut KvOutcome) -> Result<()> {
        let phase = match write {
            Write::Put(version) => u64::from(version),
            Write::Delete => 3,
        };
        let tape = self.tape(phase);
        let values = self.turn.values()?;
        let done = self.done(name);
        let timed = self.turn.setup.timed;
        let spans = self.open.run(1, timed, |_, client| {
            let mut values = values.clone();
            match self.crud.batch {
                None => client.span(|client| one_by_one(client, &tape, &mut values, write)),
                Some(size) => {
                    client.span(|client| in_batches(client, &tape, size as usize, &mut values, write))
                }
            }
        })?;
        add_spans(outcome, &done, &spans, timed);
        for &number in tape.numbers() {
            model.set(number, if let Write::Put(version) = write { version } else { 0 });
        }
        Ok(())
    }

    fn read(&self, model: &Model, outcome: &mut KvOutcome) -> Result<()> {
        let tape = self.tape(4);
        let values = self.turn.values()?;
        let done = self.done("get");
        let pass = |timed: bool| -> Result<Vec<Span>> {
            self.open.run(1, timed, |_, client| {
                client.span(|client| {
                    for (number, key) in tape.iter() {
                        checked_get(self.turn, client, &values, &done, (number, key, model.version(number)))?;
                    }
                    Ok(tape.len() as u64)
                })
            })
        };
        pass(false)?;
        let timed = self.turn.setup.timed;
        add_spans(outcome, &done, &pass(timed)?, timed);
        Ok(())
    }
}

fn one_by_one(client: &mut Client<'_>, tape: &Tape, values: &mut Values, write: Write) -> Result<u64> {
    match write {
        Write::Put(version) => {
            for (number, key) in tape.iter() {
                client.op(|session| session.put(key, values.make(number, version)))?;
            }
        }
        Write::Delete => {
            for (_, key) in tape.iter() {
                client.op(|session| session.delete(key))?;
            }
        }
    }
    Ok(tape.len() as u64)
}

fn in_batches(
    client: &mut Client<'_>,
    tape: &Tape,
    size: usize,
    values: &mut Values,
    write: Write,
) -> Result<u64> {
    for mut batch in tape.batches(size) {
        client.op(|session| {
            session.write_batch(&mut |out| {
                for (number, key) in batch.by_ref() {
                    match write {
                        Write::Put(version) => out.put(key, values.make(number, version))?,
                        Write::Delete => out.delete(key)?,
                    }
                }
                Ok(())
            })
        })?;
    }
    Ok(tape.len() as u64)
}
