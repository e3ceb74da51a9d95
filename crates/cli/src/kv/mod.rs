//! Commands on key-value stores.
//!
//! ```text
//! store     opening: the options of a keyspace, and those given as arguments
//! form      the notation of keys and values
//! point     one key: get, put, delete        scan    a range of keys
//! batch     atomic batches of writes         load    imports records
//! dump, export    exports entries            stats   contents and layout of a store
//! upkeep    compact, checkpoint, verify, repair      backup  directories of backups
//! ```

mod backup;
mod batch;
mod dump;
mod export;
mod form;
mod load;
mod point;
mod scan;
mod stats;
mod store;
mod upkeep;

use std::sync::Arc;

use cairn_vfs::{ErrorKind, Fs};

use crate::args::kv::{BackupCommand, KvCommand};
use crate::error::{Error, Result};
use crate::output::Outcome;
#[cfg(feature = "ui")]
pub use {
    stats::keyspaces,
    store::whole,
    upkeep::{damages, is_open_elsewhere},
};

/// Runs one of the commands.
pub fn run(fs: &Arc<dyn Fs>, command: KvCommand) -> Result<Outcome> {
    let knows_damage = matches!(
        command,
        KvCommand::Verify(_) | KvCommand::Repair(_) | KvCommand::Restore(_) | KvCommand::Backup { .. }
    );
    carry_out(fs, command).map_err(|error| match error {
        Error::Kv(error) if !knows_damage && error.kind() == ErrorKind::Corruption => {
            Error::usage(format!("{error}; `cairn kv verify` lists all damage, `repair` saves the rest"))
        }
        Error::Kv(error @ cairn_kv::Error::NoMergeOperator { .. }) => {
            Error::usage(format!("{error}; --merge-operator names it"))
        }
        error => error,
    })
}

fn carry_out(fs: &Arc<dyn Fs>, command: KvCommand) -> Result<Outcome> {
    match command {
        KvCommand::Get(args) => point::get(fs, &args),
        KvCommand::Put(args) => point::put(fs, &args),
        KvCommand::Delete(args) => point::delete(fs, &args),
        KvCommand::Scan(args) => scan::scan(fs, &args),
        KvCommand::Batch(args) => batch::batch(fs, &args),
        KvCommand::Load(args) => load::load(fs, &args),
        KvCommand::Dump(args) => dump::dump(fs, &args),
        KvCommand::Stats(args) => stats::stats(fs, &args),
        KvCommand::Compact(args) => upkeep::compact(fs, &args),
        KvCommand::Checkpoint(args) => upkeep::checkpoint(fs, &args),
        KvCommand::Backup { command } => match command {
            BackupCommand::Create(args) => backup::create(fs, &args),
            BackupCommand::List(args) => backup::list(fs, &args),
            BackupCommand::Verify(args) => backup::verify(fs, &args),
            BackupCommand::Purge(args) => backup::purge(fs, &args),
            BackupCommand::Restore(args) => backup::restore(fs, &args),
        },
        KvCommand::Restore(args) => backup::restore(fs, &args),
        KvCommand::Verify(args) => upkeep::verify(fs, &args),
        KvCommand::Repair(args) => upkeep::repair(fs, &args),
        KvCommand::Bench(args) => crate::bench::kv::run(fs, &args),
    }
}
