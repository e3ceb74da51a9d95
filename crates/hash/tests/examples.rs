//! Runs the constant store's examples, so that what a newcomer tries first works.
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
