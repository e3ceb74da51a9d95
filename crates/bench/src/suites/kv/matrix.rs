//! Formats a run as a table with one column per store: every value beside those of the rivals,
//! whether or not Cairn takes part.

use crate::core::results::{Case, Measurement, Run};
use crate::core::text::{self, Align, Table};

/// Formats the whole run as one table of medians, with one row for each case and metric.
pub fn to_text(run: &Run) -> String {
    table(run).to_text() + &notes(run)
}

/// Formats the same table in Markdown.
pub fn to_markdown(run: &Run) -> String {
    table(run).to_markdown() + "\n" + &notes(run)
}

fn table(run: &Run) -> Table {
    let names: Vec<&str> = run.measured().into_iter().map(|contender| contender.name.as_str()).collect();
    let mut headings = vec![("mode", Align::Left), ("what", Align::Left), ("metric", Align::Left)];
    headings.extend(names.iter().map(|&name| (name, Align::Right)));
    let mut table = Table::new(&headings);
    let mut seen: Vec<(&Case, &str)> = Vec::new();
    for first in &run.measurements {
        let key = (&first.case, first.metric.as_str());
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        for (metric, shown) in parts(first) {
            let mut row = vec![first.case.dataset.clone(), what(&first.case), metric];
            row.extend(names.iter().map(|name| {
                let found = run
                    .measurements
                    .iter()
                    .find(|m| m.contender == *name && (&m.case, m.metric.as_str()) == key);
                found.filter(|m| m.verified).and_then(&shown).unwrap_or_else(|| "–".to_owned())
            }));
            table.row(row);
        }
    }
    table
}

type Shown = Box<dyn Fn(&Measurement) -> Option<String>>;

/// Returns the rows of a metric: one, or one for each relevant percentile.
fn parts(of: &Measurement) -> Vec<(String, Shown)> {
    if of.percentiles.is_empty() {
        let shown: Shown = Box::new(|m| Some(figure(m.median, &m.unit)));
        return vec![(of.metric.clone(), shown)];
    }
    let part = |name: &'static str| -> (String, Shown) {
        let shown: Shown = Box::new(move |m| m.percentiles.get(name).map(|value| figure(*value, &m.unit)));
        (format!("{} {name}", of.metric), shown)
    };
    ["p50", "p99", "p99.9", "max"].into_iter().map(part).collect()
}

fn figure(value: f64, unit: &str) -> String {
    if unit.is_empty() { format!("{value:.2}") } else { text::value(value, unit) }
}

fn what(case: &Case) -> String {
    let mut words = case.operation.clone();
    if case.distribution != "sequential" {
        words += &format!(", {}", case.distribution);
    }
    if case.threads > 1 {
        words += &format!(", {} threads", case.threads);
    }
    words + &format!(" · {} x {} B", text::count(case.entries), case.value_bytes)
}

/// Notes the cost of load generation, and the stores with weaker durability than requested.
fn notes(run: &Run) -> String {
    let mut notes = String::new();
    for (name, operation) in [(super::baseline::PUT, "put"), (super::baseline::GET, "get")] {
        let Some(cost) = run.probes.iter().find(|probe| probe.name == name) else { continue };
        let fastest = run
            .measurements
            .iter()
            .filter(|m| m.metric == "throughput" && m.case.threads == 1 && m.case.operation == operation)
            .map(|m| m.median)
            .fold(0.0, f64::max);
        if fastest > 0.0 {
            let share = cost.value * fastest / 1e9 * 100.0;
            notes += &format!(
                "Load generation: {:.1} ns a {operation}, {share:.1} % of the fastest; not subtracted.\n",
                cost.value
            );
        }
    }
    for contender in &run.contenders {
        for (name, value) in contender.settings.iter().filter(|(_, value)| value.starts_with("WEAKER")) {
            notes += &format!("{}, {name}: {value}\n", contender.name);
        }
    }
    notes
}
