//! RocksDB's `OPTIONS` files: sections of `name=value` lines, and the one-line form that `GetOptionsFromString` takes.

use std::fmt::Write;

use super::Imported;
use crate::error::{Error, Result};
use crate::options::{CompactionPri, CompactionStyle, Compression, Engine, Options};

/// All names that `OPTIONS` files of RocksDB 7.8 to 11.8 have. Others are misspelt.
const KNOWN: &str = include_str!("../../data/rocksdb-options.txt");

/// Values of `rocksdb_version` in the section of the same name.
fn major_version(value: &str) -> Option<u32> {
    value.split('.').next()?.parse().ok()
}

/// Where a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Version,
    Db,
    /// Of the column family that is asked for.
    Family,
    Table,
    /// Of another one.
    Other,
}

/// Reads an `OPTIONS` file. `family` is the column family; its table options come with it. `file` is for messages.
///
/// Errors: [`Error::Parse`] with line and name, for unknown names, values that cannot be, and a family that is not there.
pub fn import_rocksdb(text: &str, family: &str, file: &str) -> Result<Imported> {
    // The file tells what is; names that it leaves out have the engine's defaults.
    let mut reader = Reader {
        options: Options { compression: Compression::Snappy, bloom_bits_per_key: 0.0, ..Options::default() },
        ignored: Vec::new(),
        file,
        line: 0,
    };
    let mut section = None;
    let mut has_family = false;
    for (at, line) in text.lines().enumerate() {
        reader.line = at + 1;
        let line = without_comment(line).trim();
        if line.is_empty() {
            continue;
        }
        if let Some(title) = line.strip_prefix('[') {
            let title = title.strip_suffix(']').ok_or_else(|| reader.wrong("a section without its ]"))?;
            section = Some(section_of(title, family));
            has_family |= section == Some(Section::Family);
            continue;
        }
        let (name, value) = line.split_once('=').ok_or_else(|| reader.wrong("expected name=value"))?;
        let section = section.ok_or_else(|| reader.wrong("a setting before the first section"))?;
        reader.set(section, name.trim(), value.trim())?;
    }
    if !has_family {
        return Err(Error::parse(file, reader.line.max(1), format!("no [CFOptions \"{family}\"]")));
    }
    let notes = vec![
        "the file does not hold the size of the block cache: the default of 8 MiB is taken".to_owned(),
        "the file does not hold write options: a log without sync is taken".to_owned(),
    ];
    let Reader { options, ignored, .. } = reader;
    options.check()?;
    Ok(Imported { options, ignored, notes })
}

/// A `#` begins a comment, unless it is escaped.
fn without_comment(line: &str) -> &str {
    let is_start = |(at, _): &(usize, &str)| *at == 0 || line.as_bytes().get(at - 1) != Some(&b'\\');
    line.match_indices('#').find(is_start).map_or(line, |(at, _)| line.get(..at).unwrap_or(line))
}

fn section_of(title: &str, family: &str) -> Section {
    let (kind, name) = title.split_once(' ').unwrap_or((title, ""));
    let is_ours = name.trim().trim_matches('"') == family;
    match kind {
        "Version" => Section::Version,
        "DBOptions" => Section::Db,
        "CFOptions" if is_ours => Section::Family,
        _ if kind.starts_with("TableOptions/BlockBasedTable") && is_ours => Section::Table,
        _ => Section::Other,
    }
}

struct Reader<'a> {
    options: Options,
    ignored: Vec<String>,
    file: &'a str,
    line: usize,
}

impl Reader<'_> {
    fn wrong(&self, what: impl Into<String>) -> Error {
        Error::parse(self.file, self.line, what)
    }

    fn number<T: std::str::FromStr>(&self, name: &str, value: &str) -> Result<T> {
        // RocksDB writes sizes in bytes, and takes a letter for a unit.
        let (digits, factor) = match value.as_bytes().last() {
            Some(b'k' | b'K') => (value.get(..value.len() - 1), 1u64 << 10),
            Some(b'm' | b'M') => (value.get(..value.len() - 1), 1 << 20),
            Some(b'g' | b'G') => (value.get(..value.len() - 1), 1 << 30),
            Some(b't' | b'T') => (value.get(..value.len() - 1), 1 << 40),
            _ => (Some(value), 1),
        };
        let wrong = || self.wrong(format!("{name}={value}: not a number that this setting can have"));
        if factor == 1 {
            return value.parse().map_err(|_| wrong());
        }
        let base: u64 = digits.and_then(|digits| digits.parse().ok()).ok_or_else(wrong)?;
        base.checked_mul(factor).and_then(|all| all.to_string().parse().ok()).ok_or_else(wrong)
    }

    fn truth(&self, name: &str, value: &str) -> Result<bool> {
        match value {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(self.wrong(format!("{name}={value}: expected true or false"))),
        }
    }

    fn set(&mut self, section: Section, name: &str, value: &str) -> Result<()> {
        match section {
            Section::Version => {
                if name == "rocksdb_version" {
                    let version = major_version(value).filter(|&version| version > 0);
                    let version =
                        version.ok_or_else(|| self.wrong(format!("{name}={value}: expected a version")))?;
                    self.options.rocksdb_version = version.min(100);
                }
                Ok(())
            }
            Section::Other => Ok(()),
            Section::Db => self.set_db(name, value),
            Section::Family => self.set_family(name, value),
            Section::Table => self.set_table(name, value),
        }
    }

    /// A name that no model stands behind: fine when RocksDB knows it.
    fn unknown(&mut self, name: &str) -> Result<()> {
        if KNOWN.lines().any(|known| known == name) {
            self.ignored.push(name.to_owned());
            return Ok(());
        }
        Err(self.wrong(format!("{name}: no option of RocksDB has this name")))
    }

    fn set_db(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "max_background_jobs" => self.options.max_background_jobs = self.number(name, value)?,
            "max_subcompactions" => self.options.max_subcompactions = self.number(name, value)?,
            "delayed_write_rate" => self.options.delayed_write_rate = self.number(name, value)?,
            "rate_limiter" if value == "nullptr" || value.is_empty() => {}
            _ => return self.unknown(name),
        }
        Ok(())
    }

    fn set_family(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "write_buffer_size" => self.options.write_buffer_size = self.number(name, value)?,
            "max_write_buffer_number" => self.options.max_write_buffer_number = self.number(name, value)?,
            "min_write_buffer_number_to_merge" => {
                self.options.min_write_buffer_number_to_merge = self.number(name, value)?;
            }
            "level0_file_num_compaction_trigger" => {
                self.options.level0_file_num_compaction_trigger = self.number(name, value)?;
            }
            "level0_slowdown_writes_trigger" => {
                self.options.level0_slowdown_writes_trigger = self.number(name, value)?;
            }
            "level0_stop_writes_trigger" => {
                self.options.level0_stop_writes_trigger = self.number(name, value)?;
            }
            "num_levels" => self.options.num_levels = self.number(name, value)?,
            "max_bytes_for_level_base" => self.options.max_bytes_for_level_base = self.number(name, value)?,
            "max_bytes_for_level_multiplier" => {
                self.options.max_bytes_for_level_multiplier = self.number(name, value)?;
            }
            "target_file_size_base" => self.options.target_file_size_base = self.number(name, value)?,
            "target_file_size_multiplier" => {
                self.options.target_file_size_multiplier = self.number(name, value)?;
            }
            "max_compaction_bytes" => self.options.max_compaction_bytes = self.number(name, value)?,
            "soft_pending_compaction_bytes_limit" => {
                self.options.soft_pending_compaction_bytes_limit = self.number(name, value)?;
            }
            "hard_pending_compaction_bytes_limit" => {
                self.options.hard_pending_compaction_bytes_limit = self.number(name, value)?;
            }
            _ => return self.set_family_rest(name, value),
        }
        Ok(())
    }

    fn set_family_rest(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "level_compaction_dynamic_level_bytes" => {
                self.options.level_compaction_dynamic_level_bytes = self.truth(name, value)?;
            }
            "level_compaction_dynamic_file_size" => {
                self.options.level_compaction_dynamic_file_size = self.truth(name, value)?;
            }
            "disable_auto_compactions" => {
                self.options.disable_auto_compactions = self.truth(name, value)?;
            }
            "optimize_filters_for_hits" => {
                self.options.optimize_filters_for_hits = self.truth(name, value)?;
            }
            // RocksDB's sentinel stands for its own default.
            "ttl" | "periodic_compaction_seconds" if value.parse() == Ok(u64::MAX - 1) => {}
            "ttl" => self.options.ttl = self.number(name, value)?,
            "compaction_style" => self.options.compaction_style = self.style(value)?,
            "compaction_pri" => self.options.compaction_pri = self.pri(value)?,
            "compression" => self.options.compression = self.codec(name, value)?,
            "bottommost_compression" if value == "kDisableCompressionOption" => {}
            "bottommost_compression" => {
                self.options.bottommost_compression = Some(self.codec(name, value)?);
            }
            "compression_per_level" => {
                let values = value.split(':').filter(|value| !value.is_empty());
                let list: Result<Vec<_>> = values.map(|value| self.codec(name, value)).collect();
                self.options.compression_per_level = list?;
            }
            "compaction_options_universal" => return self.each(name, value, Reader::set_universal),
            "compaction_options_fifo" => return self.each(name, value, Reader::set_fifo),
            _ => return self.unknown(name),
        }
        Ok(())
    }

    /// `{a=1;b=2;}`.
    fn each(&mut self, name: &str, value: &str, set: fn(&mut Self, &str, &str) -> Result<()>) -> Result<()> {
        let inside = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
        let inside = inside.ok_or_else(|| self.wrong(format!("{name}: expected {{name=value;...}}")))?;
        // Nested braces belong to settings that have no model.
        let mut depth = 0;
        let parts = inside.split(|c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ';' && depth == 0
        });
        for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
            let (inner, value) = part
                .split_once('=')
                .ok_or_else(|| self.wrong(format!("{name}: {part}: expected name=value")))?;
            set(self, inner.trim(), value.trim())?;
        }
        Ok(())
    }

    fn set_universal(&mut self, name: &str, value: &str) -> Result<()> {
        let number = |reader: &Self| reader.number::<u64>(name, value);
        match name {
            "size_ratio" => self.options.compaction_options_universal.size_ratio = number(self)?,
            "min_merge_width" => {
                self.options.compaction_options_universal.min_merge_width = number(self)? as usize;
            }
            "max_merge_width" => {
                self.options.compaction_options_universal.max_merge_width = number(self)? as usize;
            }
            "max_size_amplification_percent" => {
                self.options.compaction_options_universal.max_size_amplification_percent = number(self)?;
            }
            "stop_style"
            | "compression_size_percent"
            | "allow_trivial_move"
            | "incremental"
            | "max_read_amp"
            | "reduce_file_locking" => self.ignored.push(format!("compaction_options_universal.{name}")),
            _ => return Err(self.wrong(format!("compaction_options_universal: {name} is not known"))),
        }
        Ok(())
    }

    fn set_fifo(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "max_table_files_size" => {
                self.options.compaction_options_fifo.max_table_files_size = self.number(name, value)?;
            }
            "allow_compaction" => {
                self.options.compaction_options_fifo.allow_compaction = self.truth(name, value)?;
            }
            "age_for_warm"
            | "ttl"
            | "file_temperature_age_thresholds"
            | "trivial_copy_buffer_size"
            | "allow_trivial_copy_when_change_temperature"
            | "max_data_files_size"
            | "use_kv_ratio_compaction" => {
                self.ignored.push(format!("compaction_options_fifo.{name}"));
            }
            _ => return Err(self.wrong(format!("compaction_options_fifo: {name} is not known"))),
        }
        Ok(())
    }

    fn set_table(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "block_size" => self.options.block_size = self.number(name, value)?,
            "cache_index_and_filter_blocks" => {
                self.options.cache_index_and_filter_blocks = self.truth(name, value)?;
            }
            "filter_policy" => {
                let parts: Vec<&str> = value.split(':').collect();
                let is_filter =
                    parts.first().is_some_and(|kind| kind.ends_with("filter") || kind.contains("Filter"));
                self.options.bloom_bits_per_key = match parts.get(1) {
                    Some(bits) if is_filter => self.number(name, bits)?,
                    _ if value == "nullptr" || value.is_empty() => 0.0,
                    _ => return Err(self.wrong(format!("{name}={value}: expected bloomfilter:BITS:false"))),
                };
            }
            "block_cache" => {
                if let Ok(bytes) = self.number(name, value) {
                    self.options.block_cache_size = bytes;
                }
            }
            _ => return self.unknown(name),
        }
        Ok(())
    }

    fn style(&self, value: &str) -> Result<CompactionStyle> {
        STYLES.iter().find(|(name, _)| *name == value).map(|(_, style)| *style).ok_or_else(|| {
            self.wrong(format!("compaction_style={value}: expected kCompactionStyleLevel, Universal or FIFO"))
        })
    }

    fn pri(&self, value: &str) -> Result<CompactionPri> {
        let found = PRIORITIES.iter().find(|(name, _)| *name == value).map(|(_, pri)| *pri);
        found.ok_or_else(|| self.wrong(format!("compaction_pri={value}: not known")))
    }

    fn codec(&self, name: &str, value: &str) -> Result<Compression> {
        let found = CODECS.iter().find(|(name, _)| *name == value).map(|(_, codec)| *codec);
        found.ok_or_else(|| {
            self.wrong(format!(
                "{name}={value}: expected kNoCompression, kSnappyCompression, kLZ4Compression or kZSTD"
            ))
        })
    }
}

const STYLES: [(&str, CompactionStyle); 3] = [
    ("kCompactionStyleLevel", CompactionStyle::Leveled),
    ("kCompactionStyleUniversal", CompactionStyle::Universal),
    ("kCompactionStyleFIFO", CompactionStyle::Fifo),
];

const PRIORITIES: [(&str, CompactionPri); 5] = [
    ("kByCompensatedSize", CompactionPri::ByCompensatedSize),
    ("kOldestLargestSeqFirst", CompactionPri::OldestLargestSeqFirst),
    ("kOldestSmallestSeqFirst", CompactionPri::OldestSmallestSeqFirst),
    ("kMinOverlappingRatio", CompactionPri::MinOverlappingRatio),
    ("kRoundRobin", CompactionPri::RoundRobin),
];

/// LZ4HC reads as LZ4: the same format.
const CODECS: [(&str, Compression); 5] = [
    ("kNoCompression", Compression::None),
    ("kSnappyCompression", Compression::Snappy),
    ("kLZ4Compression", Compression::Lz4),
    ("kZSTD", Compression::Zstd),
    ("kLZ4HCCompression", Compression::Lz4),
];

fn name_of<T: PartialEq + Copy>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

/// Section, name and value of every option that the simulator has a model of.
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

fn expect_rocksdb(options: &Options) -> Result<()> {
    if options.engine == Engine::Rocksdb {
        return Ok(());
    }
    Err(Error::option("engine", "cairn_kv", "rocksdb for an OPTIONS file"))
}

fn ini(options: &Options, keep: impl Fn(&str) -> bool) -> String {
    let mut text = "# What cairn sim has a model of; everything else as it was.\n".to_owned();
    let pairs = pairs(options);
    for (section, title) in [
        (Section::Db, "[DBOptions]"),
        (Section::Family, "[CFOptions \"default\"]"),
        (Section::Table, "[TableOptions/BlockBasedTable \"default\"]"),
    ] {
        let lines: Vec<_> = pairs.iter().filter(|(at, name, _)| *at == section && keep(name)).collect();
        if lines.is_empty() && section != Section::Family {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{title}");
        for (_, name, value) in lines {
            let _ = writeln!(text, "  {name}={value}");
        }
    }
    text
}

/// The options as an `OPTIONS` file. Errors: they are not RocksDB's.
pub fn export_rocksdb(options: &Options) -> Result<String> {
    expect_rocksdb(options)?;
    Ok(ini(options, |_| true))
}

/// Only what differs from `before`, in the same form.
pub fn rocksdb_changes(before: &Options, after: &Options) -> Result<String> {
    expect_rocksdb(after)?;
    let old = pairs(before);
    let new = pairs(after);
    let changed: Vec<&str> =
        old.iter().zip(&new).filter(|(old, new)| old.2 != new.2).map(|(_, new)| new.1).collect();
    Ok(ini(after, |name| changed.contains(&name)))
}

/// The options in the form of RocksDB's `GetOptionsFromString`, which is how the lab opens real stores.
pub fn rocksdb_string(options: &Options) -> Result<String> {
    expect_rocksdb(options)?;
    let mut text = String::new();
    let mut table = String::new();
    // What one version has and another lacks would be refused: left out where it says what is the default anyway.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what goes out comes in. Method: options that differ from the defaults everywhere.
    #[test]
    fn options_survive_the_round_trip() {
        let mut options = Options {
            write_buffer_size: 7 << 20,
            max_write_buffer_number: 5,
            max_bytes_for_level_multiplier: 8.5,
            level_compaction_dynamic_level_bytes: true,
            compaction_pri: CompactionPri::OldestSmallestSeqFirst,
            compression_per_level: vec![Compression::None, Compression::Lz4, Compression::Zstd],
            bottommost_compression: Some(Compression::Zstd),
            bloom_bits_per_key: 12.0,
            block_size: 16384,
            ..Options::default()
        };
        options.compaction_options_universal.size_ratio = 20;
        options.compaction_options_fifo.allow_compaction = true;
        let text = export_rocksdb(&options).unwrap();
        assert_eq!(import_rocksdb(&text, "default", "OPTIONS").unwrap().options, options);
    }

    /// Goal: only changes are told, in the same form. Method: two changes.
    #[test]
    fn changes_are_few() {
        let before = Options::default();
        let after = Options { max_background_jobs: 8, block_size: 16384, ..Options::default() };
        let text = rocksdb_changes(&before, &after).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains('=')).collect();
        assert_eq!(lines, ["  max_background_jobs=8", "  block_size=16384"]);
        assert_eq!(import_rocksdb(&text, "default", "OPTIONS").unwrap().options.max_background_jobs, 8);
    }

    /// Goal: what is wrong is named with its line. Method: one fault each.
    #[test]
    fn faults_are_named() {
        let cases = [
            ("[CFOptions \"default\"]\n  write_bufer_size=1\n", 2, "write_bufer_size"),
            ("[CFOptions \"default\"]\n\n  write_buffer_size=-1\n", 3, "write_buffer_size"),
            ("[CFOptions \"default\"]\n  compaction_style=kLevel\n", 2, "compaction_style"),
            ("write_buffer_size=1\n", 1, "section"),
            ("[CFOptions \"default\n", 1, "]"),
            ("[CFOptions \"other\"]\n  write_buffer_size=1\n", 2, "default"),
            ("[CFOptions \"default\"]\n  max_bytes_for_level_base=99999999999999999999999\n", 2, "max_bytes"),
            ("[CFOptions \"default\"]\n  compaction_options_universal={size_ratio=x;}\n", 2, "size_ratio"),
        ];
        for (text, line, what) in cases {
            let error = import_rocksdb(text, "default", "OPTIONS-000007").unwrap_err().to_string();
            assert!(error.starts_with(&format!("OPTIONS-000007, line {line}: ")), "{error}");
            assert!(error.contains(what), "{error}");
        }
    }

    /// Goal: real files are read whole. Method: those that RocksDB 7.8.3 and 11.8.1 wrote.
    #[test]
    fn real_files_are_read() {
        let old = include_str!("../../data/OPTIONS-7.8.3");
        let new = include_str!("../../data/OPTIONS-11.8.1");
        let old = import_rocksdb(old, "default", "OPTIONS").unwrap();
        let new = import_rocksdb(new, "default", "OPTIONS").unwrap();
        assert_eq!((old.options.rocksdb_version, new.options.rocksdb_version), (7, 11));
        assert_eq!(old.options.write_buffer_size, 64 << 20);
        assert!(!old.options.level_compaction_dynamic_level_bytes);
        assert!(new.options.level_compaction_dynamic_level_bytes);
        assert!(old.ignored.len() > 50);
    }
}
