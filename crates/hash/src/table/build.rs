//! Builds a table from records in any order, in one pass, within a memory limit.
//!
//! 1. `put` hashes a key and appends the record to its partition, in memory or, beyond the limit,
//!    in a spill file.
//! 2. `finish` sorts the partitions, several at once, and writes the records in hash order as each
//!    partition completes.
//! 3. The index, partition table, dictionary and checksums follow; the header comes last.
//! 4. The file is synced and renamed to its final name, and the directory is synced: readers see
//!    the old table or the new one.

use std::fmt::Debug;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use cairn_codec::checksum::xxh3_64_seeded;
use cairn_codec::compress::{CompressionDictionary, Dictionary};
use cairn_vfs::{AtomicFile, ErrorKind, Fs, Rng, StdFs, SystemRng, ensure};

use super::assemble::{Assembly, PageWriter};
use super::compression::Sampler;
use super::format::{
    BLOB_MIN_BYTES, FIXED_BYTES_END, FLAG_DELTA, FLAG_FIXED, FLAG_TAGGED, Header, PAGE_BYTES,
    PARTITION_BITS_MAX,
};
use super::ingest::{BufferedRecord, Ingest};
use super::layout::Shape;
use super::options::{BuildOptions, Compression};
use super::record::{Tag, encode_blob};
use crate::{Error, Result, names};

/// A table has no more partitions than give each at least this many records. Smaller partitions are
/// not worth their entry.
const PARTITION_RECORDS_MIN: u64 = 4096;
/// If a partition exceeds this size in bytes, the records are distributed over more partitions, up
/// to the maximum number.
const PARTITION_BYTES_MAX: u64 = 4 << 20;
/// The accepted dictionary sizes. zstd trains no smaller dictionary, and the samples for a larger
/// one would take more than 100 MiB.
const DICTIONARY_BYTES: std::ops::RangeInclusive<u32> = 256..=1 << 20;
/// Share of the memory for records. The rest is for sorting and for output that waits to be
/// written.
const INGEST_SHARE: f64 = 0.6;
const _: () = assert!(INGEST_SHARE < 1.0, "some memory is left for sorting");

/// A stage of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Sorting partitions and writing records; counted in partitions.
    Sort,
    /// Writing index and checksums and syncing the file.
    Publish,
}

/// Receives the progress of a build. Called from the thread that called `finish`.
pub trait Progress: Debug + Send {
    /// Reports that `done` of `total` units of `stage` are complete.
    fn advanced(&mut self, stage: Stage, done: u64, total: u64);
}

/// The result of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildSummary {
    /// Number of records given, deletions included.
    pub puts: u64,
    /// Number of keys in the table.
    pub entries: u64,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Size of the index in bytes.
    pub index_bytes: u64,
    /// Bytes that were spilled; 0 if the memory sufficed.
    pub spilled_bytes: u64,
}

/// Builds one table. A builder that is dropped before [`Builder::finish`] leaves no files behind,
/// and an existing file at the path stays.
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
    /// True for a table that replaces a store, its manifest included.
    replaces_store: bool,
    failed: bool,
}

/// Whether all keys so far have the same length, and all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Widths {
    Nothing,
    Fixed { key: usize, value: usize },
    Varying,
}

impl Builder {
    /// Starts a table at `path` on the real file system.
    ///
    /// Until it is finished, the build uses two names beside `path`, and removes existing files of
    /// these names: `path.tmp`, and briefly, if memory does not suffice, `path.cairn-spill`. If
    /// `path` is a symbolic link, the build replaces the target of the link, and the two files lie
    /// beside the target.
    ///
    /// A table that has deltas is a store. Use [`crate::generations::StoreBuilder`] to replace a
    /// store, or if other processes may append meanwhile. Errors: another build of the same path is
    /// in progress (`Busy`); the table has deltas; an option is out of range.
    pub fn create(path: impl AsRef<Path>, options: BuildOptions) -> Result<Builder> {
        let mut rng =
            SystemRng::new().map_err(|error| Error::invalid(format!("no random seed available: {error}")))?;
        Builder::create_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path.as_ref(), options, &mut rng)
    }

    /// Does the same as [`Builder::create`] on any file system. `rng` supplies the seed and the id.
    pub fn create_in(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: BuildOptions,
        rng: &mut dyn Rng,
    ) -> Result<Builder> {
        let target = names::resolve_links(&**fs, path)?;
        if !names::deltas(&**fs, &target)?.is_empty() {
            let detail =
                format!("{} has deltas, which a new table would orphan; use a StoreBuilder", path.display());
            return Err(Error::invalid(detail));
        }
        Ok(Builder { replaces_store: true, ..Builder::start(fs, &target, options, rng)? })
    }

    /// Starts a table without checking for deltas. `path` must not be a symbolic link: see
    /// [`names::resolve_links`].
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
            let detail = format!("memory is {} bytes, expected at least {least}", options.memory_bytes);
            return Err(Error::invalid(detail));
        }
        if options.threads == 0 {
            return Err(Error::invalid("threads is 0, expected at least 1"));
        }
        if let Compression::Zstd { dictionary_bytes, .. } = options.compression
            && dictionary_bytes != 0
            && !DICTIONARY_BYTES.contains(&dictionary_bytes)
        {
            let (least, most) = DICTIONARY_BYTES.into_inner();
            let detail = format!("dictionary is {dictionary_bytes} bytes, expected 0 or {least} to {most}");
            return Err(Error::invalid(detail));
        }
        super::compression::ValueCompressor::new(options.compression, None)?;
        let (seed, id) = (rng.next_u64(), rng.next_u64());
        let header = Header {
            seed: options.seed.unwrap_or(seed),
            // 0 means "no parent", so no table may have this id.
            id: options.id.unwrap_or(id).max(1),
            parent: options.parent,
            generation: options.generation,
            ..Header::default()
        };
        debug_assert_eq!(options.delta, options.parent != 0, "a delta has a parent, a base has none");
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

    /// Gives the table the access rights of the file at `path`. To be called before the first
    /// record.
    pub(crate) fn take_mode(&self, path: &Path) {
        debug_assert_eq!(self.header.puts, 0, "no record has the rights of the new file");
        self.file.file().take_mode(path);
    }

    /// Returns the number of the generation and its id.
    pub(crate) fn generation(&self) -> (u64, u64) {
        (self.header.generation, self.header.id)
    }

    /// Sets the receiver of the progress of `finish`.
    pub fn set_progress(&mut self, progress: Box<dyn Progress>) {
        self.progress = Some(progress);
    }

    /// Adds a record. If a key is added several times, the last record counts. Values of 32 KiB or
    /// more go straight to the file.
    ///
    /// Errors: the file system fails or the disk is full; the builder cannot be used after that.
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
        debug_assert!([width, Widths::Varying].contains(&self.widths), "{width:?} in {:?}", self.widths);
        self.push(key, value, Tag::Raw)
    }

    /// Adds a record whose value of `bytes` bytes is read from `value`. A long value is never in
    /// memory as a whole.
    ///
    /// Errors: those of [`Builder::put`]; [`Error::Invalid`] if `value` ends early or cannot be
    /// read; the errors of the table that a [`crate::table::ValueReader`] reads.
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
        let end = self.writer.position();
        ensure!(end == offset + bytes, "a blob of {bytes} bytes takes {offset}..{end}");
        self.failed = false;
        self.header.flags |= FLAG_TAGGED;
        self.widths = Widths::Varying;
        self.push(key, &encode_blob(offset, bytes), Tag::Blob)
    }

    /// Deletes `key`. Its earlier records are dropped, and a delta hides the key of the generations
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
        debug_assert!(tag != Tag::Blob || self.header.is_tagged(), "a blob has a tag");
        let hash = xxh3_64_seeded(key, self.header.seed);
        self.header.puts += 1;
        let pushed = self.ingest.push(BufferedRecord { hash, key, stored, tag });
        self.failed = pushed.is_err();
        pushed
    }

    fn usable(&self) -> Result<()> {
        if self.failed { Err(Error::Poisoned { file: self.file.path().to_owned() }) } else { Ok(()) }
    }

    /// Sorts, writes and publishes the table.
    ///
    /// After an error nothing is published, unless only the last step failed, the sync of the
    /// directory. In that case readers see the new table, and a power loss may bring the old one
    /// back.
    pub fn finish(mut self) -> Result<BuildSummary> {
        self.usable()?;
        let dictionary = self.train()?;
        let deleted = self.header.tombstones > 0;
        let sealed = self.ingest.seal()?;
        let spilled_bytes = sealed.spilled_bytes();
        let mut header = self.header;
        let records = sealed.records();
        ensure!(records == header.puts, "{records} records to sort, {} were added", header.puts);
        header.partition_bits =
            (sealed.records() / PARTITION_RECORDS_MIN).max(1).ilog2().min(PARTITION_BITS_MAX);
        // Depends on the data alone, not on memory or threads, so that equal input gives equal
        // bytes.
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
        ensure!(header.is_delta() == self.options.delta, "flags {:#x}", header.flags);
        ensure!(header.is_delta() || header.tombstones == 0, "{} tombstones in a base", header.tombstones);
        self.writer.finish(&header)?;
        if self.replaces_store {
            // ORDER: the old manifest would contradict the new base, which has no deltas and needs
            // no manifest. It is therefore removed before the base is published.
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

    /// Trains the dictionary on the sampled values. Returns `None` if no dictionary was asked for
    /// or there is nothing to learn.
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

/// Removes the temporary files of an interrupted build of `path`, unless another build is in
/// progress.
pub(crate) fn remove_leftovers(fs: &Arc<dyn Fs>, path: &Path) -> Result<()> {
    let (building, spill) = (names::building(path), names::spill(path));
    if !fs.exists(&building)? && !fs.exists(&spill)? {
        return Ok(());
    }
    match AtomicFile::create(fs, path) {
        // Dropped without a commit, the `AtomicFile` removes its temporary file.
        Ok(_lock) => names::remove(&**fs, &spill),
        Err(error) if error.kind() == ErrorKind::Busy => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Converts a read error of a streamed value. If the value comes from a table, the error may report
/// damage in that table.
fn unreadable(error: io::Error) -> Error {
    error
        .downcast::<Error>()
        .unwrap_or_else(|error| Error::invalid(format!("the value cannot be read: {error}")))
}

fn cut_off(bytes: u64) -> Error {
    Error::invalid(format!("the value has fewer than the announced {bytes} bytes"))
}
