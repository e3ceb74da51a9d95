//! Tables: the one with every measurement, and the small ones beside each chart, for readers who
//! cannot see the chart or prefer a table.

use std::collections::BTreeMap;

use super::bars::interval_of;
use super::forest;
use super::format;
use super::html::{escape, plural};
use super::model::{self, Dim, Model};
use super::svg;
use crate::core::ratio::Pair;
use crate::core::results::{Case, Measurement};
use crate::core::{ratio, stats};

/// Numbers are right-aligned, so that their digits line up.
const NUMBER: &str = " class=\"num\"";

/// A folded table beside a chart. Headers are plain text, cells are markup.
pub(super) fn folded(headers: &[String], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head: String =
        headers.iter().map(|header| format!("<th scope=\"col\">{}</th>", escape(header))).collect();
    let row = |cells: &Vec<String>| {
        let cell = |(index, cell): (usize, &String)| {
            if index == 0 { format!("<th scope=\"row\">{cell}</th>") } else { format!("<td>{cell}</td>") }
        };
        format!("<tr>{}</tr>", cells.iter().enumerate().map(cell).collect::<String>())
    };
    let body: String = rows.iter().map(row).collect();
    format!(
        "<details class=\"figures\"><summary>Values as a table</summary><div class=\"scroll\" tabindex=\"0\">\
         <table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details>"
    )
}

/// Returns the folded table of some measurements: contender, median, interval, samples.
pub(super) fn folded_bars(rows: &[(String, &Measurement)]) -> String {
    let interval = format!("{} interval", stats::LEVEL);
    let headers = ["Contender", "Median", interval.as_str(), "Samples"].map(str::to_owned);
    let row = |(label, m): &(String, &Measurement)| {
        let interval = interval_of(m).map_or_else(|| format::NONE.to_owned(), |text| escape(&text));
        vec![
            escape(label),
            escape(&format::quantity(m.median, &m.unit)),
            interval,
            m.samples.len().to_string(),
        ]
    };
    folded(&headers, &rows.iter().map(row).collect::<Vec<_>>())
}

/// Our best measurement in each case, by metric. Every peer's row of the big table is compared with
/// it.
struct Standard<'a> {
    ours: BTreeMap<(&'a str, &'a Case), &'a Measurement>,
}

impl<'a> Standard<'a> {
    fn new(model: &Model<'a>) -> Self {
        let mut ours: BTreeMap<(&str, &Case), &Measurement> = BTreeMap::new();
        for m in model.run.measurements.iter().filter(|m| m.verified && model.style(&m.contender).ours) {
            let entry = ours.entry((m.metric.as_str(), &m.case)).or_insert(m);
            *entry = model::better(entry, m);
        }
        Standard { ours }
    }

    /// Returns sort key, class and text of the column that compares Cairn's best with this row.
    fn cell(&self, model: &Model<'_>, m: &Measurement) -> (f64, &'static str, String) {
        let nothing = (f64::NAN, "", format::NONE.to_owned());
        if model.style(&m.contender).ours {
            return nothing;
        }
        let pair = self.ours.get(&(m.metric.as_str(), &m.case)).map(|subject| Pair { subject, against: m });
        match pair.and_then(ratio::within) {
            Some(ratio) => {
                let outcome = ratio.outcome();
                let text = format!("{} {}", forest::sign(ratio), forest::in_words(ratio));
                (ratio.point, forest::tone(outcome), text)
            }
            None => nothing,
        }
    }
}

/// Renders every measurement of the run in one table, which the script makes sortable and
/// filterable.
pub(super) fn everything(model: &Model<'_>) -> String {
    let dims = varying_dims(model);
    let standard = Standard::new(model);
    let rows: String = model.run.measurements.iter().map(|m| row(model, &standard, &dims, m)).collect();
    let column = |(label, class): (&str, &str)| {
        format!("<th scope=\"col\"{class}><span class=\"sort\">{label}</span></th>")
    };
    let level = stats::LEVEL;
    let interval = format!("{level} interval");
    let first = [
        ("Contender", ""),
        ("Operation", ""),
        ("Metric", ""),
        ("Median", NUMBER),
        (interval.as_str(), NUMBER),
        ("Cairn’s best against it", NUMBER),
    ];
    let is_number = |dim: Dim| matches!(dim, Dim::Entries | Dim::ValueBytes | Dim::Threads);
    let middle = dims.iter().map(|dim| (dim.label(), if is_number(*dim) { NUMBER } else { "" }));
    let last = [("Samples", NUMBER), ("Verified", ""), ("Unit", "")];
    let heads: String = first.into_iter().chain(middle).chain(last).map(column).collect();
    let total = model.run.measurements.len();
    let constant = constant_dims(model, &dims);
    format!(
        "<section id=\"all\" class=\"broad\"><h2>All measurements</h2>\
         <p class=\"lead\">Every figure of the run. The ratio compares the best of Cairn’s own contenders with the row, \
         in the same case: above 1×, Cairn is better, ▼ marks a loss, <b>~</b> a difference that is not significant at {level}.{constant}</p>\
         <form class=\"pick filters\" autocomplete=\"off\"><label class=\"grow\">Filter\
         <input type=\"search\" placeholder=\"words that a row must contain\" id=\"filter\"></label>\
         <p class=\"said\" role=\"status\" id=\"shown-rows\">{}</p></form>\
         <div class=\"scroll tall\" tabindex=\"0\"><table class=\"big rows\" id=\"rows\"><caption class=\"hidden\">All measurements of the run</caption>\
         <thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div></section>",
        plural(total, "row"),
    )
}

fn varying_dims(model: &Model<'_>) -> Vec<Dim> {
    let varies = |dim: &Dim| {
        let mut values = model.run.measurements.iter().map(|m| dim.of(&m.case));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    Dim::ALL.into_iter().filter(|dim| *dim != Dim::Operation && varies(dim)).collect()
}

/// Returns the dimensions that have the same value in every row, stated once instead of in columns.
fn constant_dims(model: &Model<'_>, shown: &[Dim]) -> String {
    let Some(first) = model.run.measurements.first() else { return String::new() };
    let hidden = |dim: &Dim| *dim != Dim::Operation && !shown.contains(dim);
    let rest: Vec<Dim> = Dim::ALL.into_iter().filter(hidden).collect();
    let text = model::describe(&first.case, &rest);
    if text.is_empty() { String::new() } else { format!(" All rows: {}.", escape(&text)) }
}

fn row(model: &Model<'_>, standard: &Standard<'_>, dims: &[Dim], m: &Measurement) -> String {
    let style = model.style(&m.contender);
    let number = |value: f64| {
        if value.is_finite() { format!(" data-v=\"{value}\"") } else { " data-v=\"\"".to_owned() }
    };
    let interval = interval_of(m).unwrap_or_else(|| format::NONE.to_owned());
    let (sort, tone, against) = standard.cell(model, m);
    let mut out = format!(
        "<tr{}><th scope=\"row\">{}{}</th><td>{}</td><td>{}</td><td class=\"num\"{}>{}</td><td class=\"num\"{}>{}</td>\
         <td class=\"num {tone}\"{}>{}</td>",
        if style.ours { " class=\"ours\"" } else { "" },
        svg::key(style),
        escape(&m.contender),
        escape(&m.case.operation),
        escape(&m.metric),
        number(m.median),
        escape(&format::quantity(m.median, &m.unit)),
        // The sort key is the relative width: the least certain values come last.
        number((m.high - m.low) / m.median),
        escape(&interval),
        number(sort),
        escape(&against)
    );
    for dim in dims {
        let value = dim.of(&m.case);
        let sort = match &value {
            model::Value::Number(value) => format!(" data-v=\"{value}\" class=\"num\""),
            model::Value::Text(_) => String::new(),
        };
        let shown = if value == model::Value::Text(String::new()) {
            format::NONE.to_owned()
        } else {
            dim.option(&value)
        };
        out += &format!("<td{sort}>{}</td>", escape(&shown));
    }
    let samples = m.samples.len();
    let outliers = match stats::outliers(&m.samples).into_iter().filter(|outlier| *outlier).count() {
        0 => String::new(),
        count => format!(", {}", plural(count, "outlier")),
    };
    let verified = if m.verified { "<td>yes</td>" } else { "<td class=\"bad\">no</td>" };
    out += &format!(
        "<td class=\"num\" data-v=\"{samples}\">{samples}{outliers}</td>{verified}<td>{}</td></tr>",
        escape(&m.unit)
    );
    out
}
