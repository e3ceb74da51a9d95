//! `cairn sim`: the simulator of LSM trees.
//!
//! ```text
//! setup      builds a configuration from arguments;   profiles  the built-in profiles
//! run        one configuration;  vary + sweep + optimize     many configurations
//! validate   predictions against real stores;  calibrate    profiles of machines
//! ui/        the live page
//! ```

mod calibrate;
mod optimize;
mod profiles;
mod run;
mod setup;
mod sweep;
mod table;
mod trace;
#[cfg(feature = "ui")]
pub mod ui;
mod validate;
mod vary;

use std::sync::Arc;

use cairn_vfs::Fs;

use crate::args::sim::SimCommand;
use crate::error::Result;
use crate::output::Outcome;

/// Runs the command.
pub fn run(fs: &Arc<dyn Fs>, command: SimCommand) -> Result<Outcome> {
    match command {
        SimCommand::Run(args) => run::run(fs, &args),
        SimCommand::Sweep(args) => sweep::run(fs, &args),
        SimCommand::Optimize(args) => optimize::run(fs, &args),
        SimCommand::Validate(args) => validate::run(fs, args),
        SimCommand::Calibrate(args) => calibrate::run(fs, &args),
        #[cfg(feature = "ui")]
        SimCommand::Ui(args) => ui::run(fs, &args),
        SimCommand::Profiles { json } => profiles::list(json),
    }
}
