//! A worker process for programs that embed the lab and cannot start themselves again. It reads one
//! job from standard input and writes its result to standard output. The `cairn` command has the
//! same function behind a hidden argument.

use std::io::{self, Read, Write};

fn main() -> io::Result<()> {
    cairn_bench::core::process::end_with_parent();
    let mut job = String::new();
    io::stdin().read_to_string(&mut job)?;
    io::stdout().write_all(cairn_bench::catalog::serve(&job).as_bytes())
}
