//! The history as text for a terminal.

use super::{Judged, Kept, Series, Verdict, told_apart};
use crate::core::compare::Figure;
use crate::core::text::{Align, Table};
use crate::core::{stats, text};

/// Block characters of increasing height, for sparklines.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Renders the runs, one line each.
pub fn runs_text(runs: &[Kept]) -> String {
    let mut table = Table::new(&[
        ("suite", Align::Left),
        ("started", Align::Left),
        ("mode", Align::Left),
        ("figures", Align::Right),
        ("commit", Align::Left),
        ("machine", Align::Left),
    ]);
    for run in runs {
        let Kept { suite, started, mode, machine, commit, figures, .. } = run;
        let commit: String = commit.chars().take(12).collect();
        let cells = [suite.as_str(), started, mode, &figures.to_string(), &commit, machine];
        table.row(cells.map(str::to_owned).to_vec());
    }
    table.to_text()
}

/// Renders trends, one line each: first value, last value, change, and a sparkline.
pub fn trends_text(series: &[Series]) -> String {
    let mut table = Table::new(&[
        ("series", Align::Left),
        ("runs", Align::Right),
        ("first", Align::Right),
        ("last", Align::Right),
        ("better by", Align::Right),
        ("trend", Align::Left),
    ]);
    for (Series { name, points, .. }, told) in series.iter().zip(told_apart(series)) {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
        let ratio = if last.higher_is_better { last.value / first.value } else { first.value / last.value };
        let values: Vec<f64> = points.iter().map(|point| point.value).collect();
        table.row(vec![
            if told.is_empty() { name.clone() } else { format!("{name} ({told})") },
            points.len().to_string(),
            text::value(first.value, &first.unit),
            text::value(last.value, &last.unit),
            text::ratio(ratio),
            sparkline(&values),
        ]);
    }
    table.to_text()
}

/// Renders one block per value, from the smallest value to the largest. Equal values get blocks of
/// medium height.
fn sparkline(values: &[f64]) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let block = |value: &f64| {
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        BARS.get((share * 7.0).round() as usize).copied().unwrap_or('?')
    };
    values.iter().map(block).collect()
}

/// Renders a comparison with its verdicts: only changes, or with `everything` all rows. `~` marks
/// figures that noise makes undecidable, `?` those with too few rounds.
pub fn judged_text(judged: &[Judged], everything: bool) -> String {
    let interval = format!("{} interval", stats::LEVEL);
    let mut table = Table::new(&[
        ("case", Align::Left),
        ("contender", Align::Left),
        ("metric", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("better by", Align::Right),
        (interval.as_str(), Align::Left),
        ("noise", Align::Right),
        ("verdict", Align::Left),
    ]);
    let shown = || judged.iter().filter(|judged| everything || judged.verdict != Verdict::Same);
    for Judged { row, noise, verdict } in shown() {
        let (gain, interval) = match row.gain {
            Some(gain) if row.counted => (text::ratio(gain.value), String::new()),
            Some(gain) if row.significant => {
                (text::ratio(gain.value), format!("{} to {}", text::ratio(gain.low), text::ratio(gain.high)))
            }
            Some(_) => ("~".to_owned(), String::new()),
            None => ("–".to_owned(), String::new()),
        };
        table.row(vec![
            text::case(&row.case),
            row.contender.clone(),
            row.metric.clone(),
            marked(row.a, &row.unit),
            marked(row.b, &row.unit),
            gain,
            interval,
            noise.map_or_else(|| "–".to_owned(), |noise| format!("{:.1} %", noise * 100.0)),
            match verdict {
                Verdict::Same if row.is_too_short() => "?",
                Verdict::Same => "same",
                Verdict::Better => "better",
                Verdict::Worse => "WORSE",
            }
            .to_owned(),
        ]);
    }
    let far = shown().any(|judged| judged.row.a.outliers + judged.row.b.outliers > 0);
    let note = if far { "* some repetitions lie far from the others; they are counted\n" } else { "" };
    table.to_text() + note
}

fn marked(figure: Figure, unit: &str) -> String {
    let mark = if figure.outliers > 0 { "*" } else { "" };
    format!("{}{mark}", text::value(figure.value, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: sparklines show the course of the values.
    #[test]
    fn sparklines() {
        assert_eq!(sparkline(&[1.0, 2.0, 8.0]), "▁▂█");
        assert_eq!(sparkline(&[3.0, 3.0]), "▅▅");
        assert_eq!(sparkline(&[]), "");
    }
}
