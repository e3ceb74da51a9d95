//! Remembers what the lab was built with, since every report has to say it.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CAIRN_COMMIT");
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
