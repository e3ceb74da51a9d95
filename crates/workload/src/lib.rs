//! Seeded draws that workloads are made of, and histograms of the results.
//!
//! The lab, the statistics of traces and the simulator share these, so that "zipfian 0.99" and
//! "99th percentile" mean the same in each. Random bits come from [`cairn_vfs::SeededRng`]. Every
//! draw is pinned by a test: stored runs and published figures name only a seed.
#![forbid(unsafe_code)]

mod draw;
pub mod histogram;
mod permutation;
mod zipf;

pub use draw::{Draw, split_mix};
pub use histogram::{Histogram, Percentiles};
pub use permutation::{Feistel, Permutation, Round, SplitMixPermutation};
pub use zipf::Zipf;
