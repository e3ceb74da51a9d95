//! Names of files that cannot be written as a stream.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};

use crate::output::is_stdout;

/// Reads the name of a store or a trace to create. `-`, which stands for standard output elsewhere,
/// is refused.
pub fn to_make() -> impl TypedValueParser<Value = PathBuf> {
    let what =
        "expected the name of a file: standard output cannot hold a file that is not written front to back";
    PathBufValueParser::new().try_map(move |path| if is_stdout(&path) { Err(what) } else { Ok(path) })
}
