//! Runs the examples, so that what a newcomer tries first works.

use cairn_vfs::{Fs, StdFs};

#[path = "../../../examples/constant_store.rs"]
mod constant_store;
#[path = "../../../examples/hot_reload.rs"]
mod hot_reload;
#[path = "../../../examples/sparkey_files.rs"]
mod sparkey_files;

/// Goal: each example does what it says and leaves nothing behind. Method: its own `main`, with its own assertions; then
/// the temporary directory must have no name with this process's number in it that an example could have made.
#[test]
fn examples_run() {
    constant_store::main().unwrap();
    hot_reload::main().unwrap();
    sparkey_files::main().unwrap();
    let all = StdFs::new().read_dir(&std::env::temp_dir()).unwrap();
    let made = |path: &&std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // A dot ends the number, or the name does.
        let number = std::process::id().to_string();
        name.strip_prefix("cairn-example-").is_some_and(|rest| {
            let rest = rest.split('.').next().unwrap_or_default();
            rest.rsplit('-').next() == Some(&number)
        })
    };
    let left: Vec<_> = all.iter().filter(made).collect();
    assert!(left.is_empty(), "{left:?}");
}
