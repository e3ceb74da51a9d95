//! `cairn sim ui`: the live page, on this machine only.
//!
//! The server runs simulations and streams their frames. The page keeps the frames, and plays,
//! pauses, steps and scrubs through them. The server thus keeps no state per page, and a page that
//! sends garbage gets an error without harming others.

mod api;
mod frames;
mod metrics;

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use cairn_sim::Config;
use cairn_vfs::Fs;

use super::run::tell;
use super::setup::{Setup, setup};
use crate::args::sim::UiArgs;
use crate::error::Result;
use crate::output::Outcome;
use crate::web::{self, BODY_BYTES_MAX, Hosts, Refusal, asset, check_origin};
use api::Shared;

/// Serves the page until Ctrl-C.
pub fn run(fs: &Arc<dyn Fs>, args: &UiArgs) -> Result<Outcome> {
    let Setup { config, notes, .. } = setup(fs, &args.from)?;
    tell(&notes);
    web::serve((Ipv4Addr::LOCALHOST, args.port).into(), "; metrics at /metrics", |address| {
        let hosts = Arc::new(Hosts::of(address.ip(), &[]));
        let app = routes("", config)
            .route("/shared.css", get(|| asset(web::STYLE, web::SHARED_STYLE)))
            .fallback(|| async { Refusal::missing("there is no such page") })
            .layer(middleware::from_fn_with_state(hosts, guard))
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX));
        Ok((app, String::new()))
    })?;
    Ok(Outcome::Done)
}

/// Returns the routes of the page below `prefix`, with its initial configuration. The page uses
/// only relative paths, so it works below any prefix.
pub fn routes(prefix: &str, start: Config) -> Router {
    let at = |path: &str| format!("{prefix}{path}");
    Router::new()
        .route(&at("/"), get(|| asset(web::HTML, include_str!("../../../assets/sim/index.html"))))
        .route(&at("/app.js"), get(|| asset(web::SCRIPT, include_str!("../../../assets/sim/app.js"))))
        .route(&at("/app.css"), get(|| asset(web::STYLE, include_str!("../../../assets/sim/app.css"))))
        .route(&at("/api/start"), get(api::start))
        .route(&at("/api/stream"), get(api::stream))
        .route(&at("/api/sweep"), post(api::sweep))
        .route(&at("/api/export"), post(api::export))
        .route(&at("/api/import"), post(api::import))
        .route(&at("/metrics"), get(metrics::metrics))
        .with_state(Arc::new(Shared::new(start)))
}

/// Passes on requests with a host name of this machine that come from one of our pages.
async fn guard(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    match judge(&hosts, &request) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

fn judge(hosts: &Hosts, request: &Request) -> Result<(), Refusal> {
    if !hosts.allows(request.headers()) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "this page is for this machine only"));
    }
    check_origin(request)
}
