//! Where each key's newest version is, what a lookup passes on its way there, and how popular each block thereby is.

use super::bloom::false_positive_rate;
use super::cache::{BlockClass, bin};
use crate::config::Config;
use crate::layout;
use crate::tree::{File, Tree};

/// Means over lookups, weighted by popularity.
#[derive(Debug, Clone, Default)]
pub struct Probes {
    /// Filters of present keys that say no.
    pub filters_skipping: f64,
    /// Blocks of present keys.
    pub blocks: f64,
    /// Filters of absent keys.
    pub absent_filters: f64,
    /// Blocks of absent keys.
    pub absent_blocks: f64,
    /// Sorted runs.
    pub runs: f64,
    /// Real entries in all files.
    pub entries_total: f64,
    /// Real entries that are the newest of their key, and no tombstones.
    pub entries_live: f64,
    /// Data blocks.
    pub blocks_total: f64,
    /// Blocks by popularity.
    pub classes: Vec<BlockClass>,
}

struct Walk<'a> {
    popularity: &'a [f64],
    sample: f64,
    per_block: f64,
    /// Found in a newer run, as a value or a tombstone.
    is_found: Vec<bool>,
    present: f64,
    probes: Probes,
    blocks: Vec<BlockClass>,
}

impl Probes {
    /// Walks over all files once.
    pub fn new(config: &Config, tree: &Tree, popularity: &[f64], sample: u64) -> Probes {
        let bytes = layout::entry_bytes(&config.workload, &config.options, 1.0, 0.0);
        let mut walk = Walk {
            popularity,
            sample: sample as f64,
            per_block: bytes.per_block,
            is_found: vec![false; popularity.len()],
            present: 0.0,
            probes: Probes { runs: tree.run_count() as f64, ..Probes::default() },
            blocks: Vec::new(),
        };
        let deepest = tree.last_used();
        for (at, level) in tree.levels.iter().enumerate() {
            let bits = config.options.filter_bits(at, deepest);
            let rate = false_positive_rate(bits);
            for file in level.runs.iter().flat_map(|run| &run.files) {
                walk.file(file, rate, bits > 0.0);
            }
        }
        walk.finish()
    }
}

impl Walk<'_> {
    /// All ids within a file's range ask it, unless they were found before.
    fn file(&mut self, file: &File, rate: f64, has_filter: bool) {
        let mut at = 0;
        let mut passing = 0.0;
        let mut all = 0.0;
        let mut own = vec![0.0; file.entries.len()];
        for id in file.smallest..=file.largest {
            let Some(&share) = self.popularity.get(id as usize) else { continue };
            all += share;
            let is_here = file.entries.get(at).is_some_and(|entry| entry.id() == id);
            let was_found = self.is_found.get(id as usize).copied().unwrap_or(true);
            if is_here {
                let is_tombstone = file.entries.get(at).is_some_and(|entry| entry.is_tombstone());
                if !was_found {
                    own[at] = share;
                    self.is_found[id as usize] = true;
                    if !is_tombstone {
                        self.present += share;
                        self.probes.blocks += share;
                        self.probes.entries_live += self.sample;
                    }
                }
                at += 1;
            } else if !was_found {
                passing += share;
            }
        }
        // Who passes by: a filter that says no, or a block for nothing.
        if has_filter {
            self.probes.filters_skipping += passing * (1.0 - rate);
            self.probes.absent_filters += all;
        }
        self.probes.blocks += passing * rate;
        self.probes.absent_blocks += all * rate;
        self.probes.entries_total += file.entries.len() as f64 * self.sample;
        self.add_blocks(&own, passing * rate);
    }

    /// The blocks of a file: its entries' popularity, and its share of false positives.
    fn add_blocks(&mut self, own: &[f64], false_positives: f64) {
        let count = (own.len() as f64 * self.sample / self.per_block).max(1.0);
        let noise = false_positives / count;
        self.probes.blocks_total += count;
        if self.sample <= 1.0 {
            for block in own.chunks((self.per_block as usize).max(1)) {
                let popularity = block.iter().sum::<f64>() + noise;
                self.blocks.push(BlockClass { popularity, count: 1.0 });
            }
            return;
        }
        // An id stands for keys all over its surroundings: beside each of them in a block stand keys of its neighbours.
        let others = (self.per_block - 1.0).max(0.0);
        let mean = own.iter().sum::<f64>() / own.len().max(1) as f64 / self.sample;
        for share in own {
            let each = share / self.sample;
            let popularity = each + others * mean + noise;
            self.blocks.push(BlockClass { popularity, count: self.sample / self.per_block });
        }
    }

    fn finish(mut self) -> Probes {
        let present = self.present.max(1e-300);
        let mut probes = self.probes;
        // Blocks were counted for present keys, false positives for all that ask.
        probes.filters_skipping /= present;
        probes.blocks /= present;
        probes.classes = bin(self.blocks.drain(..));
        probes
    }
}
