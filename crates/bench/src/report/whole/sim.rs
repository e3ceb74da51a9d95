//! The simulator's predictions beside the measurements of real stores.

use crate::report::html::escape;
use crate::report::model::Style;
use crate::report::scatter::{Axis, Dot, Scatter};
use crate::report::table;
use crate::suites::sim::{Comparison, Quantity, Report, Verdict};

/// Takes the place of the sentence about data in other articles.
pub(super) const ABOUT: &str = "Each real store received the same writes that the simulator draws; its own statistics are shown next to the prediction.";

/// Returns all sections.
pub(super) fn sections(report: &Report) -> String {
    let verdicts = || report.comparisons.iter().flat_map(|comparison| &comparison.verdicts);
    let limited: Vec<&Verdict> = verdicts().filter(|verdict| verdict.limit.is_some()).collect();
    let held = limited.iter().filter(|verdict| verdict.holds()).count();
    let signs = report.signs.iter().filter(|sign| sign.holds()).count();
    let versions: Vec<String> = report.versions.iter().map(|version| escape(version)).collect();
    let mut out = format!(
        "<section id=\"verdict\"><h2>Predicted and measured</h2><p class=\"lead\">Against {}: <b>{held} of {}</b> figures are within their limits, and \
         <b>{signs} of {}</b> changes of one setting turn the way that was predicted.</p>{}",
        versions.join(" and "),
        limited.len(),
        report.signs.len(),
        chart(report)
    );
    let skipped: String = report.skipped.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
    if !skipped.is_empty() {
        out += &format!("<div class=\"trust\"><h3>Skipped</h3><ul>{skipped}</ul></div>");
    }
    out + "</section>" + &figures(report)
}

/// Renders write amplification with one point per case. On the diagonal, a prediction is exact.
fn chart(report: &Report) -> String {
    let dot = |(at, comparison): (usize, &Comparison)| {
        let verdict = comparison.verdict(Quantity::WriteAmplification)?;
        let style = Style::line(usize::from(comparison.version.to_lowercase().contains("rocksdb")));
        Some((at, Dot { label: comparison.case.clone(), style, x: verdict.predicted, y: verdict.measured }))
    };
    let dots: Vec<Dot> = report.comparisons.iter().enumerate().filter_map(dot).map(|(_, dot)| dot).collect();
    if dots.is_empty() {
        return String::new();
    }
    let scatter = Scatter {
        id: "scatter".to_owned(),
        title: "Write amplification",
        sense: "equal is better",
        x: Axis { title: "predicted", unit: "" },
        y: Axis { title: "measured", unit: "" },
        dots,
    };
    scatter.render()
}

fn figures(report: &Report) -> String {
    let head = ["Case", "Quantity", "Predicted", "Measured", "Error", ""].map(str::to_owned);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for comparison in &report.comparisons {
        for verdict in &comparison.verdicts {
            let mark = match (verdict.limit, verdict.holds()) {
                (None, _) => "",
                (_, true) => "within its limit",
                (_, false) => "<span class=\"bad\">over its limit</span>",
            };
            rows.push(vec![
                escape(&comparison.case),
                escape(&verdict.quantity.name()),
                shown(verdict, verdict.predicted),
                shown(verdict, verdict.measured),
                format!("{:+.1} %", verdict.error * 100.0),
                mark.to_owned(),
            ]);
        }
    }
    format!("<section id=\"figures\"><h2>All figures</h2>{}</section>", table::folded(&head, &rows))
}

fn shown(verdict: &Verdict, value: f64) -> String {
    match (value.is_finite(), verdict.quantity.is_share()) {
        (false, _) => crate::report::format::NONE.to_owned(),
        (true, true) => format!("{:.1} %", value * 100.0),
        (true, false) => format!("{value:.3}"),
    }
}
