//! What the kernel says of this process and of the machine, in `/proc` and `/sys`.

use std::path::Path;

use cairn_vfs::{Fs, OpenOptions, StdFs};

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
    let text = text(path)?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Processor seconds that the threads which this process has now have taken so far; `None` where the kernel does not tell.
pub fn cpu_secs() -> Option<f64> {
    let threads = StdFs::new().read_dir(Path::new("/proc/self/task")).ok()?;
    let nanos = threads.iter().filter_map(|thread| {
        let times = line(&format!("{}/schedstat", thread.display()))?;
        times.split_whitespace().next()?.parse::<u64>().ok()
    });
    let all: u64 = nanos.sum();
    (all > 0).then_some(all as f64 * 1e-9)
}

/// Processor seconds of this thread alone.
pub fn own_cpu_secs() -> Option<f64> {
    let nanos: u64 = line("/proc/thread-self/schedstat")?.split_whitespace().next()?.parse().ok()?;
    Some(nanos as f64 * 1e-9)
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
    /// Only processes with the right to write their own `clear_refs` can make it forget; others measure what goes
    /// over the old peak, which in a fresh process is little.
    pub fn start() -> Option<PeakMemory> {
        let clear = StdFs::new().open(Path::new("/proc/self/clear_refs"), OpenOptions::write());
        // "5" resets the peak and nothing else.
        let _ = clear.and_then(|file| file.write_all_at(b"5", 0));
        Some(PeakMemory { start_bytes: status_bytes("VmRSS")?, old_peak_bytes: status_bytes("VmHWM")? })
    }

    /// How much more than at the start was resident at the worst moment since. Pages of mapped files count.
    /// `None` when the old peak hides it.
    pub fn rise_bytes(&self) -> Option<u64> {
        let peak = status_bytes("VmHWM")?;
        let hidden = peak <= self.old_peak_bytes && self.old_peak_bytes > self.start_bytes;
        (!hidden).then(|| peak.saturating_sub(self.start_bytes))
    }
}

fn status_bytes(name: &str) -> Option<u64> {
    let value = field("/proc/self/status", name)?;
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

    /// Goal: processor time goes on while one works. Method: work until it has moved.
    #[test]
    fn processor_time_passes() {
        let start = cpu_secs().unwrap();
        let own = own_cpu_secs().unwrap();
        while cpu_secs().unwrap() < start + 1e-3 || own_cpu_secs().unwrap() <= own {
            std::hint::black_box(vec![1_u8; 4096]);
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
