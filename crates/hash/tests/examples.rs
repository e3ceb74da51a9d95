//! Runs the examples, so that what a newcomer tries first works.

#[path = "../../../examples/constant_store.rs"]
mod constant_store;
#[path = "../../../examples/hot_reload.rs"]
mod hot_reload;
#[path = "../../../examples/sparkey_files.rs"]
mod sparkey_files;

/// Goal: each example does what it says. Method: its own `main`, with its own assertions.
#[test]
fn examples_run() {
    constant_store::main().unwrap();
    hot_reload::main().unwrap();
    sparkey_files::main().unwrap();
}
