//! Passes the build's commit, compiler and flags to the crate, because every report states them.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CAIRN_COMMIT");
    println!("cargo::rustc-env=CAIRN_COMMIT={}", commit().unwrap_or_default());
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!("cargo::rustc-env=CAIRN_RUSTC={}", version.unwrap_or_default());
    for (name, variable) in [
        ("CAIRN_TARGET", "TARGET"),
        ("CAIRN_OPT_LEVEL", "OPT_LEVEL"),
        ("CAIRN_RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"),
    ] {
        // Cargo separates flags with U+001F, which occurs in no flag.
        let value = env::var(variable).unwrap_or_default().replace('\u{1f}', " ");
        println!("cargo::rustc-env={name}={value}");
    }
}

/// Returns the commit of this build: `CAIRN_COMMIT` if set, otherwise the answer of git. `None`
/// without either, as in a source archive.
fn commit() -> Option<String> {
    if let Ok(commit) = env::var("CAIRN_COMMIT") {
        return Some(commit);
    }
    // Git appends every commit and every checkout to the log of HEAD.
    for file in ["HEAD", "logs/HEAD"] {
        // A `rerun-if-changed` on a missing file would rerun this script in every build.
        let path = git(&["rev-parse", "--git-path", file]);
        if let Some(path) = path.filter(|path| Path::new(path).is_file()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"])
}

/// Returns the one-line output of a git command. `None` without git, without a repository, or if
/// the output is empty.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !said.is_empty()).then_some(said)
}
