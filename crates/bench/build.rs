//! Remembers what the lab was built with, since every report has to say it.

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
        // Cargo separates flags by a character that no flag holds.
        let value = env::var(variable).unwrap_or_default().replace('\u{1f}', " ");
        println!("cargo::rustc-env={name}={value}");
    }
}

/// The commit that this is built from: what `CAIRN_COMMIT` says, else what git says. `None` without
/// either, as in a source archive.
fn commit() -> Option<String> {
    if let Ok(commit) = env::var("CAIRN_COMMIT") {
        return Some(commit);
    }
    // Git notes every commit and every switch in the log of HEAD.
    for file in ["HEAD", "logs/HEAD"] {
        // Naming what is not there would build every time.
        let path = git(&["rev-parse", "--git-path", file]);
        if let Some(path) = path.filter(|path| Path::new(path).is_file()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"])
}

/// What a git command says in one line. `None` where there is no git, no repository, or no answer.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !said.is_empty()).then_some(said)
}
