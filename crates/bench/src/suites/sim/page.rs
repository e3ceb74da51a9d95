//! Formats a report as text for a terminal, and as a page of the docs with charts.

use std::fmt::Write;

use super::compare::{Quantity, Summary};
use super::{Report, Verdict};

/// A row of the summary: its title, and the quantities that it includes.
type Row = (&'static str, fn(Quantity) -> bool);

const ROWS: [Row; 7] = [
    ("write amplification", |it| it == Quantity::WriteAmplification),
    ("space amplification", |it| it == Quantity::SpaceAmplification),
    ("levels of 100 MB and more", |it| matches!(it, Quantity::Level(_))),
    ("filters and blocks a lookup", |it| matches!(it, Quantity::FiltersSkipping | Quantity::Blocks)),
    ("cache hit rate, points", |it| it == Quantity::CacheHit),
    ("timed: throughput", |it| it == Quantity::Throughput),
    ("timed: stall share, points", |it| it == Quantity::StallShare),
];

fn show(verdict: &Verdict, value: f64) -> String {
    match verdict.quantity {
        Quantity::CacheHit | Quantity::StallShare => format!("{:.1} %", value * 100.0),
        Quantity::Level(_) | Quantity::Throughput => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

fn mark(verdict: &Verdict) -> &'static str {
    match (verdict.limit, verdict.holds()) {
        (None, _) => "",
        (_, true) => "ok",
        (_, false) => "off",
    }
}

/// Formats a report for a terminal.
pub fn to_text(report: &Report) -> String {
    let mut text = format!("{}\n\n", report.versions.join(", "));
    let head = ("case", "quantity", "predicted", "measured", "error");
    let _ = writeln!(text, "{:26} {:20} {:>11} {:>11} {:>9}", head.0, head.1, head.2, head.3, head.4);
    for comparison in &report.comparisons {
        for (at, verdict) in comparison.verdicts.iter().enumerate() {
            let case = if at == 0 { comparison.case.as_str() } else { "" };
            let _ = writeln!(
                text,
                "{case:26} {:20} {:>11} {:>11} {:>+8.1}% {}",
                verdict.quantity.name(),
                show(verdict, verdict.predicted),
                show(verdict, verdict.measured),
                verdict.error * 100.0,
                mark(verdict),
            );
        }
    }
    let _ = writeln!(text);
    for (title, chosen) in ROWS {
        if let Some(summary) = Summary::of(&report.comparisons, chosen) {
            let Summary { count, within, mean, worst } = summary;
            let _ = writeln!(
                text,
                "{title:30} {within} of {count} within the limit, mean error {:.1} %, worst {:.1} %",
                mean * 100.0,
                worst * 100.0
            );
        }
    }
    let right = report.signs.iter().filter(|sign| sign.holds()).count();
    let _ = writeln!(text, "{:30} {right} of {} right", "signs of one-setting changes", report.signs.len());
    if let Some(note) = held_out(report) {
        let _ = writeln!(text, "{note}");
    }
    for sign in report.signs.iter().filter(|sign| !sign.holds()) {
        let (predicted, measured) = (sign.predicted * 100.0, sign.measured * 100.0);
        let _ = writeln!(
            text,
            "  {} against {}: predicted {predicted:+.1} %, measured {measured:+.1} %",
            sign.case, sign.base
        );
    }
    for line in &report.skipped {
        let _ = writeln!(text, "skipped: {line}");
    }
    text
}

/// Returns a note on the number of held-out cases, if there are any.
fn held_out(report: &Report) -> Option<String> {
    let count = report.comparisons.iter().filter(|it| it.held_out).count();
    let all = report.comparisons.len();
    (count > 0)
        .then(|| format!("{count} of {all} cases are held out: no rule of the model was written by them."))
}

/// Returns the text of the badge: the worst error of write amplification, in whole percent.
pub(super) fn badge(report: &Report) -> Option<String> {
    let summary = Summary::of(&report.comparisons, |it| it == Quantity::WriteAmplification)?;
    let worst = (summary.worst * 100.0).ceil();
    Some(format!(
        "validated against {}: write amplification within ±{worst} %",
        report.versions.join(" and ")
    ))
}

/// The page's explanation of how its values are obtained.
const ABOUT: &str = "\
This page is written by `cairn sim validate --page`. Each real store received the same writes that
the simulator draws, and its own statistics are shown next to the prediction.

Paced cases flush and settle after each memtable, which makes their byte counts independent of the
machine.

Limits: write amplification 3 % (sequential 5 %), space amplification 2 %, levels of at least 100 MB
5 %, filters and blocks per lookup 3 %, cache hit rate 3 points, timed throughput 20 %, stalls 5
points. Rows without a mark have no limit and are shown for information.

A timed case is predicted from three kinds of measurements. No other figure of a run goes into its
prediction.

- The cost of the store's operations, of sleeps and of this machine's disk, each measured alone:
  before, between and after the runs.
- Pilot runs of five seconds under full load, with leveled compaction whatever the case and with
  other writes. They give the time of a write, with and without its waits, and the processor time of
  flushes and compactions.
- The processor time that the host of a virtual machine gave to other guests during the runs.

";

/// Formats a page of the docs.
pub fn to_page(report: &Report) -> String {
    let mut page = "# The simulator against real stores\n\n".to_owned();
    if let Some(badge) = badge(report) {
        let _ = writeln!(page, "**{badge}**\n");
    }
    page += ABOUT;
    if let Some(note) = held_out(report) {
        let _ = writeln!(page, "{note}\n");
    }
    page += "| quantity | within the limit | mean error | worst error |\n|---|---|---|---|\n";
    for (title, chosen) in ROWS {
        if let Some(summary) = Summary::of(&report.comparisons, chosen) {
            let Summary { count, within, mean, worst } = summary;
            let _ = writeln!(
                page,
                "| {title} | {within} of {count} | {:.1} % | {:.1} % |",
                mean * 100.0,
                worst * 100.0
            );
        }
    }
    let right = report.signs.iter().filter(|sign| sign.holds()).count();
    let _ = writeln!(page, "| signs of one-setting changes | {right} of {} | | |\n", report.signs.len());
    page += &chart(report);
    page += "\n## All figures\n\n| case | quantity | predicted | measured | error | |\n|---|---|---|---|---|---|\n";
    for comparison in &report.comparisons {
        for verdict in &comparison.verdicts {
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} | {:+.1} % | {} |",
                comparison.case,
                verdict.quantity.name(),
                show(verdict, verdict.predicted),
                show(verdict, verdict.measured),
                verdict.error * 100.0,
                mark(verdict),
            );
        }
    }
    page +=
        "\n## One setting changed\n\n| case | against | predicted | measured | |\n|---|---|---|---|---|\n";
    for sign in &report.signs {
        let verdict = if sign.holds() { "ok" } else { "off" };
        let (predicted, measured) = (sign.predicted * 100.0, sign.measured * 100.0);
        let _ = writeln!(
            page,
            "| {} | {} | {predicted:+.1} % | {measured:+.1} % | {verdict} |",
            sign.case, sign.base
        );
    }
    page
}

/// Draws write amplification of all cases, predicted and measured, as bars.
fn chart(report: &Report) -> String {
    const ROW: usize = 22;
    const LEFT: f64 = 190.0;
    const WIDE: f64 = 420.0;
    let rows: Vec<_> = report
        .comparisons
        .iter()
        .filter_map(|it| Some((it.case.as_str(), it.verdict(Quantity::WriteAmplification)?)))
        .collect();
    let most = rows.iter().map(|(_, it)| it.predicted.max(it.measured)).fold(1.0, f64::max);
    let height = rows.len() * ROW + 30;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 680 {height}\" role=\"img\" \
         aria-label=\"Write amplification, predicted and measured\" font-family=\"sans-serif\" font-size=\"11\" \
         fill=\"currentColor\">\n"
    );
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"14\">write amplification: dark measured, light predicted</text>"
    );
    for (at, (case, verdict)) in rows.iter().enumerate() {
        let y = 24 + at * ROW;
        let width = |value: f64| value / most * WIDE;
        let text_y = y + 12;
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{text_y}\" text-anchor=\"end\">{case}</text>", LEFT - 6.0);
        let (real, model) = (width(verdict.measured), width(verdict.predicted));
        let _ =
            writeln!(svg, "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{real:.1}\" height=\"8\" fill=\"#1f5f8b\"/>");
        let below = y + 9;
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{below}\" width=\"{model:.1}\" height=\"8\" fill=\"#7fb8dd\"/>"
        );
        let x = LEFT + real.max(model) + 5.0;
        let error = verdict.error * 100.0;
        let _ =
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{text_y}\">{:.2} ({error:+.1} %)</text>", verdict.measured);
    }
    svg + "</svg>\n"
}
