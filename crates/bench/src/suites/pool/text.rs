//! Formats a run in the guide's layout: one table per phase, one column per contender.

use super::plan::name_of;
use super::{DEVIATION, HIT_RATE, LOAD_GENERATION, RECOVERY, title};
use crate::core::dashboard::Entry;
use crate::core::recorder::{LATENCY, MEAN_LATENCY, THROUGHPUT};
use crate::core::results::{Case, Contender, Run};
use crate::core::text::{self, Align, Table};

/// Formats the whole run for a terminal.
pub fn to_text(run: &Run) -> String {
    let mut out =
        format!("Cairn buffer pool benchmark suite\n{}; seed {}\n{}\n", run.mode, run.seed, run.data);
    for phase in 1..=5 {
        let section = phase_of(run, phase);
        if !section.is_empty() {
            out += &format!("\n{}\n{section}", title(phase));
        }
    }
    out + &notes(run)
}

fn phase_of(run: &Run, phase: u8) -> String {
    let cases = cases(run, phase);
    if cases.is_empty() {
        return String::new();
    }
    if phase == 1 { latencies(run, &cases) } else { throughputs(run, &cases) }
}

/// Returns the cases of a phase, in the order taken.
pub fn cases(run: &Run, phase: u8) -> Vec<&Case> {
    let wanted = format!("phase {phase}");
    let mut cases: Vec<&Case> = Vec::new();
    for measurement in run.measurements.iter().filter(|m| m.case.dataset == wanted) {
        if !cases.contains(&&measurement.case) {
            cases.push(&measurement.case);
        }
    }
    cases
}

fn latencies(run: &Run, cases: &[&Case]) -> String {
    let mut table = Table::new(&[
        ("operation", Align::Left),
        ("contender", Align::Left),
        ("mean", Align::Right),
        ("median", Align::Right),
        ("std dev", Align::Right),
        ("against raw read", Align::Right),
    ]);
    for case in cases {
        let raw = run.verified(crate::stores::raw_reads::FAMILY, case, LATENCY.name);
        for contender in run.measured() {
            let Some(median) = run.verified(&contender.name, case, LATENCY.name) else { continue };
            let shown = |metric: &str| {
                run.verified(&contender.name, case, metric)
                    .map_or_else(String::new, |m| text::value(m.median, &m.unit))
            };
            let against =
                raw.filter(|raw| raw.median > 0.0).map(|raw| text::ratio(median.median / raw.median));
            table.row(vec![
                name_of(case),
                contender.name.clone(),
                shown(MEAN_LATENCY.name),
                shown(LATENCY.name),
                shown(DEVIATION.name),
                against.unwrap_or_default(),
            ]);
        }
    }
    table.to_text()
}

/// Formats Cairn's contenders in one table, and all others in another one below, because a single
/// table would be too wide.
fn throughputs(run: &Run, cases: &[&Case]) -> String {
    let (ours, others): (Vec<&Contender>, Vec<&Contender>) =
        run.measured().into_iter().partition(|contender| contender.ours);
    let sides = [ours, others].map(|side| side_of(run, cases, &side));
    sides.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn side_of(run: &Run, cases: &[&Case], side: &[&Contender]) -> Option<String> {
    let has = |contender: &Contender, case: &Case| cell(run, &contender.name, case).is_some();
    let contenders: Vec<&Contender> =
        side.iter().copied().filter(|contender| cases.iter().any(|case| has(contender, case))).collect();
    let mut headings = vec![("operation", Align::Left)];
    headings.extend(contenders.iter().map(|contender| (contender.name.as_str(), Align::Right)));
    let mut table = Table::new(&headings);
    for case in cases.iter().filter(|case| contenders.iter().any(|contender| has(contender, case))) {
        let mut row = vec![name_of(case)];
        row.extend(
            contenders
                .iter()
                .map(|contender| cell(run, &contender.name, case).unwrap_or_else(|| "–".to_owned())),
        );
        table.row(row);
    }
    (!contenders.is_empty()).then(|| table.to_text())
}

/// Formats a contender's result in a case: `11.8 M/s (23 %)`, `23.4 %`, `171 ms`.
pub fn cell(run: &Run, contender: &str, case: &Case) -> Option<String> {
    let of = |metric: &str| run.verified(contender, case, metric);
    let hits = of(HIT_RATE.name).map(|m| m.median);
    if let Some(m) = of(LATENCY.name).or_else(|| of(RECOVERY.name)) {
        return Some(text::value(m.median, &m.unit));
    }
    match (of(THROUGHPUT.name), hits) {
        (Some(m), Some(hits)) => Some(format!("{} ({hits:.0} %)", text::value(m.median, &m.unit))),
        (Some(m), None) => Some(text::value(m.median, &m.unit)),
        (None, Some(hits)) => Some(format!("{hits:.1} %")),
        (None, None) => None,
    }
}

/// Formats the run as a list for dashboards, with each case once per contender, in nanoseconds per
/// request. Such dashboards require that lower is always better, so hit rates are given as the
/// share of misses.
///
/// The cases of the first contender have the guide's names. Those of the others follow, with the
/// contender in brackets.
pub fn to_json(run: &Run) -> String {
    let first = run.measured().first().map_or("", |contender| contender.name.as_str());
    let mut entries: Vec<Entry> = Vec::new();
    for contender in run.measured() {
        for case in (1..=5).flat_map(|phase| cases(run, phase)) {
            let of = |metric: &str| {
                run.verified(&contender.name, case, metric)
                    .map(|m| m.median)
                    .filter(|value| value.is_finite())
            };
            let nanos = of(LATENCY.name)
                .or_else(|| of(RECOVERY.name))
                .or_else(|| of(THROUGHPUT.name).filter(|rate| *rate > 0.0).map(|rate| 1e9 / rate));
            let (unit, value) = match (nanos, of(HIT_RATE.name)) {
                (Some(nanos), _) => ("ns", nanos),
                (None, Some(hits)) => ("% misses", 100.0 - hits),
                (None, None) => continue,
            };
            let whose =
                if contender.name == first { String::new() } else { format!(" [{}]", contender.name) };
            entries.push(Entry {
                name: name_of(case) + &whose,
                unit: unit.to_owned(),
                value: (value * 100.0).round() / 100.0,
            });
        }
    }
    serde_json::to_string(&entries).unwrap_or_else(|_| "[]".to_owned()) + "\n"
}

/// Notes the cost of the loop over the requests, and the contenders that were left out.
fn notes(run: &Run) -> String {
    let mut out = String::new();
    if let Some(load) = run.probes.iter().find(|probe| probe.name == LOAD_GENERATION) {
        out += &format!(
            "\nThe loop over the requests takes {:.2} ns a request by itself: taken off the hits of phase 1 that are not chained, and off \
             nothing else.\n",
            load.value
        );
    }
    out += "In brackets: requests whose pages were in memory. Medians of rounds.\n";
    out + &run.gaps()
}
