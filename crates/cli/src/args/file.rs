//! Names of files that cannot be written as their bytes come.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};

use crate::output::is_stdout;

/// Reads the name of a store or a trace that is to be made; `-` is none, as everywhere else it is standard output.
pub fn to_make() -> impl TypedValueParser<Value = PathBuf> {
    let what =
        "expected the name of a file: standard output cannot hold what is not written from front to back";
    PathBufValueParser::new().try_map(move |path| if is_stdout(&path) { Err(what) } else { Ok(path) })
}
