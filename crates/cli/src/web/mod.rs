//! Shared code of the local pages: the server, access checks, built-in files, refusals.

mod hosts;
mod origin;
mod refusal;
mod request;

use std::future::pending;
use std::io::Write;
use std::net::SocketAddr;

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use signal_hook::consts::SIGHUP;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{Error, Result};
use crate::interrupt;
pub use hosts::Hosts;
pub use origin::check_origin;
pub use refusal::{Refusal, refuse};
pub use request::{Body, Query};

/// The maximum size of a request's body.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// The content security policy: nothing from other sites; inline styles are allowed, because charts
/// set them.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                          connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// Serves the router that `make` returns for the address, until Ctrl-C or a request to end. Prints
/// the address on standard error, with the path and query from `make`, followed by `suffix`.
pub fn serve(
    address: SocketAddr,
    suffix: &str,
    make: impl FnOnce(SocketAddr) -> Result<(Router, String)>,
) -> Result<()> {
    let fail = |what: &str, error: std::io::Error| Error::usage(format!("{what}: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| fail("cannot start the server", error))?;
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await;
        let listener = listener.map_err(|error| fail(&address.to_string(), error))?;
        let address = listener.local_addr().map_err(|error| fail("cannot start the server", error))?;
        let (app, place) = make(address)?;
        // Scripts parse this line to find the port.
        let _ = writeln!(std::io::stderr(), "http://{address}{place} until Ctrl-C{suffix}");
        // End without a graceful shutdown, which would wait for the streams of open pages.
        tokio::select! {
            result = async { axum::serve(listener, app).await } => result.map_err(|error| fail("the server", error)),
            ended = end_requested() => ended.map_err(|error| fail("signals cannot be caught", error)),
        }
    });
    // Do not wait for blocking threads, such as a simulation or the check of a whole store. Pages
    // only read, so nothing is lost.
    runtime.shutdown_background();
    served
}

/// Waits for Ctrl-C, SIGTERM, or a closed terminal unless SIGHUP is ignored. Handling SIGHUP
/// matters: runs that a page has started do not get it and would be left behind.
async fn end_requested() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hung_up = (!interrupt::is_ignored(SIGHUP)).then(|| signal(SignalKind::hangup())).transpose()?;
    let closed = async {
        match &mut hung_up {
            Some(signal) => signal.recv().await,
            None => pending().await,
        }
    };
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed,
        _ = terminate.recv() => Ok(()),
        _ = closed => Ok(()),
    }
}

/// Returns a built-in file.
pub async fn asset(kind: &'static str, text: &'static str) -> impl IntoResponse {
    (
        [
            (header::CONTENT_TYPE, kind),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::CACHE_CONTROL, "no-cache"),
        ],
        text,
    )
}

/// The content type of pages.
pub const HTML: &str = "text/html; charset=utf-8";
/// The content type of scripts.
pub const SCRIPT: &str = "text/javascript; charset=utf-8";
/// The content type of styles.
pub const STYLE: &str = "text/css; charset=utf-8";

/// Styles and chart styles of all pages.
pub const SHARED_STYLE: &str = include_str!("../../assets/shared/base.css");
