//! The page of a trace: the characteristics of a workload, in charts.

use cairn_trace::stats::{Stats, Window};

use super::format;
use super::html::escape;
use super::lines::{LineChart, Point, Series, some_stops as stops};
use super::model::Style;
use super::shell::Shell;
use super::table;
use crate::report::trace_text;

/// Returns the whole document.
pub(super) fn document(name: &str, stats: &Stats) -> String {
    let sections = [
        ("mix", "Operations", mix(stats)),
        ("time", "Over time", over_time(stats)),
        ("skew", "Skew", skew(stats)),
        ("caches", "Caches", caches(stats)),
        ("sizes", "Sizes", sizes(stats)),
    ];
    let shown = sections.iter().filter(|(_, _, body)| !body.is_empty());
    let links: String =
        shown.clone().map(|(id, title, _)| format!("<a href=\"#{id}\">{title}</a>")).collect();
    let main: String = shown
        .map(|(id, title, body)| {
            format!("<section class=\"figure\" id=\"{id}\"><h2>{title}</h2>{body}</section>")
        })
        .collect();
    let title = format!("{name}, a trace");
    let json = serde_json::to_string(stats).unwrap_or_else(|_| "{}".to_owned());
    let shell = Shell {
        title: &title,
        header: &header(name, stats),
        links: &links,
        main: &main,
        foot: "Made by the Cairn lab from one trace.",
        json: &json,
    };
    shell.render()
}

fn header(name: &str, stats: &Stats) -> String {
    let chip = |name: &str, value: String| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    let mut chips = chip("Operations", format::count(stats.records));
    chips += &chip("Keys", trace_text::about(stats.keys));
    if stats.timed {
        chips += &chip("Length", format::quantity(stats.secs, "s"));
    }
    chips += &chip("Threads", stats.lanes.to_string());
    match (stats.read_share, stats.write_share) {
        (Some(reads), Some(writes)) => {
            chips += &chip("Reads", format!("{:.1} %", reads * 100.0));
            chips += &chip("Writes", format!("{:.1} %", writes * 100.0));
        }
        _ => chips += &chip("Statements", "texts were not kept".to_owned()),
    }
    if stats.sample > 1 {
        chips += &chip("Sample", format!("one key in {}", stats.sample));
    }
    let source = if stats.source.is_empty() { "no source given" } else { &stats.source };
    let notes: String = trace_text::notes(stats)
        .iter()
        .map(|note| format!("<p class=\"data\">{}</p>", escape(note)))
        .collect();
    format!(
        "<header><p class=\"mark\">Cairn lab</p><h1>{}</h1><p class=\"data\">{}</p>{notes}<dl class=\"chips\">{chips}</dl></header>",
        escape(name),
        escape(source)
    )
}

fn rows_table(headers: &[&str], rows: &[Vec<String>]) -> String {
    let head: String =
        headers.iter().map(|header| format!("<th scope=\"col\">{}</th>", escape(header))).collect();
    let row = |cells: &Vec<String>| {
        let cell = |(at, cell): (usize, &String)| match at {
            0 => format!("<th scope=\"row\">{}</th>", escape(cell)),
            _ => format!("<td class=\"num\">{}</td>", escape(cell)),
        };
        format!("<tr>{}</tr>", cells.iter().enumerate().map(cell).collect::<String>())
    };
    let body: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"big\"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
}

fn mix(stats: &Stats) -> String {
    let rows: Vec<Vec<String>> = stats
        .kinds
        .iter()
        .map(|kind| {
            let bytes = kind.value_bytes_mean.map_or_else(String::new, |bytes| format::quantity(bytes, "B"));
            vec![
                kind.kind.name().to_owned(),
                format::whole(kind.operations),
                format!("{:.2} %", kind.share * 100.0),
                bytes,
            ]
        })
        .collect();
    if rows.is_empty() {
        String::new()
    } else {
        rows_table(&["Operation", "Count", "Share", "Mean value"], &rows)
    }
}

fn sizes(stats: &Stats) -> String {
    let named = [
        ("keys, B", stats.key_bytes),
        ("values, B", stats.value_bytes),
        ("entries of a scan", stats.scan_entries),
    ];
    let rows: Vec<Vec<String>> = named
        .into_iter()
        .filter_map(|(name, sizes)| {
            let sizes = sizes?;
            let cells = [sizes.min, sizes.p50, sizes.p90, sizes.p99, sizes.max].map(format::whole);
            Some([vec![name.to_owned(), format!("{:.1}", sizes.mean)], cells.to_vec()].concat())
        })
        .collect();
    if rows.is_empty() {
        String::new()
    } else {
        rows_table(&["", "mean", "min", "p50", "p90", "p99", "max"], &rows)
    }
}

fn series(number: usize, label: &str, values: impl Iterator<Item = f64>) -> Series {
    let points = values.enumerate().map(|(stop, y)| Point { stop, y, interval: None }).collect();
    Series { label: label.to_owned(), short: label.to_owned(), style: Style::line(number), points }
}

fn over_time(stats: &Stats) -> String {
    let count = stats.windows.len();
    if count < 2 || stats.records == 0 {
        return String::new();
    }
    let places: Vec<f64> = (0..count).map(|at| at as f64 / (count - 1) as f64).collect();
    let (unit, x_title) = if stats.timed { ("s", "seconds") } else { ("", "operations") };
    let label = |at: usize| {
        let start = stats.windows.get(at).map_or(0.0, |window| window.start);
        format::tick(start, unit)
    };
    let length = match stats.windows.get(1) {
        Some(second) if stats.timed => second.start.max(1e-9),
        _ => 1.0,
    };
    let of = |take: fn(&Window) -> f64, by: f64| stats.windows.iter().map(move |window| take(window) / by);
    let rate_unit = if stats.timed { "ops/s" } else { "" };
    let rates = LineChart {
        id: "rate".to_owned(),
        title: "Operations over time",
        sense: "",
        x_title,
        stops: stops(&places, label),
        unit: rate_unit,
        series: vec![
            series(0, "all", of(|window| window.operations as f64, length)),
            series(1, "writes", of(|window| window.writes as f64, length)),
        ],
        marks: Vec::new(),
    };
    let keys = LineChart {
        id: "working-set".to_owned(),
        title: "Working set: different keys in each part",
        sense: "",
        x_title,
        stops: stops(&places, label),
        unit: "",
        series: vec![
            series(0, "keys", of(|window| window.keys, 1.0)),
            series(1, "new keys", of(|window| window.new_keys, 1.0)),
        ],
        marks: Vec::new(),
    };
    let lead = match &stats.arrival {
        None => String::new(),
        Some(arrival) => format!("<p class=\"lead\">{}</p>", escape(&trace_text::arrival(arrival))),
    };
    let headers = ["From", "Operations", "Writes", "Keys", "New keys"].map(str::to_owned);
    let row = |window: &Window| {
        vec![
            format::quantity(window.start, unit),
            format::whole(window.operations),
            format::whole(window.writes),
            format!("{:.0}", window.keys),
            format!("{:.0}", window.new_keys),
        ]
    };
    let rows: Vec<Vec<String>> = stats.windows.iter().map(row).collect();
    lead + &rates.render() + &keys.render() + &table::folded(&headers, &rows)
}

/// Returns places on a logarithmic axis.
fn log_places(values: &[f64]) -> Vec<f64> {
    let (low, high) =
        (values.first().copied().unwrap_or(1.0).ln(), values.last().copied().unwrap_or(1.0).ln());
    let place = |value: &f64| if high > low { (value.ln() - low) / (high - low) } else { 0.5 };
    values.iter().map(place).collect()
}

fn skew(stats: &Stats) -> String {
    let Some(skew) = &stats.skew else { return String::new() };
    let shares: Vec<f64> = skew.curve.iter().map(|point| point.keys_share * 100.0).collect();
    let label = |at: usize| format::tick(shares.get(at).copied().unwrap_or(0.0), "%");
    let chart = LineChart {
        id: "skew-curve".to_owned(),
        title: "Uses that the hottest keys get",
        sense: "",
        x_title: "of the keys, the hottest first, log scale",
        stops: stops(&log_places(&shares), label),
        unit: "%",
        series: vec![series(0, "uses", skew.curve.iter().map(|point| point.uses_share * 100.0))],
        marks: Vec::new(),
    };
    format!("<p class=\"lead\">{}</p>", escape(&trace_text::skew(skew))) + &chart.render()
}

fn caches(stats: &Stats) -> String {
    let Some(reuse) = stats.reuse.as_ref().filter(|reuse| !reuse.caches.is_empty()) else {
        return String::new();
    };
    let sizes: Vec<f64> = reuse.caches.iter().map(|point| point.keys).collect();
    let label = |at: usize| trace_text::about(sizes.get(at).copied().unwrap_or(0.0));
    let chart = LineChart {
        id: "hits".to_owned(),
        title: "Uses that an LRU cache would answer, by its size",
        sense: "",
        x_title: "keys in the cache, log scale",
        stops: stops(&log_places(&sizes), label),
        unit: "%",
        series: vec![series(0, "hits", reuse.caches.iter().map(|point| point.hit_share * 100.0))],
        marks: Vec::new(),
    };
    let headers = ["Keys", "Bytes", "Hits"].map(str::to_owned);
    let rows: Vec<Vec<String>> = reuse
        .caches
        .iter()
        .map(|point| {
            vec![
                format!("{:.0}", point.keys),
                format::quantity(point.bytes, "B"),
                format!("{:.2} %", point.hit_share * 100.0),
            ]
        })
        .collect();
    format!("<p class=\"lead\">{}</p>", escape(&trace_text::reuse(reuse)))
        + &chart.render()
        + &table::folded(&headers, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::markup;
    use crate::report::trace_text::tests::sample_stats;

    /// Goal: the page is well-formed, states the same as the text form, and escapes names. Method:
    /// the strict markup reader over a trace with everything, one without times, and an empty one.
    #[test]
    fn pages_are_sound() {
        for (timed, events) in [(true, 3_000), (false, 3_000), (true, 0)] {
            let stats = Stats { source: "<b>&\"evil\"".to_owned(), ..sample_stats(timed, events) };
            let html = document("<i>trace", &stats);
            let page = markup::parse(&html);
            assert!(page.text.contains("<i>trace") || page.text.contains("&lt;i&gt;trace"), "{}", page.text);
            let charts =
                page.tags.iter().filter(|tag| tag.name == "svg" && tag.get("role").is_some()).count();
            assert_eq!(charts, if events > 0 { 4 } else { 0 });
            assert!(html.len() < 200_000, "{}", html.len());
            let json: serde_json::Value = serde_json::from_str(&page.scripts[0]).unwrap();
            assert_eq!(json["records"], events);
        }
    }
}
