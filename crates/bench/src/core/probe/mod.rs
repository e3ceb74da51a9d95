//! Probes of the machine. They take a few seconds before a run and are stored with it, because
//! figures cannot be judged without their machine.

mod disk;
mod machine;
mod memory;

use std::path::Path;

use cairn_vfs::{Clock, SystemClock};

pub use machine::{describe, memory_bytes};

use crate::core::error::Result;
use crate::core::results::Probe;

/// Effort of the probes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbeEffort {
    /// Size of the file for the disk probes.
    pub file_bytes: u64,
    /// Time limit of each of the disk's four probes.
    pub seconds: f64,
    /// Size of the largest array for the memory probes.
    pub memory_bytes: usize,
}

impl ProbeEffort {
    /// Returns an effort of about four seconds on an ordinary disk.
    pub fn quick() -> Self {
        ProbeEffort { file_bytes: 256 << 20, seconds: 1.0, memory_bytes: 256 << 20 }
    }
}

/// Probes memory, and the disk that contains `dir`.
pub fn measure(dir: &Path, effort: ProbeEffort) -> Result<Vec<Probe>> {
    let clock = SystemClock::new();
    let mut probes = memory::latencies(&clock, effort.memory_bytes);
    probes.extend(disk::speeds(dir, &clock, effort)?);
    probes.push(probe("clock overhead", crate::core::histogram::clock_overhead(&clock) as f64, "ns"));
    Ok(probes)
}

/// Builds one reading.
pub fn probe(name: impl Into<String>, value: f64, unit: &str) -> Probe {
    Probe { name: name.into(), value, unit: unit.to_owned() }
}

fn elapsed_seconds<T>(clock: &dyn Clock, work: impl FnOnce() -> T) -> (T, f64) {
    let start = clock.now();
    let result = work();
    (result, (clock.now() - start).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::scratch::Scratch;

    /// Goal: every probe returns a positive reading, and the names that the report looks for exist.
    /// Method: tiny sizes in the working directory.
    #[test]
    fn probes_read_something() {
        let scratch = Scratch::in_dir(&std::env::current_dir().unwrap(), "probe-test").unwrap();
        let effort = ProbeEffort { file_bytes: 4 << 20, seconds: 0.05, memory_bytes: 1 << 20 };
        let probes = measure(scratch.path(), effort).unwrap();
        assert!(probes.iter().all(|probe| probe.value >= 0.0 && !probe.unit.is_empty()), "{probes:?}");
        for name in [
            "memory latency 32 KiB",
            "sequential write 1 MiB",
            "random read 4 KiB",
            "fdatasync p50",
            "fdatasync p99",
        ] {
            let found = probes.iter().find(|probe| probe.name.starts_with(name));
            assert!(found.is_some_and(|probe| probe.value > 0.0), "{name}: {probes:?}");
        }
    }
}
