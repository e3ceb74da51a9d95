//! The tables of replacement policies in the documentation, generated from stored runs.
//!
//! ```text
//!   raw/<platform>/buffer_pool.json   the run          ─┬─► <platform>_buffer_pool.md
//!   raw/<platform>/buffer_pool.log    printed output    └─► the guide's rows in another page
//! ```
//!
//! The first page has every case, the machine and the settings. The rows in the other page go
//! between `<!-- results:pool-<platform>:begin -->` and the marker with `end`.

use std::path::{Path, PathBuf};

use super::plan::name_of;
use super::text::{cases, cell};
use super::{HIT_RATE, RECOVERY, title};
use crate::core::error::{Error, Result};
use crate::core::recorder::{LATENCY, THROUGHPUT};
use crate::core::results::{Case, Contender, ENDED_EARLY, Run};
use crate::core::text::{Align, Table};
use crate::stores::{cairn_pool, textbook_pool};

/// Directory of tables and their sources, relative to the documentation's directory.
pub const DIR: &str = "benchmarks/replacement_policies";

/// The page whose tables have the guide's rows, relative to the documentation's directory.
pub const PAGE: &str = "engines/pool-benchmark.md";

/// Thread counts of the rows in the guide's tables.
const SHOWN_THREADS: [u32; 8] = [1, 2, 4, 8, 16, 64, 256, 0];

/// Checks a name that becomes part of a path: letters, digits, `-` and `_`. Errors:
/// [`Error::Invalid`].
pub fn check_platform(platform: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !platform.is_empty() && platform.len() <= 64 && platform.chars().all(fits) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "platform {platform:?}: expected a name such as linux, of letters, digits, - and _"
    )))
}

/// Returns the path of a platform's stored run.
pub fn raw_run(docs: &Path, platform: &str) -> PathBuf {
    docs.join(DIR).join("raw").join(platform).join("buffer_pool.json")
}

/// Returns the path of the run's printed output.
pub fn raw_log(docs: &Path, platform: &str) -> PathBuf {
    raw_run(docs, platform).with_extension("log")
}

/// Returns the path of a platform's page.
pub fn page(docs: &Path, platform: &str) -> PathBuf {
    docs.join(DIR).join(format!("{platform}_buffer_pool.md"))
}

/// Returns the name in the markers of a platform's table: `pool-linux`.
pub fn marker(platform: &str) -> String {
    format!("{}-{platform}", super::NAME)
}

/// Renders the table of the guide: the latencies of phase 1, patterns and concurrency for some
/// thread counts, and hit rates, with one column for each policy and for the textbook pool.
pub fn summary(run: &Run) -> String {
    let columns = policies_and_floor(run);
    let rows = (1..=5).filter(|phase| *phase != 3).flat_map(|phase| cases(run, phase));
    let rows: Vec<&Case> = rows.filter(|case| SHOWN_THREADS.contains(&case.threads)).collect();
    let mut out = table(run, &columns, &rows).to_markdown();
    out += &format!(
        "\n{}. Pages of {} bytes. Run of {}; {}. In brackets: requests whose pages were in memory; the best median of a row is bold, \
         which says nothing where two differ by less than their noise.\n",
        run.mode,
        page_size(run),
        run.started,
        machine(run)
    );
    if run.stopped {
        out += ENDED_EARLY;
    }
    out
}

/// Renders the page of a platform: machine, every case of every phase with all contenders, every
/// setting.
pub fn platform_page(run: &Run, platform: &str) -> String {
    let mut out = format!(
        "# Buffer pool by replacement policy: {platform}\n\n\
         Written by `cairn bench render` from `raw/{platform}/buffer_pool.json`, which `cairn bench pool --collect --platform {platform}` has \
         measured; do not edit. How: [Measuring the pool](../../engines/pool-benchmark.md).\n\n## Machine\n\n"
    );
    let mut environment = Table::new(&[("what", Align::Left), ("value", Align::Left)]);
    for (name, value) in &run.machine {
        environment.row(vec![name.clone(), value.clone()]);
    }
    for probe in &run.probes {
        environment.row(vec![probe.name.clone(), crate::core::text::value(probe.value, &probe.unit)]);
    }
    environment.row(vec!["started".to_owned(), run.started.clone()]);
    environment.row(vec!["seed".to_owned(), run.seed.to_string()]);
    out += &environment.to_markdown();
    out += &format!("\n{}; {}\n", run.mode, run.data);
    if run.stopped {
        out += &format!("\n{ENDED_EARLY}");
    }
    let everybody = run.measured();
    for phase in 1..=5 {
        let rows = cases(run, phase);
        let columns: Vec<&Contender> = everybody
            .iter()
            .copied()
            .filter(|contender| rows.iter().any(|case| cell(run, &contender.name, case).is_some()))
            .collect();
        if !rows.is_empty() {
            out += &format!("\n## {}\n\n{}", title(phase), table(run, &columns, &rows).to_markdown());
        }
    }
    out += "\n## Settings\n\n";
    for contender in &run.contenders {
        out += format!("- **{}** {}", contender.name, contender.version).trim_end();
        if let Some(reason) = &contender.skipped {
            out += &format!(": left out, {reason}\n");
            continue;
        }
        let settings: Vec<String> =
            contender.settings.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        out += &format!(". {}\n", settings.join("; "));
    }
    out
}

fn machine(run: &Run) -> String {
    let field =
        |name: &str| run.machine.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let cores = field("cores").map(|cores| format!("{cores} cores"));
    let known = [field("cpu"), cores, field("memory"), field("kernel"), field("file system")];
    known.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn page_size(run: &Run) -> u32 {
    run.measurements.iter().find(|m| m.case.dataset.starts_with("phase")).map_or(0, |m| m.case.value_bytes)
}

/// Returns Cairn's policies with page checks, as they are meant to be used, and the textbook pool.
fn policies_and_floor(run: &Run) -> Vec<&Contender> {
    let wanted = |contender: &&Contender| {
        (contender.ours && !contender.name.ends_with(cairn_pool::UNCHECKED))
            || contender.name == textbook_pool::NAME
    };
    run.measured().into_iter().filter(wanted).collect()
}

fn table(run: &Run, columns: &[&Contender], rows: &[&Case]) -> Table {
    let mut headings = vec![("Benchmark", Align::Left)];
    headings.extend(columns.iter().map(|contender| (contender.name.as_str(), Align::Right)));
    let mut table = Table::new(&headings);
    for case in rows {
        let best = best(run, columns, case);
        let mut cells = vec![name_of(case)];
        cells.extend(columns.iter().map(|contender| match cell(run, &contender.name, case) {
            Some(shown) if best == Some(contender.name.as_str()) => format!("**{shown}**"),
            Some(shown) => shown,
            None => "–".to_owned(),
        }));
        table.row(cells);
    }
    table
}

/// Returns the contender with the best value in a case, or none if the best two are equal.
fn best<'r>(run: &Run, columns: &[&'r Contender], case: &Case) -> Option<&'r str> {
    for metric in [LATENCY, THROUGHPUT, RECOVERY, HIT_RATE] {
        let figures = columns.iter().filter_map(|contender| {
            let median = run.verified(&contender.name, case, metric.name)?.median;
            // Negated if lower is better, so that more is better for all metrics.
            Some((contender.name.as_str(), if metric.higher_is_better { median } else { -median }))
        });
        let mut figures: Vec<(&str, f64)> = figures.collect();
        if figures.is_empty() {
            continue;
        }
        figures.sort_by(|a, b| b.1.total_cmp(&a.1));
        return match figures.as_slice() {
            [(name, _)] => Some(name),
            [(name, first), (_, second), ..] if first > second => Some(name),
            _ => None,
        };
    }
    None
}
