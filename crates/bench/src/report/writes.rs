//! The figures about mutable stores: the cost of write speed in bytes written and in space, and how
//! work scales over client threads.

use super::costs::dots_table;
use super::figure::{self, Figure, Variant};
use super::lines::{LineChart, log_stops};
use super::lookups::{absent, champions, core_mark, series_table, stop_index};
use super::model::{Area, Dim, Model, area};
use super::scatter::{Axis, Dot, Scatter};
use crate::core::results::Measurement;
use crate::core::sizes::{BYTES_PER_ENTRY, size_of_store};

const WRITE_AMPLIFICATION: &str = "write amplification";
const SPACE_AMPLIFICATION: &str = "space amplification";

/// The dimensions that distinguish a store and the operation on it from others.
const WORK_DIMS: [Dim; 4] = [Dim::Dataset, Dim::Operation, Dim::Entries, Dim::ValueBytes];

/// Write speed against the bytes that the writes caused, and against the space that they left
/// occupied.
pub(super) fn trade_off(model: &Model<'_>) -> Figure<'static> {
    let amplified =
        figure::slices(model.run.measurements.iter().filter(|m| m.metric == WRITE_AMPLIFICATION), &WORK_DIMS);
    let mut variants = Vec::new();
    for (index, (key, costs)) in amplified.into_iter().enumerate() {
        let speed =
            |cost: &Measurement| {
                model.run.measurements.iter().find(|m| {
                    m.metric == "throughput" && m.contender == cost.contender && m.case == cost.case
                })
            };
        let dots = |cost_of: &dyn Fn(&Measurement) -> Option<f64>| -> Vec<Dot> {
            let dot = |m: &&Measurement| {
                let style = model.style(&m.contender);
                Some(Dot { label: m.contender.clone(), style, x: cost_of(m)?, y: speed(m)?.median })
            };
            costs.iter().filter_map(dot).collect()
        };
        let written = dots(&|m| Some(m.median));
        if written.len() < 2 {
            continue;
        }
        let rates: Vec<&Measurement> = costs.iter().filter_map(|cost| speed(cost)).collect();
        let mut body = chart(
            format!("writes-{index}"),
            "Writes against bytes written",
            Axis { title: "bytes written for each byte put", unit: "" },
            written,
        );
        let (space, axis) = match dots(&|m| of_store(model, m, SPACE_AMPLIFICATION)) {
            dots if dots.len() >= 2 => (dots, Axis { title: "bytes on disk for each live byte", unit: "" }),
            _ => {
                let dots = dots(&|m| Some(size_of_store(model.run, m)?.median));
                (dots, Axis { title: BYTES_PER_ENTRY, unit: "B" })
            }
        };
        if space.len() >= 2 {
            body += &chart(format!("writes-space-{index}"), "Writes against space", axis, space);
        }
        let body = format!("<div class=\"grid\">{body}</div>");
        variants.push(Variant::new(model, &WORK_DIMS, key, &rates, body));
    }
    Figure {
        id: "writes",
        title: "Speed of writes against their cost",
        lead: "One point per store. Bytes written are those that the kernel counted for its process; space is the length of all files once \
               background work has ended. A store that is fast because it defers work shows it here."
            .to_owned(),
        dims: WORK_DIMS.to_vec(),
        variants,
    }
}

fn chart(id: String, title: &'static str, x: Axis<'static>, dots: Vec<Dot>) -> String {
    let table = dots_table("Writes a second", x, &dots);
    let y = Axis { title: "writes a second", unit: "ops/s" };
    // A cell of the grid holds the chart with its table.
    format!(
        "<div>{}{table}</div>",
        Scatter { id, title, sense: "up and left is better", x, y, dots }.render()
    )
}

/// Returns a metric of the same contender and store.
fn of_store(model: &Model<'_>, m: &Measurement, metric: &str) -> Option<f64> {
    let same = |other: &&Measurement| {
        other.metric == metric
            && other.contender == m.contender
            && other.case.dataset == m.case.dataset
            && (other.case.entries, other.case.value_bytes) == (m.case.entries, m.case.value_bytes)
    };
    model.run.measurements.iter().find(same).map(|found| found.median)
}

/// The dimensions that describe the work of all client threads. Stores for more threads may hold
/// more entries, because the work of each thread stays the same.
const CLIENT_DIMS: [Dim; 5] = [Dim::Operation, Dim::Dataset, Dim::ValueBytes, Dim::Keys, Dim::Distribution];

/// Throughput over threads for everything except point lookups and pages, which have figures of
/// their own.
pub(super) fn over_threads(model: &Model<'_>) -> Figure<'static> {
    let measured = model.run.measurements.iter().filter(|m| {
        m.metric == "throughput" && (area(m) == Area::Other || m.case.dataset == "mt") && m.case.threads > 0
    });
    let mut variants = Vec::new();
    for (index, (key, slice)) in figure::slices(measured, &CLIENT_DIMS).into_iter().enumerate() {
        let threads: Vec<u64> = slice.iter().map(|m| u64::from(m.case.threads)).collect();
        let stops = log_stops(&threads, |value| value.to_string());
        if stops.len() < 2 {
            continue;
        }
        let stop_of = |m: &Measurement| stop_index(&stops, &m.case.threads.to_string());
        let series = champions(model, &slice, &stop_of, &|_| 1.0);
        let table = series_table("Contender", &stops, &series, "ops/s");
        let chart = LineChart {
            id: format!("clients-{index}"),
            title: "Operations a second, all threads together",
            sense: "higher is better",
            x_title: "client threads",
            marks: core_mark(model, &stops),
            stops,
            unit: "ops/s",
            series,
        };
        let body = chart.render() + &table + &absent(model, &slice);
        variants.push(Variant::new(model, &CLIENT_DIMS, key, &slice, body));
    }
    Figure {
        id: "clients",
        title: "Scaling over client threads",
        lead: "Beyond the number of cores, a constant line is the best possible result, unless the threads wait for the disk: then commits that \
               share a sync keep rising."
            .to_owned(),
        dims: CLIENT_DIMS.to_vec(),
        variants,
    }
}
