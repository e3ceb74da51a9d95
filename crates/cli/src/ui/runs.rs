//! Stored runs, their reports, and figures over time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use cairn_bench::core::results::Run;
use cairn_bench::core::run_files;
use cairn_bench::history::{History, Series, machine_of, told_apart};
use cairn_bench::report as pages;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use crate::bench::stored::STORED;
use crate::web::{Query, Refusal};

/// The maximum number of runs that are listed, the newest by name.
const RUNS_MAX: usize = 500;

/// The maximum number of series drawn at once.
const SERIES_MAX: usize = 60;

/// The maximum number of points of a series.
const POINTS_MAX: usize = 200;

/// The content security policy of reports, which contain scripts and styles. The sandbox takes away
/// this page's origin, so that they cannot send requests to the server.
const REPORT_POLICY: &str = "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; \
                             style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'";

type Answer = Result<Json<Value>, Refusal>;

/// Returns the files of runs with their names on the page, ordered by start time. Searches the
/// results directory, including its runs over all suites, and the directory of permanently stored
/// runs.
fn files(shared: &Shared) -> Result<Vec<(String, PathBuf)>, Refusal> {
    let mut files = Vec::new();
    for dir in [shared.results.clone(), shared.results.join(STORED)] {
        if !shared.fs.exists(&dir)? {
            continue;
        }
        for path in run_files::files(&*shared.fs, &dir)? {
            // Skip links, which may lead anywhere.
            let leads_out = path.ancestors().take_while(|above| *above != dir).any(Path::is_symlink);
            let name = path.strip_prefix(&shared.results).ok().and_then(Path::to_str);
            if let Some(name) = name.filter(|_| !leads_out) {
                files.push((name.to_owned(), path));
            }
        }
    }
    files.sort_by_key(|(name, _)| start_in(name).unwrap_or_default().to_owned());
    Ok(files)
}

/// Returns the start time in the name of a run's file or directory: `20260101T000000Z`.
fn start_in(name: &str) -> Option<&str> {
    let is_start =
        |word: &&str| word.len() == 16 && word.ends_with('Z') && word.as_bytes().get(8) == Some(&b'T');
    name.split(['-', '/', '.']).find(is_start)
}

/// Loads the run with this name. Names are compared with the existing ones, so none can lead
/// elsewhere.
fn load(shared: &Shared, name: &str) -> Result<Run, Refusal> {
    let found = files(shared)?.into_iter().find(|(known, _)| known == name);
    let (_, path) = found.ok_or_else(|| Refusal::missing(format!("there is no stored run {name:?}")))?;
    Ok(run_files::load(&*shared.fs, &path)?)
}

/// Lists all runs, the latest one first.
pub async fn list(State(shared): State<Arc<Shared>>) -> Answer {
    let inner = Arc::clone(&shared);
    shared
        .blocking(move || {
            let mut files = files(&inner)?;
            // Files are ordered oldest first; drop the oldest.
            let more = files.len().saturating_sub(RUNS_MAX);
            files.drain(..more);
            let mut runs: Vec<Value> = files
                .iter()
                .map(|(name, path)| match run_files::load(&*inner.fs, path) {
                    Ok(run) => described(name, &run),
                    Err(error) => json!({ "run": name, "error": error.to_string() }),
                })
                .collect();
            runs.sort_by_key(|run| std::cmp::Reverse(run["started"].as_str().unwrap_or_default().to_owned()));
            Ok(Json(json!({ "runs": runs, "more": more })))
        })
        .await
}

fn described(name: &str, run: &Run) -> Value {
    let commit = run.machine.iter().find(|(known, _)| known == "commit").map(|(_, commit)| commit);
    let contenders = run.contenders.iter().filter(|contender| contender.skipped.is_none());
    json!({
        "run": name,
        "suite": run.suite,
        "started": run.started,
        "mode": run.mode,
        "figures": run.measurements.len(),
        "contenders": contenders.map(|contender| contender.name.as_str()).collect::<Vec<_>>(),
        "machine": machine_of(run),
        "commit": commit,
        "stopped": run.stopped,
    })
}

/// A query with a run, and optionally a baseline to compare it with.
#[derive(Debug, Deserialize)]
pub struct ReportQuery {
    run: String,
    baseline: Option<String>,
}

/// Renders the report of a run.
pub async fn report(
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<ReportQuery>,
) -> Result<impl IntoResponse, Refusal> {
    let inner = Arc::clone(&shared);
    shared
        .blocking(move || {
            let run = load(&inner, &asked.run)?;
            let baseline = asked.baseline.as_deref().filter(|name| !name.is_empty());
            let baseline = baseline.map(|name| load(&inner, name)).transpose()?;
            Ok(in_sandbox(pages::render_html(&run, baseline.as_ref())))
        })
        .await
}

fn in_sandbox(page: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, crate::web::HTML), (header::CONTENT_SECURITY_POLICY, REPORT_POLICY)], page)
}

/// A query with words that the names of series must contain.
#[derive(Debug, Deserialize)]
pub struct TrendsQuery {
    #[serde(default)]
    words: String,
}

fn series(shared: &Shared, asked: &TrendsQuery) -> Result<Vec<Series>, Refusal> {
    let words: Vec<String> = asked.words.split_whitespace().map(str::to_owned).collect();
    if !shared.fs.exists(&shared.history)? {
        return Ok(Vec::new());
    }
    Ok(History::open(&shared.fs, &shared.history, false)?.series(&words, POINTS_MAX)?)
}

/// Returns figures over time: the series whose names contain all of the words.
pub async fn history(State(shared): State<Arc<Shared>>, Query(asked): Query<TrendsQuery>) -> Answer {
    let inner = Arc::clone(&shared);
    shared
        .blocking(move || {
            let mut found = series(&inner, &asked)?;
            let (count, mut told) = (found.len(), told_apart(&found));
            found.truncate(SERIES_MAX);
            told.truncate(SERIES_MAX);
            Ok(Json(json!({ "series": found, "told_apart": told, "count": count })))
        })
        .await
}

/// Renders the same as a page in the style of the reports.
pub async fn trends(
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<TrendsQuery>,
) -> Result<impl IntoResponse, Refusal> {
    let inner = Arc::clone(&shared);
    shared.blocking(move || Ok(in_sandbox(pages::render_history(&series(&inner, &asked)?)))).await
}
