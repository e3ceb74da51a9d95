//! Data of the kernel about this process and the machine, from `/proc` and `/sys`.

use std::path::Path;

use cairn_vfs::{Fs, OpenOptions, StdFs};
use rustix::time::{ClockId, clock_gettime};

/// Upper bound of the size of these files.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Returns the text of a small file whose length the kernel does not report. `None` if it cannot be
/// read.
pub fn text(path: &str) -> Option<String> {
    let file = StdFs::new().open(Path::new(path), OpenOptions::read()).ok()?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    while bytes.len() < TEXT_BYTES_MAX {
        match file.read_at(&mut chunk, bytes.len() as u64).ok()? {
            0 => break,
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the first line of a file, trimmed.
pub fn line(path: &str) -> Option<String> {
    text(path)?.lines().next().map(|line| line.trim().to_owned())
}

/// Returns the value of `name` in a file of `name: value` lines.
pub fn field(path: &str, name: &str) -> Option<String> {
    field_of(&text(path)?, name)
}

fn field_of(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Returns the CPU time of this process in seconds; `None` if the kernel does not report it. It
/// comes from the clock and not from `schedstat`, which the kernel updates for a running thread
/// only when it is interrupted, so that milliseconds of work would not be counted.
pub fn cpu_secs() -> Option<f64> {
    secs_of(ClockId::ProcessCPUTime)
}

/// Returns the CPU time of this thread alone, in seconds.
pub fn own_cpu_secs() -> Option<f64> {
    secs_of(ClockId::ThreadCPUTime)
}

fn secs_of(clock: ClockId) -> Option<f64> {
    let time = clock_gettime(clock);
    let secs = time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9;
    (secs > 0.0).then_some(secs)
}

/// Returns the steal time of all cores in seconds: time that the hypervisor gave to others while
/// this machine had work. `None` if the kernel does not report it. It comes from `/proc/stat`,
/// which counts hundredths of a second on every architecture that has its layout.
pub fn stolen_secs() -> Option<f64> {
    const TICKS_PER_SEC: f64 = 100.0;
    let ticks: f64 = line("/proc/stat")?.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok()?;
    Some(ticks / TICKS_PER_SEC)
}

/// Measures the rise of this process's memory from a point in time.
#[derive(Debug)]
pub struct PeakMemory {
    start_bytes: u64,
    /// The peak at the start. A later peak below it cannot be seen.
    old_peak_bytes: u64,
}

impl PeakMemory {
    /// Records the resident memory, and asks the kernel to reset the peak.
    ///
    /// Only processes with permission to write their own `clear_refs` can reset it. Others measure
    /// the excess over the old peak, which is small in a fresh process.
    pub fn start() -> Option<PeakMemory> {
        let clear = StdFs::new().open(Path::new("/proc/self/clear_refs"), OpenOptions::write());
        // "5" resets only the peak.
        let _ = clear.and_then(|file| file.write_all_at(b"5", 0));
        // Both values come from one read: resident memory may rise before a second read, and a peak
        // above it by only that amount would hide small builds.
        let status = text(STATUS)?;
        Some(PeakMemory {
            start_bytes: bytes_of(&status, "VmRSS")?,
            old_peak_bytes: bytes_of(&status, "VmHWM")?,
        })
    }

    /// Returns the rise of resident memory from the start to the highest point since, including
    /// pages of mapped files. `None` if the old peak hides it.
    pub fn rise_bytes(&self) -> Option<u64> {
        let peak = bytes_of(&text(STATUS)?, "VmHWM")?;
        let hidden = peak <= self.old_peak_bytes && self.old_peak_bytes > self.start_bytes;
        (!hidden).then(|| peak.saturating_sub(self.start_bytes))
    }
}

const STATUS: &str = "/proc/self/status";

fn bytes_of(status: &str, name: &str) -> Option<u64> {
    let value = field_of(status, name)?;
    let kib: u64 = value.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// The kernel's counters for this process, over all its threads (`/proc/self/io`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Io {
    /// Bytes of pages that became dirty through `write` or a mapping, and so go to the disk. A page
    /// that is written several times before it is written back counts once. A page of a file that
    /// is removed before writeback counts too.
    pub(crate) written_bytes: u64,
    /// Bytes passed to `write`.
    pub(crate) write_call_bytes: u64,
    /// Bytes returned by `read`.
    pub(crate) read_call_bytes: u64,
}

impl Io {
    /// Reads the counters; `None` if the kernel does not provide them.
    pub(crate) fn now() -> Option<Io> {
        let text = text("/proc/self/io")?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line?.trim().parse().ok()
        };
        Some(Io {
            written_bytes: field("write_bytes")?,
            write_call_bytes: field("wchar")?,
            read_call_bytes: field("rchar")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the peak includes memory that is freed again. Method: touch 64 MiB, free it, read the
    /// rise.
    #[test]
    fn peak_outlives_the_memory() {
        let meter = PeakMemory::start().unwrap();
        let bytes = vec![1_u8; 64 << 20];
        assert_eq!(std::hint::black_box(&bytes)[12_345], 1);
        drop(bytes);
        if let Some(rise) = meter.rise_bytes() {
            assert!(rise >= 60 << 20, "{rise}");
        }
    }

    /// Goal: CPU time advances during work, at a fine resolution. Method: steps far shorter than
    /// the kernel's tick; each of them takes some time.
    #[test]
    fn processor_time_passes() {
        for _ in 0..20 {
            let (all, own) = (cpu_secs().unwrap(), own_cpu_secs().unwrap());
            for _ in 0..200 {
                std::hint::black_box(vec![1_u8; 4096]);
            }
            assert!(cpu_secs().unwrap() > all && own_cpu_secs().unwrap() > own);
        }
    }

    /// Goal: fields are matched by their whole name, and a missing one is `None`.
    #[test]
    fn fields_are_found() {
        assert!(field("/proc/self/status", "VmRSS").unwrap().ends_with("kB"));
        assert_eq!(field("/proc/self/status", "VmR"), None);
        assert_eq!(text("/proc/self/no such file"), None);
        assert!(line("/proc/version").unwrap().starts_with("Linux"));
    }
}
