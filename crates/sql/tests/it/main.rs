//! What needs a whole database: one binary, as it is a large one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod catalog;
mod copy;
mod dependents;
mod direct;
mod general;
mod records;
mod session;
mod support;
