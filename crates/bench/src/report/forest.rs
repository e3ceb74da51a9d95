//! Forest plots: ratios with their intervals around the line where both sides are equal.
//!
//! ```text
//!                 ░░ behind ░░│ ahead
//!   lmdb          ░░░░░░░░░░░░│   ├──●──┤        2.10× (1.95 to 2.31)
//!   cdb           ░░░├●┤░░░░░░│                  0.71× (0.68 to 0.75)
//! ```
//! Names and values stand beside the plot on a wide page and above their rows on a narrow one.

use super::format;
use super::html::escape;
use super::model::Style;
use super::scale::Scale;
use super::svg::{self, Anchor, Frame, line, percent, px, text};
use crate::core::ratio::{Outcome, Ratio};

const ROW: f64 = 34.0;
const NAME_CHARS: usize = 44;
const HEAD: f64 = 20.0;
const AXIS_HEIGHT: f64 = 24.0;

/// One row: a ratio with its label.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Text beside the row. Not escaped.
    pub(super) label: String,
    /// Marker beside the label.
    pub(super) style: Style,
    /// The ratio; above one means ahead.
    pub(super) ratio: Ratio,
    /// Further lines of the tooltip. Not escaped.
    pub(super) detail: String,
}

/// A chart of ratios.
#[derive(Debug)]
pub(super) struct Forest<'a> {
    /// Unique on the page.
    pub(super) id: &'a str,
    /// Title of the chart. Not escaped.
    pub(super) title: &'a str,
    /// The meanings of a ratio below one and of a ratio above one.
    pub(super) sides: (&'a str, &'a str),
    /// The ratios, in the order shown.
    pub(super) rows: Vec<Row>,
}

impl Forest<'_> {
    /// Renders the chart; empty without rows.
    pub(super) fn render(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let scale = self.scale();
        let bottom = HEAD + ROW * self.rows.len() as f64;
        let one = scale.place(1.0);
        let mut body = format!(
            "<rect class=\"behind\" x=\"0\" y=\"{HEAD}\" width=\"{}\" height=\"{}\"/>",
            percent(one),
            px(bottom - HEAD)
        );
        for value in scale.ticks() {
            let x = scale.place(*value);
            let anchor = if x < 0.02 {
                Anchor::Start
            } else if x > 0.98 {
                Anchor::End
            } else {
                Anchor::Middle
            };
            body += &line("grid", (x, HEAD), (x, bottom));
            body += &text("tick", x, 0.0, bottom + 16.0, anchor, &tick(*value));
        }
        body += &line("equal", (one, HEAD - 6.0), (one, bottom));
        // The name of each side shows only where it has room. On a narrow chart it takes a larger
        // share of the width.
        let class = |share: f64| if share > 0.3 { "tick" } else { "tick w" };
        if one > 0.12 {
            body +=
                &text(class(one), one, -8.0, HEAD - 6.0, Anchor::End, &format!("◂ {}", escape(self.sides.0)));
        }
        if one < 0.88 {
            let name = format!("{} ▸", escape(self.sides.1));
            body += &text(class(1.0 - one), one, 8.0, HEAD - 6.0, Anchor::Start, &name);
        }
        for (index, row) in self.rows.iter().enumerate() {
            body += &row_marks(row, &scale, HEAD + ROW * index as f64);
        }
        let said: Vec<String> =
            self.rows.iter().map(|row| format!("{} {}", row.label, in_words(row.ratio))).collect();
        let frame = Frame {
            id: self.id,
            title: self.title,
            desc: &format!("Ratios with their intervals: {}.", said.join("; ")),
            height: bottom + AXIS_HEIGHT,
            left: widest(self.rows.iter().map(|row| format::shorten(&row.label, NAME_CHARS))) + 40.0,
            right: widest(self.rows.iter().map(|row| in_words(row.ratio))) + 34.0,
            under: "",
        };
        let title = escape(self.title);
        format!(
            "<div class=\"chart forest\"><h3>{title} <small>ratio of medians with its interval, log scale</small></h3>{}</div>",
            svg::chart(frame, &body)
        )
    }

    /// Returns an axis that covers all intervals and a little on both sides of one, so that the
    /// losing side is always visible.
    fn scale(&self) -> Scale {
        let ends = self.rows.iter().flat_map(|row| {
            let (low, high) = row.ratio.interval.unwrap_or((row.ratio.point, row.ratio.point));
            [low, high, row.ratio.point]
        });
        let (low, high) = ends.fold((0.9_f64, 1.1_f64), |(low, high), v| (low.min(v), high.max(v)));
        Scale::log_at(&ticks(low, high))
    }
}

/// Returns the ratios that label an axis: the finest tier of steps of which few enough cover
/// `low..=high`. One is always among them.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    const FINE: [f64; 7] = [0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25];
    const MEDIUM: [f64; 9] = [0.4, 0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5];
    const MOST: usize = 7;
    let decades = |multiples: &'static [f64], every: usize| {
        (-12..=12).step_by(every).flat_map(move |power| multiples.iter().map(move |m| m * 10_f64.powi(power)))
    };
    let tiers: [Vec<f64>; 5] = [
        FINE.to_vec(),
        MEDIUM.to_vec(),
        decades(&[1.0, 2.0, 5.0], 1).collect(),
        decades(&[1.0], 1).collect(),
        decades(&[1.0], 4).collect(),
    ];
    for tier in &tiers {
        let first = tier.iter().rposition(|tick| *tick <= low * (1.0 + 1e-9));
        let last = tier.iter().position(|tick| *tick >= high * (1.0 - 1e-9));
        if let (Some(first), Some(last)) = (first, last) {
            let ticks = tier.get(first..=last).unwrap_or_default();
            if ticks.len() <= MOST {
                return ticks.to_vec();
            }
        }
    }
    vec![1e-12, 1.0, 1e12]
}

fn row_marks(row: &Row, scale: &Scale, top: f64) -> String {
    let middle = top + 22.0;
    let tip = format!("{}\n{}\n{}", row.label, in_words(row.ratio), row.detail);
    let class = tone(row.ratio.outcome());
    let side = if row.style.ours { "ours" } else { "peer" };
    let mut out = format!("<g class=\"ratio {side} {class}\" data-tip=\"{}\">", escape(tip.trim_end()));
    out += &format!("<rect class=\"hit\" x=\"0\" y=\"{}\" width=\"100%\" height=\"{ROW}\"/>", px(top));
    out += &names(row, top, middle);
    if let Some((low, high)) = row.ratio.interval {
        let (low, high) = (scale.place(low), scale.place(high));
        out += &line("span", (low, middle), (high, middle));
        out += &line("span", (low, middle - 4.0), (low, middle + 4.0));
        out += &line("span", (high, middle - 4.0), (high, middle + 4.0));
    }
    out += &format!(
        "<circle class=\"point\" cx=\"{}\" cy=\"{}\" r=\"4\"/>",
        percent(scale.place(row.ratio.point)),
        px(middle)
    );
    out + "</g>"
}

/// Draws name and values twice, beside the plot and above the row. The style sheet shows one of the
/// two.
fn names(row: &Row, top: f64, middle: f64) -> String {
    let words = in_words(row.ratio);
    let (point, rest) = words.split_once(' ').unwrap_or((words.as_str(), ""));
    let figure = format!("<tspan class=\"fig\">{} {}</tspan>", sign(row.ratio), escape(point));
    let (class, shape) = (row.style.class(), row.style.marker());
    let name = escape(&format::shorten(&row.label, NAME_CHARS));
    let beside = format!(
        "<g class=\"w\"><use class=\"mk {class}\" href=\"#{shape}\" x=\"-14\" y=\"{}\"/>{}{}</g>",
        px(middle),
        text("name", 0.0, -26.0, middle + 4.0, Anchor::End, &name),
        text(
            "val",
            1.0,
            14.0,
            middle + 4.0,
            Anchor::Start,
            &format!("{figure} <tspan class=\"ci\">{}</tspan>", escape(rest))
        )
    );
    let above = format!(
        "<g class=\"n\">{}{}{}</g>",
        svg::row_marker(row.style, top + 7.0),
        text("name", 0.0, 17.0, top + 11.0, Anchor::Start, &escape(&format::shorten(&row.label, 30))),
        text("val", 1.0, 0.0, top + 11.0, Anchor::End, &figure)
    );
    beside + &above
}

fn widest(labels: impl Iterator<Item = String>) -> f64 {
    // Contenders of ours are bold, which is wider.
    labels.map(|label| 1.08 * svg::text_width(&label)).fold(0.0, f64::max)
}

fn tick(value: f64) -> String {
    if !(1e-3..1e5).contains(&value) {
        return format!("{value:e}×");
    }
    // Powers of ten are not exact in binary, so the value is rounded; an axis needs no more than
    // four digits.
    let text = format!("{value:.4}");
    format!("{}×", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns `3.12× (2.95 to 3.31)`, or the ratio with a note on why it has no such interval.
pub(super) fn in_words(ratio: Ratio) -> String {
    match ratio.interval {
        Some((low, high)) if high / low < 1.0005 => format!("{} (exact)", format::ratio(ratio.point)),
        Some((low, high)) => {
            let (low, high) = (format::ratio(low), format::ratio(high));
            format!(
                "{} ({} to {})",
                format::ratio(ratio.point),
                low.trim_end_matches('×'),
                high.trim_end_matches('×')
            )
        }
        None => format!("{} (too few samples)", format::ratio(ratio.point)),
    }
}

/// Returns the CSS class of an outcome.
pub(super) fn tone(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Better => "better",
        Outcome::Worse => "worse",
        Outcome::Unclear | Outcome::TooFew => "unclear",
    }
}

/// Returns the sign of a ratio, so that colour is never the only cue. `~` is the field's sign for
/// "not significant", and `?` means that nothing is known.
pub(super) fn sign(ratio: Ratio) -> &'static str {
    match ratio.outcome() {
        Outcome::Better => "▲",
        Outcome::Worse => "▼",
        Outcome::Unclear if ratio.interval == Some((1.0, 1.0)) => "=",
        Outcome::Unclear => "~",
        Outcome::TooFew => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::test_config::cases(256))]

        /// Goal: an axis of ratios covers the ratios, includes one and has few labels. Method: any
        /// range around one.
        #[test]
        fn axes_cover_and_hold_one(down in 0.0..20.0_f64, up in 0.0..20.0_f64) {
            let (low, high) = ((-down).exp().min(0.9), up.exp().max(1.1));
            let ticks = ticks(low, high);
            prop_assert!(ticks.contains(&1.0) && (3..=7).contains(&ticks.len()), "{ticks:?}");
            prop_assert!(ticks[0] <= low * 1.001 && ticks[ticks.len() - 1] >= high * 0.999, "{ticks:?}");
        }
    }

    /// Goal: axis labels are short. Method: every kind of tick.
    #[test]
    fn tick_labels_are_short() {
        let labels: Vec<String> = [0.67, 1.0, 1.25, 0.05, 1e-12, 1e12, 0.2].map(tick).to_vec();
        assert_eq!(labels, ["0.67×", "1×", "1.25×", "0.05×", "1e-12×", "1e12×", "0.2×"]);
    }
}
