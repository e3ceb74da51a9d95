//! One turn of one store, described so that a separate process can take it.

use serde::{Deserialize, Serialize};

use super::crud::{self, Crud};
use super::db_bench::{self, DbBench};
use super::large::{self, Large};
use super::outcome::{KvOutcome, TurnSetup};
use super::overwrite::{self, Overwrite};
use super::replay::{self, Replay};
use super::threads::{self, Threads};
use super::turn::Turn;
use super::writers::{self, Writers};
use super::ycsb::{self, YcsbRun};
use crate::core::error::Result;
use crate::core::worker::{Failure, Job};
use crate::stores::bare_device::{self, Device};
use crate::stores::catalog::Registry;
use crate::stores::kv::KvStore;

/// The work of one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvWorkload {
    /// put, get, update and delete by one thread.
    Crud(Crud),
    /// put and get by several threads with separate keys.
    Threads(Threads),
    /// Durable puts by several writers.
    Writers(Writers),
    /// YCSB's workloads, one after another.
    Ycsb(YcsbRun),
    /// db_bench's benchmarks, one after another.
    DbBench(DbBench),
    /// Reads of more data than the cache holds.
    Large(Large),
    /// A long overwrite.
    Overwrite(Overwrite),
    /// The operations of a trace.
    Replay(Replay),
}

/// One turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KvJob {
    /// The turn without its work.
    pub setup: TurnSetup,
    /// The work to do.
    pub workload: KvWorkload,
}

impl Job for KvJob {
    const KIND: &'static str = "kv";
    type Outcome = std::result::Result<KvOutcome, Failure>;
}

impl KvJob {
    /// Carries out the turn in this process, with the store of this name.
    ///
    /// Errors: the store's own, and [`Error::WrongResult`](crate::Error::WrongResult) for a wrong
    /// answer. There are no results then.
    pub fn carry_out(&self, stores: &Registry<dyn KvStore>) -> std::result::Result<KvOutcome, Failure> {
        let outcome = if self.setup.store == bare_device::NAME {
            self.carry_out_with(&Device)
        } else {
            stores.get(&self.setup.store).and_then(|store| self.carry_out_with(&*store))
        };
        outcome.map_err(Failure::from)
    }

    /// Like [`KvJob::carry_out`], with a store of the caller's choice.
    pub(crate) fn carry_out_with(&self, store: &dyn KvStore) -> Result<KvOutcome> {
        let turn = Turn::new(store, &self.setup);
        match &self.workload {
            KvWorkload::Crud(crud) => crud::run(&turn, crud),
            KvWorkload::Threads(threads) => threads::run(&turn, threads),
            KvWorkload::Writers(writers) => writers::run(&turn, writers),
            KvWorkload::Ycsb(run) => ycsb::run(&turn, run),
            KvWorkload::DbBench(bench) => db_bench::run(&turn, bench),
            KvWorkload::Large(large) => large::run(&turn, large),
            KvWorkload::Overwrite(overwrite) => overwrite::run(&turn, overwrite),
            KvWorkload::Replay(replay) => replay::turn(&turn, replay),
        }
    }
}
