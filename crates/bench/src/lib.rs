//! The lab: one workload description, one runner and one report for every storage engine.
//!
//! A figure is always a comparison: Cairn and its peers on the same data, durability and machine,
//! interleaved in one run, with an interval, and only after the answers have been verified.
//! `docs/src/method.md` describes the method and its reasons.
//!
//! The modules are layers; each uses only those below it:
//!
//! ```text
//!   catalog            names every store, hands them to the suites, answers workers
//!   report  advise     pages and tables of runs; recommendations
//!   history oracle     regressions; statements on which SQL engines agree
//!   suites             the measurements of each kind of store, run by one driver
//!   peers              the stores that Cairn is compared with
//!   stores             the interface of each kind of store, and Cairn's own behind it
//!   core               results, statistics, workloads, processes, the machine
//! ```
//!
//! ```no_run
//! use std::{path::Path, sync::Arc};
//!
//! use cairn_bench::catalog::installed;
//! use cairn_bench::core::process::Stop;
//! use cairn_bench::core::progress::Silent;
//! use cairn_bench::core::run_files;
//! use cairn_bench::report::{render_html, summary};
//! use cairn_bench::suites::hash::{self, DataFile, Options};
//!
//! # fn main() -> cairn_bench::Result<()> {
//! let mut options = Options::quick();
//! options.data = Some(DataFile::new("places.csv", "id"));
//! let run = hash::run(&options, installed(), &Silent, &Stop::default())?;
//!
//! let fs: Arc<dyn cairn_vfs::Fs> = Arc::new(cairn_vfs::StdFs::new());
//! let file = run_files::save(&fs, Path::new(run_files::RESULTS_DIR), &run)?;
//! println!("{}\n{}", summary::to_text(&run), file.display());
//! let page = render_html(&run, None);
//! # let _ = page;
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

pub mod advise;
pub mod catalog;
pub mod core;
pub mod history;
pub mod oracle;
pub mod peers;
pub mod report;
pub mod stores;
pub mod suites;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;

pub use crate::core::cache::cache_dir;
pub use crate::core::error::{Error, Result};

/// Compiles the Rust code in the README by `cargo test --doc`. It is in this crate because the code
/// uses several engines.
#[cfg(all(doctest, feature = "sql"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
