//! The API of the simulator's page.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, Sse};
use cairn_sim::import::{import_rocksdb, rocksdb_changes};
use cairn_sim::{Config, Options, Results, Simulation, json, profiles};
use futures_util::stream::{self, Stream};
use indicatif::ProgressBar;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use super::frames::Frames;
use crate::args::sim::VaryArgs;
use crate::sim::run::exported;
use crate::sim::sweep::{FIGURES, outcome};
use crate::sim::vary::{Axis, Point, points, run_all, split};
use crate::web::{Body, Query, Refusal, refuse};

/// The maximum number of concurrent runs; others wait.
const RUNS_MAX: usize = 4;

/// The maximum number of configurations in a heat map.
const SWEEP_MAX: usize = 144;

/// The maximum number of settings that a sweep varies. A request could hold more than can be built
/// in minutes.
const AXES_MAX: usize = 16;

/// The maximum number of points of a run.
const POINTS_MAX: usize = 1000;

/// The maximum virtual duration in seconds: thirty days.
const SECS_MAX: f64 = 30.0 * 86400.0;

/// The state shared by all requests.
pub struct Shared {
    start: Config,
    runs: Arc<Semaphore>,
    running: Arc<AtomicUsize>,
    last: Mutex<Option<Results>>,
}

/// Counts an active run until it is dropped.
struct ActiveRun(Arc<AtomicUsize>);

impl Drop for ActiveRun {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// Creates the state. `start` is the page's initial configuration.
    pub fn new(start: Config) -> Shared {
        let runs = Arc::new(Semaphore::new(RUNS_MAX));
        Shared { start, runs, running: Arc::default(), last: Mutex::new(None) }
    }

    /// Marks the start of a run.
    fn begin(&self) -> ActiveRun {
        self.running.fetch_add(1, Ordering::Relaxed);
        ActiveRun(Arc::clone(&self.running))
    }

    /// Returns the number of active runs and sweeps.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Returns the results of the last run, for metrics.
    pub fn last(&self) -> MutexGuard<'_, Option<Results>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parses a page's configuration, validates it, and bounds it more tightly than one of the command
/// line. The page never gets the writes of a trace; its configuration stands for those of `start`.
fn config_of(text: &str, start: &Config) -> Result<Config, Refusal> {
    let config: Config = json::parse(text, "the page's configuration").map_err(refuse)?;
    let mut config = config.with_trace_of(start);
    config.check().map_err(refuse)?;
    bound(&mut config)?;
    Ok(config)
}

/// Bounds a configuration that may have been changed after it was sent.
fn bound(config: &mut Config) -> Result<(), Refusal> {
    if config.duration_secs > SECS_MAX {
        return Err(refuse(format!(
            "duration_secs is {}, expected at most {SECS_MAX}",
            config.duration_secs
        )));
    }
    config.points = config.points.min(POINTS_MAX);
    Ok(())
}

/// Returns the data that the page needs first.
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
        "config": shared.start.without_trace(),
        "kv": Options::cairn_kv(),
        "rocksdb": Options::default(),
        "hardware": hardware,
        "workloads": workloads,
        "badge": badge(),
    }))
}

/// Returns the sentence of the documentation that says how accurate the figures are.
fn badge() -> Option<&'static str> {
    let page = include_str!("../../../../../docs/src/benchmarks/simulator.md");
    page.lines().find_map(|line| line.strip_prefix("**validated")?.strip_suffix("**"))
}

/// A query with a configuration.
#[derive(Debug, Deserialize)]
pub struct StreamQuery {
    config: String,
}

/// Runs a configuration and streams its frames: one `frame` event for each point, then `done` with
/// the results, or `failed`.
pub async fn stream(
    State(shared): State<Arc<Shared>>,
    Query(asked): Query<StreamQuery>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let config = config_of(&asked.config, &shared.start)?;
    let turn = Arc::clone(&shared.runs).acquire_owned().await.map_err(refuse)?;
    // Bounded: a slow page makes the run wait, and a closed page ends it.
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
            // Check between frames too, because they can be hours apart.
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
        // The page already has the series.
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

/// A request for a sweep.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepRequest {
    config: Value,
    vary: Vec<String>,
    #[serde(default)]
    samples: Option<usize>,
}

/// Ends the runs when their request is dropped because its page was closed.
struct EndRunsOnDrop(Arc<AtomicBool>);

impl Drop for EndRunsOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Errors: the sweep is too large. This checks only counts, before any configuration is built,
/// because a request could hold enough to take hours.
fn expect_few(args: &VaryArgs) -> Result<(), Refusal> {
    let settings = args.vary.len();
    if settings > AXES_MAX {
        return Err(refuse(format!("a sweep over {settings} settings, expected at most {AXES_MAX}")));
    }
    match args.samples {
        Some(samples) if !(1..=SWEEP_MAX).contains(&samples) => {
            Err(refuse(format!("samples is {samples}, expected 1 to {SWEEP_MAX}")))
        }
        Some(_) => Ok(()),
        None => match grid_count(&args.vary) {
            0..=SWEEP_MAX => Ok(()),
            count => Err(refuse(format!("{count} configurations, expected at most {SWEEP_MAX}"))),
        },
    }
}

/// Returns the number of configurations in the grid over these axes.
fn grid_count(vary: &[String]) -> usize {
    let count = |axis: &String| split(axis.split_once('=').map_or("", |(_, values)| values)).count();
    vary.iter().map(count).fold(1, usize::saturating_mul)
}

/// Builds the configurations of a sweep. Each is bounded separately, because a varied setting may
/// be one of the bounded ones.
fn swept(config: &Config, args: &VaryArgs) -> Result<(Vec<Axis>, Vec<Point>), Refusal> {
    let (axes, mut points) = points(config, args).map_err(refuse)?;
    points.iter_mut().try_for_each(|point| bound(&mut point.config))?;
    Ok((axes, points))
}

/// Runs a small sweep. Returns the varied values and the figures of each configuration.
pub async fn sweep(State(shared): State<Arc<Shared>>, Body(body): Body) -> Result<Json<Value>, Refusal> {
    let asked: SweepRequest = json::parse(&body, "the request").map_err(refuse)?;
    let config = config_of(&asked.config.to_string(), &shared.start)?;
    let args = VaryArgs { vary: asked.vary, samples: asked.samples, threads: None };
    expect_few(&args)?;
    let turn = Arc::clone(&shared.runs).acquire_owned().await.map_err(refuse)?;
    let is_ended = Arc::new(AtomicBool::new(false));
    let _ends = EndRunsOnDrop(Arc::clone(&is_ended));
    let work = move || {
        let (_turn, _at_work) = (turn, shared.begin());
        let (axes, points) = swept(&config, &args)?;
        // No progress bar: the terminal belongs to the server, not to the page.
        let is_ended = || is_ended.load(Ordering::Relaxed);
        let results = run_all(&points, None, &ProgressBar::hidden(), &is_ended).map_err(refuse)?;
        let rows: Vec<Value> = points
            .iter()
            .zip(&results)
            .map(|(point, results)| {
                let figures: serde_json::Map<String, Value> = FIGURES
                    .iter()
                    .map(|(name, figure)| ((*name).to_owned(), figure(results).into()))
                    .collect();
                json!({
                    "values": point.values,
                    "outcome": outcome(results.outcome),
                    "flushes": results.counters.flushes,
                    "figures": figures,
                })
            })
            .collect();
        let axes: Vec<&str> = axes.iter().map(|axis| axis.path.as_str()).collect();
        Ok(Json(json!({ "axes": axes, "rows": rows })))
    };
    tokio::task::spawn_blocking(work).await.map_err(refuse)?
}

/// Returns the options of a configuration in the engine's own format; with `before`, only the
/// differences from it.
pub async fn export(State(shared): State<Arc<Shared>>, Body(body): Body) -> Result<String, Refusal> {
    let asked: Value = json::parse(&body, "the request").map_err(refuse)?;
    let config = config_of(&asked.get("config").cloned().unwrap_or_default().to_string(), &shared.start)?;
    match asked.get("before") {
        Some(before) if before.is_object() => {
            let before = config_of(&before.to_string(), &shared.start)?;
            rocksdb_changes(&before.options, &config.options).map_err(refuse)
        }
        _ => exported(&config).map_err(refuse),
    }
}

/// Parses the options of an `OPTIONS` file.
pub async fn import(Body(body): Body) -> Result<Json<Value>, Refusal> {
    let imported = import_rocksdb(&body, "default", "the OPTIONS file").map_err(refuse)?;
    let (ignored, notes) = (imported.ignored.len(), imported.notes);
    Ok(Json(json!({ "options": imported.options, "ignored": ignored, "notes": notes })))
}

#[cfg(test)]
mod tests {
    use cairn_sim::Distribution;

    use super::*;

    fn args(vary: &[&str], samples: Option<usize>) -> VaryArgs {
        VaryArgs { vary: vary.iter().map(|axis| (*axis).to_owned()).collect(), samples, threads: None }
    }

    /// Returns the refusal of an invalid sweep.
    fn refusal(vary: &[String], samples: Option<usize>) -> String {
        let body = json!({ "config": {}, "vary": vary, "samples": samples }).to_string();
        let shared = Arc::new(Shared::new(Config::default()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        format!("{:?}", runtime.block_on(sweep(State(shared), Body(body))).unwrap_err())
    }

    /// Goal: a page can start with a trace of any length and run simulations and sweeps of it.
    /// Method: the data that the page gets is small, and a request with it uses the whole trace; a
    /// request for a trace is refused where there is none.
    #[test]
    fn page_runs_simulations_of_its_trace() {
        let mut config = Config { duration_secs: 10.0, ..Config::default() };
        config.workload.keys = 100_000;
        config.workload.distribution =
            Distribution::Trace { keys: Arc::new((0..100_000).collect()), deletes: Arc::default() };
        let shared = Arc::new(Shared::new(config.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let Json(begins) = runtime.block_on(start(State(Arc::clone(&shared))));
        let sent = begins["config"].to_string();
        assert!(sent.len() < 20_000, "{}", sent.len());
        assert_eq!(config_of(&sent, &config).unwrap().workload, config.workload);
        let body = format!(r#"{{"config":{sent},"vary":["options.max_background_jobs=1,2"]}}"#);
        let Json(found) = runtime.block_on(sweep(State(shared), Body(body))).unwrap();
        let row = &found["rows"][1];
        assert!(row["outcome"] == "done" && row["flushes"].as_u64() > Some(0), "{row}");
        let said = format!("{:?}", config_of(&sent, &Config::default()).unwrap_err());
        assert!(said.contains("workload.distribution.keys is empty"), "{said}");
    }

    /// Goal: a sweep that is too large is refused before any of it is built. Method: sweeps whose
    /// first configuration is already invalid, which would cause another refusal; products that
    /// overflow.
    #[test]
    fn sweeps_are_counted_before_they_are_made() {
        let wrong = |count: usize| format!("options.nothing={}", vec!["1"; count].join(","));
        for (vary, samples, expected) in [
            (vec![wrong(145)], None, "145 configurations, expected at most 144"),
            (vec![wrong(1_000); 2], None, "1000000 configurations"),
            (vec![wrong(1_000); 7], None, &format!("{} configurations", usize::MAX)),
            (vec![wrong(1); 17], None, "17 settings, expected at most 16"),
            (vec![wrong(1)], Some(145), "samples is 145"),
            (vec![wrong(1)], Some(0), "samples is 0"),
            (vec![wrong(144)], None, "options.nothing"),
            (vec![wrong(1_000)], Some(144), "options.nothing"),
        ] {
            let said = refusal(&vary, samples);
            assert!(said.contains(expected), "{expected}: {said}");
        }
    }

    /// Goal: the count equals the number of configurations that are built. Method: grids counted
    /// both ways, including values with commas inside.
    #[test]
    fn a_grid_is_counted_as_it_is_made() {
        let traffic = r#"workload.traffic={"kind":"constant","mb_per_sec":5},{"kind":"spikes","base":1,"spike":9,"every_secs":60,"length_secs":5}"#;
        for vary in [
            &["seed=1"][..],
            &["seed=1,2,3", "options.write_buffer_size=8MiB,16MiB"],
            &[traffic],
            &[traffic, "options.compression=none,lz4,zstd", "points=10"],
        ] {
            let args = args(vary, None);
            let (_, points) = points(&Config::default(), &args).unwrap();
            assert_eq!(grid_count(&args.vary), points.len(), "{vary:?}");
        }
    }

    /// Goal: no configuration of a sweep exceeds the bounds for a page. Method: bounded settings as
    /// the varied ones, in grids and hypercubes.
    #[test]
    fn varied_settings_are_bounded() {
        let config = Config::default();
        for (vary, samples) in
            [("duration_secs=3600,2592001", None), ("duration_secs=2592001.0..9e7", Some(3))]
        {
            let said = format!("{:?}", swept(&config, &args(&[vary], samples)).unwrap_err());
            assert!(said.contains("duration_secs is ") && said.contains("at most 2592000"), "{said}");
        }
        let (_, points) =
            swept(&config, &args(&["points=10,100000", "duration_secs=2592000"], None)).unwrap();
        let kept: Vec<usize> = points.iter().map(|point| point.config.points).collect();
        assert_eq!(kept, [10, POINTS_MAX]);
    }
}
