//! What the kernel says of this process and of the machine, in `/proc` and `/sys`.

use std::path::Path;

use cairn_vfs::{Fs, OpenOptions, StdFs};
use rustix::time::{ClockId, clock_gettime};

/// More than any of these files has.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The text of a small file whose length the kernel does not tell. `None` when it cannot be read.
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

/// The first line of a file, trimmed.
pub fn line(path: &str) -> Option<String> {
    text(path)?.lines().next().map(|line| line.trim().to_owned())
}

/// The value of `name` in a file of `name: value` lines.
pub fn field(path: &str, name: &str) -> Option<String> {
    field_of(&text(path)?, name)
}

fn field_of(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Processor seconds that this process has taken so far; `None` where the kernel does not tell. The
/// clock and not `schedstat`, which a running thread brings up to date only when it is interrupted:
/// work of milliseconds would count for nothing.
pub fn cpu_secs() -> Option<f64> {
    secs_of(ClockId::ProcessCPUTime)
}

/// Processor seconds of this thread alone.
pub fn own_cpu_secs() -> Option<f64> {
    secs_of(ClockId::ThreadCPUTime)
}

fn secs_of(clock: ClockId) -> Option<f64> {
    let time = clock_gettime(clock);
    let secs = time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9;
    (secs > 0.0).then_some(secs)
}

/// Processor seconds, of all cores, that the host has given to others while this machine had work
/// for them; `None` where the kernel does not tell. By `/proc/stat`, which counts hundredths of a
/// second on every architecture that shares its layout.
pub fn stolen_secs() -> Option<f64> {
    const TICKS_PER_SEC: f64 = 100.0;
    let ticks: f64 = line("/proc/stat")?.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok()?;
    Some(ticks / TICKS_PER_SEC)
}

/// How far this process's memory rose since a moment.
#[derive(Debug)]
pub struct PeakMemory {
    start_bytes: u64,
    /// The peak as it stood at the start; a later peak under it cannot be seen.
    old_peak_bytes: u64,
}

impl PeakMemory {
    /// Remembers how much memory is resident now, and asks the kernel to forget the peak so far.
    ///
    /// Only processes with the right to write their own `clear_refs` can make it forget; others
    /// measure what goes over the old peak, which in a fresh process is little.
    pub fn start() -> Option<PeakMemory> {
        let clear = StdFs::new().open(Path::new("/proc/self/clear_refs"), OpenOptions::write());
        // "5" resets the peak and nothing else.
        let _ = clear.and_then(|file| file.write_all_at(b"5", 0));
        // Both of one look: what is resident may have risen by the next one, and a peak that is
        // above it for no more than that would hide small builds.
        let status = text(STATUS)?;
        Some(PeakMemory {
            start_bytes: bytes_of(&status, "VmRSS")?,
            old_peak_bytes: bytes_of(&status, "VmHWM")?,
        })
    }

    /// How much more than at the start was resident at the worst moment since. Pages of mapped
    /// files count. `None` when the old peak hides it.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the peak sees memory that is gone again. Method: touch 64 MiB, free it, read the rise.
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

    /// Goal: processor time goes on while one works, and is known at every moment. Method: work in
    /// steps far shorter than the kernel's tick; none of them takes no time.
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

    /// Goal: fields are found by their whole name, and what is missing is `None`.
    #[test]
    fn fields_are_found() {
        assert!(field("/proc/self/status", "VmRSS").unwrap().ends_with("kB"));
        assert_eq!(field("/proc/self/status", "VmR"), None);
        assert_eq!(text("/proc/self/no such file"), None);
        assert!(line("/proc/version").unwrap().starts_with("Linux"));
    }
}
