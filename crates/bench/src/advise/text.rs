//! Advice as text.

use std::fmt::Write as _;

use super::change::count;
use super::{Advice, Choice};
use crate::core::stats;

/// Renders the advice on a page: the choice, its lead, its settings, what would change it, the
/// candidates that were run and those that were excluded.
pub fn to_text(advice: &Advice) -> String {
    let mut text = String::new();
    let workload = &advice.question.workload;
    let mix = workload.shares();
    let shares = [
        ("read", mix.read),
        ("update", mix.update),
        ("insert", mix.insert),
        ("scan", mix.scan),
        ("read-modify-write", mix.read_modify_write),
    ];
    let shares: Vec<String> = shares
        .iter()
        .filter(|(_, share)| *share > 0.0)
        .map(|(name, share)| format!("{:.0} % {name}", share * 100.0))
        .collect();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{}: {} entries of {} + {} bytes, {}; keys {}, {} thread{}, writes {}\n",
        workload.name,
        count(workload.records as f64),
        workload.key_bytes,
        workload.value_bytes,
        shares.join(", "),
        workload.distribution,
        workload.threads,
        if workload.threads == 1 { "" } else { "s" },
        workload.durability
    );
    text += &headline(advice);
    advice.notes.iter().for_each(|note| _ = writeln!(text, "Note: {note}."));
    verified(&mut text, advice);
    if !advice.settings.is_empty() {
        let _ = writeln!(text, "\nSettings of {}:\n", advice.choice.name().unwrap_or_default());
        for line in advice.settings.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    if !advice.changes.is_empty() {
        let _ = writeln!(text, "\nWhat would change it:");
        advice.changes.iter().for_each(|change| _ = writeln!(text, "  {change}"));
    }
    others(&mut text, advice);
    text
}

/// Renders the choice, how certain it is, and the size on which it was measured.
fn headline(advice: &Advice) -> String {
    let (all, run) = (advice.question.workload.records, advice.verified_records);
    let on = if run < all && !advice.verified.is_empty() {
        format!(" Measured on {} entries; for {} by prediction.", count(run as f64), count(all as f64))
    } else {
        String::new()
    };
    let choice = match &advice.choice {
        Choice::Winner { name, alike, ahead_of: Some((second, ratio, low, high)) } => {
            let certain = stats::LEVEL;
            format!(
                "Take {name}: {ratio:.2}x as fast as {second} ({low:.2} to {high:.2} with {certain} confidence)."
            ) + &settings_alike(advice, alike)
        }
        Choice::Winner { name, alike, ahead_of: None } => {
            format!("Take {name}: {}.", alone(advice)) + &settings_alike(advice, alike)
        }
        Choice::NoClearWinner { names } => {
            format!("No clear winner: {} cannot be told apart on this workload.", names.join(" and "))
        }
        Choice::NoStore if advice.stopped => {
            "None of the stores that were run meets the constraints; the list below says why. The run was ended before all had a turn.".to_owned()
        }
        Choice::NoStore => "No store meets the constraints; the list below says why.".to_owned(),
    };
    choice + on.as_str() + "\n"
}

fn settings_alike(advice: &Advice, names: &[String]) -> String {
    let Some(first) = names.first() else { return String::new() };
    let is_usual = advice.verified.iter().any(|one| one.name == *first && one.store == *first);
    let usual = if is_usual { "; the usual ones are below" } else { "" };
    format!(" Its settings {} cannot be told apart on this workload{usual}.", names.join(" and "))
}

/// Returns the reason why a winner has no rival.
fn alone(advice: &Advice) -> &'static str {
    let constraints = &advice.question.constraints;
    let is_limited = constraints.memory_bytes.is_some()
        || constraints.disk_bytes.is_some()
        || constraints.p99_us.is_some();
    match (is_limited, advice.discarded.is_empty()) {
        (true, false) => "it is the only measured store that meets the constraints",
        (true, true) => "it is the only one that was run, and it meets the constraints",
        (false, false) => "it is the only one that could be run; the list below says why others are out",
        (false, true) => "it is the only one that was run",
    }
}

/// Renders the measured figures beside the predicted ones.
fn verified(text: &mut String, advice: &Advice) {
    if advice.verified.is_empty() {
        return;
    }
    let all = advice.question.workload.records;
    let smaller = if advice.verified_records < all {
        format!(
            ", of {} entries: loading all would have taken too long",
            count(advice.verified_records as f64)
        )
    } else {
        String::new()
    };
    let rounds = advice.verified.first().map_or(0, |one| one.samples.len());
    let interval = format!("{} interval", stats::LEVEL);
    let _ = writeln!(text, "\nMeasured, {rounds} interleaved rounds{smaller}:\n");
    let _ = writeln!(
        text,
        "  {:<24} {:>12} {:>21} {:>12} {:>7} {:>12} {:>10}",
        "", "ops/s", interval, "predicted", "error", "p99 µs", "B/entry"
    );
    for one in &advice.verified {
        let p99 = one.p99_us.values().copied().reduce(f64::max);
        let p99 = p99.map_or_else(|| "–".to_owned(), micros);
        let interval = format!("{} to {}", count(one.low), count(one.high));
        let _ = writeln!(
            text,
            "  {:<24} {:>12} {:>21} {:>12} {:>6.0}% {:>12} {:>10.1}",
            one.name,
            count(one.median),
            interval,
            count(one.predicted),
            (one.predicted / one.median.max(f64::MIN_POSITIVE) - 1.0) * 100.0,
            p99,
            one.bytes_per_entry
        );
    }
}

fn others(text: &mut String, advice: &Advice) {
    let is_run = |name: &str| advice.verified.iter().any(|one| one.name == name);
    let is_out = |name: &str| advice.discarded.iter().any(|one| one.name == name);
    let slower: Vec<String> = advice
        .predictions
        .iter()
        .filter(|one| !is_run(&one.name) && !is_out(&one.name))
        .map(|one| format!("{} {}/s", one.name, count(one.per_sec)))
        .collect();
    if !slower.is_empty() {
        let _ = writeln!(text, "\nNot run, predicted slower: {}", slower.join(", "));
    }
    if !advice.discarded.is_empty() {
        let _ = writeln!(text, "\nOut:");
        advice.discarded.iter().for_each(|one| _ = writeln!(text, "  {}: {}", one.name, one.reason));
    }
}

/// Formats microseconds with three significant digits; a lookup in memory takes a few hundredths of
/// a microsecond.
pub(super) fn micros(of: f64) -> String {
    match of {
        of if of >= 100.0 => format!("{of:.0}"),
        of if of >= 10.0 => format!("{of:.1}"),
        of if of >= 1.0 => format!("{of:.2}"),
        of => format!("{of:.3}"),
    }
}
