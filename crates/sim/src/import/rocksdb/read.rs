//! Reading `OPTIONS` files.

use super::{CODECS, PRIORITIES, STYLES, Section};
use crate::error::{Error, Result};
use crate::import::Imported;
use crate::options::{CompactionPri, CompactionStyle, Compression, Options};

/// All names that `OPTIONS` files of RocksDB 7.8 to 11.8 have. Others are misspelt.
const KNOWN: &str = include_str!("../../../data/rocksdb-options.txt");

/// Values of `rocksdb_version` in the section of the same name.
fn major_version(value: &str) -> Option<u32> {
    value.split('.').next()?.parse().ok()
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
