//! Compares this run with another one: what changed, what did not, and what only one of them
//! measured.

use std::collections::BTreeMap;

use super::forest::{self, Forest, Row, in_words};
use super::format;
use super::html::{escape, list, plural};
use super::matrix::{self, Cell, Standing};
use super::model::{Dim, Model, describe};
use super::svg;
use super::verdict::Topic;
use crate::core::ratio::{Outcome, Pair, Ratio};
use crate::core::results::{Case, Measurement, Run};
use crate::core::{ratio, stats};

/// Number of rows in the chart of the largest changes.
const CHART_ROWS: usize = 16;

/// One contender and metric in one case, measured in both runs.
struct Change<'a> {
    pair: Pair<'a>,
    ratio: Ratio,
}

/// Returns the section that compares the run of `model` with an `earlier` one. Ratios above one
/// mean that this run is better.
pub(super) fn section(model: &Model<'_>, earlier: &Run) -> String {
    let changes = changes(model.run, earlier);
    let level = stats::LEVEL;
    let mut out = format!(
        "<section id=\"comparison\"><h2>Against an earlier run</h2><p class=\"lead\">This run ({}) against the one of {} \
         (mode {}, seed {}). Above 1×, this run is better; ▼ marks a figure that got worse, <b>~</b> one that did not change \
         significantly at {level}.</p>",
        escape(&format::moment(&model.run.started)),
        escape(&format::moment(&earlier.started)),
        escape(&earlier.mode),
        earlier.seed
    );
    out += &differences(model.run, earlier);
    if changes.is_empty() {
        return out + "<p class=\"nothing\">The two runs have no measurement in common.</p></section>";
    }
    let grid = Grid::new(model, &changes);
    out += &grid.chart(model);
    out += &grid.table(model);
    out += &table(model, &changes);
    out + &unmatched(model.run, earlier) + "</section>"
}

type Key<'a> = (&'a str, &'a str, &'a Case);

fn key_of(m: &Measurement) -> Key<'_> {
    (&m.contender, &m.metric, &m.case)
}

fn changes<'a>(run: &'a Run, earlier: &'a Run) -> Vec<Change<'a>> {
    let before: BTreeMap<Key<'_>, &Measurement> =
        earlier.measurements.iter().map(|m| (key_of(m), m)).collect();
    let mut out: Vec<Change<'a>> = run
        .measurements
        .iter()
        .filter_map(|m| {
            let pair = Pair { subject: m, against: before.get(&key_of(m))? };
            ratio::across(pair).map(|ratio| Change { pair, ratio })
        })
        .collect();
    let size = |change: &Change<'_>| change.ratio.point.ln().abs();
    out.sort_by(|a, b| {
        let unclear = |change: &Change<'_>| !change.ratio.outcome().is_clear();
        unclear(a).cmp(&unclear(b)).then_with(|| size(b).total_cmp(&size(a)))
    });
    out
}

/// Lists the conditions that differ between the two runs. With different conditions, the comparison
/// covers more than the code.
fn differences(run: &Run, earlier: &Run) -> String {
    let before: BTreeMap<&str, &str> =
        earlier.machine.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let mut notes: Vec<String> = Vec::new();
    for (name, value) in &run.machine {
        match before.get(name.as_str()) {
            Some(other) if other != value => {
                notes.push(format!("<b>{}</b>: {}, before {}", escape(name), escape(value), escape(other)));
            }
            _ => {}
        }
    }
    for (name, now, then) in [("data", &run.data, &earlier.data), ("mode", &run.mode, &earlier.mode)] {
        if now != then {
            notes.push(format!("<b>{name}</b>: {}, before {}", escape(now), escape(then)));
        }
    }
    if run.seed != earlier.seed {
        notes.push(format!("<b>seed</b>: {}, before {}", run.seed, earlier.seed));
    }
    if notes.is_empty() {
        return String::new();
    }
    let items: String = notes.iter().map(|note| format!("<li>{note}</li>")).collect();
    format!("<div class=\"trust\"><h3>Different between the runs</h3><ul>{items}</ul></div>")
}

/// The cases of one contender and topic.
type Cases<'a> = Vec<(Pair<'a>, Ratio)>;

/// Every contender and topic over all cases, with contenders in the order of their families.
struct Grid<'a> {
    topics: Vec<Topic>,
    rows: Vec<(&'a str, BTreeMap<usize, Cell<'a>>)>,
}

impl<'a> Grid<'a> {
    fn new(model: &Model<'_>, changes: &[Change<'a>]) -> Self {
        let mut topics: Vec<Topic> = Vec::new();
        for topic in changes.iter().map(|change| Topic::of(change.pair.subject)) {
            if !topics.contains(&topic) {
                topics.push(topic);
            }
        }
        topics.sort_by_key(Topic::rank);
        let mut groups: BTreeMap<(usize, &'a str), BTreeMap<usize, Cases<'a>>> = BTreeMap::new();
        for change in changes {
            let contender = change.pair.subject.contender.as_str();
            let row = groups.entry((model.style(contender).family, contender)).or_default();
            if let Some(place) = topics.iter().position(|topic| *topic == Topic::of(change.pair.subject)) {
                row.entry(place).or_default().push((change.pair, change.ratio));
            }
        }
        let sum_up = |(place, cases)| Some((place, Cell::new(cases)?));
        let rows =
            groups.into_iter().map(|((_, name), row)| (name, row.into_iter().filter_map(sum_up).collect()));
        Grid { rows: rows.collect(), topics }
    }

    fn table(&self, model: &Model<'_>) -> String {
        let columns: Vec<String> = self.topics.iter().map(|topic| topic.label.clone()).collect();
        let mut rows: Vec<(String, Vec<Option<&Cell<'_>>>)> = Vec::new();
        for (contender, row) in &self.rows {
            let name = format!("{}{}", svg::key(model.style(contender)), escape(contender));
            rows.push((name, (0..columns.len()).map(|place| row.get(&place)).collect()));
        }
        format!(
            "<h3>Over all cases <small>geometric mean of the changes; small figures count the cases</small></h3>{}",
            matrix::table("Change of each contender over all cases", "Contender", &columns, &rows)
        )
    }

    /// Returns the largest of the significant changes as a forest plot.
    fn chart(&self, model: &Model<'_>) -> String {
        let mut rows: Vec<Row> = Vec::new();
        for (contender, row) in &self.rows {
            for (place, cell) in row {
                let label = self.topics.get(*place).map_or("", |topic| topic.label.as_str());
                if matches!(cell.standing(), Standing::Clear(Outcome::Better | Outcome::Worse)) {
                    rows.push(Row {
                        label: format!("{contender} · {}", label.to_lowercase()),
                        style: model.style(contender),
                        ratio: cell.ratio(),
                        detail: format!("over {}", plural(cell.counted(), "case")),
                    });
                }
            }
        }
        if rows.is_empty() {
            return "<p class=\"lead\">Nothing changed significantly.</p>".to_owned();
        }
        rows.sort_by(|a, b| b.ratio.point.ln().abs().total_cmp(&a.ratio.point.ln().abs()));
        rows.truncate(CHART_ROWS);
        let sides = ("worse now", "better now");
        Forest { id: "comparison-forest", title: "Largest clear changes", sides, rows }.render()
    }
}

fn table(model: &Model<'_>, changes: &[Change<'_>]) -> String {
    let dims = Dim::ALL.get(1..).unwrap_or_default();
    let row = |change: &Change<'_>| {
        let (now, then) = (change.pair.subject, change.pair.against);
        let outcome = change.ratio.outcome();
        format!(
            "<tr><th scope=\"row\">{}{}</th><td>{} {}</td><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td>\
             <td class=\"num {}\">{} {}</td></tr>",
            svg::key(model.style(&now.contender)),
            escape(&now.contender),
            escape(&now.case.operation),
            escape(&now.metric),
            escape(&describe(&now.case, dims)),
            escape(&format::quantity(then.median, &then.unit)),
            escape(&format::quantity(now.median, &now.unit)),
            forest::tone(outcome),
            forest::sign(change.ratio),
            escape(&in_words(change.ratio))
        )
    };
    let rows: String = changes.iter().map(row).collect();
    format!(
        "<details class=\"figures\"><summary>All {} in both runs, significant changes first</summary>\
         <div class=\"scroll tall\" tabindex=\"0\"><table class=\"big\"><thead><tr><th scope=\"col\">Contender</th>\
         <th scope=\"col\">Metric</th><th scope=\"col\">Case</th><th scope=\"col\">Before</th><th scope=\"col\">Now</th>\
         <th scope=\"col\">Change</th></tr></thead><tbody>{rows}</tbody></table></div></details>",
        plural(changes.len(), "measurement")
    )
}

/// Lists the measurements that only one run has, by contender. A comparison that hides its gaps
/// flatters.
fn unmatched(run: &Run, earlier: &Run) -> String {
    let only = |one: &Run, other: &Run| {
        let known: std::collections::BTreeSet<Key<'_>> = other.measurements.iter().map(key_of).collect();
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        for m in one.measurements.iter().filter(|m| !known.contains(&key_of(m))) {
            *names.entry(escape(&m.contender)).or_default() += 1;
        }
        names.into_iter().map(|(name, count)| format!("{name} ({count})")).collect::<Vec<String>>()
    };
    let (now, then) = (only(run, earlier), only(earlier, run));
    let mut out = String::new();
    if !now.is_empty() {
        out += &format!("<p class=\"note\">Only in this run: {}.</p>", list(&now));
    }
    if !then.is_empty() {
        out += &format!("<p class=\"note\">Only in the earlier run: {}.</p>", list(&then));
    }
    out
}
