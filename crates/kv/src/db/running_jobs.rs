//! The running compactions of a keyspace.

use cairn_vfs::sync::Arc;

use crate::compaction::strategy::{Job, JobKind};
use crate::file::FileNumber;
use crate::version::Version;

/// A running compaction.
#[derive(Debug)]
pub(crate) struct Running {
    pub id: u64,
    pub output_level: usize,
    pub smallest: Vec<u8>,
    pub largest: Vec<u8>,
    pub tables: Vec<FileNumber>,
}

/// The running compactions of a keyspace.
#[derive(Debug, Default)]
pub(crate) struct RunningJobs {
    pub next_id: u64,
    pub jobs: Vec<Running>,
}

/// A job whose tables are marked as being compacted, and the version from which it was chosen.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub id: u64,
    pub job: Job,
    pub version: Arc<Version>,
}

impl RunningJobs {
    /// Marks the tables of `job`, which was chosen from `version`, as being compacted.
    pub(crate) fn claim(&mut self, job: Job, version: Arc<Version>) -> Claimed {
        debug_assert!(!job.inputs.is_empty(), "a compaction without inputs: {job:?}");
        debug_assert!(
            job.inputs.iter().all(|input| !input.tables.is_empty()),
            "an input without tables: {job:?}"
        );
        debug_assert!(job.smallest <= job.largest, "keys from {:?} to {:?}", job.smallest, job.largest);
        debug_assert!(job.boundaries.is_sorted_by(|a, b| a < b), "boundaries of parts: {:?}", job.boundaries);
        debug_assert!(job.cuts.is_sorted(), "cuts between tables: {:?}", job.cuts);
        debug_assert!(
            job.boundaries.iter().chain(&job.cuts).all(|key| job.smallest < *key && *key <= job.largest),
            "parts or tables without keys: {job:?}"
        );
        debug_assert!(
            job.kind == JobKind::Drop || job.inputs.iter().all(|input| input.level <= job.output_level),
            "newer entries would be looked for below older ones: {job:?}"
        );
        debug_assert!(
            job.inputs
                .iter()
                .flat_map(|input| &input.tables)
                .all(|table| { self.jobs.iter().all(|running| !running.tables.contains(table)) }),
            "a table is compacted twice at a time: {job:?}"
        );
        debug_assert!(
            self.jobs.iter().all(|running| {
                running.output_level != job.output_level
                    || running.largest < job.smallest
                    || job.largest < running.smallest
            }),
            "two jobs write the same keys to one level: {job:?}"
        );
        debug_assert!(
            self.jobs.iter().all(|running| running.id <= self.next_id),
            "ids are given out in order"
        );
        self.next_id += 1;
        self.jobs.push(Running {
            id: self.next_id,
            output_level: job.output_level,
            smallest: job.smallest.clone(),
            largest: job.largest.clone(),
            tables: job.inputs.iter().flat_map(|input| input.tables.iter().copied()).collect(),
        });
        Claimed { id: self.next_id, job, version }
    }
}
