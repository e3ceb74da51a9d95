//! Costs of single operations on this machine, measured on small stores.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::question::Workload;
use super::run::{Measured, Runner};
use crate::core::error::Result;
use crate::suites::kv::{Mix, YcsbSpec};

/// Upper bounds of the entries in the small and the large calibration store.
pub(super) const SIZES: [u64; 2] = [20_000, 80_000];

/// Operations of each kind on the smallest store. Their cost sets the number of operations on the
/// larger one.
const OPERATIONS: u64 = 20_000;
/// The same for operations of which each write waits for the disk.
const SYNC_OPERATIONS: u64 = 1_000;
/// Approximate duration of the measurement of each kind on the larger store.
const SECONDS: f64 = 0.2;
/// Upper bound of the number of operations.
const OPERATIONS_MOST: u64 = 1_000_000;

/// Names of the unmeasured pass and of the pass with the workload's own mix.
pub(super) const WARM_UP: &str = "warm-up";
const MIXED: &str = "mixed";

/// The kinds of operations that a mix consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A lookup.
    Read,
    /// A write to an existing key.
    Update,
    /// A write to a new key.
    Insert,
    /// A scan.
    Scan,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::Read, Kind::Update, Kind::Insert, Kind::Scan];

    fn mix(self) -> Mix {
        match self {
            Kind::Read => Mix { read: 1.0, ..Mix::default() },
            Kind::Update => Mix { update: 1.0, ..Mix::default() },
            Kind::Insert => Mix { insert: 1.0, ..Mix::default() },
            Kind::Scan => Mix { scan: 1.0, ..Mix::default() },
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Update => "update",
            Kind::Insert => "insert",
            Kind::Scan => "scan",
        }
    }
}

/// The costs of one candidate at one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Entries in the store when the measurement began.
    pub records: u64,
    /// Entries when memory was measured, including inserted ones. 0 in costs that were stored
    /// before this field existed.
    #[serde(default)]
    pub entries: u64,
    /// Seconds per operation of each kind: the inverse of the throughput of all threads together.
    #[serde(alias = "seconds")]
    pub secs: BTreeMap<Kind, f64>,
    /// Seconds per operation of the workload's own mix.
    pub mixed: f64,
    /// Entries loaded per second.
    pub loads_per_sec: f64,
    /// Bytes on disk per entry.
    pub bytes_per_entry: f64,
    /// The largest rise of resident memory, in bytes.
    pub memory_bytes: Option<f64>,
}

/// Returns the store sizes at which a workload is calibrated.
pub(super) fn sizes(workload: &Workload) -> Vec<u64> {
    // If every write waits for the disk, a store takes long to load, and the wait does not grow
    // with its size.
    let part = if workload.durability == crate::core::workload::Durability::Sync { 10 } else { 1 };
    let mut sizes: Vec<u64> = SIZES.iter().map(|size| (*size / part).min(workload.records)).collect();
    sizes.dedup();
    sizes
}

/// Measures a candidate at one size: the mix itself, then each kind of operation that the mix or a
/// similar one contains.
///
/// `known` holds the costs at a smaller size, if there are any. Errors: those of the store;
/// [`crate::core::error::Error::WrongResult`].
pub(super) fn measure(
    runner: &Runner<'_>,
    candidate: &Candidate,
    workload: &Workload,
    records: u64,
    known: Option<&Costs>,
) -> Result<Costs> {
    let waits = workload.durability == crate::core::workload::Durability::Sync;
    let operations = |writes: f64, known: Option<f64>| {
        let least = if waits && writes > 0.0 { SYNC_OPERATIONS } else { OPERATIONS };
        known.map_or(least, |seconds| ((SECONDS / seconds) as u64).clamp(least / 10, OPERATIONS_MOST))
    };
    let mixed = operations(workload.writes(), known.map(|known| known.mixed));
    // The first reads of files and the first verification of their checksums happen before
    // measuring.
    let entries = 1.0 + workload.shares().scan * workload.scan_records as f64 / 2.0;
    let all = (records as f64 / entries) as u64;
    let all = if waits && workload.writes() > 0.0 { all.min(SYNC_OPERATIONS) } else { all };
    let named = |name: &str, count: u64| YcsbSpec {
        name: name.to_owned(),
        operations: Some(count),
        ..workload.spec()
    };
    let mut specs = vec![named(WARM_UP, all.max(1)), named(MIXED, mixed)];
    let scans = workload.shares().scan > 0.0;
    for kind in Kind::ALL {
        let alone = candidate.store == crate::stores::cairn_hash_kv::NAME && kind != Kind::Read;
        if alone || (kind == Kind::Scan && !scans) {
            continue;
        }
        let mix = kind.mix();
        let writes = mix.update + mix.insert;
        let of_kind = known.and_then(|known| known.secs.get(&kind).copied());
        let count = match (kind, of_kind) {
            (Kind::Scan, None) => operations(writes, None) / workload.scan_records.clamp(1, 40),
            (_, known) => operations(writes, known),
        };
        specs.push(YcsbSpec {
            name: kind.name().to_owned(),
            mix,
            operations: Some(count.max(200)),
            ..workload.spec()
        });
    }
    let Measured { throughput, load, bytes_per_entry, memory_bytes, entries, .. } =
        runner.run(candidate, workload, records, &specs)?;
    let seconds_of = |name: &str| throughput.get(name).map(|rate| 1.0 / rate.max(f64::MIN_POSITIVE));
    Ok(Costs {
        records,
        entries,
        secs: Kind::ALL.into_iter().filter_map(|kind| Some((kind, seconds_of(kind.name())?))).collect(),
        mixed: seconds_of(MIXED).unwrap_or(f64::INFINITY),
        loads_per_sec: load,
        bytes_per_entry,
        memory_bytes,
    })
}
