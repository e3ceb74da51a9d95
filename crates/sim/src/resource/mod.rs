//! Sharing: flows that need disk and cores at the same time. Cores are shared by thread, as a
//! scheduler does, bandwidth by progressive filling.

mod flow;
mod meeting;
mod share;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use flow::{Capacity, Flow};
pub use share::share;

/// What can be full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Bandwidth of reads.
    DiskRead,
    /// Bandwidth of writes.
    DiskWrite,
    /// Reads and writes together.
    DiskMixed,
    /// Requests a second.
    DiskRequests,
    /// Cores.
    Cpu,
    /// The rate limiter.
    RateLimiter,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Resource::DiskRead => "the disk's read bandwidth",
            Resource::DiskWrite => "the disk's write bandwidth",
            Resource::DiskMixed => "the disk's bandwidth for reads and writes together",
            Resource::DiskRequests => "the disk's requests a second",
            Resource::Cpu => "the processor's cores",
            Resource::RateLimiter => "the rate limiter's budget",
        })
    }
}

/// How many there are.
pub const RESOURCES: usize = 6;

/// All of them, in the order of arrays.
pub const ALL: [Resource; RESOURCES] = [
    Resource::DiskRead,
    Resource::DiskWrite,
    Resource::DiskMixed,
    Resource::DiskRequests,
    Resource::Cpu,
    Resource::RateLimiter,
];

/// What a piece of work needs in all.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Bytes read from the disk.
    pub read_bytes: f64,
    /// Bytes written to the disk.
    pub write_bytes: f64,
    /// Bytes that the rate limiter counts.
    pub limited_bytes: f64,
    /// Small requests.
    pub requests: f64,
    /// Processor seconds.
    pub cpu_secs: f64,
    /// Cores that it can use at a time.
    pub threads: f64,
    /// Files that are made stable when they are whole. Nothing of the work goes on beside that:
    /// until then their bytes lie in the page cache.
    pub syncs: f64,
    /// Files that are removed, one after another.
    pub removals: f64,
}
