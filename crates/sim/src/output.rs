//! Builds output files: turns the entries of a flush or a compaction into table files.

use std::borrow::Cow;

use crate::compact::{Job, JobKind, base_level};
use crate::config::Config;
use crate::layout;
use crate::merge::{Cursor, CutRule, Merger, Pieces, Weights, cut};
use crate::options::{CompactionPri, CompactionStyle, Compression, Engine, Options};
use crate::tree::{Entries, Entry, File, Tree, seq_range};

/// In RocksDB's compensated size, a tombstone counts for this many times the value that it hides.
const TOMBSTONE_WEIGHT: f64 = 2.0;

/// The costs and results of a compaction.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// The new files, in key order.
    pub files: Vec<File>,
    /// Bytes of the inputs.
    pub read_bytes: u64,
    /// Bytes of the outputs.
    pub write_bytes: u64,
    /// Real entries read.
    pub entries_in: f64,
    /// Uncompressed bytes of the inputs that are stored compressed, and so must be decompressed.
    pub decompressed_bytes: f64,
    /// Uncompressed bytes that are compressed.
    pub compressed_bytes: f64,
    /// The codec of the outputs.
    pub compression: Compression,
    /// Uncompressed bytes of all input entries.
    pub raw_bytes: f64,
    /// Sampled entries that the merge dropped: shadowed by newer ones, tombstones with nothing left
    /// to hide, or expired.
    pub dropped: u64,
    /// Dropped entries that were the newest of their key among the inputs but had exceeded their
    /// TTL.
    pub expired: Vec<Entry>,
}

/// Builds table files and numbers them.
#[derive(Debug, Clone)]
pub struct Builder {
    next_number: u64,
    /// Real keys for each sampled one.
    sample: f64,
    /// The sequence number of the oldest write that has not expired.
    oldest_kept: u64,
    merger: Merger,
}

impl Builder {
    /// Creates a builder whose first file has number 1.
    pub fn new(sample: u64) -> Builder {
        Builder { next_number: 1, sample: sample as f64, oldest_kept: 0, merger: Merger::default() }
    }

    /// Makes Cairn's merges drop writes with sequence numbers below `seq`, because they have
    /// expired.
    pub fn expire_before(&mut self, seq: u64) {
        self.oldest_kept = seq;
    }

    /// Builds the files of some entries for a level. `is_last` says that nothing older can lie
    /// below. `age` holds the flush times of the oldest and the newest of the entries, in virtual
    /// seconds.
    #[allow(clippy::too_many_arguments)]
    pub fn files(
        &mut self,
        config: &Config,
        tree: &Tree,
        level: usize,
        entries: Vec<Entry>,
        target_bytes: u64,
        is_last: bool,
        age: (f64, f64),
    ) -> (Vec<File>, Compression) {
        let has_tombstones = entries.iter().any(|entry| entry.is_tombstone());
        self.files_of(config, tree, level, entries, target_bytes, is_last, age, has_tombstones, &[])
    }

    /// Builds files like [`Builder::files`], for callers that know whether there are tombstones.
    #[allow(clippy::too_many_arguments)]
    fn files_of(
        &mut self,
        config: &Config,
        tree: &Tree,
        level: usize,
        mut entries: Vec<Entry>,
        target_bytes: u64,
        is_last: bool,
        age: (f64, f64),
        has_tombstones: bool,
        cuts: &[u32],
    ) -> (Vec<File>, Compression) {
        let options = &config.options;
        let has_seqs = level == 0 || options.goes_by_seq();
        if is_last && has_seqs && options.engine == Engine::Rocksdb {
            // RocksDB zeroes the sequence numbers of bottommost entries, since no older entry is
            // left to compare them with.
            entries.iter_mut().for_each(|entry| *entry = entry.without_seq());
        }
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return (Vec::new(), Compression::None);
        };
        // Sampling keeps one key in S. It divides the number of keys and the key range by the same
        // factor, so the gaps between keys stay as they are.
        let gap = f64::from(last.id() - first.id() + 1) / entries.len() as f64;
        let deepest = tree.last_used().max(level);
        let bits = options.filter_bits(level, deepest);
        let bytes = if options.engine == Engine::CairnKv && !is_last {
            let (oldest, newest) = seq_range(&entries);
            let lengths =
                if has_tombstones { layout::varint_bytes(config.workload.value_bytes) } else { 0.0 };
            let numbers = layout::number_bytes((newest - oldest) as f64 * self.sample) + lengths;
            layout::kv_entry_bytes(&config.workload, options, gap, bits, numbers)
        } else {
            layout::entry_bytes(&config.workload, options, gap, bits)
        };
        let base = base_level(tree, options);
        // RocksDB decides by level, not by key range.
        let is_bottom = if options.engine == Engine::Rocksdb { level >= tree.last_used() } else { is_last };
        let compression = options.compression_at(level, base, is_bottom);
        let ratio = config.hardware.codec(compression).ratio;
        let put = bytes.put(ratio) * self.sample;
        let tombstone = if has_tombstones { bytes.tombstone(ratio) * self.sample } else { put };
        let weights = Weights { put, tombstone, file: layout::file_bytes() };
        let rule = cut_rule(config, level, target_bytes, is_last);
        let next = tree.level(level + 1);
        let next = if next.runs.len() == 1 && level > 0 { next.only() } else { &[] };
        let splits = splits(options, tree, level, cuts);
        let cuts = cut(&entries, next, &rule, &splits, &weights);
        let value = config.workload.value_bytes as f64 * self.sample * ratio.min(1.0);
        if entries.len() < entries.capacity() / 8 * 7 {
            // A merge that drops many entries leaves much of the capacity unused.
            entries.shrink_to_fit();
        }
        debug_assert!(!cuts.is_empty(), "found entries but no file for them");
        let parts = Entries::divided(entries, cuts.iter().map(|cut| cut.0));
        let files = parts.zip(&cuts).map(|(part, &(_, bytes))| {
            let tombstones = if has_tombstones { count_tombstones(&part) } else { 0 };
            let seqs = if has_seqs { seq_range(&part) } else { (0, 0) };
            let number = self.next_number;
            self.next_number += 1;
            let excess = (2 * tombstones).saturating_sub(part.len()) as f64;
            let bounds = part.first().zip(part.last()).map_or((0, 0), |(a, b)| (a.id(), b.id()));
            File {
                number,
                smallest: bounds.0,
                largest: bounds.1,
                bytes,
                compensated_bytes: bytes + (excess * value * TOMBSTONE_WEIGHT) as u64,
                tombstones: tombstones as u32,
                created_secs: age.0,
                newest_secs: age.1,
                seqs,
                compacting: false,
                ratio,
                entries: part,
            }
        });
        (files.collect(), compression)
    }

    /// Merges the inputs of a job and builds the output files.
    pub fn merge(&mut self, config: &Config, tree: &Tree, job: &Job) -> Output {
        let mut output = Output::default();
        let mut age = (f64::INFINITY, 0.0f64);
        let mut runs = Vec::with_capacity(job.inputs.len());
        let (mut count, mut tombstones) = (0, 0);
        let deepest = tree.last_used();
        for input in &job.inputs {
            let mut pieces: Pieces<'_> = Vec::with_capacity(input.files.len());
            for file in tree.files_of(input) {
                pieces.push(&file.entries[..]);
                count += file.entries.len();
                tombstones += file.tombstones;
                output.read_bytes += file.bytes;
                age = (age.0.min(file.created_secs), age.1.max(file.newest_secs));
                let raw = self.raw_bytes(config, file, input.level, deepest);
                output.raw_bytes += raw;
                if file.ratio < 1.0 {
                    output.decompressed_bytes += raw;
                }
            }
            runs.push(pieces);
        }
        debug_assert_eq!(
            runs.iter().map(Vec::len).sum::<usize>(),
            job.inputs.iter().map(|input| input.files.len()).sum::<usize>(),
            "a merge reads all of its inputs"
        );
        output.entries_in = count as f64 * self.sample;
        let mut entries = self.merger.union(&runs);
        if self.oldest_kept > 0 {
            let (oldest, expired) = (self.oldest_kept, &mut output.expired);
            entries.retain(|entry| {
                let is_kept = entry.seq() >= oldest;
                if !is_kept {
                    expired.push(*entry);
                }
                is_kept
            });
        }
        let is_bottommost = is_bottommost(tree, job);
        if tombstones > 0 {
            drop_tombstones(config, tree, job, is_bottommost, &mut entries);
        }
        debug_assert!(entries.len() <= count, "found {} entries out of {count}", entries.len());
        let entries_out = entries.len();
        output.dropped = (count - entries.len()) as u64;
        let kept = entries.len() as f64 / count.max(1) as f64;
        let (level, target) = (job.output_level, job.target_bytes);
        let has_tombstones = tombstones > 0 && entries.iter().any(|entry| entry.is_tombstone());
        let (files, compression) = self.files_of(
            config,
            tree,
            level,
            entries,
            target,
            is_bottommost,
            age,
            has_tombstones,
            &job.cuts,
        );
        debug_assert_eq!(
            files.iter().map(|file| file.entries.len()).sum::<usize>(),
            entries_out,
            "the output files have all entries of the merge"
        );
        output.write_bytes = files.iter().map(|file| file.bytes).sum();
        output.compression = compression;
        if compression != Compression::None {
            output.compressed_bytes = output.raw_bytes * kept;
        }
        output.files = files;
        output
    }

    fn raw_bytes(&self, config: &Config, file: &File, level: usize, deepest: usize) -> f64 {
        let gap = f64::from(file.largest - file.smallest + 1) / file.entries.len().max(1) as f64;
        let bits = config.options.filter_bits(level, deepest);
        let bytes = layout::entry_bytes(&config.workload, &config.options, gap, bits);
        let puts = file.entries.len() as f64 - f64::from(file.tombstones);
        (puts * bytes.put(1.0) + f64::from(file.tombstones) * bytes.tombstone(1.0)) * self.sample
    }
}

/// Removes tombstones that hide nothing in deeper levels.
fn drop_tombstones(config: &Config, tree: &Tree, job: &Job, is_bottommost: bool, entries: &mut Vec<Entry>) {
    let options = &config.options;
    if job.output_level == 0 {
        return;
    }
    debug_assert!(job.kind == JobKind::Merge, "only merges drop tombstones");
    if is_bottommost {
        entries.retain(|entry| !entry.is_tombstone());
    } else if options.engine == Engine::Rocksdb && options.compaction_style == CompactionStyle::Leveled {
        let below = tree.levels.iter().skip(job.output_level + 1);
        let mut below: Vec<Cursor<'_>> =
            below.flat_map(|level| &level.runs).map(|run| Cursor::new(&run.files)).collect();
        entries.retain(|entry| {
            !entry.is_tombstone() || below.iter_mut().any(|cursor| cursor.covers(entry.id()))
        });
    }
}

fn count_tombstones(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| entry.is_tombstone()).count()
}

/// Whether no file outside the job holds an older entry in the job's key range.
fn is_bottommost(tree: &Tree, job: &Job) -> bool {
    let oldest = job.inputs.iter().map(|input| (input.level, std::cmp::Reverse(input.run))).max();
    let Some((oldest_level, std::cmp::Reverse(oldest_run))) = oldest else { return false };
    if job.output_level == 0 {
        return false;
    }
    let is_input = |number: u64| job.inputs.iter().any(|input| input.files.contains(&number));
    tree.levels.iter().enumerate().skip(oldest_level).all(|(at, level)| {
        let older = level.runs.iter().filter(|run| at > oldest_level || run.id < oldest_run);
        older
            .flat_map(|run| run.files.get(run.overlapping(job.smallest, job.largest)).unwrap_or(&[]))
            .all(|file| is_input(file.number))
    })
}

/// Returns the keys at which a file must end whatever its size.
fn splits<'j>(options: &Options, tree: &Tree, level: usize, cuts: &'j [u32]) -> Cow<'j, [u32]> {
    match (options.engine, options.compaction_pri) {
        (Engine::CairnKv, _) if level > 0 => Cow::Borrowed(cuts),
        // The next round-robin compaction starts at the cursor, so a file must start there.
        (Engine::Rocksdb, CompactionPri::RoundRobin) => {
            Some(tree.level(level).cursor()).filter(|&id| id > 0).into_iter().collect()
        }
        _ => Cow::Borrowed(&[]),
    }
}

fn cut_rule(config: &Config, level: usize, target_bytes: u64, is_last: bool) -> CutRule {
    let options = &config.options;
    let target = target_bytes as f64;
    if level == 0 {
        return CutRule {
            target_bytes: f64::INFINITY,
            most_bytes: f64::INFINITY,
            compaction_bytes_max: f64::INFINITY,
            at_boundaries: false,
        };
    }
    let is_leveled = options.compaction_style == CompactionStyle::Leveled;
    match options.engine {
        Engine::Rocksdb => {
            let at_boundaries = options.aligns_files();
            CutRule {
                target_bytes: target,
                most_bytes: if at_boundaries && !is_last { 2.0 * target } else { target },
                compaction_bytes_max: if is_leveled {
                    options.compaction_bytes_max() as f64
                } else {
                    f64::INFINITY
                },
                at_boundaries,
            }
        }
        Engine::CairnKv => CutRule {
            target_bytes: target,
            most_bytes: target,
            compaction_bytes_max: f64::INFINITY,
            at_boundaries: false,
        },
    }
}

/// Whether a job writes files, as opposed to moving or deleting them.
pub fn writes(job: &Job) -> bool {
    job.kind == JobKind::Merge
}
