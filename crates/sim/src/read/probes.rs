//! Locates the newest version of each key, the probes of a lookup on its way there, and the
//! popularity of each block that results.

use super::bloom::false_positive_rate;
use super::cache::{Bins, BlockClass};
use crate::config::Config;
use crate::layout;
use crate::options::Engine;
use crate::tree::{Entry, File, Tree};

/// Means over lookups, weighted by popularity.
#[derive(Debug, Clone, Default)]
pub struct Probes {
    /// Filters that exclude a present key, per lookup.
    pub filters_skipping: f64,
    /// Blocks fetched for a present key.
    pub blocks: f64,
    /// Filters checked for an absent key.
    pub absent_filters: f64,
    /// Blocks fetched for an absent key.
    pub absent_blocks: f64,
    /// Number of sorted runs.
    pub runs: f64,
    /// Real entries in all files.
    pub entries_total: f64,
    /// Real entries that are the newest of their key and not tombstones.
    pub entries_live: f64,
    /// Number of data blocks.
    pub blocks_total: f64,
    /// Blocks by popularity.
    pub classes: Vec<BlockClass>,
    /// Partitions of indexes and filters, if they share the cache with data blocks. Each is counted
    /// as the number of data blocks that would take the same space.
    pub partitions: Vec<BlockClass>,
}

/// Partitions of the files of a level.
#[derive(Debug, Clone, Copy)]
struct Partitions {
    /// Real entries of each partition.
    entries: f64,
    /// Sizes of an index partition and of a filter partition, in data blocks.
    index: f64,
    filter: f64,
}

impl Partitions {
    /// Returns the partitions of Cairn's `kv`. RocksDB's files have one index and one filter.
    fn of_level(config: &Config, bits: f64) -> Option<Partitions> {
        if config.options.engine != Engine::CairnKv {
            return None;
        }
        let bytes = layout::entry_bytes(&config.workload, &config.options, 1.0, bits);
        let entries = (layout::PARTITION_BYTES / bytes.index.max(1e-9)).max(1.0);
        let block = super::cached_bytes(bytes.data * bytes.per_block);
        let of = |bytes: f64| super::cached_bytes(bytes) / block;
        Some(Partitions { entries, index: of(entries * bytes.index), filter: of(entries * bits / 8.0) })
    }
}

struct Walk {
    sample: f64,
    per_block: f64,
    /// Lookups of each id that no newer run has answered, with a value or a tombstone.
    left: Vec<f64>,
    /// For each id, the sum of the lookups of all smaller ids.
    below: Vec<f64>,
    present: f64,
    probes: Probes,
    blocks: Bins,
    partitions: Bins,
    /// Lookups of each entry of the current file.
    own: Vec<f64>,
}

impl Probes {
    /// Computes the probes in one pass over all files.
    pub fn new(config: &Config, tree: &Tree, popularity: &[f64], sample: u64) -> Probes {
        let bytes = layout::entry_bytes(&config.workload, &config.options, 1.0, 0.0);
        let mut walk = Walk {
            sample: sample as f64,
            per_block: bytes.per_block,
            left: popularity.to_vec(),
            below: sums_below(popularity),
            present: 0.0,
            probes: Probes { runs: tree.run_count() as f64, ..Probes::default() },
            blocks: Bins::new(),
            partitions: Bins::new(),
            own: Vec::new(),
        };
        let deepest = tree.last_used();
        for (at, level) in tree.levels.iter().enumerate() {
            let bits = config.options.filter_bits(at, deepest);
            let rate = false_positive_rate(bits);
            let partitions = Partitions::of_level(config, bits);
            for file in level.runs.iter().flat_map(|run| &run.files) {
                let wasted =
                    if bits > 0.0 { rate } else { blocks_without_filter(config, file, bytes.per_block) };
                if let Some(partitions) = partitions {
                    walk.add_partitions(file, partitions, if bits > 0.0 { rate } else { 1.0 });
                }
                walk.file(file, rate, wasted, bits > 0.0);
            }
        }
        walk.finish()
    }
}

/// Returns the blocks that a lookup of an absent key reads in a file without a filter.
fn blocks_without_filter(config: &Config, file: &File, per_block: f64) -> f64 {
    match config.options.engine {
        Engine::Rocksdb => {
            let gap = f64::from(file.largest - file.smallest + 1) / file.entries.len().max(1) as f64;
            1.0 + layout::second_block(&config.workload, gap, per_block)
        }
        // In Cairn, a lookup ends in the block that the index names.
        Engine::CairnKv => 1.0,
    }
}

/// Returns prefix sums: for each id, and one more, the sum of all values before it.
fn sums_below(values: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let mut sums = Vec::with_capacity(values.len() + 1);
    sums.push(sum);
    for value in values {
        sum += value;
        sums.push(sum);
    }
    sums
}

/// Returns the sum of the values. Four independent sums avoid waiting for each addition.
fn sum(values: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (fours, rest) = values.as_chunks::<4>();
    for four in fours {
        for (sum, value) in sums.iter_mut().zip(four) {
            *sum += value;
        }
    }
    sums.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

impl Walk {
    /// Adds the lookups of all ids within a file's range that no newer file has answered. Of those
    /// that the file does not hold, the share `rate` passes the filter, and each reads `wasted`
    /// blocks on average.
    fn file(&mut self, file: &File, rate: f64, wasted: f64, has_filter: bool) {
        let (from, to) = (file.smallest as usize, file.largest as usize + 1);
        let below = |id: usize| self.below.get(id).copied().unwrap_or_default();
        let all = below(to) - below(from);
        let asking = self.left.get(from..to).map_or(0.0, sum);
        let mut own = std::mem::take(&mut self.own);
        own.clear();
        let mut ended = 0.0;
        for entry in file.entries.iter() {
            let share = self.left.get_mut(entry.id() as usize).map(std::mem::take).unwrap_or_default();
            own.push(share);
            ended += share;
            if share > 0.0 && !entry.is_tombstone() {
                self.present += share;
                self.probes.blocks += share;
                self.probes.entries_live += self.sample;
            }
        }
        // The difference of two sums may be a rounding error.
        let passing = if asking - ended > asking * 1e-12 { asking - ended } else { 0.0 };
        // A lookup of a key that is not in the file is excluded by the filter or reads a block in
        // vain.
        if has_filter {
            self.probes.filters_skipping += passing * (1.0 - rate);
            self.probes.absent_filters += all;
        }
        self.probes.blocks += passing * wasted;
        self.probes.absent_blocks += all * wasted;
        self.probes.entries_total += file.entries.len() as f64 * self.sample;
        self.add_blocks(file, &own, passing, wasted);
        self.own = own;
    }

    /// Adds the partitions of a file's index and filter. All lookups in the file's range check the
    /// filter, if there is one, and those that pass it read the index.
    fn add_partitions(&mut self, file: &File, partitions: Partitions, rate: f64) {
        let mut from = file.smallest as usize;
        let end = file.largest as usize + 1;
        // An id may stand for the keys of several partitions.
        let together = (partitions.entries / self.sample).round().max(1.0) as usize;
        for (at, part) in file.entries.chunks(together).enumerate() {
            let is_last = (at + 1) * together >= file.entries.len();
            let to = if is_last { end } else { part.last().map_or(end, |entry| entry.id() as usize + 1) };
            let asked = self.left.get(from..to).map_or(0.0, sum);
            let own = |entry: &Entry| self.left.get(entry.id() as usize).copied().unwrap_or_default();
            let found: f64 = part.iter().map(own).sum();
            let count = part.len() as f64 * self.sample / partitions.entries;
            let mut add = |asked: f64, blocks: f64| {
                self.partitions.add(BlockClass { popularity: asked / count.max(1.0), count: count * blocks });
            };
            add(found + (asked - found).max(0.0) * rate, partitions.index);
            if rate < 1.0 {
                add(asked, partitions.filter);
            }
            from = to;
        }
    }

    /// Adds the blocks of a file: the popularity of its entries, and of the absent keys that read
    /// its blocks. Absent keys read the block of their place in key order, so blocks over wide key
    /// ranges are read more often.
    fn add_blocks(&mut self, file: &File, own: &[f64], passing: f64, wasted: f64) {
        let count = (own.len() as f64 * self.sample / self.per_block).max(1.0);
        self.probes.blocks_total += count;
        if self.sample <= 1.0 {
            let together = (self.per_block as usize).max(1);
            let mut from = file.smallest as usize;
            for (at, block) in own.chunks(together).enumerate() {
                let next = file.entries.get((at + 1) * together).map_or(file.largest + 1, |next| next.id());
                let to = next as usize;
                let strange = self.left.get(from..to).map_or(0.0, sum);
                from = to;
                let popularity = block.iter().sum::<f64>() + strange * wasted;
                self.blocks.add(BlockClass { popularity, count: 1.0 });
            }
            return;
        }
        let noise = passing * wasted / count;
        // If the entries are a random part of the keys, block ranges vary in width. Three widths
        // stand for a third of the blocks each.
        const THIRDS: f64 = 1.09;
        let keys = f64::from(file.largest - file.smallest + 1);
        let deviation = ((1.0 - own.len() as f64 / keys).max(0.0) / self.per_block.max(1.0)).sqrt();
        let all = [(1.0 - THIRDS * deviation).max(0.0), 1.0, 1.0 + THIRDS * deviation];
        let widths = if wasted > 0.1 { &all[..] } else { &all[1..2] };
        let blocks = self.sample / self.per_block / widths.len() as f64;
        // An id stands for keys scattered around its place: each of them shares its block with keys
        // of neighbouring ids.
        let others = (self.per_block - 1.0).max(0.0);
        let mean = own.iter().sum::<f64>() / own.len().max(1) as f64 / self.sample;
        for share in own {
            let each = share / self.sample + others * mean;
            for width in widths {
                let popularity = each + noise * width;
                self.blocks.add(BlockClass { popularity, count: blocks });
            }
        }
    }

    fn finish(self) -> Probes {
        let present = self.present.max(1e-300);
        let mut probes = self.probes;
        // Blocks were counted for present keys, false positives for all lookups.
        probes.filters_skipping /= present;
        probes.blocks /= present;
        probes.classes = self.blocks.finish();
        probes.partitions = self.partitions.finish();
        probes
    }
}
