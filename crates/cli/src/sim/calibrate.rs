use std::sync::Arc;
use cairn_vfs::Fs;
use crate::error::Result;
use crate::output::Outcome;
pub fn run(_: &Arc<dyn Fs>, _: &crate::args::sim::CalibrateArgs) -> Result<Outcome> { Ok(Outcome::Done) }
