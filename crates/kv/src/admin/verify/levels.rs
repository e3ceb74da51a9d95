//! Checks that newer versions of keys are in newer runs. Lookups rely on this when they stop at the
//! first hit.

use std::collections::BTreeSet;

use cairn_vfs::sync::Arc;

use super::{Subject, VerifyReport};
use crate::cursor::Cursor;
use crate::db::level_cursor::LevelCursor;
use crate::db::tables::Tables;
use crate::escape::printable;
use crate::iter::visible::Bounds;
use crate::kind::Seqno;
use crate::options::ReadOptions;
use crate::version::{FileName, Run};
use crate::{Error, Result};

impl VerifyReport {
    /// Walks all runs of each keyspace in parallel. Each pair of runs is reported once. Keyspaces
    /// with unreadable tables are skipped, because these are already reported.
    pub(super) fn levels(&mut self, tables: &Arc<Tables>, subjects: &[Subject]) {
        for subject in subjects {
            let is_damaged = |number| {
                let path = FileName::Table(number).path(&tables.path);
                self.damage.iter().any(|damage| damage.file == path)
            };
            if subject.version.tables().any(|(_, table)| is_damaged(table.number())) {
                continue;
            }
            if let Err(error) = self.runs(tables, subject) {
                self.add(tables.path.to_path_buf(), error);
            }
        }
    }

    fn runs(&mut self, tables: &Arc<Tables>, subject: &Subject) -> Result<()> {
        let levels = subject.version.levels().iter();
        let runs: Vec<&Arc<Run>> = levels.flat_map(|level| level.runs()).collect();
        let read = ReadOptions { fill_cache: false, readahead_bytes: 1 << 20 };
        let cursor = |run: &&Arc<Run>| {
            LevelCursor::new(Arc::clone(tables), run.tables().to_vec(), &Bounds::default(), &read)
        };
        let mut cursors: Vec<LevelCursor> = runs.iter().map(cursor).collect();
        cursors.iter_mut().try_for_each(Cursor::seek_first)?;
        let mut reported = BTreeSet::new();
        let mut key = Vec::new();
        while let Some(first) = cursors.iter().filter(|cursor| cursor.valid()).map(Cursor::key).min() {
            key.clear();
            key.extend_from_slice(first);
            // The run with the oldest version so far, and its sequence number.
            let mut above: Option<(usize, Seqno)> = None;
            for (at, cursor) in cursors.iter_mut().enumerate() {
                let Some((newest, oldest)) = seqnos(cursor, &key)? else { continue };
                if let Some((newer, seqno)) = above
                    && newest >= seqno
                    && reported.insert((newer, at))
                {
                    self.add(
                        place(tables, &runs, at, &key),
                        out_of_order(tables, subject, &key, (newest, seqno)),
                    );
                }
                above = Some((at, above.map_or(oldest, |(_, seqno)| seqno.min(oldest))));
            }
        }
        Ok(())
    }
}

/// Returns the highest and the lowest sequence number of `key` at the cursor, and moves the cursor
/// past the key.
fn seqnos(cursor: &mut LevelCursor, key: &[u8]) -> Result<Option<(Seqno, Seqno)>> {
    let mut found: Option<(Seqno, Seqno)> = None;
    while cursor.valid() && cursor.key() == key {
        let seqno = cursor.seqno();
        found = Some((found.map_or(seqno, |(newest, _)| newest), seqno));
        cursor.next()?;
    }
    Ok(found)
}

fn place(tables: &Tables, runs: &[&Arc<Run>], at: usize, key: &[u8]) -> std::path::PathBuf {
    let number = runs.get(at).and_then(|run| run.find(key)).map(|table| table.number());
    number.map_or_else(|| tables.path.to_path_buf(), |number| FileName::Table(number).path(&tables.path))
}

fn out_of_order(tables: &Tables, subject: &Subject, key: &[u8], (found, above): (Seqno, Seqno)) -> Error {
    let (key, name) = (printable(key), &subject.name);
    let what = format!(
        "keyspace {name:?}: {key} has sequence number {found} here, but {above} in a run that is read earlier"
    );
    Error::corruption(&tables.path, 0, what)
}
