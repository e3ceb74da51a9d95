//! Constraints held against what was measured, carried to the workload's size where less was run.

use super::candidate::Candidate;
use super::costs::Costs;
use super::predict::line;
use super::question::{Question, Workload};
use super::text;
use super::verify::Verified;
use crate::suite_kv::catalog;
use crate::text::bytes;

/// Who maps its file: the pages that it has touched are resident, and not bounded by a cache.
pub(super) const MAPPED: [&str; 2] = [catalog::CONSTANT, "lmdb"];

/// The constraint that a run has broken. `records` is what the store held.
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
        let all = memory_at_full_size(workload, measured, candidate, costs, records);
        if all > most as f64 {
            let is_mapped = MAPPED.contains(&candidate.store.as_str());
            let mapped =
                if is_mapped { " (the pages of its mapped file that it touched are part of it)" } else { "" };
            return Some(told("memory", measured, all, most) + mapped);
        }
    }
    let most = constraints.disk_bytes?;
    let measured = one.bytes_per_entry * records as f64;
    let all = disk_at_full_size(workload, measured, costs, records);
    (all > most as f64).then(|| told("disk", measured, all, most))
}

/// What constraints cannot be held against: nobody knows that they are kept.
pub(super) fn unknown(question: &Question, one: &Verified) -> Vec<String> {
    let mut notes = Vec::new();
    if question.constraints.memory_bytes.is_some() && one.memory_bytes.is_none() {
        notes.push(format!("{}: how much memory it took is not known", one.name));
    }
    if question.constraints.p99_us.is_some() {
        for (kind, count) in &one.too_few {
            notes.push(format!(
                "{}: {count} operations of kind {kind} are too few to tell their 99th percentile",
                one.name
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
    records: u64,
) -> f64 {
    if records >= workload.records {
        return measured;
    }
    let small = costs.last().and_then(|costs| Some((costs.records as f64, costs.memory_bytes?)));
    let Some(small) = small.filter(|(at, _)| *at < records as f64) else { return measured };
    let grown = line(small, (records as f64, measured), workload.records as f64);
    if MAPPED.contains(&candidate.store.as_str()) {
        return grown;
    }
    // A cache that fills grows no further than to its bound.
    let settings = &candidate.settings;
    grown.min(measured.max((settings.cache_bytes + 2 * settings.write_buffer_bytes) as f64))
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
    use crate::suite_kv::KvSettings;

    fn costs(records: u64, bytes_per_entry: f64, memory: f64) -> Costs {
        Costs {
            records,
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

    /// Goal: what a file has whatever it holds is not taken for bytes of an entry. Method: 10 MB and 100 bytes an entry, at sizes that are run and at one that
    /// is not.
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

    /// Goal: memory is carried to the size that was asked for, to the bound of a cache at most, and what is not known is told. Method: a store that grows by 1 kB
    /// an entry.
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
        assert_eq!(unknown(&asked, &one), Vec::<String>::new());
        assert!(unknown(&asked, &run(1.0, None))[0].contains("not known"));
        asked.constraints = Default::default();
        assert_eq!(unknown(&asked, &run(1.0, None)), Vec::<String>::new());
    }
}
