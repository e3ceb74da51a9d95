//! Measures the costs of a real store's operations on this machine, in processor time, which other
//! load on the machine does not affect.

use std::path::Path;

use cairn_sim::hardware::CpuCosts;
use cairn_sim::options::{Compression, Engine};
use cairn_sim::{Config, preload_order, writes_per_flush};
use cairn_vfs::{Clock, SystemClock};
use cairn_vfs::{Rng, SeededRng};

use super::{Data, Opener, Options};
use crate::core::error::{Error, Result};
use crate::core::procfs::{cpu_secs, own_cpu_secs};
use crate::core::scratch::{Scratch, sweep};
use crate::stores::catalog::Catalog;
use crate::stores::measured::MeasuredStore;

/// Minimum number of writes in a measurement.
const WRITES: u64 = 60_000;

/// Number of lookups in a measurement.
const LOOKUPS: u32 = 40_000;

/// Number of memtables that trigger a compaction, and minimum number in a measurement.
const ROUNDS: u64 = 4;

/// Maximum number of writes per memtable.
const ROUND_WRITES_MAX: u64 = 30_000;

/// Two value lengths, which separate the cost of an entry from the cost of its bytes.
const VALUE_BYTES: [u64; 2] = [100, 1000];

/// Seconds per entry of each operation.
#[derive(Debug, Clone, Copy, PartialEq)]
struct EntrySecs {
    put: f64,
    flush: f64,
    /// For an entry that a compaction reads and writes.
    compact: f64,
    /// The fraction of that cost for an entry that is read but not written.
    dropped: f64,
}

/// Returns the costs of RocksDB if its library is found, otherwise those of Cairn's kv, with the
/// name of the store.
///
/// Errors: a store or the disk fails. Cost: several seconds, and several hundred megabytes in the
/// working directory.
pub fn measure_costs(options: &Options, catalog: &Catalog) -> Result<(String, CpuCosts)> {
    let parent = options.work_dir.clone().unwrap_or_else(std::env::temp_dir);
    sweep(&parent, super::LABEL)?;
    let scratch = Scratch::in_dir(&parent, super::LABEL)?;
    let dir = scratch.dir("costs")?;
    let opener = Opener::new(options, catalog)?;
    let config = |value_bytes: u64| {
        let mut config = Config::default();
        config.workload.value_bytes = value_bytes;
        config.options.compression = Compression::None;
        config.options.engine = if opener.has_rocksdb() { Engine::Rocksdb } else { Engine::CairnKv };
        // Everything that lookups access fits.
        config.options.block_cache_size = 1 << 30;
        config
    };
    let [small, large] = VALUE_BYTES.map(config);
    let of_small = entry_secs(&small, &opener, &dir.join("small"))?;
    let of_large = entry_secs(&large, &opener, &dir.join("large"))?;
    let (_, store) = writes(&large, &opener, &dir.join("hits"), Keys::New)?;
    let version = store.version();
    let hit_secs = lookups(&large, store)?;
    let mut without = large.clone();
    without.options.block_cache_size = 1 << 16;
    let (_, store) = writes(&without, &opener, &dir.join("misses"), Keys::New)?;
    let miss_secs = lookups(&without, store)?;
    let mut costs = costs_of([(&small, of_small), (&large, of_large)]);
    costs.get_us = (hit_secs * 1e6 - costs.filter_us - costs.block_hit_us).max(0.05);
    costs.block_miss_us = ((miss_secs - hit_secs) * 1e6).max(0.1);
    Ok((version, costs))
}

/// Returns the costs for entries of the size in `config`. A single size cannot separate costs per
/// entry from costs per byte, so half is attributed to each.
pub(super) fn costs_of_size(config: &Config, opener: &Opener, dir: &Path) -> Result<CpuCosts> {
    // The costs of codecs are counted separately.
    let mut plain = config.clone();
    plain.options.compression = Compression::None;
    plain.options.compression_per_level.clear();
    plain.options.bottommost_compression = None;
    let secs = entry_secs(&plain, opener, dir)?;
    let entry = config.entry_bytes() as f64;
    let split = |secs: f64| (secs * 0.5e6, secs * 0.5e9 / entry);
    let mut costs = CpuCosts {
        put_us: secs.put * 1e6,
        writers: 1.0,
        compact_dropped: secs.dropped,
        ..config.hardware.cpu.clone()
    };
    (costs.flush_entry_us, costs.flush_byte_ns) = split(secs.flush);
    (costs.compact_entry_us, costs.compact_byte_ns) = split(secs.compact);
    Ok(costs)
}

/// Fits a line through two sizes, which gives the cost of an entry and the cost of a byte.
fn costs_of(measured: [(&Config, EntrySecs); 2]) -> CpuCosts {
    let [(small, of_small), (large, of_large)] = measured;
    let (from, to) = (small.entry_bytes() as f64, large.entry_bytes() as f64);
    let line = |one: f64, other: f64| {
        let byte = ((other - one) / (to - from)).max(0.0);
        ((one - byte * from).max(0.0) * 1e6, byte * 1e9)
    };
    let mut costs = CpuCosts {
        put_us: of_large.put * 1e6,
        writers: 1.0,
        compact_dropped: (of_small.dropped + of_large.dropped) / 2.0,
        ..CpuCosts::default()
    };
    (costs.flush_entry_us, costs.flush_byte_ns) = line(of_small.flush, of_large.flush);
    (costs.compact_entry_us, costs.compact_byte_ns) = line(of_small.compact, of_large.compact);
    costs
}

/// Reads processor time, or elapsed time if processor time is not available.
#[derive(Debug, Default)]
struct Meter(SystemClock);

impl Meter {
    fn secs(&self) -> f64 {
        cpu_secs().unwrap_or_else(|| self.0.now().as_secs_f64())
    }
}

/// The keys of a memtable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// New keys, between those of earlier memtables: a merge writes everything that it reads.
    New,
    /// The same keys as in earlier memtables: a merge drops most of what it reads.
    Same,
}

/// The operations of a store, and their processor time.
#[derive(Debug, Clone, Copy, Default)]
struct OperationCosts {
    puts: f64,
    put_secs: f64,
    flush_secs: f64,
    /// Number of entries that compactions have read, and the fraction that they have written.
    merged: f64,
    kept: f64,
    compact_secs: f64,
}

/// Measures the costs of one size, with one store whose merges drop nothing and another whose
/// merges drop most entries.
fn entry_secs(config: &Config, opener: &Opener, dir: &Path) -> Result<EntrySecs> {
    let (new, _) = writes(config, opener, &dir.join("new"), Keys::New)?;
    let (same, _) = writes(config, opener, &dir.join("same"), Keys::Same)?;
    let compact = new.compact_secs / new.merged;
    let of_same = same.compact_secs / same.merged;
    let dropped = (of_same / compact - same.kept) / (1.0 - same.kept).max(1e-3);
    Ok(EntrySecs {
        put: new.put_secs / new.puts,
        flush: new.flush_secs / new.puts,
        compact,
        dropped: dropped.clamp(0.0, 1.0),
    })
}

/// Writes a memtable, flushes it, and runs the merges that this triggers, round by round. Returns
/// the store too.
fn writes(
    config: &Config,
    opener: &Opener,
    dir: &Path,
    keys: Keys,
) -> Result<(OperationCosts, Box<dyn MeasuredStore>)> {
    let mut config = config.clone();
    config.options.level0_file_num_compaction_trigger = ROUNDS as usize;
    // A single level holds everything.
    config.options.max_bytes_for_level_base = 1 << 40;
    let mut data = Data::new(&config)?;
    let mut store = opener.open(dir, &config, false, config.options.wal)?;
    let mut key = Vec::new();
    let each = writes_per_flush(&config).min(ROUND_WRITES_MAX);
    let rounds = WRITES.div_ceil(each).max(ROUNDS).next_multiple_of(ROUNDS);
    let order = preload_order(each);
    let mut spent = OperationCosts { puts: (each * rounds) as f64, ..OperationCosts::default() };
    // A store without background threads compacts within some flushes. The median flush has only
    // flushed.
    let mut flushes = Vec::new();
    let meter = Meter::default();
    for round in 0..rounds {
        let start = meter.secs();
        for at in 0..each {
            // Each key once per round, in pseudo-random order.
            let place = order.apply(at) * rounds;
            let id = if keys == Keys::New { place + round } else { place };
            data.key(id as u32, &mut key);
            store.put(&key, data.value())?;
        }
        let written = meter.secs();
        store.flush()?;
        let (flushed, own) = (meter.secs(), own_cpu_secs());
        store.settle()?;
        spent.put_secs += written - start;
        // Checking for the end is not part of the cost.
        let looking = own_cpu_secs().zip(own).map_or(0.0, |(now, then)| now - then);
        spent.compact_secs += (meter.secs() - flushed - looking).max(0.0);
        flushes.push(flushed - written);
    }
    let all: f64 = flushes.iter().sum();
    flushes.sort_unstable_by(f64::total_cmp);
    let plain = flushes.get(flushes.len() / 2).copied().unwrap_or_default();
    spent.flush_secs = plain * rounds as f64;
    if config.options.engine == Engine::CairnKv {
        spent.compact_secs += (all - spent.flush_secs).max(0.0);
    }
    let totals = store.totals();
    spent.merged = totals.compact_read_bytes / config.entry_bytes() as f64;
    spent.kept = totals.compact_write_bytes / totals.compact_read_bytes.max(1.0);
    if spent.merged < 1.0 {
        return Err(Error::invalid("the store did not compact while its costs were measured".to_owned()));
    }
    Ok((spent, store))
}

/// Returns the processor seconds per lookup of a present key.
fn lookups(config: &Config, mut store: Box<dyn MeasuredStore>) -> Result<f64> {
    let data = Data::new(config)?;
    let mut rng = SeededRng::new(config.seed);
    let mut key = Vec::new();
    let (meter, mut secs) = (Meter::default(), 0.0);
    // The first pass warms up the cache.
    for _ in 0..2 {
        let start = meter.secs();
        for _ in 0..LOOKUPS {
            data.key(rng.below(ROUND_WRITES_MAX) as u32, &mut key);
            store.get(&key)?;
        }
        secs = meter.secs() - start;
    }
    Ok(secs / f64::from(LOOKUPS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: costs are those of a line through both sizes. Method: 1 us per entry and 2 ns per
    /// byte.
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
            EntrySecs { put: 3e-6, flush: secs, compact: 2.0 * secs, dropped: 0.4 }
        };
        let costs = costs_of([(&small, secs(&small)), (&large, secs(&large))]);
        let is = |found: f64, expected: f64| (found - expected).abs() < 1e-6;
        assert!(is(costs.put_us, 3.0) && is(costs.flush_entry_us, 1.0) && is(costs.flush_byte_ns, 2.0));
        assert!(is(costs.compact_entry_us, 2.0) && is(costs.compact_byte_ns, 4.0));
        assert!(is(costs.compact_dropped, 0.4));
    }

    /// Goal: a store is measured, and every cost is valid in a profile. Method: Cairn's kv with
    /// small values.
    #[test]
    fn costs_of_a_real_store_are_positive() {
        let scratch = Scratch::in_dir(&std::env::temp_dir(), super::super::LABEL).unwrap();
        let mut config = Config::default();
        config.options.engine = Engine::CairnKv;
        config.workload.value_bytes = 20;
        let opener = Opener::new(&Options::default(), crate::catalog::installed()).unwrap();
        let costs = costs_of_size(&config, &opener, &scratch.dir("store").unwrap()).unwrap();
        for cost in [costs.put_us, costs.flush_entry_us, costs.compact_entry_us] {
            assert!(cost > 0.0 && cost < 1000.0, "{costs:?}");
        }
        assert!(costs.compact_dropped <= 1.0, "{costs:?}");
    }
}
