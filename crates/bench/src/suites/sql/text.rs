//! Formats a run for a terminal and for a dashboard: one table per group, one column per contender.

use super::plan::{Group, name_of};
use super::versus;
use crate::core::dashboard::Entry;
use crate::core::recorder::{LATENCY, THROUGHPUT, TIME};
use crate::core::results::{Case, Contender, Measurement, Run};
use crate::core::text::{self, Align, Table};

/// Formats the whole run for a terminal.
pub fn to_text(run: &Run) -> String {
    let mut out = format!("Cairn SQL benchmark suite\n{}; seed {}\n{}\n", run.mode, run.seed, run.data);
    for title in titles(run) {
        out += &format!("\n{title}\n{}", section(run, title));
    }
    out + &versus::to_text(run) + &notes(run)
}

/// Returns the groups that have measurements: the suite's own first, in their order.
fn titles(run: &Run) -> Vec<&str> {
    let mut titles: Vec<&str> = Group::ALL.iter().map(|group| group.title()).collect();
    titles.retain(|title| run.measurements.iter().any(|m| m.case.dataset == *title));
    for measurement in &run.measurements {
        if !titles.contains(&measurement.case.dataset.as_str()) {
            titles.push(&measurement.case.dataset);
        }
    }
    titles
}

/// Returns the cases of a group with their metrics, in the order taken. Mean latencies are omitted,
/// because the percentiles are shown.
fn rows<'r>(run: &'r Run, title: &str) -> Vec<(&'r Case, &'r str)> {
    let mut rows: Vec<(&Case, &str)> = Vec::new();
    for m in run.measurements.iter().filter(|m| m.case.dataset == title) {
        let row = (&m.case, m.metric.as_str());
        if !rows.contains(&row) && m.metric != "mean latency" {
            rows.push(row);
        }
    }
    rows
}

fn section(run: &Run, title: &str) -> String {
    let contenders = run.measured();
    let mut headings = vec![("operation", Align::Left), ("metric", Align::Left)];
    headings.extend(contenders.iter().map(|contender| (contender.name.as_str(), Align::Right)));
    let mut table = Table::new(&headings);
    for (case, metric) in rows(run, title) {
        let p99 = find_any(run, case, metric).is_some_and(|m| m.percentiles.contains_key("p99"));
        let shown = if p99 { "latency p50 / p99".to_owned() } else { metric.to_owned() };
        let cell = |contender: &&Contender| {
            let found = run.verified(&contender.name, case, metric);
            found.map_or_else(
                || "–".to_owned(),
                |m| match m.percentiles.get("p99") {
                    Some(p99) => {
                        format!("{} / {}", text::value(m.median, &m.unit), text::value(*p99, &m.unit))
                    }
                    None => text::value(m.median, &m.unit),
                },
            )
        };
        let mut row = vec![name_of(case), shown];
        row.extend(contenders.iter().map(cell));
        table.row(row);
    }
    table.to_text()
}

fn find_any<'r>(run: &'r Run, case: &Case, metric: &str) -> Option<&'r Measurement> {
    run.measurements.iter().find(|m| m.metric == metric && m.case == *case)
}

/// Formats the run as a list for dashboards, with each case once per contender, in nanoseconds per
/// operation. Such dashboards require that lower is always better.
///
/// The cases of the first contender have the guide's names. Those of the others follow, with the
/// contender in brackets.
pub fn to_json(run: &Run) -> String {
    let first = run.measured().first().map_or("", |contender| contender.name.as_str());
    let mut entries: Vec<Entry> = Vec::new();
    for contender in run.measured() {
        let mut seen: Vec<&Case> = Vec::new();
        for case in run.measurements.iter().map(|m| &m.case) {
            if seen.contains(&case) {
                continue;
            }
            seen.push(case);
            let of = |metric: &str| {
                run.verified(&contender.name, case, metric).map(|m| m.median).filter(|value| *value > 0.0)
            };
            // A rate is that of all threads together, like the guide's times of several workers.
            let nanos = of(THROUGHPUT.name)
                .map(|rate| 1e9 / rate)
                .or_else(|| of(TIME.name).map(|seconds| seconds * 1e9))
                .or_else(|| of(LATENCY.name));
            let Some(value) = nanos.filter(|value| value.is_finite()) else { continue };
            let whose =
                if contender.name == first { String::new() } else { format!(" [{}]", contender.name) };
            entries.push(Entry {
                name: name_of(case) + &whose,
                unit: "ns".to_owned(),
                value: (value * 100.0).round() / 100.0,
            });
        }
    }
    serde_json::to_string(&entries).unwrap_or_else(|_| "[]".to_owned()) + "\n"
}

fn notes(run: &Run) -> String {
    "\nMedians of rounds. Throughput is that of all client threads together.\n".to_owned() + &run.gaps()
}
