//! `cairn kv compact`, `checkpoint`, `verify` and `repair`.

use std::path::Path;
use std::sync::Arc;

use cairn_kv::{Damage, Db, KeyspaceOptions, RepairOptions, verify_in};
use cairn_vfs::{ErrorKind, File, Fs, OpenOptions};
use serde_json::{Value, json};

use super::form::Form;
use super::store;
use crate::args::kv::{CheckpointArgs, CompactArgs, Operator, RepairArgs, VerifyArgs};
use crate::damage::{self, Finding};
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, counted, human};
use crate::place;

/// The file that a process locks while it has a store open.
const LOCK_NAME: &str = "LOCK";

/// The hint if another process has the store open.
pub const COPY_BESIDE: &str = "; --read-only copies it nevertheless";

/// Compacts a range of keys.
pub fn compact(fs: &Arc<dyn Fs>, args: &CompactArgs) -> Result<Outcome> {
    let range = Form { hex: args.form.hex }.range(&args.range)?;
    let store = store::write(fs, &args.at, None)?;
    // Flush first, so that the entries of memtables are included in the size before.
    store.keyspace.flush()?;
    let before = size(store.db.as_ref(), store.keyspace.name());
    if !range.is_empty() {
        store.keyspace.compact_range(range.bounds())?;
    }
    let after = size(store.db.as_ref(), store.keyspace.name());
    let mut out = Output::new();
    let path = args.at.store.display();
    if args.form.json {
        let (store, keyspace) = (path.to_string(), store.keyspace.name());
        out.json(&json!({
            "store": store,
            "keyspace": keyspace,
            "bytes_before": before.0,
            "bytes_after": after.0,
            "entries_before": before.1,
            "entries_after": after.1,
        }))?;
    } else {
        let (bytes, entries) = ((human(before.0), human(after.0)), counted(before.1, "entry", "entries"));
        out.line(format!(
            "compacted {path}: {} before, {} now; {entries} before, {} now",
            bytes.0, bytes.1, after.1
        ))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// Returns the bytes and entries of a keyspace's tables.
fn size(db: &Db, name: &str) -> (u64, u64) {
    let stats = db.stats();
    let levels = stats.keyspaces.iter().filter(|keyspace| keyspace.name == name).flat_map(|it| &it.levels);
    levels.fold((0, 0), |(bytes, entries), level| (bytes + level.bytes, entries + level.entries))
}

/// Makes a checkpoint.
pub fn checkpoint(fs: &Arc<dyn Fs>, args: &CheckpointArgs) -> Result<Outcome> {
    let db = store::whole(fs, &args.store, args.read_only, COPY_BESIDE)?;
    let last = db.checkpoint(&args.copy)?;
    let mut out = Output::new();
    let (store, copy) = (args.store.display(), args.copy.display());
    if args.json {
        out.json(&json!({ "store": store.to_string(), "copy": copy.to_string(), "last_write": last }))?;
    } else {
        out.line(format!("copied {store} to {copy}, up to write {last}"))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// Reads everything and lists the damage.
pub fn verify(fs: &Arc<dyn Fs>, args: &VerifyArgs) -> Result<Outcome> {
    place::expect_directory(fs, &args.store)?;
    // Lock out writers: files that are replaced during the check would look missing.
    let _lock = if args.read_only { Lock::Ours(None) } else { lock(fs, &args.store)? };
    let report = verify_in(fs, &args.store)?;
    let damage = findings(&report.damage);
    let mut out = Output::new();
    if args.json {
        let strays: Vec<String> = report.strays.iter().map(|path| path.display().to_string()).collect();
        let of_kind = json!({
            "tables": report.tables,
            "entries": report.entries,
            "blob_files": report.blobs,
            "bytes": report.bytes,
            "log_records": report.log_records,
            "strays": strays,
        });
        out.json(&damage::report(&args.store, &damage, of_kind))?;
    } else {
        out.line(&report)?;
    }
    out.finish()?;
    damage::check_sound(&args.store, &damage)
}

/// Converts the damage that a check has found.
pub fn findings(damage: &[Damage]) -> Vec<Finding> {
    damage.iter().map(Finding::from).collect()
}

/// Returns the damage as JSON, for scripts.
pub fn damages(damage: &[Damage]) -> Vec<Value> {
    findings(damage).iter().map(Finding::json).collect()
}

/// The owner of a store's lock.
enum Lock {
    /// This process, or nobody: a store without a lock file was never opened, or is a copy, so
    /// nobody can have it open.
    Ours(#[allow(dead_code, reason = "held")] Option<Box<dyn File>>),
    /// Another process, which has the store open.
    Theirs,
}

fn try_lock(fs: &Arc<dyn Fs>, store: &Path) -> Result<Lock> {
    let file = match fs.open(&store.join(LOCK_NAME), OpenOptions::read()) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Lock::Ours(None)),
        Err(error) => return Err(error.into()),
    };
    match file.try_lock() {
        Ok(()) => Ok(Lock::Ours(Some(file))),
        Err(error) if error.kind() == ErrorKind::Busy => Ok(Lock::Theirs),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if another process has the store open for writing. A process that opens it at this
/// moment gets an error that it is busy.
#[cfg(feature = "ui")]
pub fn is_open_elsewhere(fs: &Arc<dyn Fs>, store: &Path) -> Result<bool> {
    Ok(matches!(try_lock(fs, store)?, Lock::Theirs))
}

/// Locks out writers.
fn lock(fs: &Arc<dyn Fs>, store: &Path) -> Result<Lock> {
    match try_lock(fs, store)? {
        Lock::Theirs => Err(Error::usage(format!(
            "the store in {} is already open; --read-only verifies it nevertheless",
            store.display()
        ))),
        ours => Ok(ours),
    }
}

/// Repairs a store so that it can be opened again.
pub fn repair(fs: &Arc<dyn Fs>, args: &RepairArgs) -> Result<Outcome> {
    place::expect_directory(fs, &args.store)?;
    let given = KeyspaceOptions {
        ttl: args.ttl,
        merge_operator: args.merge_operator.map(Operator::make),
        ..KeyspaceOptions::default()
    };
    let keyspaces = vec![(args.keyspace.clone(), given)];
    let report = cairn_kv::repair(&args.store, &RepairOptions { fs: Arc::clone(fs), keyspaces })?;
    let mut out = Output::new();
    if args.json {
        let set_aside: Vec<String> = report.set_aside.iter().map(|path| path.display().to_string()).collect();
        out.json(&json!({
            "store": args.store.display().to_string(),
            "rebuilt": report.is_rebuilt,
            "tables": report.tables,
            "entries": report.entries,
            "log_records": report.log_records,
            "lost_values": report.lost_values,
            "damage": damages(&report.damage),
            "set_aside": set_aside,
            "assumptions": report.assumptions,
        }))?;
    } else {
        out.line(&report)?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}
