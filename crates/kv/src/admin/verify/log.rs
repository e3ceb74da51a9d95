//! Verification of the log: all records that count as synced must exist.

use std::path::Path;

use cairn_vfs::Fs;
use cairn_vfs::sync::Arc;
use cairn_wal::Recovery;

use super::VerifyReport;
use crate::Error;
use crate::Result;
use crate::batch::{Malformed, Record};
use crate::db::{check_note, log_options};
use crate::version::VersionSet;

/// How often a log is read again whose segments a writer may be releasing.
const ATTEMPTS: usize = 8;

impl VerifyReport {
    /// Reads the log from the start given by the manifest.
    pub(super) fn log(&mut self, fs: &Arc<dyn Fs>, dir: &Path) {
        let mut last = None;
        // BOUND: a read fails repeatedly only if the writer changes the log during every attempt.
        for _ in 0..ATTEMPTS {
            match read(fs, dir) {
                Ok(records) => {
                    self.log_records = records;
                    return;
                }
                Err(error) => last = Some(error),
            }
        }
        if let Some(error) = last {
            let file = match &error {
                Error::Corruption { file, .. } => file.clone(),
                _ => dir.to_owned(),
            };
            self.add(file, error);
        }
    }
}

fn read(fs: &Arc<dyn Fs>, dir: &Path) -> Result<u64> {
    let set = VersionSet::open_read_only(fs, dir)?;
    let mut log = Recovery::open(fs, dir, set.log_start(), &log_options(set.log()))?;
    let mut records = 0;
    while let Some(record) = log.next()? {
        let lsn = record.lsn;
        let batch = Record::parse(record.payload, dir, lsn.get())?;
        let damaged = |Malformed(what)| {
            Error::corruption(dir, lsn.get(), format!("the log record that ends at {lsn} has {what}"))
        };
        batch.operations.clone().try_for_each(|operation| operation.map(|_| ())).map_err(damaged)?;
        records += 1;
    }
    check_note(&set, log.finish()?.note())?;
    Ok(records)
}
