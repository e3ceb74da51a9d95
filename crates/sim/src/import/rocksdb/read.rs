//! Reading `OPTIONS` files.

use super::{CODECS, PRIORITIES, STYLES, Section};
use crate::error::{Error, Result};
use crate::import::Imported;
use crate::options::{CompactionStyle, Compression, Options};

/// The options that RocksDB 7.8 and 11.8 write for a store whose options nobody has set. A setting
/// with the same value is not reported.
const PLAIN: [&str; 2] =
    [include_str!("../../../data/OPTIONS-7.8.3"), include_str!("../../../data/OPTIONS-11.8.1")];

/// The bits for each key of a filter that a file names without its size, as RocksDB before 7 does.
/// It is the value in RocksDB's own examples.
const USUAL_BITS: f64 = 10.0;
/// The largest size and the largest count. Files hold the largest possible numbers for limits that
/// should never be reached.
const BYTES_MAX: i128 = 1 << 50;
const COUNT_MAX: i128 = 1_000_000;
/// Maximum number of characters of a value that a note repeats.
const VALUE_CHARS: usize = 40;

/// Returns the major version from a value of `rocksdb_version`.
fn major_version(value: &str) -> Option<u32> {
    value.split('.').next()?.parse().ok()
}

/// Reads an `OPTIONS` file of RocksDB 5 or later. `family` is the column family, which is read with
/// its table options. `file` is for messages.
///
/// Unknown names and sections, and values that are not modelled, are accepted with a note. So are
/// values that contradict each other: they become the values that RocksDB uses when it opens a
/// store. Errors: [`Error::Parse`] with line and name, for text that is not such a file, for
/// impossible values of modelled settings, and for a missing column family.
pub fn import_rocksdb(text: &str, family: &str, file: &str) -> Result<Imported> {
    // The file is complete, and settings that it omits have the engine's defaults.
    let mut reader = Reader {
        options: Options { compression: Compression::Snappy, bloom_bits_per_key: 0.0, ..Options::default() },
        ignored: Vec::new(),
        set_apart: Vec::new(),
        notes: Vec::new(),
        old_jobs: [None; 2],
        file,
        line: 0,
    };
    let mut section = None;
    let mut families = Vec::new();
    for (at, line) in text.lines().enumerate() {
        reader.line = at + 1;
        let line = without_comment(line).trim();
        if line.is_empty() {
            continue;
        }
        if let Some(title) = line.strip_prefix('[') {
            let title =
                title.strip_suffix(']').ok_or_else(|| reader.wrong("a section without a closing ]"))?;
            let (found, name) = section_of(title, family);
            section = Some(found);
            if matches!(found, Section::Family | Section::Other) && title.starts_with("CFOptions") {
                families.push(name);
            }
            continue;
        }
        let (name, value) = line.split_once('=').ok_or_else(|| reader.wrong("expected name=value"))?;
        let section = section.ok_or_else(|| reader.wrong("a setting before the first section"))?;
        reader.set(section, name.trim(), value.trim())?;
    }
    if !families.iter().any(|name| name == family) {
        let there = match families.is_empty() {
            true => String::new(),
            false => format!("; the file has {}", families.join(", ")),
        };
        return Err(Error::parse(file, reader.line.max(1), format!("no [CFOptions \"{family}\"]{there}")));
    }
    reader.settle();
    let Reader { options, ignored, set_apart, mut notes, .. } = reader;
    notes.extend(told(&ignored, &set_apart));
    notes.push("the file does not contain the block cache size: using the default of 8 MiB".to_owned());
    notes.push("the file does not contain write options: using a log without sync".to_owned());
    options.check()?;
    Ok(Imported { options, ignored, notes })
}

/// Returns the note about settings that are not modelled, with the names of those that a user has
/// set.
fn told(ignored: &[String], set_apart: &[String]) -> Option<String> {
    let rest = ignored.len() - set_apart.len();
    let rest = match (set_apart.is_empty(), rest) {
        (_, 0) => String::new(),
        (true, count) => format!("{count} at RocksDB's defaults"),
        (false, count) => format!("; and {count} at RocksDB's defaults"),
    };
    let what = "settings of the file that the simulator does not model and leaves out";
    (!ignored.is_empty()).then(|| format!("{what}: {}{rest}", set_apart.join(", ")))
}

/// Cuts off a comment, which starts at a `#` that is not escaped.
fn without_comment(line: &str) -> &str {
    let is_start = |(at, _): &(usize, &str)| *at == 0 || line.as_bytes().get(at - 1) != Some(&b'\\');
    line.match_indices('#').find(is_start).map_or(line, |(at, _)| line.get(..at).unwrap_or(line))
}

/// Returns the kind of a section, and the column family that it names.
fn section_of(title: &str, family: &str) -> (Section, String) {
    let (kind, name) = title.split_once(' ').unwrap_or((title, ""));
    let name = name.trim().trim_matches('"');
    let is_ours = name == family;
    let section = match kind {
        "Version" => Section::Version,
        "DBOptions" => Section::Db,
        "CFOptions" if is_ours => Section::Family,
        _ if kind.starts_with("TableOptions/BlockBasedTable") && is_ours => Section::Table,
        _ => Section::Other,
    };
    (section, name.to_owned())
}

struct Reader<'a> {
    options: Options,
    /// Names of settings that are not modelled, and those of them that a user has set, with their
    /// values.
    ignored: Vec<String>,
    set_apart: Vec<String>,
    notes: Vec<String>,
    /// `max_background_flushes` and `max_background_compactions`, if set.
    old_jobs: [Option<usize>; 2],
    file: &'a str,
    line: usize,
}

impl Reader<'_> {
    fn wrong(&self, what: impl Into<String>) -> Error {
        Error::parse(self.file, self.line, what)
    }

    fn number<T: std::str::FromStr>(&self, name: &str, value: &str) -> Result<T> {
        // RocksDB writes sizes in bytes, and also accepts a letter for the unit.
        let (digits, factor) = match value.as_bytes().last() {
            Some(b'k' | b'K') => (value.get(..value.len() - 1), 1u64 << 10),
            Some(b'm' | b'M') => (value.get(..value.len() - 1), 1 << 20),
            Some(b'g' | b'G') => (value.get(..value.len() - 1), 1 << 30),
            Some(b't' | b'T') => (value.get(..value.len() - 1), 1 << 40),
            _ => (Some(value), 1),
        };
        let wrong = || self.wrong(format!("{name}={value}: not a valid number for this setting"));
        if factor == 1 {
            return value.parse().map_err(|_| wrong());
        }
        let base: u64 = digits.and_then(|digits| digits.parse().ok()).ok_or_else(wrong)?;
        base.checked_mul(factor).and_then(|all| all.to_string().parse().ok()).ok_or_else(wrong)
    }

    /// Parses a number, and clamps it to `least..=most` with a note. A negative size is an error. A
    /// negative count stands for `below`.
    fn within(
        &mut self,
        name: &str,
        value: &str,
        least: i128,
        most: i128,
        below: Option<i128>,
    ) -> Result<u64> {
        let given: i128 = self.number(name, value)?;
        if given > u64::MAX.into() || (given < 0 && below.is_none()) {
            return Err(self.wrong(format!("{name}={value}: not a valid number for this setting")));
        }
        let meant = if given < 0 { below.unwrap_or(least) } else { given };
        let taken = meant.clamp(least, most);
        if taken != given {
            self.notes.push(format!("{name}={value} is read as {taken}"));
        }
        Ok(u64::try_from(taken).unwrap_or_default())
    }

    fn size(&mut self, name: &str, value: &str, least: i128) -> Result<u64> {
        self.within(name, value, least, BYTES_MAX, None)
    }

    fn count(&mut self, name: &str, value: &str, least: i128, most: i128, below: i128) -> Result<usize> {
        Ok(self.within(name, value, least, most, Some(below))? as usize)
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

    /// Records a setting that is not modelled, of this version of RocksDB or of another one.
    /// `outer` is the setting that contains it.
    fn ignore(&mut self, outer: &str, name: &str, value: &str) {
        let is_plain = |file: &&str| match outer {
            "" => {
                file.lines().filter_map(|line| line.trim().split_once('=')).any(|line| line == (name, value))
            }
            _ => file.contains(&format!("{name}={value};")),
        };
        let full = if outer.is_empty() { name.to_owned() } else { format!("{outer}.{name}") };
        if !PLAIN.iter().any(is_plain) {
            let short: String = value.chars().take(VALUE_CHARS).collect();
            let more = if short.len() < value.len() { "..." } else { "" };
            self.set_apart.push(format!("{full}={short}{more}"));
        }
        self.ignored.push(full);
    }

    fn set_db(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "max_background_jobs" => {
                self.options.max_background_jobs = self.count(name, value, 1, 1024, 1)?
            }
            // Limits for each kind of work: the way before 5.5, which is still accepted.
            "max_background_flushes" | "max_background_compactions" if value != "-1" => {
                let count = self.count(name, value, 1, 512, 1)?;
                self.old_jobs[usize::from(name == "max_background_compactions")] = Some(count);
            }
            "max_background_flushes" | "max_background_compactions" => {}
            "max_subcompactions" => self.options.max_subcompactions = self.count(name, value, 1, 1024, 1)?,
            "delayed_write_rate" => self.options.delayed_write_rate = self.size(name, value, 0)?,
            "rate_limiter" if value == "nullptr" || value.is_empty() => {}
            _ => self.ignore("", name, value),
        }
        Ok(())
    }

    fn set_family(&mut self, name: &str, value: &str) -> Result<()> {
        const NEVER: i128 = COUNT_MAX;
        match name {
            "write_buffer_size" => self.options.write_buffer_size = self.size(name, value, 64 << 10)?,
            "max_write_buffer_number" => {
                self.options.max_write_buffer_number = self.count(name, value, 2, 1000, 2)?;
            }
            "min_write_buffer_number_to_merge" => {
                self.options.min_write_buffer_number_to_merge = self.count(name, value, 1, 999, 1)?;
            }
            "level0_file_num_compaction_trigger" => {
                self.options.level0_file_num_compaction_trigger = self.count(name, value, 1, NEVER, NEVER)?;
            }
            "level0_slowdown_writes_trigger" => {
                self.options.level0_slowdown_writes_trigger = self.count(name, value, 1, NEVER, NEVER)?;
            }
            "level0_stop_writes_trigger" => {
                self.options.level0_stop_writes_trigger = self.count(name, value, 1, NEVER, NEVER)?;
            }
            "num_levels" => self.options.num_levels = self.count(name, value, 1, 32, 1)?,
            "max_bytes_for_level_base" => {
                self.options.max_bytes_for_level_base = self.size(name, value, 4096)?
            }
            "max_bytes_for_level_multiplier" => {
                let given: f64 = self.number(name, value)?;
                // RocksDB also uses 1 for multipliers with which levels would shrink.
                let taken = if given.is_finite() { given.clamp(1.0, 1000.0) } else { 10.0 };
                if taken != given {
                    self.notes.push(format!("{name}={value} is read as {taken}"));
                }
                self.options.max_bytes_for_level_multiplier = taken;
            }
            "target_file_size_base" => self.options.target_file_size_base = self.size(name, value, 4096)?,
            "target_file_size_multiplier" => {
                self.options.target_file_size_multiplier = self.within(name, value, 1, 100, Some(1))?;
            }
            "max_compaction_bytes" => self.options.max_compaction_bytes = self.size(name, value, 0)?,
            "soft_pending_compaction_bytes_limit" => {
                self.options.soft_pending_compaction_bytes_limit = self.limit(name, value)?;
            }
            "hard_pending_compaction_bytes_limit" => {
                self.options.hard_pending_compaction_bytes_limit = self.limit(name, value)?;
            }
            _ => return self.set_family_rest(name, value),
        }
        Ok(())
    }

    /// Parses a limit. One that is too large to be reached means no limit.
    fn limit(&self, name: &str, value: &str) -> Result<u64> {
        let given: u64 = self.number(name, value)?;
        Ok(if i128::from(given) > BYTES_MAX { 0 } else { given })
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
            // This sentinel stands for RocksDB's own default.
            "ttl" | "periodic_compaction_seconds" if value.parse() == Ok(u64::MAX - 1) => {}
            "ttl" => self.options.ttl = self.within(name, value, 0, 1 << 32, None)?,
            "compaction_style" => self.set_style(value),
            "compaction_pri" => match PRIORITIES.iter().find(|(name, _)| *name == value) {
                Some((_, pri)) => self.options.compaction_pri = *pri,
                None => self.take_default(name, value, "kMinOverlappingRatio"),
            },
            "compression" => self.options.compression = self.codec(name, value),
            "bottommost_compression" if value == "kDisableCompressionOption" => {}
            "bottommost_compression" => {
                self.options.bottommost_compression = Some(self.codec(name, value));
            }
            "compression_per_level" => {
                let values = value.split(':').filter(|value| !value.is_empty()).take(32);
                self.options.compression_per_level = values.map(|value| self.codec(name, value)).collect();
            }
            "compaction_options_universal" => return self.each(name, value, Reader::set_universal),
            "compaction_options_fifo" => return self.each(name, value, Reader::set_fifo),
            _ => self.ignore("", name, value),
        }
        Ok(())
    }

    fn take_default(&mut self, name: &str, value: &str, default: &str) {
        self.notes.push(format!("{name}={value} is not modelled; using {default}"));
    }

    fn set_style(&mut self, value: &str) {
        match STYLES.iter().find(|(name, _)| *name == value) {
            Some((_, style)) => self.options.compaction_style = *style,
            None if value == "kCompactionStyleNone" => {
                self.options.disable_auto_compactions = true;
                self.take_default(
                    "compaction_style",
                    value,
                    "kCompactionStyleLevel without automatic compactions",
                );
            }
            None => self.take_default("compaction_style", value, "kCompactionStyleLevel"),
        }
    }

    /// Parses `{a=1;b=2;}`. Some versions write such a setting in another way, which is ignored.
    fn each(&mut self, name: &str, value: &str, set: fn(&mut Self, &str, &str) -> Result<()>) -> Result<()> {
        let Some(inside) = value.strip_prefix('{').and_then(|value| value.strip_suffix('}')) else {
            self.ignore("", name, value);
            return Ok(());
        };
        for (inner, value) in settings(inside) {
            set(self, inner, value)?;
        }
        Ok(())
    }

    fn set_universal(&mut self, name: &str, value: &str) -> Result<()> {
        const OUTER: &str = "compaction_options_universal";
        let most = i128::from(u32::MAX);
        match name {
            "size_ratio" => {
                let ratio = self.within(name, value, 0, 100_000, None)?;
                self.options.compaction_options_universal.size_ratio = ratio;
            }
            "min_merge_width" => {
                let width = self.within(name, value, 2, most, None)? as usize;
                self.options.compaction_options_universal.min_merge_width = width;
            }
            "max_merge_width" => {
                let width = self.within(name, value, 2, most, None)? as usize;
                self.options.compaction_options_universal.max_merge_width = width;
            }
            "max_size_amplification_percent" => {
                let percent = self.within(name, value, 0, most, None)?;
                self.options.compaction_options_universal.max_size_amplification_percent = percent;
            }
            _ => self.ignore(OUTER, name, value),
        }
        Ok(())
    }

    fn set_fifo(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "max_table_files_size" => {
                let bytes = self.number::<u64>(name, value)?;
                let bytes = bytes.min(BYTES_MAX as u64);
                self.options.compaction_options_fifo.max_table_files_size = bytes;
            }
            "allow_compaction" => {
                self.options.compaction_options_fifo.allow_compaction = self.truth(name, value)?;
            }
            _ => self.ignore("compaction_options_fifo", name, value),
        }
        Ok(())
    }

    fn set_table(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "block_size" => self.options.block_size = self.within(name, value, 256, 16 << 20, None)?,
            "cache_index_and_filter_blocks" => {
                self.options.cache_index_and_filter_blocks = self.truth(name, value)?;
            }
            "filter_policy" => self.set_filter(value)?,
            "block_cache" => {
                // `nullptr`, a number, or `{capacity=...;...}`.
                let inside = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
                let capacity =
                    inside.and_then(|inside| settings(inside).find(|(name, _)| *name == "capacity"));
                let capacity = capacity.map_or(value, |(_, capacity)| capacity);
                if let Ok(bytes) = self.number::<u64>(name, capacity) {
                    self.options.block_cache_size = bytes.min(BYTES_MAX as u64);
                }
            }
            _ => self.ignore("", name, value),
        }
        Ok(())
    }

    /// Parses a filter policy: `nullptr`, `bloomfilter:BITS:false`, `ribbonfilter:BITS:LEVEL`,
    /// `{id=one of these;...}`, `rocksdb.BuiltinBloomFilter`, or a user's own name.
    fn set_filter(&mut self, value: &str) -> Result<()> {
        let inside = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
        let id = inside.and_then(|inside| settings(inside).find(|(name, _)| *name == "id"));
        let policy = match (inside, id) {
            (Some(_), Some((_, id))) => id,
            (Some(inside), None) => inside,
            (None, _) => value,
        };
        if matches!(policy, "" | "nullptr" | "null") {
            self.options.bloom_bits_per_key = 0.0;
            return Ok(());
        }
        let given = policy.split(':').nth(1).map(|bits| self.number::<f64>("filter_policy", bits));
        let bits = given.transpose()?.filter(|bits| bits.is_finite());
        self.options.bloom_bits_per_key = match bits {
            // RocksDB has no filter below half a bit.
            Some(bits) if bits < 0.5 => 0.0,
            Some(bits) => bits.min(64.0),
            None => {
                self.notes.push(format!(
                    "filter_policy={policy} does not state its size; using {USUAL_BITS} bits a key"
                ));
                USUAL_BITS
            }
        };
        Ok(())
    }

    /// Returns a codec, or the nearest one that is modelled, with a note.
    fn codec(&mut self, name: &str, value: &str) -> Compression {
        if let Some((_, codec)) = CODECS.iter().find(|(name, _)| *name == value) {
            return *codec;
        }
        let (nearest, word) = match value {
            "kZlibCompression" | "kBZip2Compression" | "kZSTDNotFinalCompression" => {
                (Compression::Zstd, "kZSTD")
            }
            "kDisableCompressionOption" => (Compression::None, "kNoCompression"),
            "kXpressCompression" => (Compression::Lz4, "kLZ4Compression"),
            // Codecs of users.
            _ => (Compression::Zstd, "kZSTD"),
        };
        let note = format!("{name}={value} is not modelled; using {word}");
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
        nearest
    }

    /// Resolves contradictory settings as RocksDB does, with a note for each.
    fn settle(&mut self) {
        if let [flushes, compactions] = self.old_jobs
            && (flushes.is_some() || compactions.is_some())
        {
            self.options.max_background_jobs = flushes.unwrap_or(1) + compactions.unwrap_or(1);
        }
        let Reader { options, notes, .. } = self;
        let mut settle = |name: &str, given: u64, taken: u64, why: &str| {
            notes.push(format!("{name}={given} contradicts {why}; using {taken}, as RocksDB does"));
        };
        let most = options.max_write_buffer_number - 1;
        if options.min_write_buffer_number_to_merge > most {
            let given = std::mem::replace(&mut options.min_write_buffer_number_to_merge, most);
            settle("min_write_buffer_number_to_merge", given as u64, most as u64, "max_write_buffer_number");
        }
        let trigger = options.level0_file_num_compaction_trigger;
        if options.level0_slowdown_writes_trigger < trigger {
            let given = std::mem::replace(&mut options.level0_slowdown_writes_trigger, trigger);
            let why = "level0_file_num_compaction_trigger";
            settle("level0_slowdown_writes_trigger", given as u64, trigger as u64, why);
        }
        let slowdown = options.level0_slowdown_writes_trigger;
        if options.level0_stop_writes_trigger < slowdown {
            let given = std::mem::replace(&mut options.level0_stop_writes_trigger, slowdown);
            let why = "level0_slowdown_writes_trigger";
            settle("level0_stop_writes_trigger", given as u64, slowdown as u64, why);
        }
        let hard = options.hard_pending_compaction_bytes_limit;
        if hard > 0 && options.soft_pending_compaction_bytes_limit > hard {
            let given = std::mem::replace(&mut options.soft_pending_compaction_bytes_limit, hard);
            let why = "hard_pending_compaction_bytes_limit";
            settle("soft_pending_compaction_bytes_limit", given, hard, why);
        }
        let universal = &mut options.compaction_options_universal;
        if universal.max_merge_width < universal.min_merge_width {
            let (given, least) = (universal.max_merge_width as u64, universal.min_merge_width);
            universal.max_merge_width = least;
            settle("compaction_options_universal.max_merge_width", given, least as u64, "min_merge_width");
        }
        let levels = if options.compaction_style == CompactionStyle::Fifo { 1 } else { 2 };
        if options.num_levels < levels {
            options.num_levels = levels;
            settle("num_levels", 1, levels as u64, "compaction_style");
        }
        let fifo = &mut options.compaction_options_fifo;
        if fifo.max_table_files_size == 0 {
            // Only FIFO uses this setting, for which 0 means to keep no file.
            let is_used = options.compaction_style == CompactionStyle::Fifo;
            fifo.max_table_files_size =
                if is_used { 1 } else { Options::default().compaction_options_fifo.max_table_files_size };
        }
    }
}

/// Splits `a=1;b={c=2;d=3};` into its settings. Those within braces stay part of the outer value.
fn settings(inside: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut depth = 0_i32;
    let parts = inside.split(move |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ';' && depth == 0
    });
    parts.filter_map(|part| part.trim().split_once('=')).map(|(name, value)| (name.trim(), value.trim()))
}
