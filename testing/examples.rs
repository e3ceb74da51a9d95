//! Runs the programs in `examples/`, which belong to several crates. Each of these includes this
//! file by its path and lists its own:
//!
//! ```ignore
//! #[path = "../../../testing/examples.rs"]
//! #[macro_use]
//! mod testing;
//!
//! examples! { first_steps = "../../../examples/first_steps.rs" }
//! ```
//!
//! Each example becomes a module of the test program, so an outdated build can never run. It also
//! gets a test of its own, which runs itself as a child process with a temporary directory and
//! separate output.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set in the child process.
pub const CHILD: &str = "CAIRN_EXAMPLE";

/// Marks the beginning and the end of an example's output in that of the child process.
const MARK: &str = "-----";

/// The least lines of output.
const LINES_MIN: usize = 3;

/// Defines the tests of a crate's examples: one for each, and one that checks that none is missing.
macro_rules! examples {
    ($($name:ident = $path:literal),+ $(,)?) => {
        $(
            #[path = $path]
            mod $name;
        )+

        /// Goal: each example works, prints something and leaves nothing behind. Method: see
        /// [`testing::run`].
        mod runs {
            $(
                #[test]
                fn $name() {
                    crate::testing::run(stringify!($name), concat!("runs::", stringify!($name)), || {
                        crate::$name::main().map_err(|error| error.to_string())
                    });
                }
            )+
        }

        /// Goal: every program that newcomers are told to run can be run, and is run here. Method:
        /// see [`testing::none_is_forgotten`].
        #[test]
        fn none_is_forgotten() {
            testing::none_is_forgotten(&[$(stringify!($name)),+], Path::new(env!("CARGO_MANIFEST_DIR")));
        }
    };
}

/// Runs the example `name` in a child process, which runs the same `test` with an empty temporary
/// directory. Checks that it succeeds, prints some lines and leaves that directory empty.
pub fn run(name: &str, test: &str, example: impl FnOnce() -> Result<(), String>) {
    if std::env::var_os(CHILD).is_some() {
        println!("\n{MARK}");
        let result = example();
        println!("\n{MARK}");
        return result.unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(CHILD, name).env("TMPDIR", dir.path());
    let output = child.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    let printed = text.split(MARK).nth(1).unwrap_or_else(|| panic!("no example {name} ran: {text}"));
    let lines = printed.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines >= LINES_MIN, "{name} prints {lines} lines: {printed}");
    let left: Vec<PathBuf> = list(dir.path());
    assert!(left.is_empty(), "{name} leaves {left:?}");
}

/// Checks that `examples/` is complete. `names` are those of the crate in `crate_dir`. Every
/// program belongs to one crate, so that `cargo run --example` finds it, is in the table of
/// `examples/README.md`, and says in its head how to run it.
pub fn none_is_forgotten(names: &[&str], crate_dir: &Path) {
    let crates = crate_dir.parent().unwrap();
    let examples = crates.parent().unwrap().join("examples");
    let owned = declared(&crate_dir.join("Cargo.toml"));
    assert_eq!(names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), owned);

    let mut by_all: Vec<String> =
        list(crates).iter().flat_map(|dir| declared(&dir.join("Cargo.toml"))).collect();
    by_all.sort();
    let programs = list(&examples).into_iter().filter(|path| path.extension().is_some_and(|it| it == "rs"));
    let mut there: Vec<String> =
        programs.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    there.sort();
    assert_eq!(by_all, there, "[[example]] of the crates, and examples/*.rs");

    let table = fs::read_to_string(examples.join("README.md")).unwrap();
    for name in names {
        assert!(table.contains(&format!("[`{name}`]({name}.rs)")), "{name} is not in examples/README.md");
        let text = fs::read_to_string(examples.join(format!("{name}.rs"))).unwrap();
        let head: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
        let command = head.contains("cargo run ") && head.contains(&format!("--example {name}`"));
        assert!(command, "the head of {name}.rs does not say how to run it");
    }
}

/// Returns the names of the programs in `examples/` that a manifest declares.
fn declared(manifest: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(manifest).unwrap();
    let tables = text.split("[[example]]").skip(1).map(|rest| rest.split("\n[").next().unwrap());
    let value = |table: &str, key: &str| {
        let line = table.lines().find_map(|line| line.strip_prefix(key)?.trim().strip_prefix('='));
        line.map(|value| value.trim().trim_matches('"').to_owned())
    };
    let ours = tables.filter_map(|table| {
        let (name, path) = (value(table, "name")?, value(table, "path")?);
        (path == format!("../../examples/{name}.rs")).then_some(name)
    });
    ours.collect()
}

fn list(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}
