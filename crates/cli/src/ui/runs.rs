//! Stored runs, their reports, and figures over time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use cairn_bench::history::{History, Series, machine_of, told_apart};
use cairn_bench::results::Run;
use cairn_bench::{report as pages, store};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use crate::bench::stored::STORED;
use crate::web::{Query, Refused};

/// Runs that are listed, the newest of their names.
const RUNS_MAX: usize = 500;

/// Series that are drawn at a time.
const SERIES_MAX: usize = 60;

/// Points of a series.
const POINTS_MAX: usize = 200;

/// Reports have scripts and styles in them. They run without this page's origin, so they can ask it
/// for nothing.
const REPORT_POLICY: &str = "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; \
                             style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'";

type Answer = Result<Json<Value>, Refused>;

/// The files of runs with what they are called here, by their starts: in the results' directory and
/// those of runs over all suites in it, and in that of runs that are kept for good.
fn files(shared: &Shared) -> Result<Vec<(String, PathBuf)>, Refused> {
    let mut files = Vec::new();
    for dir in [shared.results.clone(), shared.results.join(STORED)] {
        if !shared.fs.exists(&dir)? {
            continue;
        }
        for path in store::files(&*shared.fs, &dir)? {
            // Links may lead anywhere.
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

/// The start that stands in the name of a run's file or directory: `20260101T000000Z`.
fn start_in(name: &str) -> Option<&str> {
    let is_start =
        |word: &&str| word.len() == 16 && word.ends_with('Z') && word.as_bytes().get(8) == Some(&b'T');
    name.split(['-', '/', '.']).find(is_start)
}

/// The run that is called so. Names are compared with those that are there: none leads elsewhere.
fn load(shared: &Shared, name: &str) -> Result<Run, Refused> {
    let found = files(shared)?.into_iter().find(|(known, _)| known == name);
    let (_, path) = found.ok_or_else(|| Refused::missing(format!("there is no stored run {name:?}")))?;
    Ok(store::load(&*shared.fs, &path)?)
}

/// All runs, the last one first.
pub async fn list(State(shared): State<Arc<Shared>>) -> Answer {
    let inner = Arc::clone(&shared);
    shared
        .blocking(move || {
            let mut files = files(&inner)?;
            // The oldest stand first.
            let more = files.len().saturating_sub(RUNS_MAX);
            files.drain(..more);
            let mut runs: Vec<Value> = files
                .iter()
                .map(|(name, path)| match store::load(&*inner.fs, path) {
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

/// A run, and one to hold it against.
#[derive(Debug, Deserialize)]
pub struct Asked {
    run: String,
    baseline: Option<String>,
}

/// The report of a run, made now.
pub async fn report(
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<Asked>,
) -> Result<impl IntoResponse, Refused> {
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

/// Words that names of series have to have.
#[derive(Debug, Deserialize)]
pub struct Words {
    #[serde(default)]
    words: String,
}

fn series(shared: &Shared, asked: &Words) -> Result<Vec<Series>, Refused> {
    let words: Vec<String> = asked.words.split_whitespace().map(str::to_owned).collect();
    if !shared.fs.exists(&shared.history)? {
        return Ok(Vec::new());
    }
    Ok(History::open(&shared.fs, &shared.history, false)?.series(&words, POINTS_MAX)?)
}

/// Figures over time: those whose names have all of the words.
pub async fn history(State(shared): State<Arc<Shared>>, Query(asked): Query<Words>) -> Answer {
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

/// The same as a page in the style of the reports.
pub async fn trends(
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<Words>,
) -> Result<impl IntoResponse, Refused> {
    let inner = Arc::clone(&shared);
    shared.blocking(move || Ok(in_sandbox(pages::render_history(&series(&inner, &asked)?)))).await
}
