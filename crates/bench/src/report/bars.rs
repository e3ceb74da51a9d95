//! Horizontal bars: one contender per row, best first, with its interval and every sample.
//!
//! ```text
//!   ● cairn mmap                         5.83 M/s  5.70 to 5.96     name left, values right
//!   ████████████████████████├──●─┤                                  bar from 0, interval, samples
//! ```
//! When the values span more than two decades, bars from zero would hide the small ones. The rows
//! then show their medians as ticks on a logarithmic axis. They have no bars, because the length of
//! a bar means nothing on such an axis.

use super::format;
use super::html::escape;
use super::model::Style;
use super::scale::{Scale, positive_range, prefix_base};
use super::svg::{self, Anchor, Frame, line, percent, px, text};
use crate::core::results::Measurement;
use crate::core::stats;

const ROW: f64 = 37.0;
const LABEL_Y: f64 = 12.0;
const BAR_Y: f64 = 18.0;
const BAR_HEIGHT: f64 = 11.0;
const AXIS_HEIGHT: f64 = 24.0;
/// Above this ratio of the largest to the smallest value, the axis becomes logarithmic.
const LOG_FROM: f64 = 150.0;

/// One row.
#[derive(Debug)]
pub(super) struct Bar<'a> {
    /// Text beside the row. Not escaped.
    pub(super) label: String,
    /// Colour and marker of the contender's family.
    pub(super) style: Style,
    /// The measurement that the row shows.
    pub(super) measurement: &'a Measurement,
    /// The part of the median that is drawn darker, starting at zero, such as a store's index.
    pub(super) part: Option<f64>,
}

/// A bar chart.
#[derive(Debug)]
pub(super) struct BarChart<'a> {
    /// Unique on the page.
    pub(super) id: String,
    /// Title of the chart. Not escaped.
    pub(super) title: String,
    /// Name of one operation in the tooltip, such as `lookup`; empty where a rate has no such
    /// reading.
    pub(super) per: &'a str,
    /// The rows, in any order.
    pub(super) bars: Vec<Bar<'a>>,
}

impl BarChart<'_> {
    /// Returns the chart with its caption, or a sentence when no bar has a value.
    pub(super) fn render(mut self) -> String {
        self.bars.retain(|bar| bar.measurement.median.is_finite());
        let Some(first) = self.bars.first() else {
            return "<p class=\"nothing\">No values.</p>".to_owned();
        };
        let higher = first.measurement.higher_is_better;
        let unit = first.measurement.unit.clone();
        self.bars.sort_by(|a, b| {
            let order = a.measurement.median.total_cmp(&b.measurement.median);
            if higher { order.reverse() } else { order }
        });

        let scale = self.scale(&unit);
        let rows_height = ROW * self.bars.len() as f64;
        let mut body = axis(&scale, &unit, rows_height);
        for (index, bar) in self.bars.iter().enumerate() {
            body += &self.row(bar, &scale, ROW * index as f64);
        }
        body += &whiskers(&self.bars, &scale, rows_height);
        body += &dots(&self.bars, &scale, rows_height);
        let direction = if higher { "longer is better" } else { "shorter is better" };
        let sense = match (scale.is_log(), higher) {
            (false, _) => direction,
            (true, true) => "further right is better, log scale",
            (true, false) => "further left is better, log scale",
        };
        let title = escape(&self.title);
        let frame = Frame {
            id: &self.id,
            title: &self.title,
            desc: &self.description(),
            height: rows_height + AXIS_HEIGHT,
            left: 0.0,
            right: 0.0,
            under: "",
        };
        format!(
            "<div class=\"chart bars\"><h3>{title} <small>{sense}</small></h3>{}</div>",
            svg::chart(frame, &body)
        )
    }

    fn scale(&self, unit: &str) -> Scale {
        let mut values: Vec<f64> = Vec::new();
        for Bar { measurement: m, .. } in &self.bars {
            values.extend([m.median, m.high, m.low].into_iter().chain(m.samples.iter().copied()));
        }
        let (min, max) = positive_range(&values);
        let parts = self.bars.iter().any(|bar| bar.part.is_some());
        if max / min > LOG_FROM && !parts {
            Scale::log(min, max)
        } else {
            Scale::from_zero(max, 4, prefix_base(unit))
        }
    }

    fn row(&self, bar: &Bar<'_>, scale: &Scale, top: f64) -> String {
        let m = bar.measurement;
        let side = if bar.style.ours { "ours" } else { "peer" };
        let unsure = if m.verified { "" } else { " <tspan class=\"bad\">not verified</tspan>" };
        let name = format!("{}{unsure}", svg::label(&bar.label));
        let figure = format!(
            "<tspan class=\"w ci\">{}\u{2002}</tspan><tspan class=\"fig\">{}</tspan>",
            escape(&spread_text(m)),
            escape(&format::quantity(m.median, &m.unit))
        );
        let mut out = format!("<g class=\"bar {side}\" data-tip=\"{}\">", escape(&self.tip(bar)));
        out += &format!("<rect class=\"hit\" x=\"0\" y=\"{}\" width=\"100%\" height=\"{ROW}\"/>", px(top));
        out += &svg::row_marker(bar.style, top + LABEL_Y - 4.0);
        out += &text("name", 0.0, 17.0, top + LABEL_Y, Anchor::Start, &name);
        out += &text("val", 1.0, 0.0, top + LABEL_Y, Anchor::End, &figure);
        out += &marks(bar, scale, top + BAR_Y);
        out + "</g>"
    }

    fn tip(&self, bar: &Bar<'_>) -> String {
        let m = bar.measurement;
        let mut lines = vec![bar.label.clone(), format::quantity(m.median, &m.unit)];
        if let Some(interval) = interval_of(m) {
            lines.push(format!("{} interval {interval}", stats::LEVEL));
        }
        if let Some(part) = bar.part {
            let rest = (m.median - part).max(0.0);
            lines.push(format!(
                "index {}, data {}",
                format::quantity(part, &m.unit),
                format::quantity(rest, &m.unit)
            ));
        }
        if !self.per.is_empty() && m.unit == "ops/s" && m.median > 0.0 {
            let each = f64::from(m.case.threads.max(1)) / m.median * 1e9;
            lines.push(format!("{} a {} on each thread", format::quantity(each, "ns"), self.per));
        }
        let finite: Vec<f64> = m.samples.iter().copied().filter(|s| s.is_finite()).collect();
        if finite.len() > 1 {
            let (min, max) = finite.iter().fold((f64::MAX, f64::MIN), |(a, b), s| (a.min(*s), b.max(*s)));
            lines.push(format!("{} samples, {}", finite.len(), format::interval(min, max, &m.unit)));
        }
        if !m.verified {
            lines.push("Results were not verified.".to_owned());
        }
        lines.join("\n")
    }

    fn description(&self) -> String {
        let row = |bar: &Bar<'_>| {
            format!("{} {}", bar.label, format::quantity(bar.measurement.median, &bar.measurement.unit))
        };
        let rows: Vec<String> = self.bars.iter().map(row).collect();
        format!("{} rows, best first: {}.", rows.len(), rows.join("; "))
    }
}

/// Returns the interval of a measurement, if it has one that is wider than a point.
pub(super) fn interval_of(m: &Measurement) -> Option<String> {
    has_interval(m).then(|| format::interval(m.low, m.high, &m.unit))
}

/// Returns whether a measurement has an interval. The range of one or two samples is not one.
fn has_interval(m: &Measurement) -> bool {
    m.samples.len() >= stats::SAMPLES_MIN && m.low.is_finite() && m.high.is_finite() && m.high > m.low
}

fn spread_text(m: &Measurement) -> String {
    match interval_of(m) {
        Some(interval) => interval,
        None if m.samples.len() == 1 && !m.is_exact() => "one sample".to_owned(),
        None => String::new(),
    }
}

fn axis(scale: &Scale, unit: &str, bottom: f64) -> String {
    let last = scale.ticks().len().saturating_sub(1);
    let crowded = scale.ticks().len() > 5;
    let mut out = String::new();
    for (index, value) in scale.ticks().iter().enumerate() {
        let x = scale.place(*value);
        let anchor = match index {
            0 if x < 0.02 => Anchor::Start,
            _ if index == last && x > 0.98 => Anchor::End,
            _ => Anchor::Middle,
        };
        out += &line("grid", (x, 0.0), (x, bottom));
        // On a crowded axis, every other label shows only when the chart is wide.
        let class = if crowded && index % 2 == 1 { "tick w" } else { "tick" };
        out += &text(class, x, 0.0, bottom + 16.0, anchor, &escape(&format::tick(*value, unit)));
    }
    out
}

fn marks(bar: &Bar<'_>, scale: &Scale, top: f64) -> String {
    let m = bar.measurement;
    let end = scale.place(m.median);
    let rect = |class: &str, from: f64, to: f64| {
        let (x, width) = (percent(from), percent((to - from).max(0.0)));
        format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{BAR_HEIGHT}\"/>",
            px(top)
        )
    };
    let mut out = String::new();
    match (scale.is_log(), bar.part) {
        (true, _) => out += &line("median", (end, top - 1.0), (end, top + BAR_HEIGHT + 1.0)),
        (false, None) => out += &rect("fill", 0.0, end),
        (false, Some(part)) => {
            let split = scale.place(part.min(m.median));
            out += &rect("fill part", 0.0, split);
            out += &rect("fill", split, end);
        }
    }
    out
}

/// Draws the intervals of all rows as whiskers, in one path for the whole chart.
fn whiskers(bars: &[Bar<'_>], scale: &Scale, height: f64) -> String {
    let mut path = String::new();
    for (index, Bar { measurement: m, .. }) in bars.iter().enumerate() {
        if has_interval(m) {
            let middle = ROW * index as f64 + BAR_Y + BAR_HEIGHT / 2.0;
            let (low, high) = (scale.place(m.low) * 1000.0, scale.place(m.high) * 1000.0);
            path += &format!(
                "M{low:.1} {middle:.1}H{high:.1}M{low:.1} {0:.1}v8M{high:.1} {0:.1}v8",
                middle - 4.0
            );
        }
    }
    svg::stretched("whiskers", height, &path)
}

/// Draws every sample of every row as a dot, in one path instead of hundreds of elements. The dots
/// are strokes of zero length with round ends, which stay round although the coordinate system is
/// stretched.
fn dots(bars: &[Bar<'_>], scale: &Scale, height: f64) -> String {
    let mut path = String::new();
    for (index, bar) in bars.iter().enumerate() {
        let samples: Vec<f64> = bar.measurement.samples.iter().copied().filter(|s| s.is_finite()).collect();
        if samples.len() < 2 {
            continue;
        }
        // Samples are drawn top to bottom in the order taken, so that equal samples do not overlap
        // and drift becomes visible.
        let step = BAR_HEIGHT / samples.len() as f64;
        for (turn, sample) in samples.iter().enumerate() {
            let y = ROW * index as f64 + BAR_Y + step * (turn as f64 + 0.5);
            path += &format!("M{:.1} {:.1}h0", scale.place(*sample) * 1000.0, y);
        }
    }
    svg::stretched("dots", height, &path)
}
