//! Checks constraints against measurements, extrapolated to the workload's size if the stores that
//! were run are smaller.

use super::candidate::Candidate;
use super::costs::Costs;
use super::predict::line;
use super::question::{Question, Workload};
use super::text;
use super::verify::Verified;
use crate::core::text::bytes;
use crate::stores::cairn_hash_kv;

/// Stores that map their file. The pages that they have touched are resident, and no cache size
/// bounds them.
pub(super) const MAPPED: [&str; 2] = [cairn_hash_kv::NAME, "lmdb"];

/// Returns the constraint that a run has broken, in words. `records` is the number of entries in
/// the store.
pub(super) fn broken(
    question: &Question,
    one: &Verified,
    candidate: &Candidate,
    costs: &[Costs],
    records: u64,
) -> Option<String> {
    let (constraints, workload) = (&question.constraints, &question.workload);
    if let Some(most) = constraints.p99_us
        && let Some((kind, micros)) = one.p99_us.iter().find(|(_, micros)| **micros > most)
    {
        return Some(format!(
            "1 of 100 operations of kind {kind} took over {} µs; {} are allowed",
            text::micros(*micros),
            text::micros(most)
        ));
    }
    let told = |what: &str, measured: f64, all: f64, most: u64| {
        let by = if all > measured {
            format!(", {} with all entries, by its growth", bytes(all))
        } else {
            String::new()
        };
        format!("took {} of {what}{by}; {} are allowed", bytes(measured), bytes(most as f64))
    };
    if let Some(most) = constraints.memory_bytes
        && let Some(measured) = one.memory_bytes
    {
        let all = memory_at_full_size(workload, measured, candidate, costs, (records, one.entries));
        if all > most as f64 {
            let is_mapped = MAPPED.contains(&candidate.store.as_str());
            let mapped = if is_mapped { " (including the touched pages of its mapped file)" } else { "" };
            return Some(told("memory", measured, all, most) + mapped);
        }
    }
    let most = constraints.disk_bytes?;
    let measured = one.bytes_per_entry * records as f64;
    let all = disk_at_full_size(workload, measured, costs, records);
    (all > most as f64).then(|| told("disk", measured, all, most))
}

/// Returns notes on the constraints that could not be checked, so that nobody takes them for met.
/// `records` is the number of entries in the store.
pub(super) fn unknown(question: &Question, one: &Verified, records: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if question.constraints.memory_bytes.is_some() && one.memory_bytes.is_none() {
        notes.push(format!("{}: its memory use is unknown", one.name));
    }
    if question.constraints.p99_us.is_some() {
        for (kind, count) in &one.too_few {
            notes.push(format!(
                "{}: {count} operations of kind {kind} are too few to tell their 99th percentile",
                one.name
            ));
        }
        if records < question.workload.records {
            notes.push(format!(
                "{}: its 99th percentiles are of a store of {records} entries; those of {} may be longer, especially if they do not fit in memory",
                one.name, question.workload.records
            ));
        }
    }
    notes
}

fn memory_at_full_size(
    workload: &Workload,
    measured: f64,
    candidate: &Candidate,
    costs: &[Costs],
    (records, entries): (u64, u64),
) -> f64 {
    if records >= workload.records {
        return measured;
    }
    // A peak of memory belongs to the number of entries at the end of the run, including inserted
    // ones.
    let at = entries.max(records) as f64;
    let small =
        costs.last().and_then(|costs| Some((costs.entries.max(costs.records) as f64, costs.memory_bytes?)));
    let Some(small) = small.filter(|(small, _)| *small < at) else { return measured };
    let grown = line(small, (at, measured), (workload.records as f64).max(at));
    if MAPPED.contains(&candidate.store.as_str()) {
        return grown;
    }
    // A cache grows no further than its bound.
    grown.min(measured.max(candidate.memory_bound(workload.threads) as f64))
}

fn disk_at_full_size(workload: &Workload, measured: f64, costs: &[Costs], records: u64) -> f64 {
    if records >= workload.records {
        return measured;
    }
    let small =
        costs.last().map(|costs| (costs.records as f64, costs.bytes_per_entry * costs.records as f64));
    match small.filter(|(at, _)| *at < records as f64) {
        Some(small) => line(small, (records as f64, measured), workload.records as f64),
        None => measured / records.max(1) as f64 * workload.records as f64,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::stores::kv::KvSettings;

    fn costs(records: u64, bytes_per_entry: f64, memory: f64) -> Costs {
        Costs {
            records,
            entries: records,
            secs: BTreeMap::new(),
            mixed: 1e-6,
            loads_per_sec: 1e6,
            bytes_per_entry,
            memory_bytes: Some(memory),
        }
    }

    fn run(bytes_per_entry: f64, memory: Option<f64>) -> Verified {
        Verified {
            name: "one".to_owned(),
            store: "one".to_owned(),
            samples: vec![1.0],
            median: 1.0,
            low: 1.0,
            high: 1.0,
            predicted: 1.0,
            growth: 1.0,
            p99_us: BTreeMap::new(),
            too_few: BTreeMap::new(),
            bytes_per_entry,
            memory_bytes: memory,
            entries: 200_000,
        }
    }

    fn candidate(store: &str) -> Candidate {
        let settings =
            KvSettings { cache_bytes: 100 << 20, write_buffer_bytes: 1 << 20, ..KvSettings::default() };
        Candidate { name: store.to_owned(), store: store.to_owned(), ours: false, settings }
    }

    fn question(records: u64) -> Question {
        Question { workload: Workload { records, ..Workload::default() }, ..Question::default() }
    }

    /// Goal: the fixed part of a store's files is not counted as bytes per entry. Method: 10 MB
    /// plus 100 bytes per entry, at sizes that are run and at one that is not.
    #[test]
    fn files_have_a_fixed_part() {
        let mut asked = question(1_000_000);
        let per_entry = |records: f64| 100.0 + 10e6 / records;
        let costs = [costs(80_000, per_entry(80e3), 0.0)];
        let one = run(per_entry(200e3), None);
        for (most, breaks) in [(120_000_000, false), (109_000_000, true)] {
            asked.constraints.disk_bytes = Some(most);
            let reason = broken(&asked, &one, &candidate("sled"), &costs, 200_000);
            assert_eq!(reason.is_some(), breaks, "{reason:?}");
        }
        asked.workload.records = 200_000;
        asked.constraints.disk_bytes = Some(31_000_000);
        assert_eq!(broken(&asked, &one, &candidate("sled"), &costs, 200_000), None);
    }

    /// Goal: memory is extrapolated to the size of the question, at most to the bound of a cache,
    /// and an unknown figure is reported. Method: a store that grows by 1 kB per entry.
    #[test]
    fn memory_grows_with_the_store() {
        let mut asked = question(1_000_000);
        asked.constraints.memory_bytes = Some(400_000_000);
        let costs = [costs(80_000, 1.0, 80e6)];
        let one = run(1.0, Some(200e6));
        let of = |store: &str| broken(&asked, &one, &candidate(store), &costs, 200_000);
        assert!(of("lmdb").unwrap().contains("by its growth"));
        assert_eq!(of("rocksdb"), None);
        assert!(broken(&asked, &run(1.0, Some(401e6)), &candidate("rocksdb"), &costs, 200_000).is_some());
        assert_eq!(unknown(&asked, &one, 200_000), Vec::<String>::new());
        assert!(unknown(&asked, &run(1.0, None), 200_000)[0].contains("is unknown"));
        asked.constraints = Default::default();
        assert_eq!(unknown(&asked, &run(1.0, None), 200_000), Vec::<String>::new());
    }

    /// Goal: a store without write buffers is not charged for them, a store with a cache per
    /// connection is charged for all of them, and settings that fit a limit never break it through
    /// extrapolation. Method: the candidates for a limit, checked as if their memory had grown
    /// without bound.
    #[test]
    fn caches_and_buffers_are_bounds() {
        let mut asked = question(1_000_000_000);
        asked.workload.threads = 4;
        asked.constraints.memory_bytes = Some(256 << 20);
        let (candidates, _) =
            crate::advise::candidate::candidates(&asked, &crate::catalog::installed().kv).unwrap();
        let costs = [costs(80_000, 1.0, 1e6)];
        for candidate in candidates.iter().filter(|one| !MAPPED.contains(&one.store.as_str())) {
            assert_eq!(
                broken(&asked, &run(1.0, Some(100e6)), candidate, &costs, 200_000),
                None,
                "{}",
                candidate.name
            );
        }
        let bound = |store: &str| candidate(store).memory_bound(4);
        assert_eq!(bound("rocksdb"), (100 << 20) + 2 * (1 << 20));
        assert_eq!((bound("redb"), bound("sqlite")), (100 << 20, 400 << 20));
    }

    /// Goal: the reason for excluding a store because of its guarantee says whether it takes part
    /// with a stronger one. Method: stores that flush at a time of their own choice, for a workload
    /// whose writes must survive the process.
    #[test]
    fn weaker_guarantee_names_the_durability_to_ask_for() {
        if !cfg!(feature = "peers") {
            return;
        }
        let (_, out) =
            crate::advise::candidate::candidates(&question(1_000), &crate::catalog::installed().kv).unwrap();
        let redb = out.iter().find(|one| one.name == "redb").unwrap();
        assert!(redb.reason.ends_with("; it takes part with --durability sync"), "{}", redb.reason);
    }

    /// Goal: the memory peak of a small store belongs to the entries that it held by then. Method:
    /// a store that inserted as many entries as it was loaded with.
    #[test]
    fn memory_peak_belongs_to_the_entries_of_its_time() {
        let mut asked = question(1_000_000);
        asked.constraints.memory_bytes = Some(900_000_000);
        let mut small = costs(80_000, 1.0, 160e6);
        let one = run(1.0, Some(200e6));
        // 40 MB for 120,000 more entries is little; for 40,000 more it is 1 kB each.
        assert_eq!(broken(&asked, &one, &candidate("lmdb"), std::slice::from_ref(&small), 200_000), None);
        small.entries = 160_000;
        assert!(broken(&asked, &one, &candidate("lmdb"), &[small], 200_000).is_some());
    }

    /// Goal: latencies of a smaller store are not reported as those of the full size.
    #[test]
    fn percentiles_of_less_are_told() {
        let mut asked = question(1_000_000);
        asked.constraints.p99_us = Some(100.0);
        assert!(unknown(&asked, &run(1.0, None), 200_000)[0].contains("store of 200000 entries"));
        assert_eq!(unknown(&asked, &run(1.0, None), 1_000_000), Vec::<String>::new());
    }
}
