//! The cache directory.

use std::env;
use std::path::PathBuf;

/// Returns the directory in which the setup script keeps downloads for the peers: `CAIRN_CACHE`,
/// else `.cache/cairn` in the home directory, else in the working directory.
pub fn cache_dir() -> PathBuf {
    match (env::var_os("CAIRN_CACHE"), env::var_os("HOME")) {
        (Some(cache), _) => cache.into(),
        (None, Some(home)) => PathBuf::from(home).join(".cache/cairn"),
        (None, None) => PathBuf::from(".cache/cairn"),
    }
}
