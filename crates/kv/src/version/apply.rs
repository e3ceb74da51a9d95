//! Applies an edit to a version of a keyspace, with checks that keep invalid states out of the
//! manifest.

use std::collections::{BTreeMap, BTreeSet};

use cairn_vfs::sync::Arc;

use super::edit::{KeyspaceEdit, NewTable};
use super::handle::{BlobFile, ObsoleteFiles, TableFile};
use super::levels::{LEVELS_MAX, Level, LiveBlob, Version};
use super::run::Run;
use super::search_order::check_order;
use crate::file::FileNumber;

/// A new version, and its differences from the previous one.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) version: Version,
    pub(super) tables_gone: Vec<Arc<TableFile>>,
    pub(super) blobs_gone: Vec<Arc<BlobFile>>,
    /// Files that the previous version did not have.
    pub(super) files_new: Vec<FileNumber>,
}

/// Returns the version that results from applying `edit` to `base`, or a description of the
/// conflict. If the same edit creates the keyspace (`is_made`), the order of its tables is not
/// checked, because there are no older tables to compare it with.
pub(super) fn apply(
    base: &Version,
    edit: &KeyspaceEdit,
    is_made: bool,
    obsolete: &Arc<ObsoleteFiles>,
) -> Result<Change, String> {
    if !is_made {
        check_order(base, edit)?;
    }
    let mut removed = remove_tables(base, edit)?;
    let mut files_new = Vec::new();
    let mut added: BTreeMap<usize, BTreeMap<u64, Vec<Arc<TableFile>>>> = BTreeMap::new();
    let level_count = edit.added.iter().map(|new| new.level + 1).fold(base.levels().len(), usize::max);
    for new in &edit.added {
        check_table(new)?;
        let table = match removed.remove(&new.meta.number) {
            // The file moves: versions before and after share the handle, so the file is not
            // deleted.
            Some((_, table)) if table.meta == new.meta => table,
            Some(_) => return Err(format!("table {} is moved and modified in one edit", new.meta.number)),
            None => {
                files_new.push(new.meta.number);
                // Every lookup passes through the upper levels, which are a tenth of the tree.
                let is_upper = new.level == 0 || new.level + 1 < level_count;
                Arc::new(TableFile::new(new.meta.clone(), is_upper, obsolete))
            }
        };
        added.entry(new.level).or_default().entry(new.run).or_default().push(table);
    }
    debug_assert!(level_count <= LEVELS_MAX, "{level_count} levels, at most {LEVELS_MAX}");
    let gone_by_level =
        edit.removed.iter().fold(BTreeMap::<usize, BTreeSet<FileNumber>>::new(), |mut map, old| {
            map.entry(old.level).or_default().insert(old.number);
            map
        });
    let nothing = BTreeSet::new();
    let mut levels = Vec::with_capacity(level_count);
    for at in 0..level_count {
        let runs = base.levels().get(at).map_or(&[][..], Level::runs);
        let gone = gone_by_level.get(&at).unwrap_or(&nothing);
        levels.push(
            change_level(runs, gone, added.remove(&at).unwrap_or_default())
                .map_err(|what| format!("level {at}: {what}"))?,
        );
    }
    assert!(added.is_empty(), "tables were added to levels that the version does not have");
    let (blobs, blobs_gone) = change_blobs(base, edit, obsolete, &mut files_new)?;
    let version = Version::new(levels, blobs);
    debug_assert_eq!(
        version.tables().count() + edit.removed.len(),
        base.tables().count() + edit.added.len(),
        "a table was lost or counted twice"
    );
    debug_assert_eq!(
        version.blobs().len() + edit.blobs_removed.len(),
        base.blobs().len() + edit.blobs_added.len(),
        "a blob file was lost or counted twice"
    );
    Ok(Change {
        version,
        tables_gone: removed.into_values().map(|(_, table)| table).collect(),
        blobs_gone,
        files_new,
    })
}

/// Returns the tables that leave their places, by number.
fn remove_tables(
    base: &Version,
    edit: &KeyspaceEdit,
) -> Result<BTreeMap<FileNumber, (usize, Arc<TableFile>)>, String> {
    let mut removed = BTreeMap::new();
    if edit.removed.is_empty() {
        return Ok(removed);
    }
    let wanted: BTreeSet<(usize, FileNumber)> =
        edit.removed.iter().map(|old| (old.level, old.number)).collect();
    for (level, table) in base.tables() {
        if wanted.contains(&(level, table.number())) {
            removed.insert(table.number(), (level, Arc::clone(table)));
        }
    }
    for old in &edit.removed {
        if removed.get(&old.number).is_none_or(|&(level, _)| level != old.level) {
            return Err(format!("table {} is not in level {}", old.number, old.level));
        }
    }
    if removed.len() != edit.removed.len() {
        return Err("a table is removed twice".to_owned());
    }
    Ok(removed)
}

fn check_table(new: &NewTable) -> Result<(), String> {
    let meta = &new.meta;
    if new.level >= LEVELS_MAX {
        return Err(format!("table {}: level {}, expected less than {LEVELS_MAX}", meta.number, new.level));
    }
    if meta.smallest > meta.largest {
        return Err(format!("table {}: its smallest key is above its largest", meta.number));
    }
    if meta.seqnos.0 > meta.seqnos.1 {
        return Err(format!("table {}: its lowest sequence number is above its highest", meta.number));
    }
    if meta.tombstones > meta.entries {
        return Err(format!("table {}: more tombstones than entries", meta.number));
    }
    if meta.ingested.is_some_and(|ingested| meta.seqnos != (ingested.seqno, ingested.seqno)) {
        return Err(format!(
            "table {}: its sequence numbers differ from the one that it was ingested under",
            meta.number
        ));
    }
    if !meta.blobs.is_sorted_by(|a, b| a.0 < b.0) {
        return Err(format!("table {}: its blob files are not in order", meta.number));
    }
    Ok(())
}

fn change_level(
    runs: &[Arc<Run>],
    gone: &BTreeSet<FileNumber>,
    mut added: BTreeMap<u64, Vec<Arc<TableFile>>>,
) -> Result<Level, String> {
    if gone.is_empty() && added.is_empty() {
        return Ok(Level::new(runs.to_vec()));
    }
    let mut after = Vec::with_capacity(runs.len() + added.len());
    for run in runs {
        let mut tables = added.remove(&run.id()).unwrap_or_default();
        let is_unchanged = tables.is_empty()
            && (gone.is_empty() || !run.tables().iter().any(|table| gone.contains(&table.number())));
        if is_unchanged {
            after.push(Arc::clone(run));
            continue;
        }
        tables.extend(run.tables().iter().filter(|table| !gone.contains(&table.number())).cloned());
        if !tables.is_empty() {
            after.push(Arc::new(Run::new(run.id(), tables)?));
        }
    }
    for (id, tables) in added {
        debug_assert!(runs.iter().all(|run| run.id() != id), "tables for run {id} were left over");
        after.push(Arc::new(Run::new(id, tables)?));
    }
    Ok(Level::new(after))
}

/// Returns the blob files after the edit, and those that it removes.
fn change_blobs(
    base: &Version,
    edit: &KeyspaceEdit,
    obsolete: &Arc<ObsoleteFiles>,
    files_new: &mut Vec<FileNumber>,
) -> Result<(Vec<LiveBlob>, Vec<Arc<BlobFile>>), String> {
    if edit.blobs_added.is_empty() && edit.blobs_removed.is_empty() && edit.blob_garbage.is_empty() {
        return Ok((base.blobs().to_vec(), Vec::new()));
    }
    let mut blobs: BTreeMap<FileNumber, LiveBlob> =
        base.blobs().iter().map(|blob| (blob.file.meta.number, blob.clone())).collect();
    for meta in &edit.blobs_added {
        let file = Arc::new(BlobFile::new(meta.clone(), obsolete));
        files_new.push(meta.number);
        if blobs.insert(meta.number, LiveBlob { file, garbage_bytes: 0 }).is_some() {
            return Err(format!("blob file {} already exists", meta.number));
        }
    }
    for &(number, bytes) in &edit.blob_garbage {
        let blob = blobs.get_mut(&number).ok_or_else(|| format!("blob file {number} does not exist"))?;
        blob.garbage_bytes = blob.garbage_bytes.saturating_add(bytes);
        if blob.garbage_bytes > blob.file.meta.value_bytes {
            return Err(format!("blob file {number} has more garbage than values"));
        }
    }
    let mut gone = Vec::new();
    for &number in &edit.blobs_removed {
        let blob = blobs.remove(&number).ok_or_else(|| format!("blob file {number} does not exist"))?;
        gone.push(blob.file);
    }
    Ok((blobs.into_values().collect(), gone))
}
