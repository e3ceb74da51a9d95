//! `cairn hash scan`.

use std::sync::Arc;

use cairn_vfs::Fs;

use super::store::{Recording, Store};
use crate::args::hash::ScanArgs;
use crate::error::Result;
use crate::output::{self, Outcome, Output};

/// Prints the entries in file order.
pub fn scan(fs: &Arc<dyn Fs>, args: &ScanArgs) -> Result<Outcome> {
    let store = Store::open(fs, &args.store)?;
    let recording = Recording::begin();
    let mut out = Output::new();
    let most = args.limit.unwrap_or(u64::MAX);
    let mut left = most;
    if left > 0 {
        let visited = store.for_each(|key, value| {
            if args.json {
                out.json(&output::record(key, Some(value)))?;
            } else if args.binary {
                out.binary(key, value)?;
            } else {
                out.pair(key, value)?;
            }
            left -= 1;
            Ok(left > 0)
        });
        // Record the scan before returning its error: the entries before it have been read.
        recording.scan(most - left);
        visited?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}
