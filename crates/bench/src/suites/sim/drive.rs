//! Drives a real store as the simulator drives its model: with the same writes and the same pauses.

use cairn_sim::{Config, KeyStream, Preload, WriteStream, is_read_moment, preload_order, writes_per_flush};
use cairn_vfs::{Rng, SeededRng};

use super::Data;
use crate::core::error::{Error, Result};
use crate::core::process::Stop;
use crate::stores::measured::{Level, MeasuredStore, Totals};

/// Numbers of lookups at each of several moments of a run: first to warm up the cache, then
/// counted. The cost of lookups depends on the contents of the uppermost levels, whose sizes
/// fluctuate like a saw-tooth, so a single moment says little.
const WARMING: u64 = 40_000;
const COUNTED: u64 = 20_000;

/// The measurements of a real store.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    /// Counters while the store was filled.
    pub(super) preload: Totals,
    /// Counters after that.
    pub(super) run: Totals,
    /// Bytes of the levels, averaged over the settled moments.
    pub(super) mean_levels: Vec<f64>,
    /// The levels at the end.
    pub(super) levels: Vec<Level>,
    /// Number of live keys.
    pub(super) live_keys: u64,
    /// Per lookup: filters that reported the key as absent, data blocks, and the share of these in
    /// the cache, averaged over moments of the run. None without reads.
    pub(super) lookups: Option<(f64, f64, f64)>,
}

/// Returns the number of writes between two flushes, the same as in the model.
fn batch(config: &Config) -> u64 {
    writes_per_flush(config)
}

/// Performs a paced run: preload, writes, lookups.
pub(super) fn paced(
    store: &mut dyn MeasuredStore,
    config: &Config,
    data: &Data,
    stop: &Stop,
) -> Result<Measured> {
    let mut reader = Reader::new(config, data);
    let mut data = data.clone();
    let mut alive = vec![false; config.workload.keys as usize];
    preload(store, config, &mut data, &mut alive, stop)?;
    let mut measured = Measured { preload: store.totals(), ..Measured::default() };
    let workload = &config.workload;
    let mut writes =
        WriteStream::new(&workload.distribution, workload.keys, 1, workload.deletes, config.seed);
    let mut key = Vec::new();
    let (mut done, mut moments) = (0, 0.0);
    let has_reads = workload.reads.gets_per_sec > 0.0;
    let mut observations = Vec::new();
    while done < config.writes {
        stop.check()?;
        let count = batch(config).min(config.writes - done);
        for _ in 0..count {
            let (id, is_delete) = writes.next_write();
            data.key(id, &mut key);
            if is_delete {
                store.delete(&key)?;
            } else {
                store.put(&key, data.value())?;
            }
            if let Some(slot) = alive.get_mut(id as usize) {
                *slot = !is_delete;
            }
        }
        store.flush()?;
        store.settle()?;
        if has_reads && is_read_moment(done, done + count, config.writes) {
            reader.keys.follow(writes.keys());
            reader.observe(store, &alive, WARMING)?;
            observations.push(reader.observe(store, &alive, COUNTED)?);
        }
        done += count;
        moments += 1.0;
        add_levels(&mut measured.mean_levels, &store.levels());
    }
    measured.mean_levels.iter_mut().for_each(|bytes| *bytes /= moments);
    // These counters do not include the blocks that lookups fetch.
    measured.run = store.totals().since(measured.preload);
    measured.levels = store.levels();
    measured.live_keys = alive.iter().filter(|alive| **alive).count() as u64;
    if has_reads {
        let over = |of: fn(&Observation) -> f64| {
            observations.iter().map(of).sum::<f64>() / observations.len().max(1) as f64
        };
        // The share of all blocks that were fetched.
        let hit =
            over(|observe| observe.blocks * observe.cache_hit) / over(|observe| observe.blocks).max(1e-9);
        measured.lookups = Some((over(|observe| observe.filters), over(|observe| observe.blocks), hit));
    }
    Ok(measured)
}

/// Fills a store as the model is filled: flushed and settled after each memtable.
pub(super) fn preload(
    store: &mut dyn MeasuredStore,
    config: &Config,
    data: &mut Data,
    alive: &mut [bool],
    stop: &Stop,
) -> Result<()> {
    let keys = config.workload.keys;
    let order = preload_order(keys);
    let in_order = match config.preload {
        Preload::None => return Ok(()),
        Preload::Sequential => true,
        Preload::Random => false,
        Preload::Settled => {
            return Err(Error::invalid("a real store is not filled as `settled`".to_owned()));
        }
    };
    let mut key = Vec::new();
    for at in 0..keys {
        let id = if in_order { at } else { order.apply(at) } as u32;
        data.key(id, &mut key);
        store.put(&key, data.value())?;
        if let Some(slot) = alive.get_mut(id as usize) {
            *slot = true;
        }
        if (at + 1) % batch(config) == 0 || at + 1 == keys {
            stop.check()?;
            store.flush()?;
            store.settle()?;
        }
    }
    Ok(())
}

fn add_levels(sums: &mut Vec<f64>, levels: &[Level]) {
    if sums.len() < levels.len() {
        sums.resize(levels.len(), 0.0);
    }
    for (sum, level) in sums.iter_mut().zip(levels) {
        *sum += level.bytes as f64;
    }
}

/// The average cost of a lookup.
struct Observation {
    filters: f64,
    blocks: f64,
    cache_hit: f64,
}

/// Looks up keys with the distribution of the workload's reads.
struct Reader<'d> {
    keys: KeyStream,
    data: &'d Data,
}

impl Reader<'_> {
    fn new<'d>(config: &Config, data: &'d Data) -> Reader<'d> {
        let workload = &config.workload;
        let kind = workload.reads.distribution.as_ref().unwrap_or(&workload.distribution);
        let seed = SeededRng::new(config.seed).next_u64();
        let keys = KeyStream::new(kind, workload.keys, 1, seed).reader(seed);
        Reader { keys, data }
    }

    /// Performs `count` lookups. Errors: the store fails, or gives a wrong answer.
    fn observe(&mut self, store: &mut dyn MeasuredStore, alive: &[bool], count: u64) -> Result<Observation> {
        let before = store.totals();
        let mut key = Vec::new();
        for _ in 0..count {
            let id = self.keys.next_id();
            self.data.key(id, &mut key);
            let found = store.get(&key)?;
            if alive.get(id as usize) != Some(&found) {
                return Err(Error::invalid(format!("wrong answer for key {id}: found {found}")));
            }
        }
        let counted = store.totals().since(before);
        let fetched = counted.block_hits + counted.block_misses;
        let each = count as f64;
        Ok(Observation {
            filters: counted.filters_skipping / each,
            blocks: fetched / each,
            cache_hit: counted.block_hits / fetched.max(1.0),
        })
    }
}
