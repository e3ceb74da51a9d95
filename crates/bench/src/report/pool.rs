//! The figures about buffer pools: the cost of a page request, how it changes with threads and with
//! the pool's size, and which policy has the most hits.

use super::costs::bar_chart;
use super::figure::{self, Figure, Variant};
use super::format;
use super::lines::{LineChart, Stop, log_stops};
use super::lookups::{absent, champions, core_mark, series_table, stop_index};
use super::model::{Area, Dim, Model};
use super::table;
use crate::core::compare::HIT_RATES;
use crate::core::results::Measurement;
use crate::suites::pool::trace;

/// Prefix of the operations that measure other pool sizes.
const BY_SIZE: &str = "Pool Size";

fn measured<'a>(model: &Model<'a>, metric: &'static str) -> impl Iterator<Item = &'a Measurement> + use<'a> {
    model.in_area(Area::Pool).filter(move |m| m.metric == metric)
}

/// Time per request, for hits, misses and evictions.
pub(super) fn latencies(model: &Model<'_>) -> Figure<'static> {
    let dims = vec![Dim::Operation];
    let slices = figure::slices(measured(model, "latency"), &dims);
    let variants = slices.into_iter().enumerate().map(|(index, (key, slice))| {
        let chart = bar_chart(model, format!("pages-{index}"), "Time of one request".to_owned(), &slice);
        let rows: Vec<(String, &Measurement)> = slice.iter().map(|m| (m.contender.clone(), *m)).collect();
        let body = chart + &table::folded_bars(&rows) + &absent(model, &slice);
        Variant::new(model, &dims, key, &slice, body)
    });
    Figure {
        id: "pages",
        title: "Cost of a page",
        lead: "By one thread. Chained requests cannot overlap in the processor: each page's number is known only when the page before has been read. \
               A miss cannot be faster than a raw read; next to hits, a raw read shows the cost of the kernel’s own page cache."
            .to_owned(),
        variants: variants.collect(),
        dims,
    }
}

/// Requests per second over threads.
pub(super) fn over_threads(model: &Model<'_>) -> Figure<'static> {
    let dims = vec![Dim::Operation];
    let mut variants = Vec::new();
    for (index, (key, slice)) in figure::slices(measured(model, "throughput"), &dims).into_iter().enumerate()
    {
        let threads: Vec<u64> = slice.iter().map(|m| u64::from(m.case.threads)).collect();
        let stops = log_stops(&threads, |value| value.to_string());
        if stops.len() < 2 {
            continue;
        }
        let stop_of = |m: &Measurement| stop_index(&stops, &m.case.threads.to_string());
        let series = champions(model, &slice, &stop_of, &|_| 1.0);
        let table = series_table("Contender", &stops, &series, "ops/s");
        let chart = LineChart {
            id: format!("pool-threads-{index}"),
            title: "Requests a second, all threads together",
            sense: "higher is better",
            x_title: "threads",
            marks: core_mark(model, &stops),
            stops,
            unit: "ops/s",
            series,
        };
        let body = chart.render() + &table + &absent(model, &slice);
        variants.push(Variant::new(model, &dims, key, &slice, body));
    }
    Figure {
        id: "pool-threads",
        title: "Pages over threads",
        lead: "With <code>pin</code> each thread has its own pages, with <code>hotset</code> all share four. Beyond the number of cores, a constant \
               line is the best possible result."
            .to_owned(),
        dims,
        variants,
    }
}

/// Throughput and hit rate over the size of the pool, with the same hundred pages throughout.
pub(super) fn over_frames(model: &Model<'_>) -> Figure<'static> {
    let mut body = String::new();
    let mut all = Vec::new();
    for (metric, unit, title) in
        [("hit rate", "%", "Requests whose page was in memory"), ("throughput", "ops/s", "Requests a second")]
    {
        let of_size = measured(model, metric).filter(|m| m.case.operation.starts_with(BY_SIZE));
        let slice: Vec<&Measurement> = of_size.collect();
        body += &frames_chart(model, (format!("frames-{}", unit.len()), title, unit), &slice);
        let rows: Vec<(String, &Measurement)> = slice.iter().map(|m| (at_size(m), *m)).collect();
        body += &table::folded_bars(&rows);
        all.extend(slice);
    }
    let variants =
        if all.is_empty() { Vec::new() } else { vec![Variant::new(model, &[], Vec::new(), &all, body)] };
    Figure {
        id: "frames",
        title: "Pages over the size of the pool",
        lead: "Requests for a hundred pages, all equally likely: the benefit of a larger pool.".to_owned(),
        dims: Vec::new(),
        variants,
    }
}

/// Returns a label such as `textbook, 64 pages`.
fn at_size(m: &Measurement) -> String {
    format!("{}, {} pages", m.contender, format::count(m.case.entries))
}

/// Returns a chart over pool sizes; empty when there is only one size.
fn frames_chart(
    model: &Model<'_>,
    (id, title, unit): (String, &str, &str),
    slice: &[&Measurement],
) -> String {
    let frames: Vec<u64> = slice.iter().map(|m| m.case.entries).collect();
    let stops = log_stops(&frames, format::count);
    if stops.len() < 2 {
        return String::new();
    }
    let stop_of = |m: &Measurement| stop_index(&stops, &format::count(m.case.entries));
    let series = champions(model, slice, &stop_of, &|_| 1.0);
    let chart = LineChart {
        id,
        title,
        sense: "higher is better",
        x_title: "pages in memory, log scale",
        stops: stops.iter().map(|stop| Stop { place: stop.place, label: stop.label.clone() }).collect(),
        unit,
        series,
        marks: Vec::new(),
    };
    chart.render()
}

/// Returns a table of the hit rates, one row per pool size. The best policy of each row is in bold;
/// the optimum does not compete.
fn best_by_frames(slice: &[&Measurement]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut sizes: Vec<u64> = Vec::new();
    for m in slice {
        if !names.contains(&m.contender.as_str()) {
            names.push(&m.contender);
        }
        if !sizes.contains(&m.case.entries) {
            sizes.push(m.case.entries);
        }
    }
    let headers = std::iter::once("Pages in memory").chain(names.iter().copied()).map(str::to_owned);
    let row = |frames: &u64| {
        let found = |name: &str| slice.iter().find(|m| m.contender == name && m.case.entries == *frames);
        let policies = names.iter().filter(|name| **name != trace::OPTIMUM).filter_map(|name| found(name));
        let most = policies.map(|m| m.median).fold(f64::NEG_INFINITY, f64::max);
        let cell = |name: &&str| match found(name) {
            Some(m) if *name != trace::OPTIMUM && m.median >= most => format!("<b>{:.2} %</b>", m.median),
            Some(m) => format!("{:.2} %", m.median),
            None => format::NONE.to_owned(),
        };
        std::iter::once(format::count(*frames)).chain(names.iter().map(cell)).collect()
    };
    table::folded(&headers.collect::<Vec<_>>(), &sizes.iter().map(row).collect::<Vec<Vec<String>>>())
}

/// Hit rates of every access pattern, by policy.
pub(super) fn hit_rates(model: &Model<'_>) -> Figure<'static> {
    let dims = vec![Dim::Operation];
    let counted = measured(model, "hit rate").filter(|m| m.case.dataset == HIT_RATES);
    let variants = figure::slices(counted, &dims).into_iter().enumerate().map(|(index, (key, slice))| {
        let chart =
            bar_chart(model, format!("hits-{index}"), "Requests whose page was in memory".to_owned(), &slice);
        let rows: Vec<(String, &Measurement)> = slice.iter().map(|m| (m.contender.clone(), *m)).collect();
        let body = chart + &table::folded_bars(&rows) + &absent(model, &slice);
        Variant::new(model, &dims, key, &slice, body)
    });
    Figure {
        id: "hits",
        title: "Hit rates by pattern",
        lead: "Counted, not timed.".to_owned(),
        variants: variants.collect(),
        dims,
    }
}

/// Hit rates on recorded requests: every policy beside the optimum.
pub(super) fn traces(model: &Model<'_>) -> Figure<'static> {
    let dims = vec![Dim::Operation];
    let recorded = measured(model, "hit rate").filter(|m| m.case.dataset == trace::DATASET);
    let variants = figure::slices(recorded, &dims).into_iter().enumerate().map(|(index, (key, slice))| {
        let what = (format!("trace-{index}"), "Requests whose page was in memory", "%");
        let mut body = frames_chart(model, what, &slice);
        if !body.is_empty() {
            body += &best_by_frames(&slice);
        } else {
            body = bar_chart(
                model,
                format!("trace-{index}"),
                "Requests whose page was in memory".to_owned(),
                &slice,
            );
        }
        Variant::new(model, &dims, key, &slice, body)
    });
    Figure {
        id: "traces",
        title: "Recorded requests",
        lead: "Replayed at several sizes of the pool. The optimum knows which page will be requested last (Belady, 1966); no policy can be above it."
            .to_owned(),
        variants: variants.collect(),
        dims,
    }
}
