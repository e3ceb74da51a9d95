//! The trade-off chart: two quantities of each contender against each other.
//!
//! Labels are placed greedily around their points at the narrowest width that shows labels. A wider
//! chart only moves points apart, so labels that do not overlap at that width never do. A label
//! without a free place is dropped; the tooltip and the table still show the name.

use super::format;
use super::html::escape;
use super::model::Style;
use super::scale::{Scale, prefix_base};
use super::svg::{self, Anchor, Frame, line, text};

const PLOT_HEIGHT: f64 = 340.0;
const TOP: f64 = 14.0;
const AXIS_HEIGHT: f64 = 42.0;
/// The width for which labels are placed, in px: slightly less than the narrowest chart that shows
/// them.
const REFERENCE_WIDTH: f64 = 530.0;
const LINE_HEIGHT: f64 = 15.0;
/// Maximum length of a label, in characters.
const LABEL_CHARS: usize = 28;

/// One contender.
#[derive(Debug, Clone)]
pub(super) struct Dot {
    /// The contender's name. Not escaped.
    pub(super) label: String,
    /// Colour and marker of its family.
    pub(super) style: Style,
    /// Value on the x axis.
    pub(super) x: f64,
    /// Value on the y axis.
    pub(super) y: f64,
}

/// One axis of the chart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis<'a> {
    /// Title of the axis.
    pub(super) title: &'a str,
    /// Unit of the axis.
    pub(super) unit: &'a str,
}

/// A scatter plot.
#[derive(Debug)]
pub(super) struct Scatter<'a> {
    /// Unique on the page.
    pub(super) id: String,
    /// Title of the chart. Not escaped.
    pub(super) title: &'a str,
    /// Which corner is better.
    pub(super) sense: &'a str,
    /// The horizontal axis.
    pub(super) x: Axis<'a>,
    /// The vertical axis.
    pub(super) y: Axis<'a>,
    /// The points, in any order. Ours are drawn on top and labelled first.
    pub(super) dots: Vec<Dot>,
}

/// An occupied rectangle, in px at the reference width.
#[derive(Debug, Clone, Copy)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area {
    fn meets(&self, other: &Area) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

impl Scatter<'_> {
    /// Renders the chart and its legend, or a sentence when there is no value.
    pub(super) fn render(mut self) -> String {
        self.dots.retain(|dot| dot.x.is_finite() && dot.y.is_finite() && dot.x > 0.0 && dot.y > 0.0);
        if self.dots.is_empty() {
            return "<p class=\"nothing\">No values.</p>".to_owned();
        }
        self.dots.sort_by_key(|dot| !dot.style.ours);
        let along = |pick: fn(&Dot) -> f64| self.dots.iter().map(pick).collect::<Vec<_>>();
        let x_scale = Scale::fitting(&along(|dot| dot.x), 5, prefix_base(self.x.unit));
        let y_scale = Scale::fitting(&along(|dot| dot.y), 5, prefix_base(self.y.unit));

        let ticks: Vec<String> =
            y_scale.ticks().iter().map(|tick| format::tick(*tick, self.y.unit)).collect();
        let left = ticks.iter().map(|label| svg::text_width(label)).fold(24.0, f64::max) + 10.0;
        let mut body = self.grid(&x_scale, &y_scale, &ticks);
        let places: Vec<(f64, f64)> =
            self.dots.iter().map(|dot| (x_scale.place(dot.x), height_of(&y_scale, dot.y))).collect();
        let labels = self.place_labels(&places);
        // Our contenders are labelled first, and drawn last so that they are on top.
        for ((dot, place), label) in self.dots.iter().zip(&places).zip(&labels).rev() {
            body += &self.mark(dot, *place, label.as_ref());
        }
        let describe = |dot: &Dot| self.tip(dot).replace('\n', ", ");
        let all: Vec<String> = self.dots.iter().map(describe).collect();
        let frame = Frame {
            id: &self.id,
            title: self.title,
            desc: &format!("{}.", all.join("; ")),
            height: TOP + PLOT_HEIGHT + AXIS_HEIGHT,
            left,
            right: 14.0,
            under: &self.legend(),
        };
        let log = match (x_scale.is_log(), y_scale.is_log()) {
            (true, true) => ", log scales",
            (true, false) => ", log scale across",
            (false, true) => ", log scale upwards",
            (false, false) => "",
        };
        format!(
            "<div class=\"chart scatter\"><h3>{} <small>{}{log}</small></h3>{}</div>",
            escape(self.title),
            escape(self.sense),
            svg::chart(frame, &body)
        )
    }

    fn grid(&self, x_scale: &Scale, y_scale: &Scale, labels: &[String]) -> String {
        let bottom = TOP + PLOT_HEIGHT;
        let mut out = String::new();
        for (value, label) in y_scale.ticks().iter().zip(labels) {
            let y = height_of(y_scale, *value);
            out += &line("grid", (0.0, y), (1.0, y));
            out += &text("tick", 0.0, -10.0, y + 4.0, Anchor::End, &escape(label));
        }
        let crowded = x_scale.ticks().len() > 6;
        for (index, value) in x_scale.ticks().iter().enumerate() {
            let x = x_scale.place(*value);
            let class = if crowded && index % 2 == 1 { "tick w" } else { "tick" };
            out += &line("grid faint", (x, TOP), (x, bottom));
            let label = escape(&format::tick(*value, self.x.unit));
            out += &text(class, x, 0.0, bottom + 18.0, Anchor::Middle, &label);
        }
        out += &line("axis", (0.0, bottom), (1.0, bottom));
        out += &text("tick", 0.5, 0.0, bottom + 36.0, Anchor::Middle, &escape(self.x.title));
        out + &text("tick", 0.0, 6.0, TOP - 3.0, Anchor::Start, &escape(self.y.title))
    }

    /// Returns a free place for each label: anchor, offset along x, offset along y.
    fn place_labels(&self, places: &[(f64, f64)]) -> Vec<Option<(Anchor, f64, f64)>> {
        let around = |(x, y): &(f64, f64), reach: f64| {
            let x = x * REFERENCE_WIDTH;
            Area { left: x - reach, right: x + reach, top: y - reach, bottom: y + reach }
        };
        let mut taken: Vec<Area> = places.iter().map(|place| around(place, 5.0)).collect();
        let sheet = Area { left: 0.0, right: REFERENCE_WIDTH, top: TOP, bottom: TOP + PLOT_HEIGHT };
        let candidates = [
            (Anchor::Start, 10.0, 4.0),
            (Anchor::End, -10.0, 4.0),
            (Anchor::Middle, 0.0, -10.0),
            (Anchor::Middle, 0.0, 18.0),
            (Anchor::Start, 8.0, -7.0),
            (Anchor::Start, 8.0, 15.0),
            (Anchor::End, -8.0, -7.0),
            (Anchor::End, -8.0, 15.0),
        ];
        let mut out = Vec::with_capacity(places.len());
        for (dot, place) in self.dots.iter().zip(places) {
            let width = svg::text_width(&format::shorten(&dot.label, LABEL_CHARS));
            let free = candidates.iter().find_map(|(anchor, dx, dy)| {
                let at = place.0 * REFERENCE_WIDTH + dx;
                let left = match anchor {
                    Anchor::Start => at,
                    Anchor::Middle => at - width / 2.0,
                    Anchor::End => at - width,
                };
                let baseline = place.1 + dy;
                let area = Area {
                    left,
                    right: left + width,
                    top: baseline - LINE_HEIGHT + 4.0,
                    bottom: baseline + 3.0,
                };
                let inside = left >= sheet.left
                    && area.right <= sheet.right
                    && area.top >= sheet.top
                    && area.bottom <= sheet.bottom;
                (inside && !taken.iter().any(|other| other.meets(&area)))
                    .then_some((area, (*anchor, *dx, *dy)))
            });
            if let Some((area, _)) = free {
                taken.push(area);
            }
            out.push(free.map(|(_, label)| label));
        }
        out
    }

    fn mark(&self, dot: &Dot, place: (f64, f64), label: Option<&(Anchor, f64, f64)>) -> String {
        let side = if dot.style.ours { "ours" } else { "peer" };
        let mut out =
            format!("<g class=\"spot {side}\">{}", svg::marker(dot.style, place.0, place.1, &self.tip(dot)));
        if let Some((anchor, dx, dy)) = label {
            let name = escape(&format::shorten(&dot.label, LABEL_CHARS));
            out += &text("name w", place.0, *dx, place.1 + dy, *anchor, &name);
        }
        out + "</g>"
    }

    fn tip(&self, dot: &Dot) -> String {
        let (x, y) = (format::quantity(dot.x, self.x.unit), format::quantity(dot.y, self.y.unit));
        format!("{}\n{}: {y}\n{}: {x}", dot.label, self.y.title, self.x.title)
    }

    fn legend(&self) -> String {
        let mut seen: Vec<Style> = Vec::new();
        let mut items = String::new();
        for dot in &self.dots {
            let shown = self.dots.iter().filter(|other| other.style == dot.style).count();
            if seen.contains(&dot.style) {
                continue;
            }
            seen.push(dot.style);
            let more = if shown > 1 { format!(" and {} more", shown - 1) } else { String::new() };
            items += &format!("<li>{}{}{more}</li>", svg::key(dot.style), escape(&dot.label));
        }
        format!("<ul class=\"legend n\">{items}</ul>")
    }
}

fn height_of(scale: &Scale, value: f64) -> f64 {
    TOP + PLOT_HEIGHT * (1.0 - scale.place(value))
}
