//! Evaluates the adviser on workloads of many kinds. Each is answered as for a user, and then all
//! candidates run on it. The *regret* is how much faster the best candidate was than the choice.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{Adviser, Effort, Finalist, Options, Question, Workload};
use crate::core::error::{Error, Result};
use crate::core::process::Stop;
use crate::core::progress::Progress;
use crate::core::stats;
use crate::core::workload::{Distribution, Durability};
use crate::suites::kv::Mix;

/// One workload: the advice and the measured outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The workload.
    pub workload: Workload,
    /// The advised candidate; `None` if there was none.
    pub advised: Option<String>,
    /// Its predicted throughput, in operations per second.
    pub predicted: f64,
    /// Its measured throughput when all candidates ran.
    pub measured: f64,
    /// The fastest candidate when all ran.
    pub best: String,
    /// Throughput of the fastest candidate.
    pub best_measured: f64,
    /// `best_measured / measured - 1`; `None` if there was no advised candidate, or if it failed
    /// when all candidates ran.
    pub regret: Option<f64>,
}

/// Returns fourteen workloads: reads, writes, scans and inserts; small and large values; all key
/// distributions; with and without waiting for the disk.
pub fn workloads() -> Vec<Workload> {
    let mix = |read: f64, update: f64, insert: f64, scan: f64, read_modify_write: f64| Mix {
        read,
        update,
        insert,
        scan,
        read_modify_write,
    };
    let zipfian = Distribution::Zipfian { theta: 0.99, scrambled: true };
    let latest = Distribution::Latest { theta: 0.99 };
    let hot = Distribution::HotSet { fraction: 0.1, probability: 0.9 };
    let of = |name: &str, mix: Mix, distribution: Distribution| Workload {
        name: name.to_owned(),
        records: 300_000,
        mix,
        distribution,
        ..Workload::default()
    };
    let uniform = Distribution::Uniform;
    vec![
        of("lookups", mix(1.0, 0.0, 0.0, 0.0, 0.0), uniform),
        Workload { threads: 4, ..of("lookups by four threads", mix(1.0, 0.0, 0.0, 0.0, 0.0), zipfian) },
        of("mostly reads", mix(0.95, 0.05, 0.0, 0.0, 0.0), zipfian),
        of("half writes", mix(0.5, 0.5, 0.0, 0.0, 0.0), zipfian),
        of("ingest", mix(0.0, 0.0, 1.0, 0.0, 0.0), uniform),
        of("updates", mix(0.05, 0.95, 0.0, 0.0, 0.0), uniform),
        of("feed", mix(0.9, 0.0, 0.1, 0.0, 0.0), latest),
        of("counters", mix(0.0, 0.0, 0.0, 0.0, 1.0), hot),
        of("short scans", mix(0.0, 0.05, 0.0, 0.95, 0.0), zipfian),
        Workload { scan_records: 1000, ..of("long scans", mix(0.2, 0.0, 0.05, 0.75, 0.0), uniform) },
        Workload {
            value_bytes: 4096,
            records: 40_000,
            ..of("large values", mix(0.7, 0.3, 0.0, 0.0, 0.0), uniform)
        },
        Workload {
            value_bytes: 16,
            records: 1_000_000,
            ..of("tiny values", mix(0.8, 0.2, 0.0, 0.0, 0.0), zipfian)
        },
        Workload {
            durability: Durability::Sync,
            records: 50_000,
            ..of("durable writes", mix(0.5, 0.5, 0.0, 0.0, 0.0), uniform)
        },
        Workload {
            durability: Durability::Sync,
            records: 50_000,
            threads: 8,
            ..of("durable writes by eight threads", mix(0.2, 0.8, 0.0, 0.0, 0.0), uniform)
        },
    ]
}

/// Asks for advice on each workload and then runs all candidates on it. Once `stop` is reached,
/// returns the rows so far.
///
/// Errors: as [`super::advise`].
pub fn check(
    workloads: &[Workload],
    options: &Options,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (at, workload) in workloads.iter().enumerate() {
        progress.note(&format!("{} of {}: {}", at + 1, workloads.len(), workload.name));
        match one(workload, options, progress, stop) {
            Ok(None) => {}
            Ok(Some(row)) => {
                progress.note(line(&row).trim_end());
                rows.push(row);
            }
            Err(Error::Interrupted) if !rows.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(rows)
}

fn one(workload: &Workload, options: &Options, progress: &dyn Progress, stop: &Stop) -> Result<Option<Row>> {
    let question = Question { workload: workload.clone(), ..Question::default() };
    let adviser = Adviser::new(&question, options, progress, stop)?;
    let answer = adviser.answer()?;
    let (advised, records) = (answer.choice, answer.verification.records);
    // All candidates run, whatever was predicted, with other random draws than those behind the
    // choice.
    let effort = Effort { rounds: options.effort.rounds.max(stats::PAIRS_MIN as u32), ..options.effort };
    // Each round has a seed of its own, so the next free seed follows those of all rounds.
    let again =
        Options { seed: options.seed.wrapping_add(u64::from(effort.rounds)), effort, ..options.clone() };
    let adviser = Adviser { options: &again, ..adviser };
    let everybody: Vec<Finalist<'_>> =
        answer.predictions.iter().filter_map(|prediction| adviser.finalist(prediction)).collect();
    // The stores are as large as those behind the choice, because the ranking may depend on size.
    let all = adviser.verified(&everybody, (records > 0).then_some(records))?.verified;
    let Some(best) = all.first() else { return Ok(None) };
    let chosen = advised.name().and_then(|name| all.iter().find(|one| one.name == name));
    let (predicted, measured) = chosen.map_or((0.0, 0.0), |one| (one.predicted, one.median));
    Ok(Some(Row {
        workload: workload.clone(),
        advised: advised.name().map(str::to_owned),
        predicted,
        measured,
        best: best.name.clone(),
        best_measured: best.median,
        regret: chosen.map(|one| best.median / one.median - 1.0),
    }))
}

fn line(row: &Row) -> String {
    use super::change::count;
    format!(
        "| {} | {} | {}/s | {}/s | {} | {}/s | {} |\n",
        row.workload.name,
        row.advised.as_deref().unwrap_or("nobody"),
        count(row.predicted),
        count(row.measured),
        row.best,
        count(row.best_measured),
        row.regret.map_or_else(|| "–".to_owned(), |regret| format!("{:.1} %", regret * 100.0))
    )
}

/// Returns the table in Markdown, with the median and the largest regret and the error of the
/// predictions.
pub fn to_markdown(rows: &[Row]) -> String {
    let mut text =
        "| workload | advised | predicted | measured | best | measured | regret |\n|---|---|---:|---:|---|---:|---:|\n"
            .to_owned();
    rows.iter().for_each(|row| text += &line(row));
    let regrets: Vec<f64> = rows.iter().filter_map(|row| Some(row.regret? * 100.0)).collect();
    let ratio = |row: &Row| (row.predicted / row.measured).max(row.measured / row.predicted);
    let off: Vec<f64> = rows.iter().filter(|row| row.regret.is_some()).map(ratio).collect();
    let worst = regrets.iter().copied().fold(0.0, f64::max);
    let none = rows.len() - regrets.len();
    let none =
        if none > 0 { format!(" {none} more had no advised store, or it failed.") } else { String::new() };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\nRegret: {:.1} % in the median, {worst:.1} % at worst, of {} workloads.{none} Predictions are off by a factor of {:.2} in the median, {:.2} at worst.",
        stats::median(&regrets),
        regrets.len(),
        stats::median(&off),
        off.iter().copied().fold(1.0, f64::max)
    );
    text
}
