//! Formats a run for a terminal: a table for each data set, and a comparison of our two access ways
//! with the best of PostgreSQL's btrees.

use crate::core::ratio::Pair;
use crate::core::results::{Case, Contender, Measurement, Run};
use crate::core::text::{Align, Table};
use crate::core::{ratio, text};

/// Formats the whole run.
pub fn to_text(run: &Run) -> String {
    let mut out = format!("Cairn index benchmark suite\n{}; seed {}\n", run.mode, run.seed);
    let mut titles: Vec<&str> = Vec::new();
    for measurement in &run.measurements {
        if !titles.contains(&measurement.case.dataset.as_str()) {
            titles.push(&measurement.case.dataset);
        }
    }
    for title in titles {
        let rows = run.measurements.iter().find(|m| m.case.dataset == title).map_or(0, |m| m.case.entries);
        out += &format!(
            "\n{}, {} rows\n{}",
            title.trim_start_matches("index: "),
            text::count(rows),
            section(run, title)
        );
    }
    out += "\nMedians of rounds. Against the best btree, over 1 favours Cairn; ~ marks a difference that cannot be told from noise.\n";
    out + &run.gaps()
}

/// Formats the measurements of a set, one row per case and metric.
fn section(run: &Run, title: &str) -> String {
    let has = |contender: &&Contender| {
        run.measurements.iter().any(|m| m.contender == contender.name && m.case.dataset == title)
    };
    let contenders: Vec<&Contender> = run.contenders.iter().filter(has).collect();
    let ours: Vec<&&Contender> = contenders.iter().filter(|contender| contender.ours).collect();
    let mut headings = vec![("what".to_owned(), Align::Left), ("metric".to_owned(), Align::Left)];
    headings.extend(contenders.iter().map(|contender| (contender.name.clone(), Align::Right)));
    headings
        .extend(ours.iter().map(|contender| (format!("{}: against btree", contender.name), Align::Right)));
    let borrowed: Vec<(&str, Align)> = headings.iter().map(|(name, align)| (name.as_str(), *align)).collect();
    let mut table = Table::new(&borrowed);
    let mut seen: Vec<(&Case, &str)> = Vec::new();
    for m in run.measurements.iter().filter(|m| m.case.dataset == title) {
        let key = (&m.case, m.metric.as_str());
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let state = if m.case.distribution == "cold" { ", cold" } else { "" };
        let mut row = vec![m.case.operation.clone() + state, m.metric.clone()];
        let find = |name: &str| run.verified(name, &m.case, &m.metric);
        let shown = |found: Option<&Measurement>| {
            found.map_or_else(|| "–".to_owned(), |m| text::value(m.median, &m.unit))
        };
        row.extend(contenders.iter().map(|contender| shown(find(&contender.name))));
        row.extend(ours.iter().map(|contender| {
            let ratio = find(&contender.name)
                .zip(best_btree(run, m))
                .and_then(|(subject, against)| ratio::within(Pair { subject, against }));
            ratio.map_or_else(
                || "–".to_owned(),
                |ratio| {
                    let mark = if ratio.outcome() == ratio::Outcome::Unclear { "~ " } else { "" };
                    format!("{mark}{}", text::ratio(ratio.point))
                },
            )
        }));
        table.row(row);
    }
    table.to_text()
}

/// Returns the btree form that does best in a case: the smallest or the fastest.
fn best_btree<'r>(run: &'r Run, of: &Measurement) -> Option<&'r Measurement> {
    let is_btree = |name: &str| {
        run.contenders.iter().any(|contender| contender.name == name && contender.family == "btree")
    };
    let fits =
        |m: &&Measurement| m.verified && m.case == of.case && m.metric == of.metric && is_btree(&m.contender);
    run.measurements.iter().filter(fits).min_by(|a, b| a.median.total_cmp(&b.median))
}
