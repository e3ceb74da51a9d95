//! `cairn ui`: a local page with runs, reports, history, an inspector of stores, and the simulator.
//!
//! The design and the access rules are documented in `docs/src/design/ui.md`.
//!
//! ```text
//! guard     access control                  places    the stores that may be inspected
//! runs      stored runs, reports, history   inspect/  the inspector of stores
//! jobs      benchmarks that the page starts or watches;  feed  their output as it arrives
//! ```

mod feed;
mod guard;
mod inspect;
mod jobs;
mod places;
mod runs;

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::Redirect;
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use cairn_vfs::Fs;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::args::ui::UiArgs;
use crate::error::Result;
use crate::output::{Outcome, note};
use crate::place;
use crate::sim::ui as sim;
use crate::web::{self, BODY_BYTES_MAX, Hosts, Refusal, asset, refuse};
use guard::{Guard, guard};
use jobs::Jobs;
use places::Places;

/// The maximum number of concurrent requests that read stores or runs; others wait.
const READS_MAX: usize = 4;

/// The state shared by all requests.
struct Shared {
    fs: Arc<dyn Fs>,
    places: Places,
    results: PathBuf,
    history: PathBuf,
    jobs: Jobs,
    reads: Arc<Semaphore>,
}

impl Shared {
    /// Runs work on a thread that may block on the disk.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = Arc::clone(&self.reads).acquire_owned().await.map_err(refuse)?;
        // The work holds the permit, not the request: a page that is closed does not end the work.
        let work = move || {
            let _turn = turn;
            work()
        };
        let failed =
            |error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("reading it failed: {error}"));
        tokio::task::spawn_blocking(work).await.map_err(failed)?
    }
}

/// Serves the page until Ctrl-C.
pub fn run(fs: &Arc<dyn Fs>, args: &UiArgs) -> Result<Outcome> {
    let places = Places::new(fs, &args.stores)?;
    // The directories may not exist yet, and neither may the file to watch.
    for dir in [&args.results, &args.at.history] {
        place::expect_room_for_directory(fs, dir)?;
    }
    if let Some(path) = &args.watch {
        match fs.exists(path)? {
            true => place::expect_file(fs, path)?,
            false => {
                note(&format!("{} does not exist yet: it is watched once a run makes it", path.display()))
            }
        }
    }
    let shared = Arc::new(Shared {
        fs: Arc::clone(fs),
        places,
        results: args.results.clone(),
        history: args.at.history.clone(),
        jobs: Jobs::new(args.allow_run, args.results.clone(), args.watch.clone()),
        reads: Arc::new(Semaphore::new(READS_MAX)),
    });
    let told = if args.allow_run { "; benchmarks can be started" } else { "" };
    let served = web::serve((args.listen, args.port).into(), told, |address| {
        let guard = Guard::new(Hosts::of(address.ip(), &args.host), address.port())?;
        let place = guard.place();
        if let Some(path) = args.watch.clone() {
            tokio::spawn(jobs::watch(Arc::clone(&shared), path));
        }
        Ok((router(Arc::clone(&shared), Arc::new(guard)), place))
    });
    shared.jobs.end_all();
    served.map(|()| Outcome::Done)
}

fn router(shared: Arc<Shared>, guarded: Arc<Guard>) -> Router {
    Router::new()
        .route("/", get(|| asset(web::HTML, include_str!("../../assets/lab/index.html"))))
        .route("/app.js", get(|| asset(web::SCRIPT, include_str!("../../assets/lab/app.js"))))
        .route("/app.css", get(|| asset(web::STYLE, include_str!("../../assets/lab/app.css"))))
        .route("/shared.css", get(|| asset(web::STYLE, web::SHARED_STYLE)))
        .route("/api/start", get(start))
        .route("/api/places", get(places_list))
        .route("/api/inspect", get(inspect::summary))
        .route("/api/inspect/entries", get(inspect::entries))
        .route("/api/inspect/get", get(inspect::get))
        .route("/api/inspect/blocks", get(inspect::blocks))
        .route("/api/inspect/verify", get(inspect::verify))
        .route("/api/runs", get(runs::list))
        .route("/api/history", get(runs::history))
        .route("/report", get(runs::report))
        .route("/trends", get(runs::trends))
        .route("/api/jobs", get(jobs::list).post(jobs::start))
        .route("/api/jobs/events", get(jobs::events))
        .route("/api/jobs/stop", post(jobs::stop))
        .with_state(shared)
        .route("/sim", get(|| async { Redirect::permanent("/sim/") }))
        .merge(sim::routes("/sim", cairn_sim::Config::default()))
        .route("/sim/shared.css", get(|| asset(web::STYLE, web::SHARED_STYLE)))
        .fallback(no_such_page)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(guarded, guard))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

async fn no_such_page() -> Refusal {
    Refusal::missing("there is no such page")
}

async fn no_such_method() -> Refusal {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "this page does not accept that method")
}

/// Returns the data that the page needs first.
async fn start(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "results": shared.results.display().to_string(),
        "history": shared.history.display().to_string(),
        "may_run": shared.jobs.may_run(),
        "suites": jobs::suites(),
    }))
}

async fn places_list(State(shared): State<Arc<Shared>>) -> Result<Json<Value>, Refusal> {
    let inner = Arc::clone(&shared);
    shared.blocking(move || Ok(Json(inner.places.list().into()))).await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use cairn_vfs::MemFs;
    use tokio::sync::oneshot;

    use super::*;

    /// Goal: work holds its permit until it ends, even if its page is closed. Method: work that
    /// waits on a channel; the free permits after its request is dropped, and after the work.
    #[test]
    fn permit_is_held_until_the_work_ends() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let shared = Arc::new(Shared {
            fs: Arc::clone(&fs),
            places: Places::new(&fs, &[]).unwrap(),
            results: PathBuf::new(),
            history: PathBuf::new(),
            jobs: Jobs::new(false, PathBuf::new(), None),
            reads: Arc::new(Semaphore::new(READS_MAX)),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (begin, has_begun) = oneshot::channel();
            // Also dropped if an assertion fails, so that the work ends.
            let (release, released) = mpsc::channel::<()>();
            let asking = Arc::clone(&shared);
            let request = tokio::spawn(async move {
                let work = move || {
                    begin.send(()).unwrap();
                    let _ = released.recv();
                    Ok(())
                };
                asking.blocking(work).await
            });
            has_begun.await.unwrap();
            request.abort();
            assert!(request.await.unwrap_err().is_cancelled());
            assert_eq!(shared.reads.available_permits(), READS_MAX - 1);
            drop(release);
            assert!(shared.reads.acquire_many(READS_MAX as u32).await.is_ok());
        });
    }
}
