//! Tests of the built program as users run it: its output and its exit codes.
// The tests act like another program: they create and damage files directly.
#![allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]

mod advise;
mod all;
mod bench;
mod changes;
mod formats;
mod history;
#[cfg(feature = "sql")]
mod ingest;
mod kv;
mod manual;
mod pages;
mod places;
mod reading;
#[cfg(all(feature = "sql", feature = "ui"))]
mod signals;
mod sim;
#[cfg(feature = "sql")]
mod sql;
mod stdout;
mod support;
mod trace;
#[cfg(feature = "ui")]
mod ui;
#[cfg(feature = "sql")]
mod writing;
