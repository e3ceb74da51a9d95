//! The cost of reads in a tree: filter checks, block fetches, cache hits, and the resulting
//! latency.

mod bloom;
mod cache;
mod probes;
mod replay;

use cairn_vfs::{Rng, SeededRng};
use cairn_workload::histogram::Seconds;
use cairn_workload::{Draw, Percentiles};
use serde::Serialize;

pub use bloom::false_positive_rate;
pub use cache::{BlockClass, CacheModel, CachePolicy};
pub use probes::Probes;
pub use replay::{replay, replay_shared};

use crate::config::Config;
use crate::keys::KeyStream;
use crate::layout;
use crate::options::{Engine, Options};
use crate::resource::Work;
use crate::tree::{Level, Tree};

/// Lookups that are drawn for the latency distribution.
const DRAWS: u32 = 4000;

/// Overhead of a cached block: its object, its handle and its key.
const CACHE_ENTRY_BYTES: f64 = 180.0;

/// Average costs of a read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadCosts {
    /// Filters that a lookup of a present key checks and that exclude it.
    pub filters_skipping: f64,
    /// Data blocks that a lookup of a present key fetches.
    pub blocks: f64,
    /// Filters that a lookup of an absent key checks.
    pub absent_filters: f64,
    /// Data blocks that a lookup of an absent key fetches.
    pub absent_blocks: f64,
    /// The share of fetched blocks that are found in the block cache.
    pub cache_hit: f64,
    /// Sorted runs that a scan merges.
    pub scan_runs: f64,
    /// Data blocks that a scan fetches.
    pub scan_blocks: f64,
    /// Number of all data blocks.
    pub blocks_total: f64,
    /// Bytes of a data block in the cache.
    pub block_bytes: f64,
}

impl ReadCosts {
    /// Returns the mean of several moments, or `None` if there are none.
    pub fn mean(moments: &[ReadCosts]) -> Option<ReadCosts> {
        let over = |of: fn(&ReadCosts) -> f64| moments.iter().map(of).sum::<f64>() / moments.len() as f64;
        // A mean over all fetched blocks: moments with more fetches weigh more.
        let fetched = over(|it| it.blocks);
        let hit = over(|it| it.blocks * it.cache_hit);
        (!moments.is_empty()).then(|| ReadCosts {
            filters_skipping: over(|it| it.filters_skipping),
            blocks: over(|it| it.blocks),
            absent_filters: over(|it| it.absent_filters),
            absent_blocks: over(|it| it.absent_blocks),
            cache_hit: if fetched > 0.0 { hit / fetched } else { 0.0 },
            scan_runs: over(|it| it.scan_runs),
            scan_blocks: over(|it| it.scan_blocks),
            blocks_total: over(|it| it.blocks_total),
            block_bytes: over(|it| it.block_bytes),
        })
    }
}

/// The reads of a tree at one moment.
#[derive(Debug, Clone)]
pub struct ReadModel {
    /// Average costs.
    pub costs: ReadCosts,
    /// Latencies of lookups, weighted by their rate.
    pub get: Seconds,
    /// Latencies of scans, weighted by their rate.
    pub scan: Seconds,
    /// Blocks by popularity, for a replay.
    pub classes: Vec<BlockClass>,
    /// Partitions that share the cache, by popularity.
    partitions: Vec<BlockClass>,
    /// The number of blocks that fit into the cache.
    capacity: f64,
}

impl ReadModel {
    /// Computes the model. `utilization` is that of the disk, which lengthens its latency.
    ///
    /// Cost: a few nanoseconds for each sampled key and sorted run.
    pub fn new(config: &Config, tree: &Tree, keys: &KeyStream, sample: u64, utilization: f64) -> ReadModel {
        let popularity = match &config.workload.reads.distribution {
            Some(kind) => {
                let mut reads = KeyStream::new(kind, config.workload.keys, sample, config.seed);
                reads.follow(keys);
                reads.popularity()
            }
            None => keys.popularity(),
        };
        let probes = Probes::new(config, tree, &popularity, sample);
        let bytes = layout::entry_bytes(&config.workload, &config.options, 1.0, 0.0);
        let block_bytes = cached_bytes(bytes.data * bytes.per_block);
        let capacity = data_cache_bytes(config, tree, sample) / block_bytes;
        let policy = cache_policy(&config.options);
        let cache = CacheModel::shared(policy, &probes.classes, &probes.partitions, capacity);
        let entries = config.workload.reads.scan_entries as f64;
        // A scan steps over overwritten entries.
        let stale = probes.entries_total / probes.entries_live.max(1.0);
        let costs = ReadCosts {
            filters_skipping: probes.filters_skipping,
            blocks: probes.blocks,
            absent_filters: probes.absent_filters,
            absent_blocks: probes.absent_blocks,
            cache_hit: cache.hit_rate,
            scan_runs: probes.runs,
            scan_blocks: probes.runs + entries * stale / bytes.per_block,
            blocks_total: probes.blocks_total,
            block_bytes,
        };
        let mut model = ReadModel {
            costs,
            get: Seconds::default(),
            scan: Seconds::default(),
            classes: probes.classes,
            partitions: probes.partitions,
            capacity,
        };
        model.draw_latencies(config, utilization);
        model
    }

    /// Replays this many fetches through a real cache of the engine's policy and size, and returns
    /// the share of hits.
    pub fn replayed_hit(&self, config: &Config, fetches: usize) -> f64 {
        let (policy, room) = (cache_policy(&config.options), self.capacity as usize);
        replay_shared(&self.classes, &self.partitions, policy, room, fetches, config.seed)
    }

    /// Returns the percentiles of lookups.
    pub fn get_percentiles(&self) -> Percentiles {
        self.get.percentiles()
    }

    /// Returns the work of a second of reads, or `None` without reads.
    pub fn work_per_sec(&self, config: &Config) -> Option<Work> {
        let reads = &config.workload.reads;
        if reads.gets_per_sec <= 0.0 && reads.scans_per_sec <= 0.0 {
            return None;
        }
        let (cpu, costs) = (&config.hardware.cpu, &self.costs);
        let absent = reads.absent;
        let mix = |present: f64, missing: f64| present * (1.0 - absent) + missing * absent;
        let filters = mix(costs.filters_skipping + 1.0, costs.absent_filters);
        let blocks = mix(costs.blocks, costs.absent_blocks);
        let gets = reads.gets_per_sec;
        let scans = reads.scans_per_sec;
        let fetched = gets * blocks + scans * costs.scan_blocks;
        let missed = fetched * (1.0 - costs.cache_hit);
        let from_disk = missed * (1.0 - config.hardware.page_cache_hit);
        let us = gets * (cpu.get_us + filters * cpu.filter_us)
            + fetched * cpu.block_hit_us
            + missed * (cpu.block_miss_us + self.decompress_secs(config) * 1e6)
            + scans * reads.scan_entries as f64 * cpu.next_us;
        let read_bytes = from_disk * self.data_bytes() * self.stored_ratio(config);
        let threads = config.hardware.cores;
        Some(Work { read_bytes, requests: from_disk, cpu_secs: us * 1e-6, threads, ..Work::default() })
    }

    fn stored_ratio(&self, config: &Config) -> f64 {
        config.hardware.codec(bottom_codec(config)).ratio
    }

    /// Returns the seconds to decompress a block.
    fn decompress_secs(&self, config: &Config) -> f64 {
        let speed = config.hardware.codec(bottom_codec(config)).decompress_mb_per_sec;
        self.data_bytes() / (speed * 1e6)
    }

    /// Returns the bytes of a block without its overhead in a cache.
    fn data_bytes(&self) -> f64 {
        self.costs.block_bytes - CACHE_ENTRY_BYTES
    }

    fn draw_latencies(&mut self, config: &Config, utilization: f64) {
        let reads = &config.workload.reads;
        let cpu = &config.hardware.cpu;
        let mut rng = SeededRng::new(config.seed ^ 0x1a7e);
        let weight = |rate: f64| if rate > 0.0 { rate / f64::from(DRAWS) } else { 1.0 / f64::from(DRAWS) };
        let queue = 1.0 / (1.0 - utilization.clamp(0.0, 0.97));
        for _ in 0..DRAWS {
            let is_absent = rng.unit() < reads.absent;
            let costs = &self.costs;
            let (filters, blocks) = if is_absent {
                (costs.absent_filters, costs.absent_blocks)
            } else {
                (costs.filters_skipping + 1.0, costs.blocks)
            };
            let count = whole(blocks, &mut rng);
            let mut secs = (cpu.get_us + filters * cpu.filter_us) * 1e-6;
            secs += self.fetch_secs(config, count, queue, &mut rng);
            note(&mut self.get, secs, weight(reads.gets_per_sec));
        }
        if reads.scans_per_sec <= 0.0 {
            return;
        }
        for _ in 0..DRAWS / 8 {
            let count = whole(self.costs.scan_blocks, &mut rng);
            let mut secs = (cpu.get_us + reads.scan_entries as f64 * cpu.next_us) * 1e-6;
            secs += self.fetch_secs(config, count, queue, &mut rng);
            note(&mut self.scan, secs, weight(reads.scans_per_sec) * 8.0);
        }
    }

    fn fetch_secs(&self, config: &Config, count: u64, queue: f64, rng: &mut SeededRng) -> f64 {
        let (cpu, disk) = (&config.hardware.cpu, &config.hardware.disk);
        let mut secs = 0.0;
        for _ in 0..count {
            secs += cpu.block_hit_us * 1e-6;
            if rng.unit() < self.costs.cache_hit {
                continue;
            }
            secs += cpu.block_miss_us * 1e-6 + self.decompress_secs(config);
            if rng.unit() >= config.hardware.page_cache_hit {
                // Half of the device's latency is fixed; the other half varies, and grows with its
                // queue.
                let half = disk.read_latency_us * 0.5e-6;
                secs += half + rng.exponential(half * queue);
            }
        }
        secs
    }
}

/// Records reads of this latency, unless figures out of their range make it infinite.
fn note(latencies: &mut Seconds, secs: f64, reads: f64) {
    if secs.is_finite() {
        latencies.add(secs, reads);
    }
}

/// Returns the bytes of the indexes and filters of all files.
pub fn meta_bytes(config: &Config, tree: &Tree, sample: u64) -> f64 {
    let deepest = tree.last_used();
    let levels = tree.levels.iter().enumerate();
    let of_level = |(at, level): (usize, &Level)| {
        let bits = config.options.filter_bits(at, deepest);
        let bytes = layout::entry_bytes(&config.workload, &config.options, 1.0, bits);
        let entries: usize = level.files().map(|file| file.entries.len()).sum();
        entries as f64 * sample as f64 * bytes.meta
    };
    levels.map(of_level).sum()
}

/// Returns the bytes that a block takes in a cache.
fn cached_bytes(bytes: f64) -> f64 {
    bytes + CACHE_ENTRY_BYTES
}

/// Returns the bytes of the block cache that are left for data blocks. When RocksDB keeps indexes
/// and filters in its cache, they are subtracted: they are not partitioned, and are always in use.
/// Cairn's partitions are evicted like data blocks.
fn data_cache_bytes(config: &Config, tree: &Tree, sample: u64) -> f64 {
    let options = &config.options;
    let all = options.block_cache_size as f64;
    if options.engine == Engine::Rocksdb && options.cache_index_and_filter_blocks {
        (all - meta_bytes(config, tree, sample)).max(0.0)
    } else {
        all
    }
}

/// Returns the replacement policy of the engine's block cache.
pub fn cache_policy(options: &Options) -> CachePolicy {
    match options.engine {
        Engine::Rocksdb => CachePolicy::Midpoint,
        Engine::CairnKv => CachePolicy::S3Fifo,
    }
}

/// Returns the codec of the last level, which holds nearly all blocks.
fn bottom_codec(config: &Config) -> crate::options::Compression {
    let options = &config.options;
    options.compression_at(options.num_levels - 1, 1, true)
}

/// Returns a random whole number with the mean `value`.
fn whole(value: f64, rng: &mut SeededRng) -> u64 {
    let below = value.floor();
    below as u64 + u64::from(rng.unit() < value - below)
}
