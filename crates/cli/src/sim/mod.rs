//! `cairn sim`: the simulator of LSM trees.
//!
//! ```text
//! setup      what was typed, as a configuration;   profiles  the built-in ones
//! run        one configuration;  vary + sweep + optimize     many of them
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
mod ui;
mod validate;
mod vary;

use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{Fs, OpenOptions};

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

/// Writes a file that appears whole, or not at all.
fn write_file(fs: &Arc<dyn Fs>, path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    let unfinished = path.with_file_name(name);
    let written = (|| {
        let file = fs.open(&unfinished, OpenOptions::create())?;
        file.set_len(0)?;
        file.write_all_at(bytes, 0)?;
        // ORDER: the bytes are on the disk before the name points at them.
        file.sync_data()?;
        fs.rename(&unfinished, path)
    })();
    if written.is_err() {
        let _ = fs.remove(&unfinished);
    }
    Ok(written?)
}
