//! The SVG primitives of which the charts consist.
//!
//! Charts are fluid. Values run along x as percentages of the available width, and rows run along y
//! in pixels, so text keeps its size from a phone to a wide screen and nothing is scaled.
//! Everything beside the plot (axis labels on the left, direct labels on the right) extends over
//! the edge of the SVG into the padding of the element around it.
//!
//! ```text
//!   .plot  ┌ padding-left ┬───────── <svg> 0 % … 100 % ─────────┬ padding-right ┐
//!          │   y labels   │   grid, marks, intervals            │ direct labels │
//!          └──────────────┴─────────────────────────────────────┴───────────────┘
//! ```

use super::format;
use super::html::escape;
use super::model::Style;

/// Labels longer than this get a second, shortened form for narrow charts.
const NARROW_CHARS: usize = 30;

/// The surroundings of a chart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    /// Unique on the page; prefix of the ids inside the chart.
    pub(super) id: &'a str,
    /// Title of the chart. Not escaped.
    pub(super) title: &'a str,
    /// Description for readers who cannot see the chart. Not escaped.
    pub(super) desc: &'a str,
    /// Height in px.
    pub(super) height: f64,
    /// Space for the labels left of the plot, in px.
    pub(super) left: f64,
    /// Space for direct labels right of the plot, in px; dropped on narrow charts.
    pub(super) right: f64,
    /// Content below the chart, such as a legend. Markup.
    pub(super) under: &'a str,
}

/// Puts a frame around the marks in `body`.
pub(super) fn chart(frame: Frame<'_>, body: &str) -> String {
    let Frame { id, title, desc, height, left, right, under } = frame;
    let (title, desc) = (escape(title), escape(desc));
    let (height, left, right) = (px(height), px(left), px(right));
    format!(
        "<div class=\"plot\"><div class=\"pad\" style=\"--l:{left}px;--r:{right}px\">\
         <svg role=\"img\" aria-labelledby=\"{id}-t {id}-d\" width=\"100%\" height=\"{height}\">\
         <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{desc}</desc>{body}</svg></div>{under}</div>"
    )
}

/// Formats a number of pixels with at most two decimals.
pub(super) fn px(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Formats a fraction of the width as a percentage.
pub(super) fn percent(fraction: f64) -> String {
    format!("{}%", px(fraction * 100.0))
}

/// Draws a line between two places.
pub(super) fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> String {
    let ((x1, y1), (x2, y2)) = (from, to);
    format!(
        "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
        percent(x1),
        px(y1),
        percent(x2),
        px(y2)
    )
}

/// Draws a path over the whole width, with x from 0 to 1000 for any actual width. Its strokes keep
/// their thickness (CSS: `vector-effect`).
pub(super) fn stretched(class: &str, height: f64, path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    format!(
        "<svg class=\"stretch\" width=\"100%\" height=\"{0}\" viewBox=\"0 0 1000 {0}\" preserveAspectRatio=\"none\">\
         <path class=\"{class}\" d=\"{path}\"/></svg>",
        px(height)
    )
}

/// Which part of a text is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    /// The start: the text extends to the right of its place.
    Start,
    /// The middle: the text is centred on its place.
    Middle,
    /// The end: the text extends to the left of its place.
    End,
}

/// Draws a text at a fraction of the width, shifted by `dx` px. `content` is markup: escape it
/// first.
pub(super) fn text(class: &str, x: f64, dx: f64, y: f64, anchor: Anchor, content: &str) -> String {
    let anchor = match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let shift = if dx == 0.0 { String::new() } else { format!(" dx=\"{}\"", px(dx)) };
    format!("<text class=\"{class}\" x=\"{}\"{shift} y=\"{}\"{anchor}>{content}</text>", percent(x), px(y))
}

/// Returns a label that is shown in full on a wide chart and shortened on a narrow one. Escaped.
pub(super) fn label(full: &str) -> String {
    let short = format::shorten(full, NARROW_CHARS);
    if short == full {
        return escape(full);
    }
    format!("<tspan class=\"w\">{}</tspan><tspan class=\"n\">{}</tspan>", escape(full), escape(&short))
}

/// Draws the marker of a family, filled with its colour and centred on the place.
pub(super) fn marker(style: Style, x: f64, y: f64, tip: &str) -> String {
    let tip = if tip.is_empty() { String::new() } else { format!(" data-tip=\"{}\"", escape(tip)) };
    let (class, shape) = (style.class(), style.marker());
    format!("<use class=\"mk {class}\" href=\"#{shape}\" x=\"{}\" y=\"{}\"{tip}/>", percent(x), px(y))
}

/// Draws the same marker at the head of a row, before its label.
pub(super) fn row_marker(style: Style, y: f64) -> String {
    let (class, shape) = (style.class(), style.marker());
    format!("<use class=\"mk {class}\" href=\"#{shape}\" x=\"6\" y=\"{}\"/>", px(y))
}

/// Returns the same marker for use in HTML text, such as legends and tables.
pub(super) fn key(style: Style) -> String {
    let (class, shape) = (style.class(), style.marker());
    format!(
        "<svg class=\"key\" width=\"14\" height=\"12\" aria-hidden=\"true\"><use class=\"mk {class}\" href=\"#{shape}\" x=\"7\" y=\"6\"/></svg>"
    )
}

/// Estimates the width of a label in px, for a wide sans-serif (DejaVu Sans) at 12.5 px. Other
/// fonts are narrower.
pub(super) fn text_width(text: &str) -> f64 {
    let advance = |character: char| match character {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | ' ' => 4.2,
        'f' | 'r' | 't' | '(' | ')' | '-' | '/' => 5.4,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 12.0,
        'A'..='Z' => 8.9,
        ' '..='~' => 7.9,
        // Any other character may be as wide as it is high.
        _ => 12.5,
    };
    text.chars().map(advance).sum()
}

/// Moves places apart so that neighbours keep `gap`. Each stays as close to its original place as
/// it can, and within `low..=high` while all fit there. Keeps the order of the input.
pub(super) fn spread(places: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    let at = |index: usize| places.get(index).copied().unwrap_or(0.0);
    order.sort_by(|a, b| at(*a).total_cmp(&at(*b)));

    // Clusters that touch merge and settle around the mean of their members (pool adjacent
    // violators).
    struct Cluster {
        offset_sum: f64,
        count: usize,
    }
    let start = |cluster: &Cluster| {
        let height = (cluster.count - 1) as f64 * gap;
        (cluster.offset_sum / cluster.count as f64).clamp(low, (high - height).max(low))
    };
    let mut clusters: Vec<Cluster> = Vec::new();
    for index in &order {
        let mut grown = Cluster { offset_sum: at(*index), count: 1 };
        while let Some(above) = clusters.pop() {
            if start(&above) + above.count as f64 * gap <= start(&grown) {
                clusters.push(above);
                break;
            }
            let shift = above.count as f64 * gap * grown.count as f64;
            grown.offset_sum += above.offset_sum - shift;
            grown.count += above.count;
        }
        clusters.push(grown);
    }

    let mut out = places.to_vec();
    let mut slots = order.iter();
    for cluster in &clusters {
        for step in 0..cluster.count {
            if let Some(place) = slots.next().and_then(|index| out.get_mut(*index)) {
                *place = start(cluster) + step as f64 * gap;
            }
        }
    }
    out
}

/// The shapes of [`marker`] and [`key`], defined once per page. Each is centred on its origin and
/// about 9 px wide.
pub(super) const SYMBOLS: &str = "<svg class=\"symbols\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>\
<circle id=\"m0\" r=\"4.4\"/>\
<rect id=\"m1\" x=\"-4\" y=\"-4\" width=\"8\" height=\"8\"/>\
<path id=\"m2\" d=\"M0-5 5 4H-5Z\"/>\
<path id=\"m3\" d=\"M0-5.6 5.6 0 0 5.6-5.6 0Z\"/>\
<path id=\"m4\" d=\"M0 5 5-4H-5Z\"/>\
<path id=\"m5\" d=\"M-1.7-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7Z\"/>\
<path id=\"m6\" d=\"M-4.6-2.3-2.3-4.6 0-2.3 2.3-4.6 4.6-2.3 2.3 0 4.6 2.3 2.3 4.6 0 2.3-2.3 4.6-4.6 2.3-2.3 0Z\"/>\
</defs></svg>";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::test_config::cases(256))]

        /// Goal: labels never overlap, keep their order, and stay inside while they fit. Method:
        /// random places.
        #[test]
        fn spread_labels_never_overlap(places in proptest::collection::vec(0.0..200.0_f64, 0..12)) {
            let out = spread(&places, 15.0, 0.0, 200.0);
            prop_assert_eq!(out.len(), places.len());
            let mut sorted: Vec<(f64, f64)> = places.iter().copied().zip(out.iter().copied()).collect();
            sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
            for pair in sorted.windows(2) {
                prop_assert!(pair[1].1 - pair[0].1 >= 15.0 - 1e-6);
                prop_assert!(pair[0].0 <= pair[1].0 + 1e-9);
            }
            prop_assert!(out.iter().all(|y| (-1e-6..=200.0 + 1e-6).contains(y)));
        }
    }

    /// Goal: places that are far enough apart do not move. Method: direct.
    #[test]
    fn spread_leaves_room_alone() {
        assert_eq!(spread(&[100.0, 10.0, 50.0], 15.0, 0.0, 200.0), [100.0, 10.0, 50.0]);
        assert_eq!(spread(&[50.0, 50.0], 10.0, 0.0, 200.0), [45.0, 55.0]);
    }

    /// Goal: coordinates are short and never `NaN`, which would break the whole chart. Method:
    /// table.
    #[test]
    fn coordinates_are_plain_numbers() {
        assert_eq!(px(12.0), "12");
        assert_eq!(px(0.126), "0.13");
        assert_eq!(px(-0.001), "0");
        assert_eq!(px(f64::NAN), "0");
        assert_eq!(percent(0.5), "50%");
    }

    /// Goal: long names are shortened on narrow charts, and both forms are escaped. Method: a long
    /// hostile name.
    #[test]
    fn labels_have_a_narrow_form() {
        assert_eq!(label("a<b"), "a&lt;b");
        let long = label("<script> with a very long name that goes on and on");
        assert!(long.contains("class=\"w\"") && long.contains("class=\"n\"") && !long.contains("<script>"));
    }
}
