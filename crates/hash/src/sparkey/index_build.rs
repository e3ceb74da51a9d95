//! Builds an index from a log.
//!
//! The index is built in a temporary file and renamed when it is complete and durable, so that
//! readers, also after a crash, see the old index or the new one. Given the same log, seed and
//! construction, it is byte for byte the index of sparkey-java; `docs/src/formats/sparkey.md` tells
//! where the format leaves a choice.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{Advice, AtomicFile, File, Fs, StdFs, ensure};

use super::cursor::{Cursor, match_put};
use super::index::hash_key;
use super::index_header::{ENTRY_BITS_MAX, IndexHeader};
use super::index_sort::{self, SortEntry, Sorter};
use super::log::{Log, open_file};
use super::log_header::LOG_HEADER_BYTES;
use super::log_lock::check_name;
use super::log_scan::LogScan;
use super::log_writer::random_u32;
use super::options::{Construction, HashWidth, IndexOptions, Mode};
use super::paths::{index_path, log_path};
use super::record::RecordKind;
use super::robin_hood::RobinHood;
use super::slot::{Ring, Slot};
use super::slot_store::{MemoryStore, PagedStore, SlotStore};
use crate::{Error, Result};

/// From this number of puts on, hashes of 32 bits collide too often.
const WIDE_HASH_PUTS: u64 = 1 << 23;
/// The maximum number of bits of an address, the entry bits included, for which an address takes
/// four bytes.
const NARROW_ADDRESS_BITS: u32 = 30;
const _: () = assert!(NARROW_ADDRESS_BITS < u32::BITS, "such an address has four bytes");
/// Memory for decompressed blocks while a build looks up keys that occur more than once.
const BLOCK_CACHE_BYTES: u64 = 64 << 20;
/// If the log is compressed, its decompressed blocks get the memory of the build divided by this.
const BLOCK_CACHE_SHARE: u64 = 8;
/// Number of records that are hashed before they are inserted, so that the prefetches of their
/// slots complete meanwhile.
const BATCH: usize = 64;
/// A batch is also full at this many bytes of keys: a key may have up to 2 GiB, and each is copied.
const BATCH_KEY_BYTES: usize = 64 << 10;

/// The result of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexSummary {
    /// The header that was written.
    pub header: IndexHeader,
    /// True if the entries were sorted first.
    pub sorted: bool,
}

/// Builds the index of the log at `path` (the name of either file) on the real file system.
///
/// The log is on stable storage before the new index is published, regardless of how it was
/// written.
///
/// Cost: one pass over the log; with [`Construction::Sorting`] another pass over the hashes of its
/// keys; and a read of the older record for each key that occurs again. Errors:
/// [`Error::Corruption`] of the log; `Busy` if another process builds the same index or has
/// replaced the log; [`Error::Invalid`] for options out of range or if memory is insufficient.
/// After an error the old index is still in place.
pub fn build_index(path: impl AsRef<Path>, options: &IndexOptions) -> Result<IndexSummary> {
    build_index_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path, options)
}

/// Does the same as [`build_index`] on any file system.
pub fn build_index_in(
    fs: &Arc<dyn Fs>,
    path: impl AsRef<Path>,
    options: &IndexOptions,
) -> Result<IndexSummary> {
    options.check()?;
    let log_path = log_path(&path);
    // If there is no log, the error should name the log and not the index.
    fs.metadata(&log_path)?;
    // ORDER: the lock of the index, then the log. In the other order, a build that waited between
    // the two could replace an index by one of an older log.
    let index = AtomicFile::create(fs, &index_path(&path))?;
    let log_file = open_file(fs, &log_path)?;
    let summary = fill_index(fs, Arc::clone(&log_file), &index, options)?;
    // ORDER: the log, content and name, is durable before its index is published. Its writer need
    // not have synced it. An index that refers to records lost in a power loss would be worse than
    // none.
    log_file.sync_data()?;
    fs.sync_parent(&log_path)?;
    // A process that replaces the log holds the lock of the index meanwhile, so the log cannot be
    // replaced after this check.
    check_name(fs, &*log_file, "the log was replaced while its index was built")?;
    index.commit()?;
    Ok(summary)
}

/// Builds the index of `log_file` in `index`.
pub(super) fn fill_index(
    fs: &Arc<dyn Fs>,
    log_file: Arc<dyn File>,
    index: &AtomicFile,
    options: &IndexOptions,
) -> Result<IndexSummary> {
    options.check()?;
    index_sort::clean_up(fs, index.path())?;
    // With a memory limit the log is read, because the pages of a mapping stay in memory as long as
    // there is free memory.
    let (mode, cache_bytes) = match options.construction {
        Construction::InMemory => (Mode::Mmap, BLOCK_CACHE_BYTES),
        Construction::Sorting { memory_bytes } | Construction::Auto { memory_bytes } => {
            (Mode::Pread, (memory_bytes / BLOCK_CACHE_SHARE).min(BLOCK_CACHE_BYTES))
        }
    };
    let log = Log::open(log_file, mode, cache_bytes)?;
    let header = plan(&log, options, index.path())?;
    // The memory of the block cache is not available for entries.
    let cache_bytes = if log.is_compressed() { cache_bytes } else { 0 };
    let (sorted, memory_bytes) = match options.construction {
        Construction::InMemory => (false, 0),
        Construction::Sorting { memory_bytes } => (true, memory_bytes - cache_bytes),
        Construction::Auto { memory_bytes } => {
            let memory_bytes = memory_bytes - cache_bytes;
            (header.file_bytes().is_none_or(|bytes| bytes > memory_bytes), memory_bytes)
        }
    };
    log.advise(if sorted { Advice::Normal } else { Advice::Sequential });
    let build = Build { fs, log: &log, header, index, memory_bytes };
    let header = match (header.hash_bytes, header.address_bytes) {
        (4, 4) => build.run::<4, 4>(sorted),
        (4, _) => build.run::<4, 8>(sorted),
        (_, 4) => build.run::<8, 4>(sorted),
        (_, _) => build.run::<8, 8>(sorted),
    }?;
    Ok(IndexSummary { header, sorted })
}

/// Chooses the sizes as sparkey-java does.
fn plan(log: &Log, options: &IndexOptions, index_path: &Path) -> Result<IndexHeader> {
    let header = &log.header;
    if header.puts > header.data_end {
        // More than one put per byte occurs only in highly compressed data. Otherwise the header is
        // damaged, and would cause slots to be allocated for nothing.
        count_records(log)?;
    }
    // Blocks of one record need no record numbers. An uncompressed log has no blocks, whatever its
    // header says.
    let block_entries = if log.is_compressed() { header.block_entries_max } else { 0 };
    let entry_bits = block_entries.max(1).next_power_of_two().ilog2();
    let seed = match options.seed {
        Some(seed) => seed,
        None => random_u32(index_path)?,
    };
    let wide = match options.hash_width {
        HashWidth::Auto => header.puts >= WIDE_HASH_PUTS,
        HashWidth::Bits32 => false,
        HashWidth::Bits64 => true,
    };
    let narrow_address =
        entry_bits <= NARROW_ADDRESS_BITS && header.data_end <= 1 << (NARROW_ADDRESS_BITS - entry_bits);
    if entry_bits > ENTRY_BITS_MAX || header.data_end > i64::MAX as u64 >> (entry_bits + 1) {
        let detail = format!(
            "positions up to {} with {entry_bits} bits for the entry exceed an address",
            header.data_end
        );
        return Err(Error::Unsupported { file: log.path.clone(), detail });
    }
    let capacity = (header.puts as f64 * options.sparsity.unwrap_or(IndexOptions::SPARSITY_MIN)) as u64 | 1;
    ensure!(capacity >= header.puts, "{capacity} slots for {} puts", header.puts);
    let header = IndexHeader {
        identifier: header.identifier,
        seed,
        data_end: header.data_end,
        key_bytes_max: header.key_bytes_max,
        value_bytes_max: header.value_bytes_max,
        puts: header.puts,
        garbage_bytes: 0,
        entries: 0,
        address_bytes: if narrow_address { 4 } else { 8 },
        hash_bytes: if wide { 8 } else { 4 },
        capacity: NonZeroU64::new(capacity).unwrap_or(NonZeroU64::MIN),
        displacement_max: 0,
        entry_bits,
        collisions: 0,
        displacement_total: 0,
    };
    debug_assert!(
        header.file_bytes().is_none_or(|bytes| {
            IndexHeader::decode(index_path, &header.encode(), bytes).is_ok_and(|read| read == header)
        }),
        "decoded as it is encoded: {header:?}"
    );
    Ok(header)
}

/// Reads the log to its end, which checks its records against the header.
fn count_records(log: &Log) -> Result<()> {
    let mut scan = LogScan::new(log);
    while scan.next_entry()?.is_some() {}
    Ok(())
}

/// The context of one build.
struct Build<'a> {
    fs: &'a Arc<dyn Fs>,
    log: &'a Log,
    header: IndexHeader,
    index: &'a AtomicFile,
    memory_bytes: u64,
}

impl Build<'_> {
    fn run<const H: usize, const A: usize>(&self, sorted: bool) -> Result<IndexHeader> {
        if sorted {
            let file = Arc::clone(self.index.file());
            self.fill(PagedStore::<H, A>::new(&self.header, file)?, Self::insert_sorted)
        } else {
            self.fill(MemoryStore::<H, A>::new(&self.header)?, Self::insert_in_log_order)
        }
    }

    /// Fills the slots and writes the index.
    fn fill<S: SlotStore>(
        &self,
        store: S,
        insert: impl FnOnce(&Self, &mut RobinHood<S>) -> Result<()>,
    ) -> Result<IndexHeader> {
        let mut table = RobinHood::new(store, Ring::new(self.header.capacity));
        insert(self, &mut table)?;
        let statistics = table.statistics()?;
        let header = IndexHeader {
            garbage_bytes: table.garbage_bytes,
            entries: table.entries,
            displacement_max: statistics.displacement_max,
            collisions: statistics.collisions,
            displacement_total: statistics.displacement_total,
            ..self.header
        };
        ensure!(header.entries <= header.puts, "{} entries of {} puts", header.entries, header.puts);
        debug_assert!(
            header.check_log(self.index.path(), &self.log.header, &self.log.path).is_ok(),
            "a reader accepts the index: {header:?} of {:?}",
            self.log.header
        );
        let file = self.index.file();
        table.store.finish(file)?;
        file.write_all_at(&header.encode(), 0)?;
        Ok(header)
    }

    fn hash(&self, key: &[u8]) -> u64 {
        hash_key(self.header.hash_bytes, self.header.seed, key)
    }

    fn insert_in_log_order<S: SlotStore>(&self, table: &mut RobinHood<S>) -> Result<()> {
        let mut batch = Batch::default();
        let mut lookups = Cursor::for_lookup(self.log);
        let mut puts = 0;
        let mut scan = LogScan::new(self.log);
        while let Some(entry) = scan.next_entry()? {
            puts += u64::from(entry.kind() == RecordKind::Put);
            self.check_room(puts)?;
            let slot = Slot {
                hash: self.hash(entry.key()),
                address: self.address(entry.position(), entry.number_in_block())?,
            };
            table.store.prefetch(table.ring.home(slot.hash));
            batch.push(slot, entry.kind(), entry.key());
            if batch.is_full() {
                self.apply(&mut batch, table, &mut lookups)?;
            }
        }
        self.apply(&mut batch, table, &mut lookups)
    }

    fn apply<S: SlotStore>(
        &self,
        batch: &mut Batch,
        table: &mut RobinHood<S>,
        lookups: &mut Cursor<'_>,
    ) -> Result<()> {
        let mut start = 0;
        for &(slot, kind, end) in &batch.items {
            let key = batch.keys.get(start..end).unwrap_or_default();
            let same_key = |address| self.record_bytes_if(lookups, address, key);
            match kind {
                RecordKind::Put => table.insert(slot, same_key)?,
                RecordKind::Delete => table.remove(slot.hash, same_key)?,
            }
            start = end;
        }
        debug_assert_eq!(start, batch.keys.len(), "the keys of all records");
        batch.items.clear();
        batch.keys.clear();
        Ok(())
    }

    fn insert_sorted<S: SlotStore>(&self, table: &mut RobinHood<S>) -> Result<()> {
        let mut sorter = Sorter::new(self.fs, self.index.path(), self.memory_bytes);
        let mut puts = 0;
        let mut scan = LogScan::new(self.log);
        while let Some(entry) = scan.next_entry()? {
            let is_put = entry.kind() == RecordKind::Put;
            puts += u64::from(is_put);
            self.check_room(puts)?;
            let hash = self.hash(entry.key());
            let address = self.address(entry.position(), entry.number_in_block())?;
            let address_and_kind = address << 1 | u64::from(is_put);
            sorter.push(SortEntry { home: table.ring.home(hash), address_and_kind, hash })?;
        }
        drop(scan);
        let mut sorted = sorter.finish()?;
        let (mut lookups, mut key) = (Cursor::for_lookup(self.log), Vec::new());
        while let Some(entry) = sorted.next()? {
            let slot = Slot { hash: entry.hash, address: entry.address_and_kind >> 1 };
            let mut key_is_read = false;
            let same_key = |address| {
                // Read lazily: most hashes occur once, so most keys are never read again.
                if !key_is_read {
                    self.read_key(&mut lookups, slot.address, &mut key)?;
                    key_is_read = true;
                }
                self.record_bytes_if(&mut lookups, address, &key)
            };
            if entry.address_and_kind & 1 == 1 {
                table.insert(slot, same_key)?;
            } else {
                table.remove(slot.hash, same_key)?;
            }
        }
        Ok(())
    }

    /// Checks that there are no more puts than in the header, because that number determines the
    /// number of slots.
    #[inline]
    fn check_room(&self, puts: u64) -> Result<()> {
        let most = self.log.header.puts;
        if puts <= most {
            return Ok(());
        }
        Err(self
            .log
            .corruption(16, format!("found {puts} puts in the log so far, but its header says {most}")))
    }

    fn address(&self, position: u64, number_in_block: u64) -> Result<u64> {
        let bits = self.header.entry_bits;
        if number_in_block >= 1 << bits {
            let most = self.log.header.block_entries_max;
            let detail = format!(
                "record number {number_in_block} of its block, but the header says that a block has at most {most}"
            );
            return Err(self.log.corruption(position, detail));
        }
        let address = position << bits | number_in_block;
        debug_assert!(position >= LOG_HEADER_BYTES as u64, "position {position} is in the header");
        debug_assert_eq!(self.header.split(address), (position, number_in_block));
        Ok(address)
    }

    /// Returns the size of the PUT record at `address` if its key is `key`.
    fn record_bytes_if(&self, lookups: &mut Cursor<'_>, address: u64, key: &[u8]) -> Result<Option<u64>> {
        let (position, entry) = self.header.split(address);
        Ok(match_put(lookups, position, entry, key)?.map(|head| head.record_bytes()))
    }

    fn read_key(&self, lookups: &mut Cursor<'_>, address: u64, key: &mut Vec<u8>) -> Result<()> {
        let (position, entry) = self.header.split(address);
        let head = lookups.seek(position, entry)?;
        key.clear();
        lookups.append_to(head.key_bytes, key)?;
        debug_assert_eq!(key.len() as u64, head.key_bytes, "the whole key was read");
        Ok(())
    }
}

/// Records that were read but not inserted yet.
#[derive(Debug, Default)]
struct Batch {
    /// Each with the end offset of its key in `keys`.
    items: Vec<(Slot, RecordKind, usize)>,
    keys: Vec<u8>,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.items.len() >= BATCH || self.keys.len() >= BATCH_KEY_BYTES
    }

    fn push(&mut self, slot: Slot, kind: RecordKind, key: &[u8]) {
        debug_assert!(!self.is_full(), "{} records wait", self.items.len());
        self.keys.extend_from_slice(key);
        self.items.push((slot, kind, self.keys.len()));
    }
}
