//! Runs the examples of the constant store, so that they are known to work.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::path::Path;

#[path = "../../../testing/examples.rs"]
#[macro_use]
mod testing;

examples! {
    constant_store = "../../../examples/constant_store.rs",
    hot_reload = "../../../examples/hot_reload.rs",
    sparkey_files = "../../../examples/sparkey_files.rs",
}
