//! The machine: a disk, cores, codecs, and the costs of operations on them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Result, expect};
use crate::options::Compression;

/// A disk or volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Disk {
    /// Sequential reads, MB (10^6 bytes) a second.
    pub read_mb_per_sec: f64,
    /// Sequential writes, MB a second.
    pub write_mb_per_sec: f64,
    /// Latency of one small read, microseconds.
    pub read_latency_us: f64,
    /// Latency of syncing a small write (`fdatasync`), microseconds.
    pub sync_latency_us: f64,
    /// Latency of removing a table file, microseconds: the file system frees its blocks through its
    /// journal.
    pub remove_latency_us: f64,
    /// Extra latency of a file sync when every core is busy, microseconds: kernel threads do part
    /// of the work, and they wait for a core too.
    pub busy_sync_us: f64,
    /// Extra latency of removing a file when every core is busy, microseconds.
    pub busy_remove_us: f64,
    /// Extra latency of a file sync while another thread does nothing but sync and remove files,
    /// microseconds: both share the disk's queue and the file system's journal.
    pub among_files_sync_us: f64,
    /// Extra latency of removing a file while another thread does so, microseconds.
    pub among_files_remove_us: f64,
    /// Requests that the disk serves in parallel.
    pub queue_depth: f64,
    /// Maximum requests a second; 0 for no limit beyond latency and queue depth.
    pub iops: f64,
    /// How well reads and writes overlap: 1 when they share one bandwidth, 2 when neither slows
    /// down the other.
    pub mixed: f64,
}

impl Default for Disk {
    fn default() -> Self {
        Disk {
            read_mb_per_sec: 2000.0,
            write_mb_per_sec: 1000.0,
            read_latency_us: 90.0,
            sync_latency_us: 500.0,
            remove_latency_us: 0.0,
            busy_sync_us: 0.0,
            busy_remove_us: 0.0,
            among_files_sync_us: 0.0,
            among_files_remove_us: 0.0,
            queue_depth: 64.0,
            iops: 0.0,
            mixed: 1.2,
        }
    }
}

/// Figures of a codec on the workload's data and on this machine. Speeds count uncompressed bytes,
/// on one core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Codec {
    /// Compressed size of data blocks divided by their uncompressed size.
    pub ratio: f64,
    /// Compression speed, MB a second.
    pub compress_mb_per_sec: f64,
    /// Decompression speed, MB a second.
    pub decompress_mb_per_sec: f64,
}

/// Processor time of operations, on one core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CpuCosts {
    /// A write into the memtable and the log, microseconds.
    pub put_us: f64,
    /// Writers that run in parallel.
    pub writers: f64,
    /// How much longer a thread sleeps than it asked for, microseconds.
    pub sleep_extra_us: f64,
    /// Flushing an entry, microseconds.
    pub flush_entry_us: f64,
    /// Flushing a byte of an entry, nanoseconds.
    pub flush_byte_ns: f64,
    /// Merging an input entry, microseconds.
    pub compact_entry_us: f64,
    /// Reading, checking and writing an input byte of a compaction, nanoseconds.
    pub compact_byte_ns: f64,
    /// The cost of an input entry that a compaction drops because a newer one shadows it, as a
    /// share of the cost of one that it also writes.
    pub compact_dropped: f64,
    /// A lookup, without its filter checks and block reads, microseconds.
    pub get_us: f64,
    /// Checking one filter, microseconds.
    pub filter_us: f64,
    /// Finding a key in a cached block, including the index, microseconds.
    pub block_hit_us: f64,
    /// Reading a block into the cache, without the disk's time, microseconds.
    pub block_miss_us: f64,
    /// A step of a scan, microseconds.
    pub next_us: f64,
}

impl Default for CpuCosts {
    fn default() -> Self {
        CpuCosts {
            put_us: 2.5,
            writers: 1.0,
            sleep_extra_us: 60.0,
            flush_entry_us: 0.5,
            flush_byte_ns: 1.0,
            compact_entry_us: 0.6,
            compact_byte_ns: 1.2,
            compact_dropped: 0.5,
            get_us: 0.8,
            filter_us: 0.1,
            block_hit_us: 0.5,
            block_miss_us: 2.0,
            next_us: 0.15,
        }
    }
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hardware {
    /// A name for people.
    pub name: String,
    /// The origin of the figures, for people.
    pub source: String,
    /// Cores.
    pub cores: f64,
    /// Share of file reads that the page cache serves, from memory beyond the block cache.
    pub page_cache_hit: f64,
    /// The disk.
    pub disk: Disk,
    /// Processor time of operations.
    pub cpu: CpuCosts,
    /// Figures of codecs, by [`Compression::name`].
    pub codecs: BTreeMap<String, Codec>,
    /// Dollars an hour, for `optimize`; 0 when unknown.
    pub cost_per_hour: f64,
}

impl Default for Hardware {
    fn default() -> Self {
        let codec = |ratio, compress_mb_per_sec, decompress_mb_per_sec| Codec {
            ratio,
            compress_mb_per_sec,
            decompress_mb_per_sec,
        };
        Hardware {
            name: "a server with an NVMe drive".to_owned(),
            source: "assumed".to_owned(),
            cores: 8.0,
            page_cache_hit: 0.0,
            disk: Disk::default(),
            cpu: CpuCosts::default(),
            codecs: BTreeMap::from([
                ("snappy".to_owned(), codec(0.55, 500.0, 1500.0)),
                ("lz4".to_owned(), codec(0.55, 600.0, 2500.0)),
                ("zstd".to_owned(), codec(0.42, 250.0, 800.0)),
            ]),
            cost_per_hour: 0.0,
        }
    }
}

impl Hardware {
    /// Returns the codec's figures. No compression, or an unknown codec, costs nothing.
    pub fn codec(&self, compression: Compression) -> Codec {
        let raw =
            Codec { ratio: 1.0, compress_mb_per_sec: f64::INFINITY, decompress_mb_per_sec: f64::INFINITY };
        if compression == Compression::None {
            return raw;
        }
        self.codecs.get(compression.name()).cloned().unwrap_or(raw)
    }

    /// Checks that all figures are within their ranges. Errors: the first one that is not, by name.
    pub fn check(&self) -> Result<()> {
        let within = |name: &str, value: f64, least: f64, most: f64| {
            let name = format!("hardware.{name}");
            expect(value >= least && value <= most, &name, value, &format!("{least} to {most}"))
        };
        within("cores", self.cores, 0.01, 4096.0)?;
        within("page_cache_hit", self.page_cache_hit, 0.0, 1.0)?;
        within("cost_per_hour", self.cost_per_hour, 0.0, 1e6)?;
        let disk = &self.disk;
        within("disk.read_mb_per_sec", disk.read_mb_per_sec, 0.01, 1e6)?;
        within("disk.write_mb_per_sec", disk.write_mb_per_sec, 0.01, 1e6)?;
        within("disk.read_latency_us", disk.read_latency_us, 0.0, 1e7)?;
        within("disk.sync_latency_us", disk.sync_latency_us, 0.0, 1e7)?;
        within("disk.remove_latency_us", disk.remove_latency_us, 0.0, 1e7)?;
        within("disk.busy_sync_us", disk.busy_sync_us, 0.0, 1e7)?;
        within("disk.busy_remove_us", disk.busy_remove_us, 0.0, 1e7)?;
        within("disk.among_files_sync_us", disk.among_files_sync_us, 0.0, 1e7)?;
        within("disk.among_files_remove_us", disk.among_files_remove_us, 0.0, 1e7)?;
        within("disk.queue_depth", disk.queue_depth, 1.0, 65536.0)?;
        within("disk.iops", disk.iops, 0.0, 1e9)?;
        within("disk.mixed", disk.mixed, 1.0, 2.0)?;
        let cpu = &self.cpu;
        within("cpu.put_us", cpu.put_us, 0.001, 1e6)?;
        within("cpu.writers", cpu.writers, 0.01, 4096.0)?;
        within("cpu.compact_dropped", cpu.compact_dropped, 0.0, 1.0)?;
        for (name, value) in [
            ("cpu.sleep_extra_us", cpu.sleep_extra_us),
            ("cpu.flush_entry_us", cpu.flush_entry_us),
            ("cpu.flush_byte_ns", cpu.flush_byte_ns),
            ("cpu.compact_entry_us", cpu.compact_entry_us),
            ("cpu.compact_byte_ns", cpu.compact_byte_ns),
            ("cpu.get_us", cpu.get_us),
            ("cpu.filter_us", cpu.filter_us),
            ("cpu.block_hit_us", cpu.block_hit_us),
            ("cpu.block_miss_us", cpu.block_miss_us),
            ("cpu.next_us", cpu.next_us),
        ] {
            within(name, value, 0.0, 1e6)?;
        }
        for (name, codec) in &self.codecs {
            let known = ["snappy", "lz4", "zstd"].contains(&name.as_str());
            expect(known, "hardware.codecs", name, "snappy, lz4 or zstd")?;
            within(&format!("codecs.{name}.ratio"), codec.ratio, 0.01, 2.0)?;
            within(&format!("codecs.{name}.compress_mb_per_sec"), codec.compress_mb_per_sec, 0.01, 1e6)?;
            within(&format!("codecs.{name}.decompress_mb_per_sec"), codec.decompress_mb_per_sec, 0.01, 1e6)?;
        }
        Ok(())
    }
}
