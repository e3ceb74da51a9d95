//! `cairn kv backup` and `restore`.

use std::path::Path;
use std::sync::Arc;

use cairn_bench::core::time::rfc3339;
use cairn_kv::{BackupInfo, Backups};
use cairn_vfs::Fs;
use serde_json::{Value, json};

use super::store;
use super::upkeep::{COPY_BESIDE, damages, findings};
use crate::args::kv::{BackupCreateArgs, BackupPurgeArgs, BackupsArgs, RestoreArgs};
use crate::damage;
use crate::error::{Error, Result};
use crate::hash::same_file;
use crate::output::{Outcome, Output, counted, human};
use crate::place;

/// Backs up a store.
pub fn create(fs: &Arc<dyn Fs>, args: &BackupCreateArgs) -> Result<Outcome> {
    if same_file(&**fs, &args.store, &args.backups)? {
        let store = args.store.display();
        return Err(Error::usage(format!("{store} is the store itself: backups need a separate directory")));
    }
    place::expect_room_for_directory(fs, &args.backups)?;
    let db = store::whole(fs, &args.store, args.read_only, COPY_BESIDE)?;
    let info = Backups::open_in(fs, &args.backups)?.create(&db)?;
    show(Output::new(), &[info], args.json)
}

/// Lists the backups.
pub fn list(fs: &Arc<dyn Fs>, args: &BackupsArgs) -> Result<Outcome> {
    show(Output::new(), &open(fs, &args.backups)?.list()?, args.json)
}

/// Reads all backups and lists what is damaged.
pub fn verify(fs: &Arc<dyn Fs>, args: &BackupsArgs) -> Result<Outcome> {
    let backups = open(fs, &args.backups)?;
    let damage = backups.verify()?;
    let mut out = Output::new();
    let path = args.backups.display();
    if args.json {
        let (path, sound) = (path.to_string(), damage.is_empty());
        out.json(&json!({ "backups": path, "sound": sound, "damage": damages(&damage) }))?;
    } else {
        for damage in &damage {
            out.line(format!("damaged: {damage}"))?;
        }
        if damage.is_empty() {
            let count = counted(backups.list()?.len() as u64, "backup", "backups");
            out.line(format!("{path}: {count}, sound"))?;
        }
    }
    out.finish()?;
    damage::check_sound(&args.backups, &findings(&damage))
}

/// Deletes old backups, reports which ones, and lists the remaining ones.
pub fn purge(fs: &Arc<dyn Fs>, args: &BackupPurgeArgs) -> Result<Outcome> {
    let backups = open(fs, &args.backups)?;
    let removed = backups.purge(args.keep)?;
    let mut out = Output::new();
    for id in removed {
        if args.json {
            out.json(&json!({ "id": id, "removed": true }))?;
        } else {
            out.line(format!("removed backup {id}"))?;
        }
    }
    show(out, &backups.list()?, args.json)
}

/// Restores a store from a backup.
pub fn restore(fs: &Arc<dyn Fs>, args: &RestoreArgs) -> Result<Outcome> {
    let id = open(fs, &args.backups)?.restore(args.id, &args.store)?;
    let mut out = Output::new();
    let store = args.store.display();
    if args.json {
        out.json(&json!({ "store": store.to_string(), "backup": id }))?;
    } else {
        out.line(format!("restored {store} from backup {id}"))?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// Opens existing backups; a mistyped path must not create a directory.
fn open(fs: &Arc<dyn Fs>, path: &Path) -> Result<Backups> {
    let is_backup =
        |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "backup");
    place::expect_directory(fs, path)?;
    if !fs.read_dir(path)?.iter().any(is_backup) {
        return Err(Error::usage(format!("there are no backups in {}", path.display())));
    }
    Ok(Backups::open_in(fs, path)?)
}

fn show(mut out: Output, backups: &[BackupInfo], json: bool) -> Result<Outcome> {
    for info in backups {
        if json {
            out.json(&object(info))?;
        } else {
            let (when, bytes, copied) = (rfc3339(info.created), human(info.bytes), human(info.copied_bytes));
            let (id, files, last) = (info.id, counted(info.files as u64, "file", "files"), info.last_seqno);
            out.line(format!(
                "backup {id}  {when}  {bytes} in {files}, {copied} copied; up to write {last}"
            ))?;
        }
    }
    out.finish()?;
    Ok(Outcome::Done)
}

fn object(info: &BackupInfo) -> Value {
    json!({
        "id": info.id,
        "created": rfc3339(info.created),
        "store_id": format!("{:016x}", info.store_id),
        "last_write": info.last_seqno,
        "files": info.files,
        "bytes": info.bytes,
        "copied_bytes": info.copied_bytes,
    })
}
