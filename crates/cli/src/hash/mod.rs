//! Commands on constant stores.

mod build;
mod change;
mod get;
mod info;
mod scan;
mod store;
mod writer;

use std::sync::Arc;

use cairn_vfs::Fs;

use crate::args::hash::HashCommand;
use crate::error::Result;
use crate::output::Outcome;
#[cfg(feature = "ui")]
pub use info::{of_pair, of_table};
pub use store::same_file;
#[cfg(feature = "ui")]
pub use store::{Store, kind_of};

/// Runs one of the commands.
pub fn run(fs: &Arc<dyn Fs>, command: HashCommand) -> Result<Outcome> {
    match command {
        HashCommand::Build(args) => build::build(fs, &args),
        HashCommand::Get(args) => get::get(fs, &args),
        HashCommand::Mget(args) => get::mget(fs, &args),
        HashCommand::Scan(args) => scan::scan(fs, &args),
        HashCommand::Info(args) => info::info(fs, &args),
        HashCommand::Verify(args) => info::verify(fs, &args),
        HashCommand::Append(args) => change::append(fs, &args),
        HashCommand::Delete(args) => change::delete(fs, &args),
        HashCommand::Index(args) => build::index(fs, &args),
        HashCommand::Rewrite(args) => change::rewrite(fs, &args),
        HashCommand::Convert(args) => change::convert(fs, &args),
        HashCommand::Bench(args) => crate::bench::run::run(fs, &args),
    }
}
