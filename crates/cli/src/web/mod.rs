//! What the local pages have in common: serving on this machine, who may ask, files that are built
//! in, refusals.

mod asked;
mod hosts;
mod ours;
mod refused;

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
pub use asked::{Body, Query};
pub use hosts::Hosts;
pub use ours::expect_ours;
pub use refused::{Refused, refuse};

/// What a page may send at a time.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// Nothing from elsewhere; styles in attributes, which charts set.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                          connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// Serves what `make` makes of the address, until Ctrl-C or a request to end. `told` is what stands
/// on standard error behind the address, whose path and query come from `make` too.
pub fn serve(
    address: SocketAddr,
    told: &str,
    make: impl FnOnce(SocketAddr) -> Result<(Router, String)>,
) -> Result<()> {
    let fail = |what: &str, error: std::io::Error| Error::usage(format!("{what}: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| fail("no runtime", error))?;
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await;
        let listener = listener.map_err(|error| fail(&address.to_string(), error))?;
        let address = listener.local_addr().map_err(|error| fail("no address", error))?;
        let (app, place) = make(address)?;
        // Scripts read it to find the port.
        let _ = writeln!(std::io::stderr(), "http://{address}{place} until Ctrl-C{told}");
        // Streams of open pages would be waited for; so it ends without waiting.
        tokio::select! {
            result = async { axum::serve(listener, app).await } => result.map_err(|error| fail("the server", error)),
            ended = asked_to_end() => ended.map_err(|error| fail("signals cannot be caught", error)),
        }
    });
    // Dropping it would wait for what runs on threads of its own: a simulation, a check of a whole
    // store. Pages only read, so nothing is lost.
    runtime.shutdown_background();
    served
}

/// Ctrl-C, SIGTERM, and a closed terminal unless that is ignored: runs that a page has started do
/// not hear of it and would stay behind.
async fn asked_to_end() -> std::io::Result<()> {
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

/// A file that is built in.
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

/// Their kinds.
pub const HTML: &str = "text/html; charset=utf-8";
/// Of scripts.
pub const SCRIPT: &str = "text/javascript; charset=utf-8";
/// Of styles.
pub const STYLE: &str = "text/css; charset=utf-8";

/// Styles and chart styles of all pages.
pub const SHARED_STYLE: &str = include_str!("../../assets/shared/base.css");
