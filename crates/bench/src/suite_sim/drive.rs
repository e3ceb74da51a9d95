//! Driving a real store as the simulator drives its model: the same writes, the same pauses.

use cairn_sim::rng::Rng;
use cairn_sim::{Config, KeyStream, Preload, WriteStream, preload_order};

use super::{Data, Level, MeasuredStore, Totals};
use crate::error::{Error, Result};
use crate::process::Stop;

/// Lookups that warm the cache, and that are then counted.
pub(super) const LOOKUPS: u64 = 100_000;

/// What a real store did.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    /// While it was filled.
    pub(super) preload: Totals,
    /// After that.
    pub(super) run: Totals,
    /// Bytes of levels, averaged over the settled moments.
    pub(super) mean_levels: Vec<f64>,
    /// At the end.
    pub(super) levels: Vec<Level>,
    /// Keys that are alive.
    pub(super) live_keys: u64,
    /// A lookup: filters that said no, data blocks, hit rate; absent without reads.
    pub(super) lookups: Option<(f64, f64, f64)>,
}

/// Writes between two flushes.
fn batch(config: &Config) -> u64 {
    config.writes_per_flush.max(1)
}

/// A paced run: preload, writes, lookups.
pub(super) fn paced(
    store: &mut dyn MeasuredStore,
    config: &Config,
    data: &Data,
    stop: &Stop,
) -> Result<Measured> {
    let mut data = data.clone();
    let mut alive = vec![false; config.workload.keys as usize];
    preload(store, config, &mut data, &mut alive, stop)?;
    let mut measured = Measured { preload: store.totals(), ..Measured::default() };
    let workload = &config.workload;
    let mut writes =
        WriteStream::new(&workload.distribution, workload.keys, 1, workload.deletes, config.seed);
    let mut key = Vec::new();
    let (mut done, mut moments) = (0, 0.0);
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
        done += count;
        store.flush()?;
        store.settle()?;
        moments += 1.0;
        add_levels(&mut measured.mean_levels, &store.levels());
    }
    measured.mean_levels.iter_mut().for_each(|bytes| *bytes /= moments);
    measured.run = store.totals().since(measured.preload);
    measured.levels = store.levels();
    measured.live_keys = alive.iter().filter(|alive| **alive).count() as u64;
    if config.workload.reads.gets_per_sec > 0.0 {
        measured.lookups = Some(lookups(store, config, &data, &alive, stop)?);
    }
    Ok(measured)
}

fn preload(
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
        let id = if in_order { at } else { order.of(at) } as u32;
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

/// Lookups of keys that are there, by the popularity that reads have.
fn lookups(
    store: &mut dyn MeasuredStore,
    config: &Config,
    data: &Data,
    alive: &[bool],
    stop: &Stop,
) -> Result<(f64, f64, f64)> {
    let workload = &config.workload;
    let kind = workload.reads.distribution.as_ref().unwrap_or(&workload.distribution);
    let mut keys = KeyStream::new(kind, workload.keys, 1, Rng::new(config.seed).next_u64());
    let mut key = Vec::new();
    let mut before = store.totals();
    for at in 0..2 * LOOKUPS {
        if at == LOOKUPS {
            stop.check()?;
            before = store.totals();
        }
        let id = keys.next_id();
        data.key(id, &mut key);
        let found = store.get(&key)?;
        if alive.get(id as usize) != Some(&found) {
            return Err(Error::invalid(format!("key {id} was answered wrongly: found is {found}")));
        }
    }
    let counted = store.totals().since(before);
    let fetched = counted.block_hits + counted.block_misses;
    let each = LOOKUPS as f64;
    Ok((counted.filters_skipping / each, fetched / each, counted.block_hits / fetched.max(1.0)))
}
