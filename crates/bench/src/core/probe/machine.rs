//! Describes the machine and the build.

use std::env;
use std::path::{Path, PathBuf};

use cairn_vfs::{Fs, StdFs, thread};

use crate::core::procfs;

/// Returns field names and values in display order, without fields that the system does not report.
pub fn describe(data_dir: &Path) -> Vec<(String, String)> {
    let governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    let fields = [
        ("cpu", procfs::field("/proc/cpuinfo", "model name")),
        ("cores", Some(thread::available_parallelism().to_string())),
        ("caches", caches()),
        ("memory", memory()),
        ("system", system()),
        ("kernel", procfs::line("/proc/sys/kernel/osrelease")),
        ("file system", file_system(data_dir)),
        ("governor", Some(procfs::line(governor).unwrap_or_else(|| "none visible".to_owned()))),
        (
            "huge pages",
            procfs::line("/sys/kernel/mm/transparent_hugepage/enabled").map(|line| selected(&line)),
        ),
        ("load before the run", procfs::line("/proc/loadavg").map(|line| load(&line))),
        ("commit", said(env!("CAIRN_COMMIT"))),
        ("rustc", said(env!("CAIRN_RUSTC"))),
        ("profile", Some(profile())),
        ("target", said(env!("CAIRN_TARGET"))),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn said(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn profile() -> String {
    let flags = env!("CAIRN_RUSTFLAGS");
    let debug = if cfg!(debug_assertions) { ", debug assertions" } else { "" };
    let flags = if flags.is_empty() { String::new() } else { format!(", {flags}") };
    format!("opt-level {}{debug}{flags}", env!("CAIRN_OPT_LEVEL"))
}

/// Returns the caches of the first processor: `L1d 48 KiB, L2 1024 KiB, L3 32768 KiB`.
fn caches() -> Option<String> {
    let mut names = Vec::new();
    for directory in StdFs::new().read_dir(Path::new("/sys/devices/system/cpu/cpu0/cache")).ok()? {
        let read = |file: &str| procfs::line(directory.join(file).to_str()?);
        if let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size")) {
            let kind = match kind.as_str() {
                "Data" => "d",
                "Instruction" => "i",
                _ => "",
            };
            names.push(format!("L{level}{kind} {}iB", size.replace('K', " K").replace('M', " M")));
        }
    }
    (!names.is_empty()).then(|| names.join(", "))
}

fn memory() -> Option<String> {
    Some(format!("{:.1} GiB", memory_bytes()? as f64 / (1u64 << 30) as f64))
}

/// Returns the memory of the machine; `None` if the kernel does not report it.
pub fn memory_bytes() -> Option<u64> {
    let total = procfs::field("/proc/meminfo", "MemTotal")?;
    let kib: u64 = total.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

fn system() -> Option<String> {
    let text = procfs::text("/etc/os-release")?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

/// Returns type and device of the mount that contains `dir`.
fn file_system(dir: &Path) -> Option<String> {
    let dir = dir.canonicalize().ok()?;
    mount_of(&dir, &procfs::text("/proc/self/mountinfo")?)
}

/// Finds the mount of `dir` in lines such as `36 35 98:0 /mnt1 /mnt/parent rw,noatime master:1 -
/// ext3 /dev/root rw`. The mount point is the fifth word, type and device follow the single dash.
/// The longest mount point that contains `dir` wins; of equal ones the last, which covers the
/// others.
fn mount_of(dir: &Path, mounts: &str) -> Option<String> {
    let mut best: Option<(usize, String)> = None;
    for line in mounts.lines() {
        let (before, after) = line.split_once(" - ")?;
        let point = PathBuf::from(before.split(' ').nth(4)?.replace("\\040", " "));
        let depth = point.components().count();
        if dir.starts_with(&point) && best.as_ref().is_none_or(|(known, _)| depth >= *known) {
            let mut words = after.split(' ');
            best = Some((depth, format!("{} on {}", words.next()?, words.next()?)));
        }
    }
    best.map(|(_, name)| name)
}

/// Returns the bracketed choice of a line such as `always [madvise] never`.
fn selected(line: &str) -> String {
    let inner = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or_else(|| line.to_owned(), |(choice, _)| choice.to_owned())
}

fn load(line: &str) -> String {
    line.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the innermost mount wins, also if one covers another, and a name that only has a
    /// common prefix does not match.
    #[test]
    fn innermost_mount_wins() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /home rw x:1 - xfs /dev/b rw\n\
                      3 1 8:3 / /home rw - tmpfs none rw\n4 1 8:4 / /my\\040data rw - btrfs /dev/c rw\n";
        let mount = |dir: &str| mount_of(Path::new(dir), mounts).unwrap();
        assert_eq!(mount("/homeless"), "ext4 on /dev/a");
        assert_eq!(mount("/home/me"), "tmpfs on none");
        assert_eq!(mount("/my data/x"), "btrfs on /dev/c");
        assert_eq!(mount_of(Path::new("/"), ""), None);
    }

    /// Goal: fields that exist on every Linux are present, and no field is empty.
    #[test]
    fn this_machine_is_described() {
        let fields = describe(Path::new("."));
        for name in ["cores", "memory", "kernel", "file system", "rustc", "profile"] {
            assert!(
                fields.iter().any(|(field, value)| field == name && !value.is_empty()),
                "{name}: {fields:?}"
            );
        }
        assert_eq!(selected("always [madvise] never"), "madvise");
        assert_eq!(load("0.10 0.20 0.30 1/100 4242"), "0.10 0.20 0.30");
    }
}
