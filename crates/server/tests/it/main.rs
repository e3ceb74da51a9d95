//! Tests of the server from outside, over its socket, byte by byte.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test program"
)]

mod client;
mod copy;
mod cursors;
mod depth;
mod ending;
mod extended;
mod killing;
mod limits;
mod simple;
mod vanishing;
