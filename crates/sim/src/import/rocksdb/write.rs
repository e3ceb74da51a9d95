//! Writes options in RocksDB's formats.

use std::fmt::Write;

use super::{CODECS, PRIORITIES, STYLES, Section};
use crate::error::{Error, Result};
use crate::options::{Engine, Options};

fn name_of<T: PartialEq + Copy>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

/// Returns section, name and value of every modelled option.
fn pairs(options: &Options) -> Vec<(Section, &'static str, String)> {
    let universal = &options.compaction_options_universal;
    let fifo = &options.compaction_options_fifo;
    let bits = options.bloom_bits_per_key;
    let filter = if bits > 0.0 { format!("bloomfilter:{bits}:false") } else { "nullptr".to_owned() };
    let codecs: Vec<_> = options.compression_per_level.iter().map(|codec| name_of(&CODECS, *codec)).collect();
    let bottom = options.bottommost_compression;
    let bottom = bottom.map_or("kDisableCompressionOption", |codec| name_of(&CODECS, codec));
    let family = |name, value: String| (Section::Family, name, value);
    vec![
        (Section::Db, "max_background_jobs", options.max_background_jobs.to_string()),
        (Section::Db, "max_subcompactions", options.max_subcompactions.to_string()),
        (Section::Db, "delayed_write_rate", options.delayed_write_rate.to_string()),
        family("write_buffer_size", options.write_buffer_size.to_string()),
        family("max_write_buffer_number", options.max_write_buffer_number.to_string()),
        family("min_write_buffer_number_to_merge", options.min_write_buffer_number_to_merge.to_string()),
        family("level0_file_num_compaction_trigger", options.level0_file_num_compaction_trigger.to_string()),
        family("level0_slowdown_writes_trigger", options.level0_slowdown_writes_trigger.to_string()),
        family("level0_stop_writes_trigger", options.level0_stop_writes_trigger.to_string()),
        family("num_levels", options.num_levels.to_string()),
        family("max_bytes_for_level_base", options.max_bytes_for_level_base.to_string()),
        family("max_bytes_for_level_multiplier", options.max_bytes_for_level_multiplier.to_string()),
        family(
            "level_compaction_dynamic_level_bytes",
            options.level_compaction_dynamic_level_bytes.to_string(),
        ),
        family("level_compaction_dynamic_file_size", options.level_compaction_dynamic_file_size.to_string()),
        family("target_file_size_base", options.target_file_size_base.to_string()),
        family("target_file_size_multiplier", options.target_file_size_multiplier.to_string()),
        family("max_compaction_bytes", options.max_compaction_bytes.to_string()),
        family(
            "soft_pending_compaction_bytes_limit",
            options.soft_pending_compaction_bytes_limit.to_string(),
        ),
        family(
            "hard_pending_compaction_bytes_limit",
            options.hard_pending_compaction_bytes_limit.to_string(),
        ),
        family("compaction_style", name_of(&STYLES, options.compaction_style).to_owned()),
        family("compaction_pri", name_of(&PRIORITIES, options.compaction_pri).to_owned()),
        family(
            "compaction_options_universal",
            format!(
                "{{size_ratio={};min_merge_width={};max_merge_width={};max_size_amplification_percent={};}}",
                universal.size_ratio,
                universal.min_merge_width,
                universal.max_merge_width,
                universal.max_size_amplification_percent
            ),
        ),
        family(
            "compaction_options_fifo",
            format!(
                "{{max_table_files_size={};allow_compaction={};}}",
                fifo.max_table_files_size, fifo.allow_compaction
            ),
        ),
        family("ttl", options.ttl.to_string()),
        family("disable_auto_compactions", options.disable_auto_compactions.to_string()),
        family("compression", name_of(&CODECS, options.compression).to_owned()),
        family("bottommost_compression", bottom.to_owned()),
        family("compression_per_level", codecs.join(":")),
        family("optimize_filters_for_hits", options.optimize_filters_for_hits.to_string()),
        (Section::Table, "block_size", options.block_size.to_string()),
        (Section::Table, "filter_policy", filter),
        (Section::Table, "cache_index_and_filter_blocks", options.cache_index_and_filter_blocks.to_string()),
    ]
}

/// Returns the settings that no `OPTIONS` file holds: those of objects that a program creates when
/// it opens the store, and those of its writes.
fn unrepresentable_pairs(options: &Options) -> [(&'static str, String); 4] {
    [
        ("block_cache_size", options.block_cache_size.to_string()),
        ("rate_limiter_bytes_per_sec", options.rate_limiter_bytes_per_sec.to_string()),
        ("wal", options.wal.to_string()),
        ("wal_sync", options.wal_sync.to_string()),
    ]
}

/// Returns the settings, as `name=value`, that differ from `before` and that no `OPTIONS` file can
/// hold.
pub fn rocksdb_unrepresentable(before: &Options, after: &Options) -> Vec<String> {
    let pairs = unrepresentable_pairs(before).into_iter().zip(unrepresentable_pairs(after));
    let changed = pairs.filter(|(old, new)| old.1 != new.1);
    changed.map(|(_, (name, value))| format!("{name}={value}")).collect()
}

fn expect_rocksdb(options: &Options) -> Result<()> {
    if options.engine == Engine::Rocksdb {
        return Ok(());
    }
    Err(Error::option("engine", "cairn_kv", "rocksdb for an OPTIONS file"))
}

/// Formats an `OPTIONS` file. RocksDB requires the first three sections even if they are empty.
fn ini(options: &Options, unrepresentable: &[String], keep: impl Fn(&str) -> bool) -> String {
    let mut text = "# Only options that cairn sim models; leave the others unchanged.\n".to_owned();
    // Writing to a string cannot fail.
    if !unrepresentable.is_empty() {
        let _ = writeln!(text, "# Not representable in an OPTIONS file: {}", unrepresentable.join(", "));
    }
    let version = options.rocksdb_version;
    let _ = writeln!(text, "\n[Version]\n  rocksdb_version={version}.0.0\n  options_file_version=1.1");
    let is_gone = |name: &str| name == "level_compaction_dynamic_file_size" && version >= 9;
    let keep = |name: &str| keep(name) && !is_gone(name);
    let pairs = pairs(options);
    for (section, title) in [
        (Section::Db, "[DBOptions]"),
        (Section::Family, "[CFOptions \"default\"]"),
        (Section::Table, "[TableOptions/BlockBasedTable \"default\"]"),
    ] {
        let lines: Vec<_> = pairs.iter().filter(|(at, name, _)| *at == section && keep(name)).collect();
        if lines.is_empty() && section == Section::Table {
            continue;
        }
        let _ = writeln!(text, "\n{title}");
        for (_, name, value) in lines {
            let _ = writeln!(text, "  {name}={value}");
        }
    }
    text
}

/// Returns the options as an `OPTIONS` file. Errors: the options are not RocksDB's.
pub fn export_rocksdb(options: &Options) -> Result<String> {
    expect_rocksdb(options)?;
    Ok(ini(options, &rocksdb_unrepresentable(&Options::default(), options), |_| true))
}

/// Returns only the options that differ from `before`, in the same form. Errors: the options are
/// not RocksDB's.
pub fn rocksdb_changes(before: &Options, after: &Options) -> Result<String> {
    expect_rocksdb(after)?;
    let old = pairs(before);
    let new = pairs(after);
    let changed: Vec<&str> =
        old.iter().zip(&new).filter(|(old, new)| old.2 != new.2).map(|(_, new)| new.1).collect();
    Ok(ini(after, &rocksdb_unrepresentable(before, after), |name| changed.contains(&name)))
}

/// Returns the options in the form of RocksDB's `GetOptionsFromString`, with which the lab opens
/// real stores.
pub fn rocksdb_string(options: &Options) -> Result<String> {
    expect_rocksdb(options)?;
    let mut text = String::new();
    let mut table = String::new();
    // RocksDB refuses a setting that its version lacks. So a setting that some versions lack is
    // omitted when it has the default value.
    let is_default = |name: &str, value: &str| match name {
        "level_compaction_dynamic_file_size" => options.rocksdb_version >= 8 || value == "true",
        "compression_per_level" => value.is_empty(),
        _ => false,
    };
    for (section, name, value) in pairs(options) {
        if is_default(name, &value) {
            continue;
        }
        match section {
            Section::Table => {
                let _ = write!(table, "{name}={value};");
            }
            _ if name == "compaction_options_fifo" => {
                let bytes = options.compaction_options_fifo.max_table_files_size;
                let merges = options.compaction_options_fifo.allow_compaction;
                let _ = write!(text, "{name}={{max_table_files_size={bytes};allow_compaction={merges};}};");
            }
            _ => {
                let _ = write!(text, "{name}={value};");
            }
        }
    }
    let cache = options.block_cache_size;
    let _ = write!(
        text,
        "block_based_table_factory={{{table}block_cache={cache};no_block_cache={};}};",
        cache == 0
    );
    Ok(text)
}
