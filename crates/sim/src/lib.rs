//! A discrete-event simulator of LSM trees that predicts the behaviour of RocksDB and Cairn's `kv`.
//!
//! It has no threads, clocks or I/O, and no fitted factors. Files hold sorted lists of sampled
//! keys, so overlap, overwrites and tombstones follow from the keys. Compactions are picked by the
//! engines' own rules. Jobs, writers and readers share disk and cores on a virtual clock. The same
//! configuration and seed give the same results. `docs/src/design/sim.md` describes the model and
//! its reasons.
//!
//! ```
//! use cairn_sim::{Config, Simulation};
//!
//! let mut config = Config { duration_secs: 600.0, ..Config::default() };
//! config.options.write_buffer_size = 32 << 20;
//! let results = Simulation::run(&config)?;
//! assert!(results.write_amplification > 1.0);
//! println!("{:.1} MB/s", results.user_mb_per_sec);
//! println!("write amplification {:.1}", results.write_amplification);
//! # Ok::<(), cairn_sim::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod compact;
pub mod config;
mod error;
pub mod hardware;
pub mod import;
pub mod json;
pub mod keys;
pub mod layout;
pub mod merge;
pub mod options;
pub mod output;
pub mod profiles;
pub mod read;
pub mod resource;
pub mod results;
mod sim;
pub mod stall;
#[cfg(test)]
#[path = "../../../testing/proptest_config.rs"]
mod test_config;
pub mod traffic;
pub mod tree;

pub use config::{Config, Mode, Preload, Workload, writes_per_flush};
pub use error::{Error, Result};
pub use hardware::Hardware;
pub use keys::{Distribution, KeyStream, WriteStream};
pub use options::Options;
pub use results::Results;
pub use sim::{JobView, Simulation, is_read_moment, preload_order};
