//! Runs `cairn bench sql` with the given arguments in the bench profile, as published figures are
//! built: `cargo bench --bench simple_bench -- 50 "INSERT"`.

use std::env;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // Cargo appends `--bench` to the arguments after `--`.
    let options = env::args_os().skip(1).filter(|option| option != "--bench");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cairn"));
    // Cargo starts a benchmark in the package's directory. Run in the repository's root instead, so
    // that results are stored with all others, and paths are relative to it.
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    match command.args(["bench", "sql"]).args(options).status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("cairn cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}
