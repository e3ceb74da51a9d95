//! Repair of damaged or missing blob files and of the tables that refer to them.
//!
//! An entry whose value cannot be read makes every read of it fail, and a compaction that reads it
//! stops the store. Repair therefore rewrites such tables: values that can be read from a damaged
//! file move to a new one, and entries whose values cannot be read are removed.

use std::collections::BTreeMap;

use cairn_vfs::sync::Arc;
use cairn_vfs::{OpenOptions, ensure};

use super::Repair;
use super::plan::{PlannedKeyspace, wanted_blobs};
use crate::admin::transfer::Content;
use crate::admin::verify::check_blob;
use crate::blob::{BlobReader, BlobRef, BlobWriter};
use crate::file::{BlobMeta, FileNumber};
use crate::version::{FileName, KeyspaceId, NewTable};
use crate::{Error, Result};

/// Damaged blob files of a keyspace, and the files to which their values move.
#[derive(Debug, Default)]
pub(super) struct Salvage {
    /// The readable remains of each damaged file; `None` for a missing one.
    damaged: BTreeMap<FileNumber, Option<BlobReader>>,
    writer: Option<BlobWriter>,
    done: Vec<BlobMeta>,
    value: Vec<u8>,
}

/// The outcome for a value in a blob file.
#[derive(Debug)]
pub(super) enum Fate {
    Stays,
    Moved(BlobRef),
    Lost,
}

impl Repair<'_> {
    /// Finds the blob files that the keyspace's tables refer to, as described by `describe`, and
    /// rewrites the tables that refer to damaged ones. Unreferenced blob files are garbage.
    pub(super) fn mend_blobs(
        &mut self,
        id: KeyspaceId,
        keyspace: &mut PlannedKeyspace,
        describe: impl Fn(FileNumber) -> Result<BlobMeta>,
    ) -> Result<()> {
        let (mut sound, mut salvage) = (Vec::new(), Salvage::default());
        for number in wanted_blobs(&keyspace.tables).into_keys() {
            match describe(number).and_then(|meta| self.check_whole(&meta).map(|()| meta)) {
                Ok(meta) => sound.push(meta),
                Err(error) => {
                    self.found(FileName::Blob(number).path(self.dir), error)?;
                    self.salvage(number, &mut salvage)?;
                }
            }
        }
        if !salvage.damaged.is_empty() {
            keyspace.tables = self.move_values(id, keyspace, &mut salvage)?;
            ensure!(salvage.writer.is_none(), "the values that were moved last are not durable");
            sound.append(&mut salvage.done);
        }
        let wanted = wanted_blobs(&keyspace.tables);
        debug_assert!(
            wanted.keys().all(|number| !salvage.damaged.contains_key(number)),
            "a table still needs one of the files that are set aside: {:?}",
            salvage.damaged.keys()
        );
        let garbage = |meta: BlobMeta| {
            let garbage = meta.value_bytes.saturating_sub(*wanted.get(&meta.number)?);
            Some((meta, garbage))
        };
        keyspace.blobs = sound.into_iter().filter_map(garbage).collect();
        Ok(())
    }

    /// Verifies a blob file.
    ///
    /// Errors: as [`check_blob`].
    pub(super) fn check_whole(&self, meta: &BlobMeta) -> Result<()> {
        let path = FileName::Blob(meta.number).path(self.dir);
        match check_blob(&*self.fs, self.dir, meta) {
            // Only the checksum of the whole file covers the version, so an unknown version in a
            // file whose checksum differs is a flipped bit, not a later version.
            Err(Error::Unsupported { what, .. })
                if Content::of(&*self.fs, &path)?.checksum != meta.checksum =>
            {
                Err(Error::corruption(&path, 4, what))
            }
            checked => checked,
        }
    }

    /// Removes a damaged file from the store and keeps a reader of its remains.
    fn salvage(&mut self, number: FileNumber, salvage: &mut Salvage) -> Result<()> {
        let path = FileName::Blob(number).path(self.dir);
        let mut left = None;
        if self.fs.exists(&path)? {
            left = Some(BlobReader::salvage(&*self.fs, self.dir, number)?);
            self.lost.push(path);
        }
        let before = salvage.damaged.insert(number, left);
        debug_assert!(before.is_none(), "blob file {number} is set aside twice");
        Ok(())
    }

    /// Returns the keyspace's tables, rewritten where they refer to damaged files.
    fn move_values(
        &mut self,
        id: KeyspaceId,
        keyspace: &PlannedKeyspace,
        salvage: &mut Salvage,
    ) -> Result<Vec<NewTable>> {
        let last_level = keyspace.tables.iter().map(|new| new.level).max().unwrap_or(0);
        let mut tables = Vec::with_capacity(keyspace.tables.len());
        for new in &keyspace.tables {
            if !new.meta.blobs.iter().any(|(number, _)| salvage.damaged.contains_key(number)) {
                tables.push(new.clone());
                continue;
            }
            let secs = (new.meta.oldest_secs, new.meta.newest_secs);
            let options = keyspace.table_options(id, new.level, last_level, secs);
            let ttl_secs = keyspace.ttl_secs(self.dir);
            let written =
                self.merge(std::slice::from_ref(&new.meta), &options, ttl_secs, Some(&mut *salvage))?;
            tables.extend(written.into_iter().map(|meta| NewTable { meta, level: new.level, run: new.run }));
        }
        Ok(tables)
    }
}

impl Salvage {
    /// Moves a value from a damaged file, if it can be read.
    pub(super) fn place(&mut self, repair: &mut Repair<'_>, reference: BlobRef) -> Result<Fate> {
        let Some(left) = self.damaged.get(&reference.number) else { return Ok(Fate::Stays) };
        if reference.bytes == 0 {
            // Empty values are never read from the file.
            return Ok(Fate::Stays);
        }
        match left.as_ref().map(|left| left.load(reference, &mut self.value)) {
            Some(Ok(())) => {
                let value = std::mem::take(&mut self.value);
                let moved = self.writer(repair)?.add(&value)?;
                debug_assert_eq!(moved.bytes, reference.bytes, "a value has another length after its move");
                self.value = value;
                Ok(Fate::Moved(moved))
            }
            None | Some(Err(Error::Corruption { .. })) => {
                repair.report.lost_values += 1;
                Ok(Fate::Lost)
            }
            Some(Err(error)) => Err(error),
        }
    }

    fn writer(&mut self, repair: &mut Repair<'_>) -> Result<&mut BlobWriter> {
        match &mut self.writer {
            Some(writer) => Ok(writer),
            none @ None => {
                let number = repair.number();
                let path = FileName::Blob(number).path(repair.dir);
                let file = repair.fs.open(&path, OpenOptions::create_new())?;
                Ok(none.insert(BlobWriter::new(Arc::from(file), number)?))
            }
        }
    }

    /// Makes the moved values durable.
    ///
    /// ORDER: before the table that refers to them is complete, names included. If this repair
    /// crashes and the manifest is lost, the next repair trusts that table, because it is the
    /// newest.
    pub(super) fn finish_file(&mut self, repair: &Repair<'_>) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            self.done.push(writer.finish()?);
            repair.fs.sync_dir(repair.dir)?;
        }
        Ok(())
    }
}
