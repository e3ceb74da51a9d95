//! Tests of the server from outside, over its socket, byte by byte.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test program"
)]

mod cancel_and_shutdown;
mod client;
mod copy;
mod cursors;
mod deep_nesting;
mod disconnected_clients;
mod extended;
mod limits;
mod sigkill;
mod simple;
