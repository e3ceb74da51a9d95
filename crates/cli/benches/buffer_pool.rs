//! Runs `cairn bench pool` with the given arguments in the bench profile, as published figures are
//! built: `cargo bench --bench buffer_pool -- 50 12 "Random (K=10,"`.

use std::env;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // Cargo appends `--bench` to the arguments after `--`.
    let options = env::args_os().skip(1).filter(|option| option != "--bench");
    match Command::new(env!("CARGO_BIN_EXE_cairn")).args(["bench", "pool"]).args(options).status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("cairn cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}
