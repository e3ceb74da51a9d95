//! Formats a run over all suites for a terminal: the suites that ran, who is ahead of whom, and
//! what was left out.

use std::fmt::Write;

use crate::core::results::Contender;
use crate::core::text::{Align, Table};
use crate::report::{Claims, Side, claims};
use crate::suites::all::{PartState, SuiteResult, Whole};

/// Maximum number of printed claims per side and suite. The report has all.
const CLAIMS_MAX: usize = 4;

/// Formats everything except the location of the files.
pub fn to_text(whole: &Whole) -> String {
    let told: Vec<(&SuiteResult, Claims)> =
        whole.suites.iter().filter_map(|suite| Some((suite, claims(suite.run.as_ref()?)))).collect();
    let mut out = table(whole, &told);
    for (side, title) in [(Side::Theirs, "Where a peer is ahead"), (Side::Ours, "Where Cairn is ahead")] {
        let _ = writeln!(out, "\n{title}, the largest differences first:");
        let mut nowhere = true;
        if side == Side::Theirs {
            for suite in &whole.suites {
                for failure in suite.own_failures() {
                    let _ = writeln!(out, "  {:5} {failure}", suite.suite.word());
                    nowhere = false;
                }
            }
        }
        for (suite, claims) in &told {
            let of_side = claims.of(side);
            for claim in of_side.iter().take(CLAIMS_MAX) {
                let _ = writeln!(out, "  {:5} {}: {}", suite.suite.word(), claim.topic, claim.sentence);
            }
            if of_side.len() > CLAIMS_MAX {
                let _ = writeln!(out, "  {:5} and {} more", suite.suite.word(), of_side.len() - CLAIMS_MAX);
            }
            nowhere &= of_side.is_empty();
        }
        if nowhere {
            out += "  nowhere\n";
        }
    }
    for suite in &whole.suites {
        let word = suite.suite.word();
        if let Some(report) = &suite.sim {
            let verdicts: Vec<_> = report
                .comparisons
                .iter()
                .flat_map(|it| &it.verdicts)
                .filter(|it| it.limit.is_some())
                .collect();
            let held = verdicts.iter().filter(|verdict| verdict.holds()).count();
            let _ = writeln!(out, "\n{word}: {held} of {} predictions within their limits", verdicts.len());
        }
        for failure in suite.failures().into_iter().filter_map(Contender::failure) {
            let _ = writeln!(out, "\n{word}, {failure}");
        }
        for part in &suite.parts {
            if let Some(PartState::Failed(why)) = &part.state {
                let _ = writeln!(out, "\n{word}, {} failed: {why}", part.name);
            }
        }
    }
    out
}

fn table(whole: &Whole, told: &[(&SuiteResult, Claims)]) -> String {
    let mut table = Table::new(&[
        ("suite", Align::Left),
        ("state", Align::Left),
        ("time", Align::Right),
        ("measured", Align::Right),
        ("ahead", Align::Right),
        ("behind", Align::Right),
        ("depends", Align::Right),
        ("even", Align::Right),
    ]);
    for suite in &whole.suites {
        let claims = told.iter().find(|(known, _)| known.suite == suite.suite).map(|(_, claims)| claims);
        let count = |side: Side| claims.map_or_else(String::new, |claims| claims.of(side).len().to_string());
        let measured = match (&suite.run, &suite.sim) {
            (Some(run), _) => run.measurements.len().to_string(),
            (None, Some(report)) => report.comparisons.len().to_string(),
            (None, None) => String::new(),
        };
        table.row(vec![
            suite.suite.word().to_owned(),
            suite.standing(),
            if suite.seconds() > 0.0 { duration(suite.seconds()) } else { String::new() },
            measured,
            count(Side::Ours),
            count(Side::Theirs),
            count(Side::Mixed),
            claims.map_or_else(String::new, |claims| claims.open.to_string()),
        ]);
    }
    table.to_text()
}

/// Formats a duration: `45 s`, `12 min 5 s`, `3 h 20 min`.
pub fn duration(seconds: f64) -> String {
    let whole = if seconds.is_finite() { seconds.max(0.0).round() as u64 } else { 0 };
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: durations read naturally.
    #[test]
    fn durations_are_readable() {
        for (seconds, text) in
            [(0.2, "0 s"), (59.6, "1 min 0 s"), (725.0, "12 min 5 s"), (12_000.0, "3 h 20 min")]
        {
            assert_eq!(duration(seconds), text);
        }
        assert_eq!(duration(f64::NAN), "0 s");
    }
}
