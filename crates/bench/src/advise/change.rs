//! Changes to the workload that would change the answer: the nearest workloads on which another
//! candidate is ahead.

use std::collections::BTreeMap;

use super::candidate::{Candidate, Discarded};
use super::costs::Costs;
use super::predict::{Machine, predict, seconds_of_mix};
use super::question::Workload;
use super::verify::Verified;
use crate::core::stats;
use crate::stores::catalog::Registry;
use crate::stores::guarantee::Fit;
use crate::stores::kv::KvStore;
use crate::suites::kv::Mix;

/// Factor by which another candidate has to be faster to be called ahead.
const MARGIN: f64 = 1.1;

/// The data behind an answer.
pub(super) struct Changing<'a> {
    pub workload: &'a Workload,
    /// Number of entries in the stores that were run.
    pub records: u64,
    pub candidates: &'a [Candidate],
    pub verified: &'a [Verified],
    pub costs: &'a BTreeMap<String, Vec<Costs>>,
    pub discarded: &'a [Discarded],
    pub machine: &'a Machine,
    /// The stores of all candidates.
    pub stores: &'a Registry<dyn KvStore>,
    /// Other settings of the winning store that are indistinguishable from the winner. They do not
    /// count as another answer.
    pub alike: &'a [String],
}

/// One candidate with its costs, and its measured performance relative to them.
struct Known<'a> {
    candidate: &'a Candidate,
    costs: &'a [Costs],
    /// Measured seconds per operation divided by the seconds that the costs give. A candidate that
    /// was not run has the median of those that were.
    correction: f64,
    is_run: bool,
    /// True if the store gives the durability that the workload asks of its writes.
    may_write: bool,
}

impl Known<'_> {
    fn name(&self) -> &str {
        &self.candidate.name
    }

    /// Returns operations per second on another mix. `None` if the store cannot run the mix or may
    /// not write.
    fn of_mix(&self, workload: &Workload, mix: Mix) -> Option<f64> {
        if mix.writes() > 0.0 && !self.may_write {
            return None;
        }
        let seconds = seconds_of_mix(self.costs, workload, mix, workload.records)?;
        Some(1.0 / (seconds * self.correction))
    }

    /// Returns operations per second with `records` entries, including cache misses and compactions
    /// at that size.
    fn of_size(&self, (workload, from): (&Workload, u64), records: u64, machine: &Machine) -> Option<f64> {
        let run = seconds_of_mix(self.costs, workload, workload.mix, from)? * self.correction;
        let predicted = |records: u64| {
            predict(self.candidate, self.costs, &Workload { records, ..workload.clone() }, machine).per_sec
        };
        Some(predicted(records) / predicted(from) / run)
    }
}

/// A workload on which another candidate is ahead.
struct TurningPoint<'a> {
    /// The first step at which it is ahead, counted from 1, and whether the winner cannot run that
    /// workload at all.
    step: usize,
    winner_ends: bool,
    best: &'a Known<'a>,
}

impl TurningPoint<'_> {
    fn take(&self) -> String {
        let by = if self.best.is_run { "" } else { ", by prediction" };
        format!("take {}{by}", self.best.name())
    }
}

/// Number of steps of the share of writes, from the workload's own share to all or none.
const STEPS: usize = 20;
/// Factors by which the number of entries is multiplied.
const SIZES: [f64; 3] = [4.0, 16.0, 64.0];

impl Changing<'_> {
    /// Returns sentences such as "above 30 % writes take kv".
    ///
    /// They are computed from the costs of single operations, corrected by measured throughput.
    /// Three kinds of candidates are never named: those that break a constraint, those that promise
    /// less than the workload asks for, and those whose costs put them ahead on the workload itself
    /// although measurement did not. The costs of the last kind are not informative here.
    pub fn from(&self, winner: &str) -> Vec<String> {
        let mut known = self.known();
        known.retain(|known| known.name() == winner || self.alike.iter().all(|alike| alike != known.name()));
        let Some(own) = known.iter().position(|known| known.name() == winner) else { return Vec::new() };
        let own = known.swap_remove(own);
        let mut found = Vec::new();
        let (writes, mix) = (self.workload.writes(), |share| with_share(self.workload, share));
        for (word, to) in [("above", 1.0), ("below", 0.0)] {
            let share = |step: usize| writes + (to - writes) * step as f64 / STEPS as f64;
            // A read-only workload has no smaller share of writes to try.
            let steps = if (to - writes).abs() < 1e-9 { 0 } else { STEPS };
            let of = |known: &Known<'_>, step: usize| known.of_mix(self.workload, mix(share(step)));
            if let Some(turning) = first(&known, &own, steps, of) {
                // A store that cannot write is behind from the first write on, so the boundary is
                // the step before.
                let at = if turning.winner_ends { share(turning.step - 1) } else { share(turning.step) };
                found.push(format!("{word} {:.0} % writes {}", at * 100.0, turning.take()));
            }
        }
        let entries = |step: usize| {
            let factor = step.checked_sub(1).and_then(|at| SIZES.get(at)).copied().unwrap_or(1.0);
            self.workload.records as f64 * factor
        };
        let run = (self.workload, self.records);
        let of = |known: &Known<'_>, step: usize| known.of_size(run, entries(step) as u64, self.machine);
        if let Some(turning) = first(&known, &own, SIZES.len(), of) {
            found.push(format!("from about {} entries {}", count(entries(turning.step)), turning.take()));
        }
        if found.is_empty() {
            found.push(
                "by these costs, neither another share of writes nor up to 64 times as many entries \
                 changes the choice"
                    .to_owned(),
            );
        }
        found
    }

    fn known(&self) -> Vec<Known<'_>> {
        let is_out = |name: &str| self.discarded.iter().any(|out| out.name == name);
        let candidates = self.candidates.iter().filter(|candidate| !is_out(&candidate.name));
        let mut known: Vec<Known<'_>> = candidates
            .filter_map(|candidate| {
                let costs = self.costs.get(&candidate.name)?;
                let measured = self.verified.iter().find(|verified| verified.name == candidate.name);
                let of_costs = seconds_of_mix(costs, self.workload, self.workload.mix, self.records);
                let correction = match (measured, of_costs) {
                    (Some(measured), Some(seconds)) if seconds > 0.0 && measured.median > 0.0 => {
                        Some(1.0 / measured.median / seconds)
                    }
                    _ => None,
                };
                let store = self.stores.get(&candidate.store).ok();
                let durability = self.workload.durability;
                let may_write = store.is_some_and(|store| store.guarantee(durability).fit != Fit::Weaker);
                let is_run = correction.is_some();
                Some(Known { candidate, costs, correction: correction.unwrap_or(1.0), is_run, may_write })
            })
            .collect();
        let run: Vec<f64> = known.iter().filter(|one| one.is_run).map(|one| one.correction).collect();
        if !run.is_empty() {
            let usual = stats::median(&run);
            known.iter_mut().filter(|one| !one.is_run).for_each(|one| one.correction = usual);
        }
        known
    }
}

/// Returns the first step at which another candidate is ahead. Step 0 is the workload itself.
fn first<'k>(
    others: &'k [Known<'k>],
    own: &Known<'_>,
    steps: usize,
    per_sec: impl Fn(&Known<'_>, usize) -> Option<f64>,
) -> Option<TurningPoint<'k>> {
    let is_ahead = |rate: f64, step: usize| rate > per_sec(own, step).unwrap_or(0.0) * MARGIN;
    let rivals: Vec<&Known<'k>> =
        others.iter().filter(|known| per_sec(known, 0).is_none_or(|rate| !is_ahead(rate, 0))).collect();
    (1..=steps).find_map(|step| {
        let rates = rivals.iter().filter_map(|known| Some((*known, per_sec(known, step)?)));
        let (best, rate) = rates.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let winner_ends = per_sec(own, step).is_none();
        is_ahead(rate, step).then_some(TurningPoint { step, winner_ends, best })
    })
}

/// Returns the mix with another share of writes. Kinds of writes keep their proportions, as do
/// kinds of reads. A workload without writes gets updates.
fn with_share(workload: &Workload, writes: f64) -> Mix {
    let mix = workload.shares();
    let (had, others) = (workload.writes(), 1.0 - workload.writes());
    let write = |share: f64, else_all: f64| if had > 0.0 { share / had * writes } else { else_all * writes };
    let other = |share: f64, else_all: f64| {
        if others > 0.0 { share / others * (1.0 - writes) } else { else_all * (1.0 - writes) }
    };
    Mix {
        read: other(mix.read, 1.0),
        scan: other(mix.scan, 0.0),
        update: write(mix.update, 1.0),
        insert: write(mix.insert, 0.0),
        read_modify_write: write(mix.read_modify_write, 0.0),
    }
}

pub(super) fn count(of: f64) -> String {
    match of {
        of if of >= 1e9 => format!("{:.1} G", of / 1e9),
        of if of >= 1e6 => format!("{:.1} M", of / 1e6),
        of if of >= 1e3 => format!("{:.1} k", of / 1e3),
        of => format!("{of:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::advise::costs::Kind;
    use crate::core::workload::Durability;
    use crate::stores::kv::KvSettings;

    fn known(name: &str, store: &str, read: f64, update: Option<f64>) -> (Candidate, (String, Vec<Costs>)) {
        let mut seconds: BTreeMap<Kind, f64> = [(Kind::Read, read)].into();
        seconds.extend(update.map(|update| (Kind::Update, update)));
        let costs = Costs {
            records: 80_000,
            entries: 80_000,
            secs: seconds,
            mixed: read,
            loads_per_sec: 1e6,
            bytes_per_entry: 100.0,
            memory_bytes: None,
        };
        let settings = KvSettings::default();
        let candidate = Candidate { name: name.to_owned(), store: store.to_owned(), ours: false, settings };
        (candidate, (name.to_owned(), vec![costs]))
    }

    fn changes(
        known: Vec<(Candidate, (String, Vec<Costs>))>,
        durability: Durability,
        out: &[&str],
    ) -> Vec<String> {
        let mix = Mix { read: 1.0, ..Mix::default() };
        let workload = Workload { mix, records: 80_000, durability, ..Workload::default() };
        let (candidates, costs): (Vec<_>, BTreeMap<_, _>) = known.into_iter().unzip();
        let discard = |name: &&str| Discarded { name: (*name).to_owned(), reason: String::new() };
        let discarded: Vec<Discarded> = out.iter().map(discard).collect();
        let winner = candidates[0].name.clone();
        let names = candidates.iter().map(|candidate| candidate.name.clone());
        let alike: Vec<String> = names.filter(|name| name.starts_with(&format!("{winner},"))).collect();
        let changing = Changing {
            workload: &workload,
            records: 80_000,
            candidates: &candidates,
            verified: &[],
            costs: &costs,
            discarded: &discarded,
            machine: &MACHINE,
            stores: &crate::catalog::installed().kv,
            alike: &alike,
        };
        changing.from(&winner)
    }

    const MACHINE: Machine =
        Machine { cache_bytes: Some(1e9), read_secs: 100e-6, write_bytes_per_sec: 1e9, cores: 2 };

    /// Goal: a store that cannot write is ruled out from the first write on. Method: the constant
    /// store leads another store in lookups.
    #[test]
    fn read_only_store_is_ruled_out_by_the_first_write() {
        let all =
            vec![known("cairn-hash", "cairn-hash", 1e-7, None), known("cairn", "cairn", 1e-6, Some(2e-6))];
        let said = changes(all, Durability::Buffered, &[]);
        assert_eq!(said, ["above 0 % writes take cairn, by prediction"]);
    }

    /// Goal: settings that are indistinguishable from the winner's are not another answer. Method:
    /// settings that write faster according to the costs.
    #[test]
    fn indistinguishable_settings_are_no_other_answer() {
        let usual = known("cairn", "cairn", 1e-6, Some(2e-6));
        let all = vec![usual, known("cairn, large buffers", "cairn", 1e-6, Some(1e-6))];
        let said = changes(all, Durability::Buffered, &[]);
        assert!(said.len() == 1 && said[0].contains("neither another share of writes"), "{said:?}");
    }

    /// Goal: a candidate that breaks a constraint or promises too little is never named. Method: a
    /// fast store that is excluded; a store that keeps its writes in memory, for a workload whose
    /// writes must survive the process.
    #[test]
    fn excluded_candidates_are_not_named() {
        let all = |fast: &str| {
            vec![known("cairn", "cairn", 1e-6, Some(9e-6)), known("fast", fast, 1.05e-6, Some(1e-6))]
        };
        let said = |fast, out: &[&str]| changes(all(fast), Durability::Buffered, out).join(", ");
        assert!(said("cairn", &[]).contains("take fast"), "{}", said("cairn", &[]));
        assert!(said("cairn", &["fast"]).contains("neither another share"));
        if cfg!(feature = "peers") {
            assert!(said("redb", &[]).contains("neither another share"), "{}", said("redb", &[]));
        }
    }

    /// Goal: a candidate whose costs put it ahead already, but which measurement did not confirm,
    /// is no change; nor is there a share of writes below zero. Method: the winner is measured at
    /// half the speed that its costs predict. One rival has equal costs, was not run, and gets the
    /// same correction; another claims to be ten times as fast.
    #[test]
    fn unconfirmed_costs_change_no_answer() {
        let all = [
            known("cairn", "cairn", 1e-6, Some(2e-6)),
            known("alike", "cairn", 1e-6, Some(1.9e-6)),
            known("braggart", "cairn", 1e-7, Some(1e-7)),
        ];
        let workload =
            Workload { mix: Mix { read: 1.0, ..Mix::default() }, records: 80_000, ..Workload::default() };
        let (candidates, costs): (Vec<_>, BTreeMap<_, _>) = all.into_iter().unzip();
        let verified = [Verified {
            name: "cairn".to_owned(),
            store: "cairn".to_owned(),
            samples: vec![5e5],
            median: 5e5,
            low: 5e5,
            high: 5e5,
            predicted: 1e6,
            growth: 1.0,
            p99_us: BTreeMap::new(),
            too_few: BTreeMap::new(),
            bytes_per_entry: 100.0,
            memory_bytes: None,
            entries: 80_000,
        }];
        let changing = Changing {
            workload: &workload,
            records: 80_000,
            candidates: &candidates,
            verified: &verified,
            costs: &costs,
            discarded: &[],
            machine: &MACHINE,
            stores: &crate::catalog::installed().kv,
            alike: &[],
        };
        let said = changing.from("cairn");
        assert!(said.len() == 1 && said[0].contains("neither another share of writes"), "{said:?}");
    }

    /// Goal: the size at which data no longer fits in memory changes the answer. Method: two
    /// stores, one of which takes a hundredth of the other's bytes and twice its time.
    #[test]
    fn data_beyond_memory_changes_the_answer() {
        let (large, small) =
            (known("cairn", "cairn", 1e-6, Some(2e-6)), known("small", "cairn", 2e-6, Some(4e-6)));
        let mut all = vec![large, small];
        all[0].1.1[0].bytes_per_entry = 1000.0;
        all[1].1.1[0].bytes_per_entry = 10.0;
        let said = changes(all, Durability::Buffered, &[]).join(", ");
        assert!(said.contains(" entries take small, by prediction"), "{said}");
    }

    /// Goal: another share of writes keeps the proportions of the rest. Method: mixes with and
    /// without writes.
    #[test]
    fn shares_of_writes() {
        let mix = Mix { read: 0.6, update: 0.1, scan: 0.2, insert: 0.1, read_modify_write: 0.0 };
        let half = with_share(&Workload { mix, ..Workload::default() }, 0.5);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(
            close(half.read, 0.375)
                && close(half.scan, 0.125)
                && close(half.update, 0.25)
                && close(half.insert, 0.25)
        );
        let only_reads = Workload { mix: Mix { read: 1.0, ..Mix::default() }, ..Workload::default() };
        assert!(
            close(with_share(&only_reads, 0.3).update, 0.3) && close(with_share(&only_reads, 0.3).read, 0.7)
        );
    }
}
