//! Shares disk and cores among flows that need both at the same time. Cores are shared by thread,
//! as by a scheduler, and bandwidth by progressive filling.

mod contention;
mod flow;
mod share;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use flow::{Capacity, Flow};
pub use share::share;

/// A resource that can be exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Read bandwidth of the disk.
    DiskRead,
    /// Write bandwidth of the disk.
    DiskWrite,
    /// Bandwidth of reads and writes together.
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

/// The number of resources.
pub const RESOURCES: usize = 6;

/// All resources, in the order in which arrays are indexed.
pub const ALL: [Resource; RESOURCES] = [
    Resource::DiskRead,
    Resource::DiskWrite,
    Resource::DiskMixed,
    Resource::DiskRequests,
    Resource::Cpu,
    Resource::RateLimiter,
];

/// The total demand of a piece of work.
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
    /// Cores that it can use in parallel.
    pub threads: f64,
    /// Files that are synced when they are complete. Syncs do not overlap the rest of the work,
    /// because the written bytes stay in the page cache until then.
    pub syncs: f64,
    /// Files that are removed, one after another.
    pub removals: f64,
}
