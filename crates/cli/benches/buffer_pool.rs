//! `cargo bench --bench buffer_pool -- 50 12 "Random (K=10,"`: the same as `cairn bench pool` with
//! these arguments, built as figures are.

use std::env;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // Cargo adds `--bench` by itself; what follows `--` on its own line comes after it.
    let options = env::args_os().skip(1).filter(|option| option != "--bench");
    match Command::new(env!("CARGO_BIN_EXE_cairn")).args(["bench", "pool"]).args(options).status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("cairn cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}
