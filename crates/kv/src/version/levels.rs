//! Versions: the tables and blob files of one keyspace at one moment.

use std::collections::{HashMap, HashSet};
use std::ops::{Bound, ControlFlow};

use cairn_vfs::sync::Arc;

use super::edit::KeyspaceEdit;
use super::fences::Fences;
use super::handle::{BlobFile, TableFile};
use super::run::Run;
use crate::file::FileNumber;

/// More levels than any strategy uses. An edit that uses more is refused.
pub(crate) const LEVELS_MAX: usize = 32;

/// One level: sorted runs, the newest first. The newest version of a key is in the first run that
/// contains the key.
///
/// In leveled trees, level 0 has one run per flush and the other levels have at most one; tiered
/// trees have several in every level.
#[derive(Debug, Default)]
pub(crate) struct Level {
    runs: Vec<Arc<Run>>,
}

impl Level {
    /// Creates a level of `runs` in any order, whose ids must be distinct.
    pub(super) fn new(mut runs: Vec<Arc<Run>>) -> Level {
        runs.sort_by_key(|run| std::cmp::Reverse(run.id()));
        assert!(runs.is_sorted_by(|newer, older| newer.id() > older.id()), "two runs of a level have one id");
        Level { runs }
    }

    /// Returns the runs, newest first.
    pub(crate) fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    /// Returns the total bytes of its tables.
    pub(crate) fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes()).fold(0, u64::saturating_add)
    }

    /// Returns all tables, run by run.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.runs.iter().flat_map(|run| run.tables())
    }

    /// Returns, for each run, the tables that may have entries between the bounds. The newest run
    /// comes first; runs without such tables are left out.
    pub(crate) fn overlapping<'a>(
        &'a self,
        lower: Bound<&'a [u8]>,
        upper: Bound<&'a [u8]>,
    ) -> impl Iterator<Item = (&'a Run, &'a [Arc<TableFile>])> {
        let each = self.runs.iter().map(move |run| (&**run, run.overlapping(lower, upper)));
        each.filter(|(_, tables)| !tables.is_empty())
    }
}

/// A blob file and the amount of garbage in it.
#[derive(Debug, Clone)]
pub(crate) struct LiveBlob {
    /// The file.
    pub(crate) file: Arc<BlobFile>,
    /// The part of its `value_bytes` whose entries were dropped by compactions.
    pub(crate) garbage_bytes: u64,
}

/// The runs of all levels in the order in which a lookup searches them, in one array.
#[derive(Debug)]
struct SearchOrder {
    fences: Fences,
    runs: Vec<(usize, Arc<Run>)>,
}

impl SearchOrder {
    fn new(levels: &[Level]) -> SearchOrder {
        let runs: Vec<(usize, Arc<Run>)> = levels
            .iter()
            .enumerate()
            .flat_map(|(level, runs)| runs.runs().iter().map(move |run| (level, Arc::clone(run))))
            .collect();
        debug_assert!(
            runs.is_sorted_by(|(upper, newer), (lower, older)| {
                upper < lower || (upper == lower && newer.id() > older.id())
            }),
            "a lookup would search an older run before a newer one"
        );
        let fences = Fences::new(runs.iter().map(|(_, run)| (run.smallest(), run.largest())));
        SearchOrder { fences, runs }
    }
}

/// The files of one keyspace at one moment. Immutable. Holding its `Arc` keeps the files alive.
#[derive(Debug)]
pub(crate) struct Version {
    levels: Vec<Level>,
    order: SearchOrder,
    /// Ascending by number.
    blobs: Vec<LiveBlob>,
}

impl Version {
    /// Returns a version without files.
    pub(crate) fn empty() -> Version {
        Version::new(Vec::new(), Vec::new())
    }

    pub(super) fn new(mut levels: Vec<Level>, mut blobs: Vec<LiveBlob>) -> Version {
        while levels.last().is_some_and(|level| level.runs.is_empty()) {
            levels.pop();
        }
        blobs.sort_by_key(|blob| blob.file.meta.number);
        assert!(levels.len() <= LEVELS_MAX, "{} levels, at most {LEVELS_MAX}", levels.len());
        let numbers = blobs.iter().map(|blob| blob.file.meta.number);
        assert!(numbers.is_sorted_by(|a, b| a < b), "a blob file is listed twice");
        debug_assert!(
            blobs.iter().all(|blob| blob.garbage_bytes <= blob.file.meta.value_bytes),
            "a blob file with more garbage than values"
        );
        let order = SearchOrder::new(&levels);
        Version { levels, order, blobs }
    }

    /// Returns the levels from 0 to the last that has tables.
    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Returns the live blob files, ascending by number.
    pub(crate) fn blobs(&self) -> &[LiveBlob] {
        &self.blobs
    }

    /// Returns one blob file.
    pub(crate) fn blob(&self, number: FileNumber) -> Option<&LiveBlob> {
        let at = self.blobs.binary_search_by_key(&number, |blob| blob.file.meta.number).ok()?;
        self.blobs.get(at)
    }

    /// Returns the blob files that are no longer needed after `change`: all their bytes are
    /// garbage, and no table refers to them. Bytes alone are not sufficient, because an empty value
    /// has none.
    pub(crate) fn dead_blobs(&self, change: &KeyspaceEdit) -> Vec<FileNumber> {
        let added: HashMap<FileNumber, u64> = change.blob_garbage.iter().copied().collect();
        let is_garbage = |blob: &&LiveBlob| {
            let added = added.get(&blob.file.meta.number).copied().unwrap_or(0);
            blob.garbage_bytes.saturating_add(added) >= blob.file.meta.value_bytes
        };
        let garbage = self.blobs.iter().filter(is_garbage);
        let mut numbers: Vec<FileNumber> = garbage.map(|blob| blob.file.meta.number).collect();
        debug_assert!(numbers.is_sorted(), "blob files are listed by number");
        if !numbers.is_empty() {
            let removed: HashSet<FileNumber> = change.removed.iter().map(|old| old.number).collect();
            let stay =
                self.tables().map(|(_, table)| &table.meta).filter(|meta| !removed.contains(&meta.number));
            let metas = stay.chain(change.added.iter().map(|new| &new.meta));
            let named: HashSet<FileNumber> = metas.flat_map(|meta| &meta.blobs).map(|blob| blob.0).collect();
            numbers.retain(|number| !named.contains(number));
        }
        numbers
    }

    /// Returns all tables with their levels.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
        let levels = self.levels.iter().enumerate();
        levels.flat_map(|(at, level)| level.tables().map(move |table| (at, table)))
    }

    /// Passes the tables that may contain `key` to `visit`, the newest first, with their levels,
    /// until it breaks.
    ///
    /// This is on the path of point lookups. Comparing two words per run, from one array each,
    /// excludes most runs; in each remaining run, [`Run::find`] finds the one table. Nothing is
    /// allocated.
    #[inline]
    pub(crate) fn search<'a, B>(
        &'a self,
        key: &[u8],
        mut visit: impl FnMut(usize, &'a Arc<TableFile>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let Some(head) = self.order.fences.head(key) else { return ControlFlow::Continue(()) };
        for (at, (level, run)) in self.order.runs.iter().enumerate() {
            if self.order.fences.may_hold(at, head)
                && let Some(table) = run.find(key)
            {
                visit(*level, table)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns all runs in the order in which [`Version::search`] searches them.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.order.runs.iter().map(|(_, run)| &**run)
    }
}
