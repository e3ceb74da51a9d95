//! Cairn's own store as an oracle for the simulator.

use std::path::Path;

use cairn_kv::strategy::{FifoOptions, LazyOptions, LeveledOptions, StrategyOptions, UniversalOptions};
use cairn_kv::{Background, Compression, Db, Durability, KeyspaceOptions};
use cairn_sim::Config;
use cairn_sim::options::{self, CompactionStyle};

use super::measured::{Level, MeasuredStore, Totals};
use crate::core::error::{Error, Result};

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine("cairn", error)
}

/// An open store.
pub(crate) struct KvMeasured(Db);

/// Opens a new store with the options of `config`. Unless `fills` is set, the writer's thread does
/// all work.
pub(crate) fn open(dir: &Path, config: &Config, fills: bool, logs: bool) -> Result<KvMeasured> {
    let options = &config.options;
    let keyspace = KeyspaceOptions {
        memtable_bytes: if fills { options.write_buffer_size } else { 1 << 30 },
        sealed_memtables_max: options.max_write_buffer_number - 1,
        block_bytes: options.block_size as u32,
        compression: codecs(options),
        filter_bits_per_key: options.bloom_bits_per_key,
        filter_by_level: options.kv.filter_by_level,
        level_zero_limits: (options.level0_slowdown_writes_trigger, options.level0_stop_writes_trigger),
        compaction: strategy(config),
        ..KeyspaceOptions::default()
    };
    let background =
        if fills { Background::Threads(options.max_background_jobs) } else { Background::Inline };
    let db = Db::builder(dir)
        .cache_bytes(options.block_cache_size)
        .background(background)
        .durability(if logs { Durability::Buffered } else { Durability::Memory })
        .default_keyspace(keyspace);
    Ok(KvMeasured(db.open().map_err(fail)?))
}

fn codecs(options: &options::Options) -> Vec<Compression> {
    let one = |codec: options::Compression| match codec {
        options::Compression::None => Compression::None,
        options::Compression::Snappy => Compression::Snappy,
        options::Compression::Lz4 => Compression::Lz4,
        options::Compression::Zstd => Compression::Zstd { level: 3, dictionary_bytes: 0 },
    };
    match options.compression_per_level.is_empty() {
        true => vec![one(options.compression)],
        false => options.compression_per_level.iter().map(|codec| one(*codec)).collect(),
    }
}

fn strategy(config: &Config) -> StrategyOptions {
    let options = &config.options;
    let (table_bytes, levels) = (options.target_file_size_base, options.num_levels);
    match options.compaction_style {
        CompactionStyle::Leveled => StrategyOptions::Leveled(LeveledOptions {
            table_bytes,
            level_zero_runs_min: options.level0_file_num_compaction_trigger,
            level_zero_runs_max: options.kv.level_zero_runs_max,
            level_zero_bytes: options.kv.level_zero_bytes,
            base_bytes: options.max_bytes_for_level_base,
            multiplier: options.max_bytes_for_level_multiplier,
            levels,
            tombstone_ratio: options.kv.tombstone_ratio,
            ..LeveledOptions::default()
        }),
        CompactionStyle::Universal => StrategyOptions::Universal(UniversalOptions {
            table_bytes,
            runs: options.level0_file_num_compaction_trigger,
            size_ratio_percent: options.compaction_options_universal.size_ratio,
            merge_runs_min: options.compaction_options_universal.min_merge_width,
            space_amplification_percent: options.compaction_options_universal.max_size_amplification_percent,
            levels,
            ..UniversalOptions::default()
        }),
        CompactionStyle::Fifo => StrategyOptions::Fifo(FifoOptions {
            bytes_max: options.compaction_options_fifo.max_table_files_size,
            ttl_secs: (options.ttl > 0).then_some(options.ttl),
        }),
        CompactionStyle::LazyLeveled => StrategyOptions::LazyLeveled(LazyOptions {
            table_bytes,
            flush_bytes: options.write_buffer_size,
            size_ratio: options.kv.size_ratio,
            levels,
            tombstone_ratio: options.kv.tombstone_ratio,
            ..LazyOptions::default()
        }),
    }
}

impl MeasuredStore for KvMeasured {
    fn version(&self) -> String {
        format!("cairn kv {}", env!("CARGO_PKG_VERSION"))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value).map_err(fail)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.0.delete(key).map_err(fail)
    }

    fn get(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.0.get(key).map_err(fail)?.is_some())
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush().map_err(fail)
    }

    fn settle(&mut self) -> Result<()> {
        // In inline mode, a flush also does all work that it triggers.
        Ok(())
    }

    fn totals(&self) -> Totals {
        let stats = self.0.stats();
        let stalls = stats.stalls;
        Totals {
            flush_bytes: stats.flushes.1 as f64,
            compact_read_bytes: stats.compaction_bytes.0 as f64,
            compact_write_bytes: stats.compaction_bytes.1 as f64,
            filters_skipping: stats.filters_skipping as f64,
            block_hits: stats.data_hits_misses.0 as f64,
            block_misses: stats.data_hits_misses.1 as f64,
            stall_secs: (stalls.memtables + stalls.level_zero + stalls.pending_compaction).as_secs_f64(),
        }
    }

    fn levels(&self) -> Vec<Level> {
        let stats = self.0.stats();
        let levels = stats.keyspaces.first().map(|keyspace| keyspace.levels.clone()).unwrap_or_default();
        levels.iter().map(|level| Level { files: level.tables, bytes: level.bytes }).collect()
    }
}
