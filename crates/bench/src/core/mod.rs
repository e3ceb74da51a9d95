//! The parts that every layer above shares: results and their statistics, the recorder that turns
//! samples into results, stored runs, workloads, worker processes, and measurements of the machine.

pub mod answer;
pub mod cache;
pub mod compare;
pub mod dashboard;
pub mod data_files;
pub mod digest;
pub mod error;
pub mod histogram;
pub mod page_cache;
pub mod probe;
pub mod process;
pub mod procfs;
pub mod progress;
#[cfg(feature = "peers")]
pub(crate) mod quiet;
pub(crate) mod ratio;
pub mod recorder;
pub mod results;
pub mod run_files;
pub mod scratch;
pub mod settings;
pub(crate) mod sizes;
pub mod stats;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;
pub(crate) mod threads;
pub mod time;
pub mod worker;
pub mod workload;
