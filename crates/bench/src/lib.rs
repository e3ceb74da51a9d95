//! The lab: one workload description, one runner and one report for every storage engine.
//!
//! A figure is always a comparison: Cairn and its peers on the same data, durability and machine,
//! interleaved in one run, with an interval, and only after the answers have been verified.
//! `docs/src/method.md` describes the method and its reasons.
//!
//! ```no_run
//! use std::{path::Path, sync::Arc};
//!
//! use cairn_bench::process::Stop;
//! use cairn_bench::suite_hash::{self, DataFile, Options, Silent};
//! use cairn_bench::{report, store, table};
//!
//! # fn main() -> cairn_bench::Result<()> {
//! let mut options = Options::quick();
//! options.data = Some(DataFile::new("places.csv", "id"));
//! let run = suite_hash::run(&options, &Silent, &Stop::default())?;
//!
//! let fs: Arc<dyn cairn_vfs::Fs> = Arc::new(cairn_vfs::StdFs::new());
//! let file = store::save(&fs, Path::new(store::RESULTS_DIR), &run)?;
//! println!("{}\n{}", table::to_text(&run), file.display());
//! let page = report::render_html(&run, None);
//! # let _ = page;
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

pub mod advise;
pub mod catalog;
pub mod compare;
pub mod dashboard;
pub mod data_files;
pub mod digest;
pub mod engine;
pub mod error;
pub mod histogram;
pub mod history;
pub mod oracle;
pub mod page_cache;
pub mod peers;
pub mod probe;
pub mod progress;
pub mod process;
pub mod procfs;
pub mod report;
pub mod results;
pub mod runner;
pub mod scratch;
pub mod settings;
mod sizes;
pub mod stats;
pub mod store;
pub mod suite_all;
pub mod suite_counts;
pub mod suite_hash;
pub mod suite_index;
pub mod suite_kv;
pub mod suite_pool;
pub mod suite_sim;
pub mod suite_sql;
pub mod table;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;
#[cfg(test)]
mod testing;
pub mod text;
pub mod time;
pub mod trace_text;
pub mod workload;

use std::env;
use std::path::PathBuf;

pub use error::{Error, Result};

/// Compiles the Rust code in the README by `cargo test --doc`. It is in this crate because the code
/// uses several engines.
#[cfg(all(doctest, feature = "sql"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Returns the directory in which the setup script keeps downloads for the peers: `CAIRN_CACHE`,
/// else `.cache/cairn` in the home directory, else in the working directory.
pub fn cache_dir() -> PathBuf {
    match (env::var_os("CAIRN_CACHE"), env::var_os("HOME")) {
        (Some(cache), _) => cache.into(),
        (None, Some(home)) => PathBuf::from(home).join(".cache/cairn"),
        (None, None) => PathBuf::from(".cache/cairn"),
    }
}
