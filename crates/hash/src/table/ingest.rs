//! Collects the records of a build: partitions them by the top bits of their hash, in memory up to
//! a limit, and beyond it in a spill file.
//!
//! ```text
//! waiting record:  hash u64 | key length u32 | stored length u32 | tag u8 | key | stored value
//! ```
//! The name of the spill file is removed as soon as the file is open, so the file never outlives
//! the process. When memory is full, the records of all partitions are written to it, partition by
//! partition; a partition is then read back in a few long reads. Each of these extents has a
//! checksum, which is kept in memory. Without it, damage to the spill file would become the content
//! of a table whose pages all have valid checksums.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::{AppendWriter, Bug, File, Fs, OpenOptions, ensure};

use super::format::{PARTITION_BITS_MAX, word32, word64};
use super::options::BuildOptions;
use super::place::partition_of;
use super::record::Tag;
use super::running_sum::{RunningSum, sum_of};
use crate::{Error, Result, names};

const HEAD_BYTES: usize = 17;
const PARTITIONS: usize = 1 << PARTITION_BITS_MAX;
const CHUNK_BYTES_MIN: usize = 4096;
const CHUNK_BYTES_MAX: usize = 64 * 1024;
const SPILL_BUFFER_BYTES: usize = 1 << 20;

const _: () = assert!(HEAD_BYTES == size_of::<u64>() + 2 * size_of::<u32>() + 1, "hash, lengths and tag");
const _: () = assert!(CHUNK_BYTES_MIN * PARTITIONS <= BuildOptions::MEMORY_BYTES_MIN as usize / 4);

/// A part of a partition in the spill file.
#[derive(Debug, Clone, Copy)]
struct Extent {
    offset: u64,
    bytes: u64,
    sum: u64,
}

/// The records of one partition in insertion order: extents first, then chunks.
#[derive(Debug, Default)]
struct BufferedPartition {
    extents: Vec<Extent>,
    chunks: Vec<Vec<u8>>,
    records: u64,
    bytes: u64,
}

/// All records that wait to be sorted.
#[derive(Debug)]
pub(crate) struct Ingest {
    waiting: Vec<BufferedPartition>,
    chunk_bytes: usize,
    memory_bytes: u64,
    memory_bytes_max: u64,
    spill: Option<AppendWriter>,
    fs: Arc<dyn Fs>,
    spill_path: PathBuf,
}

/// One waiting record, borrowed from its source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BufferedRecord<'a> {
    pub hash: u64,
    pub key: &'a [u8],
    pub stored: &'a [u8],
    pub tag: Tag,
}

impl Ingest {
    /// Creates a collection that keeps up to `memory_bytes_max` in memory. `spill_path` is the name
    /// of the spill file, should one be needed.
    pub fn new(fs: &Arc<dyn Fs>, spill_path: PathBuf, memory_bytes_max: u64) -> Ingest {
        // Each partition has a partly filled chunk. Together these must stay well below the limit.
        let chunk_bytes =
            (memory_bytes_max as usize / PARTITIONS / 4).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let mut waiting = Vec::new();
        waiting.resize_with(PARTITIONS, BufferedPartition::default);
        Ingest {
            waiting,
            chunk_bytes,
            memory_bytes: 0,
            memory_bytes_max,
            spill: None,
            fs: fs.clone(),
            spill_path,
        }
    }

    /// Adds one record. Errors: the spill file cannot be written; a key or value has 4 GiB or more.
    #[inline]
    pub fn push(&mut self, record: BufferedRecord<'_>) -> Result<()> {
        let bytes = HEAD_BYTES + record.key.len() + record.stored.len();
        let (Ok(key_bytes), Ok(stored_bytes)) =
            (u32::try_from(record.key.len()), u32::try_from(record.stored.len()))
        else {
            return Err(Error::invalid(format!("key of {} bytes; keys are below 4 GiB", record.key.len())));
        };
        let partition = partition_of(record.hash, PARTITION_BITS_MAX);
        let has_room = self.waiting[partition]
            .chunks
            .last()
            .is_some_and(|chunk| chunk.capacity() - chunk.len() >= bytes);
        if !has_room {
            self.add_chunk(partition, bytes)?;
        }
        let waiting = &mut self.waiting[partition];
        waiting.records += 1;
        waiting.bytes += bytes as u64;
        if let Some(chunk) = waiting.chunks.last_mut() {
            debug_assert!(chunk.capacity() - chunk.len() >= bytes, "a chunk never grows");
            let start = chunk.len();
            chunk.extend_from_slice(&record.hash.to_le_bytes());
            chunk.extend_from_slice(&key_bytes.to_le_bytes());
            chunk.extend_from_slice(&stored_bytes.to_le_bytes());
            chunk.push(record.tag as u8);
            chunk.extend_from_slice(record.key);
            chunk.extend_from_slice(record.stored);
            debug_assert_eq!(chunk.len() - start, bytes, "the size that was counted");
        }
        Ok(())
    }

    #[cold]
    fn add_chunk(&mut self, partition: usize, record_bytes: usize) -> Result<()> {
        let bytes = self.chunk_bytes.max(record_bytes);
        if self.memory_bytes + bytes as u64 > self.memory_bytes_max {
            self.spill()?;
        }
        debug_assert!(bytes >= record_bytes, "a record lies in one chunk");
        self.memory_bytes += bytes as u64;
        self.waiting[partition].chunks.push(Vec::with_capacity(bytes));
        Ok(())
    }

    /// Moves all records in memory to the spill file.
    fn spill(&mut self) -> Result<()> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(temporary_file(&self.fs, &self.spill_path)?),
        };
        let mut sum = RunningSum::default();
        for waiting in &mut self.waiting {
            let offset = spill.position();
            for chunk in waiting.chunks.drain(..) {
                sum.update(&chunk);
                spill.write_all(&chunk)?;
            }
            let bytes = spill.position() - offset;
            if bytes > 0 {
                debug_assert!(
                    waiting.extents.last().is_none_or(|last| last.offset + last.bytes <= offset),
                    "extents ascend in insertion order"
                );
                waiting.extents.push(Extent { offset, bytes, sum: sum.take() });
            }
        }
        self.memory_bytes = 0;
        debug_assert!(
            self.waiting.iter().all(|waiting| {
                waiting.chunks.is_empty()
                    && waiting.extents.iter().map(|extent| extent.bytes).sum::<u64>() == waiting.bytes
            }),
            "all records are in the file"
        );
        Ok(())
    }

    /// Ends the collection. If nothing was spilled, all records stay in memory. Otherwise the rest
    /// is spilled too, to free the memory for sorting.
    pub fn seal(mut self) -> Result<Sealed> {
        if self.spill.is_some() {
            self.spill()?;
        }
        let spilled_bytes = self.spill.as_ref().map_or(0, AppendWriter::position);
        let spill = self.spill.map(AppendWriter::into_file).transpose()?;
        let Ingest { waiting, spill_path, memory_bytes, .. } = self;
        debug_assert!(spill.is_none() || memory_bytes == 0, "{memory_bytes} bytes were not spilled");
        debug_assert_eq!(
            waiting.iter().flat_map(|waiting| &waiting.extents).map(|extent| extent.bytes).sum::<u64>(),
            spilled_bytes,
            "every spilled byte belongs to a partition"
        );
        Ok(Sealed { waiting, spill, spill_path, memory_bytes, spilled_bytes })
    }
}

/// Opens a file without a name, which is gone when it is closed.
pub(crate) fn temporary_file(fs: &Arc<dyn Fs>, path: &Path) -> Result<AppendWriter> {
    // Removes the name first. Otherwise an existing file of this name, or the target of a link,
    // would be overwritten.
    names::remove(&**fs, path)?;
    let file = fs.open(path, OpenOptions::create_new())?;
    // ORDER: the name is removed before the first byte is written, so that no later failure leaves
    // the file behind. A power loss still can, and the next build of the same path removes it.
    fs.remove(path)?;
    Ok(AppendWriter::new(Arc::from(file), 0, SPILL_BUFFER_BYTES))
}

/// The complete records of a build, by partition.
#[derive(Debug)]
pub(crate) struct Sealed {
    waiting: Vec<BufferedPartition>,
    spill: Option<Arc<dyn File>>,
    /// For errors: the file no longer has a name.
    spill_path: PathBuf,
    memory_bytes: u64,
    spilled_bytes: u64,
}

impl Sealed {
    /// Returns the number of bytes written to the spill file.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled_bytes
    }

    /// Returns the size of the records in memory.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        self.waiting.iter().map(|waiting| waiting.records).sum()
    }

    /// Returns the size of the largest of `1 << bits` final partitions.
    pub fn bytes_max(&self, bits: u32) -> u64 {
        debug_assert!(bits <= PARTITION_BITS_MAX, "{bits} bits");
        self.waiting
            .chunks(PARTITIONS >> bits)
            .map(|group| group.iter().map(|waiting| waiting.bytes).sum())
            .max()
            .unwrap_or(0)
    }

    /// Loads the records of final partition `index` of `1 << bits`. Records with equal hashes are
    /// in insertion order.
    pub fn load(&self, index: usize, bits: u32) -> Result<Segments<'_>> {
        let mut segments = Segments { owned: Vec::new(), borrowed: Vec::new(), records: 0 };
        debug_assert!(index < 1 << bits, "partition {index} of {}", 1 << bits);
        let group = PARTITIONS >> bits;
        let mut expected = 0;
        for waiting in self.waiting.iter().skip(index * group).take(group) {
            segments.records += waiting.records as usize;
            expected += waiting.bytes;
            for extent in &waiting.extents {
                let Some(spill) = &self.spill else {
                    return Err(Bug::new("an extent without a spill file").into());
                };
                let mut bytes = vec![0; extent.bytes as usize];
                spill.read_exact_at(&mut bytes, extent.offset)?;
                let found = sum_of(&bytes);
                if found != extent.sum {
                    let detail = format!(
                        "{} bytes of the temporary file have checksum {found:016x}, expected {:016x}",
                        extent.bytes, extent.sum
                    );
                    return Err(Error::corruption(&self.spill_path, extent.offset, detail));
                }
                segments.owned.push(bytes);
            }
            // The extents of a partition precede its chunks. Different partitions have different
            // hashes, so the order between them does not matter.
            segments.borrowed.extend(waiting.chunks.iter().map(Vec::as_slice));
        }
        let found = segments.bytes();
        ensure!(found == expected, "{found} bytes of records in partition {index}, {expected} were added");
        Ok(segments)
    }
}

/// The records of one partition in memory, in segments of whole records.
#[derive(Debug)]
pub(crate) struct Segments<'a> {
    owned: Vec<Vec<u8>>,
    borrowed: Vec<&'a [u8]>,
    /// Number of records.
    pub records: usize,
}

impl Segments<'_> {
    /// Returns the size of all records.
    fn bytes(&self) -> u64 {
        let owned = self.owned.iter().map(|segment| segment.len() as u64);
        owned.chain(self.borrowed.iter().map(|segment| segment.len() as u64)).sum()
    }

    fn segment(&self, index: usize) -> &[u8] {
        debug_assert!(index < self.owned.len() + self.borrowed.len(), "segment {index}");
        match self.owned.get(index) {
            Some(bytes) => bytes,
            None => self.borrowed.get(index - self.owned.len()).copied().unwrap_or_default(),
        }
    }

    /// Returns the hash and the place of every record. Places ascend in insertion order.
    pub fn places(&self) -> Vec<(u64, u64)> {
        let mut places = Vec::with_capacity(self.records);
        for index in 0..self.owned.len() + self.borrowed.len() {
            let bytes = self.segment(index);
            let mut at = 0;
            while at < bytes.len() {
                places.push((word64(bytes, at), (index as u64) << 40 | at as u64));
                at += HEAD_BYTES + word32(bytes, at + 8) as usize + word32(bytes, at + 12) as usize;
            }
            debug_assert_eq!(at, bytes.len(), "segments hold whole records");
            debug_assert!(at < 1 << 40, "a place has 40 bits for the offset");
        }
        places
    }

    /// Returns the record at a place that [`Segments::places`] returned.
    pub fn record(&self, place: u64) -> BufferedRecord<'_> {
        let bytes = self.segment((place >> 40) as usize);
        let at = (place & ((1 << 40) - 1)) as usize;
        let key_start = at + HEAD_BYTES;
        let stored_start = key_start + word32(bytes, at + 8) as usize;
        let end = stored_start + word32(bytes, at + 12) as usize;
        debug_assert!(end <= bytes.len(), "a record that ends at {end} of {}", bytes.len());
        BufferedRecord {
            hash: word64(bytes, at),
            key: bytes.get(key_start..stored_start).unwrap_or_default(),
            stored: bytes.get(stored_start..end).unwrap_or_default(),
            tag: Tag::from_bits(u64::from(bytes.get(at + 16).copied().unwrap_or(0))),
        }
    }
}
