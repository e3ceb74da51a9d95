//! What would change the answer: the nearest workloads for which another candidate is ahead.

use std::collections::BTreeMap;

use super::costs::Costs;
use super::predict::seconds_of_mix;
use super::question::Workload;
use super::verify::Verified;
use crate::suite_kv::Mix;

/// Another candidate has to be this much faster to be called ahead.
const MARGIN: f64 = 1.1;

/// One candidate with its costs, and what it did against what its costs say.
struct Known<'a> {
    name: &'a str,
    costs: &'a [Costs],
    /// Measured seconds over those of the costs.
    correction: f64,
}

impl Known<'_> {
    fn per_sec(&self, workload: &Workload, mix: Mix, records: u64) -> Option<f64> {
        Some(1.0 / (seconds_of_mix(self.costs, workload, mix, records)? * self.correction))
    }
}

/// Sentences such as "above 30 % writes take kv". Found by the costs of single operations, corrected by what was measured.
pub(super) fn changes(
    workload: &Workload,
    records: u64,
    winner: &str,
    verified: &[Verified],
    costs: &BTreeMap<String, Vec<Costs>>,
) -> Vec<String> {
    let mut known = Vec::new();
    for (name, costs) in costs {
        let measured = verified.iter().find(|verified| verified.name == *name);
        let of_costs = seconds_of_mix(costs, workload, workload.mix, records);
        let correction = match (measured, of_costs) {
            (Some(measured), Some(seconds)) if seconds > 0.0 && measured.median > 0.0 => {
                1.0 / measured.median / seconds
            }
            _ => 1.0,
        };
        known.push(Known { name, costs, correction });
    }
    // The first mix of a row, walking away from the workload's own, at which somebody else is ahead.
    let first = |mixes: Vec<(f64, Mix, u64)>| {
        mixes.into_iter().find_map(|(at, mix, records)| {
            let of = |known: &Known<'_>| known.per_sec(workload, mix, records);
            let own = of(known.iter().find(|known| known.name == winner)?)?;
            let (best, per_sec) = known
                .iter()
                .filter_map(|known| Some((known.name, of(known)?)))
                .max_by(|a, b| a.1.total_cmp(&b.1))?;
            (best != winner && per_sec > own * MARGIN).then_some((at, best))
        })
    };
    let mut found = Vec::new();
    let writes = workload.writes();
    let steps = |to: f64| {
        let share = |step: u32| writes + (to - writes) * f64::from(step) / 20.0;
        (1..=20).map(|step| (share(step), with_share(workload, share(step)), workload.records)).collect()
    };
    if let Some((at, best)) = first(steps(1.0)) {
        found.push(format!("above {:.0} % writes take {best}", at * 100.0));
    }
    if let Some((at, best)) = first(steps(0.0)) {
        found.push(format!("below {:.0} % writes take {best}", at * 100.0));
    }
    let sizes =
        [4.0, 16.0, 64.0].map(|factor| (factor, workload.mix, (workload.records as f64 * factor) as u64));
    if let Some((factor, best)) = first(sizes.to_vec()) {
        found.push(format!("from about {} entries take {best}", count(workload.records as f64 * factor)));
    }
    if found.is_empty() {
        found.push("no other share of writes and no store of up to 64 times as many entries changes it, by these costs".to_owned());
    }
    found
}

/// The same workload with another share of writes; their kinds among themselves as before, updates where there were none.
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

    /// Goal: another share of writes leaves the rest in proportion. Method: mixes with and without writes.
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
