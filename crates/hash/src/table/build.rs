//! Builds a table: takes records in any order, in one pass, under a memory limit.
//!
//! 1. `put` hashes a key and appends the record to its partition, in memory or (over the limit) in
//!    a temporary file.
//! 2. `finish` sorts partitions, several at once, and writes their records in hash order as they
//!    come.
//! 3. Index, partition table, dictionary and checksums follow; the header comes last.
//! 4. The file is synced, renamed to its name, and the directory synced: readers see the old table
//!    or the new one.

use std::fmt::Debug;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use cairn_codec::checksum::xxh3_64_seeded;
use cairn_codec::compress::{CompressionDictionary, Dictionary};
use cairn_vfs::{AtomicFile, ErrorKind, Fs, Rng, StdFs, SystemRng};

use super::assemble::{Assembly, PageWriter};
use super::compression::Sampler;
use super::emit::Shape;
use super::format::{
    BLOB_MIN_BYTES, FIXED_BYTES_END, FLAG_DELTA, FLAG_FIXED, FLAG_TAGGED, Header, PAGE_BYTES,
    PARTITION_BITS_MAX,
};
use super::ingest::{Ingest, WaitingRecord};
use super::options::{BuildOptions, Compression};
use super::record::{Tag, encode_blob};
use crate::{Error, Result, names};

/// Below this many records, a final partition is not worth its entry.
const PARTITION_RECORDS_MIN: u64 = 4096;
/// Above this size, in bytes, records are spread over more partitions while there are any.
const PARTITION_BYTES_MAX: u64 = 4 << 20;
/// zstd trains none that is smaller, and the samples for a larger one would take more than 100 MiB.
const DICTIONARY_BYTES: std::ops::RangeInclusive<u32> = 256..=1 << 20;
/// Share of the memory for records; the rest is for sorting and for output on its way to the disk.
const INGEST_SHARE: f64 = 0.6;

/// What a build is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Sorting partitions and writing records; counted in partitions.
    Sort,
    /// Writing index and checksums and syncing the file.
    Publish,
}

/// Hears how a build gets on. Called from the thread that called `finish`.
pub trait Progress: Debug + Send {
    /// `done` of `total` units of `stage` are done.
    fn advanced(&mut self, stage: Stage, done: u64, total: u64);
}

/// What a build made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildSummary {
    /// Records given, deletions among them.
    pub puts: u64,
    /// Keys in the table.
    pub entries: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the index in it.
    pub index_bytes: u64,
    /// Bytes that went through the temporary file; 0 when memory sufficed.
    pub spilled_bytes: u64,
}

/// Builds one table. Dropped before [`Builder::finish`] it leaves nothing behind, and what was at
/// the path stays.
#[derive(Debug)]
pub struct Builder {
    fs: Arc<dyn Fs>,
    options: BuildOptions,
    file: AtomicFile,
    writer: PageWriter,
    ingest: Ingest,
    header: Header,
    widths: Widths,
    sampler: Option<Sampler>,
    progress: Option<Box<dyn Progress>>,
    /// True for a table that takes the place of a store, list and all.
    replaces_store: bool,
    failed: bool,
}

/// Whether all keys, and all values, have one length so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Widths {
    Nothing,
    Fixed { key: usize, value: usize },
    Varying,
}

impl Builder {
    /// Starts a table at `path` on the real file system.
    ///
    /// Until it is finished it takes two names beside `path`, and what had them before is lost:
    /// `path.tmp` and, for a moment when memory does not suffice, `path.cairn-spill`. Where `path`
    /// is a symbolic link, what it leads to is replaced, and the two stand beside that.
    ///
    /// A table that has deltas is a store: [`crate::generations::StoreBuilder`] replaces one, and
    /// is what to use where others may append meanwhile. Errors: another build of the same path is
    /// under way (`Busy`), there are deltas, or an option is out of range.
    pub fn create(path: impl AsRef<Path>, options: BuildOptions) -> Result<Builder> {
        let mut rng =
            SystemRng::new().map_err(|error| Error::invalid(format!("no random seed available: {error}")))?;
        Builder::create_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path.as_ref(), options, &mut rng)
    }

    /// [`Builder::create`] on any file system, with the randomness for the seed and the id.
    pub fn create_in(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: BuildOptions,
        rng: &mut dyn Rng,
    ) -> Result<Builder> {
        let target = names::followed(&**fs, path)?;
        if !names::deltas(&**fs, &target)?.is_empty() {
            let what =
                format!("{} has deltas, which would not fit a new table; use a StoreBuilder", path.display());
            return Err(Error::invalid(what));
        }
        Ok(Builder { replaces_store: true, ..Builder::start(fs, &target, options, rng)? })
    }

    /// Starts a table, whatever stands beside it. `path` is no link: see [`names::followed`].
    pub(crate) fn start(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: BuildOptions,
        rng: &mut dyn Rng,
    ) -> Result<Builder> {
        if !(0.1..=0.95).contains(&options.fill) {
            return Err(Error::invalid(format!("fill is {}, expected 0.1 to 0.95", options.fill)));
        }
        if options.memory_bytes < BuildOptions::MEMORY_BYTES_MIN {
            let least = BuildOptions::MEMORY_BYTES_MIN;
            let what = format!("memory is {} bytes, expected at least {least}", options.memory_bytes);
            return Err(Error::invalid(what));
        }
        if options.threads == 0 {
            return Err(Error::invalid("threads is 0, expected at least 1"));
        }
        if let Compression::Zstd { dictionary_bytes, .. } = options.compression
            && dictionary_bytes != 0
            && !DICTIONARY_BYTES.contains(&dictionary_bytes)
        {
            let (least, most) = DICTIONARY_BYTES.into_inner();
            let what = format!("dictionary is {dictionary_bytes} bytes, expected 0 or {least} to {most}");
            return Err(Error::invalid(what));
        }
        super::compression::ValueCompressor::new(options.compression, None)?;
        let (seed, id) = (rng.next_u64(), rng.next_u64());
        let header = Header {
            seed: options.seed.unwrap_or(seed),
            // 0 means "no parent", so no table may have it.
            id: options.id.unwrap_or(id).max(1),
            parent: options.parent,
            generation: options.generation,
            ..Header::default()
        };
        let file = AtomicFile::create(fs, path)?;
        let writer = PageWriter::new(file.file().clone());
        let spill_path = names::spill(path);
        names::remove(&**fs, &spill_path)?;
        let ingest = Ingest::new(fs, spill_path, (options.memory_bytes as f64 * INGEST_SHARE) as u64);
        Ok(Builder {
            fs: fs.clone(),
            sampler: Sampler::new(options.compression),
            options,
            file,
            writer,
            ingest,
            header,
            widths: Widths::Nothing,
            progress: None,
            replaces_store: false,
            failed: false,
        })
    }

    /// Lets others do with the table what they may do with the file at `path`. Before the first
    /// record.
    pub(crate) fn take_mode(&self, path: &Path) {
        self.file.file().take_mode(path);
    }

    /// The number of the generation, and the id.
    pub(crate) fn generation(&self) -> (u64, u64) {
        (self.header.generation, self.header.id)
    }

    /// Tells `progress` how `finish` gets on.
    pub fn set_progress(&mut self, progress: Box<dyn Progress>) {
        self.progress = Some(progress);
    }

    /// Adds a record. Of equal keys the last counts. Values of 32 KiB or more go straight to the
    /// file.
    ///
    /// Errors: the disk is full or fails; then the builder is of no further use.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if value.len() as u64 >= BLOB_MIN_BYTES {
            return self.put_stream(key, value.len() as u64, &mut &value[..]);
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.offer(value);
        }
        let width = Widths::Fixed { key: key.len(), value: value.len() };
        if self.widths != width {
            self.widths = if self.widths == Widths::Nothing { width } else { Widths::Varying };
        }
        self.push(key, value, Tag::Raw)
    }

    /// Adds a record whose value of `bytes` bytes comes from `value`; long values never are in
    /// memory as a whole.
    ///
    /// Errors: as [`Builder::put`]; [`Error::Invalid`] when `value` ends early or cannot be read,
    /// and what a [`crate::table::ValueReader`] says of the table it reads.
    pub fn put_stream(&mut self, key: &[u8], bytes: u64, value: &mut dyn Read) -> Result<()> {
        if bytes < BLOB_MIN_BYTES {
            let mut whole = Vec::new();
            let read = value.take(bytes).read_to_end(&mut whole).map_err(unreadable)?;
            return if read as u64 == bytes { self.put(key, &whole) } else { Err(cut_off(bytes)) };
        }
        self.usable()?;
        self.failed = true;
        let offset = self.writer.position();
        let mut left = bytes;
        let mut piece = vec![0; 256 * 1024];
        while left > 0 {
            let wanted = left.min(piece.len() as u64) as usize;
            match value.read(&mut piece[..wanted]) {
                Ok(0) => return Err(cut_off(bytes)),
                Ok(count) => {
                    self.writer.write_all(&piece[..count])?;
                    left -= count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
        self.failed = false;
        self.header.flags |= FLAG_TAGGED;
        self.widths = Widths::Varying;
        self.push(key, &encode_blob(offset, bytes), Tag::Blob)
    }

    /// Deletes `key`: what was put before is dropped, and a delta hides the key of the generations
    /// below.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        if self.options.delta {
            self.header.flags |= FLAG_TAGGED;
            self.widths = Widths::Varying;
        }
        self.header.tombstones += 1;
        self.push(key, &[], Tag::Tombstone)
    }

    #[inline]
    fn push(&mut self, key: &[u8], stored: &[u8], tag: Tag) -> Result<()> {
        self.usable()?;
        let hash = xxh3_64_seeded(key, self.header.seed);
        self.header.puts += 1;
        let pushed = self.ingest.push(WaitingRecord { hash, key, stored, tag });
        self.failed = pushed.is_err();
        pushed
    }

    fn usable(&self) -> Result<()> {
        if self.failed { Err(Error::Poisoned { file: self.file.path().to_owned() }) } else { Ok(()) }
    }

    /// Sorts, writes and publishes the table.
    ///
    /// After an error nothing is published, unless only the last step failed, the sync of the
    /// directory: then readers see the new table, and a power loss may bring the old one back.
    pub fn finish(mut self) -> Result<BuildSummary> {
        self.usable()?;
        let dictionary = self.train()?;
        let deleted = self.header.tombstones > 0;
        let sealed = self.ingest.seal()?;
        let spilled_bytes = sealed.spilled_bytes();
        let mut header = self.header;
        header.partition_bits =
            (sealed.records() / PARTITION_RECORDS_MIN).max(1).ilog2().min(PARTITION_BITS_MAX);
        // From the data alone, not from the memory or the threads: equal input gives equal bytes.
        while header.partition_bits < PARTITION_BITS_MAX
            && sealed.bytes_max(header.partition_bits) > PARTITION_BYTES_MAX
        {
            header.partition_bits += 1;
        }
        if let Widths::Fixed { key, value } = self.widths
            && (1..FIXED_BYTES_END).contains(&((key + value) as u64))
            && self.options.compression == Compression::None
            && header.flags & FLAG_TAGGED == 0
        {
            header.flags |= FLAG_FIXED;
        }
        if self.options.compression != Compression::None {
            header.flags |= FLAG_TAGGED;
            header.compression = self.options.compression.format();
        }
        if self.options.delta {
            header.flags |= FLAG_DELTA;
        }
        header.blob_bytes = self.writer.position() - PAGE_BYTES;
        let shape = Shape {
            partition_bits: header.partition_bits,
            fixed: header.is_fixed(),
            tagged: header.is_tagged(),
            drops_tombstones: deleted && !self.options.delta,
            fill: self.options.fill,
        };
        let assembly = Assembly {
            fs: &self.fs,
            spill_path: names::spill(self.file.path()),
            sealed: &sealed,
            shape,
            options: &self.options,
            dictionary: dictionary.as_ref(),
        };
        let mut progress = self.progress;
        let header = assembly.write(&mut self.writer, header, &mut |stage, done, total| {
            if let Some(progress) = &mut progress {
                progress.advanced(stage, done, total);
            }
        })?;
        self.writer.finish(&header)?;
        if self.replaces_store {
            // ORDER: a base without deltas needs no list, and the new one would contradict the old
            // list.
            let list = names::manifest(self.file.path());
            if self.fs.exists(&list)? {
                names::remove(&*self.fs, &list)?;
                self.fs.sync_parent(&list)?;
            }
        }
        self.file.commit()?;
        if let Some(progress) = &mut progress {
            progress.advanced(Stage::Publish, 1, 1);
        }
        Ok(BuildSummary {
            puts: header.puts,
            entries: header.entries,
            file_bytes: header.file_bytes,
            index_bytes: header.index_bytes(),
            spilled_bytes,
        })
    }

    /// Learns the dictionary from the values sampled, when one was asked for and there is something
    /// to learn.
    fn train(&mut self) -> Result<Option<(Dictionary, CompressionDictionary)>> {
        let Compression::Zstd { level, dictionary_bytes } = self.options.compression else { return Ok(None) };
        let Some(dictionary) = self.sampler.take().and_then(|sampler| sampler.train(dictionary_bytes)) else {
            return Ok(None);
        };
        let prepared =
            dictionary.for_compression(level).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(Some((dictionary, prepared)))
    }
}

/// Removes what a build of `path` left behind when its machine lost power, unless another build is
/// under way.
pub(crate) fn remove_leftovers(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    let (building, spill) = (names::building(path), names::spill(path));
    if !fs.exists(&building)? && !fs.exists(&spill)? {
        return Ok(());
    }
    match AtomicFile::create(fs, path) {
        // Dropped without a commit, it takes the temporary file with it.
        Ok(_lock) => names::remove(&**fs, &spill),
        Err(error) if error.kind() == ErrorKind::Busy => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The error of a value that is streamed. From another table it may say that this one is damaged.
fn unreadable(error: io::Error) -> Error {
    error
        .downcast::<Error>()
        .unwrap_or_else(|error| Error::invalid(format!("the value cannot be read: {error}")))
}

fn cut_off(bytes: u64) -> Error {
    Error::invalid(format!("the value ends before the {bytes} bytes that were announced"))
}
