//! The page of a history: values over runs, with one chart for each case and metric.

use std::collections::BTreeMap;

use super::format;
use super::html::{escape, plural};
use super::lines::{LineChart, Point, Series as Line, some_stops};
use super::model::Style;
use super::shell::Shell;
use super::table;
use crate::history::{Series, told_apart};

/// Maximum number of charts on a page; more would give no overview.
const CHARTS_MAX: usize = 200;

/// Returns the whole document.
pub(super) fn document(series: &[Series]) -> String {
    let mut charts: BTreeMap<(String, String), Vec<(String, &Series)>> = BTreeMap::new();
    for (one, told) in series.iter().zip(told_apart(series)).filter(|(one, _)| !one.points.is_empty()) {
        let (case, contender, metric) = parts(&one.name);
        let label = if told.is_empty() { contender.to_owned() } else { format!("{contender} ({told})") };
        charts.entry((case.to_owned(), metric.to_owned())).or_default().push((label, one));
    }
    let (mut links, mut main) = (String::new(), String::new());
    for (at, ((case, metric), lines)) in charts.iter().take(CHARTS_MAX).enumerate() {
        let title = format!("{case}: {metric}");
        links += &format!("<a href=\"#h{at}\">{}</a>", escape(&format::shorten(&title, 30)));
        main += &format!(
            "<section class=\"figure\" id=\"h{at}\"><h2>{}</h2>{}</section>",
            escape(&title),
            chart(at, &title, lines)
        );
    }
    if charts.len() > CHARTS_MAX {
        let left_out = plural(charts.len() - CHARTS_MAX, "chart");
        main += &format!("<p class=\"lead\">{left_out} more are not shown: select fewer series.</p>");
    }
    if charts.is_empty() {
        main += "<p class=\"nothing\">No values.</p>";
    }
    let header = format!(
        "<header><p class=\"mark\">Cairn lab</p><h1>Figures over time</h1><p class=\"data\">{}, one point per run.</p></header>",
        plural(series.len(), "figure")
    );
    let json = serde_json::to_string(series).unwrap_or_else(|_| "[]".to_owned());
    let foot = "Made by the Cairn lab from its history.";
    Shell { title: "Figures over time", header: &header, links: &links, main: &main, foot, json: &json }
        .render()
}

/// Splits the name of a series into case, contender and metric.
fn parts(name: &str) -> (&str, &str, &str) {
    let (rest, metric) = name.rsplit_once(": ").unwrap_or((name, ""));
    let (case, contender) = rest.rsplit_once('/').unwrap_or((rest, ""));
    (case, contender, metric)
}

fn chart(at: usize, title: &str, lines: &[(String, &Series)]) -> String {
    let mut starts: Vec<&str> = lines
        .iter()
        .flat_map(|(_, series)| series.points.iter().map(|point| point.started.as_str()))
        .collect();
    starts.sort_unstable();
    starts.dedup();
    let last = starts.len().saturating_sub(1).max(1) as f64;
    let places: Vec<f64> =
        (0..starts.len()).map(|at| if starts.len() == 1 { 0.5 } else { at as f64 / last }).collect();
    let label = |at: usize| starts.get(at).map_or_else(String::new, |start| start.chars().take(10).collect());
    let point = |point: &crate::history::SeriesPoint| Point {
        stop: starts.iter().position(|start| *start == point.started).unwrap_or(0),
        y: point.value,
        interval: Some((point.low, point.high)),
    };
    let line = |(number, (contender, series)): (usize, &(String, &Series))| Line {
        label: contender.clone(),
        short: format::shorten(contender, super::lines::DIRECT_CHARS),
        style: Style::line(number),
        points: series.points.iter().map(point).collect(),
    };
    let first = lines.iter().find_map(|(_, series)| series.points.first());
    let (unit, up) = first.map_or(("", true), |point| (point.unit.as_str(), point.higher_is_better));
    let rows: Vec<Vec<String>> = lines
        .iter()
        .flat_map(|(contender, series)| {
            series.points.iter().map(|point| {
                let commit: String = point.commit.chars().take(12).collect();
                let value = format::quantity(point.value, &point.unit);
                let interval = format::interval(point.low, point.high, &point.unit);
                [contender.as_str(), point.started.as_str(), &value, &interval, &commit, &point.machine]
                    .map(escape)
                    .to_vec()
            })
        })
        .collect();
    let headers = ["Contender", "Run", "Median", "Interval", "Commit", "Machine"].map(str::to_owned);
    let chart = LineChart {
        id: format!("h{at}-chart"),
        title,
        sense: if up { "higher is better" } else { "lower is better" },
        x_title: "runs",
        stops: some_stops(&places, label),
        unit,
        series: lines.iter().enumerate().map(line).collect(),
        marks: Vec::new(),
    };
    chart.render() + &table::folded(&headers, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::SeriesPoint;
    use crate::report::markup;

    /// Goal: the page is well-formed, has one chart per case and metric, and escapes names. Method:
    /// the strict markup reader on a page of some series and on a page of none.
    #[test]
    fn pages_are_sound() {
        let point = |day: u32, value: f64| SeriesPoint {
            started: format!("2026-01-{day:02}T00:00:00Z"),
            value,
            low: value * 0.9,
            high: value * 1.1,
            machine: "<m>".to_owned(),
            settings: String::new(),
            commit: "abc".to_owned(),
            unit: "ops/s".to_owned(),
            higher_is_better: true,
        };
        let series = |name: &str, count: u32| Series {
            name: name.to_owned(),
            machine: "<m>".to_owned(),
            settings: String::new(),
            points: (1..=count).map(|day| point(day, f64::from(day))).collect(),
        };
        let all = [
            Series { machine: "<other>".to_owned(), ..series("kv::get/x=1/cairn: throughput", 2) },
            series("kv::get/x=1/cairn: throughput", 12),
            series("kv::get/x=1/<b>: throughput", 1),
            series("kv::get/x=1/cairn: time", 3),
        ];
        let page = markup::parse(&document(&all));
        let charts = page.tags.iter().filter(|tag| tag.name == "svg" && tag.get("role").is_some()).count();
        assert_eq!(charts, 2);
        for words in ["kv::get/x=1: throughput", "cairn (<m>)", "cairn (<other>)"] {
            assert!(page.text.contains(words), "{words}: {}", page.text);
        }
        assert!(markup::parse(&document(&[])).text.contains("No values."));
    }
}
