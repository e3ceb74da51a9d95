//! Options of `cairn kv`: a JSON object with the names of `KeyspaceOptions` and its compaction
//! strategies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Imported;
use crate::error::{Error, Result};
use crate::options::{CompactionStyle, Compression, Engine, Options};

/// The options under the names of `cairn-kv`, with its defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct KvFile {
    memtable_bytes: u64,
    sealed_memtables_max: usize,
    block_bytes: u64,
    compression: Vec<Compression>,
    filter_bits_per_key: f64,
    filter_by_level: bool,
    level_zero_limits: (usize, usize),
    pending_compaction_limits: (u64, u64),
    cache_bytes: u64,
    threads: usize,
    rate_limit_bytes: Option<u64>,
    ttl_secs: Option<u64>,
    compaction: Strategy,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Strategy {
    Leveled(Leveled),
    Universal(Universal),
    Fifo(Fifo),
    LazyLeveled(Lazy),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Leveled {
    table_bytes: u64,
    level_zero_runs_min: usize,
    level_zero_runs_max: usize,
    level_zero_bytes: u64,
    base_bytes: u64,
    multiplier: f64,
    levels: usize,
    tombstone_ratio: f64,
    parts: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Universal {
    table_bytes: u64,
    runs: usize,
    size_ratio_percent: u64,
    merge_runs_min: usize,
    merge_runs_max: usize,
    space_amplification_percent: u64,
    levels: usize,
    parts: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Fifo {
    bytes_max: u64,
    ttl_secs: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Lazy {
    table_bytes: u64,
    size_ratio: usize,
    levels: usize,
    tombstone_ratio: f64,
    parts: usize,
}

impl Default for KvFile {
    fn default() -> Self {
        to_file(&Options::cairn_kv())
    }
}

impl Default for Leveled {
    fn default() -> Self {
        leveled(&Options::cairn_kv())
    }
}

impl Default for Universal {
    fn default() -> Self {
        universal(&Options::cairn_kv())
    }
}

impl Default for Fifo {
    fn default() -> Self {
        Fifo { bytes_max: 1 << 30, ttl_secs: None }
    }
}

impl Default for Lazy {
    fn default() -> Self {
        lazy(&Options::cairn_kv())
    }
}

fn leveled(options: &Options) -> Leveled {
    Leveled {
        table_bytes: options.target_file_size_base,
        level_zero_runs_min: options.level0_file_num_compaction_trigger,
        level_zero_runs_max: options.kv.level_zero_runs_max,
        level_zero_bytes: options.kv.level_zero_bytes,
        base_bytes: options.max_bytes_for_level_base,
        multiplier: options.max_bytes_for_level_multiplier,
        levels: options.num_levels,
        tombstone_ratio: options.kv.tombstone_ratio,
        parts: options.max_subcompactions,
    }
}

fn universal(options: &Options) -> Universal {
    let universal = &options.compaction_options_universal;
    Universal {
        table_bytes: options.target_file_size_base,
        runs: options.level0_file_num_compaction_trigger,
        size_ratio_percent: universal.size_ratio,
        merge_runs_min: universal.min_merge_width,
        merge_runs_max: universal.max_merge_width,
        space_amplification_percent: universal.max_size_amplification_percent,
        levels: options.num_levels,
        parts: options.max_subcompactions,
    }
}

fn lazy(options: &Options) -> Lazy {
    Lazy {
        table_bytes: options.target_file_size_base,
        size_ratio: options.kv.size_ratio,
        levels: options.num_levels,
        tombstone_ratio: options.kv.tombstone_ratio,
        parts: options.max_subcompactions,
    }
}

fn to_file(options: &Options) -> KvFile {
    let compression = match options.compression_per_level.is_empty() {
        true => vec![options.compression],
        false => options.compression_per_level.clone(),
    };
    let rate = options.rate_limiter_bytes_per_sec;
    KvFile {
        memtable_bytes: options.write_buffer_size,
        sealed_memtables_max: options.max_write_buffer_number - 1,
        block_bytes: options.block_size,
        compression,
        filter_bits_per_key: options.bloom_bits_per_key,
        filter_by_level: options.kv.filter_by_level,
        level_zero_limits: (options.level0_slowdown_writes_trigger, options.level0_stop_writes_trigger),
        pending_compaction_limits: (
            options.soft_pending_compaction_bytes_limit,
            options.hard_pending_compaction_bytes_limit,
        ),
        cache_bytes: options.block_cache_size,
        threads: options.max_background_jobs,
        rate_limit_bytes: (rate > 0).then_some(rate),
        ttl_secs: (options.ttl > 0).then_some(options.ttl),
        compaction: match options.compaction_style {
            CompactionStyle::Leveled => Strategy::Leveled(leveled(options)),
            CompactionStyle::Universal => Strategy::Universal(universal(options)),
            CompactionStyle::LazyLeveled => Strategy::LazyLeveled(lazy(options)),
            CompactionStyle::Fifo => Strategy::Fifo(Fifo {
                bytes_max: options.compaction_options_fifo.max_table_files_size,
                ttl_secs: (options.ttl > 0).then_some(options.ttl),
            }),
        },
    }
}

/// Parses options of `cairn kv`. Errors: [`Error::Parse`] with line and name; [`Error::Option`].
pub fn import_kv(text: &str, file: &str) -> Result<Imported> {
    let read: KvFile = crate::json::parse(text, file)?;
    let mut options = Options {
        write_buffer_size: read.memtable_bytes,
        max_write_buffer_number: read.sealed_memtables_max.saturating_add(1),
        block_size: read.block_bytes,
        compression: read.compression.last().copied().unwrap_or_default(),
        compression_per_level: read.compression,
        bloom_bits_per_key: read.filter_bits_per_key,
        level0_slowdown_writes_trigger: read.level_zero_limits.0,
        level0_stop_writes_trigger: read.level_zero_limits.1,
        soft_pending_compaction_bytes_limit: read.pending_compaction_limits.0,
        hard_pending_compaction_bytes_limit: read.pending_compaction_limits.1,
        block_cache_size: read.cache_bytes,
        max_background_jobs: read.threads,
        rate_limiter_bytes_per_sec: read.rate_limit_bytes.unwrap_or(0),
        ttl: read.ttl_secs.unwrap_or(0),
        ..Options::cairn_kv()
    };
    options.kv.filter_by_level = read.filter_by_level;
    apply(&mut options, read.compaction);
    options.check()?;
    Ok(Imported { options, ignored: Vec::new(), notes: Vec::new() })
}

fn apply(options: &mut Options, strategy: Strategy) {
    match strategy {
        Strategy::Leveled(it) => {
            options.compaction_style = CompactionStyle::Leveled;
            options.target_file_size_base = it.table_bytes;
            options.level0_file_num_compaction_trigger = it.level_zero_runs_min;
            options.kv.level_zero_runs_max = it.level_zero_runs_max;
            options.kv.level_zero_bytes = it.level_zero_bytes;
            options.max_bytes_for_level_base = it.base_bytes;
            options.max_bytes_for_level_multiplier = it.multiplier;
            options.num_levels = it.levels;
            options.kv.tombstone_ratio = it.tombstone_ratio;
            options.max_subcompactions = it.parts;
        }
        Strategy::Universal(it) => {
            options.compaction_style = CompactionStyle::Universal;
            options.target_file_size_base = it.table_bytes;
            options.level0_file_num_compaction_trigger = it.runs;
            options.compaction_options_universal.size_ratio = it.size_ratio_percent;
            options.compaction_options_universal.min_merge_width = it.merge_runs_min;
            options.compaction_options_universal.max_merge_width = it.merge_runs_max;
            options.compaction_options_universal.max_size_amplification_percent =
                it.space_amplification_percent;
            options.num_levels = it.levels;
            options.max_subcompactions = it.parts;
        }
        Strategy::Fifo(it) => {
            options.compaction_style = CompactionStyle::Fifo;
            options.compaction_options_fifo.max_table_files_size = it.bytes_max;
            options.ttl = it.ttl_secs.unwrap_or(options.ttl);
        }
        Strategy::LazyLeveled(it) => {
            options.compaction_style = CompactionStyle::LazyLeveled;
            options.target_file_size_base = it.table_bytes;
            options.kv.size_ratio = it.size_ratio;
            options.num_levels = it.levels;
            options.kv.tombstone_ratio = it.tombstone_ratio;
            options.max_subcompactions = it.parts;
        }
    }
}

/// Returns the options in the form that [`import_kv`] reads. Errors: the options are not Cairn's.
pub fn export_kv(options: &Options) -> Result<String> {
    if options.engine != Engine::CairnKv {
        return Err(Error::option("engine", "rocksdb", "cairn_kv for a file of kv options"));
    }
    Ok(serde_json::to_string_pretty(&to_file(options)).unwrap_or_default())
}

/// Returns the settings, as `name=value`, that differ from `before` and that a file of kv options
/// cannot hold.
pub fn kv_unrepresentable(before: &Options, after: &Options) -> Vec<String> {
    let written = export_kv(after).and_then(|text| import_kv(&text, "kv.json"));
    let Ok(written) = written else { return Vec::new() };
    let [before, after, written] = [before, after, &written.options].map(settings);
    let is_left_out =
        |name: &String, value: &Value| before.get(name) != Some(value) && written.get(name) != Some(value);
    let left_out = after.iter().filter(|(name, value)| is_left_out(name, value));
    left_out.map(|(name, value)| format!("{name}={value}")).collect()
}

/// Returns all settings by path.
fn settings(options: &Options) -> BTreeMap<String, Value> {
    let mut settings = BTreeMap::new();
    let Ok(Value::Object(fields)) = serde_json::to_value(options) else { return settings };
    for (name, value) in fields {
        match value {
            Value::Object(inner) => {
                settings.extend(inner.into_iter().map(|(inner, value)| (format!("{name}.{inner}"), value)));
            }
            value => _ = settings.insert(name, value),
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: exactly the settings that a file of kv options cannot hold are named. Method: the
    /// defaults, settings that the file can hold, and two that it cannot.
    #[test]
    fn what_a_file_cannot_hold_is_named() {
        let before = Options::cairn_kv();
        assert_eq!(kv_unrepresentable(&before, &before), [""; 0]);
        let mut options = Options { write_buffer_size: 8 << 20, max_background_jobs: 7, ttl: 60, ..before };
        options.kv.level_zero_runs_max = 9;
        assert_eq!(kv_unrepresentable(&Options::default(), &options), [""; 0]);
        (options.wal, options.kv.size_ratio) = (false, 6);
        assert_eq!(kv_unrepresentable(&Options::cairn_kv(), &options), ["kv.size_ratio=6", "wal=false"]);
        options.compaction_style = CompactionStyle::LazyLeveled;
        assert_eq!(
            kv_unrepresentable(&Options::default(), &options),
            ["kv.level_zero_runs_max=9", "wal=false"]
        );
        assert_eq!(kv_unrepresentable(&options, &options), [""; 0]);
    }

    /// Goal: exported options can be imported, for each strategy, and an empty object gives the
    /// defaults.
    /// Method: round trips.
    #[test]
    fn options_survive_the_round_trip() {
        for style in [
            CompactionStyle::Leveled,
            CompactionStyle::Universal,
            CompactionStyle::Fifo,
            CompactionStyle::LazyLeveled,
        ] {
            let options =
                Options { compaction_style: style, target_file_size_base: 8 << 20, ..Options::cairn_kv() };
            let text = export_kv(&options).unwrap();
            let again = import_kv(&text, "kv.json").unwrap().options;
            assert_eq!(export_kv(&again).unwrap(), text);
            assert_eq!(again.compaction_style, style);
        }
        let defaults = import_kv("{}", "kv.json").unwrap().options;
        assert_eq!((defaults.write_buffer_size, defaults.max_subcompactions), (64 << 20, 4));
    }

    /// Goal: errors name the setting. Method: an unknown name, a bad value, a contradiction.
    #[test]
    fn faults_are_named() {
        let error = |text: &str| import_kv(text, "kv.json").unwrap_err().to_string();
        assert!(error("{\n\"memtable_byte\": 1}").contains("line 2"));
        assert!(error("{\"memtable_bytes\": -5}").contains("memtable_bytes"));
        assert!(error("{\"compaction\": {\"lazy_leveled\": {\"size_ratio\": 1}}}").contains("size_ratio"));
    }
}
