//! The figures about lookups: throughput, how it scales with threads and entries, and latency.

use super::bars::{Bar, BarChart, interval_of};
use super::figure::{self, Figure, Variant};
use super::format;
use super::html::{escape, list, plural};
use super::lines::{DIRECT_CHARS, LineChart, Point, Series, Stop, even_stops, log_stops};
use super::model::{self, Area, Dim, Model, Style, Value, is_batched};
use super::table;
use crate::core::results::Measurement;

/// A chart with more rows than this initially shows only the leaders of each family.
const MOST_ROWS: usize = 18;
const LEADERS: usize = 3;

/// The dimensions of the headline. Operation is not one of them, so that batched and single lookups
/// of a case stand side by side in one chart.
const HEADLINE_DIMS: [Dim; 7] = [
    Dim::Dataset,
    Dim::Entries,
    Dim::ValueBytes,
    Dim::Compression,
    Dim::Keys,
    Dim::Distribution,
    Dim::Threads,
];

/// Throughput of point lookups: the first figure of the page.
pub(super) fn headline<'a>(model: &Model<'a>) -> Figure<'static> {
    let dims = HEADLINE_DIMS.to_vec();
    let mut variants = Vec::new();
    for (index, (key, slice)) in figure::slices(throughputs(model), &dims).into_iter().enumerate() {
        let chart = |id: String, rows: &[&'a Measurement]| {
            let bar = |m: &&'a Measurement| Bar {
                label: lookup_label(m),
                style: model.style(&m.contender),
                measurement: m,
                part: None,
            };
            let title = "Point lookups a second, all threads together".to_owned();
            BarChart { id, title, per: "lookup", bars: rows.iter().map(bar).collect() }.render()
        };
        let (shown, rest) = leaders(model, &slice);
        let mut body = chart(format!("lookups-{index}"), &shown);
        if !rest.is_empty() {
            body += &format!(
                "<details class=\"figures\"><summary>{} of the same families, slower than these</summary>{}</details>",
                plural(rest.len(), "more row"),
                chart(format!("lookups-rest-{index}"), &rest)
            );
        }
        let rows: Vec<(String, &Measurement)> = slice.iter().map(|m| (lookup_label(m), *m)).collect();
        body += &table::folded_bars(&rows);
        body += &absent(model, &slice);
        variants.push(Variant::new(model, &dims, key, &slice, body));
    }
    Figure {
        id: "lookups",
        title: "Point lookups",
        lead: "Bars are medians, whiskers their intervals, dots the samples in the order they were taken, from top to \
               bottom. Cairn’s own contenders are bold and coloured."
            .to_owned(),
        dims,
        variants,
    }
}

/// Throughput over threads, in total and per thread.
pub(super) fn over_threads(model: &Model<'_>) -> Figure<'static> {
    let dims = without(Dim::Threads);
    let mut variants = Vec::new();
    for (index, (key, slice)) in figure::slices(throughputs(model), &dims).into_iter().enumerate() {
        let threads: Vec<u64> = slice.iter().map(|m| u64::from(m.case.threads)).collect();
        let stops = log_stops(&threads, |value| value.to_string());
        if stops.len() < 2 {
            continue;
        }
        let stop_of = |m: &Measurement| stop_index(&stops, &m.case.threads.to_string());
        let total = champions(model, &slice, &stop_of, &|_| 1.0);
        let each = champions(model, &slice, &stop_of, &|m| f64::from(m.case.threads.max(1)));
        let marks = core_mark(model, &stops);
        let chart = |id: String, title: &'static str, series: Vec<Series>| {
            LineChart {
                id,
                title,
                sense: "higher is better",
                x_title: "threads",
                stops: stops.clone(),
                unit: "ops/s",
                series,
                marks: marks.clone(),
            }
            .render()
        };
        let table = series_table("Contender", &stops, &total, "ops/s");
        let body = chart(format!("threads-{index}"), "All threads together", total)
            + &chart(format!("threads-each-{index}"), "On each thread", each)
            + &table;
        variants.push(Variant::new(model, &dims, key, &slice, body));
    }
    Figure {
        id: "threads",
        title: "Scaling over threads",
        lead: "For each family, the contender that is fastest over the threads shown. Beyond the number of cores, a constant \
               total is the best possible result; the figure on each thread then falls accordingly."
            .to_owned(),
        dims,
        variants,
    }
}

/// Throughput over the number of entries.
pub(super) fn over_entries(model: &Model<'_>) -> Figure<'static> {
    let dims = without(Dim::Entries);
    let mut variants = Vec::new();
    for (index, (key, slice)) in figure::slices(throughputs(model), &dims).into_iter().enumerate() {
        let entries: Vec<u64> = slice.iter().map(|m| m.case.entries).collect();
        let stops = log_stops(&entries, format::count);
        if stops.len() < 2 {
            continue;
        }
        let stop_of = |m: &Measurement| stop_index(&stops, &format::count(m.case.entries));
        let series = champions(model, &slice, &stop_of, &|_| 1.0);
        let table = series_table("Contender", &stops, &series, "ops/s");
        let chart = LineChart {
            id: format!("entries-{index}"),
            title: "Lookups a second by size of the store",
            sense: "higher is better",
            x_title: "entries, log scale",
            stops,
            unit: "ops/s",
            series,
            marks: Vec::new(),
        };
        let body = chart.render() + &table;
        variants.push(Variant::new(model, &dims, key, &slice, body));
    }
    Figure {
        id: "entries",
        title: "Scaling over entries",
        lead: "For each family, the contender that is fastest over the sizes shown. A curve falls steeply where a store \
               outgrows the caches and waits for memory more often."
            .to_owned(),
        dims,
        variants,
    }
}

/// Latency percentiles, where they were measured.
pub(super) fn latency(model: &Model<'_>) -> Figure<'static> {
    let dims = Dim::ALL.to_vec();
    let measured = model.run.measurements.iter().filter(|m| !m.percentiles.is_empty());
    let mut variants = Vec::new();
    for (index, (key, slice)) in figure::slices(measured, &dims).into_iter().enumerate() {
        let mut names: Vec<&String> = slice.iter().flat_map(|m| m.percentiles.keys()).collect();
        names.sort_by(|a, b| rank(a).total_cmp(&rank(b)).then_with(|| a.cmp(b)));
        names.dedup();
        let labels: Vec<String> = names.into_iter().cloned().collect();
        let stops = even_stops(&labels);
        let series = tails(model, &slice, &labels);
        let table = series_table("Contender", &stops, &series, "ns");
        let chart = LineChart {
            id: format!("latency-{index}"),
            title: "Latency by percentile",
            sense: "lower is better",
            x_title: "percentile",
            stops,
            unit: "ns",
            series,
            marks: Vec::new(),
        };
        let body = chart.render() + &table;
        variants.push(Variant::new(model, &dims, key, &slice, body));
    }
    Figure {
        id: "latency",
        title: "Latency",
        lead: "Over all repetitions, from the median to the single slowest operation; for each family, the contender \
               with the lowest median. Timing each operation separately has a cost, so these figures are a little higher \
               than the throughput suggests."
            .to_owned(),
        dims,
        variants,
    }
}

fn throughputs<'a>(model: &Model<'a>) -> impl Iterator<Item = &'a Measurement> + use<'a> {
    model.in_area(Area::Lookup).filter(|m| m.metric == "throughput")
}

fn without(dim: Dim) -> Vec<Dim> {
    Dim::ALL.into_iter().filter(|other| *other != dim).collect()
}

/// Splits a slice into the rows to show at once and the rows to fold away. In a family with many
/// contenders only the best few lead. Both parts keep the given order.
pub(super) fn leaders<'m>(
    model: &Model<'_>,
    slice: &[&'m Measurement],
) -> (Vec<&'m Measurement>, Vec<&'m Measurement>) {
    if slice.len() <= MOST_ROWS {
        return (slice.to_vec(), Vec::new());
    }
    let leads = |m: &&&'m Measurement| {
        let rivals = slice.iter().filter(|other| {
            let related = model.style(&other.contender) == model.style(&m.contender);
            related && other.case.operation == m.case.operation && !std::ptr::eq(**other, **m)
        });
        let ahead = rivals.filter(|other| std::ptr::eq(model::better(m, other), **other)).count();
        ahead < LEADERS
    };
    slice.iter().copied().partition(|m| leads(&m))
}

/// Returns the contender's name, with the operation unless it is a single lookup.
pub(super) fn lookup_label(m: &Measurement) -> String {
    if is_batched(&m.case.operation) {
        format!("{} · {}", m.contender, m.case.operation)
    } else {
        m.contender.clone()
    }
}

/// Names the contenders that were measured elsewhere but not in this case, so that nobody mistakes
/// their absence for an oversight.
pub(super) fn absent(model: &Model<'_>, slice: &[&Measurement]) -> String {
    let names: Vec<String> = model.missing_from(slice).into_iter().map(escape).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("<p class=\"note\">Not measured in this case: {}.</p>", list(&names))
    }
}

pub(super) fn stop_index(stops: &[Stop], label: &str) -> Option<usize> {
    stops.iter().position(|stop| stop.label == label)
}

/// Returns one line per family: the one with the most points and, among those, the best geometric
/// mean.
pub(super) fn champions(
    model: &Model<'_>,
    slice: &[&Measurement],
    stop_of: &dyn Fn(&Measurement) -> Option<usize>,
    divisor: &dyn Fn(&Measurement) -> f64,
) -> Vec<Series> {
    let mut lines: Vec<(Style, Series, f64)> = Vec::new();
    for m in slice.iter().filter(|m| m.median.is_finite() && m.median > 0.0) {
        let Some(stop) = stop_of(m) else { continue };
        let by = divisor(m);
        let interval = interval_of(m).map(|_| (m.low / by, m.high / by));
        let point = Point { stop, y: m.median / by, interval };
        let gain = if m.higher_is_better { m.median.ln() } else { -m.median.ln() };
        if let Some((_, line, sum)) = lines.iter_mut().find(|(_, line, _)| line.label == m.contender) {
            line.points.push(point);
            *sum += gain;
        } else {
            let style = model.style(&m.contender);
            lines.push((style, line_of(model, m, vec![point]), gain));
        }
    }
    let mut out: Vec<(Series, f64)> = Vec::new();
    for (style, mut line, sum) in lines {
        line.points.sort_by_key(|point| point.stop);
        let mean = sum / line.points.len() as f64;
        match out.iter_mut().find(|(other, _)| other.style == style) {
            Some(best) if (line.points.len(), mean) > (best.0.points.len(), best.1) => *best = (line, mean),
            Some(_) => {}
            None => out.push((line, mean)),
        }
    }
    out.into_iter().map(|(line, _)| line).collect()
}

fn line_of(model: &Model<'_>, m: &Measurement, points: Vec<Point>) -> Series {
    let short = model.short_name(&m.contender, DIRECT_CHARS);
    Series { label: m.contender.clone(), short, style: model.style(&m.contender), points }
}

/// Returns one line per family: that of the contender with the lowest value at the first
/// percentile.
fn tails(model: &Model<'_>, slice: &[&Measurement], labels: &[String]) -> Vec<Series> {
    let mut out: Vec<Series> = Vec::new();
    for m in slice {
        let points: Vec<Point> = labels
            .iter()
            .enumerate()
            .filter_map(|(stop, label)| {
                m.percentiles.get(label).map(|y| Point { stop, y: *y, interval: None })
            })
            .filter(|point| point.y.is_finite())
            .collect();
        let line = line_of(model, m, points);
        let first = |line: &Series| line.points.first().map_or(f64::INFINITY, |point| point.y);
        match out.iter_mut().find(|other| other.style == line.style) {
            Some(best) if first(&line) < first(best) => *best = line,
            Some(_) => {}
            None => out.push(line),
        }
    }
    out
}

/// Returns the sort key of a percentile's name: `min` first, `p50` before `p99.9`, `max` last.
fn rank(name: &str) -> f64 {
    match name {
        "min" => -1.0,
        "max" => 101.0,
        other => other.trim_start_matches('p').parse().unwrap_or(100.5),
    }
}

/// Returns a mark at the number of cores, if the machine reports it and it is a stop of the axis.
pub(super) fn core_mark(model: &Model<'_>, stops: &[Stop]) -> Vec<(f64, String)> {
    let named = |name: &str| matches!(name, "cores" | "cpus" | "logical cores");
    let field = model.run.machine.iter().find(|(name, _)| named(name)).map(|(_, value)| value.as_str());
    let digits = field.map(|value| value.chars().take_while(char::is_ascii_digit).collect::<String>());
    let Some(cores) = digits.filter(|digits| !digits.is_empty() && digits != "1") else { return Vec::new() };
    let place = stops.iter().find(|stop| stop.label == cores).map(|stop| stop.place);
    place.map(|place| (place, format!("{cores} cores"))).into_iter().collect()
}

pub(super) fn series_table(corner: &str, stops: &[Stop], series: &[Series], unit: &str) -> String {
    let mut headers = vec![corner.to_owned()];
    headers.extend(stops.iter().map(|stop| stop.label.clone()));
    let row = |line: &Series| {
        let cell = |stop: usize| {
            let point = line.points.iter().find(|point| point.stop == stop);
            escape(&point.map_or_else(|| format::NONE.to_owned(), |point| format::quantity(point.y, unit)))
        };
        std::iter::once(escape(&line.label)).chain((0..stops.len()).map(cell)).collect()
    };
    table::folded(&headers, &series.iter().map(row).collect::<Vec<Vec<String>>>())
}

/// Returns the key of the headline's first choice, which the verdict describes too.
pub(super) fn plainest(figure: &Figure<'_>) -> Option<Vec<(Dim, Value)>> {
    figure.first().map(|variant| figure.dims.iter().copied().zip(variant.key.iter().cloned()).collect())
}
