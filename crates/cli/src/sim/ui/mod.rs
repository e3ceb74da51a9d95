//! `cairn sim ui`: the live page, on this machine only.
//!
//! The server runs simulations and streams what happens; the page keeps the frames, and plays, pauses, steps and scrubs through
//! them. So the server holds nothing for a page, and a page that sends rubbish gets a message and harms nobody.

mod api;
mod frames;
mod metrics;

use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use cairn_vfs::Fs;

use super::run::tell;
use super::setup::{Setup, setup};
use crate::args::sim::UiArgs;
use crate::error::{Error, Result};
use crate::output::Outcome;
use api::Shared;

/// What a page may send at a time.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Serves until Ctrl-C.
pub fn run(fs: &Arc<dyn Fs>, args: &UiArgs) -> Result<Outcome> {
    let Setup { config, notes } = setup(fs, &args.from)?;
    tell(&notes);
    let fail = |what: &str, error: std::io::Error| Error::usage(format!("{what}: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| fail("no runtime", error))?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).await;
        let listener = listener.map_err(|error| fail(&format!("--port {}", args.port), error))?;
        let address = listener.local_addr().map_err(|error| fail("no address", error))?;
        // Scripts read it to find the port.
        let _ = writeln!(std::io::stderr(), "http://{address} until Ctrl-C; metrics at /metrics");
        let app = router(Arc::new(Shared::new(config)));
        let end = async {
            let _ = tokio::signal::ctrl_c().await;
        };
        let served = axum::serve(listener, app).with_graceful_shutdown(end);
        // Streams of open pages would be waited for; Ctrl-C ends them.
        tokio::select! {
            result = served => result.map_err(|error| fail("the server", error)),
            _ = tokio::signal::ctrl_c() => Ok(()),
        }
    })?;
    Ok(Outcome::Done)
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(|| asset("text/html; charset=utf-8", include_str!("../../../assets/sim/index.html"))))
        .route("/app.js", get(|| asset("text/javascript", include_str!("../../../assets/sim/app.js"))))
        .route("/app.css", get(|| asset("text/css", include_str!("../../../assets/sim/app.css"))))
        .route("/api/start", get(api::start))
        .route("/api/stream", get(api::stream))
        .route("/api/sweep", post(api::sweep))
        .route("/api/export", post(api::export))
        .route("/api/import", post(api::import))
        .route("/metrics", get(metrics::metrics))
        .fallback(|| async { (StatusCode::NOT_FOUND, "no such page\n") })
        .layer(middleware::from_fn(only_this_machine))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(shared)
}

async fn asset(kind: &'static str, text: &'static str) -> impl IntoResponse {
    let policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:";
    (
        [
            (header::CONTENT_TYPE, kind),
            (header::CONTENT_SECURITY_POLICY, policy),
            (header::CACHE_CONTROL, "no-cache"),
        ],
        text,
    )
}

/// A page of another site could have its name point at this machine: only requests for this machine's names are answered.
async fn only_this_machine(headers: HeaderMap, request: axum::extract::Request, next: Next) -> Response {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    if ["127.0.0.1", "localhost"].contains(&name) {
        next.run(request).await
    } else {
        (StatusCode::FORBIDDEN, "this page is for this machine only\n").into_response()
    }
}
