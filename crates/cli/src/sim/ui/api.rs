//! What the page asks for.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, Sse};
use cairn_sim::import::{import_rocksdb, rocksdb_changes};
use cairn_sim::{Config, Options, Results, Simulation, json, profiles};
use futures_util::stream::{self, Stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use super::frames::Frames;
use crate::args::sim::VaryArgs;
use crate::sim::run::exported;
use crate::sim::sweep::FIGURES;
use crate::sim::vary::{points, run_all};
use crate::web::{Body, Query, Refused, refuse};

/// Runs at the same time; others wait.
const RUNS_MAX: usize = 4;

/// Configurations of a heat map.
const SWEEP_MAX: usize = 144;

/// Points of a run that a page may ask for.
const POINTS_MAX: usize = 1000;

/// Virtual seconds that a page may ask for: thirty days.
const SECS_MAX: f64 = 30.0 * 86400.0;

/// What all requests share.
pub struct Shared {
    start: Config,
    runs: Arc<Semaphore>,
    running: Arc<AtomicUsize>,
    last: Mutex<Option<Results>>,
}

/// A run that is at work, until it is dropped.
struct AtWork(Arc<AtomicUsize>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// `start` is what the page begins with.
    pub fn new(start: Config) -> Shared {
        let runs = Arc::new(Semaphore::new(RUNS_MAX));
        Shared { start, runs, running: Arc::default(), last: Mutex::new(None) }
    }

    /// A run begins its work.
    fn begin(&self) -> AtWork {
        self.running.fetch_add(1, Ordering::Relaxed);
        AtWork(Arc::clone(&self.running))
    }

    /// Runs and sweeps that are at work now.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// The results of the last run, for metrics.
    pub fn last(&self) -> MutexGuard<'_, Option<Results>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A configuration of a page: checked, and bounded further than one that was typed.
fn config_of(text: &str) -> Result<Config, Refused> {
    let mut config = Config::from_json(text, "the page's configuration").map_err(refuse)?;
    if config.duration_secs > SECS_MAX {
        return Err(refuse(format!(
            "duration_secs is {}, expected at most {SECS_MAX}",
            config.duration_secs
        )));
    }
    config.points = config.points.min(POINTS_MAX);
    Ok(config)
}

/// What the page begins with.
pub async fn start(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let hardware: Vec<Value> = profiles::hardware_names()
        .into_iter()
        .filter_map(|name| Some(json!({ "id": name, "profile": profiles::hardware(name)?.ok()? })))
        .collect();
    let workloads: Vec<Value> = profiles::workload_names()
        .into_iter()
        .filter_map(|name| Some(json!({ "id": name, "profile": profiles::workload(name)?.ok()? })))
        .collect();
    Json(json!({
        "config": shared.start,
        "kv": Options::cairn_kv(),
        "rocksdb": Options::default(),
        "hardware": hardware,
        "workloads": workloads,
        "badge": badge(),
    }))
}

/// The line of the docs that says how far to trust the figures.
fn badge() -> Option<&'static str> {
    let page = include_str!("../../../../../docs/src/benchmarks/simulator.md");
    page.lines().find_map(|line| line.strip_prefix("**validated")?.strip_suffix("**"))
}

/// A query with a configuration.
#[derive(Debug, Deserialize)]
pub struct Asked {
    config: String,
}

/// Runs a configuration and streams its frames: one `frame` event for each point, then `done` with the results, or `failed`.
pub async fn stream(
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<Asked>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refused> {
    let config = config_of(&asked.config)?;
    let turn = Arc::clone(&shared.runs).acquire_owned().await.map_err(refuse)?;
    // Bounded: a slow page makes the run wait, one that has gone away ends it.
    let (sender, receiver) = mpsc::channel::<Event>(64);
    tokio::task::spawn_blocking(move || {
        let (_turn, _at_work) = (turn, shared.begin());
        let send = |kind: &str, value: &Value| {
            sender.blocking_send(Event::default().event(kind).data(value.to_string()))
        };
        let mut simulation = match Simulation::new(&config) {
            Ok(simulation) => simulation,
            Err(error) => {
                let _ = send("failed", &json!({ "error": error.to_string() }));
                return;
            }
        };
        let mut frames = Frames::default();
        loop {
            // Frames can be hours apart: that the page has gone away is seen between them.
            if sender.is_closed() {
                return;
            }
            let goes_on = simulation.step();
            for frame in frames.take(&simulation) {
                if send("frame", &frame).is_err() {
                    return;
                }
            }
            if !goes_on {
                break;
            }
        }
        let mut results = simulation.results();
        // The page has the series already.
        results.series.clear();
        let value = serde_json::to_value(&results).unwrap_or_default();
        *shared.last() = Some(results);
        let _ = send("done", &value);
    });
    let events = stream::unfold(receiver, |mut receiver| async move {
        let event = receiver.recv().await?;
        Some((Ok(event), receiver))
    });
    Ok(Sse::new(events))
}

/// A sweep that a page asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepAsked {
    config: Value,
    vary: Vec<String>,
    #[serde(default)]
    samples: Option<usize>,
}

/// Ends runs when the request that waits for them is dropped: its page has gone away.
struct EndsRuns(Arc<AtomicBool>);

impl Drop for EndsRuns {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A small sweep: values and figures of each configuration.
pub async fn sweep(State(shared): State<Arc<Shared>>, Body(body): Body) -> Result<Json<Value>, Refused> {
    let asked: SweepAsked = json::parse(&body, "the request").map_err(refuse)?;
    let config = config_of(&asked.config.to_string())?;
    if let Some(samples) = asked.samples.filter(|samples| !(1..=SWEEP_MAX).contains(samples)) {
        return Err(refuse(format!("samples is {samples}, expected 1 to {SWEEP_MAX}")));
    }
    let turn = Arc::clone(&shared.runs).acquire_owned().await.map_err(refuse)?;
    let is_ended = Arc::new(AtomicBool::new(false));
    let _ends = EndsRuns(Arc::clone(&is_ended));
    let work = move || {
        let (_turn, _at_work) = (turn, shared.begin());
        let args = VaryArgs { vary: asked.vary, samples: asked.samples, threads: None };
        let (axes, points) = points(&config, &args).map_err(refuse)?;
        if points.len() > SWEEP_MAX {
            return Err(refuse(format!("{} configurations, expected at most {SWEEP_MAX}", points.len())));
        }
        let results = run_all(&points, None, &is_ended).map_err(refuse)?;
        let rows: Vec<Value> = points
            .iter()
            .zip(&results)
            .map(|(point, results)| {
                let figures: serde_json::Map<String, Value> = FIGURES
                    .iter()
                    .map(|(name, figure)| ((*name).to_owned(), figure(results).into()))
                    .collect();
                json!({ "values": point.values, "figures": figures })
            })
            .collect();
        let axes: Vec<&str> = axes.iter().map(|axis| axis.path.as_str()).collect();
        Ok(Json(json!({ "axes": axes, "rows": rows })))
    };
    tokio::task::spawn_blocking(work).await.map_err(refuse)?
}

/// The options of a configuration in the engine's own form; with `before`, only what differs from it.
pub async fn export(Body(body): Body) -> Result<String, Refused> {
    let asked: Value = json::parse(&body, "the request").map_err(refuse)?;
    let config = config_of(&asked.get("config").cloned().unwrap_or_default().to_string())?;
    match asked.get("before") {
        Some(before) if before.is_object() => {
            let before = config_of(&before.to_string())?;
            rocksdb_changes(&before.options, &config.options).map_err(refuse)
        }
        _ => exported(&config).map_err(refuse),
    }
}

/// Options out of an `OPTIONS` file.
pub async fn import(Body(body): Body) -> Result<Json<Value>, Refused> {
    let imported = import_rocksdb(&body, "default", "the OPTIONS file").map_err(refuse)?;
    let (ignored, notes) = (imported.ignored.len(), imported.notes);
    Ok(Json(json!({ "options": imported.options, "ignored": ignored, "notes": notes })))
}
