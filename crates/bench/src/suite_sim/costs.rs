//! What operations of a real store cost on this machine: one at a time, with nothing beside them.

use std::path::Path;

use cairn_sim::Config;
use cairn_sim::hardware::CpuCosts;
use cairn_sim::options::{Compression, Engine};
use cairn_sim::rng::Rng;
use cairn_vfs::{Clock, SystemClock};

use super::{Data, MeasuredStore, Opener, Options};
use crate::error::{Error, Result};
use crate::scratch::{Scratch, sweep};

/// Writes of a measurement.
const WRITES: u32 = 60_000;

/// Lookups of a measurement.
const LOOKUPS: u32 = 40_000;

/// Memtables, the last of which makes a compaction due.
const ROUNDS: u32 = 4;

/// Values of two sizes tell what an entry costs from what its bytes cost.
const VALUE_BYTES: [u64; 2] = [100, 1000];

/// Seconds of operations, each for one entry.
#[derive(Debug, Clone, Copy, PartialEq)]
struct EntrySecs {
    put: f64,
    flush: f64,
    /// For an entry that a compaction reads.
    compact: f64,
}

/// Costs of RocksDB where its library is found, else of Cairn's kv; and which of them it was.
///
/// Errors: a store or the disk fails. Cost: some seconds, and a hundred megabytes in the working directory.
pub fn measure_costs(options: &Options) -> Result<(String, CpuCosts)> {
    let parent = options.work_dir.clone().unwrap_or_else(std::env::temp_dir);
    sweep(&parent, super::LABEL)?;
    let scratch = Scratch::in_dir(&parent, super::LABEL)?;
    let dir = scratch.dir("costs")?;
    let opener = Opener::new(options)?;
    let config = |value_bytes: u64| {
        let mut config = Config::default();
        config.workload.value_bytes = value_bytes;
        config.options.compression = Compression::None;
        config.options.engine = if opener.has_rocksdb() { Engine::Rocksdb } else { Engine::CairnKv };
        config
    };
    let [small, large] = VALUE_BYTES.map(config);
    let (of_small, _) = writes(&small, &opener, &dir.join("small"))?;
    let (of_large, store) = writes(&large, &opener, &dir.join("large"))?;
    let version = store.version();
    let hit_secs = lookups(&large, store)?;
    let mut without = large.clone();
    without.options.block_cache_size = 1 << 16;
    let (_, store) = writes(&without, &opener, &dir.join("misses"))?;
    let miss_secs = lookups(&without, store)?;
    let mut costs = costs_of([(&small, of_small), (&large, of_large)]);
    costs.get_us = (hit_secs * 1e6 - costs.filter_us - costs.block_hit_us).max(0.05);
    costs.block_miss_us = ((miss_secs - hit_secs) * 1e6).max(0.1);
    Ok((version, costs))
}

/// Costs for entries of the size that `config` has, half of them by entry and half by byte, which one size cannot tell apart.
pub(super) fn costs_of_size(config: &Config, opener: &Opener, dir: &Path) -> Result<CpuCosts> {
    let (secs, _) = writes(config, opener, dir)?;
    let entry = config.entry_bytes() as f64;
    let split = |secs: f64| (secs * 0.5e6, secs * 0.5e9 / entry);
    let mut costs = CpuCosts { put_us: secs.put * 1e6, writers: 1.0, ..config.hardware.cpu.clone() };
    (costs.flush_entry_us, costs.flush_byte_ns) = split(secs.flush);
    (costs.compact_entry_us, costs.compact_byte_ns) = split(secs.compact);
    Ok(costs)
}

/// A line through two sizes: what an entry costs, and what a byte of it does.
fn costs_of(measured: [(&Config, EntrySecs); 2]) -> CpuCosts {
    let [(small, of_small), (large, of_large)] = measured;
    let (from, to) = (small.entry_bytes() as f64, large.entry_bytes() as f64);
    let line = |one: f64, other: f64| {
        let byte = ((other - one) / (to - from)).max(0.0);
        ((one - byte * from).max(0.0) * 1e6, byte * 1e9)
    };
    let mut costs = CpuCosts { put_us: of_large.put * 1e6, writers: 1.0, ..CpuCosts::default() };
    (costs.flush_entry_us, costs.flush_byte_ns) = line(of_small.flush, of_large.flush);
    (costs.compact_entry_us, costs.compact_byte_ns) = line(of_small.compact, of_large.compact);
    costs
}

/// Writes alone; then flushing all of them at once; then, after the last round, merging once. The store is handed on.
fn writes(config: &Config, opener: &Opener, dir: &Path) -> Result<(EntrySecs, Box<dyn MeasuredStore>)> {
    let mut config = config.clone();
    config.options.level0_file_num_compaction_trigger = ROUNDS as usize;
    let mut data = Data::new(&config)?;
    let mut store = opener.open(dir, &config, false, config.options.wal)?;
    let clock = SystemClock::new();
    let mut key = Vec::new();
    let each = WRITES / ROUNDS;
    let (mut put, mut flushes) = (0.0, Vec::new());
    let mut settled = 0.0;
    for _ in 0..ROUNDS {
        let start = clock.now();
        for at in 0..each {
            // Every key once a round, in an order of no pattern.
            data.key((u64::from(at) * 7919 % u64::from(each)) as u32, &mut key);
            store.put(&key, data.value())?;
        }
        let written = clock.now();
        store.flush()?;
        let flushed = clock.now();
        store.settle()?;
        settled = (clock.now() - flushed).as_secs_f64();
        put += (written - start).as_secs_f64();
        flushes.push((flushed - written).as_secs_f64());
    }
    // A store without threads compacts within the last flush.
    let last = flushes.pop().unwrap_or_default();
    let flush = flushes.iter().sum::<f64>() / flushes.len().max(1) as f64;
    let merged = store.totals().compact_read_bytes / config.entry_bytes() as f64;
    if merged < 1.0 {
        return Err(Error::invalid("the store did not compact while its costs were measured".to_owned()));
    }
    let secs = EntrySecs {
        put: put / f64::from(WRITES),
        flush: flush / f64::from(each),
        compact: (settled + (last - flush).max(0.0)) / merged,
    };
    Ok((secs, store))
}

/// Seconds of a lookup of a present key.
fn lookups(config: &Config, mut store: Box<dyn MeasuredStore>) -> Result<f64> {
    let data = Data::new(config)?;
    let clock = SystemClock::new();
    let mut rng = Rng::new(config.seed);
    let mut key = Vec::new();
    let mut secs = 0.0;
    // The first pass warms the cache.
    for _ in 0..2 {
        let start = clock.now();
        for _ in 0..LOOKUPS {
            data.key(rng.below(u64::from(WRITES / ROUNDS)) as u32, &mut key);
            store.get(&key)?;
        }
        secs = (clock.now() - start).as_secs_f64();
    }
    Ok(secs / f64::from(LOOKUPS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: costs are those of a line through both sizes. Method: an entry of 1 us and a byte of 2 ns.
    #[test]
    fn two_sizes_tell_entries_from_bytes() {
        let config = |value_bytes: u64| {
            let mut config = Config::default();
            config.workload.value_bytes = value_bytes;
            config
        };
        let [small, large] = VALUE_BYTES.map(config);
        let secs = |config: &Config| {
            let secs = 1e-6 + 2e-9 * config.entry_bytes() as f64;
            EntrySecs { put: 3e-6, flush: secs, compact: 2.0 * secs }
        };
        let costs = costs_of([(&small, secs(&small)), (&large, secs(&large))]);
        let is = |found: f64, expected: f64| (found - expected).abs() < 1e-6;
        assert!(is(costs.put_us, 3.0) && is(costs.flush_entry_us, 1.0) && is(costs.flush_byte_ns, 2.0));
        assert!(is(costs.compact_entry_us, 2.0) && is(costs.compact_byte_ns, 4.0));
    }

    /// Goal: a store is measured and every cost is a figure that a profile may have. Method: Cairn's kv, small values.
    #[test]
    fn costs_of_a_real_store_are_positive() {
        let scratch = Scratch::in_dir(&std::env::temp_dir(), super::super::LABEL).unwrap();
        let mut config = Config::default();
        config.options.engine = Engine::CairnKv;
        config.workload.value_bytes = 20;
        let opener = Opener::new(&Options::default()).unwrap();
        let costs = costs_of_size(&config, &opener, &scratch.dir("store").unwrap()).unwrap();
        for cost in [costs.put_us, costs.flush_entry_us, costs.compact_entry_us] {
            assert!(cost > 0.0 && cost < 1000.0, "{costs:?}");
        }
    }
}
