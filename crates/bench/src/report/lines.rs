//! Line charts: how a value changes over threads, entries or percentiles.
//!
//! ```text
//!    4 M/s ┤            ___●───  ● cairn mmap      direct labels, moved apart if they collide
//!    2 M/s ┤     ●────●─────■──  ■ lmdb            (on a narrow chart: a legend below)
//!          └─────┬────┬─────┬──
//!                1    2     8   threads
//! ```

use super::format;
use super::html::escape;
use super::model::Style;
use super::scale::{Scale, prefix_base};
use super::svg::{self, Anchor, Frame, line, px, text};

const PLOT_HEIGHT: f64 = 250.0;
const TOP: f64 = 18.0;
const AXIS_HEIGHT: f64 = 42.0;
const LABEL_GAP: f64 = 16.0;
/// Approximate number of labels below an axis with many points.
const LABELS: usize = 8;
/// Maximum length of a direct label, in characters.
pub(super) const DIRECT_CHARS: usize = 26;

/// One labelled place on the x axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stop {
    /// Fraction of the width.
    pub(super) place: f64,
    /// Text below the stop; empty for stops without a label. Not escaped.
    pub(super) label: String,
}

/// One point of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    /// Index of its stop.
    pub(super) stop: usize,
    /// The value.
    pub(super) y: f64,
    /// The interval, if there is one.
    pub(super) interval: Option<(f64, f64)>,
}

/// One line.
#[derive(Debug, Clone)]
pub(super) struct Series {
    /// The contender. Not escaped.
    pub(super) label: String,
    /// The label beside the end of the line, at most [`DIRECT_CHARS`] long. Not escaped.
    pub(super) short: String,
    /// Colour and marker of the contender's family.
    pub(super) style: Style,
    /// The points, in the order of the stops.
    pub(super) points: Vec<Point>,
}

/// A line chart.
#[derive(Debug)]
pub(super) struct LineChart<'a> {
    /// Unique on the page.
    pub(super) id: String,
    /// Title of the chart. Not escaped.
    pub(super) title: &'a str,
    /// Which way is better, such as `higher is better`.
    pub(super) sense: &'a str,
    /// Title of the x axis.
    pub(super) x_title: &'a str,
    /// The stops of the x axis.
    pub(super) stops: Vec<Stop>,
    /// Unit of the y axis.
    pub(super) unit: &'a str,
    /// The lines, in any order. Lines of our contenders are drawn on top.
    pub(super) series: Vec<Series>,
    /// Vertical marks, each with place and text, such as the number of cores.
    pub(super) marks: Vec<(f64, String)>,
}

impl LineChart<'_> {
    /// Renders the chart and its legend, or a sentence when there is no value.
    pub(super) fn render(mut self) -> String {
        for series in &mut self.series {
            series.points.retain(|point| point.y.is_finite() && point.y > 0.0);
        }
        self.series.retain(|series| !series.points.is_empty());
        if self.series.is_empty() {
            return "<p class=\"nothing\">No values.</p>".to_owned();
        }
        self.series.sort_by_key(|series| series.style.ours);

        let values: Vec<f64> = self.series.iter().flat_map(|s| s.points.iter().map(|p| p.y)).collect();
        let scale = Scale::fitting(&values, 5, prefix_base(self.unit));
        let labels: Vec<String> = scale.ticks().iter().map(|tick| format::tick(*tick, self.unit)).collect();
        let left = labels.iter().map(|label| svg::text_width(label)).fold(24.0, f64::max) + 10.0;
        let direct = self.series.iter().map(|s| 1.1 * svg::text_width(&s.short));
        let right = direct.fold(40.0, f64::max) + 34.0;

        let mut body = self.grid(&scale, &labels);
        let ends = self.label_places(&scale);
        for (series, end) in self.series.iter().zip(ends) {
            body += &self.series_marks(series, &scale, end);
        }
        let log = if scale.is_log() { ", log scale" } else { "" };
        let frame = Frame {
            id: &self.id,
            title: self.title,
            desc: &self.description(),
            height: PLOT_HEIGHT + TOP + AXIS_HEIGHT,
            left,
            right,
            under: &self.legend(),
        };
        format!(
            "<div class=\"chart lines\"><h3>{} <small>{}{log}</small></h3>{}</div>",
            escape(self.title),
            escape(self.sense),
            svg::chart(frame, &body)
        )
    }

    fn grid(&self, scale: &Scale, labels: &[String]) -> String {
        let mut out = String::new();
        for (value, label) in scale.ticks().iter().zip(labels) {
            let y = height_of(scale, *value);
            out += &line("grid", (0.0, y), (1.0, y));
            out += &text("tick", 0.0, -10.0, y + 4.0, Anchor::End, &escape(label));
        }
        let bottom = TOP + PLOT_HEIGHT;
        for stop in self.stops.iter().filter(|stop| !stop.label.is_empty()) {
            out += &line("grid faint", (stop.place, TOP), (stop.place, bottom));
            out += &text("tick", stop.place, 0.0, bottom + 18.0, Anchor::Middle, &escape(&stop.label));
        }
        for (place, label) in &self.marks {
            out += &line("mark", (*place, TOP), (*place, bottom));
            let (dx, anchor) = if *place > 0.8 { (-6.0, Anchor::End) } else { (6.0, Anchor::Start) };
            out += &text("tick mark-label", *place, dx, TOP - 6.0, anchor, &escape(label));
        }
        out += &line("axis", (0.0, bottom), (1.0, bottom));
        out + &text("tick", 0.5, 0.0, bottom + 36.0, Anchor::Middle, &escape(self.x_title))
    }

    /// Returns the heights of the direct labels: beside the ends of their lines, moved apart.
    fn label_places(&self, scale: &Scale) -> Vec<f64> {
        let end_of = |series: &Series| series.points.last().map_or(TOP, |point| height_of(scale, point.y));
        let ends: Vec<f64> = self.series.iter().map(end_of).collect();
        svg::spread(&ends, LABEL_GAP, TOP, TOP + PLOT_HEIGHT)
    }

    fn series_marks(&self, series: &Series, scale: &Scale, label_y: f64) -> String {
        let (class, side) = (series.style.class(), if series.style.ours { "ours" } else { "peer" });
        let place_of = |point: &Point| self.stops.get(point.stop).map_or(0.5, |stop| stop.place);
        let mut out = format!("<g class=\"series {side} {class}\">");

        let corner =
            |point: &Point| format!("{} {}", px(place_of(point) * 1000.0), px(height_of(scale, point.y)));
        let corners: Vec<String> = series.points.iter().map(corner).collect();
        out += &svg::stretched("stroke", TOP + PLOT_HEIGHT, &format!("M{}", corners.join("L")));
        for point in &series.points {
            let x = place_of(point);
            if let Some((low, high)) = point.interval {
                out += &line("whisker", (x, height_of(scale, low)), (x, height_of(scale, high)));
            }
            out += &svg::marker(series.style, x, height_of(scale, point.y), &self.tip(series, point));
        }
        out += &self.direct_label(series, scale, label_y);
        out + "</g>"
    }

    fn direct_label(&self, series: &Series, scale: &Scale, y: f64) -> String {
        let Some(last) = series.points.last() else { return String::new() };
        let reaches_edge = self.stops.get(last.stop).is_some_and(|stop| stop.place > 0.999);
        let leader = if reaches_edge {
            format!("<path class=\"leader\" d=\"M7 {}L18 {}\"/>", px(height_of(scale, last.y)), px(y))
        } else {
            String::new()
        };
        let style = series.style;
        format!(
            "<svg class=\"w over\" x=\"100%\">{leader}<use class=\"mk {}\" href=\"#{}\" x=\"25\" y=\"{}\"/>\
             <text class=\"name\" x=\"34\" y=\"{}\">{}</text></svg>",
            style.class(),
            style.marker(),
            px(y),
            px(y + 4.0),
            escape(&series.short)
        )
    }

    fn tip(&self, series: &Series, point: &Point) -> String {
        let stop = self.stops.get(point.stop).map_or("", |stop| stop.label.as_str());
        let mut out = format!("{}\n{}", series.label, format::quantity(point.y, self.unit));
        if !stop.is_empty() {
            out += &format!(" at {stop} {}", self.x_title);
        }
        if let Some((low, high)) = point.interval {
            out += &format!("\ninterval {}", format::interval(low, high, self.unit));
        }
        out
    }

    fn legend(&self) -> String {
        let item = |series: &Series| {
            let class = if series.style.ours { " class=\"ours\"" } else { "" };
            format!("<li{class}>{}{}</li>", svg::key(series.style), escape(&series.label))
        };
        let mut ours_first: Vec<&Series> = self.series.iter().collect();
        ours_first.sort_by_key(|series| series.style.family);
        format!("<ul class=\"legend n\">{}</ul>", ours_first.into_iter().map(item).collect::<String>())
    }

    fn description(&self) -> String {
        let end = |series: &Series| {
            let ends = series.points.first().zip(series.points.last());
            let figures = ends.map(|(first, last)| {
                let at = |point: &Point| self.stops.get(point.stop).map_or("", |stop| stop.label.as_str());
                let (from, to) = (format::quantity(first.y, self.unit), format::quantity(last.y, self.unit));
                format!("{from} at {} to {to} at {}", at(first), at(last))
            });
            format!("{}: {}", series.label, figures.unwrap_or_default())
        };
        let all: Vec<String> = self.series.iter().rev().map(end).collect();
        format!("Lines over {}. {}.", self.x_title, all.join("; "))
    }
}

fn height_of(scale: &Scale, value: f64) -> f64 {
    TOP + PLOT_HEIGHT * (1.0 - scale.place(value))
}

/// Returns stops at the distinct `values`, on a logarithmic axis from the first to the last.
pub(super) fn log_stops(values: &[u64], label: impl Fn(u64) -> String) -> Vec<Stop> {
    let mut distinct = values.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let scale = Scale::log_at(&distinct.iter().map(|value| *value as f64).collect::<Vec<_>>());
    distinct.into_iter().map(|value| Stop { place: scale.place(value as f64), label: label(value) }).collect()
}

/// Returns evenly spaced stops, for axes of names.
pub(super) fn even_stops(labels: &[String]) -> Vec<Stop> {
    let last = labels.len().saturating_sub(1).max(1) as f64;
    let place = |index: usize| if labels.len() == 1 { 0.5 } else { index as f64 / last };
    labels
        .iter()
        .enumerate()
        .map(|(index, label)| Stop { place: place(index), label: label.clone() })
        .collect()
}

/// Returns stops at these places, about [`LABELS`] of them labelled.
pub(super) fn some_stops(places: &[f64], label: impl Fn(usize) -> String) -> Vec<Stop> {
    let every = places.len().div_ceil(LABELS).max(1);
    let stop = |(at, place): (usize, &f64)| {
        // The last stop is always labelled, and a stop too close to it never is.
        let from_end = places.len() - 1 - at;
        let labelled = from_end == 0 || (at.is_multiple_of(every) && from_end * 2 > every);
        Stop { place: *place, label: if labelled { label(at) } else { String::new() } }
    };
    places.iter().enumerate().map(stop).collect()
}
