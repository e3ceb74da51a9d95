//! The figures about the costs that precede lookups (building, space, opening, first reads), and
//! about all other measurements.

use super::bars::{Bar, BarChart};
use super::figure::{self, Figure, Slices, Variant};
use super::format;
use super::html::escape;
use super::lookups::{absent, leaders};
use super::model::{Area, Dim, Model, Value, area, is_batched};
use super::scatter::{Axis, Dot, Scatter};
use super::table;
use crate::core::results::Measurement;
use crate::core::sizes::{BYTES_PER_ENTRY, size_of_store};
use crate::suites::kv;

/// The dimensions that describe a store, independently of how it is read.
const STORE_DIMS: [Dim; 4] = [Dim::Dataset, Dim::Entries, Dim::ValueBytes, Dim::Compression];

/// Build time, peak memory and every other measurement of a build.
pub(super) fn build(model: &Model<'_>) -> Figure<'static> {
    let slices = figure::slices(model.in_area(Area::Build), &STORE_DIMS);
    Figure {
        id: "build",
        title: "Build time and memory",
        lead: "From the unsorted input to a store that answers lookups. Compare like with like: the durability of each \
               build is listed under <a href=\"#contenders\">contenders</a>."
            .to_owned(),
        variants: side_by_side(model, "build", &STORE_DIMS, slices),
        dims: STORE_DIMS.to_vec(),
    }
}

/// Opening a store, and reads with nothing cached.
pub(super) fn cold(model: &Model<'_>) -> Figure<'static> {
    let slices = figure::slices(model.in_area(Area::Cold), &STORE_DIMS);
    Figure {
        id: "cold",
        title: "Opening and cold reads",
        lead: "Time from opening a store to its first answer; then the same, and single lookups, after its files were dropped \
               from memory, when the disk decides.".to_owned(),
        variants: side_by_side(model, "cold", &STORE_DIMS, slices),
        dims: STORE_DIMS.to_vec(),
    }
}

/// All measurements that have no section of their own, with one chart per metric.
pub(super) fn other(model: &Model<'_>) -> Figure<'static> {
    let dims = Dim::ALL.to_vec();
    let rest = model.run.measurements.iter().filter(|m| match area(m) {
        Area::Other => true,
        // Latencies with percentiles are in the latency figure.
        Area::Lookup => m.metric != "throughput" && m.percentiles.is_empty(),
        _ => false,
    });
    let slices = figure::slices(rest, &dims);
    Figure {
        id: "other",
        title: if model.run.suite == kv::NAME { "Writes, scans and mixes" } else { "Other measurements" },
        lead: String::new(),
        variants: side_by_side(model, "other", &dims, slices),
        dims,
    }
}

/// Bytes per entry, split into index and data where the split is known.
pub(super) fn size<'a>(model: &Model<'a>) -> Figure<'static> {
    let mut variants = Vec::new();
    for (index, (key, slice)) in
        figure::slices(model.in_area(Area::Size), &STORE_DIMS).into_iter().enumerate()
    {
        let part_of = |total: &Measurement, metric: &str| {
            slice.iter().find(|m| m.contender == total.contender && m.metric == metric).map(|m| m.median)
        };
        let totals: Vec<&'a Measurement> =
            slice.iter().copied().filter(|m| m.metric == BYTES_PER_ENTRY).collect();
        let bar = |m: &&'a Measurement| Bar {
            label: m.contender.clone(),
            style: model.style(&m.contender),
            measurement: m,
            part: part_of(m, "index bytes per entry"),
        };
        let bars: Vec<Bar<'a>> = totals.iter().map(bar).collect();
        let split = bars.iter().any(|bar| bar.part.is_some());
        let mut body = BarChart {
            id: format!("size-{index}"),
            title: "Bytes on disk for each entry".to_owned(),
            per: "",
            bars,
        }
        .render();
        if split {
            body += "<p class=\"note\"><span class=\"swatch part\"></span> index <span class=\"swatch\"></span> data, or both where \
                     a store does not separate them</p>";
        }
        let others = metrics(&slice).into_iter().filter(|metric| {
            *metric != BYTES_PER_ENTRY && (totals.is_empty() || *metric != "index bytes per entry")
        });
        for (place, metric) in others.enumerate() {
            let group: Vec<&Measurement> = slice.iter().copied().filter(|m| m.metric == metric).collect();
            body += &bar_chart(model, format!("size-{index}-{place}"), sentence_case(metric), &group);
        }
        let rows: Vec<(String, &Measurement)> = slice.iter().map(|m| (with_metric(m), *m)).collect();
        body += &table::folded_bars(&rows);
        body += &absent(model, &slice);
        variants.push(Variant::new(model, &STORE_DIMS, key, &slice, body));
    }
    Figure {
        id: "size",
        title: "Space",
        lead: "Including keys and values. The bytes of an entry beyond its own key and value are the store’s overhead.".to_owned(),
        dims: STORE_DIMS.to_vec(),
        variants,
    }
}

/// Space against speed.
pub(super) fn trade_off(model: &Model<'_>) -> Figure<'static> {
    let sizes =
        figure::slices(model.in_area(Area::Size).filter(|m| m.metric == BYTES_PER_ENTRY), &STORE_DIMS);
    let lookups =
        model.in_area(Area::Lookup).filter(|m| m.metric == "throughput" && !is_batched(&m.case.operation));
    let speeds = figure::slices(lookups, &STORE_DIMS);
    let mut variants = Vec::new();
    for (index, (key, _)) in sizes.iter().enumerate() {
        let Some(slice) = speeds.get(key) else { continue };
        let case_dims = [Dim::Keys, Dim::Distribution, Dim::Threads];
        let cases = figure::slices(slice.iter().copied(), &case_dims);
        let plain =
            cases.iter().rev().max_by_key(|(key, slice)| (figure::plainness(&case_dims, key), slice.len()));
        let Some((case, timed)) = plain else { continue };
        let dots: Vec<Dot> = leaders(model, timed)
            .0
            .iter()
            .filter_map(|m| {
                let style = model.style(&m.contender);
                let size = size_of_store(model.run, m)?;
                Some(Dot { label: m.contender.clone(), style, x: size.median, y: m.median })
            })
            .collect();
        if dots.len() < 2 {
            continue;
        }
        let x = Axis { title: "bytes for each entry", unit: "B" };
        let table = dots_table("Lookups a second", x, &dots);
        let scatter = Scatter {
            id: format!("trade-{index}"),
            title: "Throughput against space",
            sense: "up and left is better",
            x,
            y: Axis { title: "lookups a second", unit: "ops/s" },
            dots,
        };
        let phrases = case_dims.iter().zip(case).map(|(dim, value): (&Dim, &Value)| dim.phrase(value));
        let phrases: Vec<String> =
            phrases.filter(|phrase| !phrase.is_empty()).map(|phrase| escape(&phrase)).collect();
        let body =
            format!("{}<p class=\"note\">Lookups: {}.</p>{table}", scatter.render(), phrases.join(", "));
        variants.push(Variant::new(model, &STORE_DIMS, key.clone(), timed, body));
    }
    Figure {
        id: "trade-off",
        title: "Speed against space",
        lead:
            "One point per contender. A store that another one beats on both axes is never the better choice."
                .to_owned(),
        dims: STORE_DIMS.to_vec(),
        variants,
    }
}

/// Returns the table beside a scatter plot of speed against the quantity on the `x` axis.
pub(super) fn dots_table(speed: &str, x: Axis<'_>, dots: &[Dot]) -> String {
    let headers = ["Contender".to_owned(), speed.to_owned(), sentence_case(x.title)];
    let figure = |value: f64, unit: &str| escape(&format::quantity(value, unit));
    let row = |dot: &Dot| vec![escape(&dot.label), figure(dot.y, "ops/s"), figure(dot.x, x.unit)];
    table::folded(&headers, &dots.iter().map(row).collect::<Vec<_>>())
}

/// Returns charts of every operation and metric of a slice, in a grid.
fn side_by_side(model: &Model<'_>, id: &str, dims: &[Dim], slices: Slices<'_>) -> Vec<Variant> {
    let mut variants = Vec::new();
    for (index, (key, slice)) in slices.into_iter().enumerate() {
        let mut groups: Vec<(String, Vec<&Measurement>)> = Vec::new();
        for m in &slice {
            let title = chart_title(m);
            match groups.iter_mut().find(|(other, _)| *other == title) {
                Some((_, group)) => group.push(m),
                None => groups.push((title, vec![m])),
            }
        }
        let chart = |(place, (title, group)): (usize, &(String, Vec<&Measurement>))| {
            bar_chart(model, format!("{id}-{index}-{place}"), title.clone(), group)
        };
        let charts: String = groups.iter().enumerate().map(chart).collect();
        let rows: Vec<(String, &Measurement)> = slice.iter().map(|m| (with_metric(m), *m)).collect();
        let body = format!(
            "<div class=\"grid\">{charts}</div>{}{}",
            table::folded_bars(&rows),
            absent(model, &slice)
        );
        variants.push(Variant::new(model, dims, key, &slice, body));
    }
    variants
}

pub(super) fn bar_chart(model: &Model<'_>, id: String, title: String, group: &[&Measurement]) -> String {
    let same_threads =
        group.iter().all(|m| group.first().is_some_and(|first| m.case.threads == first.case.threads));
    let bars = group.iter().copied().map(|m| {
        // Some builds use more threads than others can, so the label says how many.
        let threads = Dim::Threads.phrase(&Dim::Threads.of(&m.case));
        let label = if same_threads { m.contender.clone() } else { format!("{} · {threads}", m.contender) };
        Bar { label, style: model.style(&m.contender), measurement: m, part: None }
    });
    BarChart { id, title, per: "", bars: bars.collect() }.render()
}

fn metrics<'m>(slice: &[&'m Measurement]) -> Vec<&'m str> {
    let mut out: Vec<&str> = Vec::new();
    for m in slice {
        if !out.contains(&m.metric.as_str()) {
            out.push(&m.metric);
        }
    }
    out
}

fn with_metric(m: &Measurement) -> String {
    format!("{}, {}", m.contender, chart_title(m).to_lowercase())
}

/// Returns the title of a measurement's chart, such as `Build time`, `Peak memory of build` or
/// `Cold get latency, present keys`.
fn chart_title(m: &Measurement) -> String {
    let (operation, metric) = (m.case.operation.as_str(), m.metric.as_str());
    let mut title = match metric {
        "peak memory" => format!("Peak memory of {operation}"),
        _ if metric.contains(operation) => metric.to_owned(),
        _ => format!("{operation} {metric}"),
    };
    if !m.case.keys.is_empty() && area(m) == Area::Cold {
        title += &format!(", {} keys", m.case.keys);
    }
    if m.case.threads > 1 && area(m) == Area::Cold {
        title += &format!(", {} threads", m.case.threads);
    }
    sentence_case(&title)
}

fn sentence_case(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
