//! Generates SQL statements on whose answers several engines agree: `records [DIR]` writes files
//! for the sqllogictest runner, `differ SEED STATEMENTS` tests Cairn.
#![forbid(unsafe_code)]

use std::env;
use std::path::Path;
use std::process::ExitCode;

use cairn_bench::core::error::{Error, Result};
use cairn_bench::core::scratch::Scratch;
use cairn_bench::oracle::{engines, records};
use cairn_vfs::{Fs, OpenOptions, StdFs};

/// Minimum number of records of a file.
const RECORDS: usize = 260;

/// Seed of all files.
const SEED: u64 = 2026;

const DIR: &str = "testing/slt";

/// Maximum number of differences shown.
const MOST: usize = 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = match words.as_slice() {
        ["records"] => write_records(Path::new(DIR)),
        ["records", dir] => write_records(Path::new(dir)),
        ["differ", seed, count] => match (seed.parse(), count.parse()) {
            (Ok(seed), Ok(count)) => differ(seed, count),
            _ => Err(Error::invalid("differ SEED STATEMENTS: expected two numbers")),
        },
        _ => Err(Error::invalid("expected records [DIR], or differ SEED STATEMENTS")),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("sql_oracle: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write_records(dir: &Path) -> Result<bool> {
    let (fs, mut all) = (StdFs::new(), 0);
    fs.create_dir_all(dir)?;
    for name in records::names() {
        let scratch = Scratch::temporary("oracle")?;
        let mut file = records::File::default();
        engines::with_references(scratch.path(), true, &mut |sessions| {
            file = records::make(name, SEED, RECORDS, sessions)?;
            Ok(())
        })?;
        let path = dir.join(name).with_extension("slt");
        let out = fs.open(&path, OpenOptions::create())?;
        out.set_len(0)?;
        out.write_all_at(file.text.as_bytes(), 0)?;
        println!("{}: {} records", path.display(), file.count);
        all += file.count;
    }
    println!("{all} records");
    Ok(true)
}

#[cfg(feature = "sql")]
fn differ(seed: u64, count: usize) -> Result<bool> {
    let found = engines::test_cairn(seed, count, true, MOST)?;
    print!("{found}");
    Ok(found.differences.is_empty())
}

#[cfg(not(feature = "sql"))]
fn differ(_: u64, _: usize) -> Result<bool> {
    Err(Error::invalid("this build is without Cairn's SQL"))
}
