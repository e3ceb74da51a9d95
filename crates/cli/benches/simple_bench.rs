//! `cargo bench --bench simple_bench -- 50 "INSERT"`: the same as `cairn bench sql` with these
//! arguments, built as figures are.

use std::env;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // Cargo adds `--bench` by itself; what follows `--` on its own line comes after it.
    let options = env::args_os().skip(1).filter(|option| option != "--bench");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cairn"));
    // Cargo starts it in the package's folder; results belong with all others, and paths are the
    // caller's.
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    match command.args(["bench", "sql"]).args(options).status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("cairn cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}
